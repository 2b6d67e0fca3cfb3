package enginetest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/worker/agent"
)

// A Collector is an agent whose outputs name the map units that they stand for,
// and have the sizes that a test wants.
type Collector struct {
	Size func(task *agent.Task, units []string) int64 // defaults to 1
	Fail func(task *agent.Task) error                 // may be nil
}

// Run implements agent.Agent.
func (c Collector) Run(_ context.Context, task *agent.Task, _ agent.Calls) (*agent.Result, error) {
	if c.Fail != nil {
		if err := c.Fail(task); err != nil {
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
		if err := json.Unmarshal([]byte(ReasonOf(in.Data)), &below); err != nil {
			return nil, agent.Permanent(fmt.Errorf("input %s: %w", in.Unit, err))
		}
		units = append(units, below...)
	}

	list, err := json.Marshal(units)
	if err != nil {
		return nil, err
	}
	out, err := (&output.Output{Reason: string(list)}).Encode()
	size := int64(1)
	if c.Size != nil {
		size = c.Size(task, units)
	}
	return &agent.Result{Output: out, Size: size}, err
}

// ReasonOf returns why an output says that it has no records, "" of what is none.
func ReasonOf(data []byte) string {
	out, err := output.Decode(data)
	if err != nil {
		return ""
	}
	return out.Reason
}

// ShapeOf returns how many units each level of a job has, "F" being the final,
// and checks that each output but the last is taken exactly once.
func ShapeOf(t *testing.T, units map[mapreduce.UnitID]*mapreduce.Unit) string {
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

// Finals returns the map units that the result stands for, in order.
func (n *Node) Finals(id mapreduce.JobID) []string {
	n.T.Helper()
	var units []string
	u, err := n.Jobs.View.Unit(n.T.Context(), id, mapreduce.FinalUnit)
	if err != nil || u == nil {
		n.T.Fatalf("final unit: %v, %v", u, err)
	}
	data, err := n.Jobs.Content.Output(n.T.Context(), id, u)
	if err != nil {
		n.T.Fatal(err)
	}
	if err := json.Unmarshal([]byte(ReasonOf(data)), &units); err != nil {
		n.T.Fatal(err)
	}
	slices.Sort(units)
	return units
}

// Healthy checks the whole store.
func (n *Node) Healthy() {
	n.T.Helper()
	err := n.Jobs.Check.Run(n.T.Context(), func(f mapreduce.Finding) error {
		if f.Severity == mapreduce.Wrong {
			n.T.Errorf("check: %s %s: %s", f.Job, f.Key, f.Message)
		}
		return nil
	})
	if err != nil {
		n.T.Fatal(err)
	}
}

// Mapped returns the ids of the documents that a test submits.
func Mapped(from, to int) []string {
	var ids []string
	for i := from; i < to; i++ {
		ids = append(ids, fmt.Sprintf("doc-%07d", i))
	}
	return ids
}
