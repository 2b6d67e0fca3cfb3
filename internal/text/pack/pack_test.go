package pack_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/text/pack"
)

// sizesOf returns what the bins hold, by size.
func sizesOf(sizes []int64, bins []pack.Bin) [][]int64 {
	var out [][]int64
	for _, b := range bins {
		var bin []int64
		for _, i := range b.Items {
			bin = append(bin, sizes[i])
		}
		out = append(out, bin)
	}
	return out
}

// B14.
func TestDecreasing(t *testing.T) {
	for _, test := range []struct {
		name  string
		sizes []int64
		want  [][]int64
		over  int
	}{
		{"nothing", nil, nil, 0},
		{"one", []int64{50}, [][]int64{{50}}, 0},
		{"one too large", []int64{200}, [][]int64{{200}}, 1},
		{"two halves", []int64{50, 50}, [][]int64{{50, 50}}, 0},
		{"four halves", []int64{50, 50, 50, 50}, [][]int64{{50, 50}, {50, 50}}, 0},
		{"five of 40", []int64{40, 40, 40, 40, 40}, [][]int64{{40, 40}, {40, 40}, {40}}, 0},
		{"the first fit, not the best", []int64{80, 70, 50, 30}, [][]int64{{80}, {70, 30}, {50}}, 0},
		{"exactly full", []int64{60, 40}, [][]int64{{60, 40}}, 0},
		{"three too large", []int64{200, 150, 300}, [][]int64{{300}, {200}, {150}}, 3},
		{"nine of 30", []int64{30, 30, 30, 30, 30, 30, 30, 30, 30}, [][]int64{{30, 30, 30}, {30, 30, 30}, {30, 30, 30}}, 0},
		{"all kinds", []int64{10, 25, 50, 75, 100, 110}, [][]int64{{110}, {100}, {75, 25}, {50, 10}}, 1},
		{"the budget", []int64{100}, [][]int64{{100}}, 0},
		{"the budget twice", []int64{100, 100}, [][]int64{{100}, {100}}, 0},
		{"empty ones fill no room", []int64{0, 100, 0}, [][]int64{{100, 0, 0}}, 0},
		{"an empty one is not put beside one too large", []int64{101, 0}, [][]int64{{101}, {0}}, 1},
		{"the largest there is", []int64{math.MaxInt64, 1}, [][]int64{{math.MaxInt64}, {1}}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			bins := pack.Decreasing(test.sizes, 100)
			if diff := cmp.Diff(test.want, sizesOf(test.sizes, bins)); diff != "" {
				t.Errorf("bins (-want +got):\n%s", diff)
			}
			over := 0
			for _, b := range bins {
				if b.Over {
					over++
				}
			}
			if over != test.over {
				t.Errorf("%d bins are over the budget, want %d", over, test.over)
			}
		})
	}
}

func TestInOrder(t *testing.T) {
	for _, test := range []struct {
		name  string
		sizes []int64
		want  [][]int64
	}{
		{"nothing", nil, nil},
		{"neighbours alone", []int64{80, 70, 20, 30}, [][]int64{{80}, {70, 20}, {30}}},
		{"all kinds", []int64{10, 25, 50, 75, 100, 110}, [][]int64{{10, 25, 50}, {75}, {100}, {110}}},
		{"nothing beside one too large", []int64{0, 110, 0, 5}, [][]int64{{0}, {110}, {0, 5}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, sizesOf(test.sizes, pack.InOrder(test.sizes, 100))); diff != "" {
				t.Errorf("bins (-want +got):\n%s", diff)
			}
		})
	}
}

// firstFitDecreasing is the algorithm as its definition has it, in n² steps.
func firstFitDecreasing(sizes []int64, budget int64) [][]int64 {
	sorted := slices.Clone(sizes)
	slices.SortStableFunc(sorted, func(a, b int64) int { return int(b - a) })
	var bins [][]int64
items:
	for _, s := range sorted {
		for i, b := range bins {
			if pack.Sum(b...)+s <= budget {
				bins[i] = append(b, s)
				continue items
			}
		}
		bins = append(bins, []int64{s})
	}
	return bins
}

func TestPackersLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.Int64Range(-1, 40).Draw(t, "budget")
		sizes := rapid.SliceOfN(rapid.Int64Range(-2, 60), 0, 60).Draw(t, "sizes")
		for name, bins := range map[string][]pack.Bin{
			"decreasing": pack.Decreasing(sizes, budget), "in order": pack.InOrder(sizes, budget),
		} {
			var all []int
			for _, b := range bins {
				size := int64(0)
				for _, i := range b.Items {
					size += max(0, sizes[i])
				}
				if b.Size != size || b.Over != (size > max(1, budget)) || b.Over && len(b.Items) != 1 {
					t.Fatalf("%s: bin %+v has a size of %d under a budget of %d", name, b, size, budget)
				}
				all = append(all, b.Items...)
			}
			if name == "in order" && !slices.IsSorted(all) {
				t.Fatalf("the order was lost: %v", all)
			}
			slices.Sort(all)
			for i := range sizes {
				if i >= len(all) || all[i] != i || len(all) != len(sizes) {
					t.Fatalf("%s: %d items went in, and these came out: %v", name, len(sizes), all)
				}
			}
		}
	})
}

func TestDecreasingIsTheTextbooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.Int64Range(1, 50).Draw(t, "budget")
		sizes := rapid.SliceOfN(rapid.Int64Range(1, 70), 0, 80).Draw(t, "sizes")
		got := sizesOf(sizes, pack.Decreasing(sizes, budget))
		if diff := cmp.Diff(firstFitDecreasing(sizes, budget), got); diff != "" {
			t.Fatalf("bins (-want +got):\n%s", diff)
		}
	})
}

func TestFold(t *testing.T) {
	part := func(item int, start, end int64) pack.Part { return pack.Part{Item: item, Start: start, End: end} }
	for _, test := range []struct {
		name    string
		sizes   []int64
		carried int64
		want    []pack.Call
	}{
		{"nothing", nil, 0, nil},
		{"all that fits is one call", []int64{60, 40}, 0, []pack.Call{
			{Parts: []pack.Part{part(0, 0, 60), part(1, 0, 40)}, Size: 100},
		}},
		{"an accumulator and as many as fit", []int64{51, 51, 20, 5}, 0, []pack.Call{
			{Parts: []pack.Part{part(0, 0, 51)}, Size: 51},
			{Carried: 25, Parts: []pack.Part{part(1, 0, 51), part(2, 0, 20)}, Size: 71},
			{Carried: 25, Parts: []pack.Part{part(3, 0, 5)}, Size: 5},
		}},
		{"one too large is cut", []int64{200}, 40, []pack.Call{
			{Parts: []pack.Part{part(0, 0, 100)}, Size: 100},
			{Carried: 40, Parts: []pack.Part{part(0, 100, 160)}, Size: 60},
			{Carried: 40, Parts: []pack.Part{part(0, 160, 200)}, Size: 40},
		}},
		{"an accumulator never takes more than half", []int64{100, 50}, 90, []pack.Call{
			{Parts: []pack.Part{part(0, 0, 100)}, Size: 100},
			{Carried: 50, Parts: []pack.Part{part(1, 0, 50)}, Size: 50},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, pack.Fold(test.sizes, 100, test.carried)); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// What AgentEnsemble spins on: outputs that are each more than half a budget.
func TestFoldOfOutputsThatDoNotPair(t *testing.T) {
	sizes := slices.Repeat([]int64{5100}, 100)
	calls := pack.Fold(sizes, 10_000, 0)
	if len(calls) != 100 {
		t.Errorf("%d calls, want 100", len(calls))
	}
	for i, c := range calls {
		if len(c.Parts) != 1 || c.Parts[0] != (pack.Part{Item: i, End: 5100}) || c.Carried+c.Size > 10_000 {
			t.Errorf("call %d is %+v", i, c)
		}
	}
}

func TestFoldReadsAllOnceInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.Int64Range(-1, 30).Draw(t, "budget")
		carried := rapid.Int64Range(-1, 40).Draw(t, "carried")
		sizes := rapid.SliceOfN(rapid.Int64Range(0, 90), 0, 30).Draw(t, "sizes")
		calls := pack.Fold(sizes, budget, carried)
		read, item, at := int64(0), 0, int64(0)
		for i, c := range calls {
			size := int64(0)
			for _, p := range c.Parts {
				if p.Item != item && at == sizes[item] {
					item, at = item+1, 0
				}
				if p.Item != item || p.Start != at || p.End < p.Start {
					t.Fatalf("part %+v of call %d comes after %d tokens of item %d", p, i, at, item)
				}
				at = p.End
				size += p.End - p.Start
			}
			if size != c.Size || c.Carried+c.Size > max(1, budget) || i == 0 && c.Carried != 0 {
				t.Fatalf("call %d is %+v under a budget of %d", i, c, budget)
			}
			read += c.Size + c.Carried
		}
		if len(sizes) > 0 && (item != len(sizes)-1 || at != sizes[item]) {
			t.Fatalf("the last that was read is %d tokens of item %d of %d", at, item, len(sizes))
		}
		if n, r := pack.Calls(sizes, budget, carried); n != int64(len(calls)) || r != read {
			t.Fatalf("%d calls read %d, and Calls says %d and %d", len(calls), read, n, r)
		}
	})
}

func TestCallsOfTheLargest(t *testing.T) {
	calls, read := pack.Calls([]int64{math.MaxInt64, math.MaxInt64}, 1, 0)
	if calls != math.MaxInt64 || read != math.MaxInt64 {
		t.Errorf("%d calls read %d", calls, read)
	}
}

func BenchmarkDecreasing(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		sizes := make([]int64, n)
		for i := range sizes {
			sizes[i] = int64(i*7919) % 6000
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				pack.Decreasing(sizes, 10_000)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/item")
		})
	}
}
