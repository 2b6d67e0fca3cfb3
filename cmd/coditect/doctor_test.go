package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	main "github.com/coditect/mapreduce/cmd/coditect"
	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// coditect runs a command on a data directory.
func coditect(t *testing.T, dir string, args ...string) (code int, out string) {
	t.Helper()
	var b bytes.Buffer
	code = main.Run(t.Context(), append(args, "--data-dir", dir), &b)
	return code, b.String()
}

// filled returns a data directory with two jobs, of which the first is in a table
// and the second in the log, and the documents.
func filled(t *testing.T) string {
	t.Helper()
	from, dir := fillOnce(t), filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}

	// A copy is for all to read, unless it is told.
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chmod(dir+strings.TrimPrefix(path, from), info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// original is the folder that filled copies, made for the first test that asks for it.
var original struct {
	once   sync.Once
	folder string
}

// fillOnce returns the store that filled copies.
func fillOnce(t *testing.T) string {
	t.Helper()
	original.once.Do(func() {
		folder := filepath.Join(builtIn(), "filled") // removed with what tests have built
		fill(t, folder)
		original.folder = folder
	})
	if original.folder == "" {
		t.Fatal("the store could not be filled for the first test that asked for it")
	}
	return filepath.Join(original.folder, "data")
}

// fill makes a store in a folder's data, with two jobs of 200 documents.
func fill(t *testing.T, folder string) {
	t.Helper()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	schema := write("schema.yaml", "type: object\nproperties:\n  a: {type: string, x-coditect: {labels: [A]}}\n")
	for i := range 200 {
		write(fmt.Sprintf("docs/%03d.txt", i), fmt.Sprintf("A: value %d\n", i))
	}

	dir := filepath.Join(folder, "data")
	for i := range 2 {
		code, out := coditect(t, dir, "mapreduce", "run", "--input", filepath.Join(folder, "docs"), "--schema", schema,
			"--output", filepath.Join(folder, fmt.Sprint("out", i)))
		if code != 0 {
			t.Fatalf("code %d: %s", code, out)
		}
	}
}

// filesOf returns the files of a folder, but for the lock.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, e := range entries {
		if e.Name() == "LOCK" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(b)
	}
	return files
}

// Whatever happens to a file of the store, doctor names it and changes nothing.
func TestDoctorOfADamagedStore(t *testing.T) {
	testenv.SlowOnFDB(t)

	damage := func(t *testing.T, path string) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := 100; i < 140; i++ {
			b[i] ^= 0x55
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cut := func(t *testing.T, path string) {
		if err := os.Truncate(path, 500); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(t *testing.T, path string) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name, suffix string
		change       func(t *testing.T, path string)
		checked      bool // the rest is, as the store can be opened to be read
	}{
		{"a block of a table", ".sst", damage, true},
		{"a table cut short", ".sst", cut, true},
		{"a missing table", ".sst", remove, true},
		{"a missing log", ".log", remove, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filled(t)
			found, err := filepath.Glob(filepath.Join(dir, "*"+tt.suffix))
			if err != nil || len(found) == 0 {
				t.Fatalf("no file is named *%s: %v", tt.suffix, err)
			}
			path := found[0]
			tt.change(t, path)
			before := filesOf(t, dir)
			code, out := coditect(t, dir, "mapreduce", "doctor", "-o", "json")
			var d struct {
				OK       bool
				Findings []struct{ Key, Message string }
				Checked  []string
			}
			report := out[max(0, strings.Index(out, "{\n")):] // behind what the log says
			if err := json.Unmarshal([]byte(report), &d); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if code != 1 || d.OK || len(d.Findings) == 0 {
				t.Fatalf("code %d: %s", code, out)
			}
			if name := strings.TrimSuffix(filepath.Base(path), ".sst"); !strings.Contains(d.Findings[0].Key+d.Findings[0].Message, name) {
				t.Errorf("the first finding does not name %s: %+v", name, d.Findings[0])
			}
			if whole := strings.Contains(strings.Join(d.Checked, "\n"), " checked, "); whole != tt.checked {
				t.Errorf("checked to its end: %t, want %t: %s", whole, tt.checked, out)
			}
			if d := cmp.Diff(before, filesOf(t, dir)); d != "" {
				t.Error("files changed")
			}
		})
	}
}

// Looking changes nothing either.
func TestLookingLeavesTheStoreAlone(t *testing.T) {
	testenv.SlowOnFDB(t)

	dir := filled(t)
	before := filesOf(t, dir)
	for _, args := range [][]string{{"list"}, {"doctor"}} {
		if code, out := coditect(t, dir, append([]string{"mapreduce"}, args...)...); code != 0 {
			t.Errorf("%v ends with %d: %s", args, code, out)
		}
	}
	if d := cmp.Diff(before, filesOf(t, dir)); d != "" {
		t.Error("files changed")
	}
}
