package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/mcp"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func config() mcp.Config { return mcp.Config{Now: func() time.Time { return noon }} }

// server returns a server that is this test binary.
func server(mode string, change ...func(*mcp.Server)) mcp.Server {
	s := mcp.Server{Name: "test", Command: os.Args[0], Env: map[string]string{
		serverMode: mode,
		"GORACE":   "atexit_sleep_ms=0", // a server that looks for races dawdles a second before it ends
	}}
	for _, c := range change {
		c(&s)
	}
	return s
}

// parsed returns a server of a file.
func parsed(t *testing.T, file string, variables map[string]string) mcp.Server {
	t.Helper()
	all, err := mcp.ParseServers([]byte(file), func(name string) string { return variables[name] })
	if err != nil || len(all) != 1 {
		t.Fatalf("%d servers, error %v", len(all), err)
	}
	return all[0]
}

// open opens a kit, which must work.
func open(t *testing.T, s mcp.Server, c mcp.Config) *mcp.Kit {
	t.Helper()
	k, err := mcp.New(t.Context(), s, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// unit opens a session of a kit.
func unit(t *testing.T, k tool.Kit) tool.Session {
	t.Helper()
	s, err := k.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// call makes a call that must succeed, and returns its texts.
func call(t *testing.T, s tool.Session, name, input string) []string {
	t.Helper()
	r, err := s.Call(t.Context(), name, json.RawMessage(input))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var all []string
	for _, e := range r.Evidence {
		all = append(all, e.Text)
	}
	if r.Text != "" {
		all = append(all, r.Text)
	}
	return all
}

// refused makes a call that must fail with a text.
func refused(t *testing.T, s tool.Session, name, input, want string) {
	t.Helper()
	r, err := s.Call(t.Context(), name, json.RawMessage(input))
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %+v, error %v, want one with %q", name, r, err, want)
	}
}

func TestTools(t *testing.T) {
	var log bytes.Buffer
	c := config()
	c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	k := open(t, server("good", func(s *mcp.Server) { s.Trusted, s.Timeout = true, time.Minute }), c)
	if k.Name() != "mcp:test" {
		t.Errorf("the kit is named %q", k.Name())
	}
	specs := make(map[string]tool.Spec)
	for _, s := range k.Tools() {
		specs[s.Member] = s
	}
	search := specs["search"]
	if search.Name != "test_search" || search.PipelineName(k.Name()) != "mcp:test/search" || search.Query != "query" || !search.Idempotent || search.Timeout != time.Minute {
		t.Errorf("search is %+v", search)
	}
	if search.Description != "Finds texts." {
		t.Errorf("its description is %q: characters that hide words are not for models", search.Description)
	}
	if specs["write"].Idempotent || !specs["count"].Idempotent {
		t.Error("write does something twice, count does not")
	}
	if long := specs[strings.Repeat("long.", 20)]; len(long.Name) != 64 || strings.Contains(long.Name, ".") {
		t.Errorf("a long name became %q", long.Name)
	}
	if !strings.Contains(log.String(), `tool="hello world" reason="its name`) {
		t.Errorf("the log has %s", &log)
	}
	for _, s := range open(t, server("good"), config()).Tools() {
		if s.Idempotent {
			t.Errorf("%s of a server that nobody trusts is believed to do no harm", s.Name)
		}
	}
}

func TestAllowedTools(t *testing.T) {
	k := open(t, server("good", func(s *mcp.Server) { s.Tools = []string{"search"} }), config())
	if got := len(k.Tools()); got != 1 {
		t.Errorf("%d tools, want the one that the file names", got)
	}
	refused(t, unit(t, k), "test_write", `{}`, "there is no such tool")
	for name, want := range map[string]string{"delete": `it has no tool "delete"`, "hello world": `"hello world" cannot be used`} {
		_, err := mcp.New(t.Context(), server("good", func(s *mcp.Server) { s.Tools = []string{name} }), config())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestCalls(t *testing.T) {
	patient := func(s *mcp.Server) { s.Timeout = 5 * time.Minute } // megabytes have to come, on a busy machine too
	s := unit(t, open(t, server("good", patient), config()))
	r, err := s.Call(t.Context(), "test_search", json.RawMessage(`{"query":"tea & milk","limit":2}`))
	want := &tool.Result{Evidence: []tool.Evidence{
		{URI: "mcp:test/search?limit=2&query=tea+%26+milk", Title: `search {"limit":2,"query":"tea \u0026 milk"}`, Media: "text/plain", Retrieved: noon, Text: "about tea & milk"},
		{URI: "mcp:test/search?limit=2&query=tea+%26+milk#2", Title: `search {"limit":2,"query":"tea \u0026 milk"}`, Media: "text/plain", Retrieved: noon, Text: "more about tea & milk"},
	}}
	if diff := cmp.Diff(want, r); err != nil || diff != "" {
		t.Errorf("error %v, (-want +got):\n%s", err, diff)
	}
	refused(t, s, "test_search", `{"query":7}`, "at '/query': got number, want string")
	refused(t, s, "test_search", `{"query":"x","limit":9}`, "at '/limit'")
	refused(t, s, "test_search", `{}`, "missing property 'query'")
	refused(t, s, "test_search", `{`, "is no JSON")
	refused(t, s, "test_search", `{"query":"`+strings.Repeat("x", tool.MaxInput)+`"}`, "at most")
	refused(t, s, "test_fails", `{}`, "no such page")
	refused(t, s, "test_lies", `{}`, "does not fit the schema that it states: at '/n'")

	if diff := cmp.Diff([]string{`{"n":1}`}, call(t, s, "test_structured", `{}`)); diff != "" {
		t.Error(diff)
	}
	if r, err = s.Call(t.Context(), "test_parts", nil); err != nil {
		t.Fatal(err)
	}
	if e := r.Evidence; len(e) != 1 || e[0].URI != "mcp:test/parts" || e[0].Metadata["resource"] != "https://news.example/1" || e[0].Media != "text/html" {
		t.Errorf("a resource became %+v: a server must not make a text that of another address", e)
	}
	if want := "[a resource of 3 bytes that is no text: file:///x image/png]\n[a link to a resource: https://news.example/2 two]\n[a picture of 2 bytes that cannot be shown: image/png]"; r.Text != want {
		t.Errorf("the rest is %q", r.Text)
	}
	if r, err = s.Call(t.Context(), "test_large", nil); err != nil {
		t.Fatal(err)
	}
	if n := len(r.Evidence[0].Text); n > tool.MaxEvidence || r.Cut != 6<<20-int64(n) || n < tool.MaxEvidence-2 {
		t.Errorf("6 MiB became %d bytes, %d cut", n, r.Cut)
	}
}

// What a server is given in secret is taken out of what it says, and the program sees
// nothing else of the worker's environment.
func TestSecrets(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "of-the-worker")
	file := fmt.Sprintf(`{"mcpServers":{"test":{"command":%q,"env":{"%s":"good","API_KEY":"${KEY}","LITERAL_TOKEN":"literal-secret","LEVEL":"information"}}}}`, os.Args[0], serverMode)
	s := unit(t, open(t, parsed(t, file, map[string]string{"KEY": "swordfish-17"}), config()))
	got := call(t, s, "test_environment", `{}`)[0]
	for _, secret := range []string{"swordfish-17", "literal-secret", "of-the-worker", "ANTHROPIC"} {
		if strings.Contains(got, secret) {
			t.Errorf("%s is in %s", secret, got)
		}
	}
	for _, want := range []string{"API_KEY=***", "LITERAL_TOKEN=***", "LEVEL=information", "PATH="} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	refused(t, s, "test_fails", `{}`, "the key is ***")

	file = fmt.Sprintf(`{"mcpServers":{"test":{"command":%q,"env":{"%s":"ends","API_KEY":"${KEY}"}}}}`, os.Args[0], serverMode)
	_, err := mcp.New(t.Context(), parsed(t, file, map[string]string{"KEY": "swordfish-17"}), config())
	if err == nil || !strings.Contains(err.Error(), "exit status 4") || !strings.Contains(err.Error(), "no licence, key ***") {
		t.Errorf("a server that ends gave %v", err)
	}
}

// Units do not share a session with a server, unless the file says so. A server that died
// is started again, and a call that may have done something is not made again.
func TestUnitsAndRestarts(t *testing.T) {
	k := open(t, server("good"), config())
	a, b := unit(t, k), unit(t, k)
	for i, s := range []tool.Session{a, a, b} {
		if got, want := call(t, s, "test_count", `{}`)[0], []string{"1", "2", "1"}[i]; got != want {
			t.Errorf("call %d counts %s, want %s", i, got, want)
		}
	}
	refused(t, a, "test_write", `{}`, "it is not known whether the call was carried out: the program ended (exit status 3)")
	if got := call(t, a, "test_count", `{}`)[0]; got != "1" {
		t.Errorf("after the end of the server it counts %s", got)
	}

	shared := open(t, server("good", func(s *mcp.Server) { s.Shared = true }), config())
	a, b = unit(t, shared), unit(t, shared)
	call(t, a, "test_count", `{}`)
	if got := call(t, b, "test_count", `{}`)[0]; got != "2" {
		t.Errorf("a shared server counts %s for the second unit", got)
	}
}

// A server that ends again and again is started again, after pauses.
func TestDyingServer(t *testing.T) {
	s := unit(t, open(t, server("good"), config()))
	for range 3 {
		refused(t, s, "test_write", `{}`, "exit status 3")
		if t.Failed() {
			return
		}
		_, err := s.Call(t.Context(), "test_count", nil)
		if err != nil {
			t.Fatalf("after an answered call a start is at once: %v", err)
		}
	}
	for range 3 {
		refused(t, s, "test_write", `{}`, "exit status 3")
	}
	const paused = "times in a row; it is started again in"
	for range 4 { // the first pauses are short: a machine that stands still may sleep through one
		if _, err := s.Call(t.Context(), "test_write", json.RawMessage(`{}`)); err != nil && strings.Contains(err.Error(), paused) {
			return
		}
	}
	refused(t, s, "test_write", `{}`, paused)
}

func TestSlowServer(t *testing.T) {
	hasty := unit(t, open(t, server("good", func(s *mcp.Server) { s.Timeout = 100 * time.Millisecond }), config()))
	if _, err := hasty.Call(t.Context(), "test_never", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call that is never answered: %v", err)
	}
	// All other calls may take as long as a busy machine needs: only those are late that have to be.
	s := unit(t, open(t, server("good", func(s *mcp.Server) { s.Timeout = time.Minute }), config()))
	late := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := s.Call(ctx, "test_never", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a late call: %v", err)
		}
	}
	counts := func(want string) {
		t.Helper()
		if diff := cmp.Diff([]string{want}, call(t, s, "test_count", `{}`)); diff != "" {
			t.Error(diff)
		}
	}
	counts("1")
	late()
	counts("2") // in the same session, and an answer in time
	late()
	late()
	counts("1") // the second call in a row that was late has ended the session
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Call(ctx, "test_count", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that nobody waits for: %v", err)
	}
}

// Servers that do what no server should are survived, and their faults are named.
func TestServersThatDoNotStart(t *testing.T) {
	for mode, want := range map[string]string{
		"ends":    "the program ended (exit status 4)",
		"silent":  "does not answer within 2s",
		"talks":   "invalid character 'S'",
		"endless": "more than 256 tools, or more than 64 pages",
		"many":    "more than 256 tools",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			c := config()
			if mode == "silent" { // the others have to come to their faults: a program that ends takes a second for that under the race detector
				c.StartTimeout = 2 * time.Second
			}
			_, err := mcp.New(t.Context(), server(mode), c)
			if err == nil || !strings.HasPrefix(err.Error(), "mcp:test: ") || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
	_, err := mcp.New(t.Context(), mcp.Server{Name: "none", Command: "no-such-program"}, config())
	if err == nil || !strings.Contains(err.Error(), `the program "no-such-program" cannot be run`) {
		t.Error(err)
	}
}

// TestServersThatIgnoreUnknownMethods are not waited for as long as they may take to start.
func TestServersThatIgnoreUnknownMethods(t *testing.T) {
	c := config()
	c.StartTimeout, c.GreetTimeout = time.Minute, 100*time.Millisecond
	begun := time.Now()
	k := open(t, server("ignores"), c)
	if took := time.Since(begun); took > 30*time.Second || len(k.Tools()) != 1 {
		t.Errorf("%d tools after %v", len(k.Tools()), took)
	}
}

func TestLyingServers(t *testing.T) {
	t.Run("schemas", func(t *testing.T) {
		k := open(t, server("schemas"), config())
		var got []string
		for _, s := range k.Tools() {
			got = append(got, s.Member+" "+s.Description)
		}
		if diff := cmp.Diff([]string{"good "}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("costly", func(t *testing.T) {
		s := unit(t, open(t, server("costly"), config()))
		call(t, s, "test_a", `{"x":{"x":{}}}`)
		refused(t, s, "test_a", deepObject, "test_a: the input does not fit its schema: this value cannot be checked")
		refused(t, s, "test_b", `{}`, "test_b: what the server returned does not fit the schema that it states: this value cannot be checked")
	})
	for mode, want := range map[string]string{"malformed": "test_a: ", "floods": "the server wrote more than 67108864 bytes", "unknown": "test_a: ", "deep": "test_a: "} {
		t.Run(mode, func(t *testing.T) {
			testenv.Variant(t, mode != "floods")

			patient := func(s *mcp.Server) { s.Timeout = 5 * time.Minute } // many bytes have to come
			s := unit(t, open(t, server(mode, patient), config()))
			refused(t, s, "test_a", `{}`, want)
		})
	}
	t.Run("asks", func(t *testing.T) {
		s := unit(t, open(t, server("asks"), config()))
		if diff := cmp.Diff([]string{"no roots, refused, refused"}, call(t, s, "test_a", `{}`)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("twice", func(t *testing.T) {
		s := unit(t, open(t, server("twice"), config()))
		for range 3 {
			if diff := cmp.Diff([]string{"first"}, call(t, s, "test_a", `{}`)); diff != "" {
				t.Error(diff)
			}
		}
	})
	t.Run("enormous", func(t *testing.T) {
		testenv.Variant(t, false)

		s := unit(t, open(t, server("good"), config()))
		refused(t, s, "test_enormous", `{}`, "exceeded the configured maximum line length")
		call(t, s, "test_count", `{}`)
	})
}

func TestFiles(t *testing.T) {
	for _, tt := range []struct{ file, want string }{
		{`[]`, "is not a JSON object"},
		{`{}`, `no object "mcpServers"`},
		{`{"mcpServers":{"a b":{"command":"x"}}}`, `"a b" is not the name of a server`},
		{`{"mcpServers":{"a":{}}}`, "mcpServers.a: has neither command nor url"},
		{`{"mcpServers":{"a":{"command":"x","url":"http://h/"}}}`, "has both command and url"},
		{`{"mcpServers":{"a":{"comand":"x"}}}`, `there is no key "comand"`},
		{`{"mcpServers":{"a":{"command":"x","type":"http"}}}`, "type: http does not go with"},
		{`{"mcpServers":{"a":{"url":"http://h/sse","type":"sse"}}}`, "type: sse is the transport before"},
		{`{"mcpServers":{"a":{"url":"ftp://h/"}}}`, "url: is not an address"},
		{`{"mcpServers":{"a":{"url":"https://me:secret@h/"}}}`, "has a user in it"},
		{`{"mcpServers":{"a":{"url":"https://h/","args":["x"]}}}`, "args, env and cwd need a command"},
		{`{"mcpServers":{"a":{"command":"x","headers":{"A":"b"}}}}`, "headers and oauth need a url"},
		{`{"mcpServers":{"a":{"command":"x","args":["${NONE}"]}}}`, "args[0]: the environment variable NONE is not set"},
		{`{"mcpServers":{"a":{"command":"x","timeout":"fast"}}}`, `timeout: "fast"`},
		{`{"mcpServers":{"a":{"command":"x","timeout":"1h"}}}`, "at most 10m"},
		{`{"mcpServers":{"a":{"command":"x","max_output":1000000}}}`, "max_output: must be"},
		{`{"mcpServers":{"a":{"url":"https://h/","oauth":{"client_id":"c","client_secret":"s"}}}}`, "oauth.issuer: is not an address"},
		{`{"mcpServers":{"a":{"url":"https://h/","oauth":{"issuer":"https://i","client_id":"c"}}}}`, "needs a client_secret, or a refresh_token_file"},
		{`{"mcpServers":{"a":{"url":"https://h/","oauth":{"issuer":"https://i","client_id":"c","refresh_token_file":"x"}}}}`, "must be an absolute path"},
	} {
		_, err := mcp.ParseServers([]byte(tt.file), func(string) string { return "" })
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.file, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "me:secret") {
			t.Errorf("a secret is in %v", err)
		}
	}
	got, err := mcp.ParseServers([]byte(`{"inputs":[],"mcpServers":{
		"b":{"type":"http","url":"https://h/${PLACE:-there}","headers":{"Authorization":"Bearer ${env:KEY}"},"alwaysAllow":["x"]},
		"a":{"command":"npx","args":["-y","server","${HOME}"],"shared":true,"trusted":true,"tools":["x"],"timeout":"5s"},
		"off":{"command":"${NONE}","disabled":true}}}`), func(name string) string { return map[string]string{"KEY": "k", "HOME": "/home/alice"}[name] })
	if err != nil || len(got) != 2 {
		t.Fatalf("%d servers, error %v", len(got), err)
	}
	if a := got[0]; a.Name != "a" || a.Args[2] != "/home/alice" || !a.Shared || !a.Trusted || a.Timeout != 5*time.Second {
		t.Errorf("the first is %+v", a)
	}
	if b := got[1]; b.URL != "https://h/there" || b.Headers["Authorization"] != "Bearer k" {
		t.Errorf("the second is %+v", b)
	}
}
