package chat

import (
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// Thinking holds the fields that say how long a model is to think. Each server knows some
// of them.
type Thinking struct {
	ReasoningEffort string         `json:"reasoning_effort,omitempty"`
	Reasoning       map[string]any `json:"reasoning,omitempty"`              // OpenRouter
	Switch          map[string]any `json:"thinking,omitempty"`               // DeepSeek
	TokenBudget     *int64         `json:"thinking_token_budget,omitempty"`  // vLLM
	BudgetTokens    *int64         `json:"thinking_budget_tokens,omitempty"` // llama.cpp
	Template        map[string]any `json:"chat_template_kwargs,omitempty"`   // vLLM and llama.cpp: of what makes a prompt of messages
}

// thinkByEffort is what the vendor knows: an effort, and no budget.
func thinkByEffort(set parameters.Set) Thinking { return Thinking{ReasoningEffort: set.Effort} }

// ThinkByRouter is OpenRouter's way, which takes an effort or a budget.
func ThinkByRouter(set parameters.Set) (t Thinking) {
	switch {
	case set.Thinking != nil && *set.Thinking == 0:
		t.Reasoning = map[string]any{"enabled": false}
	case set.Thinking != nil:
		t.Reasoning = map[string]any{"max_tokens": *set.Thinking}
	case set.Effort != "":
		t.Reasoning = map[string]any{"effort": set.Effort}
	}
	return t
}

// ThinkBySwitch is DeepSeek's way: thinking is on or off, and has an effort if it is on.
func ThinkBySwitch(set parameters.Set) (t Thinking) {
	switch set.Effort {
	case "":
	case parameters.NoEffort:
		t.Switch = map[string]any{"type": "disabled"}
	default:
		t.Switch, t.ReasoningEffort = map[string]any{"type": "enabled"}, set.Effort
	}
	return t
}

// ThinkByVLLM is the way of vLLM, where a model's template knows how to switch thinking off.
func ThinkByVLLM(set parameters.Set) Thinking {
	t := Thinking{TokenBudget: set.Thinking, Template: templateFor(set)}
	if t.Template == nil {
		t.ReasoningEffort = set.Effort
	}
	return t
}

// ThinkByLlama is the way of llama.cpp's server, where a model's template has the effort.
func ThinkByLlama(set parameters.Set) Thinking {
	t := Thinking{BudgetTokens: set.Thinking, Template: templateFor(set)}
	if t.Template == nil && set.Effort != "" {
		t.Template = map[string]any{"reasoning_effort": set.Effort}
	}
	return t
}

// templateFor returns the settings of a template if the model is not to think; nil if it may.
func templateFor(set parameters.Set) map[string]any {
	if set.Effort != parameters.NoEffort && (set.Thinking == nil || *set.Thinking > 0) {
		return nil
	}
	return map[string]any{"enable_thinking": false}
}

// addParameters adds the parameters of the answer that the server takes.
func (p *provider) addParameters(b *body, req *llm.Request, with manners.Manners) {
	set := wire.ParametersOf(req, with)
	b.Thinking = p.server.Think(set)
	b.Verbosity, b.Temperature, b.TopP, b.Stop = set.Verbosity, set.Temperature, set.TopP, set.Stop

	b.ServiceTier = set.Tier
	if set.Tier == parameters.Standard {
		b.ServiceTier = p.server.StandardTier
	}

	if p.server.RandomSeed {
		b.RandomSeed = set.Seed
	} else {
		b.Seed = set.Seed
	}

	if p.server.CacheKeys {
		b.PromptCacheKey = wire.CacheKeyOf(req, with)
	}
}
