package generate

import (
	"context"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// Offers implements llm.Lister.
func (p embedder) Offers(ctx context.Context) ([]llm.Offer, error) {
	var list struct {
		Models []struct {
			Name     string     `json:"name"`
			Input    wire.Count `json:"inputTokenLimit"`
			Output   wire.Count `json:"outputTokenLimit"`
			Methods  []string   `json:"supportedGenerationMethods"`
			Thinking bool       `json:"thinking"`
		}
	}

	if err := p.Get(ctx, "models?pageSize=1000", &list); err != nil {
		return nil, err
	}

	var all []llm.Offer
	for _, m := range list.Models {
		o := llm.Offer{Model: llm.Model(strings.TrimPrefix(m.Name, "models/")), Window: max(m.Input.N, 0), MaxAnswer: max(m.Output.N, 0)}
		if m.Thinking {
			o.Abilities = append(o.Abilities, llm.CanThink)
		}

		embeds := slices.Contains(m.Methods, "embedContent")
		if embeds {
			o.Abilities = append(o.Abilities, llm.CanEmbed)
		}

		// Models that do neither, such as those of images, are not for us.
		if embeds || slices.Contains(m.Methods, "generateContent") {
			all = append(all, o)
		}
	}

	return llm.CheckOffers(all)
}
