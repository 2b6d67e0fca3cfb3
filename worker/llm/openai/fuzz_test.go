package openai_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/openai"
)

// canned is a server's answer without a network.
type canned struct {
	media string
	body  []byte
}

// RoundTrip implements http.RoundTripper.
func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {c.media}}, Body: io.NopCloser(bytes.NewReader(c.body)), Request: r,
	}, nil
}

// Nothing that a server sends, whole or in pieces, by either interface, brings a worker down or
// counts below zero.
func FuzzAnswers(f *testing.F) {
	f.Add(false, false, []byte(`{"choices":[{"message":{"content":[{"text":"a"}],"tool_calls":[{"function":{"name":"x","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`))
	f.Add(false, true, []byte(`{"object":"response","status":"completed","output":[`+says+`,`+calls+`,`+thought+`]`+counted+`}`))
	f.Add(true, true, []byte(item(thought)+item(calls)+end("completed", counted)))
	f.Add(true, true, []byte(end("failed", `,"error":{"code":7}`)))
	f.Add(true, true, []byte("event: error\ndata: {\"type\":\"error\",\"error\":[]}\n\n"))
	f.Fuzz(func(t *testing.T, stream, responses bool, body []byte) {
		media, at := "application/json", "http://vendor.test/v1"
		if stream {
			media = "text/event-stream"
		}
		if responses {
			at += "/responses"
		}
		p, err := openai.New(llm.Config{BaseURL: at, Transport: canned{media, body}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := p.Complete(t.Context(), &llm.Request{Model: "m", Messages: []llm.Message{llm.Say(llm.User, "x")}})
		if err != nil {
			if _, ok := errors.AsType[*llm.Error](err); !ok {
				t.Errorf("an error of another type: %v", err)
			}
			return
		}
		if u := res.Usage; u.Input < 0 || u.Output < 0 || u.CacheRead < 0 || u.CacheWrite < 0 || res.Written != nil && (*res.Written < 0 || *res.Written > u.Output) {
			t.Errorf("usage below zero, or more written than there is: %+v, %v", u, res.Written)
		}
		for _, c := range res.Calls() {
			if c.ID == "" {
				t.Errorf("a call has no id: %+v", c)
			}
		}
	})
}
