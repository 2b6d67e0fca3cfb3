package retrieval_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/coditect/mapreduce/internal/dev/bench/retrieval"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// measure measures the recall on a set of real data, or skips the test.
func measure(t *testing.T, name string, read func(folder string) (*retrieval.Set, error)) retrieval.Recall {
	t.Helper()
	root := os.Getenv("CODITECT_TESTDATA")
	if root == "" {
		t.Skip("CODITECT_TESTDATA names no folder of real documents")
	}
	s, err := read(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	r, err := retrieval.MeasureRecall(t.Context(), s, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d questions, %d passages: recall@%d %.4f by the index, %.4f by a scan", name, r.Questions, r.Passages, retrieval.TopN, r.Index, r.Scan)
	return r
}

// TestRecallOfAnswers: of the passages that experts cited for a question, the index finds as
// many as a scan of all passages does.
func TestRecallOfAnswers(t *testing.T) {
	if r := measure(t, "answers", retrieval.Answers); r.Index < r.Scan-1e-9 || r.Index < 0.6 {
		t.Error("the index finds less than the scan, or than 60%")
	}
}

// TestRecallOfRelations: of the passages of news in which people found a relation between two
// names, the index finds as many as a scan does, by the two names.
func TestRecallOfRelations(t *testing.T) {
	if r := measure(t, "re3d", retrieval.Relations); r.Index < r.Scan-0.002 || r.Index < 0.9 { // equal ranks are in another order
		t.Error("the index finds less than the scan, or than 90%")
	}
}

func TestSize(t *testing.T) {
	s, err := retrieval.MeasureSize(t.Context(), 200, 20, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if s.Passages < 200 || s.Passages > 300 || s.Texts < 100_000 || s.Index <= 0 || s.Build <= 0 || s.Bare <= 0 || s.Reopen <= 0 || s.Scan <= 0 || s.Scanned != int(s.Passages) {
		t.Errorf("%+v", s)
	}
	if s.Quantile(.5) <= 0 || s.Quantile(.99) < s.Quantile(.5) || len(s.Queries) != 20 {
		t.Errorf("queries: %v", s.Queries)
	}
}
