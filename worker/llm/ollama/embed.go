package ollama

import (
	"context"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

var _ llm.Embedder = (*provider)(nil)

// Embed implements llm.Embedder.
func (p *provider) Embed(ctx context.Context, req *llm.EmbedRequest) (*llm.Embeddings, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}

	var answer struct {
		Model      string
		Embeddings [][]float32
		Count      wire.Count `json:"prompt_eval_count"`
	}
	if err := p.PostEmbed(ctx, "api/embed", req.Trace, map[string]any{"model": req.Model, "input": req.Texts}, &answer); err != nil {
		return nil, err
	}

	out := &llm.Embeddings{Model: llm.Model(answer.Model), Vectors: answer.Embeddings}
	if answer.Count.Known {
		out.Usage = llm.Usage{Input: answer.Count.N, Reported: true}.IfPossible()
	}

	return out, out.CheckFor(req)
}
