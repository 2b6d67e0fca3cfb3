package files_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/html"
	"github.com/coditect/mapreduce/internal/document/ooxml"
	"github.com/coditect/mapreduce/internal/document/plain"
	"github.com/coditect/mapreduce/internal/document/zipfile"
	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/files"
)

// canary is a text that stands outside of the root alone.
const canary = "CANARY-7f3a"

// A place is a folder with a root in it, and files with the canary around the root.
type place struct{ dir, root string }

func newPlace(t testing.TB, inside map[string]string) place {
	t.Helper()
	dir := t.TempDir()
	p := place{dir, filepath.Join(dir, "root")}
	p.write(t, "secret.txt", canary)
	p.write(t, "ROOT/notes.txt", canary) // another folder, by case alone
	p.write(t, "root2/notes.txt", canary)
	for name, text := range inside {
		p.write(t, "root/"+name, text)
	}
	return p
}

func (p place) write(t testing.TB, name, text string) {
	t.Helper()
	file := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (p place) link(t testing.TB, to, name string) {
	t.Helper()
	if err := os.Symlink(to, filepath.Join(p.root, name)); err != nil {
		t.Fatal(err)
	}
}

// open returns a session over the root.
func (p place) open(t testing.TB, c files.Config) tool.Session {
	t.Helper()
	formats, err := document.NewRegistry(plain.TextFormat(), plain.MarkdownFormat(), html.Format(), plain.JSONLinesFormat(), ooxml.XlsxFormat(), zipfile.ZipFormat())
	if err != nil {
		t.Fatal(err)
	}
	c.Root, c.Formats = p.root, formats
	kit, err := files.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kit.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := kit.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// call calls a tool with properties in pairs of name and value.
func call(t testing.TB, s tool.Session, name string, properties ...any) (*tool.Result, error) {
	t.Helper()
	in := make(map[string]any)
	for i := 0; i < len(properties); i += 2 {
		in[properties[i].(string)] = properties[i+1]
	}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return s.Call(t.Context(), name, data)
}

func must(t testing.TB, s tool.Session, name string, properties ...any) *tool.Result {
	t.Helper()
	r, err := call(t, s, name, properties...)
	if err != nil {
		t.Fatalf("%s %v: %v", name, properties, err)
	}
	return r
}

// everything returns all that a call brought.
func everything(r *tool.Result, err error) string {
	if err != nil {
		return err.Error()
	}
	all := r.Text
	for _, e := range r.Evidence {
		all += "\n" + e.URI + "\n" + e.Text
	}
	return all
}

func refused(t testing.TB, what string, err error) string {
	t.Helper()
	r, ok := errors.AsType[*tool.Refused](err)
	if !ok {
		t.Fatalf("%s: got %v, want a refusal", what, err)
	}
	return r.Error()
}

func TestReadAndGlob(t *testing.T) {
	p := newPlace(t, map[string]string{"a.txt": "one\ntwo\n", "docs/b.md": "# B\n\ntext", "docs/deep/c.html": "<p>the page</p>", "docs/.hidden.md": "x", ".git/config": "x", "lines.jsonl": "{\"a\":1}\n{\"a\":2}\n"})
	book := excelize.NewFile()
	if err := book.SetCellValue("Sheet1", "A1", "quarterly figures"); err != nil {
		t.Fatal(err)
	}
	if err := book.SaveAs(filepath.Join(p.root, "docs", "sheet.xlsx")); err != nil {
		t.Fatal(err)
	}
	s := p.open(t, files.Config{Now: func() time.Time { return time.Unix(0, 0) }})
	for pattern, want := range map[string][]string{
		"*.md":     {"docs/b.md"},
		"**/*.txt": {"a.txt"},
		"docs/**":  {"docs/b.md", "docs/deep/c.html", "docs/sheet.xlsx"},
		"**":       {"a.txt", "docs/b.md", "docs/deep/c.html", "docs/sheet.xlsx", "lines.jsonl"},
		"*.pdf":    nil,
		".git/**":  nil,
	} {
		var got []string
		for line := range strings.Lines(must(t, s, "glob", "pattern", pattern).Text) {
			if name, _, ok := strings.Cut(line, "\t"); ok {
				got = append(got, name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", pattern, diff)
		}
	}
	if r := must(t, s, "glob", "pattern", "**", "limit", 2); strings.Count(r.Text, "\t") != 2 || !strings.Contains(r.Text, "There are more") {
		t.Errorf("a list of 2: %s", r.Text)
	}
	for name, want := range map[string][2]string{
		"a.txt": {"one\ntwo\n", "text/plain"}, "./docs//b.md": {"# B\n\ntext", "text/markdown"}, "docs/deep/c.html": {"the page", "text/html"}, "lines.jsonl": {`{"a":2}`, "application/jsonl"},
		"docs/sheet.xlsx": {"quarterly figures", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
	} {
		e := must(t, s, "read", "path", name).Evidence[0]
		if !strings.Contains(e.Text, want[0]) || e.Media != want[1] || e.URI != filepath.ToSlash(filepath.Clean(name)) || e.Metadata["modified"] == "" || !e.Retrieved.Equal(time.Unix(0, 0)) {
			t.Errorf("%s: %+v", name, e)
		}
	}
	p.write(t, "root/a.txt", "changed")
	if e := must(t, s, "read", "path", "a.txt").Evidence[0]; e.Text != "changed" {
		t.Errorf("a file that has changed is %q", e.Text)
	}
	p.write(t, "root/empty", "")
	p.write(t, "root/binary", "\x00\x01\x02\xff")
	p.write(t, "root/packed.zip", "PK\x03\x04")
	for name, want := range map[string]string{"empty": "is empty", "binary": "cannot be read", "packed.zip": "archive", "missing": "no such file", "docs": "is a folder", ".": "is a folder", "a.txt/x": "not a directory"} {
		if _, err := call(t, s, "read", "path", name); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), p.dir) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}

func TestReadInParts(t *testing.T) {
	text := strings.Repeat("Größe und Maß.\n", 10_000)
	p := newPlace(t, map[string]string{"long.txt": text})
	s := p.open(t, files.Config{})
	var read strings.Builder
	for start := 0; ; {
		e := must(t, s, "read", "path", "long.txt", "start", start).Evidence[0]
		part := e.Text[e.Shown[0].Start:e.Shown[0].End]
		if part == "" || len(part) > tool.DefaultOutput || e.Text != text {
			t.Fatalf("a part of %d bytes", len(part))
		}
		read.WriteString(part)
		start += len([]rune(part))
		if e.Shown[0].End == len(text) {
			break
		}
	}
	if read.String() != text {
		t.Errorf("read %d of %d bytes", read.Len(), len(text))
	}
	for _, start := range []int{-1, 1_000_000} {
		if _, err := call(t, s, "read", "path", "long.txt", "start", start); err == nil {
			t.Errorf("start %d is accepted", start)
		}
	}
}

func TestGrep(t *testing.T) {
	long := strings.Repeat("filler\n", 50_000) + "needle in a long file\n" + strings.Repeat("filler\n", 10)
	p := newPlace(t, map[string]string{
		"a.txt": "one\ntwo needle\nthree\nfour\nfive needle\nsix", "b/c.md": "Needle\n", "page.html": "<p>a <b>nee</b>dle</p>", "long.txt": long, "none.txt": "nothing", ".env": "needle",
		"lines.txt": strings.Repeat("needle\n", 500),
	})
	s := p.open(t, files.Config{})
	shown := func(r *tool.Result) map[string][]string {
		all := make(map[string][]string)
		for _, e := range r.Evidence {
			for _, s := range e.Shown {
				all[e.URI] = append(all[e.URI], e.Text[s.Start:s.End])
			}
		}
		return all
	}
	r := must(t, s, "grep", "pattern", "needle", "glob", "[abp]*")
	if diff := cmp.Diff(map[string][]string{"a.txt": {"one\ntwo needle\nthree\nfour\nfive needle\nsix"}, "page.html": {"a needle"}}, shown(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r = must(t, s, "grep", "pattern", "^(?:two|FIVE)", "ignore_case", true, "context", 0, "glob", "a.txt")
	if diff := cmp.Diff(map[string][]string{"a.txt": {"two needle", "five needle"}}, shown(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r = must(t, s, "grep", "pattern", "NEEDLE", "ignore_case", true, "limit", 3)
	if n := len(r.Evidence) + strings.Count(r.Text, "read it to cite it"); n == 0 || !strings.Contains(r.Text, "This is not all") {
		t.Errorf("three lines: %s", r.Text)
	}
	r = must(t, s, "grep", "pattern", "needle in", "glob", "long.txt")
	if len(r.Evidence) != 0 || !strings.Contains(r.Text, "long.txt, line 50000 (read it to cite it):\nfiller\nneedle in a long file\nfiller") {
		t.Errorf("a long file: %s", r.Text)
	}
	if all := everything(call(t, s, "grep", "pattern", "needle", "glob", ".env")); strings.Contains(all, ".env\n") {
		t.Errorf("a hidden file is looked through: %s", all)
	}
	for _, in := range [][]any{{"pattern", "("}, {"pattern", strings.Repeat("a", 1001)}, {"pattern", "x", "glob", "[" + "a"}, {"pattern", "(a{1000}){1000}"}, {"patern", "x"}} {
		if _, err := call(t, s, "grep", in...); err == nil {
			t.Errorf("%v is accepted", in)
		}
	}
}

// TestEscapes (E8) tries to leave the root in each way. All are refused or find nothing, what
// was tried is named, and the canary is never shown.
func TestEscapes(t *testing.T) {
	p := newPlace(t, map[string]string{"a.txt": "inside", "d/b.txt": "inside"})
	p.link(t, "../secret.txt", "out")
	p.link(t, filepath.Join(p.dir, "secret.txt"), "absolute")
	p.link(t, "..", "up")
	p.link(t, "/", "top")
	p.link(t, "out", "chain")
	p.link(t, "d/../../secret.txt", "dotted")
	p.link(t, "/proc/self/root"+p.dir+"/secret.txt", "magic")
	p.link(t, "/dev/zero", "zero")
	p.link(t, "loop", "loop")
	p.link(t, "a.txt", "good")
	p.link(t, "d", "gooddir")
	s := p.open(t, files.Config{})
	for _, path := range []string{
		"../secret.txt", "d/../../secret.txt", "..", "../root2/notes.txt", "../ROOT/notes.txt", "/etc/passwd", filepath.Join(p.dir, "secret.txt"), "d/../..//secret.txt",
		`..\secret.txt`, `d\..\..\secret.txt`, "a.txt\x00/../../secret.txt", "out", "absolute", "up/secret.txt", "top/etc/passwd", "chain", "dotted", "magic", "zero",
		"./../secret.txt", "d/./../../secret.txt", strings.Repeat("d/../", 900) + "a.txt", ".git/config", "d/.env", strings.Repeat("a", 5000),
	} {
		_, err := call(t, s, "read", "path", path)
		got := refused(t, path, err)
		if name, _, _ := strings.Cut(path, "\x00"); len(name) < 100 && !strings.Contains(got, name) {
			t.Errorf("%q is not named: %s", path, got)
		}
		if strings.Contains(got, canary) || !strings.HasPrefix(path, p.dir) && strings.Contains(got, p.dir) {
			t.Errorf("%q: %s", path, got)
		}
	}
	for _, path := range []string{"%2e%2e/secret.txt", "..%2fsecret.txt", "A.TXT", "D/b.txt", "ROOT/notes.txt", "a.txt ", "loop"} {
		if all := everything(call(t, s, "read", "path", path)); strings.Contains(all, canary) || strings.Contains(all, "inside") {
			t.Errorf("%q: %s", path, all)
		}
	}
	for _, pattern := range []string{"../*", "/etc/*", "d/../../*", "up/*", "top/etc/passwd", "**", "out", "*"} {
		for _, in := range [][]any{{"glob", "pattern", pattern}, {"grep", "pattern", "CANARY|root:", "glob", pattern}} {
			if all := everything(call(t, s, in[0].(string), in[1:]...)); strings.Contains(all, canary) || strings.Contains(all, "secret") || strings.Contains(all, "up/") || strings.Contains(all, "passwd\t") {
				t.Errorf("%v: %s", in, all)
			}
		}
	}
	for _, path := range []string{"good", "gooddir/b.txt"} {
		if e := must(t, s, "read", "path", path).Evidence[0]; e.Text != "inside" {
			t.Errorf("a link that stays inside is read as %q", e.Text)
		}
	}
}

// TestDevices: what is no file is neither read nor waited for, and is named.
func TestDevices(t *testing.T) {
	p := newPlace(t, map[string]string{"a.txt": "inside"})
	if err := syscall.Mkfifo(filepath.Join(p.root, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(p.root, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	want := map[string]string{"pipe": "pipe", "socket": "socket"}
	if err := syscall.Mknod(filepath.Join(p.root, "null"), syscall.S_IFCHR|0o600, 1<<8|3); err == nil {
		want["null"] = "device"
	} else {
		t.Logf("no device of its own: %v", err)
	}
	s := p.open(t, files.Config{})
	for name, kind := range want {
		_, err := call(t, s, "read", "path", name)
		if got := refused(t, name, err); !strings.Contains(got, "the path "+name) || !strings.Contains(got, kind) {
			t.Error(got)
		}
	}
	if got := must(t, s, "glob", "pattern", "**").Text; got != "a.txt\t6 bytes" {
		t.Errorf("listed: %s", got)
	}
	must(t, s, "grep", "pattern", "x") // waits for no pipe
}

// TestRaces (E8) exchanges a file, a folder and a pipe for links that lead outside, and back, while
// they are read: whatever is read was inside.
func TestRaces(t *testing.T) {
	p := newPlace(t, map[string]string{"f": "inside", "d/notes.txt": "inside", "spare": "inside"})
	p.write(t, "notes.txt", canary)
	s := p.open(t, files.Config{MaxCache: 1})
	ctx, stop := context.WithCancel(t.Context())
	var exchanging sync.WaitGroup
	exchange := func(name string, make ...func(path string) error) {
		exchanging.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				next := filepath.Join(p.root, fmt.Sprintf(".next-%s", name))
				if err := make[i%len(make)](next); err != nil {
					t.Error(err)
					return
				}
				if err := os.RemoveAll(filepath.Join(p.root, name)); err != nil {
					t.Error(err)
					return
				}
				if err := os.Rename(next, filepath.Join(p.root, name)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	link := func(to string) func(string) error {
		return func(path string) error { return os.Symlink(to, path) }
	}
	exchange("f",
		func(path string) error { return os.WriteFile(path, []byte("inside"), 0o600) }, link("../secret.txt"),
		func(path string) error { return syscall.Mkfifo(path, 0o600) }, link(filepath.Join(p.dir, "secret.txt")))
	exchange("d",
		func(path string) error {
			if err := os.Mkdir(path, 0o700); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(path, "notes.txt"), []byte("inside"), 0o600)
		}, link(".."), link(p.dir))
	var inside, refusals, others int
	for range 4000 {
		for _, in := range [][]any{{"read", "path", "f"}, {"read", "path", "d/notes.txt"}} {
			r, err := call(t, s, in[0].(string), in[1:]...)
			switch all := everything(r, err); {
			case strings.Contains(all, canary):
				t.Fatalf("%v: %s", in, all)
			case err == nil:
				inside++
			case errors.As(err, new(*tool.Refused)):
				refusals++
			default:
				others++
			}
		}
	}
	for range 300 {
		for _, in := range [][]any{{"grep", "pattern", "CANARY"}, {"glob", "pattern", "**"}} {
			if all := everything(call(t, s, in[0].(string), in[1:]...)); strings.Contains(all, canary) || strings.Contains(all, "secret") {
				t.Fatalf("%v: %s", in, all)
			}
		}
	}
	stop()
	exchanging.Wait()
	t.Logf("%d reads inside, %d refused, %d without a file", inside, refusals, others)
	if inside == 0 || refusals == 0 {
		t.Errorf("%d reads inside and %d refused: nothing was exchanged in time", inside, refusals)
	}
}

// TestRootIsHeld: a root that another folder takes the place of is still the first one.
func TestRootIsHeld(t *testing.T) {
	p := newPlace(t, map[string]string{"notes.txt": "inside"})
	s := p.open(t, files.Config{})
	for _, step := range [][2]string{{p.root, p.root + "-moved"}, {filepath.Join(p.dir, "root2"), p.root}} {
		if err := os.Rename(step[0], step[1]); err != nil {
			t.Fatal(err)
		}
	}
	if e := must(t, s, "read", "path", "notes.txt").Evidence[0]; e.Text != "inside" {
		t.Errorf("read %q", e.Text)
	}
	if _, err := files.New(files.Config{Root: filepath.Join(p.dir, "secret.txt")}); err == nil {
		t.Error("a file is a root")
	}
}

// TestBounds: files, folders and searches are bounded, and say so.
func TestBounds(t *testing.T) {
	p := newPlace(t, map[string]string{"a.txt": "inside"})
	huge := filepath.Join(p.root, "huge.txt")
	if err := os.WriteFile(huge, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 1<<40); err != nil {
		t.Fatal(err)
	}
	p.write(t, "root/long.txt", strings.Repeat("0123456789abcde\n", 400_000)) // 6.4 MB
	for i := range 30 {
		p.write(t, fmt.Sprintf("root/many/%02d", i), "x")
	}
	s := p.open(t, files.Config{MaxWalk: 20, MaxScan: 7 << 20})
	if _, err := call(t, s, "read", "path", "huge.txt"); err == nil || !strings.Contains(err.Error(), "1099511627776 bytes") {
		t.Errorf("1 TB: %v", err)
	}
	r := must(t, s, "read", "path", "long.txt")
	if e := r.Evidence[0]; len(e.Text) != tool.MaxEvidence || r.Cut != 400_000*16-tool.MaxEvidence || !strings.Contains(r.Text, "cannot be read") {
		t.Errorf("a text of %d bytes, %d left out: %s", len(e.Text), r.Cut, r.Text)
	}
	if got := must(t, s, "glob", "pattern", "**").Text; !strings.Contains(got, "more files than one call looks at") {
		t.Errorf("a folder of many files: %s", got)
	}
	if got := must(t, s, "grep", "pattern", "zzz").Text; !strings.Contains(got, "This is not all") {
		t.Errorf("much to look through: %s", got)
	}
	p.write(t, "root/slow/a.txt", strings.Repeat("a", 3<<20))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err := p.open(t, files.Config{}).Call(ctx, "grep", json.RawMessage(`{"pattern":"(a*)*(a*)*(a|b|c|d){100}z","glob":"slow/*"}`))
	if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took > 20*time.Second {
		t.Errorf("a slow pattern took %v: %v", took, err)
	}
}

// FuzzRead: no path reads what is outside of the root.
func FuzzRead(f *testing.F) {
	p := newPlace(f, map[string]string{"a.txt": "inside", "d/b.txt": "inside"})
	p.link(f, "../secret.txt", "out")
	p.link(f, "..", "up")
	s := p.open(f, files.Config{})
	for _, seed := range []string{"a.txt", "../secret.txt", "out", "up/secret.txt", "d/../../secret.txt", "up/root/../secret.txt", "/", "\\..", "d//..//..//secret.txt"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		for _, in := range [][]any{{"read", "path", path}, {"glob", "pattern", path}, {"grep", "pattern", "CANARY", "glob", path}} {
			all := everything(call(t, s, in[0].(string), in[1:]...))
			if strings.Contains(all, canary) || strings.Contains(all, p.dir) && !strings.Contains(path, p.dir) {
				t.Fatalf("%q: %s", in, all)
			}
		}
	})
}
