package llm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/worker/llm"
)

// Names tell what a model does not do, where vendors name such models alike. The others are taken for
// able: nobody is refused a model that nothing is known of.
func TestWhatNamesOfModelsTell(t *testing.T) {
	answers, tools, embeds := llm.Need{}, llm.Need{Tools: true}, llm.Need{Embeds: true}
	sees := llm.Need{Sees: true}
	for _, c := range []struct {
		provider string
		model    llm.Model
		need     llm.Need
		lacks    string // a part of what is said; "" is able
	}{
		{"openai", "text-embedding-3-small", answers, "vectors"},
		{"openai", "text-embedding-3-small", embeds, ""},
		{"openrouter", "openai/text-embedding-3-large", answers, "vectors"},
		{"gemini", "gemini-embedding-001", tools, "vectors"},
		{"mistral", "mistral-embed", embeds, ""},
		{"ollama", "nomic-embed-text:v1.5", answers, "vectors"},
		{"ollama", "bge-m3", answers, "vectors"},
		{"bedrock", "amazon.titan-embed-text-v2:0", answers, "vectors"},
		{"bedrock", "cohere.rerank-v3-5:0", answers, "ranks"},
		{"bedrock", "eu.anthropic.claude-haiku-4-5-20251001-v1:0", tools, ""},
		{"bedrock", "us.anthropic.claude-haiku-4-5-20251001-v1:0", embeds, "no texts into vectors"},
		{"openai", "gpt-5-mini", embeds, "no texts into vectors"},
		{"openai", "dall-e-3", answers, "pictures"},
		{"openai", "gpt-4o-mini-tts", answers, "speech"},
		{"openai", "gpt-4o-transcribe", answers, "speech"},
		{"openai", "omni-moderation-latest", answers, "judges"},
		{"openai", "gpt-3.5-turbo-instruct", answers, "no conversations"},
		{"openai", "o1-mini-2024-09-12", tools, "no tools"},
		{"openai", "o1-mini-2024-09-12", answers, ""},
		{"openai", "o3-mini", tools, ""},
		{"gemini", "gemma-3-27b-it", tools, "no tools"},
		{"gemini", "models/gemma-3-27b-it", tools, "no tools"},
		{"gemini", "gemma-3-27b-it", answers, ""},
		{"gemini", "gemini-3-flash", tools, ""},
		{"vllm", "google/gemma-3-27b-it", tools, ""}, // where a template may have them
		{"azure", "my-embeddings", answers, ""},      // a deployment may have any name
		{"ollama", "qwen2.5:7b", tools, ""},
		{"vllm", "nobody/knows-it", embeds, ""},
		{"openai", "gpt-3.5-turbo", sees, "no pictures"},
		{"openai", "gpt-4", sees, "no pictures"},
		{"openai", "gpt-4-0613", sees, "no pictures"},
		{"openai", "o3-mini", sees, "no pictures"},
		{"openai", "gpt-4o", sees, ""},
		{"openai", "gpt-4.1-mini", sees, ""},
		{"openai", "o3", sees, ""},
		{"openai", "gpt-6.2-sol", sees, ""},
		{"openai", "text-embedding-3-small", sees, "vectors"},
		{"anthropic", "claude-haiku-4-5", sees, ""},
		{"anthropic", "claude-instant-1.2", sees, "no pictures"},
		{"deepseek", "deepseek-chat", sees, "no pictures"},
		{"bedrock", "openai.gpt-oss-120b-1:0", sees, "no pictures"},
		{"bedrock", "amazon.nova-micro-v1:0", sees, "no pictures"},
		{"bedrock", "amazon.nova-lite-v1:0", sees, ""},
		{"groq", "openai/gpt-oss-20b", sees, "no pictures"},
		{"groq", "llama-3.3-70b-versatile", sees, "no pictures"},
		{"groq", "meta-llama/llama-4-scout-17b-16e-instruct", sees, ""},
		{"ollama", "llama3.2-vision:11b", sees, ""},
		{"ollama", "llama3.1:8b", sees, "no pictures"},
		{"ollama", "qwen2.5:7b", sees, "no pictures"},
		{"ollama", "qwen2.5vl:7b", sees, ""},
		{"ollama", "qwen3-vl:8b", sees, ""},
		{"ollama", "gemma3:12b", sees, ""},
		{"mistral", "codestral-latest", sees, "no pictures"},
		{"mistral", "mistral-small-2506", sees, ""},
		{"azure", "gpt-3.5-turbo", sees, ""},
	} {
		got := llm.Lacks(c.provider, c.model, c.need)
		if got != "" != (c.lacks != "") || !strings.Contains(got, c.lacks) {
			t.Errorf("%s/%s, %+v: %q, want %q", c.provider, c.model, c.need, got, c.lacks)
		}
	}
}

// What a server tells counts more than a name; what it does not tell is not held against a model.
func TestWhatServersTellOfAbilities(t *testing.T) {
	for name, c := range map[string]struct {
		offer llm.Offer
		need  llm.Need
		lacks bool
	}{
		"tools":              {llm.Offer{Told: true, Abilities: []llm.Ability{llm.CanTools}}, llm.Need{Tools: true}, false},
		"no tools":           {llm.Offer{Told: true}, llm.Need{Tools: true}, true},
		"not told":           {llm.Offer{}, llm.Need{Tools: true}, false},
		"told of others":     {llm.Offer{Abilities: []llm.Ability{llm.CanThink}}, llm.Need{Tools: true}, false},
		"vectors alone":      {llm.Offer{Abilities: []llm.Ability{llm.CanEmbed}}, llm.Need{}, true},
		"vectors wanted":     {llm.Offer{Abilities: []llm.Ability{llm.CanEmbed}}, llm.Need{Embeds: true}, false},
		"no vectors":         {llm.Offer{Told: true, Abilities: []llm.Ability{llm.CanTools}}, llm.Need{Embeds: true}, true},
		"pictures":           {llm.Offer{Told: true, Abilities: []llm.Ability{llm.CanImages}}, llm.Need{Sees: true}, false},
		"no pictures":        {llm.Offer{Told: true, Abilities: []llm.Ability{llm.CanTools}}, llm.Need{Sees: true}, true},
		"answers by a model": {llm.Offer{Told: true}, llm.Need{}, false},
	} {
		if got := llm.LacksOf(c.offer, c.need); got != "" != c.lacks {
			t.Errorf("%s: %q", name, got)
		}
	}
	offers := []llm.Offer{{Model: "a", Told: true}, {Model: "b", Told: true, Abilities: []llm.Ability{llm.CanTools}}, {Model: "c", Told: true, Abilities: []llm.Ability{llm.CanTools}, Window: 500}}
	if got := llm.AbleOf(offers, llm.Need{Tools: true, Window: 1000}); !slices.Equal(got, []llm.Model{"b"}) {
		t.Errorf("able: %v", got)
	}
}

// The models that an error names could do what is needed, and the cheapest is the first.
func TestAbleModels(t *testing.T) {
	p := prices(t, "mine: {small: {input: 1, output: 1, window: 1000}, large: {input: 2, output: 1, window: 9000}, cheap: {input: 0.5, output: 1, window: 8000}, my-embed: {input: 0.1, output: 0}}")
	for want, need := range map[string]llm.Need{
		"; of mine, cheap, small and large could": {},
		"; of mine, cheap and large could":        {Window: 5000},
		"; of mine, my-embed could":               {Embeds: true, Window: 0},
		"":                                        {Window: 10_000},
	} {
		got := llm.CouldBe("mine", p.Able("mine", need))
		if need.Embeds { // nothing is known of the others' names
			if !strings.Contains(got, "my-embed") {
				t.Errorf("%+v: %q", need, got)
			}
			continue
		}
		if got != want {
			t.Errorf("%+v: %q, want %q", need, got, want)
		}
	}
	if got := p.Able("ollama", llm.Need{}); len(got) != 0 {
		t.Errorf("a price of all models names none: %v", got)
	}
}
