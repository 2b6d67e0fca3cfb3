package openai_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/openai"
)

// Servers that are only alike may give a call no id. It has to have one, to be
// answered.
func TestACallWithoutAnIDGetsOne(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"look_up","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`+
			"\n\ndata: [DONE]\n\n") // the client is ours
	}))
	defer server.Close()
	p, err := openai.New(llm.Config{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.Complete(t.Context(), &llm.Request{Model: "m-1", Messages: []llm.Message{llm.Say(llm.User, "Look it up.")}})
	if err != nil || len(res.Calls()) != 1 || res.Calls()[0].ID != "call_0" {
		t.Errorf("%+v, %v", res, err)
	}
}
