package ollama_test

import (
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/ollama"
)

// start returns a provider whose vendor is a scripted server.
func start(t *testing.T, script fakellm.Config, window int64) (llm.Provider, *fakellm.Server) {
	t.Helper()
	fake := fakellm.New(script)
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	p, err := ollama.New(llm.Config{Key: llm.NewKey("sk-test-0123456789abcdefghij"), BaseURL: server.URL, Window: window})
	if err != nil {
		t.Fatal(err)
	}
	return p, fake
}

func says(fakellm.Call) fakellm.Reply { return fakellm.Reply{Text: `{"total":60.30}`} }

func TestSetsItsWindow(t *testing.T) {
	p, fake := start(t, fakellm.Config{Model: says}, 1000)
	req := &llm.Request{
		Model: "m-1", System: "Extract the receipt.", MaxTokens: 500,
		Messages: []llm.Message{llm.Say(llm.User, "GARDENIA BAKERIES\nTOTAL 60.30")},
	}
	if _, err := p.Complete(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if got := fake.Entries()[0].Window; got != 1000 {
		t.Errorf("num_ctx is %d, want 1000", got)
	}
	req.Prompt = 501
	_, err := p.Complete(t.Context(), req)
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.TooLarge || len(fake.Entries()) != 1 {
		t.Errorf("a prompt that does not fit: error %v after %d calls, want too large before the call", err, len(fake.Entries()))
	}
	req.Prompt, req.MaxTokens = 400, 100 // the server reads far less: its window is not what it was asked for
	_, err = p.Complete(t.Context(), req)
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.TooLarge || e.Usage.In() == 0 {
		t.Errorf("a prompt that was cut: error %v, want too large with its usage", err)
	}
}
