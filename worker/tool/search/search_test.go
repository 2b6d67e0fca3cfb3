package search_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/html"
	"github.com/coditect/mapreduce/internal/document/mail"
	"github.com/coditect/mapreduce/internal/document/plain"
	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/search"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func formats(t testing.TB) *document.Registry {
	t.Helper()
	r, err := document.NewRegistry(plain.TextFormat(), plain.MarkdownFormat(), html.Format(), plain.JSONLinesFormat(), mail.Format())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// newKit returns a kit over stores whose index is up to date.
func newKit(t testing.TB, c search.Config) *search.Kit {
	t.Helper()
	k := openKit(t, c)
	if err := k.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return k
}

// openKit returns a kit over stores that looks at their files whenever it is prepared.
func openKit(t testing.TB, c search.Config) *search.Kit {
	t.Helper()
	if c.Formats == nil {
		c.Formats = formats(t)
	}
	if c.Cache == "" {
		c.Cache = t.TempDir()
	}
	if c.Refresh == 0 {
		c.Refresh = -1
	}
	k, err := search.New(c)
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

// hits returns what the first store has.
func hits(t testing.TB, k *search.Kit, q search.Query) []search.Hit {
	t.Helper()
	all, err := k.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return all[0].Hits
}

// call calls the tool in a session of its own.
func call(t testing.TB, k *search.Kit, input string) (*tool.Result, error) {
	t.Helper()
	s, err := k.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return s.Call(t.Context(), search.Name, json.RawMessage(input))
}

// names returns the documents of hits, best first.
func names(all []search.Hit) []string {
	out := []string{}
	for _, h := range all {
		out = append(out, h.Document)
	}
	return out
}

// find returns the documents that a question finds in the only store.
func find(t testing.TB, k *search.Kit, text string) []string {
	t.Helper()
	if err := k.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return names(hits(t, k, search.Query{Text: text, TopK: search.MaxTopK}))
}

func want(t testing.TB, got []string, names ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, names...), got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
}

// TestE6 asks three stores at once: each gives its three best passages, with the places of
// their quotes, as evidence that can be cited.
func TestE6(t *testing.T) {
	var stores []search.Store
	for _, name := range []string{"papers", "notes", "mail"} {
		dir := t.TempDir()
		stores = append(stores, search.Store{Name: name, Dir: dir})
		for i := range 5 {
			write(t, filepath.Join(dir, fmt.Sprintf("%s-%d.md", name, i)), fmt.Sprintf("# Größe %d\n\nÜber %s: the heron stood in the river. %s", i, name, strings.Repeat("Rain fell. ", i)))
		}
		write(t, filepath.Join(dir, "other.txt"), "Nothing of the kind.")
	}
	k := newKit(t, search.Config{Stores: stores})
	r, err := call(t, k, `{"query": "Where did the herons stand?"}`)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Evidence) != 9 {
		t.Fatalf("there are %d pieces of evidence, want 3 of each of 3 stores:\n%s", len(r.Evidence), r.Text)
	}
	all, err := k.Search(t.Context(), search.Query{Text: "Where did the herons stand?"})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i, s := range all {
		if s.Store != stores[i].Name || len(s.Hits) != 3 {
			t.Errorf("store %d is %s with %d hits, want %s with 3", i, s.Store, len(s.Hits), stores[i].Name)
		}
		for _, h := range s.Hits {
			data, err := os.ReadFile(filepath.Join(stores[i].Dir, h.Document))
			if err != nil {
				t.Fatal(err)
			}
			text, e := string(data), r.Evidence[n]
			if text[h.Start:h.End] != h.Quote || string([]rune(text)[h.CharStart:h.CharEnd]) != h.Quote || h.CharStart == h.Start && h.CharEnd == h.End {
				t.Errorf("%s: bytes %d to %d and characters %d to %d are not the quote %q", h.Document, h.Start, h.End, h.CharStart, h.CharEnd, h.Quote)
			}
			if e.Text != text || e.URI != "local:"+s.Store+"/"+h.Document || e.Title != fmt.Sprintf("Größe %c", h.Document[len(h.Document)-4]) || e.Retrieved.IsZero() {
				t.Errorf("evidence %d is %s %q of %v, and %d bytes of text", n, e.URI, e.Title, e.Retrieved, len(e.Text))
			}
			if diff := cmp.Diff([]tool.Range{{Start: h.Start, End: h.End}}, e.Shown); diff != "" {
				t.Error(diff)
			}
			if line := fmt.Sprintf("%s, bytes %d to %d, characters %d to %d\n", h.Document, h.Start, h.End, h.CharStart, h.CharEnd); !strings.Contains(r.Text, line) {
				t.Errorf("the text lacks %q:\n%s", line, r.Text)
			}
			n++
		}
	}
	r, err = call(t, k, `{"query": "heron", "stores": ["mail"], "top_k": 1}`)
	if err != nil || len(r.Evidence) != 1 || !strings.HasPrefix(r.Evidence[0].URI, "local:mail/") {
		t.Errorf("one passage of one store: %+v, error %v", r, err)
	}
}

// TestQueriesAreText: what other programs take for operators is nothing but the end of a word.
func TestQueriesAreText(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.txt"), "The heron stood in the river.")
	write(t, filepath.Join(dir, "b.txt"), "A title: the document has a river.")
	write(t, filepath.Join(dir, "c.txt"), "Nothing.")
	k := newKit(t, search.Config{Stores: []search.Store{{Name: "s", Dir: dir}}})
	for _, q := range []string{
		"heron river", `+heron +river`, `heron -river`, `"heron" "river"`, `heron AND NOT river`, "heron~2 river^0", "w:heron text:river", "/heron/ /river/",
		"heron* river?", "(heron OR river)", "heron\x00river", `{"match": "heron", "field": "river"}`, "river\\ heron", "%heron%' OR 1=1; river --", "heron [TO river}",
	} {
		got := hits(t, k, search.Query{Text: q})
		if len(got) < 2 || got[0].Document != "a.txt" || got[1].Document != "b.txt" {
			t.Errorf("%q finds %v", q, names(got))
		}
	}
	for _, q := range []string{".*", "*", "her.*", "~~~", "(((((", "\\", "[a-z]+", "/.*/", "hero?", "???"} {
		if got := hits(t, k, search.Query{Text: q}); len(got) > 0 {
			t.Errorf("%q finds %v", q, names(got))
		}
	}
}

// TestBadCalls: the error of a call says what was wrong, and what is right.
func TestBadCalls(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.txt"), "The heron stood in the river.")
	k := newKit(t, search.Config{Stores: []search.Store{{Name: "s", Dir: dir}}})
	long, err := json.Marshal(strings.Repeat("heron ", 1<<20/6))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ input, says string }{
		{`{"query": " \n"}`, "the query is empty"},
		{`{}`, "the query is empty"},
		{`{"query": ` + string(long) + `}`, "at most 65536 are accepted"},
		{`{"query": ` + string(long[:50_000]) + `"}`, "at most 4000 are accepted"},
		{`{"query": "heron", "top_k": 0}`, "must be from 1 to 20"},
		{`{"query": "heron", "top_k": 21}`, "must be from 1 to 20"},
		{`{"query": "heron", "top_k": -3}`, "must be from 1 to 20"},
		{`{"query": "heron", "stores": ["t"]}`, `there is no store "t"; the stores are s`},
		{`{"query": "heron", "store": "s"}`, `unknown field "store"`},
		{`{"query": ["heron"]}`, "does not fit the schema"},
		{`heron`, "does not fit the schema"},
	} {
		r, err := call(t, k, tt.input)
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%.60s: got %+v, error %v, want one with %q", tt.input, r, err, tt.says)
		}
	}
	s, err := k.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Call(t.Context(), "search", nil); !errors.Is(err, tool.ErrNoTool) {
		t.Errorf("another tool: %v", err)
	}
	many := make([]string, 300)
	for i := range many {
		many[i] = fmt.Sprintf("word%d", i)
	}
	many[150] = "heron"
	want(t, names(hits(t, k, search.Query{Text: strings.Join(many, " ")})), "a.txt")
}

// TestBadStores: stores that cannot be are refused before anything is read.
func TestBadStores(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "x")
	for _, tt := range []struct {
		stores []search.Store
		says   string
	}{
		{nil, "there is no store"},
		{[]search.Store{{Name: "a", Dir: filepath.Join(dir, "none")}}, "no such file or directory"},
		{[]search.Store{{Name: "a", Dir: filepath.Join(dir, "file")}}, "is not a folder"},
		{[]search.Store{{Name: "a", Dir: dir}, {Name: "a", Dir: dir}}, `two stores are named "a"`},
		{[]search.Store{{Name: "", Dir: dir}}, "cannot be named"},
		{[]search.Store{{Name: "../a", Dir: dir}}, "cannot be named"},
		{[]search.Store{{Name: "a b", Dir: dir}}, "cannot be named"},
	} {
		_, err := search.New(search.Config{Stores: tt.stores, Formats: formats(t), Cache: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%v: error %v, want one with %q", tt.stores, err, tt.says)
		}
	}
}

// TestFilesThatAreNotRead: what cannot be read is left out and told, and nothing outside of the
// folder is read.
func TestFilesThatAreNotRead(t *testing.T) {
	secret, dir := t.TempDir(), t.TempDir()
	write(t, filepath.Join(secret, "secret.txt"), "The heron has a secret.")
	write(t, filepath.Join(dir, "a.txt"), "The heron stood in the river.")
	write(t, filepath.Join(dir, ".hidden.txt"), "A hidden heron.")
	write(t, filepath.Join(dir, "empty.txt"), "")
	write(t, filepath.Join(dir, "sub", "picture.txt"), "heron\x00\x01\x02\xff")
	for link, to := range map[string]string{
		"out.txt": filepath.Join(secret, "secret.txt"), "up.txt": "../" + filepath.Base(secret) + "/secret.txt", "folder": secret, "loop.txt": "loop.txt", "in.txt": "a.txt", "none.txt": "gone",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.txt"), 0o600); err != nil {
		t.Fatal(err)
	}
	var notes []string
	k := newKit(t, search.Config{Stores: []search.Store{{Name: "s", Dir: dir}}, Note: func(text string) { notes = append(notes, text) }})
	want(t, find(t, k, "heron"), "a.txt", "in.txt")
	st := k.Status()[0]
	if st.Documents != 2 || st.Skipped != 8 || !strings.Contains(st.FirstSkipped, "empty.txt: no text") {
		t.Errorf("the status is %+v", st)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "store s: 8 files are left out, the first is empty.txt: no text") {
		t.Errorf("the operator is told %q", notes)
	}
}

// TestEmptyStore: a store without documents says so, and is searched once it has some.
func TestEmptyStore(t *testing.T) {
	dir, full := t.TempDir(), t.TempDir()
	write(t, filepath.Join(full, "a.txt"), "The heron stood in the river.")
	var notes []string
	var mu sync.Mutex
	k := newKit(t, search.Config{Stores: []search.Store{{Name: "empty", Dir: dir}, {Name: "full", Dir: full}}, Note: func(text string) {
		mu.Lock()
		defer mu.Unlock()
		notes = append(notes, text)
	}})
	r, err := call(t, k, `{"query": "heron"}`)
	if err != nil || !strings.Contains(r.Text, "empty has no documents.") || len(r.Evidence) != 1 {
		t.Errorf("got %+v, error %v", r, err)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "store empty: there is nothing to search in "+dir) {
		t.Errorf("the operator is told %q", notes)
	}
	if r, err = call(t, k, `{"query": "weasel"}`); err != nil || !strings.Contains(r.Text, "full has no passage with any of these words.") {
		t.Errorf("got %+v, error %v", r, err)
	}
	write(t, filepath.Join(dir, "b.txt"), "Another heron.")
	if r, err = call(t, k, `{"query": "heron"}`); err != nil || len(r.Evidence) != 2 {
		t.Errorf("got %+v, error %v", r, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(full); err != nil {
		t.Fatal(err)
	}
	if err := k.Prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "store empty: ") || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("stores whose folders are gone: %v", err)
	}
}

// TestLongDocuments: evidence of a long document is the part around the passage, the same for
// each search that finds something in it, and says so.
func TestLongDocuments(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, "Über entry %d of the log, which says nothing else. ", i)
		if i == 12_345 {
			b.WriteString("The heron stood in the river. ")
		}
	}
	write(t, filepath.Join(dir, "log.txt"), b.String())
	k := newKit(t, search.Config{Stores: []search.Store{{Name: "s", Dir: dir}}})
	first, err := call(t, k, `{"query": "heron", "top_k": 1}`)
	if err != nil {
		t.Fatal(err)
	}
	e := first.Evidence[0]
	var from, to int
	if _, err := fmt.Sscanf(e.URI, "local:s/log.txt#bytes=%d-%d", &from, &to); err != nil {
		t.Fatalf("%s: %v", e.URI, err)
	}
	if e.Text != b.String()[from:to] || len(e.Text) > 100_000 || e.Metadata["part"] != fmt.Sprintf("bytes %d to %d of %d", from, to, b.Len()) {
		t.Errorf("the evidence %s has %d bytes, and says %v", e.URI, len(e.Text), e.Metadata)
	}
	if shown := e.Text[e.Shown[0].Start:e.Shown[0].End]; !strings.Contains(shown, "The heron stood") || len(shown) > 2000 {
		t.Errorf("shown is %q", shown)
	}
	second, err := call(t, k, `{"query": "entry 12346", "top_k": 1}`)
	if err != nil || second.Evidence[0].URI != e.URI {
		t.Errorf("the next entry is in %s, error %v, want %s", second.Evidence[0].URI, err, e.URI)
	}
}

// TestFormats: documents of all formats are searched, and those within files, too.
func TestFormats(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "page.html"), "<html><head><title>Birds</title></head><body><article><h1>Birds</h1><p>The heron stood in the river, and it did so for a long time.</p></article></body></html>")
	write(t, filepath.Join(dir, "lines.jsonl"), `{"id": "one", "text": "A heron.", "title": "First", "year": 2020}`+"\n\n{\n"+`{"text": "Two herons."}`+"\n")
	write(t, filepath.Join(dir, "old.txt"), "Der Reiher hei\xdft auf Englisch heron und lebt in gro\xdfen Fl\xfcssen.")
	write(t, filepath.Join(dir, "letter.eml"), "From: a@example.com\nTo: b@example.com\nSubject: Heron\nContent-Type: text/plain\n\nDid you see the heron?\n")
	write(t, filepath.Join(dir, "a.zip"), "PK\x03\x04 not opened")
	k := newKit(t, search.Config{Stores: []search.Store{{Name: "s", Dir: dir}}})
	got := find(t, k, "heron")
	slices.Sort(got)
	want(t, got, "letter.eml", "lines.jsonl#4", "lines.jsonl#one", "old.txt", "page.html")
	for _, h := range hits(t, k, search.Query{Text: "First heron", TopK: 1}) {
		if h.Document != "lines.jsonl#one" || h.Title != "First" || h.Metadata["year"] != "2020" || h.Quote != "A heron." {
			t.Errorf("the best is %+v", h)
		}
	}
	want(t, find(t, k, "grosse, in großen FLÜSSEN"), "old.txt")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
