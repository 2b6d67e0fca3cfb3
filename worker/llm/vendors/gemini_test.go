package vendors_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/vendors"
)

// Parts of requests of Google's format.
const (
	responseSchema = `"responseJsonSchema"`
	responseType   = `"responseMimeType"`
	instruction    = `"systemInstruction"`
	functions      = `"functionDeclarations"`
	callingRules   = `"functionCallingConfig"`
	outputBound    = `"maxOutputTokens":500`
)

// refusedByGoogle are words of Google's servers, as users of several libraries met them.
var refusedByGoogle = []refused{
	{name: "too many states", vendor: "gemini", sent: minimum, status: 400, words: `{"error":{"code":400,"message":"The specified schema produces a constraint that has too many states for serving. Typical causes of this error are schemas with lots of text, schemas with long array length limits, or schemas using complex value matchers.","status":"INVALID_ARGUMENT"}}`},
	{name: "a keyword", vendor: "gemini", sent: minimum, status: 400, words: `{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"minimum\" at 'generation_config.response_schema.properties[1].value': Cannot find field.","status":"INVALID_ARGUMENT"}}`},
	{name: "the field of the schema", vendor: "gemini", sent: responseSchema, status: 400, words: `{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"responseJsonSchema\" at 'generation_config': Cannot find field.","status":"INVALID_ARGUMENT"}}`},
	{name: "the mode of JSON", vendor: "gemini", sent: responseType, status: 400, words: `{"error":{"code":400,"message":"JSON mode is not enabled for models/gemma-3-27b-it","status":"INVALID_ARGUMENT"}}`},
	{name: "instructions", vendor: "gemini", sent: instruction, status: 400, words: `{"error":{"code":400,"message":"Developer instruction is not enabled for models/gemma-3-27b-it","status":"INVALID_ARGUMENT"}}`},
	{name: "a forced call", vendor: "gemini", tool: true, sent: callingRules, status: 400, words: `{"error":{"code":400,"message":"Forced function calling (ANY mode) is not supported for this model.","status":"INVALID_ARGUMENT"}}`},
	{name: "functions", vendor: "gemini", tool: true, sent: functions, status: 400, words: `{"error":{"code":400,"message":"Function calling is not enabled for models/gemma-3-27b-it","status":"INVALID_ARGUMENT"}}`},
	{name: "the length of an answer", vendor: "gemini", sent: outputBound, status: 400, words: `{"error":{"code":400,"message":"Unable to submit request because it has a maxOutputTokens value of 500 but the supported range is from 1 (inclusive) to 401 (exclusive). Update the value and try again.","status":"INVALID_ARGUMENT"}}`},
	{name: "nesting", vendor: "gemini", sent: responseSchema, status: 400, words: `{"error":{"code":400,"message":"A schema in GenerationConfig in the request exceeds the maximum allowed nesting depth.","status":"INVALID_ARGUMENT"}}`},
	{name: "no reason", vendor: "gemini", sent: responseType, status: 400, words: `{"error":{"code":400,"message":"Request contains an invalid argument.","status":"INVALID_ARGUMENT"}}`},
}

// askGoogle asks a server whose answers are a status and a body each, the last of them again and
// again. It returns what the server was sent, and the response.
func askGoogle(t *testing.T, req *llm.Request, answers ...string) (sent []map[string]any, last *llm.Response) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		sent = append(sent, body)
		status, answer, _ := strings.Cut(answers[min(len(sent), len(answers))-1], " ")
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		if status != "200" {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = io.WriteString(w, answer) // the client is ours
	}))
	defer server.Close()
	p, err := vendors.New("gemini", llm.Config{Key: llm.NewKey(testKey), BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if last, err = p.Complete(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	return sent, last
}

// contentsOf returns the parts of a turn of a request, as JSON.
func contentsOf(t *testing.T, body map[string]any, turn int) string {
	t.Helper()
	raw, err := json.Marshal(body["contents"].([]any)[turn].(map[string]any)["parts"])
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// What a model thought comes as signatures on parts. Each goes back on the part that it came on,
// parts of the vendor's own tools go back as they are, and a call without an id gets none.
func TestSignaturesGoBackWhereTheyCameFrom(t *testing.T) {
	const parts = `[{"executableCode":{"code":"1+1","language":"PYTHON"},"thoughtSignature":"c2Fh"},{"text":"Let me look.","thoughtSignature":"c2Fi"},` +
		`{"functionCall":{"args":{"name":"Ümlaut"},"name":"look_up"},"thoughtSignature":"c2Fj"},{"functionCall":{"args":{},"id":"fc_2","name":"look_up"}},{"text":"","thoughtSignature":"c2Fk"}]`
	const answer = `{"candidates":[{"content":{"role":"model","parts":` + parts + `},"finishReason":"STOP","index":0}],` +
		`"usageMetadata":{"promptTokenCount":40,"cachedContentTokenCount":30,"toolUsePromptTokenCount":2,"candidatesTokenCount":9,"thoughtsTokenCount":5,"totalTokenCount":56},"modelVersion":"gemini-3-flash","responseId":"r-1"}`
	req := ask(nil)
	req.Tools = []llm.Tool{{Name: "look_up", Schema: schema(t, `{"type":"object","properties":{"name":{"type":"string"}}}`)}}
	_, res := askGoogle(t, req, "200 "+answer)

	want := llm.Usage{Input: 12, CacheRead: 30, Output: 14, Reported: true}
	if res.Usage != want || res.Written == nil || *res.Written != 9 || res.Stop != llm.StopTool || res.Model != "gemini-3-flash" || res.RequestID != "r-1" {
		t.Errorf("usage %+v, want %+v; %+v", res.Usage, want, res)
	}
	calls := res.Calls()
	if len(calls) != 2 || calls[0].ID == "" || calls[0].ID == calls[1].ID || res.Text() != "Let me look." {
		t.Fatalf("calls %+v, text %q", calls, res.Text())
	}

	results := llm.Message{Role: llm.User}
	for _, c := range calls {
		results.Parts = append(results.Parts, llm.Part{Result: &llm.ToolResult{ID: c.ID, Name: c.Name, Text: "nothing", Error: c.ID == "fc_2"}})
	}
	next := *req
	next.Messages = append(next.Messages, llm.Message{Role: llm.Assistant, Parts: res.Parts}, results)
	sent, _ := askGoogle(t, &next, "200 "+answer)
	var was, is any
	if json.Unmarshal([]byte(parts), &was) != nil || json.Unmarshal([]byte(contentsOf(t, sent[0], 1)), &is) != nil {
		t.Fatal("the parts are no JSON")
	}
	if diff := cmp.Diff(was, is); diff != "" {
		t.Errorf("the turn goes back otherwise than it came (-came +goes):\n%s", diff)
	}
	const told = `[{"functionResponse":{"name":"look_up","response":{"output":"nothing"}}},{"functionResponse":{"id":"fc_2","name":"look_up","response":{"error":"nothing"}}}]`
	if got := contentsOf(t, sent[0], 2); got != told {
		t.Errorf("the model is told %s, want %s", got, told)
	}
}

// A conversation that another model had bears no signatures. Where they are wanted, the first call
// of each turn says that it has none.
func TestCallsOfOtherModelsAreTaken(t *testing.T) {
	req := ask(nil)
	req.Tools = []llm.Tool{{Name: "look_up", Schema: schema(t, `{"type":"object"}`)}}
	call := func(id string) llm.Part {
		return llm.Part{Call: &llm.ToolCall{ID: id, Name: "look_up", Input: json.RawMessage(`{}`)}}
	}
	result := func(id string) llm.Part { return llm.Part{Result: &llm.ToolResult{ID: id, Name: "look_up", Text: "x"}} }
	req.Messages = append(req.Messages,
		llm.Message{Role: llm.Assistant, Parts: []llm.Part{{Opaque: json.RawMessage(`{"type":"thinking","thinking":"hm"}`)}, call("a"), call("b")}},
		llm.Message{Role: llm.User, Parts: []llm.Part{result("a"), result("b")}},
	)
	sent, _ := askGoogle(t, req,
		"400 "+`{"error":{"code":400,"message":"Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly.","status":"INVALID_ARGUMENT"}}`,
		"200 "+`{"candidates":[{"content":{"parts":[{"text":"ok"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":1,"totalTokenCount":5}}`)
	const want = `[{"functionCall":{"args":{},"id":"a","name":"look_up"},"thoughtSignature":"c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="},{"functionCall":{"args":{},"id":"b","name":"look_up"}}]`
	if len(sent) != 2 || contentsOf(t, sent[1], 1) != want {
		t.Errorf("%d calls, the last with %s, want 2 and %s", len(sent), contentsOf(t, sent[len(sent)-1], 1), want)
	}
}

// A prompt or an answer that the vendor's filters take is filtered, with the reason; a call that is
// none is worth another attempt, and was paid for.
func TestEndsOfGoogle(t *testing.T) {
	const usage = `"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":1,"totalTokenCount":5}`
	for name, c := range map[string]struct {
		body string
		kind llm.Kind
		says string
	}{
		"blocked prompt":   {`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":4,"totalTokenCount":4}}`, llm.Filtered, "PROHIBITED_CONTENT"},
		"model armor":      {`{"promptFeedback":{"blockReason":"MODEL_ARMOR","blockReasonMessage":"The prompt violated filters."},"usageMetadata":{"trafficType":"ON_DEMAND"}}`, llm.Filtered, "violated filters"},
		"safety":           {`{"candidates":[{"content":{},"finishReason":"SAFETY"}],` + usage + `}`, llm.Filtered, "SAFETY"},
		"recitation":       {`{"candidates":[{"content":{"parts":[{"text":"It was the best"}]},"finishReason":"RECITATION"}],` + usage + `}`, llm.Filtered, "RECITATION"},
		"personal data":    {`{"candidates":[{"finishReason":"SPII"}],` + usage + `}`, llm.Filtered, "SPII"},
		"malformed call":   {`{"candidates":[{"content":{},"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: print(default_api.f())"}],` + usage + `}`, llm.Garbled, "print"},
		"unknown tool":     {`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"run"}}]},"finishReason":"UNEXPECTED_TOOL_CALL"}],` + usage + `}`, llm.Garbled, "UNEXPECTED_TOOL_CALL"},
		"thought too long": {`{"candidates":[{"content":{"role":"model"},"finishReason":"MAX_TOKENS"}],"usageMetadata":{"promptTokenCount":4,"thoughtsTokenCount":1,"totalTokenCount":5}}`, llm.TooLarge, ""},
		"silence":          {`{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}],` + usage + `}`, llm.Empty, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := offline(t, "gemini", canned{"application/json", strings.NewReader(c.body)})
			_, err := (&decorator.Structured{Provider: p, Repairs: -1}).Complete(t.Context(), ask(schema(t, receipt)))
			e := errorOf(t, err)
			if e.Kind != c.kind || !strings.Contains(e.Error(), c.says) {
				t.Errorf("%v, want one of the kind %v that says %q", err, c.kind, c.says)
			}
			if want := int64(5); strings.Contains(c.body, `"totalTokenCount":5`) && e.Usage.Total() != want {
				t.Errorf("%d tokens are told, want %d", e.Usage.Total(), want)
			}
		})
	}
}

// A schema as the vendor takes it: references stand alone, constants are enumerations of one, nothing
// is required that is not named, and what it does not know is told in words.
func TestSchemasForGoogle(t *testing.T) {
	const doc = `{"type":"object","required":["kind","to","elsewhere"],"$defs":{"party":{"type":"object","properties":{"name":{"type":"string","maxLength":9}}}},"properties":{
		"kind":{"const":"invoice"},"to":{"$ref":"#/$defs/party","description":"the buyer"},"at":{"type":["string","null"],"format":"date"},"mail":{"type":"string","format":"email"},
		"sum":{"oneOf":[{"type":"number"},{"type":"string","pattern":"^x"}]}}}`
	p, fake := start(t, "gemini", fakellm.Config{Model: says(`{"kind":"invoice","to":{"name":"A"},"elsewhere":1}`)})
	if _, err := p.Complete(t.Context(), ask(schema(t, doc))); err != nil {
		t.Fatal(err)
	}
	sent := string(fake.Entries()[0].Schema)
	for _, want := range []string{
		`"kind":{"enum":["invoice"]}`, `"to":{"$ref":"#/$defs/party"}`, `"at":{"type":["string","null"],"format":"date"}`,
		`"required":["kind","to"]`, `{maxLength: 9}`, `"anyOf":[{"type":"number"}`, `{format: \"email\"}`,
	} {
		if !strings.Contains(sent, want) {
			t.Errorf("%s is missing in %s", want, sent)
		}
	}
	if _, err := p.Complete(t.Context(), ask(schema(t, `{"type":"object","properties":{"a":{"allOf":[{"type":"string"}]}}}`))); err == nil || !strings.Contains(err.Error(), "allOf") {
		t.Errorf("allOf: %v", err)
	}
}
