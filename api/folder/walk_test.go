package folder_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coditect/mapreduce/api/folder"

	"github.com/google/go-cmp/cmp"
)

func TestGlob(t *testing.T) {
	for _, test := range []struct {
		pattern string
		matches []string
		others  []string
	}{
		{"*.txt", []string{"a.txt", "x/y/a.txt"}, []string{"a.txt.gz", "a.txt/b"}},
		{"/*.txt", []string{"a.txt"}, []string{"x/a.txt"}},
		{"./x/*.txt", []string{"x/a.txt"}, []string{"a.txt", "x/y/a.txt"}},
		{"x/**", []string{"x/a", "x/y/z"}, []string{"x", "y/x/a"}},
		{"**/x", []string{"x", "a/x", "a/b/x"}, []string{"a/x/b"}},
		{"a/**/z", []string{"a/z", "a/b/z", "a/b/c/z"}, []string{"a", "z", "b/z"}},
		{"**/a/**/b/**", []string{"a/b/c", "x/a/y/b/z"}, []string{"a/b", "b/a/c"}},
		{"**", []string{"a", "a/b"}, nil},
		{"a?c", []string{"abc", "x/aéc"}, []string{"ac", "a/c"}},
		{"[a-c].md", []string{"b.md"}, []string{"d.md"}},
		{"*", []string{"a", "a/b"}, nil},
		{"x/", []string{"x", "a/x"}, []string{"xx"}},
		{`\*`, []string{"*"}, []string{"a"}},
	} {
		t.Run(test.pattern, func(t *testing.T) {
			g, err := folder.ParseGlob(test.pattern)
			if err != nil {
				t.Fatalf("ParseGlob: %v", err)
			}
			for _, name := range test.matches {
				if !g.Match(name) {
					t.Errorf("does not match %q", name)
				}
			}
			for _, name := range test.others {
				if g.Match(name) {
					t.Errorf("matches %q", name)
				}
			}
		})
	}
}

func TestBadGlobs(t *testing.T) {
	for _, pattern := range []string{"", "/", "[a", `a\`, "**/[", "./"} {
		t.Run(pattern, func(t *testing.T) {
			if _, err := folder.ParseGlob(pattern); err == nil || !strings.Contains(err.Error(), "glob") {
				t.Errorf("got error %v", err)
			}
		})
	}
}

func TestGlobTimeIsBounded(t *testing.T) {
	g, err := folder.ParseGlob(strings.Repeat("**/a/", 200) + "b")
	if err != nil {
		t.Fatal(err)
	}
	if g.Match(strings.Repeat("a/", 2000) + "c") {
		t.Error("matches")
	}
}

// tree makes files under a new folder; names that end in a slash are folders,
// values that begin with -> are links.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(content, "->"); ok {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// walk returns what Walk yields as "id" or "id: reason".
func walk(t *testing.T, inputs []string, o folder.Options) ([]string, error) {
	t.Helper()
	var got []string
	for e, err := range folder.Walk(t.Context(), inputs, o) {
		if err != nil {
			return got, err
		}
		if e.Skip != "" {
			got = append(got, e.ID+": "+e.Skip)
		} else {
			got = append(got, e.ID)
		}
	}
	return got, nil
}

func TestWalk(t *testing.T) {
	root := tree(t, map[string]string{
		"b.txt": "b", "a.md": "a", "sub/c.txt": "c", "sub/deep/d.html": "d", ".hidden": "h", ".git/config": "g",
		"big.txt": strings.Repeat("x", 100), "big.jsonl": strings.Repeat("x", 100), "final": "f", "new\nline": "n", "caf\xe9": "e",
		"sub/loop": "->..", "sub/link.txt": "->../b.txt", "sub/broken": "->nowhere",
	})
	for _, test := range []struct {
		name    string
		options folder.Options
		want    []string
	}{
		{"all", folder.Options{MaxBytes: 50, HoldsMany: func(name string) bool { return strings.HasSuffix(name, ".jsonl") }}, []string{
			"a.md", "b.txt", "big.jsonl", "big.txt: too large: 100 bytes, more than 50 (--document-bytes)", "caf%E9", "%66inal", "new%0Aline",
			"sub/broken: unreadable: no such file or directory", "sub/c.txt", "sub/deep/d.html", "sub/link.txt", "sub/loop: a link to a folder",
		}},
		{"included", folder.Options{Include: []string{"*.txt", "sub/deep/**"}}, []string{
			"b.txt", "big.txt", "sub/c.txt", "sub/deep/d.html", "sub/link.txt",
		}},
		{"excluded", folder.Options{Include: []string{"*.txt"}, Exclude: []string{"sub", "big.*"}}, []string{"b.txt"}},
		{"excluded folder at any depth", folder.Options{Include: []string{"sub/**"}, Exclude: []string{"deep", "loop", "broken"}}, []string{"sub/c.txt", "sub/link.txt"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := walk(t, []string{root}, test.options)
			if err != nil {
				t.Fatalf("Walk: %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWalkInputs(t *testing.T) {
	root := tree(t, map[string]string{"x/a.txt": "1", "y/a.txt": "22", "y/.hidden.txt": "333", "z/x/a.txt": "4", "dir": "->x"})
	in := func(names ...string) []string {
		for i, n := range names {
			if n != folder.Stdin {
				names[i] = filepath.Join(root, n)
			}
		}
		return names
	}
	for _, test := range []struct {
		name   string
		inputs []string
		want   []string
		error  string // a part of it
	}{
		{"none", nil, nil, ""},
		{"file", in("x/a.txt"), []string{"a.txt"}, ""},
		{"folders", in("x", "y"), []string{"x/a.txt", "y/a.txt"}, ""},
		{"folder and file", in("x", "y/a.txt"), []string{"x/a.txt", "a.txt"}, ""},
		{"hidden file by name", in("y/.hidden.txt"), []string{".hidden.txt"}, ""},
		{"link to a folder", in("dir"), []string{"a.txt"}, ""},
		{"standard input", in(folder.Stdin), []string{"stdin"}, ""},
		{"standard input too", in("x", folder.Stdin), []string{"x/a.txt", "stdin"}, ""},
		{"equal files", in("x/a.txt", "y/a.txt"), []string{"a.txt"}, "same id"},
		{"equal folders", in("x", "z/x"), []string{"x/a.txt"}, "same id"},
		{"twice the same", in("x", "x"), []string{"x/a.txt"}, "same id"},
		{"missing", in("nowhere"), nil, "nowhere: no such file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := walk(t, test.inputs, folder.Options{})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			if (err == nil) != (test.error == "") || err != nil && !strings.Contains(err.Error(), test.error) {
				t.Errorf("got error %v, want %q", err, test.error)
			}
		})
	}
}

// A link is read if it stays in the folder, or if links are followed.
func TestWalkLinks(t *testing.T) {
	outside := filepath.Join(tree(t, map[string]string{"secret.txt": "s"}), "secret.txt")
	root := tree(t, map[string]string{"a.txt": "a", "in": "->a.txt", "out": "->" + outside, "over": "->out", "up": "->../outside"})
	for _, test := range []struct {
		follow bool
		want   []string
	}{
		{false, []string{
			"a.txt", "in", "out: a link that leads out of the folder; --follow-symlinks reads it",
			"over: a link that leads out of the folder; --follow-symlinks reads it", "up: unreadable: no such file or directory",
		}},
		{true, []string{"a.txt", "in", "out", "over", "up: unreadable: no such file or directory"}},
	} {
		got, err := walk(t, []string{root}, folder.Options{FollowLinks: test.follow})
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("followed: %t: error %v, entries (-want +got):\n%s", test.follow, err, diff)
		}
	}
}

func TestWalkEntry(t *testing.T) {
	root := tree(t, map[string]string{"sub/a b.txt": "twelve bytes"})
	var got []folder.Entry
	for e, err := range folder.Walk(t.Context(), []string{root}, folder.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	want := []folder.Entry{{ID: "sub/a b.txt", Name: "sub/a b.txt", Path: filepath.Join(root, "sub/a b.txt"), Size: 12}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestWalkPipe(t *testing.T) {
	root := t.TempDir()
	pipe := filepath.Join(root, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	got, err := walk(t, []string{root}, folder.Options{})
	if diff := cmp.Diff([]string{"pipe: not a regular file"}, got); diff != "" || err != nil {
		t.Errorf("error %v, entries (-want +got):\n%s", err, diff)
	}
	if _, err := walk(t, []string{pipe}, folder.Options{}); err == nil || !strings.Contains(err.Error(), "neither a file nor a folder") {
		t.Errorf("a pipe as an input: %v", err)
	}
}

func TestWalkStops(t *testing.T) {
	root := tree(t, map[string]string{"a": "1", "b": "2", "c": "3"})
	n := 0
	for _, err := range folder.Walk(t.Context(), []string{root}, folder.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d entries", n)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	reason := errors.New("enough")
	var last error
	for e, err := range folder.Walk(ctx, []string{root}, folder.Options{}) {
		if e.ID == "a" {
			cancel(reason)
		}
		last = err
	}
	if !errors.Is(last, reason) {
		t.Errorf("cancelled walk ended with %v", last)
	}
}
