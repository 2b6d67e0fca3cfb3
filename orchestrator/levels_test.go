package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
)

// A collector is an agent whose outputs name the map units that they stand for,
// and have the sizes that a test wants.
type collector struct {
	size func(task *agent.Task, units []string) int64 // defaults to 1
	fail func(task *agent.Task) error                 // may be nil
}

// Run implements agent.Agent.
func (c collector) Run(_ context.Context, task *agent.Task, _ agent.Calls) (*agent.Result, error) {
	if c.fail != nil {
		if err := c.fail(task); err != nil {
			return nil, err
		}
	}
	var units []string
	if task.Text != nil {
		units = []string{string(task.Unit)}
	}
	for _, in := range task.Inputs {
		if in.Failed {
			continue
		}
		var below []string
		if err := json.Unmarshal(in.Data, &below); err != nil {
			return nil, agent.Permanent(fmt.Errorf("input %s: %w", in.Unit, err))
		}
		units = append(units, below...)
	}
	out, err := json.Marshal(units)
	size := int64(1)
	if c.size != nil {
		size = c.size(task, units)
	}
	return &agent.Result{Output: out, Size: size}, err
}

// collecting returns a node with a worker that runs units by a collector.
func collecting(t *testing.T, a collector) *node {
	t.Helper()
	c := newCluster(t)
	n := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
	c.worker(a, worker.Config{Slots: 8, Prefetch: 4}, n)
	return n
}

// shapeOf returns how many units each level of a job has, "F" being the final,
// and checks that each output but the last is taken exactly once.
func shapeOf(t *testing.T, units map[mapreduce.UnitID]*mapreduce.Unit) string {
	t.Helper()
	count, taken := make(map[int]int), make(map[mapreduce.UnitID]int)
	for _, u := range units {
		count[u.Level]++
		for _, in := range u.DependsOn {
			taken[in]++
			if below := units[in]; below == nil || below.Level != u.Level-1 {
				t.Errorf("unit %s of level %d takes %s: %+v", u.ID, u.Level, in, below)
			}
		}
	}
	for id, u := range units {
		want := 1
		if id == mapreduce.FinalUnit {
			want = 0
		}
		if got := taken[id]; got != want && u.State == mapreduce.UnitComplete {
			t.Errorf("unit %s is an input %d times, want %d", id, got, want)
		}
	}
	var parts []string
	for _, level := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprint(count[level]))
	}
	if final := units[mapreduce.FinalUnit]; final != nil && final.Level == len(parts)-1 {
		parts[final.Level] = "F"
	}
	return strings.Join(parts, " ")
}

// finals returns the map units that the result stands for, in order.
func (n *node) finals(id mapreduce.JobID) []string {
	n.t.Helper()
	var units []string
	u, err := n.jobs.Unit(n.t.Context(), id, mapreduce.FinalUnit)
	if err != nil || u == nil {
		n.t.Fatalf("final unit: %v, %v", u, err)
	}
	data, err := n.jobs.Output(n.t.Context(), id, u)
	if err != nil {
		n.t.Fatal(err)
	}
	if err := json.Unmarshal(data, &units); err != nil {
		n.t.Fatal(err)
	}
	slices.Sort(units)
	return units
}

// healthy checks the whole store.
func (n *node) healthy() {
	n.t.Helper()
	err := n.jobs.Check(n.t.Context(), func(f mapreduce.Finding) error {
		if f.Severity == mapreduce.Wrong {
			n.t.Errorf("check: %s %s: %s", f.Job, f.Key, f.Message)
		}
		return nil
	})
	if err != nil {
		n.t.Fatal(err)
	}
}

// mapped returns the ids of the documents that a test submits.
func mapped(from, to int) []string {
	var ids []string
	for i := from; i < to; i++ {
		ids = append(ids, fmt.Sprintf("doc-%07d", i))
	}
	return ids
}

// TestB16AdaptiveTrees runs adaptive trees whose outputs have given sizes.
func TestB16AdaptiveTrees(t *testing.T) {
	constant := func(n int64) func(*agent.Task, []string) int64 {
		return func(*agent.Task, []string) int64 { return n }
	}
	for _, tt := range []struct {
		name      string
		documents int
		ask       ask
		size      func(*agent.Task, []string) int64
		want      string
		warnings  []string // each begins so
	}{
		{"six small", 6, ask{budget(1000)}, constant(10), "6 F", nil},
		{"six large", 6, ask{budget(1000)}, constant(400), "6 3 2 F", nil},
		{"a total equal to the budget fits", 4, ask{budget(1000)}, constant(250), "4 F", nil},
		{"one more does not", 4, ask{budget(999)}, constant(250), "4 2 F", nil},
		{"one item", 1, ask{budget(10)}, constant(3), "1 F", nil},
		{"a window times its ratio", 4, ask{window(2000)}, constant(250), "4 F", nil},
		{"a window times less", 4, ask{window(2000), ratio(0.4)}, constant(250), "4 2 F", nil},
		{
			"growing outputs stop at the most levels", 16,
			ask{budget(1000), levels(2)},
			func(task *agent.Task, _ []string) int64 { return int64(300 + 100*task.Level) },
			"16 6 3 F",
			[]string{"no more levels of reduction are allowed before level 3: 3 outputs of 1500 tokens are folded"},
		},
		{
			"one larger than the budget has its own bin", 4,
			ask{budget(100)},
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
			"no progress", 100,
			ask{budget(10_000)},
			constant(5100), "100 F",
			[]string{"level 1 would be no smaller than the one below it: its 100 outputs of 510000 tokens are folded"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := collecting(t, collector{size: tt.size})
			id := n.submit(asking(tt.ask...), tt.documents)
			job := n.wantEnd(id, mapreduce.JobComplete)
			if got := shapeOf(t, n.units(id)); got != tt.want {
				t.Errorf("levels are %s, want %s", got, tt.want)
			}
			if diff := cmp.Diff(mapped(0, tt.documents), n.finals(id)); diff != "" {
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
			n.healthy()
		})
	}
}
