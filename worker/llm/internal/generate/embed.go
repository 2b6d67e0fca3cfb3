package generate

import (
	"context"

	"github.com/coditect/mapreduce/worker/llm"
)

var _ llm.Embedder = embedder{}

// An embedder is a provider of a server that embeds.
type embedder struct{ *provider }

// Embed implements llm.Embedder.
func (p embedder) Embed(ctx context.Context, req *llm.EmbedRequest) (*llm.Embeddings, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}

	name := p.server.Path(req.Model)
	type text struct {
		Text string `json:"text"`
	}
	type texts struct {
		Parts []text `json:"parts"`
	}
	type one struct {
		Model   string `json:"model"`
		Content texts  `json:"content"`
	}
	asked := make([]one, len(req.Texts))
	for i, t := range req.Texts {
		asked[i] = one{name, texts{[]text{{t}}}}
	}

	var answer struct {
		Embeddings    []struct{ Values []float32 }
		UsageMetadata *usage
	}
	if err := p.PostEmbed(ctx, name+":batchEmbedContents", req.Trace, map[string]any{"requests": asked}, &answer); err != nil {
		return nil, err
	}

	out := &llm.Embeddings{Model: req.Model, Vectors: make([][]float32, len(answer.Embeddings)), Usage: answer.UsageMetadata.count()}
	for i, e := range answer.Embeddings {
		out.Vectors[i] = e.Values
	}
	return out, out.CheckFor(req)
}
