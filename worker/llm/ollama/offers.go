package ollama

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// maxShown bounds the models of which a server is asked more than their names.
const maxShown = 100

// Offers implements llm.Lister. The window of a model is what it was made for: how much of that is
// used, each request says.
func (p *provider) Offers(ctx context.Context) ([]llm.Offer, error) {
	var list struct {
		Models []struct {
			Name string `json:"name"`
		}
	}
	if err := p.Get(ctx, "api/tags", &list); err != nil {
		return nil, err
	}

	all := make([]llm.Offer, len(list.Models))
	for i, m := range list.Models {
		all[i].Model = llm.Model(m.Name)

		// Each model takes a request of its own.
		if i >= maxShown {
			continue
		}

		if err := p.show(ctx, &all[i]); err != nil {
			return nil, err
		}
	}

	return llm.CheckOffers(all)
}

// Describe implements llm.Describer.
func (p *provider) Describe(ctx context.Context, model llm.Model) (llm.Offer, error) {
	o := llm.Offer{Model: model}
	err := p.show(ctx, &o)
	return o, err
}

// show asks for more of a model.
func (p *provider) show(ctx context.Context, o *llm.Offer) error {
	var model struct {
		Info         map[string]json.RawMessage `json:"model_info"`
		Capabilities []string                   `json:"capabilities"`
	}

	c := p.BeginCall(ctx, new(llm.Request))
	defer c.EndCall()
	if err := c.SendFor(wire.Request{Path: "api/show", Body: map[string]llm.Model{"model": o.Model}}, &model); err != nil {
		return err
	}

	// The names begin with that of the model's architecture.
	for name, raw := range model.Info {
		var n wire.Count
		if strings.HasSuffix(name, ".context_length") && json.Unmarshal(raw, &n) == nil {
			o.Window = max(n.N, 0)
		}
	}

	o.Told = len(model.Capabilities) > 0
	for _, word := range model.Capabilities {
		switch word {
		case "tools":
			o.Abilities = append(o.Abilities, llm.CanTools)
		case "vision":
			o.Abilities = append(o.Abilities, llm.CanImages)
		case "thinking":
			o.Abilities = append(o.Abilities, llm.CanThink)
		case "embedding":
			o.Abilities = append(o.Abilities, llm.CanEmbed)
		}
	}
	return nil
}
