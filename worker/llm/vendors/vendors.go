// Package vendors is the table of the vendors of models: the only place that knows all of
// them.
package vendors

import (
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/alike"
	"github.com/coditect/mapreduce/worker/llm/anthropic"
	"github.com/coditect/mapreduce/worker/llm/azure"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/bedrock"
	"github.com/coditect/mapreduce/worker/llm/gemini"
	"github.com/coditect/mapreduce/worker/llm/internal/chat"
	"github.com/coditect/mapreduce/worker/llm/internal/redact"
	"github.com/coditect/mapreduce/worker/llm/manners"
	"github.com/coditect/mapreduce/worker/llm/ollama"
	"github.com/coditect/mapreduce/worker/llm/openai"
	"github.com/coditect/mapreduce/worker/llm/vertex"
)

// A Vendor is a row of the table of vendors.
type Vendor struct {
	Name        string // as users call it
	KeyVariable string // the environment variable that holds its key
	New         func(llm.Config) (llm.Provider, error)

	// NewBatches returns what makes batches, with the errors of New; nil if it has none.
	NewBatches func(llm.Config) (batch.Vendor, error)
	// Address is where it is unless a job says otherwise, of one that makes batches; "" if each job has to say.
	Address string

	// Limits returns what is known of the parameters of answers that a model takes at an address,
	// which is "" for the vendor's own. Nil knows nothing.
	Limits func(baseURL string, model llm.Model) parameters.Limits

	// Started says that its server was started with the window that its models have there, and
	// tells it: see llm.Lister.
	Started bool
}

// LimitsOf returns what is known of the parameters that a model takes at an address.
func (v *Vendor) LimitsOf(baseURL string, model llm.Model) (l parameters.Limits) {
	if v.Limits != nil {
		l = v.Limits(baseURL, model)
	}
	l.Batches = v.NewBatches != nil
	return l
}

// A Table is vendors, each with a name of its own.
type Table []Vendor

// All returns the vendors of the program. A new one is a package beside this one, and a
// row here; one whose interface is OpenAI's is a row of alike alone.
func All() Table {
	all := Table{
		{Name: "anthropic", KeyVariable: "ANTHROPIC_API_KEY", New: anthropic.New, NewBatches: anthropic.NewBatches, Address: anthropic.URL},
		{Name: "openai", KeyVariable: "OPENAI_API_KEY", New: openai.New, NewBatches: openai.NewBatches, Address: openai.URL},
		{Name: "gemini", KeyVariable: "GEMINI_API_KEY", New: gemini.New, NewBatches: gemini.NewBatches, Address: gemini.URL},
		{Name: "azure", KeyVariable: "AZURE_OPENAI_API_KEY", New: azure.New, NewBatches: azure.NewBatches},
		{Name: "bedrock", KeyVariable: "AWS_BEARER_TOKEN_BEDROCK", New: bedrock.New},
		{Name: "vertex", KeyVariable: "GOOGLE_OAUTH_ACCESS_TOKEN", New: vertex.New},
		{Name: "vertex-claude", KeyVariable: "GOOGLE_OAUTH_ACCESS_TOKEN", New: vertex.NewClaude},
		{Name: "ollama", KeyVariable: "OLLAMA_API_KEY", New: ollama.New},
	}

	for _, s := range alikes() {
		v := Vendor{Name: s.Name, KeyVariable: s.KeyVariable, New: s.New, Started: s.Local}
		if s.Batches {
			v.NewBatches, v.Address = s.NewBatches, s.URL
		}
		all = append(all, v)
	}

	for i := range all {
		all[i].Limits = limitsOf(all[i].Name)
	}

	return all
}

// alikes are the vendors and programs whose interface is OpenAI's, with what they are known not to
// take: the first call of a process need not learn it.
func alikes() []alike.Server {
	return []alike.Server{
		{Name: "mistral", URL: "https://api.mistral.ai/v1/", KeyVariable: "MISTRAL_API_KEY", RandomSeed: true, Known: manners.Manners{NoUsage: true}}, // it tells usage unasked
		{Name: "deepseek", URL: "https://api.deepseek.com/v1/", KeyVariable: "DEEPSEEK_API_KEY", Think: chat.ThinkBySwitch, Known: manners.Manners{Form: manners.ByTool, NoStrict: true}},
		{Name: "groq", URL: "https://api.groq.com/openai/v1/", KeyVariable: "GROQ_API_KEY", StandardTier: "on_demand", Batches: true},
		{Name: "openrouter", URL: "https://openrouter.ai/api/v1/", KeyVariable: "OPENROUTER_API_KEY", Think: chat.ThinkByRouter},
		{Name: "together", URL: "https://api.together.xyz/v1/", KeyVariable: "TOGETHER_API_KEY"},
		{Name: "fireworks", URL: "https://api.fireworks.ai/inference/v1/", KeyVariable: "FIREWORKS_API_KEY"},
		{Name: "cerebras", URL: "https://api.cerebras.ai/v1/", KeyVariable: "CEREBRAS_API_KEY"},
		{Name: "xai", URL: "https://api.x.ai/v1/", KeyVariable: "XAI_API_KEY"},
		{Name: "vllm", URL: "http://127.0.0.1:8000/v1/", KeyVariable: "VLLM_API_KEY", Local: true, Think: chat.ThinkByVLLM},
		{Name: "llamacpp", URL: "http://127.0.0.1:8080/v1/", KeyVariable: "LLAMA_API_KEY", Local: true, PropsPath: "../props", Think: chat.ThinkByLlama},
		{Name: "lmstudio", URL: "http://127.0.0.1:1234/v1/", KeyVariable: "LM_API_TOKEN", Local: true, ListPath: "../api/v0/models"},
	}
}

// New returns the provider of a name among the vendors of the program, without its
// decorators.
func New(name string, cfg llm.Config) (llm.Provider, error) { return All().New(name, cfg) }

// New returns the provider of a name, without its decorators. The error is an *llm.Error
// of the kind Invalid if the table has no such vendor, and Auth if the key is that of another.
func (t Table) New(name string, cfg llm.Config) (llm.Provider, error) {
	v, err := t.find(name)
	if err != nil {
		return nil, err
	}
	if err := v.checkKey(cfg); err != nil {
		return nil, err
	}
	return v.New(cfg)
}

// NewBatches returns what makes batches at the vendor of a name. The error is an *llm.Error: see New;
// its kind is Invalid, too, if the vendor has no batches.
func (t Table) NewBatches(name string, cfg llm.Config) (batch.Vendor, error) {
	v, err := t.find(name)
	if err != nil {
		return nil, err
	}
	if v.NewBatches == nil {
		return nil, llm.NewError(llm.Invalid, "the provider %s makes no batches; %s do", name, listed(t.batching()))
	}

	if err := v.checkKey(cfg); err != nil {
		return nil, err
	}
	return v.NewBatches(cfg)
}

// batching returns the names of the vendors that make batches.
func (t Table) batching() (names []string) {
	for _, v := range t {
		if v.NewBatches != nil {
			names = append(names, v.Name)
		}
	}
	return names
}

// find returns the vendor of a name. The error says which there are.
func (t Table) find(name string) (Vendor, error) {
	names := make([]string, len(t))
	for i, v := range t {
		if v.Name == name {
			return v, nil
		}
		names[i] = v.Name
	}
	return Vendor{}, llm.NewError(llm.Invalid, "no provider is called %q; there are %s", name, listed(names))
}

// listed returns names as a sentence has them.
func listed(names []string) string {
	switch last := len(names) - 1; {
	case last < 0:
		return "none"
	case last == 0:
		return names[0]
	default:
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
}

// keyMarks are how the keys of some vendors begin, or what stands within them, and of no others.
func keyMarks() []keyMark {
	return []keyMark{
		{start: "sk-ant-", of: []string{"anthropic"}},
		{start: "sk-or-v1-", of: []string{"openrouter"}},
		{start: "sk-proj-", of: []string{"openai"}},
		{start: "sk-svcacct-", of: []string{"openai"}},
		{start: "sk-admin-", of: []string{"openai"}},
		{start: "sk-", within: "T3BlbkFJ", of: []string{"openai"}}, // the vendor's name
		{start: "AIza", of: []string{"gemini"}},
		{start: "ya29.", of: []string{"vertex", "vertex-claude"}},
		{start: "ABSK", of: []string{"bedrock"}},
		{start: "bedrock-api-key-", of: []string{"bedrock"}},
		{start: "AKIA"}, // it names an account of AWS, and is no key
		{start: "gsk_", of: []string{"groq"}},
		{start: "xai-", of: []string{"xai"}},
		{start: "csk-", of: []string{"cerebras"}},
		{start: "fw_", of: []string{"fireworks"}},
		{start: "tgp_v1_", of: []string{"together"}},
		{start: "hf_"},
		{start: "ghp_"},
		{start: "github_pat_"},
		{start: "nvapi-"},
		{start: "pplx-"},
		{start: "r8_"},
	}
}

// A keyMark tells whose a key is.
type keyMark struct {
	start, within string
	of            []string // the providers that take it; none of them does if there is none
}

// checkKey refuses to send a vendor the key of another. A server at an address of its own may take
// any.
func (v Vendor) checkKey(cfg llm.Config) error {
	if cfg.BaseURL != "" {
		return nil
	}

	key := redact.Secret(cfg.Key)
	for _, m := range keyMarks() {
		if !strings.HasPrefix(key, m.start) || !strings.Contains(key, m.within) || slices.Contains(m.of, v.Name) {
			continue
		}

		if len(m.of) == 0 {
			return llm.NewError(llm.Auth, "what %s holds begins with %s, which is no key of %s, and is not sent to it; set it to one", v.KeyVariable, m.start, v.Name)
		}
		return llm.NewError(llm.Auth, "the key in %s is one of %s, and is not sent to %s; set it to a key of %s, or ask the provider %s",
			v.KeyVariable, m.of[0], v.Name, v.Name, m.of[0])
	}

	return nil
}
