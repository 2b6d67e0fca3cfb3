package chat

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
		Model string
		Data  []struct {
			Index     int
			Embedding []float32
		}
		Usage struct {
			PromptTokens wire.Count `json:"prompt_tokens"`
		}
	}

	body := map[string]any{"model": req.Model, "input": req.Texts, "encoding_format": "float"}
	if err := p.PostEmbed(ctx, p.server.EmbedPath(req.Model), req.Trace, body, &answer); err != nil {
		return nil, err
	}

	out := &llm.Embeddings{Model: llm.Model(answer.Model), Vectors: make([][]float32, len(req.Texts))}
	if answer.Usage.PromptTokens.Known {
		out.Usage = llm.Usage{Input: answer.Usage.PromptTokens.N, Reported: true}.IfPossible()
	}
	// Vectors may come in any order; each text has exactly one.
	for _, d := range answer.Data {
		if d.Index < 0 || d.Index >= len(out.Vectors) || out.Vectors[d.Index] != nil {
			return nil, llm.NewError(llm.Garbled, "a vector is for text %d, which is not its turn among %d", d.Index, len(req.Texts))
		}
		out.Vectors[d.Index] = d.Embedding
	}

	return out, out.CheckFor(req)
}
