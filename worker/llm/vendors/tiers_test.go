package vendors_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
	"github.com/coditect/mapreduce/worker/llm/vendors"
)

// The answers are in the forms of the vendors' descriptions, with 1,000 tokens read and 100 written.
const (
	tieredChat      = `{"id":"1","object":"chat.completion","model":"m",TIER"choices":[{"index":0,"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100}}`
	tieredResponses = `{"id":"1","object":"response","status":"completed","model":"m",TIER"output":[{"type":"message","id":"a","role":"assistant","content":[{"type":"output_text","text":"yes"}]}],"usage":{"input_tokens":1000,"output_tokens":100,"total_tokens":1100}}`
	tieredMessages  = `{"id":"1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"yes"}],"stop_reason":"end_turn","usage":{TIER"input_tokens":1000,"output_tokens":100}}`
	tieredGenerate  = `{"candidates":[{"content":{"role":"model","parts":[{"text":"yes"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1000,"candidatesTokenCount":100,"totalTokenCount":1100},"modelVersion":"m","responseId":"1"}`
)

// trafficOf is an answer of Vertex AI, which names the tier as the kind of traffic.
func trafficOf(kind string) string {
	return strings.Replace(tieredGenerate, `"usageMetadata":{`, `"usageMetadata":{"trafficType":"`+kind+`",`, 1)
}

// A till keeps what calls set aside, and what the last of them took.
type till struct {
	most, cost int64
	charge     mapreduce.Charge
}

func (s *till) Reserve(_ context.Context, _, cost int64) error { s.most = cost; return nil }
func (s *till) Spent(c mapreduce.Charge)                       { s.cost, s.charge = c.CostMicros, c }
func (s *till) Saved(mapreduce.Savings)                        {}
func (s *till) Captures() mapreduce.Capture                    { return mapreduce.CaptureOff }
func (s *till) Record(mapreduce.Call)                          {}

// A call is charged by the tier that its answer names, and no more than was set aside for the tier that
// was asked for.
func TestCallsAreChargedByTheTierOfTheAnswer(t *testing.T) {
	prices, err := new(llm.Prices).With([]byte(`
openai: &all {m: {input: 1, output: 10, flex: 50%, priority: 200%}}
anthropic: *all
gemini: *all
vertex: *all
groq: *all
`))
	if err != nil {
		t.Fatal(err)
	}

	const responses = "https://api.openai.com/v1/responses"
	for _, c := range []struct {
		name, vendor, base, asked string
		answer, tier              string // as the vendor says it
		want                      string
		cost                      int64
	}{
		{"flex", "openai", "", "flex", tieredChat, "flex", "flex", 1000},
		{"standard in place of flex", "openai", "", "flex", tieredChat, "default", "standard", 2000},
		{"flex that is not confirmed", "openai", "", "flex", tieredChat, "", "", 2000},
		{"priority", "openai", "", "priority", tieredChat, "priority", "priority", 4000},
		{"priority by its other name", "openai", responses, "priority", tieredResponses, "fast", "priority", 4000},
		{"priority that came as standard", "openai", responses, "priority", tieredResponses, "default", "standard", 2000},
		{"a tier that nobody knows", "openai", responses, "priority", tieredResponses, "scale", "", 4000},
		{"no tier", "openai", "", "", tieredChat, "default", "standard", 2000},
		{"Claude", "anthropic", "", "standard", tieredMessages, "standard", "standard", 2000},
		{"Claude by what was bought ahead", "anthropic", "", "priority", tieredMessages, "priority", "priority", 4000},
		{"Gemini's flex", "gemini", "", "flex", tieredGenerate, "flex", "flex", 1000},
		{"Gemini's priority beyond its limit", "gemini", "", "priority", tieredGenerate, "standard", "standard", 2000},
		{"Gemini's flex, in the answer alone", "gemini", "", "flex", strings.Replace(tieredGenerate, `"usageMetadata":{`, `"usageMetadata":{"serviceTier":"flex",`, 1), "", "flex", 1000},
		{"Vertex AI's flex", "vertex", "", "flex", trafficOf("ON_DEMAND_FLEX"), "", "flex", 1000},
		{"Vertex AI's standard in place of flex", "vertex", "", "flex", trafficOf("ON_DEMAND"), "", "standard", 2000},
		{"Vertex AI's priority", "vertex", "", "priority", trafficOf("ON_DEMAND_PRIORITY"), "", "priority", 4000},
		{"Vertex AI by what was bought ahead", "vertex", "", "flex", trafficOf("PROVISIONED_THROUGHPUT"), "", "", 2000},
		{"Groq", "groq", "", "standard", tieredChat, "on_demand", "standard", 2000},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := http.Header{"Content-Type": {"application/json"}}
			field := ""
			if c.tier != "" {
				field = `"service_tier":"` + c.tier + `",`
				header.Set("X-Gemini-Service-Tier", c.tier)
			}
			provider := offlineAt(t, c.vendor, c.base, roundTrip(func(r *http.Request) (*http.Response, error) {
				body := io.NopCloser(strings.NewReader(strings.Replace(c.answer, "TIER", field, 1)))
				return &http.Response{StatusCode: http.StatusOK, Header: header, Body: body, Request: r}, nil
			}))

			paid := new(till)
			meter := &decorator.Meter{Provider: provider, Purse: paid, Prices: prices, Count: func(*llm.Request) int64 { return 1000 }}
			req := &llm.Request{Model: "m", Messages: []llm.Message{llm.Say(llm.User, "yes?")}, MaxTokens: 100, Parameters: parameters.Set{Tier: c.asked}}
			res, err := meter.Complete(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if res.Tier != c.want || paid.cost != c.cost || paid.cost > paid.most {
				t.Errorf("tier %q for %d, and %d set aside; want %q for %d", res.Tier, paid.cost, paid.most, c.want, c.cost)
			}

			want := mapreduce.Charge{
				Model: c.vendor + "/m", Tier: map[int64]string{1000: "flex", 2000: "standard", 4000: "priority"}[c.cost],
				Calls: 1, Tokens: mapreduce.Tokens{In: 1000, Out: 100}, CostMicros: c.cost,
			}
			if paid.charge != want {
				t.Errorf("it is charged as %+v, want %+v", paid.charge, want)
			}
		})
	}
}

// Where flex has no room, the call is made in the standard tier if that is asked for, under the reservation
// of the one call that it is.
func TestFlexFirst(t *testing.T) {
	prices, err := new(llm.Prices).With([]byte("openai: {m: {input: 1, output: 10, flex: 50%}}"))
	if err != nil {
		t.Fatal(err)
	}

	const refusal = `{"error":{"message":"Resource Unavailable","type":"resource_unavailable","code":"resource_unavailable"}}`
	for _, c := range []struct {
		name, asked string
		refused     map[string]int // status by tier
		tiers       []string       // that were asked, as the vendor calls them
		cost        int64          // -1 if there is no answer
	}{
		{"room", "flex,standard", nil, []string{"flex"}, 1000},
		{"no room", "flex,standard", map[string]int{"flex": 429}, []string{"flex", "default"}, 2000},
		{"no room anywhere", "flex,standard", map[string]int{"flex": 429, "default": 429}, []string{"flex", "default"}, -1},
		{"a wrong key", "flex,standard", map[string]int{"flex": 401}, []string{"flex"}, -1},
		{"flex alone", "flex", map[string]int{"flex": 429}, []string{"flex"}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked []string
			header := http.Header{"Content-Type": {"application/json"}}
			provider := offlineAt(t, "openai", "", roundTrip(func(r *http.Request) (*http.Response, error) {
				var body struct {
					Tier string `json:"service_tier"`
				}
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
					return nil, err
				}
				asked = append(asked, body.Tier)

				status, text := http.StatusOK, strings.Replace(tieredChat, "TIER", `"service_tier":"`+body.Tier+`",`, 1)
				if refused := c.refused[body.Tier]; refused > 0 {
					status, text = refused, refusal
				}
				return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
			}))

			paid := new(till)
			meter := &decorator.Meter{Provider: &decorator.NextTier{Provider: provider}, Purse: paid, Prices: prices, Count: func(*llm.Request) int64 { return 1000 }}
			_, err := meter.Complete(t.Context(), &llm.Request{Model: "m", Messages: []llm.Message{llm.Say(llm.User, "yes?")}, MaxTokens: 100, Parameters: set(t, "tier", c.asked)})
			if !slices.Equal(asked, c.tiers) || (err != nil) != (c.cost < 0) || paid.cost != max(c.cost, 0) || paid.cost > paid.most {
				t.Errorf("%q were asked, %v, for %d of %d that were set aside; want %q for %d", asked, err, paid.cost, paid.most, c.tiers, c.cost)
			}
		})
	}
}

// What refuses a call of flex for want of room says nothing of the request: it is made again later.
func TestNoRoomInFlexIsWaitedFor(t *testing.T) {
	for _, c := range []struct {
		vendor string
		status int
		body   string
	}{
		{"openai", 429, `{"error":{"message":"Resource Unavailable","type":"resource_unavailable","param":null,"code":"resource_unavailable"}}`},
		{"groq", 498, `{"error":{"message":"Flex tier capacity exceeded","type":"capacity_exceeded","code":"capacity_exceeded"}}`},
		{"gemini", 503, `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`},
	} {
		p := offlineAt(t, c.vendor, "", roundTrip(func(r *http.Request) (*http.Response, error) {
			body := io.NopCloser(strings.NewReader(c.body))
			return &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: r}, nil
		}))
		_, err := p.Complete(t.Context(), &llm.Request{Model: "m", Messages: []llm.Message{llm.Say(llm.User, "yes?")}, Parameters: parameters.Set{Tier: "flex"}})
		e, ok := err.(*llm.Error)
		if !ok || e.Class != protocol.Retryable || !slices.Contains([]llm.Kind{llm.RateLimited, llm.Overloaded}, e.Kind) || e.Usage != (llm.Usage{}) {
			t.Errorf("%s: %v, want a want of room that costs nothing", c.vendor, err)
		}
	}
}

// Each vendor's models have the tiers that are known of them.
func TestTiersOfModels(t *testing.T) {
	for _, c := range []struct {
		vendor string
		model  llm.Model
		want   []string
	}{
		{"openai", "gpt-5.6-terra", []string{"flex", "standard", "priority"}},
		{"openai", "gpt-4.1", []string{"standard", "priority"}},
		{"openai", "o1", []string{"standard"}},
		{"anthropic", "claude-opus-5", []string{"standard", "priority"}},
		{"gemini", "gemini-3.5-flash", []string{"flex", "standard", "priority"}},
		{"groq", "llama-3.3-70b-versatile", []string{"flex", "standard"}},
		{"mistral", "mistral-large", nil},
		{"ollama", "qwen3:4b", nil},
	} {
		all := vendors.All()
		i := slices.IndexFunc(all, func(v vendors.Vendor) bool { return v.Name == c.vendor })
		limits := all[i].Limits("", c.model)
		for _, tier := range parameters.Tiers() {
			_, rule := limits.Refusal(parameters.Set{Tier: tier})
			if taken := rule == ""; taken != slices.Contains(c.want, tier) {
				t.Errorf("%s/%s and %s: %q", c.vendor, c.model, tier, rule)
			}
		}
	}
}

// Vertex AI reads a tier from a header alone, and ignores it in the body.
func TestVertexIsAskedForTiersInAHeader(t *testing.T) {
	for _, c := range []struct{ asked, header string }{{"", ""}, {"standard", ""}, {"flex", "flex"}, {"priority", "priority"}} {
		var header http.Header
		var body map[string]any
		provider := offlineAt(t, "vertex", "", roundTrip(func(r *http.Request) (*http.Response, error) {
			header = r.Header
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				return nil, err
			}
			answer := io.NopCloser(strings.NewReader(tieredGenerate))
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: answer, Request: r}, nil
		}))

		req := &llm.Request{Model: "m", Messages: []llm.Message{llm.Say(llm.User, "yes?")}, MaxTokens: 100, Parameters: parameters.Set{Tier: c.asked}}
		if _, err := provider.Complete(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if got := header.Get("X-Vertex-AI-LLM-Shared-Request-Type"); got != c.header {
			t.Errorf("tier %q is asked for by %q, want %q", c.asked, got, c.header)
		}
		if _, has := body["serviceTier"]; has {
			t.Errorf("tier %q is in the body", c.asked)
		}
	}
}
