package plan_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/plan"
)

// ended returns a level of outputs with these sizes, as it is after the run.
func ended(level int64, sizes []int64, below []int64) plan.Ended {
	e := plan.Ended{
		Level: level, Units: int64(len(sizes)), Completed: int64(len(sizes)), BelowCompleted: int64(len(below)),
		Outputs: func() ([]plan.Output, error) {
			out := make([]plan.Output, len(sizes))
			for i, s := range sizes {
				out[i] = plan.Output{Index: int64(i), Tokens: s, Unit: mapreduce.UnitID(fmt.Sprintf("u%d", i)), Agent: "chef"}
			}
			return out, nil
		},
	}
	for _, s := range sizes {
		e.Size += s
	}
	for _, s := range below {
		e.BelowSize += s
	}
	return e
}

func kinds(all []plan.Warning) (out []plan.WarningKind) {
	for _, w := range all {
		out = append(out, w.Kind)
	}
	return out
}

// B16, level by level, at a budget of 100.
func TestAdaptiveLevels(t *testing.T) {
	for _, test := range []struct {
		name     string
		level    int64
		sizes    []int64
		below    []int64
		max      int64
		bins     [][]int64 // none: the final unit takes all
		warnings []plan.WarningKind
	}{
		{name: "six small", sizes: []int64{10, 10, 10, 10, 10, 10}},
		{name: "six large", sizes: []int64{40, 40, 40, 40, 40, 40}, bins: [][]int64{{0, 1}, {2, 3}, {4, 5}}},
		{name: "a total equal to the budget fits", sizes: []int64{60, 40}},
		{name: "one more does not", sizes: []int64{60, 20, 21}, bins: [][]int64{{0, 2}, {1}}},
		{name: "one", sizes: []int64{50}},
		{name: "one that is too large", sizes: []int64{500}, warnings: []plan.WarningKind{plan.OverBudget}},
		{
			name: "one of three is too large", sizes: []int64{60, 150, 40},
			bins: [][]int64{{0, 2}, {1}}, warnings: []plan.WarningKind{plan.OverBudget},
		},
		{
			name: "all too large: each may shrink by itself", sizes: []int64{200, 150, 300},
			bins: [][]int64{{0}, {1}, {2}}, warnings: []plan.WarningKind{plan.OverBudget, plan.OverBudget, plan.OverBudget},
		},
		{name: "no two fit together", sizes: []int64{51, 51, 51}, warnings: []plan.WarningKind{plan.NoProgress}},
		{
			name: "as many as below, and hardly smaller", level: 1, sizes: []int64{190, 150, 300}, below: []int64{200, 150, 300},
			warnings: []plan.WarningKind{plan.NoProgress},
		},
		{
			name: "as many as below, 5 % smaller", level: 1, sizes: []int64{190, 190}, below: []int64{200, 200},
			bins: [][]int64{{0}, {1}}, warnings: []plan.WarningKind{plan.OverBudget, plan.OverBudget},
		},
		{
			name: "as many as below, not quite 5 % smaller", level: 1, sizes: []int64{190, 191}, below: []int64{200, 200},
			warnings: []plan.WarningKind{plan.NoProgress},
		},
		{name: "grown, but fewer", level: 1, sizes: []int64{50, 50, 50}, below: []int64{25, 25, 25, 25, 25}, bins: [][]int64{{0, 1}, {2}}},
		{
			name: "grown until no level is allowed", level: 1, max: 1, sizes: []int64{50, 50, 50}, below: []int64{40, 40, 40, 40, 40},
			warnings: []plan.WarningKind{plan.MaxLevels},
		},
		{
			name: "as many levels as are allowed by default", level: 10, sizes: []int64{50, 50, 50}, below: []int64{40, 40, 40, 40, 40},
			warnings: []plan.WarningKind{plan.MaxLevels},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := plan.Config{TargetTokenBudget: new(int64(100))}
			if test.max > 0 {
				c.MaxReduceLevels = &test.max
			}
			got, err := newPlanner(t, c).Next(ended(test.level, test.sizes, test.below))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.bins, got.Bins); diff != "" {
				t.Errorf("bins (-want +got):\n%s", diff)
			}
			if got.Final != (test.bins == nil) || got.Group != 0 || got.Units != int64(max(1, len(test.bins))) {
				t.Errorf("next is %+v", got)
			}
			if diff := cmp.Diff(test.warnings, kinds(got.Warnings)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// B14: the warning names the agent, its size and the budget.
func TestWarningOfAnOutputOverTheBudget(t *testing.T) {
	next, err := newPlanner(t, plan.Config{TargetTokenBudget: new(int64(100))}).Next(ended(0, []int64{60, 150, 40}, nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"chef"`, `"u1"`, "150", "100"} {
		if text := next.Warnings[0].String(); !strings.Contains(text, part) {
			t.Errorf("%q does not name %s", text, part)
		}
	}
}

func TestOrderIsKeptIfAskedFor(t *testing.T) {
	sizes := []int64{80, 30, 20, 70}
	for _, test := range []struct {
		ordered bool
		want    [][]int64
	}{{false, [][]int64{{0, 2}, {1, 3}}}, {true, [][]int64{{0}, {1, 2}, {3}}}} {
		next, err := newPlanner(t, plan.Config{TargetTokenBudget: new(int64(100)), Ordered: test.ordered}).Next(ended(0, sizes, nil))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, next.Bins); diff != "" {
			t.Errorf("ordered %v: bins (-want +got):\n%s", test.ordered, diff)
		}
	}
}

// The flaw that AgentEnsemble has: no two fit together, so levels follow each
// other without an end.
func TestOutputsOfMoreThanHalfABudgetAreFolded(t *testing.T) {
	p := newPlanner(t, plan.Config{TargetTokenBudget: new(int64(10_000))})
	sizes := slices.Repeat([]int64{5100}, 100)
	next, err := p.Next(ended(0, sizes, nil))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]plan.WarningKind{plan.NoProgress}, kinds(next.Warnings)); !next.Final || diff != "" {
		t.Fatalf("next is %+v", next)
	}
	calls := p.Calls(sizes)
	read := int64(0)
	for i, c := range calls {
		read += c.Size
		if c.Size+c.Carried > p.Budget() || c.Size == 0 || i > 0 && c.Carried == 0 {
			t.Errorf("call %d reads %d and carries %d under a budget of %d", i, c.Size, c.Carried, p.Budget())
		}
	}
	if read != 510_000 || len(calls) != 100 {
		t.Errorf("%d calls read %d tokens, want 100 and 510,000", len(calls), read)
	}
}

// A10: N outputs too large for one reduce, in batches of ten.
func TestBatches(t *testing.T) {
	for _, test := range []struct {
		units, size int64
		want        []int64 // units of each level above the map
	}{
		{11, 100_000, []int64{1}},
		{1_000_000, 100_000, []int64{1}},
		{10, 100_001, []int64{1}},
		{11, 100_001, []int64{2, 1}},
		{100, 100_001, []int64{10, 1}},
		{101, 100_001, []int64{11, 2, 1}},
	} {
		p := newPlanner(t, plan.Config{Fallback: plan.Batches})
		var got []int64
		for e := (plan.Ended{Units: test.units, Completed: test.units, Size: test.size}); ; {
			next, err := p.Next(e)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, next.Units)
			if next.Final {
				break
			}
			// Further up, the number decides alone.
			e = plan.Ended{Level: e.Level + 1, Units: next.Units, Completed: next.Units, Size: 1}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%d outputs of %d tokens: levels (-want +got):\n%s", test.units, test.size, diff)
		}
	}
}

// B18, and failed units count in the groups of a static tree.
func TestNextAfterFailures(t *testing.T) {
	for _, c := range []plan.Config{{}, {TargetTokenBudget: new(int64(100))}, {Fallback: plan.Batches}} {
		p := newPlanner(t, c)
		if _, err := p.Next(plan.Ended{Units: 7}); !errors.Is(err, errs.Precondition) {
			t.Errorf("%s: a level without survivors gave %v", p.Strategy(), err)
		}
	}
	next, err := newPlanner(t, plan.Config{ChunkSize: new(int64(3))}).Next(plan.Ended{Units: 7, Completed: 1, Size: 1})
	if err != nil || next.Group != 3 || next.Units != 3 {
		t.Errorf("seven units of which one is left gave %+v, %v", next, err)
	}
	e := ended(0, []int64{60, 60, 60}, nil)
	e.Outputs = func() ([]plan.Output, error) {
		return []plan.Output{{Index: 4, Tokens: 60}, {Index: 9, Tokens: 30}, {Index: 11, Tokens: 40}}, nil
	}
	next, err = newPlanner(t, plan.Config{TargetTokenBudget: new(int64(100))}).Next(e)
	if diff := cmp.Diff([][]int64{{4, 11}, {9}}, next.Bins); err != nil || diff != "" {
		t.Errorf("bins of survivors (-want +got), %v:\n%s", err, diff)
	}
}

func TestNextDropsNothingThatWasNotRead(t *testing.T) {
	p := newPlanner(t, plan.Config{TargetTokenBudget: new(int64(100))})
	e := ended(0, []int64{60, 60, 60}, nil)
	e.Completed++
	if _, err := p.Next(e); !errors.Is(err, errs.Internal) {
		t.Errorf("an output that is not among the sizes gave %v", err)
	}
	broken := errors.New("broken")
	e.Outputs = func() ([]plan.Output, error) { return nil, broken }
	if _, err := p.Next(e); !errors.Is(err, broken) {
		t.Errorf("got %v, want that sizes could not be read", err)
	}
}

// Whatever reduces make of their inputs, levels end, soon, and take each output
// once.
func TestAdaptiveTreesEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		levels := rapid.Int64Range(1, 12).Draw(t, "levels")
		c := plan.Config{TargetTokenBudget: new(rapid.Int64Range(1, 100).Draw(t, "budget")), MaxReduceLevels: &levels, Ordered: rapid.Bool().Draw(t, "ordered")}
		p := newPlanner(t, c)
		size := rapid.Int64Range(0, 160)
		sizes, below := rapid.SliceOfN(size, 1, 40).Draw(t, "sizes"), []int64(nil)
		for level := int64(0); ; level++ {
			if level > levels {
				t.Fatalf("level %d is reduced again, with %d allowed", level, levels)
			}
			e := ended(level, sizes, below)
			next, err := p.Next(e)
			if err != nil {
				t.Fatal(err)
			}
			if next.Final {
				if e.Size > p.Budget() && len(next.Warnings) == 0 {
					t.Fatalf("%d tokens are folded under a budget of %d without a warning", e.Size, p.Budget())
				}
				return
			}
			checkBins(t, p, sizes, next)
			if len(next.Bins) == len(sizes) && len(next.Warnings) == 0 {
				t.Fatalf("%d outputs make as many bins, none over the budget", len(sizes))
			}
			below, sizes = sizes, rapid.SliceOfN(size, len(next.Bins), len(next.Bins)).Draw(t, "outputs")
		}
	})
}

func checkBins(t *rapid.T, p *plan.Planner, sizes []int64, next plan.Next) {
	var all []int64
	for _, b := range next.Bins {
		size := int64(0)
		for _, at := range b {
			size += sizes[at]
		}
		if size > p.Budget() && len(b) > 1 || !slices.IsSorted(b) {
			t.Fatalf("bin %v of %d tokens under a budget of %d", b, size, p.Budget())
		}
		all = append(all, b...)
	}
	slices.Sort(all)
	for i := range all {
		if len(all) != len(sizes) || all[i] != int64(i) {
			t.Fatalf("of %d outputs these are in bins: %v", len(sizes), all)
		}
	}
}

// Without MaxReduceLevels in the way, what stops a tree is that it makes no
// progress: units never grow, and where they are as many tokens shrink.
func TestProgressAloneEndsTrees(t *testing.T) {
	p := newPlanner(t, plan.Config{TargetTokenBudget: new(int64(100)), MaxReduceLevels: new(int64(math.MaxInt64))})
	sizes, below := slices.Repeat([]int64{1_000_000}, 50), []int64(nil)
	for level := int64(0); ; level++ {
		next, err := p.Next(ended(level, sizes, below))
		if err != nil {
			t.Fatal(err)
		}
		if next.Final {
			if level < 100 || level > 200 { // log(10,000) ÷ log(1 ÷ 0.95), then a few to pair
				t.Errorf("%d levels", level)
			}
			return
		}
		below, sizes = sizes, make([]int64, len(next.Bins))
		for i, b := range next.Bins {
			for _, at := range b {
				sizes[i] += below[at]
			}
			sizes[i] = sizes[i] * 19 / 20
		}
	}
}
