package openai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/openai"
)

// byResponses returns a provider whose server gives answers one after the other, the last of them
// again and again, and the bodies of what it was asked.
func byResponses(t *testing.T, answers ...string) (llm.Provider, *[]string) {
	t.Helper()
	asked := new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		answer := answers[min(len(*asked), len(answers)-1)]
		*asked = append(*asked, r.URL.Path+" "+string(body))
		switch {
		case strings.HasPrefix(answer, "event:"):
			w.Header().Set("Content-Type", "text/event-stream")
		case strings.HasPrefix(answer, `{"error":{`):
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
		default:
			w.Header().Set("Content-Type", "application/json")
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	p, err := openai.New(llm.Config{BaseURL: server.URL + "/v1/responses"})
	if err != nil {
		t.Fatal(err)
	}
	return p, asked
}

func lookUp(t *testing.T) *llm.Request {
	t.Helper()
	s, err := llm.NewSchema("place", []byte(`{"type":"object","required":["at"],"properties":{"at":{"type":"string"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	return &llm.Request{
		Model: "m-1", System: "Look.", Tools: []llm.Tool{{Name: "look", Schema: s}},
		Messages: []llm.Message{llm.Say(llm.User, "Where is it?")},
	}
}

// item returns the event of a finished item, and end that of a finished answer.
func item(raw string) string {
	return "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"item\":" + raw + "}\n\n"
}

func end(kind, rest string) string {
	return "event: response." + kind + "\ndata: {\"type\":\"response." + kind + "\",\"response\":{\"model\":\"m-1\",\"status\":\"" + kind + "\"" + rest + "}}\n\n"
}

const (
	thought = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"gAAAA=="}`
	calls   = `{"id":"fc_1","type":"function_call","call_id":"call_1","name":"look","arguments":"{\"at\":\"a\"}","status":"completed"}`
	says    = `{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"There."}]}`
	counted = `,"usage":{"input_tokens":9,"output_tokens":70,"output_tokens_details":{"reasoning_tokens":60}}`
)

// What a model thought before it called a tool goes back with the call, and nothing is stored at
// the vendor.
func TestThoughtsAreHandedBack(t *testing.T) {
	p, asked := byResponses(t, item(thought)+item(calls)+end("completed", counted), item(says)+end("completed", counted))
	req := lookUp(t)
	first, err := p.Complete(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if c := first.Calls(); len(c) != 1 || c[0].ID != "call_1" || string(c[0].Input) != `{"at":"a"}` || first.Stop != llm.StopTool || *first.Written != 10 {
		t.Fatalf("got %+v", first)
	}

	result := llm.Message{Role: llm.User, Parts: []llm.Part{{Result: &llm.ToolResult{ID: "call_1", Name: "look", Text: "here"}}}}
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: first.Parts}, result)
	last, err := p.Complete(t.Context(), req)
	if err != nil || last.Text() != "There." || last.Stop != llm.StopEnd {
		t.Fatalf("got %+v, %v", last, err)
	}

	var body struct{ Input json.RawMessage }
	path, raw, _ := strings.Cut((*asked)[1], " ")
	if err := json.Unmarshal([]byte(raw), &body); err != nil {
		t.Fatal(err)
	}
	want := `[{"role":"user","content":"Where is it?"},` +
		`{"type":"reasoning","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"gAAAA=="},` +
		`{"type":"function_call","call_id":"call_1","name":"look","arguments":"{\"at\":\"a\"}"},` +
		`{"type":"function_call_output","call_id":"call_1","output":"here"}]`
	if string(body.Input) != want || path != "/v1/responses" || !strings.Contains(raw, `"store":false`) {
		t.Errorf("%s was sent %s\nwant the input %s", path, raw, want)
	}
}

// A model that does not think refuses to be asked for what it thought. It is asked so once.
func TestModelsThatDoNotThink(t *testing.T) {
	p, asked := byResponses(t,
		`{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include","code":null}}`,
		item(says)+end("completed", counted))
	for range 2 {
		if res, err := p.Complete(t.Context(), lookUp(t)); err != nil || res.Text() != "There." {
			t.Fatalf("got %+v, %v", res, err)
		}
	}
	if len(*asked) != 3 || !strings.Contains((*asked)[0], "encrypted_content") || strings.Contains(strings.Join((*asked)[1:], ""), "encrypted_content") {
		t.Errorf("asked %q", *asked)
	}
}

func TestEndsOfResponses(t *testing.T) {
	for _, tt := range []struct {
		name, answer string
		stop         llm.Stop
		kind         llm.Kind
	}{
		{"whole", `{"object":"response","model":"m-1","status":"completed","output":[` + says + `]` + counted + `}`, llm.StopEnd, 0},
		{"at its bound", item(says) + end("incomplete", `,"incomplete_details":{"reason":"max_output_tokens"}`+counted), llm.StopMax, 0},
		{"by a filter", item(says) + end("incomplete", `,"incomplete_details":{"reason":"content_filter"}`), llm.StopFilter, 0},
		{"by a reason of tomorrow", item(says) + end("incomplete", `,"incomplete_details":{"reason":"bored"}`), "openai:bored", 0},
		{"refused", item(`{"type":"message","content":[{"type":"refusal","refusal":"No."}]}`) + end("completed", ""), llm.StopRefusal, 0},
		{"failed", item(says) + end("failed", `,"error":{"code":"rate_limit_exceeded","message":"slow down"}`), "", llm.RateLimited},
		{"an error", "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"x\",\"param\":null}\n\n", "", llm.Server},
		{"cut off", item(says), "", llm.CutOff},
		{"queued", `{"object":"response","status":"queued","output":[]}`, "", llm.Server},
		{"of another interface", `{"choices":[]}`, "", llm.NotAPI},
		{"no JSON for a tool", item(strings.Replace(calls, `"{\"at\":\"a\"}"`, `"at a"`, 1)) + end("completed", ""), "", llm.Garbled},
	} {
		p, _ := byResponses(t, tt.answer)
		res, err := p.Complete(t.Context(), lookUp(t))
		if e, ok := errors.AsType[*llm.Error](err); tt.kind != 0 && (!ok || e.Kind != tt.kind) {
			t.Errorf("%s: %v, want an error of the kind %v", tt.name, err, tt.kind)
		}
		if tt.kind == 0 && (err != nil || res.Stop != tt.stop) {
			t.Errorf("%s: %+v, %v; want it ended by %q", tt.name, res, err, tt.stop)
		}
	}
}

// Vectors are asked for as ever, beside the interface that the address names.
func TestVectorsBesideResponses(t *testing.T) {
	p, asked := byResponses(t, `{"data":[{"index":0,"embedding":[1,0.5]}],"model":"m-1"}`)
	got, err := p.(llm.Embedder).Embed(t.Context(), &llm.EmbedRequest{Model: "m", Texts: []string{"a heron"}})
	if err != nil || len(got.Vectors) != 1 || !strings.HasPrefix((*asked)[0], "/v1/embeddings ") {
		t.Errorf("%+v, %v, asked %q", got, err, *asked)
	}
}
