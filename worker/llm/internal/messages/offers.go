package messages

import (
	"context"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// Offers implements llm.Lister.
func (p counter) Offers(ctx context.Context) ([]llm.Offer, error) {
	var list struct {
		Data []struct {
			ID     string     `json:"id"`
			Input  wire.Count `json:"max_input_tokens"`
			Answer wire.Count `json:"max_tokens"`
		}
	}

	if err := p.Get(ctx, "v1/models?limit=1000", &list); err != nil {
		return nil, err
	}

	all := make([]llm.Offer, len(list.Data))
	for i, m := range list.Data {
		// The list says nothing of abilities; all models of the vendor have these.
		all[i] = llm.Offer{Model: llm.Model(m.ID), Window: max(m.Input.N, 0), MaxAnswer: max(m.Answer.N, 0), Abilities: []llm.Ability{llm.CanTools, llm.CanImages}}
	}

	return llm.CheckOffers(all)
}
