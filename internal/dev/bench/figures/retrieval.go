package figures

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/coditect/mapreduce/internal/dev/bench/retrieval"
)

// Retrieval is how well and how fast search_local finds passages.
type Retrieval struct {
	Answers, Relations *retrieval.Recall // nil without data
	Size               retrieval.Size
}

// MeasureRetrieval measures the recall on the data of CODITECT_TESTDATA, if it is set, and
// an index of many passages.
func MeasureRetrieval(ctx context.Context, l *Lab) (r *Retrieval, err error) {
	r = new(Retrieval)
	if root := os.Getenv("CODITECT_TESTDATA"); root != "" {
		if r.Answers, err = l.recall(ctx, filepath.Join(root, "answers"), retrieval.Answers); err != nil {
			return nil, err
		}
		if r.Relations, err = l.recall(ctx, filepath.Join(root, "re3d"), retrieval.Relations); err != nil {
			return nil, err
		}
	}

	err = l.inFolder(func(dir string) (err error) {
		r.Size, err = retrieval.MeasureSize(ctx, l.Passages, l.Queries, dir)
		return err
	})
	return r, err
}

// inFolder runs fn with a folder that is removed afterwards.
func (l *Lab) inFolder(fn func(dir string) error) error {
	dir, err := os.MkdirTemp(l.Dir, "bench-")
	if err != nil {
		return err
	}
	return errors.Join(fn(dir), os.RemoveAll(dir))
}

func (l *Lab) recall(ctx context.Context, folder string, read func(string) (*retrieval.Set, error)) (*retrieval.Recall, error) {
	set, err := read(folder)
	if err != nil {
		return nil, err
	}
	var r retrieval.Recall
	err = l.inFolder(func(dir string) (err error) {
		r, err = retrieval.MeasureRecall(ctx, set, dir)
		return err
	})
	return &r, err
}

// Rows returns the lines of the report.
func (r *Retrieval) Rows() []Row {
	var rows []Row
	for _, one := range []struct {
		name string
		*retrieval.Recall
	}{{"questions that experts answered", r.Answers}, {"pairs of names in news", r.Relations}} {
		if one.Recall == nil {
			continue
		}
		rows = append(rows, Row{
			Name: "recall@10 of search_local, " + one.name, Value: one.Index, Goal: atLeast(one.Scan - equalRanks),
			Bound: fmt.Sprintf("a scan by BM25 %.4f; %d questions, %d passages", one.Scan, one.Questions, one.Passages),
		})
	}

	s := &r.Size
	const mega = 1e6
	return append(rows,
		Row{
			Name: fmt.Sprintf("an index of %s passages", Number(float64(s.Passages))), Value: s.Build.Seconds(), Unit: "s",
			Bound: fmt.Sprintf("reading, cutting and finding terms alone %.1f s, by one goroutine", s.Bare.Seconds()),
		},
		Row{Name: "— opened again", Value: s.Reopen.Seconds(), Unit: "s", Bound: "each file looked at"},
		Row{Name: "— its size", Value: float64(s.Index) / mega, Unit: "MB", Bound: fmt.Sprintf("the texts, which it holds, %.1f MB", float64(s.Texts)/mega)},
		Row{
			Name: "— a query, p50", Value: toMilliseconds(s.Quantile(.5)), Unit: "ms",
			Bound: fmt.Sprintf("a scan of %s of them %.1f ms", Number(float64(s.Scanned)), toMilliseconds(s.Scan)),
		},
		Row{Name: "— a query, p99", Value: toMilliseconds(s.Quantile(.99)), Unit: "ms"},
	)
}

// equalRanks is what a recall may differ by where ranks are equal: these are in no order.
const equalRanks = 0.002
