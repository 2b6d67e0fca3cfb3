package bedrock

import (
	"strings"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
)

// thinkingFor returns how long a model is to think, in the words of the vendor that its name begins
// with, behind the name of a region; nil leaves it to the model. Converse has no words of its own.
func thinkingFor(model llm.Model, set parameters.Set) map[string]any {
	switch name := string(model); {
	case set.Effort == "" && set.Thinking == nil:
		return nil
	case strings.Contains(name, "anthropic."):
		return thinkingOfClaude(name, set)
	case strings.Contains(name, "amazon.nova"):
		return thinkingOfNova(set)
	case set.Effort == "":
		return nil
	}
	return map[string]any{"reasoning_effort": set.Effort}
}

// thinkingOfClaude returns the fields of Anthropic's interface.
func thinkingOfClaude(name string, set parameters.Set) map[string]any {
	out := make(map[string]any)
	if set.Effort != "" && set.Effort != parameters.NoEffort {
		out["output_config"] = map[string]any{"effort": set.Effort}
	}

	switch {
	case set.Thinking != nil && *set.Thinking > 0:
		out["thinking"] = map[string]any{"type": "enabled", "budget_tokens": *set.Thinking}
	case set.Thinking != nil, set.Effort == parameters.NoEffort:
		out["thinking"] = map[string]any{"type": "disabled"}
	case !strings.Contains(name, "opus-4-5"): // which cannot think as long as it likes
		out["thinking"] = map[string]any{"type": "adaptive"}
	}

	return out
}

// thinkingOfNova returns the fields of Amazon's models.
func thinkingOfNova(set parameters.Set) map[string]any {
	switch set.Effort {
	case "":
		return nil
	case parameters.NoEffort:
		return map[string]any{"reasoningConfig": map[string]any{"type": "disabled"}}
	}
	return map[string]any{"reasoningConfig": map[string]any{"type": "enabled", "maxReasoningEffort": set.Effort}}
}
