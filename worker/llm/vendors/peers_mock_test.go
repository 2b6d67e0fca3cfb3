package vendors_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/worker/llm"
)

// A mocked is what a model of others is to say to a prompt that holds its name.
type mocked struct {
	name     string
	response map[string]any
	more     map[string]any // of the fixture
	want     string         // the answer, the input of the tool, or the kind of the error
	stop     llm.Stop
	change   func(*llm.Request)
}

func failing(status int, kind, code string) map[string]any {
	return map[string]any{"error": map[string]any{"message": "no: " + kind, "type": kind, "code": code}, "status": status}
}

func mocks(t *testing.T) []mocked {
	tool := llm.Tool{Name: "look_up", Schema: schema(t, `{"type":"object","properties":{"name":{"type":"string"}}}`)}
	usage := func(in, out int) map[string]any {
		return map[string]any{
			"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out, "input_tokens": in, "output_tokens": out,
			"prompt_eval_count": in, "eval_count": out,
		}
	}
	limited := failing(429, "rate_limit_error", "rate_limit_exceeded")
	limited["retryAfter"] = 7
	return []mocked{
		{
			name: "case-prose", response: map[string]any{"content": "Gardenia Bakeries — 金", "usage": usage(41, 7)},
			want: "Gardenia Bakeries — 金", stop: llm.StopEnd,
		},
		{
			name: "case-schema", response: map[string]any{"content": goodReceipt, "usage": usage(50, 20)},
			want: goodReceipt, stop: llm.StopEnd, change: func(r *llm.Request) { r.Schema = schema(t, receipt) },
		},
		{
			name: "case-tool", response: map[string]any{"toolCalls": []any{map[string]any{"name": "look_up", "arguments": map[string]any{"name": "Gardenia"}}}},
			want: `{"name":"Gardenia"}`, stop: llm.StopTool, change: func(r *llm.Request) { r.Tools = []llm.Tool{tool} },
		},
		{
			name: "case-blocks", response: map[string]any{"blocks": []any{
				map[string]any{"type": "toolCall", "name": "look_up", "arguments": map[string]any{"name": "Gardenia"}},
				map[string]any{"type": "text", "text": "I look."},
			}},
			want: `{"name":"Gardenia"}`, stop: llm.StopTool, change: func(r *llm.Request) { r.Tools = []llm.Tool{tool} },
		},
		{name: "case-long", response: map[string]any{"content": "and then", "finishReason": "length"}, want: "and then", stop: llm.StopMax},
		{name: "case-limited", response: limited, want: llm.RateLimited.String()},
		{name: "case-server", response: failing(500, "api_error", "server_error"), want: llm.Server.String()},
		{name: "case-busy", response: failing(503, "overloaded_error", "overloaded"), want: llm.Overloaded.String()},
		{name: "case-key", response: failing(401, "authentication_error", "invalid_api_key"), want: llm.Auth.String()},
		{name: "case-model", response: failing(404, "not_found_error", "model_not_found"), want: llm.NotFound.String()},
		{
			name: "case-cut", response: map[string]any{"content": strings.Repeat("word ", 100)},
			more: map[string]any{"truncateAfterChunks": 4, "latency": 5}, want: llm.CutOff.String(),
		},
	}
}

// mock starts the server of others with what it is to say.
func mock(t *testing.T, cases []mocked) string {
	t.Helper()
	var fixtures []map[string]any
	for _, c := range cases {
		f := map[string]any{"match": map[string]any{"userMessage": c.name}, "response": c.response}
		maps.Copy(f, c.more)
		fixtures = append(fixtures, f)
	}
	raw, err := json.Marshal(map[string]any{"fixtures": fixtures})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "fixtures.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	bin := filepath.Join(peers(t), "node_modules", ".bin", "llmock")
	run(t, "listening", bin, "--port", port, "--host", "127.0.0.1", "--fixtures", file, "--strict", "--validate-on-load")
	return "http://127.0.0.1:" + port
}

func TestPeersAnswerAsWeUnderstandThem(t *testing.T) {
	cases := mocks(t)
	base := mock(t, cases)
	for _, vendor := range vendorNames {
		at := base
		if vendor == "openai" {
			at += "/v1"
		}
		p := through(t, vendor, http.DefaultTransport, at)
		for _, c := range cases {
			t.Run(vendor+"/"+c.name, func(t *testing.T) {
				if vendor == "ollama" && c.name == "case-long" {
					t.Skip("in this format the server reports neither how an answer ended nor its usage")
				}
				req := ask(nil)
				req.Messages = []llm.Message{llm.Say(llm.User, "Please: "+c.name)}
				if c.change != nil {
					c.change(req)
				}
				res, err := p.Complete(t.Context(), req)
				if e, ok := errors.AsType[*llm.Error](err); ok {
					checkRefusal(t, c, e)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				checkAnswer(t, c, res, vendor != "ollama")
			})
		}
	}
}

func checkRefusal(t *testing.T, c mocked, e *llm.Error) {
	t.Helper()
	if e.Kind.String() != c.want {
		t.Errorf("error %v, want one of kind %q", e, c.want)
	}
	if c.name == "case-limited" && e.RetryAfter != 7*time.Second {
		t.Errorf("told to come back in %v, want 7s", e.RetryAfter)
	}
}

func checkAnswer(t *testing.T, c mocked, res *llm.Response, told bool) {
	t.Helper()
	got := res.Text()
	if calls := res.Calls(); len(calls) == 1 {
		got = string(calls[0].Input)
	}
	if got != c.want || res.Stop != c.stop {
		t.Errorf("%q, ended by %q; want %q by %q", got, res.Stop, c.want, c.stop)
	}
	if !res.Usage.Reported {
		t.Errorf("the usage was not read")
	}
	usage, ok := c.response["usage"].(map[string]any)
	if ok && told && (res.Usage.In() != int64(usage["input_tokens"].(int)) || res.Usage.Output != int64(usage["output_tokens"].(int))) {
		t.Errorf("took %v; the server was told to report %v", res.Usage, usage)
	}
}
