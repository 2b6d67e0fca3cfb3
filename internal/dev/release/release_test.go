package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeGo runs git, and stands for the go command: it writes a program that says for which platform
// it is, and a bill of materials.
type fakeGo struct{ fails string } // on a build for this system

func (f fakeGo) run(ctx context.Context, env []string, name string, args ...string) (string, error) {
	if name != "go" {
		return commands{}.run(ctx, env, name, args...)
	}
	switch args[0] {
	case "build":
		if f.fails != "" && slices.Contains(env, "GOOS="+f.fails) {
			return "", errors.New("does not compile")
		}
		program := args[slices.Index(args, "-o")+1]
		if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
			return "", err
		}
		return "", os.WriteFile(program, fmt.Append(nil, env, args[:len(args)-3]), 0o755)
	case "run":
		return `{"bomFormat": "CycloneDX"}`, nil
	}
	return "", fmt.Errorf("no test expects go %s", args[0])
}

// git runs git in the current folder.
func git(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}

// inRepository makes a repository with a change log the current folder of the test.
func inRepository(t *testing.T, changelog string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, name := range []string{"LICENSE", "README.md", "SECURITY.md"} {
		write(t, name, name)
	}
	write(t, "CHANGELOG.md", changelog)
	write(t, ".gitignore", "/bin\n")
	git(t, "init", "--quiet")
	git(t, "config", "user.name", "A")
	git(t, "config", "user.email", "a@example.com")
	git(t, "add", ".")
	git(t, "commit", "--quiet", "--message", "first")
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// filesOf returns the files of a folder by their names.
func filesOf(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(data)
	}
	return files
}

const changelog = "# Changelog\n\n## Unreleased\n\n## 0.1.0\n\nIt is there.\n\n### Results\n\n- One.\n"

func TestRelease(t *testing.T) {
	inRepository(t, changelog)
	if err := makeRelease(t.Context(), fakeGo{}, "bin/release", "v1", true); err != nil {
		t.Fatal(err)
	}

	files := filesOf(t, "bin/release/v0.1.0")
	want := []string{"NOTES.md", "SHA256SUMS"}
	for _, p := range []string{"darwin_amd64", "darwin_arm64", "linux_amd64", "linux_arm64"} {
		want = append(want, "coditect_0.1.0_"+p+".cdx.json", "coditect_0.1.0_"+p+".tar.gz")
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(files))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if n := strings.Count(files["SHA256SUMS"], "\n"); n != len(want)-1 {
		t.Errorf("SHA256SUMS has %d lines, want one for each of the other %d files", n, len(want)-1)
	}

	// The tag has the notes, and is one with an author and a time.
	if kind := strings.TrimSpace(git(t, "cat-file", "-t", "v0.1.0")); kind != "tag" {
		t.Errorf("v0.1.0 is a %s, want an annotated tag", kind)
	}
	if text := git(t, "tag", "--list", "--format=%(contents)", "v0.1.0"); !strings.Contains(text, "Coditect 0.1.0\n\nIt is there.\n\n### Results\n") {
		t.Errorf("the tag says %q, want the notes", text)
	}

	// The same commit gives the same files, also when it has its tag.
	if err := makeRelease(t.Context(), fakeGo{}, "bin/again", "v1", false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(files, filesOf(t, "bin/again/v0.1.0")); diff != "" {
		t.Errorf("made twice, the files differ (-first +second):\n%s", diff)
	}
}

func TestReleaseRefuses(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(t *testing.T)
		with    fakeGo
		want    string
	}{
		{"a changed file", func(t *testing.T) { write(t, "LICENSE", "another") }, fakeGo{}, "LICENSE"},
		{"a file that is not in git", func(t *testing.T) { write(t, "new.go", "package x") }, fakeGo{}, "new.go"},
		{"a version that is there", func(t *testing.T) { git(t, "tag", "v0.1.0") }, fakeGo{}, "the tag v0.1.0 exists"},
		{"a program that does not compile", func(*testing.T) {}, fakeGo{fails: "darwin"}, "darwin/amd64: does not compile"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inRepository(t, changelog)
			test.prepare(t)
			before := git(t, "tag", "--list")

			err := makeRelease(t.Context(), test.with, "bin/release", "v1", true)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got the error %v, want one with %q", err, test.want)
			}
			if after := git(t, "tag", "--list"); after != before {
				t.Errorf("there are the tags %q, want %q as before", after, before)
			}
		})
	}
}
