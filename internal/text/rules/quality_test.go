package rules_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"go/build"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/outcome/eval"
	"github.com/coditect/mapreduce/internal/text/rules"
)

// example reads the schema of an example.
func example(t *testing.T, name string) (*schema.Schema, *rules.Program) {
	t.Helper()
	path := filepath.Join("..", "..", "..", "examples", name, "schema.yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Parse(path, data)
	if err != nil {
		t.Fatal(err)
	}
	p, err := rules.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

func readTruth(t *testing.T, path string) []eval.Truth {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	truth, err := eval.ReadTruth(path, f)
	if err != nil {
		t.Fatal(err)
	}
	return truth
}

// extract returns the record of one document.
func extract(t *testing.T, s *schema.Schema, p *rules.Program, document, text string) eval.Result {
	t.Helper()
	r := one(t, p, text)
	return eval.Result{Documents: []string{document}, Values: s.Nest(p.Values(&r))}
}

func TestReceipts(t *testing.T) {
	dir := os.Getenv("CODITECT_TESTDATA")
	if dir == "" {
		t.Skip("CODITECT_TESTDATA is not set")
	}
	dir = filepath.Join(dir, "receipts")
	s, p := example(t, "receipts")
	truth := readTruth(t, filepath.Join(dir, "truth.jsonl"))
	var results []eval.Result
	for _, doc := range truth {
		text, err := os.ReadFile(filepath.Join(dir, "docs", doc.Document))
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, extract(t, s, p, doc.Document, string(text)))
	}
	report := eval.Compare(s, results, truth)
	for field, least := range map[string]float64{"company": 0.87, "date": 0.98, "total": 0.85, "address": 0.70} {
		got := report.Fields[field]
		t.Logf("%s: precision %.3f, recall %.3f, F1 %.3f of %d", field, got.Precision, got.Recall, got.F1, got.Support)
		if got.F1 < least {
			t.Errorf("%s: F1 %.3f, want at least %.2f", field, got.F1, least)
		}
	}
}

// TestLicences reads the licence files of this project's dependencies.
func TestLicences(t *testing.T) {
	cache := os.Getenv("GOMODCACHE")
	if cache == "" {
		cache = filepath.Join(build.Default.GOPATH, "pkg", "mod")
	}
	s, p := example(t, "licences")
	var results []eval.Result
	var truth []eval.Truth
	for _, doc := range readTruth(t, filepath.Join("..", "..", "..", "examples", "licences", "truth.jsonl")) {
		text, err := os.ReadFile(filepath.Join(cache, filepath.FromSlash(doc.Document)))
		if errors.Is(err, fs.ErrNotExist) {
			continue // another version is in use
		}
		if err != nil {
			t.Fatal(err)
		}
		truth = append(truth, doc)
		results = append(results, extract(t, s, p, doc.Document, string(text)))
	}
	if len(truth) == 0 {
		t.Skip("none of the licence files is in the module cache")
	}
	for field, score := range eval.Compare(s, results, truth).Fields {
		if score.F1 != 1 {
			t.Errorf("%s: %+v in %d files, want all right", field, score, len(truth))
		}
	}
}

// TestPackages reads every tenth package that the package index of this machine
// knows, and all of them where CODITECT_TESTDATA asks for tests on real data.
func TestPackages(t *testing.T) {
	testenv.Lengthy(t)

	if _, err := exec.LookPath("apt-cache"); err != nil {
		t.Skip("there is no apt-cache")
	}
	dir := t.TempDir()
	if out, err := exec.Command(filepath.Join("..", "..", "..", "examples", "packages", "make.sh"), dir).CombinedOutput(); err != nil {
		t.Fatalf("make.sh: %v\n%s", err, out)
	}
	f, err := os.Open(filepath.Join(dir, "packages.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	step := 10
	if os.Getenv("CODITECT_TESTDATA") != "" {
		step = 1
	}
	s, p := example(t, "packages")
	truth := readTruth(t, filepath.Join(dir, "truth.jsonl"))
	var kept []eval.Truth
	var results []eval.Result
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for i := 0; lines.Scan(); i++ {
		if i%step != 0 {
			continue
		}
		kept = append(kept, truth[i])
		var doc struct{ ID, Text string }
		if err := json.Unmarshal(lines.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		results = append(results, extract(t, s, p, doc.ID, doc.Text))
	}
	if len(results) == 0 {
		t.Skip("the package index is empty")
	}
	for field, score := range eval.Compare(s, results, kept).Fields {
		if score.F1 != 1 {
			t.Errorf("%s: %+v of %d packages, want all right", field, score, len(results))
		}
	}
}
