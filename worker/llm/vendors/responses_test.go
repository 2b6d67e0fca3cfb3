package vendors_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// byResponses has a provider ask by Responses.
func byResponses(c *llm.Config) { c.BaseURL += "/responses" }

// Answers by Responses are whole and metered, in streams and at once, by a schema and by a tool.
func TestAnswersByResponses(t *testing.T) {
	for _, tool := range []bool{false, true} {
		for _, whole := range []bool{false, true} {
			t.Run(fmt.Sprintf("tool=%v/whole=%v", tool, whole), func(t *testing.T) {
				script := fakellm.Config{Key: testKey, Model: says(goodReceipt), Piece: 3, Lax: true, Style: func(fakellm.Call) fakellm.Style { return fakellm.Style{Whole: whole} }}
				p, fake := start(t, "openai", script, byResponses, func(c *llm.Config) { c.ToolMode = tool })
				res, err := (&decorator.Structured{Provider: p}).Complete(t.Context(), ask(schema(t, receipt)))
				if err != nil {
					t.Fatal(err)
				}
				entry := fake.Entries()[0]
				if string(res.Answer) != goodReceipt || entry.Wire != fakellm.Responses || entry.System != "Extract the receipt." || entry.MaxTokens != 500 {
					t.Errorf("answer %s of %+v", res.Answer, entry)
				}
				if !res.Usage.Reported || res.Usage.In() != entry.In() || res.Usage.Output != entry.Output || *res.Written != entry.Output {
					t.Errorf("usage %+v, want %d in and %d out", res.Usage, entry.In(), entry.Output)
				}
				if (entry.Tool == llm.AnswerTool) != tool {
					t.Errorf("the tool %q is forced, want that: %v", entry.Tool, tool)
				}
			})
		}
	}
}

// Each fault comes to its kind by Responses, too.
func TestFaultsByResponses(t *testing.T) {
	for _, o := range outcomes {
		if o.only != "" && o.only != "openai" || o.fault == fakellm.Stall {
			continue
		}
		p, fake := start(t, "openai", fakellm.Config{Model: says(goodReceipt), Fault: always(o.fault), Piece: 8}, byResponses)
		_, err := (&decorator.Structured{Provider: p, Repairs: -1}).Complete(t.Context(), ask(schema(t, receipt)))
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || e.Kind != o.kind {
			t.Errorf("%s: %v, want an error of the kind %v", o.fault, err, o.kind)
			continue
		}
		entry := fake.Entries()[0]
		if got, want := e.Usage.Total(), entry.In()+entry.Output; got != want {
			t.Errorf("%s: the error tells of %d tokens, the journal of %d", o.fault, got, want)
		}
		leaks(t, err)
	}
	for fault, stop := range map[fakellm.Fault]llm.Stop{
		fakellm.Truncated: llm.StopMax, fakellm.Filter: llm.StopFilter, fakellm.Refusal: llm.StopRefusal, fakellm.UnknownStop: "openai:bored",
	} {
		p, _ := start(t, "openai", fakellm.Config{Model: says(goodReceipt), Fault: always(fault)}, byResponses)
		if res, err := p.Complete(t.Context(), ask(nil)); err != nil || res.Stop != stop {
			t.Errorf("%s: %+v, %v; want it to end by %s", fault, res, err, stop)
		}
	}
}

// What a model thought before it called a tool comes back sealed, as it was, or the server refuses the
// conversation.
func TestThinkingIsKeptByResponses(t *testing.T) {
	p, fake := start(t, "openai", fakellm.Config{Model: func(c fakellm.Call) fakellm.Reply {
		if len(c.Uses) == 0 {
			return fakellm.Reply{Thinking: "Where is it?", Calls: []fakellm.Use{{Name: "look", Input: json.RawMessage(`{"place":"shelf"}`)}}}
		}
		return fakellm.Reply{Text: "It is on the " + c.Uses[0].Result}
	}}, byResponses)
	input, err := llm.NewSchema("look", []byte(`{"type":"object","required":["place"],"properties":{"place":{"type":"string"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	req := ask(nil)
	req.Tools = []llm.Tool{{Name: "look", Schema: input}}
	first, err := p.Complete(t.Context(), req)
	if err != nil || len(first.Calls()) != 1 || first.Stop != llm.StopTool {
		t.Fatalf("%+v, %v", first, err)
	}
	call := first.Calls()[0]
	result := llm.Message{Role: llm.User, Parts: []llm.Part{{Result: &llm.ToolResult{ID: call.ID, Name: call.Name, Text: "shelf"}}}}
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: first.Parts}, result)
	second, err := p.Complete(t.Context(), req)
	if err != nil || second.Text() != "It is on the shelf" {
		t.Errorf("%+v, %v", second, err)
	}

	req.Messages[1].Parts = []llm.Part{{Call: call}}
	if _, err := p.Complete(t.Context(), req); err == nil || len(fake.Entries()) < 3 {
		t.Error("a conversation is taken that leaves out what was thought")
	}
}

// What a server refuses of Responses is left out once and for all.
func TestRefusalsByResponses(t *testing.T) {
	for sent, words := range map[string]string{
		`"reasoning"`:        `{"error":{"message":"Unsupported parameter: 'reasoning.effort' is not supported with this model.","param":"reasoning.effort"}}`,
		`"verbosity"`:        `{"error":{"message":"Unsupported value: 'low' is not supported with the 'gpt-4o' model. Supported values are: 'medium'.","param":"text.verbosity"}}`,
		`"temperature"`:      `{"error":{"message":"Unsupported parameter: 'temperature' is not supported with this model.","param":"temperature"}}`,
		`"prompt_cache_key"`: `{"error":{"message":"Unknown parameter: 'prompt_cache_key'.","param":"prompt_cache_key"}}`,
		`"json_schema"`:      `{"error":{"message":"Invalid parameter: 'text.format' of type 'json_schema' is not supported with this model.","param":"text.format"}}`,
		`"stream":true`:      `{"error":{"message":"Your organization must be verified to stream this model.","param":"stream"}}`,
	} {
		var told []string
		p, fake := start(t, "openai", fakellm.Config{Model: says(goodReceipt), Lax: true, Rebuff: func(c fakellm.Call) *fakellm.Rebuff {
			if !bytes.Contains(c.Body, []byte(sent)) {
				return nil
			}
			return &fakellm.Rebuff{Status: 400, Body: words}
		}}, byResponses, func(c *llm.Config) { c.Manners = manners.NewStore(func(line string) { told = append(told, line) }) })
		req := ask(schema(t, receipt))
		req.Parameters, req.CacheKey = set(t, "effort", "low", "verbosity", "low", "temperature", "0"), "of-a-job"
		for range 2 {
			if res, err := (&decorator.Structured{Provider: p}).Complete(t.Context(), req); err != nil || string(res.Answer) != goodReceipt {
				t.Errorf("%s: %v, %v", sent, res, err)
			}
		}
		if n := len(fake.Entries()); n != 3 || len(told) != 1 {
			t.Errorf("%s: %d calls, told %q; want 3 calls and one line", sent, n, told)
		}
	}
}
