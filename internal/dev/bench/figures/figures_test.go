package figures_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coditect/mapreduce/internal/dev/bench/asking"
	"github.com/coditect/mapreduce/internal/dev/bench/figures"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// TestMain also is the program that figures start again: as a worker to be
// killed, or to have memory of its own.
func TestMain(m *testing.M) {
	ordered, err := figures.RunChild(context.Background(), os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if !ordered {
		goleak.VerifyTestMain(m)
	}
}

// tiny is a lab in which every figure is measured in no time, and means nothing.
func tiny(t *testing.T) *figures.Lab {
	t.Helper()
	return &figures.Lab{
		Site: rig.Site{Dir: t.TempDir()}, Size: 40, Small: 20, Units: 400, Arrivals: 10, Pause: time.Millisecond, Nap: 5 * time.Millisecond, Kills: 2, Overloaded: time.Second,
		Claimers: 4, Idle: 300, Reduced: 200, Beat: 50 * time.Millisecond,
		Asked: 40, Calls: 8, Think: 40 * time.Millisecond, Struck: 3,
		Passages: 50, Queries: 5,
	}
}

// check looks at what every report must be.
func check(t *testing.T, rows []figures.Row) {
	t.Helper()
	if len(rows) == 0 {
		t.Error("no rows")
	}
	for _, r := range rows {
		if math.IsNaN(r.Value) || math.IsInf(r.Value, 0) || r.Name == "" {
			t.Errorf("row %+v", r)
		}
	}
}

func TestUnits(t *testing.T) {
	testenv.Raced(t)

	u, err := figures.MeasureUnits(t.Context(), tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	check(t, u.Rows())
	if u.Raw <= 0 || u.Wire <= 0 {
		t.Errorf("ceilings: %v, %v", u.Raw, u.Wire)
	}
	for _, tt := range []struct {
		figures.Throughput
		total int64
	}{{u.Small, 400 + 40 + 4 + 1}, {u.Large, 200 + 20 + 2 + 1}} {
		if tt.Total != tt.total {
			t.Errorf("%d units, want %d", tt.Total, tt.total)
		}
		if tt.PerSecond() <= 0 || tt.Bare <= 0 || tt.Commits <= 0 || tt.Whole <= tt.Mapped {
			t.Errorf("throughput: %+v", tt.Throughput)
		}
	}
}

func TestLatency(t *testing.T) {
	l, err := figures.MeasureLatency(t.Context(), tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	check(t, l.Rows())
	if l.Ready.Len() != 10 || l.Submit.Len() != 10 || l.Floor.Commit.Len() != 5 {
		t.Errorf("%d, %d waits, %d commits", l.Ready.Len(), l.Submit.Len(), l.Floor.Commit.Len())
	}
	// A single wait may come out below 0: the orchestrator's own watch on the store finds the
	// job, and a worker may have begun, before the submission is told that it is durable.
	if l.Submit.Quantile(0) <= 0 || l.Ready.Quantile(.5) <= 0 || l.Submit.Quantile(.5) <= l.Ready.Quantile(.5) {
		t.Errorf("waits from %v; medians %v and, with the submission, %v", l.Submit.Quantile(0), l.Ready.Quantile(.5), l.Submit.Quantile(.5))
	}
}

func TestMakespans(t *testing.T) {
	l := tiny(t)
	l.Units = 40_000 // a fifth of the units
	all, err := figures.MeasureMakespans(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	check(t, all.Rows())
	for i, least := range []time.Duration{4 * l.Nap, 4 * l.Nap, 0} {
		m := all[i]
		if least != 0 && m.Least != least {
			t.Errorf("%s: least %v, want %v", m.Name, m.Least, least)
		}
		// In another order than that of a list schedule, units of unequal lengths can end earlier.
		if least := shortest(m.Units, m.Slots); m.Took < least || m.Pool < least || m.Least < least {
			t.Errorf("%s took %v, a pool %v, a list schedule %v: no order takes less than %v", m.Name, m.Took, m.Pool, m.Least, least)
		}
	}
}

// shortest returns what no order of units takes less than: the longest of them, and an equal
// share of all for each slot.
func shortest(units []time.Duration, slots int) time.Duration {
	var sum time.Duration
	for _, d := range units {
		sum += d
	}
	return max(slices.Max(units), sum/time.Duration(slots))
}

func TestSubmit(t *testing.T) {
	s, err := figures.MeasureSubmit(t.Context(), tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	check(t, s.Rows())
	if s.Units != 20 || s.PerSecond() <= 0 || s.Bare <= 0 {
		t.Errorf("submission: %+v", s)
	}
}

func TestPending(t *testing.T) {
	p, err := figures.MeasurePending(t.Context(), tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	check(t, p.Rows())
	if len(p) != 2 {
		t.Fatalf("%d sizes, want 1 and 10", len(p))
	}
	for _, z := range p {
		if z.Claims < 1 || z.ClaimP50 <= 0 || z.Resident <= z.Heap || z.Stored <= z.Texts {
			t.Errorf("size: %+v", z)
		}
	}
}

func TestReducing(t *testing.T) {
	testenv.Lengthy(t)
	testenv.Unraced(t, testenv.Sizes)

	r, err := figures.MeasureReducing(t.Context(), tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	check(t, r.Rows())
	if len(r) != 6 {
		t.Errorf("%d trees, want three with and without a key", len(r))
	}
	for _, tree := range r {
		if tree.Few.Units != 20 || tree.Many.Units != 200 {
			t.Errorf("%s: sizes %+v, want 20 and 200 outputs", tree.Tree, tree)
		}
		for _, one := range []figures.Reduced{tree.Few, tree.Many} {
			if one.Took <= 0 || one.Merge <= 0 || one.Peak <= 0 {
				t.Errorf("%s: %+v", tree.Tree, one)
			}
		}
	}
}

func TestNeighbour(t *testing.T) {
	testenv.Lengthy(t)
	testenv.Unraced(t, testenv.Sizes)

	l := tiny(t)
	l.Size, l.Nap = 10_000, 2*time.Second // enough to last
	n, err := figures.MeasureNeighbour(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	check(t, n.Rows())
	for _, s := range []*rig.Sample{n.Alone, n.Beside, n.PrefetchedBeside} {
		if s.Len() != l.Arrivals || s.Quantile(.5) <= 0 { // a single one may be below 0, see TestLatency
			t.Errorf("%d waits, the median %v", s.Len(), s.Quantile(.5))
		}
	}
}

func TestResume(t *testing.T) {
	r, err := figures.MeasureResume(t.Context(), tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	check(t, r.Rows())
	if r.Restart <= r.Opening || r.Opening <= 0 || r.Resume <= 0 || r.Read <= 0 {
		t.Errorf("resumption: %+v", r)
	}
}

func TestKill(t *testing.T) {
	testenv.Raced(t)

	k, err := figures.MeasureKill(t.Context(), tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	check(t, k.Rows())
	if k.Waits.Len() < 2 || k.Waits.Quantile(0) < 300*time.Millisecond {
		t.Errorf("%d waits from %v; a worker whose system closed its connection has 0.3 s to come back", k.Waits.Len(), k.Waits.Quantile(0))
	}
}

// How much of the work under way goes on says the figure at length; here each call has one answer.
func TestOverload(t *testing.T) {
	testenv.Lengthy(t)

	o, err := figures.MeasureOverload(t.Context(), tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	check(t, o.Rows())
	if o.Peak <= 0 || o.Growth <= 0 || o.Before <= 0 || o.Calm <= 0 || o.Crowd.Took < time.Second {
		t.Errorf("overload: %+v", o)
	}
	for name, a := range map[string]figures.Answers{"reads": o.Crowd.Reads, "submissions": o.Crowd.Submissions} {
		if a.Made == 0 || a.Made != a.Done+a.Refused+a.Failed || a.Paused > a.Refused {
			t.Errorf("%s: %+v; want each to be done, refused or failed", name, a)
		}
	}
}

func TestClaimers(t *testing.T) {
	testenv.Raced(t)

	c, err := figures.MeasureClaimers(t.Context(), tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	check(t, c.Rows())
	for _, load := range []figures.Contention{c.One, c.Several} {
		if load.Units != 100 || load.Claims < 1 || load.Claimants < 1 || load.Commits < load.Claims || load.Conflicts < load.Refused || load.Took <= 0 {
			t.Errorf("contention: %+v", load)
		}
	}
	if c.Several.Jobs != 4 {
		t.Errorf("%d jobs, want one for each of 4 claimers", c.Several.Jobs)
	}
}

func TestIdle(t *testing.T) {
	testenv.Lengthy(t)

	i, err := figures.MeasureIdle(t.Context(), tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	check(t, i.Rows())
	if i.Commits < 1 || i.Beats < 20 || i.Watched < 10*50*time.Millisecond {
		t.Errorf("idleness: %+v", i)
	}
}

func TestRowsOfModels(t *testing.T) {
	job := asking.Asked{Units: 40, Failed: 1, Took: 2 * time.Second, Alone: 30 * time.Second, Least: time.Second, Tally: rig.Tally{Calls: 50, Peak: 8, Refused: 5, Until: 2 * time.Second, Busy: 12 * time.Second}}
	m := figures.Models{Models: &asking.Models{
		AtOnce: 8, Share: .05, Kills: 3, Limited: job, Unlimited: job, Faulty: job, Metered: job, Spared: job, Killing: rig.Tally{Calls: 20, Peak: 7, Left: 3},
	}}
	check(t, m.Rows())
	got := make(map[string]float64)
	for _, r := range m.Rows() {
		got[r.Name] = r.Value
	}
	for name, want := range map[string]float64{
		"— documents": 1200, "— under way on average until the last begins": .75, "— faster than one after the other": 15, "— of the rate without a limit": 1, "— calls refused": .1,
		"units that fail where 0.050 of the calls go wrong": .025, "calls at once, at most, while 3 workers are killed": 7, "— afterwards": 8,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s: %v (told: %v), want %v", name, v, ok, want)
		}
	}
}

func TestRetrieval(t *testing.T) {
	t.Setenv("CODITECT_TESTDATA", "") // TestRecallOf… of package retrieval measure it
	r, err := figures.MeasureRetrieval(t.Context(), tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	check(t, r.Rows())
	if r.Answers != nil || r.Size.Passages < 50 || len(r.Size.Queries) != 5 {
		t.Errorf("retrieval: %+v", r)
	}
}

func TestNeighbourRunsOut(t *testing.T) {
	l := tiny(t)
	n, err := figures.MeasureNeighbour(t.Context(), l) // 40 units, which are done in no time
	if err != nil {
		t.Fatal(err)
	}
	check(t, n.Rows())
	if n.Beside.Len() != l.Arrivals {
		t.Errorf("%d waits", n.Beside.Len())
	}
}

func TestMeasureInAChild(t *testing.T) {
	rows, err := figures.Measure(t.Context(), "submit", *tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	check(t, rows)
	if rows, err := figures.Measure(t.Context(), "nonsense", *tiny(t)); err == nil {
		t.Errorf("a figure that is not there: %+v", rows)
	}
}

// The model and the workers of package asking are children of that child.
func TestChildrenOfAChild(t *testing.T) {
	l := tiny(t)
	l.Agents, l.Mull = 2, 10*time.Millisecond
	rows, err := figures.Measure(t.Context(), "agents", *l)
	if err != nil {
		t.Fatal(err)
	}
	check(t, rows)
}

func TestNumber(t *testing.T) {
	for want, v := range map[string]float64{
		"0": 0, "0.037": .037, "1": 1, "1.015": 1.015, "15.92": 15.918, "159.2": 159.18, "999.9": 999.94,
		"1,000": 999.999, "20,661": 20660.6, "1,160,171": 1160171, "-1,234": -1234, "-0.728": -.7281,
	} {
		if got := figures.Number(v); got != want {
			t.Errorf("Number(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestGoal(t *testing.T) {
	for _, tt := range []struct {
		goal figures.Goal
		v    float64
		met  bool
	}{
		{figures.Goal{AtLeast: true, Value: 2}, 2, true},
		{figures.Goal{AtLeast: true, Value: 2}, 1.9, false},
		{figures.Goal{Value: 2}, 2, true},
		{figures.Goal{Value: 2}, 2.1, false},
	} {
		if got := tt.goal.Met(tt.v); got != tt.met {
			t.Errorf("%v is met by %v: %v, want %v", &tt.goal, tt.v, got, tt.met)
		}
	}
}
