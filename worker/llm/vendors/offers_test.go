package vendors_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/manners"
	"github.com/coditect/mapreduce/worker/llm/probe"
	"github.com/coditect/mapreduce/worker/llm/vendors"
)

// lists are what servers say of their models, shortened to what is read, by path.
var lists = map[string]struct {
	pages map[string]string
	want  []llm.Offer
}{
	"anthropic": {
		map[string]string{"/v1/models?limit=1000": `{"data":[{"type":"model","id":"claude-haiku-4-5","display_name":"Claude Haiku 4.5","max_input_tokens":200000,"max_tokens":64000}],"has_more":false}`},
		[]llm.Offer{{Model: "claude-haiku-4-5", Window: 200000, MaxAnswer: 64000, Abilities: []llm.Ability{llm.CanTools, llm.CanImages}}},
	},
	"openai": {
		map[string]string{"/models": `{"object":"list","data":[{"id":"gpt-5","object":"model","created":1,"owned_by":"openai"}]}`},
		[]llm.Offer{{Model: "gpt-5"}},
	},
	"gemini": {
		map[string]string{"/models?pageSize=1000": `{"models":[{"name":"models/gemini-3-flash","inputTokenLimit":1048576,"outputTokenLimit":65536,"supportedGenerationMethods":["generateContent","countTokens"],"thinking":true},{"name":"models/gemini-embedding-001","inputTokenLimit":2048,"outputTokenLimit":1,"supportedGenerationMethods":["embedContent"]},{"name":"models/veo","supportedGenerationMethods":["predictLongRunning"]}]}`},
		[]llm.Offer{{Model: "gemini-3-flash", Window: 1048576, MaxAnswer: 65536, Abilities: []llm.Ability{llm.CanThink}}, {Model: "gemini-embedding-001", Window: 2048, MaxAnswer: 1, Abilities: []llm.Ability{llm.CanEmbed}}},
	},
	"ollama": {
		map[string]string{"/api/tags": `{"models":[{"name":"qwen3:8b","size":1}]}`, "/api/show": `{"model_info":{"general.architecture":"qwen3","qwen3.context_length":40960},"capabilities":["completion","tools","thinking"]}`},
		[]llm.Offer{{Model: "qwen3:8b", Window: 40960, Told: true, Abilities: []llm.Ability{llm.CanTools, llm.CanThink}}},
	},
	"vllm": {
		map[string]string{"/v1/models": `{"object":"list","data":[{"id":"Qwen/Qwen3-8B","object":"model","owned_by":"vllm","root":"Qwen/Qwen3-8B","max_model_len":32768}]}`},
		[]llm.Offer{{Model: "Qwen/Qwen3-8B", Window: 32768}},
	},
	"llamacpp": {
		map[string]string{
			"/v1/models": `{"object":"list","data":[{"id":"gemma-3-4b.gguf","object":"model","owned_by":"llamacpp","meta":{"n_ctx_train":131072}}]}`,
			"/props":     `{"default_generation_settings":{"n_ctx":8192},"total_slots":1,"modalities":{"vision":false}}`,
		},
		[]llm.Offer{{Model: "gemma-3-4b.gguf", Window: 8192}},
	},
	"lmstudio": {
		map[string]string{"/api/v0/models": `{"object":"list","data":[{"id":"qwen2.5-vl-7b","type":"vlm","state":"loaded","max_context_length":128000,"loaded_context_length":4096,"capabilities":["tool_use"]},{"id":"nomic","type":"embeddings","state":"not-loaded","max_context_length":2048}]}`},
		[]llm.Offer{{Model: "qwen2.5-vl-7b", Window: 4096, Abilities: []llm.Ability{llm.CanTools, llm.CanImages}}, {Model: "nomic", Window: 2048, Abilities: []llm.Ability{llm.CanEmbed}}},
	},
	"mistral": {
		map[string]string{"/v1/models": `{"data":[{"id":"mistral-small-latest","max_context_length":131072,"capabilities":{"completion_chat":true,"function_calling":true,"vision":true,"fine_tuning":false}}]}`},
		[]llm.Offer{{Model: "mistral-small-latest", Window: 131072, Told: true, Abilities: []llm.Ability{llm.CanTools, llm.CanImages}}},
	},
	"groq": {
		map[string]string{"/v1/models": `{"data":[{"id":"llama-3.3-70b","context_window":131072,"max_completion_tokens":32768,"active":true}]}`},
		[]llm.Offer{{Model: "llama-3.3-70b", Window: 131072, MaxAnswer: 32768}},
	},
	"openrouter": {
		map[string]string{"/v1/models": `{"data":[{"id":"a/b","context_length":65536,"architecture":{"input_modalities":["text","image"]},"supported_parameters":["tools","structured_outputs","reasoning"],"top_provider":{"max_completion_tokens":8192}}]}`},
		[]llm.Offer{{Model: "a/b", Window: 65536, MaxAnswer: 8192, Told: true, Abilities: []llm.Ability{llm.CanTools, llm.CanImages, llm.CanThink, llm.CanSchemas}}},
	},
	"together": {
		map[string]string{"/v1/models": `[{"id":"meta/llama","type":"chat","context_length":131072}]`},
		[]llm.Offer{{Model: "meta/llama", Window: 131072}},
	},
}

// The models of a server are listed with what it says of them, and of a program with what it was
// started with.
func TestModelsAreListed(t *testing.T) {
	for name, list := range lists {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				page, ok := list.pages[r.URL.RequestURI()]
				if !ok {
					t.Errorf("asked for %s", r.URL)
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, page) // the client is ours
			}))
			defer server.Close()
			base := server.URL
			for at := range list.pages {
				if strings.HasPrefix(at, "/v1/") && name != "anthropic" || name == "lmstudio" {
					base = server.URL + "/v1"
				}
			}
			p, err := vendors.New(name, llm.Config{Key: llm.NewKey(testKey), BaseURL: base})
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.(llm.Lister).Offers(t.Context())
			if diff := cmp.Diff(list.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// Four calls tell what a model does: here one that does everything, one that takes neither schemas
// nor streams, and one that answers nonsense.
func TestProbe(t *testing.T) {
	able := func(c fakellm.Call) fakellm.Reply {
		switch {
		case c.Tool == "look_up":
			return fakellm.Reply{Text: `{"name":"Ana Duarte"}`}
		case c.Schema != nil || strings.Contains(c.System, "FORM OF THE ANSWER"):
			return fakellm.Reply{Text: `{"city":"Lyon","year":1987}`}
		}
		return fakellm.Reply{Text: "yes"}
	}
	for name, c := range map[string]struct {
		vendor string
		model  func(fakellm.Call) fakellm.Reply
		rebuff func(fakellm.Call) *fakellm.Rebuff
		want   string // what works
		learns string
	}{
		"anthropic": {vendor: "anthropic", model: able, want: "text usage structured tools cache"},
		"gemini":    {vendor: "gemini", model: able, want: "text usage structured tools"},
		"bedrock":   {vendor: "bedrock", model: able, want: "text usage structured tools cache"},
		"no schemas": {
			vendor: "openai", model: able, want: "text usage structured tools", learns: "does not constrain answers by a schema",
			rebuff: func(c fakellm.Call) *fakellm.Rebuff {
				if strings.Contains(string(c.Body), `"json_schema"`) {
					return &fakellm.Rebuff{Status: 400, Body: `{"error":{"message":"response_format json_schema is not supported"}}`}
				}
				return nil
			},
		},
		"nonsense": {vendor: "openai", model: says("Here it is."), want: "text usage"},
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			p, fake := start(t, c.vendor, fakellm.Config{Model: c.model, Rebuff: c.rebuff, Lax: true}, func(cfg *llm.Config) {
				cfg.Manners = manners.NewStore(func(line string) { told = append(told, line) })
			})
			report, err := probe.Ask(t.Context(), p, "m-1")
			if err != nil {
				t.Fatal(err)
			}
			var works []string
			for _, f := range report.Findings {
				if f.Works {
					works = append(works, f.Name)
				}
			}
			if got := strings.Join(works, " "); got != c.want || !strings.Contains(strings.Join(told, "\n"), c.learns) {
				t.Errorf("%q works, want %q: %+v; told %q", got, c.want, report.Findings, told)
			}
			if got, want := report.Usage.Total(), sum(fake.Entries()); got != want {
				t.Errorf("%d tokens are told, and %d were spent", got, want)
			}
		})
	}
	p, _ := start(t, "openai", fakellm.Config{Fault: always(fakellm.Unauthorized)})
	if _, err := probe.Ask(t.Context(), p, "m-1"); errorOf(t, err).Kind != llm.Auth {
		t.Errorf("a wrong key: %v", err)
	}
}
