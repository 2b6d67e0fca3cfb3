package vendors_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/manners"
	"github.com/coditect/mapreduce/worker/llm/vendors"
)

// set returns parameters by their names and values.
func set(t testing.TB, pairs ...string) (s parameters.Set) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if err := s.Put(parameters.Name(pairs[i]), pairs[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// sentBy returns the body of the request that a provider makes of req.
func sentBy(t *testing.T, vendor, base string, req *llm.Request) map[string]any {
	t.Helper()
	var body []byte
	p := offlineAt(t, vendor, base, roundTrip(func(r *http.Request) (*http.Response, error) {
		var err error
		body, err = io.ReadAll(r.Body)
		return &http.Response{StatusCode: 401, Header: http.Header{}, Body: http.NoBody, Request: r}, err
	}))
	if _, err := p.Complete(t.Context(), req); err == nil {
		t.Fatal("a request without an answer is answered")
	}
	var sent map[string]any
	if err := json.Unmarshal(body, &sent); err != nil {
		t.Fatalf("%v, of %s", err, body)
	}
	return sent
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func offlineAt(t testing.TB, vendor, base string, transport http.RoundTripper) llm.Provider {
	t.Helper()
	p, err := vendors.New(vendor, llm.Config{Key: llm.NewKey(testKey), BaseURL: base, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Each wire has parameters in its own fields, and nothing of those that it has no field for.
func TestParametersOnEachWire(t *testing.T) {
	all := []string{"effort", "high", "verbosity", "low", "temperature", "0", "top_p", "0.5", "seed", "7", "stop", `["END","###"]`}
	budget := []string{"thinking_budget", "2000", "temperature", "0.25"}
	stops := `["END","###"]`
	for _, c := range []struct {
		vendor, base, model string
		given               []string
		want                string // what is sent beside what is sent without parameters
	}{
		{"openai", "", "gpt-5.6", all, `{"reasoning_effort":"high","verbosity":"low","temperature":0,"top_p":0.5,"seed":7,"stop":` + stops + `,"max_completion_tokens":16884}`},
		{"azure", "", "mine", all, `{"reasoning_effort":"high","verbosity":"low","temperature":0,"top_p":0.5,"seed":7,"stop":` + stops + `,"max_completion_tokens":16884}`},
		{"openai", "https://api.openai.com/v1/responses", "gpt-5.6", all, `{"reasoning":{"effort":"high"},"text":{"verbosity":"low"},"temperature":0,"top_p":0.5,"max_output_tokens":16884}`},
		{"anthropic", "", "claude-opus-5", all, `{"output_config":{"effort":"high"},"thinking":{"type":"adaptive"},"temperature":0,"top_p":0.5,"stop_sequences":` + stops + `,"max_tokens":16884}`},
		{"anthropic", "", "claude-opus-4-5", []string{"effort", "low"}, `{"output_config":{"effort":"low"},"max_tokens":4596}`},
		{"anthropic", "", "claude-haiku-4-5", budget, `{"thinking":{"type":"enabled","budget_tokens":2000},"temperature":0.25,"max_tokens":2500}`},
		{"anthropic", "", "claude-opus-5", []string{"effort", "none"}, `{"thinking":{"type":"disabled"}}`},
		{"vertex-claude", "", "claude-sonnet-4-6", []string{"effort", "max", "temperature", "1"}, `{"output_config":{"effort":"max"},"thinking":{"type":"adaptive"},"temperature":1,"max_tokens":66036}`},
		{"gemini", "", "gemini-3-flash", all, `{"generationConfig":{"maxOutputTokens":16884,"thinkingConfig":{"thinkingLevel":"high"},"temperature":0,"topP":0.5,"seed":7,"stopSequences":` + stops + `}}`},
		{"gemini", "", "gemini-2.5-flash", budget, `{"generationConfig":{"maxOutputTokens":2500,"thinkingConfig":{"thinkingBudget":2000},"temperature":0.25}}`},
		{"vertex", "", "gemini-2.5-flash", []string{"thinking_budget", "0"}, `{"generationConfig":{"maxOutputTokens":500,"thinkingConfig":{"thinkingBudget":0}}}`},
		{"bedrock", "", "eu.anthropic.claude-sonnet-4-6", all, `{"inferenceConfig":{"maxTokens":16884,"temperature":0,"topP":0.5,"stopSequences":` + stops + `},"additionalModelRequestFields":{"output_config":{"effort":"high"},"thinking":{"type":"adaptive"}}}`},
		{"bedrock", "", "us.anthropic.claude-haiku-4-5-20251001-v1:0", budget, `{"inferenceConfig":{"maxTokens":2500,"temperature":0.25},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":2000}}}`},
		{"bedrock", "", "us.amazon.nova-2-lite-v1:0", []string{"effort", "low"}, `{"inferenceConfig":{"maxTokens":4596},"additionalModelRequestFields":{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"low"}}}`},
		{"bedrock", "", "openai.gpt-oss-120b-1:0", []string{"effort", "medium"}, `{"inferenceConfig":{"maxTokens":8692},"additionalModelRequestFields":{"reasoning_effort":"medium"}}`},
		{"bedrock", "", "meta.llama3-3-70b-instruct-v1:0", []string{"temperature", "0.5"}, `{"inferenceConfig":{"maxTokens":500,"temperature":0.5}}`},
		{"mistral", "", "mistral-small-2603", []string{"effort", "none", "seed", "7", "stop", "END"}, `{"reasoning_effort":"none","random_seed":7,"stop":["END"]}`},
		{"deepseek", "", "deepseek-v4-pro", []string{"effort", "max", "top_p", "1"}, `{"thinking":{"type":"enabled"},"reasoning_effort":"max","top_p":1,"max_tokens":66036}`},
		{"deepseek", "", "deepseek-v4-pro", []string{"effort", "none"}, `{"thinking":{"type":"disabled"}}`},
		{"openrouter", "", "a/b", []string{"effort", "low", "verbosity", "high"}, `{"reasoning":{"effort":"low"},"verbosity":"high","max_tokens":4596}`},
		{"openrouter", "", "a/b", budget, `{"reasoning":{"max_tokens":2000},"temperature":0.25,"max_tokens":2500}`},
		{"groq", "", "openai/gpt-oss-20b", []string{"effort", "low", "seed", "0"}, `{"reasoning_effort":"low","seed":0,"max_tokens":4596}`},
		{"xai", "", "grok-4.3", []string{"effort", "none"}, `{"reasoning_effort":"none"}`},
		{"vllm", "", "Qwen/Qwen3-8B", budget, `{"thinking_token_budget":2000,"temperature":0.25,"max_tokens":2500}`},
		{"vllm", "", "Qwen/Qwen3-8B", []string{"effort", "none"}, `{"chat_template_kwargs":{"enable_thinking":false}}`},
		{"llamacpp", "", "gpt-oss", []string{"effort", "low"}, `{"chat_template_kwargs":{"reasoning_effort":"low"},"max_tokens":4596}`},
		{"llamacpp", "", "qwen3", []string{"thinking_budget", "0"}, `{"thinking_budget_tokens":0,"chat_template_kwargs":{"enable_thinking":false}}`},
		{"openai", "", "gpt-5.6", []string{"tier", "flex"}, `{"service_tier":"flex"}`},
		{"openai", "", "gpt-5.6", []string{"tier", "standard"}, `{"service_tier":"default"}`},
		{"openai", "https://api.openai.com/v1/responses", "gpt-5.6", []string{"tier", "priority"}, `{"service_tier":"priority"}`},
		{"openai", "https://api.openai.com/v1/responses", "gpt-5.6", []string{"tier", "standard"}, `{"service_tier":"default"}`},
		{"azure", "", "mine", []string{"tier", "flex"}, `{"service_tier":"flex"}`},
		{"anthropic", "", "claude-opus-5", []string{"tier", "standard"}, `{"service_tier":"standard_only"}`},
		{"anthropic", "", "claude-opus-5", []string{"tier", "priority"}, `{"service_tier":"auto"}`},
		{"gemini", "", "gemini-3-flash", []string{"tier", "flex"}, `{"serviceTier":"flex"}`},
		{"groq", "", "openai/gpt-oss-20b", []string{"tier", "flex"}, `{"service_tier":"flex"}`},
		{"groq", "", "openai/gpt-oss-20b", []string{"tier", "standard"}, `{"service_tier":"on_demand"}`},
		{"lmstudio", "", "m", []string{"effort", "high", "temperature", "2"}, `{"reasoning_effort":"high","temperature":2,"max_tokens":16884}`},
		{"ollama", "", "gpt-oss:20b", all, `{"think":"high","options":{"num_ctx":16384,"num_predict":16884,"temperature":0,"top_p":0.5,"seed":7,"stop":` + stops + `}}`},
		{"ollama", "", "qwen3:4b", []string{"effort", "none"}, `{"think":false}`},
		{"ollama", "", "qwen3:4b", []string{"effort", "high"}, `{"think":true,"options":{"num_ctx":16384,"num_predict":16884}}`},
	} {
		t.Run(fmt.Sprintf("%s %s %v", c.vendor, c.model, c.given), func(t *testing.T) {
			req := ask(nil)
			req.Model = llm.Model(c.model)
			without := sentBy(t, c.vendor, c.base, req)
			req.Parameters = set(t, c.given...)
			with := sentBy(t, c.vendor, c.base, req)

			got := make(map[string]any)
			for key, value := range with {
				if !cmp.Equal(value, without[key]) {
					got[key] = value
				}
			}
			for key := range without {
				if with[key] == nil {
					t.Errorf("%s is missing beside parameters", key)
				}
			}
			var want map[string]any
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("what parameters add to the request differs (-want +got):\n%s", diff)
			}
		})
	}
}

// A form of the answer and parameters stand side by side where the interface has one field for both.
func TestParametersBesideAForm(t *testing.T) {
	for vendor, c := range map[string]struct{ base, model, field, form, parameter string }{
		"anthropic": {"", "claude-opus-5", "output_config", "format", "effort"},
		"openai":    {"https://api.openai.com/v1/responses", "gpt-5.6", "text", "format", "verbosity"},
	} {
		req := ask(schema(t, receipt))
		req.Model, req.Parameters = llm.Model(c.model), set(t, "effort", "low", "verbosity", "low")
		sent, _ := sentBy(t, vendor, c.base, req)[c.field].(map[string]any)
		if sent[c.form] == nil || sent[c.parameter] != "low" {
			t.Errorf("%s: %s is %v, want both %s and %s", vendor, c.field, sent, c.form, c.parameter)
		}
	}
}

// The key of what requests have in common goes to OpenAI and to Azure, and to no other server.
func TestCacheKeysAreSentWhereTheyAreTaken(t *testing.T) {
	for _, c := range []struct {
		vendor, base string
		sent         bool
	}{
		{"openai", "", true},
		{"openai", "https://api.openai.com/v1/responses", true},
		{"azure", "", true},
		{"openai", "http://127.0.0.1:9/v1", false},
		{"groq", "", false},
		{"vllm", "", false},
		{"anthropic", "", false},
		{"gemini", "", false},
		{"bedrock", "", false},
	} {
		req := ask(nil)
		req.CacheKey = "of-a-job"
		if got := sentBy(t, c.vendor, c.base, req)["prompt_cache_key"]; (got == "of-a-job") != c.sent {
			t.Errorf("%s at %q: prompt_cache_key %v, want it %v", c.vendor, c.base, got, c.sent)
		}
	}
}

// A refusedParameter is what a server says of a parameter that it does not take.
type refusedParameter struct {
	name   string
	vendor string   // defaults to openai
	model  string   // defaults to m-1
	given  []string // parameters
	sent   string   // part of the body that is refused
	status int
	words  string
	then   string // part of the body that is sent instead
	forced bool   // answers are calls of a tool
	told   string
}

// refusedParameters are words of servers for parameters that they do not take, as users of many
// programs met them; docs/models.md says where they were found.
var refusedParameters = []refusedParameter{
	{name: "a temperature", given: []string{"temperature", "0"}, sent: `"temperature"`, status: 400, words: `{"error":{"message":"Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}`, told: "it takes no temperature"},
	{name: "a temperature with decimals", given: []string{"temperature", "0.01"}, sent: `"temperature"`, status: 400, words: `{"error":{"message":"Unsupported value: 'temperature' does not support 0.01 with this model. Only the default (1) value is supported.","param":"temperature"}}`, told: "it takes no temperature"},
	{name: "a temperature, as a parameter", given: []string{"temperature", "0"}, sent: `"temperature"`, status: 400, words: `{"error":{"message":"Unsupported parameter: 'temperature' is not supported with this model.","param":"temperature","code":"unsupported_parameter"}}`, told: "it takes no temperature"},
	{name: "temperature and top_p", given: []string{"temperature", "0", "top_p", "0.5"}, sent: `"top_p"`, status: 400, words: "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"`temperature` and `top_p` cannot both be specified for this model. Please use only one.\"}}", then: `"temperature":0`, told: "it takes no top_p"},
	{name: "both, of Bedrock", vendor: "bedrock", given: []string{"temperature", "0", "top_p", "0.5"}, sent: `"topP"`, status: 400, words: "{\"message\":\"The model returned the following errors: `temperature` and `top_p` cannot both be specified for this model. Please use only one.\"}", then: `"temperature":0`, told: "it takes no top_p"},
	{name: "a field of Bedrock", vendor: "bedrock", given: []string{"temperature", "0"}, sent: `"temperature"`, status: 400, words: `{"message":"This model doesn't support the temperature field. Remove temperature and try again."}`, told: "it takes no temperature"},
	{name: "a temperature while it thinks", vendor: "bedrock", model: "eu.anthropic.claude-haiku-4-5", given: []string{"temperature", "0.5", "thinking_budget", "2000"}, sent: `"temperature"`, status: 400, words: "{\"message\":\"The model returned the following errors: `temperature` may only be set to 1 when thinking is enabled. Please consult our documentation\"}", then: `"budget_tokens":2000`, told: "it takes no temperature"},
	{name: "a temperature, deprecated", vendor: "anthropic", given: []string{"temperature", "0"}, sent: `"temperature"`, status: 400, words: "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"`temperature` is deprecated for this model.\"}}", told: "it takes no temperature"},
	{name: "top_p", given: []string{"top_p", "0.5"}, sent: `"top_p"`, status: 400, words: `{"error":{"message":"Unsupported parameter: 'top_p' is not supported with this model.","param":"top_p"}}`, told: "it takes no top_p"},
	{name: "a level of effort", given: []string{"effort", "minimal"}, sent: `"minimal"`, status: 400, words: `{"error":{"message":"Unsupported value: 'minimal' is not supported with the 'gpt-5.1' model. Supported values are: 'none', 'low', 'medium', and 'high'.","param":"reasoning_effort","code":"unsupported_value"}}`, then: `"reasoning_effort":"none"`, told: "it takes no effort minimal, but none"},
	{name: "the highest effort", given: []string{"effort", "max"}, sent: `"max"`, status: 400, words: `{"error":{"message":"Unsupported value: 'max' is not supported with the 'gpt-5.4-mini' model. Supported values are: 'none', 'low', 'medium', 'high', and 'xhigh'.","param":"reasoning_effort"}}`, then: `"reasoning_effort":"xhigh"`, told: "it takes no effort max, but xhigh"},
	{name: "no thinking", given: []string{"effort", "none"}, sent: `"none"`, status: 400, words: `{"error":{"message":"Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported values are: 'medium', 'high', and 'xhigh'.","param":"reasoning_effort"}}`, then: `"reasoning_effort":"medium"`, told: "it takes no effort none, but medium"},
	{name: "a level, of a validator", given: []string{"effort", "xhigh"}, sent: `"xhigh"`, status: 422, words: `{"detail":[{"type":"literal_error","loc":["body","reasoning_effort"],"msg":"Input should be 'low', 'medium' or 'high'"}]}`, then: `"reasoning_effort":"high"`, told: "it takes no effort xhigh, but high"},
	{name: "effort at all", given: []string{"effort", "high"}, sent: `"reasoning_effort"`, status: 400, words: `{"error":{"message":"Unrecognized request argument supplied: reasoning_effort","type":"invalid_request_error"}}`, told: "it takes no effort"},
	{name: "effort, of xAI", vendor: "xai", given: []string{"effort", "low"}, sent: `"reasoning_effort"`, status: 400, words: `{"code":"Client specified an invalid argument","error":"Model grok-4-1-fast does not support parameter reasoningEffort."}`, told: "it takes no effort"},
	{name: "effort beside tools", forced: true, given: []string{"effort", "high"}, sent: `"reasoning_effort"`, status: 400, words: `{"error":{"message":"Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead.","param":"reasoning_effort"}}`, then: `"tools":[`, told: "it takes no effort"},
	{name: "effort that is mandatory", given: []string{"effort", "none"}, sent: `"reasoning_effort"`, status: 400, words: `{"error":{"message":"Reasoning is mandatory for this endpoint and cannot be disabled.","code":400}}`, told: "it takes no effort"},
	{name: "effort of Claude", vendor: "anthropic", given: []string{"effort", "high"}, sent: `"effort"`, status: 400, words: `{"type":"error","error":{"type":"invalid_request_error","message":"This model does not support the effort parameter."}}`, told: "it takes no effort"},
	{name: "thinking of Claude", vendor: "anthropic", given: []string{"effort", "high"}, sent: `"adaptive"`, status: 400, words: `{"type":"error","error":{"type":"invalid_request_error","message":"adaptive thinking is not supported on this model"}}`, told: "it takes no effort"},
	{name: "a budget of Claude", vendor: "anthropic", given: []string{"thinking_budget", "2000"}, sent: `"budget_tokens"`, status: 400, words: `{"type":"error","error":{"type":"invalid_request_error","message":"\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior."}}`, told: "it takes no thinking_budget"},
	{name: "a tool while it thinks", vendor: "anthropic", forced: true, given: []string{"effort", "high"}, sent: `"tool_choice"`, status: 400, words: `{"type":"error","error":{"type":"invalid_request_error","message":"Thinking may not be enabled when tool_choice forces tool use."}}`, then: `"effort":"high"`, told: "no tool can be forced"},
	{name: "a budget of none", vendor: "gemini", given: []string{"thinking_budget", "0"}, sent: `"thinkingBudget"`, status: 400, words: `{"error":{"code":400,"message":"Budget 0 is invalid. This model only works in thinking mode.","status":"INVALID_ARGUMENT"}}`, told: "it takes no thinking_budget"},
	{name: "a large budget", vendor: "gemini", given: []string{"thinking_budget", "52428"}, sent: `"thinkingBudget"`, status: 400, words: `{"error":{"code":400,"message":"The thinking budget (52428) is invalid.","status":"INVALID_ARGUMENT"}}`, told: "it takes no thinking_budget"},
	{name: "a budget of Vertex", vendor: "gemini", given: []string{"thinking_budget", "0"}, sent: `"thinkingBudget"`, status: 400, words: `{"error":{"code":400,"message":"Unable to submit request because The model does not support setting thinking_budget to 0.","status":"INVALID_ARGUMENT"}}`, told: "it takes no thinking_budget"},
	{name: "a level of Gemini", vendor: "gemini", given: []string{"effort", "low"}, sent: `"thinkingLevel"`, status: 400, words: `{"error":{"code":400,"message":"Thinking level is not supported for this model.","status":"INVALID_ARGUMENT"}}`, told: "it takes no effort"},
	{name: "verbosity", given: []string{"verbosity", "low"}, sent: `"verbosity"`, status: 400, words: `{"error":{"message":"Unsupported value: 'verbosity' does not support 'low' with this model. Supported values are: 'medium'.","param":"verbosity","code":"unsupported_value"}}`, told: "it takes no verbosity"},
	{name: "verbosity, extra", given: []string{"verbosity", "high"}, sent: `"verbosity"`, status: 422, words: `{"detail":[{"type":"extra_forbidden","loc":["body","verbosity"],"msg":"Extra inputs are not permitted"}]}`, told: "it takes no verbosity"},
	{name: "a seed", given: []string{"seed", "123"}, sent: `"seed"`, status: 422, words: `{"detail":[{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted","input":123}]}`, told: "it takes no seed"},
	{name: "a seed of Gemini's other interface", given: []string{"seed", "1"}, sent: `"seed"`, status: 400, words: `{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"seed\": Cannot find field."}}`, told: "it takes no seed"},
	{name: "a text that ends", given: []string{"stop", "END"}, sent: `"stop"`, status: 400, words: `{"error":{"message":"Unsupported parameter: 'stop' is not supported with this model.","type":"invalid_request_error","param":"stop","code":"unsupported_parameter"}}`, told: "it takes no stop"},
	{name: "a text that ends, of xAI", vendor: "xai", given: []string{"stop", "END"}, sent: `"stop"`, status: 400, words: `{"error":"Argument not supported on this model: stop"}`, told: "it takes no stop"},
	{name: "blanks that end", vendor: "anthropic", given: []string{"stop", " "}, sent: `"stop_sequences"`, status: 400, words: `{"type":"error","error":{"type":"invalid_request_error","message":"stop_sequences: each stop sequence must contain non-whitespace"}}`, told: "it takes no stop"},
	{name: "thinking of Ollama", vendor: "ollama", given: []string{"effort", "high"}, sent: `"think"`, status: 400, words: `{"error":"registry.ollama.ai/library/gemma3:4b does not support thinking"}`, told: "it takes no effort"},
	{name: "a level of Ollama", vendor: "ollama", given: []string{"effort", "high"}, sent: `"think"`, status: 400, words: `{"error":"think value \"high\" is not supported for this model"}`, told: "it takes no effort"},
	{name: "a key of a cache", given: nil, sent: `"prompt_cache_key"`, status: 400, words: `{"error":{"message":"Unknown parameter: 'prompt_cache_key'.","param":"prompt_cache_key"}}`, told: "it takes no prompt_cache_key", vendor: "azure"},
	{name: "two, one after the other", given: []string{"temperature", "0", "stop", "END"}, sent: `"temperature"`, status: 400, words: `{"error":{"message":"Unsupported parameter: 'temperature' is not supported with this model.","param":"temperature"}}`, then: `"stop"`, told: "it takes no temperature"},
	{name: "for no reason", given: []string{"temperature", "0"}, sent: `"temperature"`, status: 400, words: `{"error":{"message":"Bad Request"}}`, told: "it does not say what it refuses: everything that can be is left out"},
	{name: "for no reason, of Ollama", vendor: "ollama", given: []string{"temperature", "0"}, sent: `"temperature"`, status: 400, words: `{"error":"invalid options"}`, told: "it does not say what it refuses: no parameters of answers are sent"},
}

// What a server refuses of parameters is left out of one call more, and of none after it; what it
// takes stays.
func TestRefusedParametersAreLearned(t *testing.T) {
	for _, r := range refusedParameters {
		t.Run(r.name, func(t *testing.T) {
			var told []string
			p, fake := start(t, orDefault(r.vendor, "openai"), fakellm.Config{
				Model: says(goodReceipt), Lax: true,
				Rebuff: func(c fakellm.Call) *fakellm.Rebuff {
					if !bytes.Contains(c.Body, []byte(r.sent)) {
						return nil
					}
					return &fakellm.Rebuff{Status: r.status, Body: r.words}
				},
			}, func(c *llm.Config) {
				c.ToolMode = r.forced
				c.Manners = manners.NewStore(func(line string) { told = append(told, line) })
			})
			req := ask(nil)
			if r.forced {
				req = ask(schema(t, receipt))
			}
			req.Model = llm.Model(orDefault(r.model, "m-1"))
			req.Parameters, req.CacheKey = set(t, r.given...), "of-a-job"

			for round, calls := range []int{2, 3} {
				if _, err := p.Complete(t.Context(), req); err != nil {
					t.Fatalf("round %d: %v; told %q", round, err, told)
				}
				all := fake.Entries()
				if len(all) != calls || !strings.Contains(string(all[len(all)-1].Body), r.then) {
					t.Errorf("round %d: %d calls, want %d, the last with %s: %s", round, len(all), calls, r.then, all[len(all)-1].Body)
				}
			}
			if len(told) != 1 || !strings.HasSuffix(told[0], ": "+r.told) {
				t.Errorf("told %q, want one line that ends with %q", told, r.told)
			}
		})
	}
}

// What a model is known not to take is refused with its rule.
func TestLimitsOfModels(t *testing.T) {
	limits := make(map[string]vendors.Vendor)
	for _, v := range vendors.All() {
		limits[v.Name] = v
	}
	for _, c := range []struct {
		model string // provider/model
		given []string
		want  string // name: rule; "" if all is taken
	}{
		{"openai/gpt-4.1", []string{"temperature", "0", "seed", "1", "stop", "a"}, ""},
		{"openai/gpt-4.1", []string{"effort", "low"}, "effort: is not taken"},
		{"openai/gpt-5-mini-2025-08-07", []string{"temperature", "0"}, "temperature: is not taken"},
		{"openai/gpt-5", []string{"effort", "xhigh"}, "effort: xhigh is not taken; it takes minimal, low, medium, high"},
		{"openai/gpt-5.6-terra", []string{"effort", "none", "verbosity", "low"}, ""},
		{"openai/gpt-5.6-terra", []string{"effort", "minimal"}, "effort: minimal is not taken; it takes none, low, medium, high, xhigh"},
		{"openai/gpt-5.6-terra", []string{"thinking_budget", "5"}, "thinking_budget: is not taken"},
		{"openai/gpt-4o", []string{"stop", `["a","b","c","d","e"]`}, "stop: with 5 texts is not taken; it takes 4"},
		{"openai/o3", []string{"stop", "a"}, "stop: is not taken"},
		{"azure/mine", []string{"effort", "max", "temperature", "2"}, ""},
		{"anthropic/claude-opus-5-5", []string{"effort", "max"}, ""},
		{"anthropic/claude-opus-5-5", []string{"thinking_budget", "2000"}, "thinking_budget: is not taken"},
		{"anthropic/claude-haiku-4-5", []string{"effort", "low"}, "effort: is not taken"},
		{"anthropic/claude-haiku-4-5", []string{"thinking_budget", "100"}, "thinking_budget: 100 is not taken; it takes 1024 or more"},
		{"anthropic/claude-haiku-4-5", []string{"temperature", "0"}, "temperature: is not taken"},
		{"anthropic/claude-fable-5", []string{"effort", "none"}, "effort: none is not taken; it takes low, medium, high, xhigh, max"},
		{"vertex-claude/claude-sonnet-4-6", []string{"temperature", "1"}, ""},
		{"vertex-claude/claude-sonnet-4-6", []string{"temperature", "1.5"}, "temperature: 1.5 is not taken; it takes 0 to 1"},
		{"vertex-claude/claude-sonnet-5", []string{"temperature", "1"}, "temperature: is not taken"},
		{"gemini/gemini-2.5-pro", []string{"thinking_budget", "0"}, "thinking_budget: 0 is not taken: it always thinks"},
		{"gemini/gemini-2.5-flash", []string{"thinking_budget", "30000"}, "thinking_budget: 30000 is not taken; it takes 1 to 24576"},
		{"gemini/gemini-3-flash", []string{"effort", "low", "thinking_budget", "9"}, "thinking_budget: is not taken beside effort; give one of them"},
		{"gemini/gemini-3-flash", []string{"effort", "minimal", "seed", "3"}, ""},
		{"bedrock/us.anthropic.claude-opus-4-6-v1", []string{"effort", "max", "temperature", "1"}, ""},
		{"bedrock/meta.llama3-1-8b-instruct-v1:0", []string{"effort", "low"}, "effort: is not taken"},
		{"bedrock/openai.gpt-oss-20b-1:0", []string{"effort", "low"}, ""},
		{"mistral/mistral-large-2512", []string{"temperature", "1.6"}, "temperature: 1.6 is not taken; it takes 0 to 1.5"},
		{"mistral/codestral-latest", []string{"effort", "high"}, "effort: is not taken"},
		{"deepseek/deepseek-v4-flash", []string{"effort", "low"}, "effort: low is not taken; it takes none, high, max"},
		{"deepseek/deepseek-v4-flash", []string{"seed", "1"}, "seed: is not taken"},
		{"xai/grok-4-0709", []string{"effort", "low"}, "effort: is not taken"},
		{"xai/grok-4.3", []string{"effort", "low", "seed", "1"}, ""},
		{"ollama/qwen3:4b", []string{"effort", "low"}, "effort: low is not taken; it takes none, high"},
		{"ollama/qwen3:4b", []string{"tier", "batch"}, "tier: batch is not taken: its provider makes no batches here"},
		{"ollama/gpt-oss:20b", []string{"effort", "low", "seed", "1"}, ""},
		{"vllm/anything", []string{"thinking_budget", "1", "effort", "low"}, ""},
	} {
		provider, model, _ := strings.Cut(c.model, "/")
		name, rule := limits[provider].Limits("", llm.Model(model)).Refusal(set(t, c.given...))
		got := string(name) + ": " + rule
		if rule == "" {
			got = ""
		}
		if got != c.want {
			t.Errorf("%s %v: got %q, want %q", c.model, c.given, got, c.want)
		}
	}

	byResponses := limits["openai"].Limits("https://api.openai.com/v1/responses", "gpt-5.6").Not
	if !slices.Contains(byResponses, parameters.Seed) || !slices.Contains(byResponses, parameters.Stop) {
		t.Errorf("Responses takes all but %v, and has neither seed nor stop", byResponses)
	}
	if l := limits["openai"].Limits("http://gpu:8000/v1", "gpt-5"); len(l.Not) > 0 || len(l.Efforts) > 0 {
		t.Errorf("of another's server %+v is known", l)
	}
}
