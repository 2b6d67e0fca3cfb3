package wire

import (
	"context"

	"github.com/coditect/mapreduce/worker/llm"
)

// PostEmbed posts a request for vectors to a path below the base, and decodes the answer. The
// error is an *llm.Error.
func (d *Dialer) PostEmbed(ctx context.Context, path string, trace llm.Trace, body, answer any) error {
	c := d.BeginCall(ctx, &llm.Request{Trace: trace})
	defer c.EndCall()
	return c.SendFor(Request{Path: path, Body: body}, answer)
}
