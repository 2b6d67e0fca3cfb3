package main_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// TestExamplesGiveTheSameOnEveryStore runs the examples on the embedded store, one
// unit at a time there, and on a cluster if these tests have one: the files that
// depend on the input alone are equal.
func TestExamplesGiveTheSameOnEveryStore(t *testing.T) {
	testenv.Lengthy(t)

	t.Parallel()
	c := &corpus{program: build(t)}
	for _, e := range []struct {
		name  string
		input func(t *testing.T) []string // flags of run
		least int                         // lines of units.jsonl
	}{
		{"receipts", receipts, 400},
		{"licences", licences, 20},
		{"packages", packages, 1000},
		{"kitchen", kitchen("60"), 8},
		{"kitchen", kitchen("1000"), 1},
	} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			if e.name == "licences" || e.name == "packages" {
				testenv.SlowOnFDB(t)
			}

			schema, err := filepath.Abs(filepath.Join("..", "..", "examples", e.name, "schema.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			args := append([]string{"--schema", schema, "--output", "out"}, e.input(t)...)
			want := ran(t, c, nil, args)
			if lines := strings.Count(want["units.jsonl"], "\n"); lines < e.least {
				t.Fatalf("%d units ran, want at least %d", lines, e.least)
			}
			alone := ran(t, c, nil, append(args, "--parallelism", "1"))
			if diff := cmp.Diff(want, alone); diff != "" {
				t.Errorf("one unit at a time gives something else (-want +got):\n%.4000s", diff)
			}
			store, clear := onCluster(t)
			t.Cleanup(clear)
			if len(store) == 0 {
				return
			}
			if diff := cmp.Diff(want, ran(t, c, store, args)); diff != "" {
				t.Errorf("the cluster gives something else than the embedded store (-want +got):\n%.4000s", diff)
			}
		})
	}
}

// ran runs a job on a store of its own and returns the files of its result.
func ran(t *testing.T, c *corpus, store, args []string) map[string]string {
	t.Helper()
	h := newHouse(t, c)
	h.store = store
	if o := h.try(nil, append([]string{"run"}, args...)...); o.code != 0 && o.code != 3 {
		t.Fatalf("exit code %d\n%s", o.code, o.stderr)
	}
	h.healthy()
	return h.results()
}

func receipts(t *testing.T) []string {
	t.Helper()
	data := os.Getenv("CODITECT_TESTDATA")
	if data == "" {
		t.Skip("CODITECT_TESTDATA names no folder with receipts")
	}
	return []string{"--input", filepath.Join(data, "receipts", "docs")}
}

func licences(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--input", strings.TrimSpace(string(out)), "--include", "**/LICENSE*"}
}

// packages returns some of the packages that this machine's index knows.
func packages(t *testing.T) []string {
	t.Helper()
	if _, err := exec.LookPath("apt-cache"); err != nil {
		t.Skip("there is no apt-cache")
	}
	dir := t.TempDir()
	index := filepath.Join(dir, "index")
	out, err := os.Create(index)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	dump := exec.Command("apt-cache", "dumpavail")
	stanzas, err := dump.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := dump.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stanzas)
	lines.Buffer(nil, 1<<20)
	for n := 0; n < 1000 && lines.Scan(); {
		if lines.Text() == "" {
			n++
		}
		if _, err := out.WriteString(lines.Text() + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	_ = dump.Process.Kill() // the rest is not needed
	_ = dump.Wait()         // it was killed
	made, err := exec.Command(filepath.Join("..", "..", "examples", "packages", "make.sh"), dir, index).CombinedOutput()
	if err != nil {
		t.Fatalf("make.sh: %v\n%s", err, made)
	}
	return []string{"--input", filepath.Join(dir, "packages.jsonl")}
}

// kitchen returns the dishes with their pipeline, under a budget.
func kitchen(budget string) func(t *testing.T) []string {
	return func(t *testing.T) []string {
		t.Helper()
		dir, err := filepath.Abs(filepath.Join("..", "..", "examples", "kitchen"))
		if err != nil {
			t.Fatal(err)
		}
		return []string{
			"--input", filepath.Join(dir, "dishes.jsonl"), "--pipeline", filepath.Join(dir, "pipeline.yaml"),
			"--var", "occasion=a wedding", "--target-token-budget", budget,
		}
	}
}
