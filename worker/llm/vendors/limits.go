package vendors

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
)

// What follows was looked up on 2026-11-28, in the vendors' own pages of their models and in
// modelparams.dev at 3e79c46 (2026-08-22), which has tried many of them. A parameter of which no
// source was found is sent, and left out where the server refuses it.

// A modelLimit is what is known of the models with some names.
type modelLimit struct {
	names  *regexp.Regexp
	limits parameters.Limits
}

func models(pattern string, l parameters.Limits) modelLimit {
	return modelLimit{regexp.MustCompile(pattern), l}
}

// levels are levels of effort from one to another.
func levels(from, to string) []string {
	all := parameters.Efforts()
	return all[slices.Index(all, from) : slices.Index(all, to)+1]
}

func without(names ...parameters.Name) []parameters.Name { return names }

// The names that rules name often.
const (
	effort    = parameters.Effort
	thinking  = parameters.Thinking
	verbosity = parameters.Verbosity
	warmth    = parameters.Temperature
	topP      = parameters.TopP
	seed      = parameters.Seed
	stop      = parameters.Stop
	tier      = parameters.Tier
)

// limitsOf returns what is known of a vendor's models: what the vendor's interface has no field for
// holds for each, and beside it the first rule that has the model's name.
func limitsOf(vendor string) func(string, llm.Model) parameters.Limits {
	fields := fieldLimits(vendor)
	rules := sync.OnceValue(func() []modelLimit { return modelLimits(vendor) }) // few processes ask, and of few vendors

	return func(baseURL string, model llm.Model) parameters.Limits {
		if vendor == "openai" && baseURL != "" && !strings.HasPrefix(baseURL, "https://api.openai.com/") {
			return parameters.Limits{} // of another's server
		}

		out := fields
		if i := slices.IndexFunc(rules(), func(r modelLimit) bool { return r.names.MatchString(string(model)) }); i >= 0 {
			out = rules()[i].limits
			out.Not = slices.Concat(fields.Not, out.Not)
			out.Either = out.Either || fields.Either
			if out.MaxTemperature == 0 {
				out.MaxTemperature = fields.MaxTemperature
			}
			if out.MaxStops == 0 {
				out.MaxStops = fields.MaxStops
			}
			if out.Tiers == nil {
				out.Tiers = fields.Tiers
			}
		}
		if vendor == "openai" && strings.HasSuffix(strings.TrimSuffix(baseURL, "/"), "/responses") {
			out.Not = append(slices.Clip(out.Not), seed, stop)
		}
		return out
	}
}

// fieldLimits are of a vendor's interface, whatever the model.
func fieldLimits(vendor string) parameters.Limits {
	switch vendor {
	case "anthropic":
		return parameters.Limits{Not: without(verbosity, seed, warmth, topP), Tiers: withoutFlex()} // as of version 2026-10-21
	case "vertex-claude", "bedrock":
		return parameters.Limits{Not: without(verbosity, seed, tier), MaxTemperature: 1}
	case "gemini", "vertex":
		return parameters.Limits{Not: without(verbosity), Tiers: parameters.Tiers(), MaxTemperature: 2, MaxStops: 5, Either: true}
	case "openai", "azure":
		return parameters.Limits{Not: without(thinking), Tiers: parameters.Tiers(), MaxTemperature: 2, MaxStops: 4}
	case "mistral":
		return parameters.Limits{Not: without(thinking, verbosity, tier), MaxTemperature: 1.5}
	case "deepseek":
		return parameters.Limits{Not: without(thinking, verbosity, seed, tier), Efforts: []string{parameters.NoEffort, parameters.High, parameters.Max}, MaxTemperature: 2}
	case "openrouter":
		return parameters.Limits{Not: without(tier), MaxTemperature: 2, Either: true}
	case "vllm", "llamacpp":
		return parameters.Limits{Not: without(verbosity, tier)}
	case "groq":
		return parameters.Limits{Not: without(thinking, verbosity), Tiers: []string{parameters.Flex, parameters.Standard}}
	}
	return parameters.Limits{Not: without(thinking, verbosity, tier)} // together, fireworks, cerebras, xai, lmstudio, ollama
}

// withoutFlex are the tiers of models that have no flex. OpenAI has it of newer ones alone, as
// developers.openai.com/api/docs/guides/flex-processing says.
func withoutFlex() []string { return []string{parameters.Standard, parameters.Priority} }

// modelLimits are of models.
func modelLimits(vendor string) []modelLimit {
	switch vendor {
	case "openai":
		return openAILimits()
	case "anthropic", "vertex-claude":
		return claudeLimits()
	case "bedrock":
		return bedrockLimits()
	case "gemini", "vertex":
		return geminiLimits()
	case "mistral":
		return []modelLimit{
			models(`^mistral-(small-(2603|latest)|medium-(3[.-]5|latest))`, parameters.Limits{Efforts: []string{parameters.NoEffort, parameters.High}}),
			models(`^mistral-large-4`, parameters.Limits{Efforts: levels(parameters.Low, parameters.High)}),
			models(`^(codestral|devstral|ministral|magistral|open-|pixtral|mistral-large-2|mistral-medium-(2|3$))`, parameters.Limits{Not: without(effort)}),
		}
	case "xai":
		return xAILimits()
	case "ollama":
		return []modelLimit{
			models(`gpt-oss`, parameters.Limits{Efforts: levels(parameters.Low, parameters.High)}),
			models(``, parameters.Limits{Efforts: []string{parameters.NoEffort, parameters.High}}), // it thinks, or it does not
		}
	}
	return nil
}

func openAILimits() []modelLimit {
	fixed := without(warmth, topP) // a model that always thinks takes no other than its own
	return []modelLimit{
		models(`^(gpt-3|gpt-4|chatgpt-)`, parameters.Limits{Not: without(effort, verbosity), Tiers: withoutFlex()}),
		models(`^o1`, parameters.Limits{Not: append(fixed, verbosity), Tiers: []string{parameters.Standard}}),
		models(`^o\d`, parameters.Limits{Not: append(fixed, verbosity, stop)}),
		models(`^gpt-5-chat`, parameters.Limits{Not: without(effort)}),
		models(`^gpt-5-pro`, parameters.Limits{Not: append(fixed, stop), Efforts: []string{parameters.High}}),
		models(`^gpt-5(-mini|-nano|-\d|$)`, parameters.Limits{Not: append(fixed, stop), Efforts: levels(parameters.Minimal, parameters.High)}),
		models(`^gpt-5\.\d+-pro`, parameters.Limits{Not: fixed, Efforts: levels(parameters.Medium, parameters.XHigh)}),
		models(`^gpt-5\.\d+-codex`, parameters.Limits{Efforts: levels(parameters.Low, parameters.XHigh)}),
		models(`^gpt-5\.1`, parameters.Limits{Efforts: []string{parameters.NoEffort, parameters.Low, parameters.Medium, parameters.High}}),
		models(`^gpt-5\.`, parameters.Limits{Efforts: []string{parameters.NoEffort, parameters.Low, parameters.Medium, parameters.High, parameters.XHigh}}),
	}
}

// claudeLimits are of names with and without those of a region and of a vendor before them.
func claudeLimits() []modelLimit {
	all := []string{parameters.NoEffort, parameters.Low, parameters.Medium, parameters.High, parameters.XHigh, parameters.Max}
	return []modelLimit{
		models(`claude-(fable|mythos)`, parameters.Limits{Not: without(thinking, warmth, topP), Efforts: all[1:]}),
		models(`claude-(opus-4-[789]|(opus|sonnet|haiku)-5)`, parameters.Limits{Not: without(thinking, warmth, topP), Efforts: all}),
		models(`claude-(opus|sonnet)-4-6`, parameters.Limits{Efforts: []string{parameters.NoEffort, parameters.Low, parameters.Medium, parameters.High, parameters.Max}, LeastThinking: 1024}),
		models(`claude-opus-4-5`, parameters.Limits{Efforts: []string{parameters.NoEffort, parameters.Low, parameters.Medium, parameters.High}, LeastThinking: 1024}),
		models(`claude-(3-7|(opus|sonnet|haiku)-4)`, parameters.Limits{Not: without(effort), LeastThinking: 1024}),
		models(`claude-3`, parameters.Limits{Not: without(effort, thinking)}),
	}
}

func bedrockLimits() []modelLimit {
	return append(claudeLimits(),
		models(`openai\.gpt-oss`, parameters.Limits{Not: without(thinking), Efforts: levels(parameters.Low, parameters.High)}),
		models(`amazon\.nova-2`, parameters.Limits{Not: without(thinking), Efforts: []string{parameters.NoEffort, parameters.Low, parameters.Medium, parameters.High}}),
		models(`(amazon|meta|mistral|cohere|ai21|writer|google|nvidia)\.`, parameters.Limits{Not: without(effort, thinking)}),
		models(``, parameters.Limits{Not: without(thinking)}),
	)
}

func geminiLimits() []modelLimit {
	return []modelLimit{
		models(`gemini-2\.5-pro`, parameters.Limits{Not: without(effort), LeastThinking: 128, MostThinking: 32768, Thinks: true}),
		models(`gemini-2\.5-flash-lite`, parameters.Limits{Not: without(effort), LeastThinking: 512, MostThinking: 24576}),
		models(`gemini-2\.5-flash`, parameters.Limits{Not: without(effort), LeastThinking: 1, MostThinking: 24576}),
		models(`gemini-(1|2\.0)|gemma-3`, parameters.Limits{Not: without(effort, thinking)}),
		models(`gemini-3`, parameters.Limits{Efforts: levels(parameters.Minimal, parameters.High)}),
	}
}

func xAILimits() []modelLimit {
	return []modelLimit{
		models(`^grok-3-mini`, parameters.Limits{Not: without(stop), Efforts: []string{parameters.Low, parameters.High}}),
		models(`^grok-4\.(3|5)`, parameters.Limits{Not: without(stop), Efforts: []string{parameters.NoEffort, parameters.Low, parameters.Medium, parameters.High}}),
		models(`^grok-4\.20-multi-agent`, parameters.Limits{Not: without(stop), Efforts: levels(parameters.Low, parameters.XHigh)}),
		models(`^grok-(2|3|4\.20|4-|4$|code|build)`, parameters.Limits{Not: without(effort)}),
	}
}
