package main_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// A vLLM is a scripted model that lists itself as vLLM does.
func newVLLM(t *testing.T, window string) (url string, fake *fakellm.Server) {
	t.Helper()
	fake = fakellm.New(fakellm.Config{Model: func(c fakellm.Call) fakellm.Reply {
		switch {
		case c.Tool != "":
			return fakellm.Reply{Text: `{"name":"Ana Duarte"}`}
		case c.Schema != nil:
			return fakellm.Reply{Text: `{"city":"Lyon","year":1987}`}
		}
		return fakellm.Reply{Text: "yes"}
	}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			fake.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":[{"id":"Qwen/Qwen3-8B","max_model_len":`+window+`},{"id":"other","max_model_len":4096}]}`) // the client is ours
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1", fake
}

// The models of a server are listed, one is tried, and a job keeps to the window that the server was
// started with.
func TestModelsOfAServer(t *testing.T) {
	url, fake := newVLLM(t, "2048")
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/a.txt", []byte(strings.Repeat("TOTAL 5.00\n", 50)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/schema.yaml", []byte(receiptSchema), 0o600); err != nil {
		t.Fatal(err)
	}
	coditect := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), program(t), args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir+"/data")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, c := range []struct {
		args  string
		wants []string
		fails bool
	}{
		{"models --provider vllm --base-url " + url, []string{"MODEL", "Qwen/Qwen3-8B  2048"}, false},
		{"models check --provider vllm --model Qwen/Qwen3-8B --base-url " + url, []string{"structured  yes", "tools       yes", "usage       yes", "stream      yes", "cache       no"}, false},
		{"run --input a.txt --schema schema.yaml --provider vllm --model Qwen/Qwen3-8B --base-url " + url, []string{"a context window of 2048 tokens is too small"}, true},
		{"run --input a.txt --schema schema.yaml --provider vllm --model nobody --base-url " + url, []string{`has no model "nobody"; it has Qwen/Qwen3-8B, other`}, true},
	} {
		got, err := coditect(append([]string{"mapreduce"}, strings.Fields(c.args)...)...)
		if (err != nil) != c.fails {
			t.Errorf("%s: %v\n%s", c.args, err, got)
		}
		for _, want := range c.wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s does not say %q:\n%s", c.args, want, got)
			}
		}
	}
	if n := len(fake.Entries()); n != 4 {
		t.Errorf("the model was asked %d times, want 4", n)
	}
}

// A server that says which of its models call tools is believed before a job with tools is stored.
func TestAServerTellsWhatItsModelsLack(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api/tags":
			_, _ = io.WriteString(w, `{"models":[{"name":"plain"},{"name":"able"}]}`) // the client is ours, as below
		case "/api/show":
			body, _ := io.ReadAll(r.Body)
			abilities := `"completion"`
			if strings.Contains(string(body), "able") {
				abilities += `,"tools"`
			}
			_, _ = io.WriteString(w, `{"model_info":{"x.context_length":131072},"capabilities":[`+abilities+`]}`)
		default:
			asked++
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program(t), strings.Fields("mapreduce run --pipeline research --question q --tool-root . --provider ollama --model plain --base-url "+server.URL)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir+"/data")
	out, err := cmd.CombinedOutput()
	if want := "--model: plain calls no tools, as the server of ollama tells; of its models, able could"; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("%v, want %q:\n%s", err, want, out)
	}
	if asked > 0 {
		t.Errorf("the model was asked %d times", asked)
	}
}
