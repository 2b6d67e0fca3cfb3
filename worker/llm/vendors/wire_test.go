package vendors_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/fakellm/meter"
	"github.com/coditect/mapreduce/worker/llm/vendors"
)

const testKey = "sk-test-0123456789abcdefghij"

const receipt = `{
	"type": "object",
	"required": ["company", "total"],
	"properties": {
		"company": {"type": "string", "description": "Name of the shop", "minLength": 1, "x-coditect": {"pick": "first"}},
		"total": {"type": "number", "minimum": 0},
		"date": {"type": "string", "format": "date"}
	}
}`

const goodReceipt = `{"company":"Gardenia Bakeries — 金","total":60.30,"date":"2018-12-25"}`

func schema(t testing.TB, doc string) *llm.Schema {
	t.Helper()
	s, err := llm.NewSchema("receipt", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// start returns a provider whose vendor is a scripted server.
func start(t testing.TB, name string, script fakellm.Config, change ...func(*llm.Config)) (llm.Provider, *fakellm.Server) {
	t.Helper()
	fake := fakellm.New(script)
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	cfg := llm.Config{Key: llm.NewKey(testKey), BaseURL: server.URL, SendTrace: true, Transport: server.Client().Transport}
	for _, f := range change {
		f(&cfg)
	}
	p, err := vendors.New(name, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p, fake
}

func says(text string) func(fakellm.Call) fakellm.Reply {
	return func(fakellm.Call) fakellm.Reply { return fakellm.Reply{Text: text} }
}

func always(f fakellm.Fault) func(fakellm.Call) fakellm.Fault {
	return func(fakellm.Call) fakellm.Fault { return f }
}

func ask(s *llm.Schema) *llm.Request {
	return &llm.Request{
		Model: "m-1", System: "Extract the receipt.", Schema: s, MaxTokens: 500,
		Messages: []llm.Message{llm.Say(llm.User, "GARDENIA BAKERIES\nTOTAL 60.30")},
		Trace:    llm.Trace{Unit: "a/b c.txt#1", Attempt: 2, Fence: 7},
	}
}

// vendorNames are the names of one vendor for each format. The others differ from these in where
// they are asked, and how they are told who asks: see TestEachRowReachesItsVendor.
var vendorNames = []string{"anthropic", "openai", "gemini", "bedrock", "ollama"}

func TestAnswersAreWholeAndMetered(t *testing.T) {
	for _, name := range vendorNames {
		for _, tool := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/tool=%v", name, tool), func(t *testing.T) {
				p, fake := start(t, name, fakellm.Config{Key: testKey, Model: says(goodReceipt), Piece: 3},
					func(c *llm.Config) { c.ToolMode = tool })
				res, err := (&decorator.Structured{Provider: p}).Complete(t.Context(), ask(schema(t, receipt)))
				if err != nil {
					t.Fatal(err)
				}
				if res.Written == nil || *res.Written != fake.Entries()[0].Output {
					t.Errorf("the answer has %v tokens, want the server's count", res.Written)
				}
				if got := string(res.Answer); got != goodReceipt {
					t.Errorf("answer %s, want %s", got, goodReceipt)
				}
				entry := fake.Entries()[0]
				got := [4]int64{res.Usage.In(), res.Usage.Output, int64(entry.Attempt), entry.Fence}
				want := [4]int64{entry.In(), entry.Output, 2, 7}
				if diff := cmp.Diff(want, got); diff != "" || !res.Usage.Reported || entry.Unit != "a/b c.txt#1" {
					t.Errorf("journal and response differ (-journal +response), reported %v, unit %q:\n%s", res.Usage.Reported, entry.Unit, diff)
				}
			})
		}
	}
}

// outcomes are what every fault comes to, by vendor where they differ.
var outcomes = []struct {
	fault fakellm.Fault
	kind  llm.Kind
	only  string
}{
	{fakellm.RateLimit, llm.RateLimited, ""},
	{fakellm.Overloaded, llm.Overloaded, ""},
	{fakellm.ServerError, llm.Server, ""},
	{fakellm.Unauthorized, llm.Auth, ""},
	{fakellm.NoMoney, llm.Billing, ""},
	{fakellm.SpendLimit, llm.Billing, ""},
	{fakellm.UnknownModel, llm.NotFound, ""},
	{fakellm.TooLong, llm.TooLarge, ""},
	{fakellm.WebPage, llm.NotAPI, ""},
	{fakellm.BadGateway, llm.Server, ""},
	{fakellm.Redirect, llm.NotAPI, ""},
	{fakellm.Hangup, llm.Network, ""},
	{fakellm.MidStream, llm.Overloaded, "anthropic"},
	{fakellm.MidStream, llm.Server, "openai"},
	{fakellm.MidStream, llm.Server, "gemini"},
	{fakellm.MidStream, llm.Server, "bedrock"},
	{fakellm.MidStream, llm.Server, "ollama"},
	{fakellm.Cut, llm.CutOff, ""},
	{fakellm.Reset, llm.CutOff, ""},
	{fakellm.Stall, llm.Timeout, ""},
	{fakellm.NotJSON, llm.Garbled, ""},
	{fakellm.Truncated, llm.TooLarge, ""},
	{fakellm.EmptyAnswer, llm.Empty, ""},
	{fakellm.Refusal, llm.Refused, "anthropic"},
	{fakellm.Refusal, llm.Refused, "openai"},
	{fakellm.Filter, llm.Filtered, "openai"},
	{fakellm.Filter, llm.Filtered, "gemini"},
	{fakellm.Filter, llm.Filtered, "bedrock"},
	{fakellm.WrongShape, llm.Mismatch, ""},
	{fakellm.Prose, llm.Mismatch, ""},
}

func TestEveryFaultIsToldApart(t *testing.T) {
	for _, o := range outcomes {
		for _, name := range vendorNames {
			if o.only != "" && o.only != name {
				continue
			}
			t.Run(name+"/"+string(o.fault), func(t *testing.T) {
				p, fake := start(t, name, fakellm.Config{Model: says(goodReceipt), Fault: always(o.fault), Piece: 8},
					func(c *llm.Config) {
						if o.fault == fakellm.Stall {
							c.Idle = 50 * time.Millisecond
						}
					})
				res, err := (&decorator.Structured{Provider: p, Repairs: -1}).Complete(t.Context(), ask(schema(t, receipt)))
				e, ok := errors.AsType[*llm.Error](err)
				if !ok {
					t.Fatalf("response %+v, error %v; want an error of kind %q", res, err, o.kind)
				}
				if e.Kind != o.kind || e.Class != o.kind.Class() {
					t.Errorf("got kind %q class %d (%v), want %q", e.Kind, e.Class, e, o.kind)
				}
				entries := fake.Entries()
				// A slow client may give up on a silent server before it has read anything.
				if got, want := e.Usage.Total(), entries[0].In()+entries[0].Output; got != want && o.fault != fakellm.Stall {
					t.Errorf("the error tells of %d tokens, the journal of %d", got, want)
				}
				leaks(t, err)
			})
		}
	}
}

// leaks fails if a key shows in an error, however it is printed.
func leaks(t *testing.T, err error) {
	t.Helper()
	e, _ := errors.AsType[*llm.Error](err)
	raw, jsonErr := json.Marshal(e)
	if jsonErr != nil {
		raw = nil
	}
	for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err), string(raw)} {
		if strings.Contains(text, testKey) || strings.Contains(text, testKey[8:]) {
			t.Errorf("the key shows in %s", text)
		}
	}
}

func TestStopReasonsSurvive(t *testing.T) {
	for _, name := range vendorNames {
		t.Run(name, func(t *testing.T) {
			p, _ := start(t, name, fakellm.Config{Model: says(goodReceipt), Fault: always(fakellm.UnknownStop)})
			res, err := (&decorator.Structured{Provider: p}).Complete(t.Context(), ask(schema(t, receipt)))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := res.Stop, llm.Stop(name+":bored"); got != want || got.Known() {
				t.Errorf("stop %q, known %v; want %q", got, got.Known(), want)
			}
		})
	}
}

func TestPausedTurnGoesOn(t *testing.T) {
	p, fake := start(t, "anthropic", fakellm.Config{
		Model: func(c fakellm.Call) fakellm.Reply {
			if c.N < 3 {
				return fakellm.Reply{Text: fmt.Sprint("part ", c.N, ", "), Stop: "pause_turn"}
			}
			return fakellm.Reply{Text: "end"}
		},
	})
	req := ask(nil)
	res, err := (&decorator.Structured{Provider: p}).Complete(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := res.Text(), "part 1, part 2, end"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	entries := fake.Entries()
	if len(entries) != 3 || res.Usage.Total() != sum(entries) {
		t.Errorf("%d calls, %d tokens; want 3 and %d", len(entries), res.Usage.Total(), sum(entries))
	}
	if last := entries[2].Turns; len(last) != 2 || last[1] != (fakellm.Turn{Role: "assistant", Text: "part 1, part 2, "}) {
		t.Errorf("the third call says %v", last)
	}
	if len(req.Messages) != 1 {
		t.Errorf("the request was changed: %v", req.Messages)
	}
}

func sum(entries []fakellm.Entry) (n int64) {
	for _, e := range entries {
		n += e.In() + e.Output
	}
	return n
}

func TestMismatchIsRepairedOnce(t *testing.T) {
	for _, name := range vendorNames {
		for _, tool := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/tool=%v", name, tool), func(t *testing.T) {
				p, fake := start(t, name, fakellm.Config{Model: says(goodReceipt), Fault: fakellm.First(1, fakellm.WrongShape)},
					func(c *llm.Config) { c.ToolMode = tool })
				res, err := (&decorator.Structured{Provider: p}).Complete(t.Context(), ask(schema(t, receipt)))
				if err != nil || string(res.Answer) != goodReceipt {
					t.Fatalf("answer %+v, error %v", res, err)
				}
				entries := fake.Entries()
				if len(entries) != 2 || res.Usage.Total() != sum(entries) {
					t.Fatalf("%d calls, %d tokens; want 2 and %d", len(entries), res.Usage.Total(), sum(entries))
				}
				if last := entries[1].Prompt(); !strings.Contains(last, "company") || !strings.Contains(last, "does not fit") {
					t.Errorf("the model is told %q, and not what is missing", last)
				}
			})
		}
	}
}

func TestRateLimitTellsWhenToComeBack(t *testing.T) {
	for _, name := range vendorNames {
		p, _ := start(t, name, fakellm.Config{Fault: always(fakellm.RateLimit)})
		_, err := p.Complete(t.Context(), ask(nil))
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.RetryAfter != time.Second {
			t.Errorf("%s: error %v, want one to be retried after a second", name, err)
		}
	}
}

func TestLimitsAreReadFromHeaders(t *testing.T) {
	script := fakellm.Config{Rates: meter.Rates{Requests: 60, Input: 6000, Output: 600}}
	p, _ := start(t, "anthropic", script)
	res, err := p.Complete(t.Context(), ask(nil))
	if err != nil {
		t.Fatal(err)
	}
	got := res.Limits
	if got.Requests.Limit != 60 || got.Requests.Remaining != 59 || !got.Input.Known || !got.Output.Known || got.Tokens.Known {
		t.Errorf("anthropic: %+v", got)
	}
	p, _ = start(t, "openai", script)
	if res, err = p.Complete(t.Context(), ask(nil)); err != nil {
		t.Fatal(err)
	}
	got = res.Limits
	if got.Requests.Remaining != 59 || got.Requests.Reset != time.Second || got.Tokens.Limit != 6000 || got.Input.Known {
		t.Errorf("openai: %+v", got)
	}
}

// reply serves one response to everything.
func reply(t *testing.T, name string, status int, header http.Header, body string) error {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), header)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	defer server.Close()
	p, err := vendors.New(name, llm.Config{Key: llm.NewKey(testKey), BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Complete(t.Context(), ask(nil))
	return err
}

// limitReached is Anthropic's error with a code.
func limitReached(code string) string {
	return `{"type":"error","error":{"type":"rate_limit_error","message":"x","details":{"error_code":"` + code + `"}}}`
}

func TestErrorsOfVendors(t *testing.T) {
	in := func(seconds int) string {
		return time.Now().Add(time.Duration(seconds) * time.Second).UTC().Format(http.TimeFormat)
	}
	for _, c := range []struct {
		name, vendor string
		status       int
		header       http.Header
		body         string
		kind         llm.Kind
		class        protocol.FailureClass
		atLeast      time.Duration
	}{
		{"billing error", "anthropic", 400, nil, `{"type":"error","error":{"type":"billing_error","message":"x"}}`, llm.Billing, protocol.PermanentJob, 0},
		{"permission", "anthropic", 403, nil, `{"type":"error","error":{"type":"permission_error","message":"x"}}`, llm.Permission, protocol.PermanentJob, 0},
		{"too large", "anthropic", 413, nil, `{"type":"error","error":{"type":"request_too_large","message":"x"}}`, llm.TooLarge, protocol.PermanentUnit, 0},
		{"invalid", "anthropic", 400, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.0: bad"}}`, llm.Invalid, protocol.PermanentUnit, 0},
		{"unknown type", "anthropic", 418, nil, `{"type":"error","error":{"type":"teapot_error","message":"x"}}`, llm.Invalid, protocol.PermanentUnit, 0},
		{"should retry", "anthropic", 400, http.Header{"X-Should-Retry": {"true"}}, `{"type":"error","error":{"type":"invalid_request_error","message":"x"}}`, llm.Invalid, protocol.Retryable, 0},
		{"should not retry", "anthropic", 500, http.Header{"X-Should-Retry": {"false"}}, `{"type":"error","error":{"type":"api_error","message":"x"}}`, llm.Server, protocol.PermanentUnit, 0},
		{"no key is mended by a retry", "anthropic", 401, http.Header{"X-Should-Retry": {"true"}}, `{"type":"error","error":{"type":"authentication_error","message":"x"}}`, llm.Auth, protocol.PermanentJob, 0},
		{"spend limit of the tier", "anthropic", 429, nil, limitReached("enforced_spend_limit_reached"), llm.Billing, protocol.PermanentJob, 0},
		{"spend limit of the contract", "anthropic", 429, http.Header{"X-Should-Retry": {"true"}}, limitReached("contract_spend_limit_reached"), llm.Billing, protocol.PermanentJob, 0},
		{"a limit on growth passes", "anthropic", 429, http.Header{"Retry-After": {"2"}}, limitReached("ramp_limit_exceeded"), llm.RateLimited, protocol.Retryable, 2 * time.Second},
		{"a code of tomorrow", "anthropic", 429, nil, limitReached("lunar_eclipse"), llm.RateLimited, protocol.Retryable, 0},
		{"details without a code", "anthropic", 429, nil, `{"type":"error","error":{"type":"rate_limit_error","message":"x","details":{"error_code":7}}}`, llm.RateLimited, protocol.Retryable, 0},
		{"organization on hold", "anthropic", 400, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"x","details":{"error_code":"organization_on_hold"}}}`, llm.Permission, protocol.PermanentJob, 0},
		{"milliseconds", "anthropic", 429, http.Header{"Retry-After-Ms": {"1500"}, "Retry-After": {"9"}}, `{"type":"error","error":{"type":"rate_limit_error","message":"x"}}`, llm.RateLimited, protocol.Retryable, 1500 * time.Millisecond},
		{"fraction", "openai", 429, http.Header{"Retry-After": {"0.25"}}, `{"error":{"message":"x","type":"tokens","code":"rate_limit_exceeded"}}`, llm.RateLimited, protocol.Retryable, 250 * time.Millisecond},
		{"date", "openai", 503, http.Header{"Retry-After": {in(100)}}, `nothing`, llm.Overloaded, protocol.Retryable, 10 * time.Second},
		{"nonsense", "openai", 503, http.Header{"Retry-After": {"NaN"}}, ``, llm.Overloaded, protocol.Retryable, 0},
		{"far away", "openai", 503, http.Header{"Retry-After": {"1e300"}}, ``, llm.Overloaded, protocol.Retryable, time.Hour},
		{"conflict", "openai", 409, nil, `{"error":{"message":"x"}}`, llm.Server, protocol.Retryable, 0},
		{"quota", "openai", 429, nil, `{"error":{"message":"x","type":"insufficient_quota","code":"insufficient_quota"}}`, llm.Billing, protocol.PermanentJob, 0},
		{"context length", "openai", 400, nil, `{"error":{"message":"x","type":"invalid_request_error","code":"context_length_exceeded"}}`, llm.TooLarge, protocol.PermanentUnit, 0},
		{"filter", "openai", 400, nil, `{"error":{"message":"x","code":"content_filter"}}`, llm.Filtered, protocol.PermanentUnit, 0},
		{"error as text", "openai", 404, nil, `{"error":"model not found"}`, llm.NotFound, protocol.PermanentJob, 0},
		{"code as number", "openai", 400, nil, `{"error":{"message":"x","code":400}}`, llm.Invalid, protocol.PermanentUnit, 0},
		{"error with 200", "openai", 200, http.Header{"Content-Type": {"application/json"}}, `{"error":{"message":"x","code":"model_not_found"}}`, llm.NotFound, protocol.PermanentJob, 0},
		{"sign-in page", "openai", 403, nil, `<html>sign in</html>`, llm.NotAPI, protocol.PermanentJob, 0},
		{"wrong key", "gemini", 400, nil, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}`, llm.Auth, protocol.PermanentJob, 0},
		{"key that expired", "gemini", 400, nil, `{"error":{"code":400,"message":"API key expired. Please renew the API key.","status":"INVALID_ARGUMENT"}}`, llm.Auth, protocol.PermanentJob, 0},
		{"key of another vendor", "gemini", 401, nil, `{"error":{"code":401,"message":"Request had invalid authentication credentials.","status":"UNAUTHENTICATED","details":[{"reason":"ACCESS_TOKEN_TYPE_UNSUPPORTED"}]}}`, llm.Auth, protocol.PermanentJob, 0},
		{"a minute's quota", "gemini", 429, nil, `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"x","quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.074824224s"}]}}`, llm.RateLimited, protocol.Retryable, 34 * time.Second},
		{"a day's quota", "gemini", 429, nil, `{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"retryDelay":"13s"}]}}`, llm.Billing, protocol.PermanentJob, 13 * time.Second},
		{"a plan without the model", "gemini", 429, nil, `{"error":{"code":429,"message":"Quota exceeded for metric: generate_content_free_tier_requests, limit: 0, model: gemini-3-pro","status":"RESOURCE_EXHAUSTED"}}`, llm.Billing, protocol.PermanentJob, 0},
		{"shared capacity of Vertex", "gemini", 429, nil, `{"error":{"code":429,"message":"Resource exhausted. Please try again later.","status":"RESOURCE_EXHAUSTED"}}`, llm.RateLimited, protocol.Retryable, 0},
		{"error in a list", "gemini", 503, nil, `[{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}]`, llm.Overloaded, protocol.Retryable, 0},
		{"region", "gemini", 400, nil, `{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}`, llm.Permission, protocol.PermanentJob, 0},
		{"service that is off", "gemini", 403, nil, `{"error":{"code":403,"message":"Generative Language API has not been used in project 1 before or it is disabled.","status":"PERMISSION_DENIED","details":[{"reason":"SERVICE_DISABLED"}]}}`, llm.Permission, protocol.PermanentJob, 0},
		{"too many tokens", "gemini", 400, nil, `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, llm.TooLarge, protocol.PermanentUnit, 0},
		{"no such model", "gemini", 404, nil, `{"error":{"code":404,"message":"models/gemini-9 is not found for API version v1beta, or is not supported for generateContent.","status":"NOT_FOUND"}}`, llm.NotFound, protocol.PermanentJob, 0},
		{"deadline", "gemini", 504, nil, `{"error":{"code":504,"message":"Deadline expired before operation could complete.","status":"DEADLINE_EXCEEDED"}}`, llm.Timeout, protocol.Retryable, 0},
		{"no such model", "bedrock", 400, nil, `{"message":"The provided model identifier is invalid."}`, llm.NotFound, protocol.PermanentJob, 0},
		{"needs a profile", "bedrock", 400, nil, `{"message":"Invocation of model ID anthropic.claude-3-7-sonnet-20250219-v1:0 with on-demand throughput isn\u2019t supported. Retry your request with the ID or ARN of an inference profile that contains this model."}`, llm.NotFound, protocol.PermanentJob, 0},
		{"no access", "bedrock", 403, nil, `{"message":"You don't have access to the model with the specified model ID."}`, llm.Permission, protocol.PermanentJob, 0},
		{"policy", "bedrock", 403, nil, `{"Message":"User: arn:aws:iam::1:user/a is not authorized to perform: bedrock:InvokeModelWithResponseStream"}`, llm.Permission, protocol.PermanentJob, 0},
		{"token that expired", "bedrock", 403, nil, `{"message":"The security token included in the request is expired"}`, llm.Auth, protocol.PermanentJob, 0},
		{"signature", "bedrock", 403, nil, `{"message":"The request signature we calculated does not match the signature you provided."}`, llm.Auth, protocol.PermanentJob, 0},
		{"key", "bedrock", 403, nil, `{"Message":"Authentication failed: Please make sure your API Key is valid."}`, llm.Auth, protocol.PermanentJob, 0},
		{"throttled", "bedrock", 429, nil, `{"message":"Too many requests, please wait before trying again."}`, llm.RateLimited, protocol.Retryable, 0},
		{"a day's tokens", "bedrock", 429, nil, `{"message":"Too many tokens per day, please wait before trying again."}`, llm.Billing, protocol.PermanentJob, 0},
		{"not ready", "bedrock", 429, nil, `{"message":"Model is not ready for inference. Please try again."}`, llm.Overloaded, protocol.Retryable, 0},
		{"model error", "bedrock", 424, nil, `{"message":"The system encountered an unexpected error during processing. Try your request again."}`, llm.Overloaded, protocol.Retryable, 0},
		{"model time-out", "bedrock", 408, nil, `{"message":"Model has timed out in processing the request. Try your request again."}`, llm.Timeout, protocol.Retryable, 0},
		{"input too long", "bedrock", 400, nil, `{"message":"Input is too long for requested model."}`, llm.TooLarge, protocol.PermanentUnit, 0},
		{"blank text", "bedrock", 400, nil, `{"message":"The text field in the ContentBlock object at messages.0.content.0 is blank. Add text to the text field, and try again."}`, llm.Invalid, protocol.PermanentUnit, 0},
		{"queue is full", "ollama", 503, nil, `{"error":"server busy, please try again.  maximum pending requests exceeded"}`, llm.Overloaded, protocol.Retryable, 0},
		{"not pulled", "ollama", 404, nil, `{"error":"model \"m-1\" not found"}`, llm.NotFound, protocol.PermanentJob, 0},
	} {
		t.Run(c.vendor+"/"+c.name, func(t *testing.T) {
			err := reply(t, c.vendor, c.status, c.header, c.body)
			e, ok := errors.AsType[*llm.Error](err)
			if !ok {
				t.Fatalf("error %v", err)
			}
			if e.Kind != c.kind || e.Class != c.class || e.Status != c.status {
				t.Errorf("got %q, class %d, status %d (%v); want %q, %d, %d", e.Kind, e.Class, e.Status, e, c.kind, c.class, c.status)
			}
			if e.RetryAfter < c.atLeast || (c.atLeast == 0 && e.RetryAfter != 0) {
				t.Errorf("retry after %v, want at least %v", e.RetryAfter, c.atLeast)
			}
		})
	}
}

func TestWrongSettingsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name, vendor string
		cfg          llm.Config
		want         string
	}{
		{"no key", "anthropic", llm.Config{}, "ANTHROPIC_API_KEY"},
		{"no key", "openai", llm.Config{}, "OPENAI_API_KEY"},
		{"no key", "gemini", llm.Config{}, "GEMINI_API_KEY"},
		{"no address", "ollama", llm.Config{BaseURL: "localhost:11434"}, "base URL"},
		{"password in the address", "openai", llm.Config{BaseURL: "https://me:secret@host/v1"}, "base URL"},
		{"unknown vendor", "acme", llm.Config{}, "acme"},
	} {
		_, err := vendors.New(c.vendor, c.cfg)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s %s: error %v, want one about %q", c.vendor, c.name, err, c.want)
		}
	}
}

func TestCancelledCallSaysWhy(t *testing.T) {
	why := errors.New("the worker drains")
	for _, name := range vendorNames {
		ctx, cancel := context.WithCancelCause(t.Context())
		p, _ := start(t, name, fakellm.Config{Model: says(goodReceipt), Fault: func(fakellm.Call) fakellm.Fault {
			cancel(why)
			return fakellm.Stall
		}})
		if _, err := p.Complete(ctx, ask(nil)); !errors.Is(err, why) {
			t.Errorf("%s: error %v, want the cause", name, err)
		}
	}
}

// A server that keeps a connection alive and says nothing is left at the
// deadline of the unit.
func TestDripEndsWithTheDeadline(t *testing.T) {
	for _, name := range vendorNames {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		p, _ := start(t, name, fakellm.Config{Model: says(goodReceipt), Fault: always(fakellm.Drip)})
		_, err := p.Complete(ctx, ask(nil))
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.Timeout || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: error %v, want the deadline", name, err)
		}
		cancel()
	}
}

func TestForcedTool(t *testing.T) {
	refine := llm.Tool{Name: "should_refine", Schema: schema(t, `{"type":"object","required":["should_refine"],"properties":{"should_refine":{"type":"boolean"}}}`)}
	for _, name := range vendorNames {
		p, _ := start(t, name, fakellm.Config{Model: says(`{"should_refine":true}`)})
		req := ask(nil)
		req.Tools, req.Force = []llm.Tool{refine}, "should_refine"
		res, err := (&decorator.Structured{Provider: p}).Complete(t.Context(), req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		calls := res.Calls()
		if len(calls) != 1 || calls[0].ID == "" || string(calls[0].Input) != `{"should_refine":true}` || res.Stop != llm.StopTool {
			t.Errorf("%s: calls %+v, stop %q", name, calls, res.Stop)
		}
	}
}

func TestToolsBesideASchema(t *testing.T) {
	free := llm.Tool{Name: "look_up", Schema: schema(t, `{"type":"object","properties":{"filter":{"type":"object","additionalProperties":{"type":"string"}}}}`)}
	for _, name := range []string{"anthropic", "openai"} {
		p, fake := start(t, name, fakellm.Config{Model: says(goodReceipt)})
		req := ask(schema(t, receipt))
		req.Tools = []llm.Tool{free}
		if _, err := (&decorator.Structured{Provider: p}).Complete(t.Context(), req); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if body := string(fake.Entries()[0].Body); !strings.Contains(body, `"strict":false`) || strings.Contains(body, "tool_choice") {
			t.Errorf("%s: the tool is not sent loosely and freely: %s", name, body)
		}
	}
}

// E5: three calls of one turn come as three calls, whatever the model thought before them;
// their results go back in one message, in order, with the thinking that came with them, as
// the scripted model refuses anything else. Then the answer comes by its schema.
func TestConversationWithTools(t *testing.T) {
	lookUp := llm.Tool{Name: "look_up", Schema: schema(t, `{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}`)}
	names := []string{"Gardenia", "Ümlaut \"quoted\"", "third"}
	for _, name := range vendorNames {
		for _, thinking := range []string{"", "I look them up, all three of them, with care."} {
			p, fake := start(t, name, fakellm.Config{Piece: 5, Model: func(c fakellm.Call) fakellm.Reply {
				if len(c.Uses) > 0 && answersByTool(c.Wire) && len(c.Tools) > 0 && !c.NoCalls {
					return fakellm.Reply{Calls: []fakellm.Use{{Name: llm.AnswerTool, Input: json.RawMessage(goodReceipt)}}}
				}
				if len(c.Uses) > 0 {
					return fakellm.Reply{Text: goodReceipt}
				}
				r := fakellm.Reply{Text: "Let me see.", Thinking: thinking}
				for _, n := range names {
					input, err := json.Marshal(map[string]string{"name": n})
					if err != nil {
						t.Error(err)
					}
					r.Calls = append(r.Calls, fakellm.Use{Name: "look_up", Input: input})
				}
				return r
			}})
			req := ask(schema(t, receipt))
			req.Tools = []llm.Tool{lookUp}
			res, err := p.Complete(t.Context(), req)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			calls := res.Calls()
			if len(calls) != 3 || res.Stop != llm.StopTool || res.Text() != "Let me see." {
				t.Fatalf("%s: %d calls, stop %q, text %q", name, len(calls), res.Stop, res.Text())
			}
			results := llm.Message{Role: llm.User}
			for i, c := range calls {
				var in struct{ Name string }
				if err := json.Unmarshal(c.Input, &in); err != nil || in.Name != names[i] || c.Name != "look_up" {
					t.Errorf("%s: call %d is %+v", name, i, c)
				}
				results.Parts = append(results.Parts, llm.Part{Result: &llm.ToolResult{ID: c.ID, Name: c.Name, Text: "result of " + names[i], Error: i == 1}})
			}
			for _, last := range []bool{false, true} { // as the model likes, and as it has to
				next := *req
				next.NoCalls = last
				next.Messages = append(slices.Clone(req.Messages), llm.Message{Role: llm.Assistant, Parts: res.Parts}, results)
				answer, err := (&decorator.Structured{Provider: p}).Complete(t.Context(), &next)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if !strings.Contains(string(answer.Answer), "Gardenia") {
					t.Errorf("%s: answer %s", name, answer.Answer)
				}
			}
			entries := fake.Entries()
			if first := entries[1]; first.NoCalls || answersByTool(first.Wire) == (len(first.Tools) == 1) {
				t.Errorf("%s: tools %v, no calls: %v", name, first.Tools, first.NoCalls)
			}
			last := entries[len(entries)-1]
			if name != "ollama" && !last.NoCalls || name == "ollama" && len(last.Tools) > 0 {
				t.Errorf("%s: the model may still call tools: %s", name, last.Body)
			}
			for i, u := range last.Uses {
				if !u.Answered || u.Result != "result of "+names[i] || u.Turn != 1 || (name == "anthropic" || name == "gemini" || name == "bedrock") && u.Error != (i == 1) {
					t.Errorf("%s: the model was told %+v", name, u)
				}
			}
			kept := thinking
			if last.Wire == fakellm.Gemini { // which hands out a sign of it
				kept = base64.StdEncoding.EncodeToString([]byte(thinking))
			}
			if !strings.Contains(string(last.Body), kept) {
				t.Errorf("%s: what the model thought is not handed back: %s", name, last.Body)
			}
		}
	}
}

// answersByTool reports whether a format has the answer given by a tool where others may be called.
func answersByTool(w fakellm.Wire) bool { return w == fakellm.Ollama || w == fakellm.Gemini }

// An answer that a server was to give by a tool, and gave as a text, is one.
func TestAnswerBesideTools(t *testing.T) {
	lookUp := llm.Tool{Name: "look_up", Schema: schema(t, `{"type":"object","properties":{"name":{"type":"string"}}}`)}
	for _, name := range vendorNames {
		p, _ := start(t, name, fakellm.Config{Model: says(goodReceipt)}, func(c *llm.Config) { c.ToolMode = true })
		req := ask(schema(t, receipt))
		req.Tools = []llm.Tool{lookUp}
		res, err := (&decorator.Structured{Provider: p}).Complete(t.Context(), req)
		if err != nil || !strings.Contains(string(res.Answer), "Gardenia") {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
}

func TestAKeyIsNotCutInHalf(t *testing.T) {
	for _, lead := range []int{0, 580, 590, 600} {
		body, err := json.Marshal(map[string]any{"error": map[string]string{"message": strings.Repeat("x", lead) + " AKey0123456789abcdef"}})
		if err != nil {
			t.Fatal(err)
		}
		p, err := vendors.New("openai", llm.Config{
			Key: llm.NewKey("AKey0123456789abcdef"), BaseURL: "http://vendor.test",
			Transport: canned{media: "application/json", body: strings.NewReader(string(body))},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Complete(t.Context(), ask(nil))
		if err == nil || strings.Contains(err.Error(), "AKey") {
			t.Errorf("after %d letters: %v", lead, err)
		}
	}
}

func TestRequestsAsTheyGoOut(t *testing.T) {
	for _, c := range []struct {
		vendor string
		has    []string
		not    []string
	}{
		{"anthropic", []string{`"output_config":{"format":{"schema":`, `"type":"json_schema"`, `"stream":true`, `"additionalProperties":false`, `{minLength: 1}`}, []string{"temperature", "top_p", "top_k", "x-coditect"}},
		{"openai", []string{`"strict":true`, `"include_usage":true`, `"required":["company","total","date"]`, `"type":["string","null"]`, `"max_tokens":500`}, []string{"temperature", "top_p", "x-coditect", "max_completion_tokens"}},
		{"bedrock", []string{`"outputConfig":{"textFormat":{"type":"json_schema"`, `"maxTokens":500`, `"system":[{"text"`, `\"additionalProperties\":false`}, []string{"temperature", "topP", "x-coditect", "toolConfig", `"model"`}},
		{"gemini", []string{`"responseMimeType":"application/json"`, `"responseJsonSchema":{"type":"object"`, `"maxOutputTokens":500`, `"systemInstruction"`}, []string{"temperature", "topP", "x-coditect", "additionalProperties", "toolConfig"}},
		{"ollama", []string{`"num_ctx":16384`, `"num_predict":500`, `"format":{"type":"object"`, `"stream":true`}, []string{"temperature", "x-coditect"}},
	} {
		p, fake := start(t, c.vendor, fakellm.Config{Model: says(goodReceipt)})
		if _, err := p.Complete(t.Context(), ask(schema(t, receipt))); err != nil {
			t.Fatal(err)
		}
		body := string(fake.Entries()[0].Body)
		for _, want := range c.has {
			if !strings.Contains(body, want) {
				t.Errorf("%s: %s is missing in %s", c.vendor, want, body)
			}
		}
		for _, not := range c.not {
			if strings.Contains(body, not) {
				t.Errorf("%s: %s stands in %s", c.vendor, not, body)
			}
		}
	}
}

// TestSchemasKeepTheirOrder holds for every vendor: models fill in fields in the
// order in which the schema has them.
func TestSchemasKeepTheirOrder(t *testing.T) {
	const doc = `{"type": "object", "required": ["zone", "amount", "parties"], "additionalProperties": false, "properties": {
		"zone": {"type": "string"}, "amount": {"type": "number"},
		"parties": {"type": "array", "items": {"type": "object", "required": ["name", "address"], "additionalProperties": false,
			"properties": {"name": {"type": "string"}, "address": {"type": "string"}}}}}}`
	for _, name := range vendorNames {
		for _, tool := range []bool{false, true} {
			p, fake := start(t, name, fakellm.Config{Model: says(`{"zone":"","amount":1,"parties":[]}`)}, func(c *llm.Config) { c.ToolMode = tool })
			if _, err := p.Complete(t.Context(), ask(schema(t, doc))); err != nil {
				t.Fatal(err)
			}
			sent := string(fake.Entries()[0].Schema)
			at := 0
			for _, word := range []string{`"zone":`, `"amount":`, `"parties":`, `"name":`, `"address":`} {
				i := strings.Index(sent[at:], word)
				if i < 0 {
					t.Fatalf("%s, tool %v: %s is not where its author put it: %s", name, tool, word, sent)
				}
				at += i
			}
			for _, required := range []string{`["zone","amount","parties"]`, `["name","address"]`} {
				if !strings.Contains(sent, required) {
					t.Errorf("%s, tool %v: the schema does not require %s: %s", name, tool, required, sent)
				}
			}
		}
	}
}

// Prices, breakers and limits know a vendor by its provider's name.
func TestARowHasTheNameOfItsProvider(t *testing.T) {
	for _, v := range vendors.All() {
		p, err := v.New(llm.Config{Key: llm.NewKey(testKey)})
		if err != nil {
			t.Fatal(err)
		}
		if p.Name() != v.Name {
			t.Errorf("the provider of %q is named %q", v.Name, p.Name())
		}
	}
}

// TestNobodyListens: an address that was never reached is not waited for, unless the process says
// that its models may start after it, and one that was reached is.
func TestNobodyListens(t *testing.T) {
	for _, name := range vendorNames {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
		vendor := func(patient bool) llm.Provider {
			p, err := vendors.New(name, llm.Config{Key: llm.NewKey(testKey), BaseURL: server.URL, Patient: patient})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		once, first, patient := vendor(false), vendor(false), vendor(true)
		if _, err := once.Complete(t.Context(), ask(nil)); err == nil {
			t.Fatal("a bad gateway answers")
		}
		server.Close()
		for what, tt := range map[string]struct {
			p    llm.Provider
			kind llm.Kind
		}{"never reached": {first, llm.NotThere}, "reached before": {once, llm.Network}, "patient": {patient, llm.Network}} {
			_, err := tt.p.Complete(t.Context(), ask(nil))
			e, ok := errors.AsType[*llm.Error](err)
			if !ok || e.Kind != tt.kind || e.Class != tt.kind.Class() || !strings.Contains(e.Message, server.Listener.Addr().String()) {
				t.Errorf("%s, %s: %v, want an error of kind %q with the address", name, what, err, tt.kind)
			}
		}
	}
}

// errorOf returns an error of a provider.
func errorOf(t *testing.T, err error) *llm.Error {
	t.Helper()
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		t.Fatalf("%v is no error of a provider", err)
	}
	return e
}
