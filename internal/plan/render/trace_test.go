package render_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/internal/plan/render"
)

var start = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

func unit(id mapreduce.UnitID, kind mapreduce.UnitKind, level int, from, to time.Duration) render.Ran {
	return render.Ran{
		Unit: &mapreduce.Unit{
			ID: id, Kind: kind, Level: level, State: mapreduce.UnitComplete, Attempts: 1,
			Tokens: mapreduce.Tokens{In: 100, Out: 10}, CostMicros: 250_000, Elapsed: to - from,
			CallSums: mapreduce.CallSums{Calls: 2, Latency: 500 * time.Millisecond, Tools: 1, ToolTime: 20 * time.Millisecond},
		},
		Ended: start.Add(to),
	}
}

// B19: one id, the workflow, a summary of each level, sums that equal those of
// the units.
func TestTrace(t *testing.T) {
	late := unit("c", mapreduce.KindMap, 0, 0, 0)
	late.Ended, late.State, late.Attempts = time.Time{}, mapreduce.Pending, 0
	late.Tokens, late.CostMicros, late.CallSums = mapreduce.Tokens{}, 0, mapreduce.CallSums{}
	units := []render.Ran{
		unit("a", mapreduce.KindMap, 0, time.Second, 3*time.Second), unit("b", mapreduce.KindMap, 0, 2*time.Second, 5*time.Second), late,
		unit("reduce_L1_0", mapreduce.KindReduce, 1, 5*time.Second, 6*time.Second),
		unit("final", mapreduce.KindFinal, 2, 6*time.Second, 8*time.Second),
	}
	got := render.NewTrace("mr_20260301_aaaaaa", plan.ModeStatic, "extract", units)
	sums := func(n int64) render.Metrics {
		return render.Metrics{
			Total: 110 * n, In: 100 * n, Out: 10 * n, Calls: 2 * n, Latency: 500 * float64(n), Tools: n, ToolTime: 20 * float64(n), Cost: render.Cost{Micros: 250_000 * n},
		}
	}
	want := []render.Level{
		{Level: 0, Workflow: new("PARALLEL"), Tasks: 3, Duration: 4000, Metrics: sums(2)},
		{Level: 1, Workflow: new("PARALLEL"), Tasks: 1, Duration: 1000, Metrics: sums(1)},
		{Level: 2, Workflow: new("PARALLEL"), Tasks: 1, Duration: 2000, Metrics: sums(1)},
	}
	if diff := cmp.Diff(want, got.Levels); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(sums(4), got.Metrics); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if got.ID != "mr_20260301_aaaaaa" || *got.Workflow != "MAP_REDUCE_STATIC" || !time.Time(*got.Started).Equal(start.Add(time.Second)) || !time.Time(*got.Ended).Equal(start.Add(8*time.Second)) {
		t.Errorf("%s, %s, %s to %s", got.ID, *got.Workflow, got.Started, got.Ended)
	}
	checkTasks(t, got.Tasks)
}

func checkTasks(t *testing.T, tasks []render.RanTask) {
	t.Helper()
	types := []string{"map", "map", "map", "reduce", "final-reduce"}
	for i, task := range tasks {
		if *task.NodeType != types[i] || *task.Level != max(0, i-2) || (task.Ended == nil) != (i == 2) || (task.Started == nil) != (i == 2) {
			t.Errorf("task %d is %+v", i, task)
		}
	}
}

func TestTraceOfDirectAndNone(t *testing.T) {
	direct := render.NewTrace("j", plan.ModeAdaptive, "", []render.Ran{unit("direct", mapreduce.KindDirect, 0, 0, time.Second)})
	if *direct.Workflow != "MAP_REDUCE_ADAPTIVE" || *direct.Tasks[0].NodeType != "direct" {
		t.Errorf("the trace of a direct job is %+v", direct)
	}
	out, err := json.Marshal(render.NewTrace("j", "", "extract", []render.Ran{}))
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	if doc["workflow"] != nil || doc["started"] != nil || len(doc["tasks"].([]any)) != 0 || len(doc["mapReduceLevels"].([]any)) != 0 {
		t.Errorf("the trace of nothing is %s", out)
	}
}

// TestCostsWithoutPrices: a cost that is not known is null, and so is a sum that lacks it. What a call
// of a model with a price cost is known beside it.
func TestCostsWithoutPrices(t *testing.T) {
	known, unknown := unit("a", mapreduce.KindMap, 0, 0, time.Second), unit("final", mapreduce.KindFinal, 1, time.Second, 2*time.Second)
	unknown.Unpriced = true
	unknown.Calls = []mapreduce.Call{
		{Name: "openai/mine", Tokens: mapreduce.Tokens{In: 9}}, {Name: "openai/gpt", Tokens: mapreduce.Tokens{In: 9}, CostMicros: 7}, {Kind: mapreduce.CallTool, Name: "fetch"},
	}
	out, err := json.Marshal(render.NewTrace("j", "", "", []render.Ran{known, unknown}))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Tasks []struct {
			Cost  *float64
			Calls []struct{ Cost *float64 }
		}
		Levels []struct {
			Metrics struct{ TotalCostEstimate *float64 }
		} `json:"mapReduceLevels"`
		Metrics struct{ TotalCostEstimate *float64 }
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	calls := doc.Tasks[1].Calls
	got := []*float64{
		doc.Tasks[0].Cost, doc.Tasks[1].Cost, calls[0].Cost, calls[1].Cost, calls[2].Cost,
		doc.Levels[0].Metrics.TotalCostEstimate, doc.Levels[1].Metrics.TotalCostEstimate, doc.Metrics.TotalCostEstimate,
	}
	if diff := cmp.Diff([]*float64{new(0.25), nil, nil, new(7e-6), new(0.0), new(0.25), nil, nil}, got); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, out)
	}
	if !strings.Contains(string(out), `"cost":null`) {
		t.Errorf("no unit's cost is null in %s", out)
	}
}

// Units that come before the map are part of the whole, and of no level.
func TestTraceOfParseUnits(t *testing.T) {
	got := render.NewTrace("j", "", "", []render.Ran{
		unit("parse_a", mapreduce.KindParse, -1, 0, time.Second), unit("a", mapreduce.KindMap, 0, time.Second, 2*time.Second),
	})
	if len(got.Levels) != 1 || got.Metrics.Total != 220 || got.Tasks[0].NodeType != nil || got.Tasks[0].Level != nil || !time.Time(*got.Started).Equal(start) {
		t.Errorf("%+v", got)
	}
}

// What units had spent that are no more is in the sums of the whole, and an entry
// of its own: no level has it.
func TestTraceOfSupersededUnits(t *testing.T) {
	var tally render.Tally
	tally.Add(unit("a", mapreduce.KindMap, 0, 0, time.Second))
	tally.Supersede(mapreduce.Spent{
		Level: 1, Units: 2, Tokens: mapreduce.Tokens{In: 200, Out: 20}, CostMicros: 500_000,
		CallSums: mapreduce.CallSums{Calls: 4, Latency: time.Second, Tools: 2, ToolTime: 40 * time.Millisecond},
	}, false)
	sums := func(n int64) render.Metrics {
		return render.Metrics{
			Total: 110 * n, In: 100 * n, Out: 10 * n, Calls: 2 * n, Latency: 500 * float64(n), Tools: n, ToolTime: 20 * float64(n), Cost: render.Cost{Micros: 250_000 * n},
		}
	}
	got := tally.Head("j", "", "")
	if diff := cmp.Diff([]render.Superseded{{Level: 1, Tasks: 2, Metrics: sums(2)}}, got.Superseded); diff != "" {
		t.Errorf("superseded (-want +got):\n%s", diff)
	}
	if len(got.Levels) != 1 || got.Levels[0].Metrics != sums(1) || got.Metrics != sums(3) {
		t.Errorf("levels %+v, of all %+v", got.Levels, got.Metrics)
	}
}
