package render_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/plan/render"
)

// overlap returns how many spans overlap at most.
func overlap(spans []render.Span) int {
	type edge struct {
		at   int64
		open int
	}
	var edges []edge
	for _, s := range spans {
		end := s.Ended.UnixMicro()
		edges = append(edges, edge{end - s.Took.Microseconds(), 1}, edge{end, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return a.open - b.open // ends first
	})
	most, now := 0, 0
	for _, e := range edges {
		now += e.open
		most = max(most, now)
	}
	return most
}

func TestFitLanes(t *testing.T) {
	start := time.UnixMicro(1_000_000_000)
	spans := []render.Span{ // of one worker, whose outcomes were stored together
		{start.Add(30 * time.Millisecond), 10 * time.Millisecond},
		{start.Add(30 * time.Millisecond), 10 * time.Millisecond},
		{start.Add(30 * time.Millisecond), 10 * time.Millisecond},
		{start.Add(100 * time.Millisecond), 5 * time.Millisecond},
	}
	render.FitLanes(spans, 1)
	if got := overlap(spans); got != 1 || !spans[3].Ended.Equal(start.Add(100*time.Millisecond)) || spans[2].Ended.Before(start.Add(10*time.Millisecond)) {
		t.Errorf("%d overlap: %v", got, spans)
	}
}

func TestFitLanesAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "n")
		spans := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) render.Span {
			return render.Span{
				Ended: time.UnixMicro(1_000_000 + rapid.Int64Range(0, 1000).Draw(t, "end")),
				Took:  time.Duration(rapid.Int64Range(0, 200).Draw(t, "took")) * time.Microsecond,
			}
		}), 0, 40).Draw(t, "spans")
		before := slices.Clone(spans)
		render.FitLanes(spans, n)
		if got := overlap(spans); got > n {
			t.Fatalf("%d overlap, want at most %d", got, n)
		}
		fits := overlap(before) <= n
		for i, s := range spans {
			if s.Ended.After(before[i].Ended) || s.Took != before[i].Took {
				t.Fatalf("span %d: %v became %v", i, before[i], s)
			}
			if fits && n == 1 && !s.Ended.Equal(before[i].Ended) {
				t.Fatalf("span %d moved from %v to %v, although all fitted", i, before[i].Ended, s.Ended)
			}
		}
	})
}
