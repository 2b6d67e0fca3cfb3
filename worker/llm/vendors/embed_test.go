package vendors_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
	"github.com/coditect/mapreduce/worker/llm/vendors"
)

// embedWire is a vendor's interface for vectors, as its documentation has it.
var embedWire = map[string]struct{ path, request, answer, other, model string }{
	"openai": {
		"/v1/embeddings", `{"encoding_format":"float","input":["a heron","a river"],"model":"m"}`,
		`{"object":"list","data":[{"object":"embedding","index":1,"embedding":[0,-1.5]},{"object":"embedding","index":0,"embedding":[1,0.25]}],"model":"m-1","usage":{"prompt_tokens":7,"total_tokens":7}}`,
		`{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`, "",
	},
	"gemini": {
		"/v1/models/m:batchEmbedContents", `{"requests":[{"model":"models/m","content":{"parts":[{"text":"a heron"}]}},{"model":"models/m","content":{"parts":[{"text":"a river"}]}}]}`,
		`{"embeddings":[{"values":[1,0.25]},{"values":[0,-1.5]}],"usageMetadata":{"promptTokenCount":7,"totalTokenCount":7}}`,
		`{"embeddings":[{"values":[1]},{"values":[1,2]}]}`, "m", // it does not say which model answered
	},
	"ollama": {
		"/v1/api/embed", `{"input":["a heron","a river"],"model":"m"}`,
		`{"model":"m-1","embeddings":[[1,0.25],[0,-1.5]],"total_duration":14143917,"prompt_eval_count":7}`,
		`{"embeddings":[[1],[1,2]]}`, "",
	},
}

// TestEmbed asks both interfaces for vectors, on a server that takes their form alone.
func TestEmbed(t *testing.T) {
	for vendor, w := range embedWire {
		t.Run(vendor, func(t *testing.T) {
			answers := []func(http.ResponseWriter){}
			server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
				body, _ := io.ReadAll(in.Body) // compared below
				if in.Method != http.MethodPost || in.URL.Path != w.path || in.Header.Get("Authorization")+in.Header.Get("X-Goog-Api-Key") != map[bool]string{false: "Bearer sk-test", true: "sk-test"}[vendor == "gemini"] || in.Header.Get("Content-Type") != "application/json" {
					t.Errorf("the request is %s %s with %v", in.Method, in.URL.Path, in.Header)
				}
				if got := strings.TrimSpace(string(body)); got != w.request {
					t.Errorf("the request is %s, want %s", got, w.request)
				}
				next := answers[0]
				answers = answers[1:]
				next(out)
			}))
			defer server.Close()
			p, err := vendors.New(vendor, llm.Config{Key: llm.NewKey("sk-test"), BaseURL: server.URL + "/v1"})
			if err != nil {
				t.Fatal(err)
			}
			says := func(status int, media, text string) func(http.ResponseWriter) {
				return func(out http.ResponseWriter) {
					out.Header().Set("Content-Type", media)
					out.WriteHeader(status)
					fmt.Fprint(out, text)
				}
			}
			req := &llm.EmbedRequest{Model: "m", Texts: []string{"a heron", "a river"}}
			retried := &decorator.Retry{Provider: p, Random: func() float64 { return 0 }}
			answers = append(answers, says(503, "application/json", `{"error":{"message":"busy"}}`), says(200, "application/json", w.answer))
			got, err := retried.Embed(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			want := &llm.Embeddings{Model: llm.Model(orDefault(w.model, "m-1")), Vectors: [][]float32{{1, 0.25}, {0, -1.5}}, Usage: llm.Usage{Input: 7, Reported: true}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("vectors (-want +got):\n%s", diff)
			}
			for _, tt := range []struct {
				name   string
				answer func(http.ResponseWriter)
				kind   llm.Kind
			}{
				{"other vectors", says(200, "application/json", w.other), llm.Garbled},
				{"none", says(200, "application/json", `{}`), llm.Garbled},
				{"no JSON", says(200, "application/json", `vectors`), llm.Garbled},
				{"cut off", says(200, "application/json", w.answer[:40]), llm.CutOff},
				{"a page", says(200, "text/html", `<html>`), llm.NotAPI},
				{"a wrong key", says(401, "application/json", `{"error":{"message":"no such key sk-test"}}`), llm.Auth},
				{"no such model", says(404, "application/json", `{"error":{"message":"no such model"}}`), llm.NotFound},
				{"too many calls", says(429, "application/json", `{"error":{"message":"slow down"}}`), llm.RateLimited},
			} {
				answers = append(answers, tt.answer)
				_, err := p.(llm.Embedder).Embed(t.Context(), req)
				e, ok := errors.AsType[*llm.Error](err)
				if !ok || e.Kind != tt.kind || strings.Contains(err.Error(), "sk-test") {
					t.Errorf("%s: %v, want one of the kind %v without the key", tt.name, err, tt.kind)
				}
			}
			for _, bad := range []*llm.EmbedRequest{{Texts: []string{"a"}}, {Model: "m"}, {Model: "m", Texts: []string{""}}} {
				if _, err := p.(llm.Embedder).Embed(t.Context(), bad); err == nil {
					text, _ := json.Marshal(bad) // of texts
					t.Errorf("%s is sent", text)
				}
			}
		})
	}
}
