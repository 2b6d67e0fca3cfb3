package input_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/text/encoding/htmlindex"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/input"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/html"
	"github.com/coditect/mapreduce/internal/document/plain"
)

// formats are those that the command reads.
func formats() *document.Registry {
	r, err := document.NewRegistry(plain.TextFormat(), plain.MarkdownFormat(), html.Format(), plain.JSONLinesFormat())
	if err != nil {
		panic(err)
	}
	return r
}

// folder makes files by name and returns where they are.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(ctx context.Context, c input.Config) (docs []*mapreduce.Document, err error) {
	for d, e := range input.Documents(ctx, c) {
		if e != nil {
			return docs, e
		}
		docs = append(docs, d)
	}
	return docs, nil
}

func TestDocuments(t *testing.T) {
	dir := folder(t, map[string]string{
		"a.txt":       "plain",
		"bom.txt":     "\xef\xbb\xbfmarked",
		"utf16.txt":   "\xff\xfeG\x00\xf6\x00",
		"latin.txt":   "Gr\xf6\xdfe",
		"note.md":     "# head",
		"page.html":   "<p>Gr\xf6\xdfe",
		"large.txt":   strings.Repeat("x", 101),
		"lines.jsonl": "{\"id\": \"one\", \"text\": \"1\", \"n\": 1.50, \"s\": \"x\", \"no\": null}\n\nnonsense\n{\"text\": \"2\"}\n",
		".hidden":     "x",
	})
	got, err := read(t.Context(), input.Config{Formats: formats(), Inputs: []string{dir}, MaxBytes: 100})
	if err != nil {
		t.Fatal(err)
	}
	want := []*mapreduce.Document{
		{ID: "a.txt", MediaType: "text/plain", Content: []byte("plain"), Size: 5},
		{ID: "bom.txt", MediaType: "text/plain", Content: []byte("marked"), Size: 9},
		{ID: "large.txt", Skip: "too large: 101 bytes, more than 100 (--document-bytes)", Size: 101},
		{ID: "latin.txt", Skip: "not UTF-8: byte 0xf6 at offset 2, and no other charset is declared; --encoding names that of plain text", Size: 5},
		{ID: "one", MediaType: "text/plain", Content: []byte("1"), Size: 1, Metadata: map[string]string{"n": "1.50", "s": "x"}},
		{ID: "lines.jsonl#3", Skip: "line 3: not JSON: column 2: 'o' stands in a word that is none of true, false and null; put texts in quotes"},
		{ID: "lines.jsonl#4", MediaType: "text/plain", Content: []byte("2"), Size: 1},
		{ID: "note.md", MediaType: "text/markdown", Metadata: map[string]string{"title": "head"}, Content: []byte("# head"), Size: 6},
		{ID: "page.html", MediaType: "text/html", Content: []byte("<p>Gr\xf6\xdfe"), Size: 8},
		{ID: "utf16.txt", MediaType: "text/plain", Content: []byte("Gö"), Size: 6},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
}

func TestStdin(t *testing.T) {
	for _, test := range []struct {
		name, stdin string
		want        []mapreduce.DocumentID
	}{
		{"one document", "text", []mapreduce.DocumentID{"stdin"}},
		{"lines", "{\"text\": \"1\"}\n{\"id\": \"b\", \"text\": \"2\"}\n", []mapreduce.DocumentID{"stdin#1", "b"}},
		{"a document longer than the buffer", strings.Repeat("x", 1<<20), []mapreduce.DocumentID{"stdin"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := input.Config{Formats: formats(), Inputs: []string{"-"}, Stdin: bufio.NewReader(strings.NewReader(test.stdin))}
			if err := input.Check(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			docs, err := read(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			var ids []mapreduce.DocumentID
			size := 0
			for _, d := range docs {
				ids = append(ids, d.ID)
				size += len(d.Content)
			}
			if diff := cmp.Diff(test.want, ids); diff != "" {
				t.Errorf("ids (-want +got):\n%s", diff)
			}
			if len(docs) == 1 && size != len(test.stdin) {
				t.Errorf("%d bytes, want %d", size, len(test.stdin))
			}
		})
	}
}

// TestLongNames reads documents whose names make ids that are too long: they are
// skipped with the reason, under ids that fit and differ.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("é", 120) // 240 bytes; no more than 255 fit a file's name
	deep := strings.Repeat(long+"/", 2) + strings.Repeat("y", 29)
	line := func(id string) string { return fmt.Sprintf("{\"id\": %q, \"text\": \"x\"}\n", id) }
	dir := folder(t, map[string]string{
		"l.jsonl":   line(strings.Repeat("x", 513)) + line(strings.Repeat("x", 512)),
		deep + "a":  "as long as may be",
		deep + "bb": "too long", deep + "cc": "too long",
	})
	docs, err := read(t.Context(), input.Config{Formats: formats(), Inputs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	const reason = "its id would have 513 bytes, more than 512; give it a shorter name"
	seen, got := make(map[mapreduce.DocumentID]bool), make([]string, 0, len(docs))
	for _, d := range docs {
		if len(d.ID) > mapreduce.MaxDocumentID || !utf8.ValidString(string(d.ID)) {
			t.Errorf("id of %d bytes: %q", len(d.ID), d.ID)
		}
		seen[d.ID] = true
		got = append(got, d.Skip)
	}
	want := []string{"line 1: its id would have 513 bytes, more than 512; give it a shorter name", "", "", reason, reason}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("why skipped (-want +got):\n%s", diff)
	}
	if len(seen) != len(docs) {
		t.Errorf("%d different ids of %d documents", len(seen), len(docs))
	}
}

// TestLongNamesOfSeveralInputs prefixes ids, which makes one too long.
func TestLongNamesOfSeveralInputs(t *testing.T) {
	dir := folder(t, map[string]string{"l.jsonl": fmt.Sprintf("{\"id\": %q, \"text\": \"x\"}\n", strings.Repeat("x", 512)), "a.txt": "a"})
	docs, err := read(t.Context(), input.Config{Formats: formats(), Inputs: []string{filepath.Join(dir, "a.txt"), filepath.Join(dir, "l.jsonl")}})
	if err != nil {
		t.Fatal(err)
	}
	if len(docs) != 2 || docs[1].Skip != "line 1: its id would have 520 bytes, more than 512; give it a shorter name" {
		t.Errorf("got %+v, want the second of two documents skipped", docs)
	}
}

func TestErrors(t *testing.T) {
	dir := folder(t, map[string]string{
		"a.txt": "x", "z.jsonl": "{\"id\": \"a.txt\", \"text\": \"x\"}\n", "pdf/p.pdf": "%PDF-", "empty/.hidden": "x",
	})
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, test := range []struct {
		name   string
		config input.Config
		want   string
	}{
		{"none", input.Config{Formats: formats()}, "is missing"},
		{"not there", input.Config{Formats: formats(), Inputs: []string{at("none")}}, "no such file"},
		{"twice standard input", input.Config{Formats: formats(), Inputs: []string{"-", "-"}, Stdin: bufio.NewReader(strings.NewReader("x"))}, "twice"},
		{"nothing on standard input", input.Config{Formats: formats(), Inputs: []string{"-"}, Stdin: bufio.NewReader(strings.NewReader(""))}, "standard input is empty"},
		{"no file", input.Config{Formats: formats(), Inputs: []string{at("empty")}}, "no file was found"},
		{"no file that matches", input.Config{Formats: formats(), Inputs: []string{dir}, Include: []string{"*.md"}}, "no file is left"},
		{"bad glob", input.Config{Formats: formats(), Inputs: []string{dir}, Include: []string{"[x"}}, `glob "[x"`},
		{"line of the name of a file", input.Config{Formats: formats(), Inputs: []string{dir}}, `the file "a.txt" and z.jsonl:1 have the same id "a.txt"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := input.Check(t.Context(), test.config)
			if err == nil {
				_, err = read(t.Context(), test.config)
			}
			if !errors.Is(err, errs.Invalid) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that says %q", err, test.want)
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	dir := folder(t, map[string]string{"a.txt": "x", "b.txt": "x"})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	because := errors.New("enough")
	n := 0
	for _, err := range input.Documents(ctx, input.Config{Formats: formats(), Inputs: []string{dir}}) {
		if n++; n == 1 {
			cancel(because)
			continue
		}
		if err != because {
			t.Errorf("error %v, want the cause", err)
		}
	}
	if n != 2 {
		t.Errorf("%d documents and errors, want 2", n)
	}
}

// A sample is a part of the input, in its order, and which part depends neither
// on other documents that are not chosen nor on how the documents come.
func TestSample(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,6}`), 1, 40, rapid.ID[string]).Draw(t, "ids")
		n := rapid.IntRange(1, 45).Draw(t, "n")
		var all strings.Builder
		for _, id := range ids {
			fmt.Fprintf(&all, "{\"id\": %q, \"text\": \"x\"}\n", id)
		}
		sample := func(lines string) []string {
			docs, err := read(context.Background(), input.Config{
				Formats: formats(), Inputs: []string{"-"}, Sample: n, Stdin: bufio.NewReader(strings.NewReader(lines)),
			})
			if err != nil {
				t.Fatal(err)
			}
			var chosen []string
			for _, d := range docs {
				chosen = append(chosen, string(d.ID))
			}
			return chosen
		}
		chosen := sample(all.String())
		if len(chosen) != min(n, len(ids)) {
			t.Fatalf("%d of %d documents, want %d", len(chosen), len(ids), n)
		}
		inOrder := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(chosen, id) })
		if diff := cmp.Diff(inOrder, chosen); diff != "" {
			t.Errorf("order of the input (-), of the sample (+):\n%s", diff)
		}
		lines := strings.SplitAfter(strings.TrimSuffix(all.String(), "\n"), "\n")
		slices.Reverse(lines)
		reversed := sample(strings.TrimSuffix(strings.Join(lines, "\n"), "\n"))
		slices.Reverse(reversed)
		if diff := cmp.Diff(chosen, reversed); diff != "" {
			t.Errorf("sample of the input (-), of the same backwards (+):\n%s", diff)
		}
	})
}

// TestInputsInsideOthers reads each document once, under the id that it has without the
// inputs that add nothing.
func TestInputsInsideOthers(t *testing.T) {
	dir := folder(t, map[string]string{"in/a.txt": "a", "in/sub/b.txt": "b", "in/.hidden/c.txt": "c", "input2/d.txt": "d"})
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, tt := range []struct {
		name   string
		inputs []string
		want   []string
	}{
		{"a file of the folder", []string{at("in/a.txt"), at("in")}, []string{"a.txt", "sub/b.txt"}},
		{"a folder of the folder", []string{at("in"), at("in/sub"), at("in/sub/b.txt")}, []string{"a.txt", "sub/b.txt"}},
		{"the same twice", []string{at("in/a.txt"), at("in/./a.txt")}, []string{"a.txt"}},
		{"a hidden file is not in the folder", []string{at("in"), at("in/.hidden/c.txt")}, []string{"in/a.txt", "in/sub/b.txt", "c.txt"}},
		{"a name that begins like the folder's", []string{at("in"), at("input2")}, []string{"in/a.txt", "in/sub/b.txt", "input2/d.txt"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			docs, err := read(t.Context(), input.Config{Formats: formats(), Inputs: tt.inputs})
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, d := range docs {
				ids = append(ids, string(d.ID))
			}
			if diff := cmp.Diff(tt.want, ids); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestEncodings reads documents that are not UTF-8 in the encoding that they look like.
func TestEncodings(t *testing.T) {
	for _, tt := range []struct{ name, charset, text string }{
		{"German", "windows-1252", "Die Größe der Vereinbarung beträgt 12,50 € für Müller & Söhne GmbH"},
		{"French", "iso-8859-1", "Le contrat est conclu à Genève, élu président"},
		{"Russian", "windows-1251", "Договор аренды заключен 12 марта 2001 года в городе Москва"},
		{"Japanese", "euc-jp", "契約書は2001年4月18日に締結された。"},
		{"Chinese", "gb18030", "本合同于二〇〇一年四月十八日签订"},
		{"Korean", "euc-kr", "이 계약은 2001년 4월 18일에 체결되었다"},
		{"UTF-16 without a mark", "utf-16le", "TOTAL: 12.50 in plain text"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			enc, err := htmlindex.Get(tt.charset)
			if err != nil {
				t.Fatal(err)
			}
			data, err := enc.NewEncoder().String(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			var notes []string
			docs, err := read(t.Context(), input.Config{
				Formats: formats(), Inputs: []string{folder(t, map[string]string{"a.txt": data, "b.txt": data})},
				Note: func(message string) { notes = append(notes, message) },
			})
			if err != nil || len(docs) != 2 || string(docs[0].Content) != tt.text {
				t.Errorf("got %+v, error %v, want %q", docs, err, tt.text)
			}
			if len(notes) != 1 || !strings.Contains(notes[0], "a.txt is not UTF-8") {
				t.Errorf("notes %q, want one", notes)
			}
		})
	}
}

// TestRefusedGuess says of a text that is not in the encoding that it looks like how to name another.
func TestRefusedGuess(t *testing.T) {
	german := strings.Repeat("Die Lieferung erfolgt bis Ende M\xe4rz. F\xfcr Sch\xe4den haftet der K\xe4ufer nicht.\n", 5)
	docs, err := read(t.Context(), input.Config{
		Formats: formats(), Inputs: []string{folder(t, map[string]string{"a.txt": german + "\x90"})},
	})
	const want = "not windows-1252: byte 0x90 at offset 370; windows-1252 was only guessed, and --encoding names the charset of plain text"
	if err != nil || len(docs) != 1 || docs[0].Skip != want {
		t.Errorf("got %+v, error %v, want %q", docs, err, want)
	}
}

// A question is the one document where there are no others.
func TestQuestion(t *testing.T) {
	c := input.Config{Formats: formats(), Question: "Who built the bridge?"}
	if err := input.Check(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	docs, err := read(t.Context(), c)
	if err != nil || len(docs) != 1 || docs[0].ID != "question" || string(docs[0].Content) != c.Question {
		t.Errorf("read %+v: %v", docs, err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Inputs = []string{dir}
	if docs, err = read(t.Context(), c); err != nil || len(docs) != 1 || docs[0].ID != "a.txt" {
		t.Errorf("with an input: read %+v: %v", docs, err)
	}
}
