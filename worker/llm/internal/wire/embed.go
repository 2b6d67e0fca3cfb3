package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/redact"
)

// embedPaths are the paths below the base whose answers are one JSON document of vectors.
var embedPaths = []string{"/embeddings", "/api/embed"}

// PostEmbed posts a request for vectors to a path below the base, and decodes the answer. The
// error is an *llm.Error.
func (d *Dialer) PostEmbed(ctx context.Context, path string, trace llm.Trace, body, answer any) error {
	payload, err := json.Marshal(body)
	if err != nil {
		return llm.WrapError(llm.Invalid, err)
	}
	c := d.BeginCall(ctx, &llm.Request{Trace: trace})
	defer c.EndCall()
	post, err := http.NewRequestWithContext(c.Context(), http.MethodPost, d.Base.JoinPath(path).String(), bytes.NewReader(payload))
	if err != nil {
		return llm.WrapError(llm.Invalid, err)
	}
	post.Header.Set("Content-Type", "application/json")
	if !d.Config.Key.IsZero() {
		post.Header.Set("Authorization", "Bearer "+redact.Secret(d.Config.Key))
	}
	res, err := c.DoRequest(post, d.Client.Do)
	if err != nil {
		return c.FailError(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(answer); err != nil {
		return c.CutError(err)
	}
	return nil
}
