package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// An asked is a request as a server read it.
type asked struct {
	method, address, body string
	header                http.Header
}

// serve returns a dialer of a server that gives one answer to everything, and what it was asked.
func serve(t *testing.T, format wire.Format, cfg llm.Config, status int, media, answer string) (*wire.Dialer, *asked) {
	t.Helper()
	last := new(asked)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*last = asked{r.Method, r.URL.String(), string(body), r.Header}
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	cfg.BaseURL = server.URL + cfg.BaseURL
	d, err := wire.NewDialer(cfg, "", format)
	if err != nil {
		t.Fatal(err)
	}
	return d, last
}

// A call sends to a path below the base, whose query is kept.
func TestAddresses(t *testing.T) {
	for _, tt := range []struct{ base, path, want string }{
		{"", "v1/messages", "/v1/messages"},
		{"/v1", "chat/completions", "/v1/chat/completions"},
		{"/v1/", "/chat/completions", "/v1/chat/completions"},
		{"/a%20b", "models/x%2Fy:generate?alt=sse", "/a%20b/models/x%2Fy:generate?alt=sse"},
		{"/v1?version=3", "x:stream", "/v1/x:stream?version=3"},
		{"/v1?version=3", "x?alt=sse", "/v1/x?version=3&alt=sse"},
	} {
		d, last := serve(t, wire.Format{}, llm.Config{BaseURL: tt.base}, 200, "application/json", `{"n":1}`)
		c := d.BeginCall(t.Context(), new(llm.Request))
		var answer struct{ N int }
		if err := c.SendFor(wire.Request{Path: tt.path}, &answer); err != nil || answer.N != 1 {
			t.Errorf("%q below %q: %v, %+v", tt.path, tt.base, err, answer)
		}
		c.EndCall()
		if last.address != tt.want || last.method != http.MethodGet || last.header.Get("Content-Type") != "" {
			t.Errorf("%q below %q: asked %s %s, want %s", tt.path, tt.base, last.method, last.address, tt.want)
		}
	}
}

// What is signed is what is sent.
func TestSign(t *testing.T) {
	var signed []byte
	sign := func(req *http.Request, body []byte) error {
		signed = bytes.Clone(body)
		req.Header.Set("Authorization", "Signature of "+req.URL.Path)
		return nil
	}
	d, last := serve(t, wire.Format{Sign: sign}, llm.Config{}, 200, "text/event-stream; charset=utf-8", "data: 1\n\ndata: 2\n\n")
	c := d.BeginCall(t.Context(), new(llm.Request))
	defer c.EndCall()
	events, err := c.SendStream(wire.Request{Path: "ask", Body: map[string]string{"say": "<a & b>"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for e, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(e.Data))
	}
	if diff := cmp.Diff([]string{"1", "2"}, got); diff != "" {
		t.Errorf("events differ (-want +got):\n%s", diff)
	}
	if last.body != string(signed) || last.method != http.MethodPost || last.header.Get("Authorization") != "Signature of /ask" || last.header.Get("Content-Type") != "application/json" {
		t.Errorf("sent %q, signed %q, as %s with %v", last.body, signed, last.method, last.header)
	}
}

// A request that cannot be signed is not sent, and what proves who asks is in no error.
func TestProofs(t *testing.T) {
	why := errors.New("no credentials")
	d, last := serve(t, wire.Format{Sign: func(*http.Request, []byte) error { return why }}, llm.Config{}, 200, "application/json", `{}`)
	c := d.BeginCall(t.Context(), new(llm.Request))
	err := c.SendFor(wire.Request{Path: "ask"}, new(struct{}))
	c.EndCall()
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.Auth || !errors.Is(err, why) || e.Sent || last.method != "" {
		t.Errorf("error %v, sent %v", err, last)
	}

	const token = "ya29.a0AfH6SMBx-0123456789"
	sign := func(req *http.Request, _ []byte) error {
		req.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	d, _ = serve(t, wire.Format{Sign: sign}, llm.Config{}, 401, "application/json", `{"error":{"message":"the token `+token+` is worn out"}}`)
	c = d.BeginCall(t.Context(), new(llm.Request))
	defer c.EndCall()
	err = c.SendFor(wire.Request{Path: "ask"}, new(struct{}))
	if err == nil || strings.Contains(err.Error(), token[5:]) || !strings.Contains(err.Error(), "is worn out") {
		t.Errorf("error %v, want one without the token", err)
	}
}

// An answer of another form is no answer, and neither is one that is too long.
func TestAnswersOfOtherForms(t *testing.T) {
	for _, tt := range []struct {
		name, media, answer string
		kind                llm.Kind
	}{
		{"a page", "text/html", "<html>", llm.NotAPI},
		{"nothing", "application/json", "", llm.CutOff},
		{"broken off", "application/json", `{"n":`, llm.CutOff},
		{"no JSON", "application/json", `vectors`, llm.Garbled},
		{"of another type", "application/json", `{"n":"many"}`, llm.Garbled},
		{"an error", "text/plain", `{"error":{"message":"x","code":"model_not_found"}}`, llm.NotFound},
		{"too long", "application/json", `{"n":` + strings.Repeat(" ", 2000) + `1}`, llm.Garbled},
	} {
		d, _ := serve(t, wire.Format{}, llm.Config{MaxBytes: 1000}, 200, tt.media, tt.answer)
		c := d.BeginCall(t.Context(), new(llm.Request))
		err := c.SendFor(wire.Request{Path: "ask"}, new(struct{ N int }))
		c.EndCall()
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != tt.kind || e.Status != 200 {
			t.Errorf("%s: %v, want one of the kind %v", tt.name, err, tt.kind)
		}
	}
}
