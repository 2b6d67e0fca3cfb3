package llm_test

import (
	"encoding/json"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
)

// A request that was kept is the same request, and so is an answer, whatever the model wrote.
func TestKeptRequestsAndResponses(t *testing.T) {
	schema, err := llm.NewSchema("answer", []byte(`{"type":"object","properties":{"b":{"type":"number"},"a":{"type":"string"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	req := &llm.Request{
		Model: "m", System: "instructions", Tools: []llm.Tool{{Name: "fetch", Description: "gets a page", Schema: schema}}, NoCalls: true,
		Messages: []llm.Message{
			llm.Say(llm.User, "question"),
			{Role: llm.Assistant, Parts: []llm.Part{{Call: &llm.ToolCall{ID: "1", Name: "fetch", Input: json.RawMessage(`{"a":"x"}`)}}, {Opaque: json.RawMessage(`{"t":1}`), Of: "v"}}},
			{Role: llm.User, Parts: []llm.Part{{Result: &llm.ToolResult{ID: "1", Name: "fetch", Text: "page", Error: true}, Cache: llm.OneHour}}},
		},
		Schema: schema, MaxTokens: 7, Prompt: 8, Cache: llm.FiveMinutes, Parameters: parameters.Set{Effort: "low", Stop: []string{"x"}}, CacheKey: "k",
	}
	raw, err := llm.EncodeRequest(req)
	if err != nil {
		t.Fatal(err)
	}
	got, err := llm.DecodeRequest(raw)
	if err != nil {
		t.Fatal(err)
	}
	same := cmp.Comparer(func(a, b *llm.Schema) bool { return a.Name() == b.Name() && a.Document() == b.Document() })
	if diff := cmp.Diff(req, got, same); diff != "" {
		t.Errorf("the request, want (-), got (+):\n%s", diff)
	}

	// A picture is never kept, so a request without it is not the same.
	seen := &llm.Request{Model: "m", Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{{Picture: llm.NewPicture("image/png", 1, 1, 1, []byte("x"))}}}}}
	if _, err := llm.EncodeRequest(seen); err == nil {
		t.Error("a request with a picture is kept")
	}

	for _, answer := range []string{``, `{"a":1}`, `this is no JSON`, `{"a":`} {
		res := &llm.Response{Model: "m", Parts: []llm.Part{{Text: answer}}, Stop: llm.StopEnd, Usage: llm.Usage{Input: 1, Output: 2, Reported: true}, Tier: llm.Batch}
		if answer != "" {
			res.Answer = json.RawMessage(answer)
		}
		raw, err := llm.EncodeResponse(res)
		if err != nil {
			t.Fatal(err)
		}
		got, err := llm.DecodeResponse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(res, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the answer %q, want (-), got (+):\n%s", answer, diff)
		}
	}
	for _, wrong := range []string{``, `null`, `[]`, `{}`} {
		if _, err := llm.DecodeResponse([]byte(wrong)); err == nil {
			t.Errorf("%q became an answer", wrong)
		}
	}
}

// What requests have in common is there once, however many are decoded: a batch has a hundred thousand of them.
func TestDecoderSharesWhatIsAlike(t *testing.T) {
	encode := func(system, document, question string) []byte {
		schema, err := llm.NewSchema("answer", []byte(document))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := llm.EncodeRequest(&llm.Request{Model: "m", System: system, Messages: []llm.Message{llm.Say(llm.User, question)}, Schema: schema})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}

	var d llm.Decoder
	decode := func(raw []byte) *llm.Request {
		req, err := d.Request(raw)
		if err != nil {
			t.Fatal(err)
		}
		return req
	}
	first := decode(encode("instructions", `{"type":"object"}`, "one"))
	second := decode(encode("instructions", `{"type":"object"}`, "two"))
	other := decode(encode("others", `{"type":"object","properties":{"a":{"type":"string"}}}`, "three"))
	if first.Schema != second.Schema || unsafe.StringData(first.System) != unsafe.StringData(second.System) {
		t.Error("two requests have the same instructions and schema, and each has its own")
	}
	if second.Messages[0].Parts[0].Text != "two" || other.System != "others" || other.Schema == first.Schema || len(other.Schema.Document()) < 40 {
		t.Errorf("requests were mixed: %+v, %+v", second, other)
	}
	if _, err := d.Request([]byte(`{"schema":{"name":"!","document":{}}}`)); err == nil {
		t.Error("a schema with a wrong name became one")
	}
}
