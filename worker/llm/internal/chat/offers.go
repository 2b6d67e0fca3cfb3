package chat

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

var _ llm.Lister = (*provider)(nil)

// An offer is a model in a list, with the fields in which servers tell of it.
type offer struct {
	ID   string `json:"id"`
	Type string `json:"type"`

	Loaded        wire.Count `json:"loaded_context_length"` // LM Studio
	MaxModelLen   wire.Count `json:"max_model_len"`         // vLLM
	ContextLength wire.Count `json:"context_length"`        // OpenRouter, Together, Fireworks
	ContextWindow wire.Count `json:"context_window"`        // Groq
	MaxContext    wire.Count `json:"max_context_length"`    // Mistral, LM Studio
	MaxCompletion wire.Count `json:"max_completion_tokens"` // Groq
	Top           struct {
		MaxCompletion wire.Count `json:"max_completion_tokens"`
	} `json:"top_provider"` // OpenRouter

	Parameters   []string        `json:"supported_parameters"` // OpenRouter
	Capabilities json.RawMessage `json:"capabilities"`         // Mistral: an object of booleans; LM Studio: a list
	Architecture struct {
		Input []string `json:"input_modalities"`
	} `json:"architecture"`
}

// Offers implements llm.Lister.
func (p *provider) Offers(ctx context.Context) ([]llm.Offer, error) {
	var raw json.RawMessage
	if err := p.Get(ctx, cmp.Or(p.server.ListPath, "models"), &raw); err != nil {
		return nil, err
	}
	var list struct{ Data []offer }
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) { // Together's
		raw = append(append([]byte(`{"data":`), raw...), '}')
	}
	if err := wire.Decode(raw, &list); err != nil {
		return nil, llm.WrapError(llm.Garbled, err)
	}
	window, err := p.loadedWindow(ctx)
	if err != nil {
		return nil, err
	}

	all := make([]llm.Offer, 0, len(list.Data))
	for _, o := range list.Data {
		all = append(all, llm.Offer{
			Model: llm.Model(o.ID), Window: cmp.Or(window, o.window()), MaxAnswer: max(cmp.Or(o.MaxCompletion.N, o.Top.MaxCompletion.N), 0), Abilities: o.abilities(),
			Told: o.tells(),
		})
	}
	return llm.CheckOffers(all)
}

// loadedWindow returns the window that a program was started with; 0 if it has no way to say.
func (p *provider) loadedWindow(ctx context.Context) (int64, error) {
	if p.server.PropsPath == "" {
		return 0, nil
	}

	var props struct {
		Settings struct {
			Window wire.Count `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}

	if err := p.Get(ctx, p.server.PropsPath, &props); err != nil {
		return 0, err
	}

	return max(props.Settings.Window.N, 0), nil
}

// window returns the context window; 0 if the server reports none. What is loaded counts, not what could be.
func (o *offer) window() int64 {
	return max(cmp.Or(o.Loaded.N, o.MaxModelLen.N, o.ContextLength.N, o.ContextWindow.N, o.MaxContext.N), 0)
}

// tells reports whether a list says of its models whether they call tools: OpenRouter's lists the
// parameters that a model takes, and Mistral's what it can do. LM Studio's leaves out what it cannot.
func (o *offer) tells() bool {
	return len(o.Parameters) > 0 || bytes.HasPrefix(bytes.TrimSpace(o.Capabilities), []byte("{"))
}

// abilities returns the abilities of a model that its server reports.
func (o *offer) abilities() []llm.Ability {
	told := append(slices.Clone(o.Parameters), o.Architecture.Input...)

	// Capabilities are an object of booleans at some servers, and a list at others.
	var named map[string]bool
	var listed []string
	if json.Unmarshal(o.Capabilities, &named) == nil {
		for name, has := range named {
			if has {
				told = append(told, name)
			}
		}
	} else if json.Unmarshal(o.Capabilities, &listed) == nil {
		told = append(told, listed...)
	}
	told = append(told, o.Type)

	var all []llm.Ability
	for _, a := range []struct {
		ability llm.Ability
		words   []string
	}{
		{llm.CanTools, []string{"tools", "function_calling", "tool_use"}},
		{llm.CanImages, []string{"image", "vision", "vlm"}},
		{llm.CanThink, []string{"reasoning"}},
		{llm.CanEmbed, []string{"embedding", "embeddings"}},
		{llm.CanSchemas, []string{"structured_outputs"}},
	} {
		if slices.ContainsFunc(a.words, func(w string) bool { return slices.Contains(told, w) }) {
			all = append(all, a.ability)
		}
	}
	return all
}
