package runners_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
	"github.com/coditect/mapreduce/worker/tool/toolbox"
)

// opened returns runners whose tools are those that flags give.
func opened(t *testing.T, flags ...string) (*runners.Runners, *toolbox.Box, error) {
	t.Helper()
	r := &runners.Runners{Getenv: func(name string) string {
		return map[string]string{"BRAVE_API_KEY": "a-key"}[name]
	}}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	r.Tools.AddFlags(f)
	if err := f.Parse(flags); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.CloseTools(); err != nil {
			t.Error(err)
		}
	})
	box, err := r.OpenTools(t.Context())
	return r, box, err
}

func TestOfferedTools(t *testing.T) {
	root := t.TempDir()
	for _, test := range []struct {
		flags []string
		want  []string
	}{
		{nil, nil},
		{[]string{"--allow-host", "example.com"}, nil},
		{[]string{"--tool-root", root}, []string{"files", "files/glob", "files/grep", "files/read", "glob", "grep", "read"}},
		{[]string{"--tool-root", root, "--tool", "read"}, []string{"files/read", "read"}},
		{[]string{"--tool-root", root, "--tool", "files/read", "--tool", "grep"}, []string{"files/grep", "files/read", "grep", "read"}},
		{[]string{"--tool-root", root, "--tool", "read", "--tool", "files"}, []string{"files", "files/glob", "files/grep", "files/read", "glob", "grep", "read"}},
		{[]string{"--tool", "fetch", "--allow-host", "example.com"}, []string{"fetch", "fetch/fetch"}},
		{[]string{"--search", "brave"}, []string{"search_web", "search_web/search_web"}},
		{[]string{"--search", "searxng=http://127.0.0.1:8888", "--tool", "search_web"}, []string{"search_web", "search_web/search_web"}},
	} {
		r, _, err := opened(t, test.flags...)
		if err != nil {
			t.Errorf("%v: %v", test.flags, err)
			continue
		}
		if diff := cmp.Diff(test.want, r.OfferedTools()); diff != "" {
			t.Errorf("%v: offered (-want +got):\n%s", test.flags, diff)
		}
	}
}

// TestToolFlags: what is wrong with the flags names the flag, and what to do.
func TestToolFlags(t *testing.T) {
	for want, flags := range map[string][]string{
		`--tool: no tool is named "oracle"; the tools are files, glob, grep, read`:       {"--tool", "oracle"},
		`--tool: no tool is named "files/write"`:                                         {"--tool", "files/write"},
		"--tool read: needs --tool-root DIR":                                             {"--tool", "read"},
		"--tool fetch: reaches nothing without --allow-host HOST[:PORT]":                 {"--tool", "fetch"},
		"--tool search_web: needs --search ENGINE[=URL]":                                 {"--tool", "search_web"},
		"--tool-root: /nowhere/at/all: no such file or directory":                        {"--tool-root", "/nowhere/at/all"},
		`--allow-host: "http://x": is not HOST[:PORT]`:                                   {"--allow-host", "http://x"},
		`--allow-host: "127.0.0.1": is a loopback address, which is allowed at one port`: {"--allow-host", "127.0.0.1"},
		`--search: there is no search engine "altavista"`:                                {"--search", "altavista"},
		"--search: tavily needs a key in the environment variable TAVILY_API_KEY":        {"--search", "tavily"},
		"--search: searxng needs the address of its interface":                           {"--search", "searxng"},
	} {
		if _, _, err := opened(t, flags...); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", flags, err, want)
		}
	}
}

// A block is a fenced block of the documentation.
type block struct{ info, text string }

func blocksOf(t *testing.T) []block {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "tools.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all []block
	for _, m := range regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$").FindAllStringSubmatch(string(data), -1) {
		all = append(all, block{m[1], m[2]})
	}
	return all
}

// TestDocumentedTools: what docs/tools.md says of tools is so: their schemas and limits, the
// flags that give them, and the examples.
func TestDocumentedTools(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/flood":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<html><head><title>The flood</title></head><body><p>The river rose by 2 metres, as <a href="last">the year before</a>.</p></body></html>`)
		case "/search":
			fmt.Fprint(w, `{"results":[{"url":"https://gazette.example/flood","title":"The flood","content":"The river rose by 2 metres"},{"url":"https://b.example","title":"b"}]}`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer site.Close()
	address := strings.TrimPrefix(site.URL, "http://")
	blocks := blocksOf(t)
	t.Chdir(t.TempDir())
	if len(blocks) < 20 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for _, b := range blocks {
		if name, ok := strings.CutPrefix(b.info, "text file="); ok {
			file := filepath.Join("notes", name)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	r, box, err := opened(t, "--tool-root", "notes", "--tool", "fetch", "--allow-host", address, "--search", "searxng="+site.URL)
	if err != nil {
		t.Fatal(err)
	}
	session, err := box.Open(t.Context(), r.OfferedTools())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	checkSchemas(t, r, blocks)
	here := strings.NewReplacer("127.0.0.1:8080", address, "127.0.0.1:8888", address)
	for i, b := range blocks {
		if name, ok := strings.CutPrefix(b.info, "json call="); ok {
			got := called(t, session, name, here.Replace(b.text))
			if diff := cmp.Diff(here.Replace(blocks[i+1].text), got); diff != "" {
				t.Errorf("%s %s (-documented +got):\n%s", name, b.text, diff)
			}
		}
		if b.info == "sh" {
			for line := range strings.Lines(b.text) {
				words := strings.Fields(strings.ReplaceAll(line, "'", ""))
				if _, _, err := opened(t, words[2:]...); err != nil {
					t.Errorf("%s: %v", line, err)
				}
			}
		}
	}
}

// called returns what a call brings as the documentation shows it.
func called(t *testing.T, s *toolbox.Session, name, input string) string {
	t.Helper()
	result, err := s.Call(t.Context(), name, json.RawMessage(input))
	if err != nil {
		return err.Error() + "\n"
	}
	out := result.Text + "\n"
	for _, e := range result.Evidence {
		about := e.URI + ", " + e.Media
		if e.Title != "" {
			about += fmt.Sprintf(", %q", e.Title)
		}
		out += "[" + about + "]\n"
		if len(e.Shown) == 0 {
			out += strings.TrimSpace(e.Text) + "\n"
		}
		for _, s := range e.Shown {
			out += strings.TrimSpace(e.Text[s.Start:s.End]) + "\n"
		}
	}
	return out
}

// checkSchemas compares the tools that the documentation describes with what they are.
func checkSchemas(t *testing.T, r *runners.Runners, blocks []block) {
	t.Helper()
	kits, err := r.ListTools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var checked []string
	for _, kit := range kits {
		for _, one := range kit.Tools {
			i := slices.IndexFunc(blocks, func(b block) bool { return b.info == "json schema="+one.Name })
			if i < 0 {
				continue
			}
			checked = append(checked, one.Name)
			var got, want bytes.Buffer
			if err := json.Compact(&got, one.Input); err != nil {
				t.Error(err)
			}
			if err := json.Compact(&want, []byte(blocks[i].text)); err != nil {
				t.Errorf("%s: %v", one.Name, err)
			}
			if got.String() != want.String() {
				t.Errorf("the schema of %s is documented as\n%s\nand is\n%s", one.Name, want.String(), got.String())
			}
			if !one.Idempotent || one.MaxOutput != 32<<10 || one.Summary() == "" {
				t.Errorf("%s is documented as reading alone, with 32 KiB: %+v", one.Name, one)
			}
		}
	}
	if diff := cmp.Diff([]string{"fetch", "glob", "grep", "read", "search_web"}, slices.Sorted(slices.Values(checked))); diff != "" {
		t.Errorf("documented tools (-want +got):\n%s", diff)
	}
}
