package anthropic_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/anthropic"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// start returns a provider whose vendor is a scripted server.
func start(t *testing.T, script fakellm.Config) (llm.Provider, *fakellm.Server) {
	t.Helper()
	fake := fakellm.New(script)
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	p, err := anthropic.New(llm.Config{Key: llm.NewKey("sk-test-0123456789abcdefghij"), BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return p, fake
}

func says(fakellm.Call) fakellm.Reply { return fakellm.Reply{Text: `{"total":60.30}`} }

func ask(s *llm.Schema) *llm.Request {
	return &llm.Request{
		Model: "m-1", System: "Extract the receipt.", Schema: s, MaxTokens: 500,
		Messages: []llm.Message{llm.Say(llm.User, "GARDENIA BAKERIES\nTOTAL 60.30")},
	}
}

func schema(t *testing.T) *llm.Schema {
	t.Helper()
	s, err := llm.NewSchema("receipt", []byte(`{"type":"object","required":["total"],"properties":{"total":{"type":"number"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestVersion has the interface of the newest version asked, calls and
// counts alike, and nothing said to its vendor of our traces.
func TestVersion(t *testing.T) {
	p, fake := start(t, fakellm.Config{Model: says})
	if _, err := p.Complete(t.Context(), ask(schema(t))); err != nil {
		t.Fatal(err)
	}
	if _, err := p.(llm.Counter).Count(t.Context(), ask(nil)); err != nil {
		t.Fatal(err)
	}
	for _, e := range fake.Entries() {
		if got := e.Header.Get("Anthropic-Version"); got != "2026-10-21" || e.Header.Get("Traceparent") != "" {
			t.Errorf("version %q, trace %q; want 2026-10-21 and none", got, e.Header.Get("Traceparent"))
		}
	}
}

func TestCachesThePrefix(t *testing.T) {
	p, fake := start(t, fakellm.Config{Model: says, Cached: 100})
	req := ask(schema(t))
	req.System, req.Cache = strings.Repeat("Extract the receipt. ", 50), llm.FiveMinutes
	var got []llm.Usage
	for i := range 2 {
		req.Messages = []llm.Message{llm.Say(llm.User, fmt.Sprint("document ", i))}
		res, err := p.Complete(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, res.Usage)
	}
	if got[0].CacheWrite < 262 || got[0].CacheRead != 0 || got[1].CacheRead != got[0].CacheWrite || got[1].CacheWrite != 0 {
		t.Errorf("usage %+v, journal %+v; want the prefix written once and read once", got, fake.Entries())
	}
}

func TestCounts(t *testing.T) {
	p, _ := start(t, fakellm.Config{Model: says})
	req := ask(schema(t))
	n, err := p.(llm.Counter).Count(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.Complete(t.Context(), req)
	if err != nil || n != res.Usage.In() {
		t.Errorf("counted %d, took %+v (error %v)", n, res, err)
	}
}

// A server may give the input of a tool with its beginning, in place of pieces, and name no events.
func TestInputThatComesAtOnce(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, data := range []string{
			`{"type":"message_start","message":{"model":"m-1","usage":{"input_tokens":9,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"look","input":{"at":"a"}}}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}`,
			`{"type":"message_stop"}`,
		} {
			fmt.Fprintf(w, "data: %s\n\n", data)
		}
	}))
	defer server.Close()
	p, err := anthropic.New(llm.Config{Key: llm.NewKey("sk-test-0123456789abcdefghij"), BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.Complete(t.Context(), ask(nil))
	if err != nil || len(res.Calls()) != 1 || string(res.Calls()[0].Input) != `{"at":"a"}` || res.Usage.Output != 7 {
		t.Errorf("got %+v, %v", res, err)
	}
}
