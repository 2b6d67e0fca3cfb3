package lifecycle_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
)

// collecting returns a node with a worker that runs units by a collector.
func collecting(t *testing.T, a enginetest.Collector) *enginetest.Node {
	t.Helper()
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	c.Worker(a, worker.Config{Slots: 8, Prefetch: 4}, n)
	return n
}

// recorded gives a job a schema, which pipelines of one's own need.
func recorded(s *mapreduce.JobSpec) {
	s.Schema = []byte(`{"type":"object","properties":{"x":{"type":"string"}}}`)
}

// TestB16AdaptiveTrees runs adaptive trees whose outputs have given sizes.
func TestB16AdaptiveTrees(t *testing.T) {
	constant := func(n int64) func(*agent.Task, []string) int64 {
		return func(*agent.Task, []string) int64 { return n }
	}
	for _, tt := range []struct {
		name      string
		documents int
		ask       enginetest.Ask
		size      func(*agent.Task, []string) int64
		want      string
		warnings  []string // each begins so
	}{
		{"six small", 6, enginetest.Ask{enginetest.Budget(1000)}, constant(10), "6 F", nil},
		{"six large", 6, enginetest.Ask{enginetest.Budget(1000)}, constant(400), "6 3 2 F", nil},
		{"a total equal to the budget fits", 4, enginetest.Ask{enginetest.Budget(1000)}, constant(250), "4 F", nil},
		{"one more does not", 4, enginetest.Ask{enginetest.Budget(999)}, constant(250), "4 2 F", nil},
		{"one item", 1, enginetest.Ask{enginetest.Budget(10)}, constant(3), "1 F", nil},
		{"a window times its ratio", 4, enginetest.Ask{enginetest.Window(2000)}, constant(250), "4 F", nil},
		{"a window times less", 4, enginetest.Ask{enginetest.Window(2000), enginetest.Ratio(0.4)}, constant(250), "4 2 F", nil},
		{
			"growing outputs stop at the most levels", 16,
			enginetest.Ask{enginetest.Budget(1000), enginetest.Levels(2)},
			func(task *agent.Task, _ []string) int64 { return int64(300 + 100*task.Level) },
			"16 6 3 F",
			[]string{"no more levels of reduction are allowed before level 3: 3 outputs of 1500 tokens are read one after another"},
		},
		{
			"one larger than the budget has its own bin", 4,
			enginetest.Ask{enginetest.Budget(100)},
			func(task *agent.Task, _ []string) int64 {
				if task.Unit == "doc-0000002" {
					return 500
				}
				return 45
			},
			"4 3 2 F",
			[]string{`the output of unit "doc-0000002" has 500 tokens, more than the budget of 100`},
		},
		{
			"B14 the warning names the agent of a map", 4,
			enginetest.Ask{enginetest.Piped(kitchen), recorded, enginetest.Budget(100)},
			func(task *agent.Task, _ []string) int64 {
				if task.Unit == "doc-0000002" {
					return 500
				}
				return 45
			},
			"4 3 2 F",
			[]string{`the output of agent "Chef of doc-0000002", unit "doc-0000002", has 500 tokens, more than the budget of 100`},
		},
		{
			"B14 and of a reduce", 4,
			enginetest.Ask{enginetest.Piped(kitchen), recorded, enginetest.Budget(100)},
			func(task *agent.Task, _ []string) int64 {
				if task.Unit == "reduce_L1_0" {
					return 500
				}
				return 45
			},
			"4 2 2 F",
			[]string{`the output of agent "Sub-Chef", unit "reduce_L1_0", has 500 tokens, more than the budget of 100`},
		},
		{
			"no progress", 100,
			enginetest.Ask{enginetest.Budget(10_000)},
			constant(5100), "100 F",
			[]string{"level 1 would be no smaller than the one below it: its 100 outputs of 510000 tokens are read one after another"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := collecting(t, enginetest.Collector{Size: tt.size})
			id := n.Submit(enginetest.Asking(tt.ask...), tt.documents)
			job := n.WantEnd(id, mapreduce.JobComplete)
			if got := enginetest.ShapeOf(t, n.Units(id)); got != tt.want {
				t.Errorf("levels are %s, want %s", got, tt.want)
			}
			if diff := cmp.Diff(enginetest.Mapped(0, tt.documents), n.Finals(id)); diff != "" {
				t.Errorf("documents in the result (-want +got):\n%s", diff)
			}
			if len(job.Warnings) != len(tt.warnings) {
				t.Fatalf("warnings are %q, want %q", job.Warnings, tt.warnings)
			}
			for i, w := range tt.warnings {
				if !strings.HasPrefix(job.Warnings[i], w) {
					t.Errorf("warning %q, want %q", job.Warnings[i], w)
				}
			}
			n.Healthy()
		})
	}
}

// TestB13StaticTrees runs the eleven shapes: each level has its nodes, each
// reduce exactly its group in order, and every document is in the result once.
func TestB13StaticTrees(t *testing.T) {
	n := collecting(t, enginetest.Collector{})
	for _, tt := range []struct {
		n, k  int
		want  string
		nodes int64
	}{
		{1, 3, "1 F", 2},
		{2, 2, "2 F", 3},
		{3, 3, "3 F", 4},
		{4, 3, "4 2 F", 7},
		{6, 3, "6 2 F", 9},
		{7, 3, "7 3 F", 11},
		{9, 3, "9 3 F", 13},
		{10, 3, "10 4 2 F", 17},
		{25, 5, "25 5 F", 31},
		{26, 5, "26 6 2 F", 35},
		{100, 5, "100 20 4 F", 125},
	} {
		t.Run(fmt.Sprintf("%d by %d", tt.n, tt.k), func(t *testing.T) {
			id := n.Submit(enginetest.Asking(enginetest.Static(int64(tt.k))), tt.n)
			job := n.WantEnd(id, mapreduce.JobComplete)
			units := n.Units(id)
			if got := enginetest.ShapeOf(t, units); got != tt.want || job.TotalUnits != tt.nodes || int64(len(units)) != tt.nodes {
				t.Errorf("levels are %s with %d nodes, %d of them listed; want %s with %d", got, job.TotalUnits, len(units), tt.want, tt.nodes)
			}
			below := enginetest.Mapped(0, tt.n)
			for level := 1; len(below) > 0; level++ {
				below = groupsOf(t, units, level, below, tt.k)
			}
			if diff := cmp.Diff(enginetest.Mapped(0, tt.n), n.Finals(id)); diff != "" {
				t.Errorf("documents in the result (-want +got):\n%s", diff)
			}
			for _, u := range units {
				if u.Attempts != 1 {
					t.Errorf("unit %s has had %d attempts", u.ID, u.Attempts)
				}
			}
		})
	}
	n.Healthy()
}

// groupsOf checks that the reduces of a level take groups of k of the units
// below, and returns their names; none above the final.
func groupsOf(t *testing.T, units map[mapreduce.UnitID]*mapreduce.Unit, level int, below []string, k int) (names []string) {
	t.Helper()
	for i := 0; i*k < len(below); i++ {
		name := mapreduce.ReduceUnit(level, i)
		if len(below) <= k {
			name = mapreduce.FinalUnit
		}
		u := units[name]
		if u == nil {
			t.Fatalf("unit %s is not there", name)
		}
		var got []string
		for _, in := range u.DependsOn {
			got = append(got, string(in))
		}
		if diff := cmp.Diff(below[i*k:min(len(below), (i+1)*k)], got); diff != "" {
			t.Errorf("inputs of %s (-want +got):\n%s", name, diff)
		}
		if name != mapreduce.FinalUnit {
			names = append(names, string(name))
		}
	}
	return names
}

// TestStaticTreesHaveNoBarrier: a reduce runs while other documents are mapped.
// The last document is only mapped once a reduce of the second level has run.
func TestStaticTreesHaveNoBarrier(t *testing.T) {
	testenv.Raced(t)

	reduced := make(chan struct{})
	n := collecting(t, enginetest.Collector{Fail: func(task *agent.Task) error {
		switch task.Unit {
		case "doc-0000007":
			<-reduced
		case "reduce_L2_0":
			close(reduced)
		}
		return nil
	}})
	id := n.Submit(enginetest.Asking(enginetest.Static(2)), 8)
	n.WantEnd(id, mapreduce.JobComplete)
	if diff := cmp.Diff(enginetest.Mapped(0, 8), n.Finals(id)); diff != "" {
		t.Errorf("documents in the result (-want +got):\n%s", diff)
	}
	n.Healthy()
}

// TestUnitsOfATreeAreListed: the whole tree is listed from the start, its reduces
// blocked.
func TestUnitsOfATreeAreListed(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true})) // and no worker
	id := n.Submit(enginetest.Asking(enginetest.Static(3)), 7)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	err := n.WatchJob(ctx, id, func(j *mapreduce.Job) error {
		if j.State == mapreduce.Mapping {
			stop()
		}
		return nil
	})
	if ctx.Err() == nil {
		t.Fatalf("the job does not begin: %v", err)
	}
	states := make(map[string]int)
	for _, u := range n.Units(id) {
		states[u.State.String()]++
	}
	if diff := cmp.Diff(map[string]int{"pending": 7, "blocked": 4}, states); diff != "" {
		t.Errorf("units by state (-want +got):\n%s", diff)
	}
	if _, err := n.CancelJob(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	n.WantEnd(id, mapreduce.JobCancelled)
	n.Healthy()
	if err := n.DeleteJob(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	n.Healthy()
}

// TestB18Errors: what failing units do to static and adaptive trees. Without a
// survivor no reduce runs, which is A17 too.
func TestB18Errors(t *testing.T) {
	broken := func(units ...mapreduce.UnitID) func(*agent.Task) error {
		return func(task *agent.Task) error {
			if slices.Contains(units, task.Unit) {
				return agent.Permanent(fmt.Errorf("%s is broken", task.Unit))
			}
			return nil
		}
	}
	all := func(*agent.Task) error { return agent.Permanent(fmt.Errorf("all are broken")) }
	big := func(*agent.Task, []string) int64 { return 40 }
	for _, tt := range []struct {
		name   string
		ask    enginetest.Ask
		fail   func(*agent.Task) error
		state  mapreduce.JobState
		failed int64
		result []string
		why    string // part of the job's error
		runs   int    // attempts of reduces; -1: any
	}{
		{"static, continue", enginetest.Ask{enginetest.Static(3)}, broken("doc-0000001", "doc-0000005"), mapreduce.JobComplete, 2, slices.Concat(enginetest.Mapped(0, 1), enginetest.Mapped(2, 5), enginetest.Mapped(6, 9)), "", 4},
		{"adaptive, continue", enginetest.Ask{enginetest.Budget(100)}, broken("doc-0000001", "doc-0000005"), mapreduce.JobComplete, 2, slices.Concat(enginetest.Mapped(0, 1), enginetest.Mapped(2, 5), enginetest.Mapped(6, 9)), "", -1},
		{"static, a whole group", enginetest.Ask{enginetest.Static(3)}, broken("doc-0000003", "doc-0000004", "doc-0000005"), mapreduce.JobComplete, 4, slices.Concat(enginetest.Mapped(0, 3), enginetest.Mapped(6, 9)), "", 3},
		{"static, a reduce", enginetest.Ask{enginetest.Static(3)}, broken("reduce_L1_1"), mapreduce.JobComplete, 1, slices.Concat(enginetest.Mapped(0, 3), enginetest.Mapped(6, 9)), "", 4},
		{"static, all reduces of a level", enginetest.Ask{enginetest.Static(3)}, broken("reduce_L1_0", "reduce_L1_1", "reduce_L1_2"), mapreduce.JobFailed, 4, nil, "3 of 3 units of level 1 failed; the first, reduce_L1_0", 3},
		{"static, no survivor", enginetest.Ask{enginetest.Static(3)}, all, mapreduce.JobFailed, 9 + 4, nil, "9 of 9 units of level 0 failed", 0},
		{"adaptive, no survivor", enginetest.Ask{enginetest.Budget(100)}, all, mapreduce.JobFailed, 9, nil, "9 of 9 units of level 0 failed", 0},
		{"static, the final", enginetest.Ask{enginetest.Static(3)}, broken("final"), mapreduce.JobFailed, 1, nil, "1 of 1 unit of level 2 failed; the first, final: final is broken", 4},
		{"static, fail-fast", enginetest.Ask{enginetest.Static(3), failFast}, broken("doc-0000001"), mapreduce.JobFailed, -1, nil, "unit doc-0000001 failed, and the job is to fail fast", -1},
		{"static, fail-fast on a reduce", enginetest.Ask{enginetest.Static(3), failFast}, broken("reduce_L1_0"), mapreduce.JobFailed, -1, nil, "unit reduce_L1_0 failed, and the job is to fail fast", -1},
		{"adaptive, fail-fast", enginetest.Ask{enginetest.Budget(100), failFast}, broken("doc-0000001"), mapreduce.JobFailed, -1, nil, "unit doc-0000001 failed, and the job is to fail fast", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := collecting(t, enginetest.Collector{Size: big, Fail: tt.fail})
			id := n.Submit(enginetest.Asking(tt.ask...), 9)
			job := n.WantEnd(id, tt.state)
			if tt.failed >= 0 && job.FailedUnits != tt.failed || !strings.Contains(job.Error, tt.why) {
				t.Errorf("%d units failed, and the job with %q; want %d and %q", job.FailedUnits, job.Error, tt.failed, tt.why)
			}
			runs := 0
			for _, u := range n.Units(id) {
				if u.Level > 0 {
					runs += u.Attempts
				}
			}
			if tt.runs >= 0 && runs != tt.runs {
				t.Errorf("reduces were run %d times, want %d", runs, tt.runs)
			}
			if tt.state == mapreduce.JobComplete {
				if diff := cmp.Diff(tt.result, n.Finals(id)); diff != "" {
					t.Errorf("documents in the result (-want +got):\n%s", diff)
				}
			}
			n.Healthy()
		})
	}
}

func failFast(s *mapreduce.JobSpec) { s.OnError = mapreduce.FailFast }

// TestResumeOfTrees: whatever the strategy is, a resume tries failed units again,
// and the result is that of a job in which none failed.
func TestResumeOfTrees(t *testing.T) {
	testenv.Raced(t)

	for _, tt := range []struct {
		name string
		ask  enginetest.Ask
		runs int // attempts of reduces in all: those that depend on no failed unit run once
	}{
		{"static", enginetest.Ask{enginetest.Static(3)}, (9 + 3 + 1) + (2 + 2 + 1)},
		{"adaptive", enginetest.Ask{enginetest.Budget(150)}, -1},
		{"batches", enginetest.Ask{enginetest.Batches(1, 3)}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := enginetest.NewCluster(t)
			n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
			size := func(*agent.Task, []string) int64 { return 50 }
			drain := c.Worker(enginetest.Collector{Size: size, Fail: func(task *agent.Task) error {
				if task.Unit == "doc-0000004" || task.Unit == "reduce_L1_8" {
					return agent.Permanent(fmt.Errorf("%s is broken", task.Unit))
				}
				return nil
			}}, worker.Config{Slots: 8}, n)
			id := n.Submit(enginetest.Asking(tt.ask...), 27)
			if job := n.WantEnd(id, mapreduce.JobComplete); job.FailedUnits == 0 {
				t.Fatal("no unit failed: the test shows nothing")
			}
			n.Healthy()
			drain()
			c.Worker(enginetest.Collector{Size: size}, worker.Config{Slots: 8}, n)
			if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil {
				t.Fatal(err)
			}
			if job := n.WantEnd(id, mapreduce.JobComplete); job.FailedUnits != 0 || job.CompletedUnits != job.TotalUnits {
				t.Errorf("after the resume: %+v", job)
			}
			if diff := cmp.Diff(enginetest.Mapped(0, 27), n.Finals(id)); diff != "" {
				t.Errorf("documents in the result (-want +got):\n%s", diff)
			}
			runs := 0
			for _, u := range n.Units(id) {
				if u.Level > 0 {
					runs += u.Attempts
				}
			}
			if tt.runs >= 0 && runs != tt.runs {
				t.Errorf("reduces were run %d times, want %d", runs, tt.runs)
			}
			n.Healthy()
		})
	}
}

// TestReducesAreReadTogether: what neighbouring reduces take is read together when they are
// handed out, and is at hand when their outputs are checked.
func TestReducesAreReadTogether(t *testing.T) {
	c := enginetest.NewCluster(t)
	config := enginetest.Quick(orchestrator.Config{Adopt: true})
	config.Poll = 2 * time.Second // polls read too, and the more of them the longer it takes
	n := c.Orchestrator(config)
	c.Worker(enginetest.Collector{}, worker.Config{Slots: 8, Prefetch: 4}, n)
	id := n.Submit(enginetest.Asking(enginetest.Batches(1, 2)), 1) // what a job costs beside its units
	n.WantEnd(id, mapreduce.JobComplete)
	stats := n.Jobs.DB().Stats()
	reads := stats.Reads.Load()
	const documents, reduces = 512, 512 - 1
	id = n.Submit(enginetest.Asking(enginetest.Batches(1, 2)), documents)
	n.WantEnd(id, mapreduce.JobComplete)
	reads = stats.Reads.Load() - reads
	if reads > 3*reduces/2 {
		t.Errorf("%d documents and %d reduces cost %d reading transactions, want at most %d", documents, reduces, reads, 3*reduces/2)
	}
}
