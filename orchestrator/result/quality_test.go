package result_test

import (
	"bytes"
	"errors"
	"fmt"
	"go/build"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/outcome/eval"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/checked"
)

// chunkings are the sizes that documents are cut at, in tokens, the largest, which
// leaves them whole, first.
var chunkings = []struct{ tokens, overlap int }{{50_000, 500}, {2000, 200}, {300, 40}, {300, 0}}

func readExample(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func truthOf(t *testing.T, name string, data []byte) []eval.Truth {
	t.Helper()
	truth, err := eval.ReadTruth(name, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return truth
}

// evaluated returns the records of a result as eval takes them.
func evaluated(c *enginetest.Collected) []eval.Result {
	results := make([]eval.Result, len(c.Records))
	for i, rec := range c.Records {
		results[i].Values = maps.Clone(rec)
		for _, source := range rec["_sources"].([]any) {
			results[i].Documents = append(results[i].Documents, source.(string))
		}
		maps.DeleteFunc(results[i].Values, func(name string, _ any) bool { return strings.HasPrefix(name, "_") })
	}
	return results
}

// joined are the receipts, twenty to a document, each behind a line with its
// number if numbered, and a schema of many records a document.
func joined(t *testing.T, numbered bool) (source string, docs map[string]string, order []string, truth []eval.Truth) {
	t.Helper()
	dir := os.Getenv("CODITECT_TESTDATA")
	if dir == "" {
		t.Skip("CODITECT_TESTDATA is not set")
	}
	dir = filepath.Join(dir, "receipts")
	data, err := os.ReadFile(filepath.Join(dir, "truth.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	one := strings.ReplaceAll(string(readExample(t, "receipts/schema.yaml")), "\n", "\n  ")
	if numbered {
		one = strings.Replace(one, "required: [", "required: [number, ", 1)
		one = strings.Replace(one, "properties:\n", "properties:\n    number: {type: string, x-coditect: {pattern: '^RECEIPT (?P<value>[0-9]+) OF 20$'}}\n", 1)
	}
	docs = make(map[string]string)
	for i, tr := range truthOf(t, "truth.jsonl", data) {
		text, err := os.ReadFile(filepath.Join(dir, "docs", tr.Document))
		if err != nil {
			t.Fatal(err)
		}
		tr.Document = fmt.Sprintf("joined%02d.txt", i/20)
		if numbered {
			number := fmt.Sprint(i%20 + 1)
			text = append([]byte("RECEIPT "+number+" OF 20\n"), text...)
			tr.Values["number"] = number
		}
		if docs[tr.Document] == "" {
			order = append(order, tr.Document)
		}
		docs[tr.Document] += strings.TrimSpace(string(text)) + "\n\n"
		truth = append(truth, tr)
	}
	return "title: receipts\ntype: array\nitems:\n  " + one, docs, order, truth
}

// TestChunkingKeepsReceipts: receipts joined twenty to a document are found as well
// in chunks that are smaller than most of them as in whole documents.
func TestChunkingKeepsReceipts(t *testing.T) {
	testenv.Lengthy(t)
	testenv.Unraced(t, testenv.Sizes)
	testenv.SlowOnFDB(t)

	for _, numbered := range []bool{true, false} {
		t.Run(fmt.Sprintf("numbered %v", numbered), func(t *testing.T) {
			source, docs, order, truth := joined(t, numbered)
			s, err := schema.Parse("receipts.yaml", []byte(source))
			if err != nil {
				t.Fatal(err)
			}
			n := chunker(t)
			var whole eval.Report
			var first []map[string]any
			for i, c := range chunkings {
				spec := enginetest.Extracting(t, source)
				spec.MaxTokensPerUnit, spec.ChunkOverlap, spec.ReduceContextLimit = c.tokens, overlap(c.overlap), 20_000
				id, got := n.Run(spec, enginetest.Texts(docs, order...))
				got.Cited(t, docs)
				report := eval.Compare(s, evaluated(got), truth)
				t.Logf("%d tokens, overlap %d: %d units, %d records, F1 %.4f", c.tokens, c.overlap, len(n.Units(id)), len(got.Records), report.Micro.F1)
				if i == 0 {
					whole, first = report, values(got.Records)
				}
				for field, score := range report.Fields {
					if diff := score.F1 - whole.Fields[field].F1; diff < -0.01 || diff > 0.01 {
						t.Errorf("%d tokens: F1 of %s is %.3f, and %.3f in whole documents", c.tokens, field, score.F1, whole.Fields[field].F1)
					}
				}
				if diff := cmp.Diff(first, values(got.Records)); diff != "" {
					t.Errorf("%d tokens: records differ from those of whole documents (-want +got):\n%.2000s", c.tokens, diff)
				}
			}
		})
	}
}

// overlap is a chunk overlap as a spec has it, where 0 is the default.
func overlap(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

func chunker(t *testing.T) *enginetest.Node {
	t.Helper()
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	c.WorkerFor("rules", checked.New(enginetest.ByRules()), worker.Config{Slots: 4, Prefetch: 16}, n)
	return n
}

// values returns records with what they say, and how sure it is, and without where
// it stands.
func values(records []map[string]any) []map[string]any {
	out := make([]map[string]any, len(records))
	for i, rec := range records {
		out[i] = maps.Clone(rec)
		delete(out[i], "_citations")
	}
	return out
}

// TestChunkingKeepsLicences: licence files give equal records whatever they are cut
// at.
func TestChunkingKeepsLicences(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)
	testenv.SlowOnFDB(t)

	cache := os.Getenv("GOMODCACHE")
	if cache == "" {
		cache = filepath.Join(build.Default.GOPATH, "pkg", "mod")
	}
	docs := make(map[string]string)
	for _, tr := range truthOf(t, "truth.jsonl", readExample(t, "licences/truth.jsonl")) {
		text, err := os.ReadFile(filepath.Join(cache, filepath.FromSlash(tr.Document)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if len(text) > 0 {
			docs[tr.Document] = string(text)
		}
	}
	if len(docs) == 0 {
		t.Skip("none of the licence files is in the module cache")
	}
	order := slices.Sorted(maps.Keys(docs))
	n := chunker(t)
	var first []map[string]any
	for _, c := range chunkings {
		spec := enginetest.Extracting(t, string(readExample(t, "licences/schema.yaml")))
		spec.MaxTokensPerUnit, spec.ChunkOverlap, spec.ReduceContextLimit = c.tokens, overlap(c.overlap), 2000
		id, got := n.Run(spec, enginetest.Texts(docs, order...))
		got.Cited(t, docs)
		t.Logf("%d tokens, overlap %d: %d units, %d records", c.tokens, c.overlap, len(n.Units(id)), len(got.Records))
		if first == nil {
			first = values(got.Records)
		}
		if diff := cmp.Diff(first, values(got.Records)); diff != "" {
			t.Errorf("%d tokens: records differ from those of whole documents (-want +got):\n%.3000s", c.tokens, diff)
		}
	}
}
