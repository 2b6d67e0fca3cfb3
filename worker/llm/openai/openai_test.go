package openai_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/openai"
)

// Servers that are only alike may give a call no id. It has to have one, to be
// answered.
func TestACallWithoutAnIDGetsOne(t *testing.T) {
	res, err := answering(t, "text/event-stream", `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"look_up","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`+
		"\n\ndata: [DONE]\n\n")
	if err != nil || len(res.Calls()) != 1 || res.Calls()[0].ID != "call_0" {
		t.Errorf("%+v, %v", res, err)
	}
}

// Servers write answers and usage in ways that the vendor does not.
func TestAnswersOfOtherServers(t *testing.T) {
	const usage = `,"usage":{"prompt_tokens":9,"completion_tokens":70}}`
	written := func(n int64) *int64 { return &n }
	for _, tt := range []struct {
		name, answer, text string
		usage              llm.Usage
		written            *int64
	}{
		{
			"text", `{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]` + usage,
			"yes",
			llm.Usage{Input: 9, Output: 70, Reported: true},
			written(70),
		},
		{
			"a list of texts and thinking", `{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]},{"type":"text","text":"y"},{"type":"text","text":"es"}]},"finish_reason":"stop"}]` + usage,
			"yes",
			llm.Usage{Input: 9, Output: 70, Reported: true},
			nil,
		},
		{
			"thinking that is not counted apart", `{"choices":[{"message":{"content":"yes","reasoning_content":"Hm."},"finish_reason":"stop"}]` + usage,
			"yes",
			llm.Usage{Input: 9, Output: 70, Reported: true},
			nil,
		},
		{
			"thinking that is", `{"choices":[{"message":{"content":"yes","reasoning_content":"Hm."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":70,"completion_tokens_details":{"reasoning_tokens":60}}}`,
			"yes",
			llm.Usage{Input: 9, Output: 70, Reported: true},
			written(10),
		},
		{
			"tokens written to a cache and read from it", `{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":2168,"completion_tokens":70,"prompt_tokens_details":{"cached_tokens":2161,"cache_write_tokens":2161}}}`,
			"yes",
			llm.Usage{CacheRead: 2161, CacheWrite: 7, Output: 70, Reported: true},
			written(70),
		},
		{
			"an error that is none", `{"error":null,"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]` + usage,
			"yes",
			llm.Usage{Input: 9, Output: 70, Reported: true},
			written(70),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res, err := answering(t, "application/json", tt.answer)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.usage, res.Usage); diff != "" || res.Text() != tt.text || res.Stop != llm.StopEnd {
				t.Errorf("text %q, stop %q, usage differs (-want +got):\n%s", res.Text(), res.Stop, diff)
			}
			if diff := cmp.Diff(tt.written, res.Written); diff != "" {
				t.Errorf("tokens of the text differ (-want +got):\n%s", diff)
			}
		})
	}
}

// What a server charged for an answer that an error ended is known.
func TestUsageBesideAnError(t *testing.T) {
	_, err := answering(t, "text/event-stream", `data: {"choices":[{"index":0,"delta":{"content":"ye"}}]}`+"\n\n"+
		`data: {"error":{"code":400,"message":"Token limit reached"},"choices":[],"usage":{"prompt_tokens":43,"completion_tokens":10}}`+"\n\ndata: [DONE]\n\n")
	want := llm.Usage{Input: 43, Output: 10, Reported: true}
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Usage != want {
		t.Errorf("%v, want an error with the usage %v", err, want)
	}
}

// answering returns what is read of a server's answer.
func answering(t *testing.T, media, answer string) (*llm.Response, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		_, _ = io.WriteString(w, answer) // the client is ours
	}))
	defer server.Close()
	p, err := openai.New(llm.Config{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return p.Complete(t.Context(), &llm.Request{Model: "m-1", Messages: []llm.Message{llm.Say(llm.User, "Is it?")}})
}
