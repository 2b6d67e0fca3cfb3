package batches

import (
	"math"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/orchestrator/schedule/model"
)

// assumed are forecasts for which plans assume calls of ten seconds.
func assumed() *forecasts {
	return &forecasts{config: Config{MaxCalls: 50, Rates: func(*mapreduce.JobSpec) plan.Rates {
		return plan.Rates{Model: true, CallTime: 10 * time.Second, Prompt: 500, Answer: 1000}
	}}}
}

// What a call takes: as planned, and as measured once enough were; and how many units of the plan ask how often.
func TestCallOf(t *testing.T) {
	f := assumed()
	spec := &mapreduce.JobSpec{MaxTokensPerUnit: 1500}
	planned := &mapreduce.Job{Plan: &mapreduce.JobPlan{Units: 150, Asking: 100, PlanSpend: mapreduce.PlanSpend{Calls: 140, Tokens: mapreduce.Tokens{In: 140_000, Out: 28_000}}}}
	for name, tt := range map[string]struct {
		job  *mapreduce.Job
		pace model.Pace
		want call
	}{
		"planned":         {planned, model.Pace{Calls: 4, Seconds: 99}, call{1.4, 10 * time.Second, 1000, 200}},
		"measured":        {planned, model.Pace{Calls: 5, Seconds: 20, In: 3000, Out: 100}, call{1.4, 20 * time.Second, 3000, 100}},
		"without a plan":  {&mapreduce.Job{}, model.Pace{}, call{1, 10 * time.Second, 2000, 1000}},
		"an earlier plan": {&mapreduce.Job{Plan: &mapreduce.JobPlan{Units: 100, PlanSpend: mapreduce.PlanSpend{Calls: 150}}}, model.Pace{}, call{1.5, 10 * time.Second, 0, 0}},
	} {
		if got := f.callOf(tt.job, spec, tt.pace); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// Limits in a minute bound the calls of a job whatever they count: calls, or tokens of either kind.
func TestCallsInAMinute(t *testing.T) {
	c := call{in: 1000, out: 200}
	for _, tt := range []struct {
		limits mapreduce.Rates
		want   int64
	}{
		{mapreduce.Rates{}, 0},
		{mapreduce.Rates{Requests: 60}, 60},
		{mapreduce.Rates{Requests: 60, Input: 30_000}, 30},
		{mapreduce.Rates{Requests: 60, Input: 30_000, Output: 2000}, 10},
		{mapreduce.Rates{Input: 10}, 1},
	} {
		if got := c.minute(tt.limits); got != tt.want {
			t.Errorf("%+v let %d calls begin in a minute, want %d", tt.limits, got, tt.want)
		}
	}
}

// What comes after the units at hand goes by the slowest of the models of later stages, and each of these has a call at
// least.
func TestWhatComesAfter(t *testing.T) {
	f := assumed()
	job := &mapreduce.Job{Spec: mapreduce.JobSpec{Provider: "p", Model: "quick", Parallelism: 20}}
	later := []*pipeline.Stage{{Name: "group"}, {Name: "write", Model: "p/slow"}}
	bears := map[string]model.Allowance{"p/slow": {Rates: mapreduce.Rates{Requests: 2}}}
	for calls, want := range map[int64]time.Duration{
		1:  10*time.Second + 30*time.Second, // a call at each; of the slow one two begin in a minute
		40: 10*time.Second + 20*time.Minute,
	} {
		if got := f.after(calls, job, later, bears); got != want {
			t.Errorf("%d calls later take %v, want %v", calls, got, want)
		}
	}
	if got := f.after(40, job, nil, bears); got != 0 {
		t.Errorf("what comes after the last stage takes %v", got)
	}
}

// Slots that are gone count for a while: a worker that is away for a moment comes back.
func TestSlotsThatAreGone(t *testing.T) {
	var p peak
	at := time.Unix(1_000_000, 0)
	for _, step := range []struct {
		after time.Duration
		n     int64
		want  int64
	}{
		{0, 40, 40}, {time.Minute, 10, 40}, {5 * time.Minute, 10, 40}, {9 * time.Minute, 12, 40}, {10 * time.Minute, 10, 12}, {16 * time.Minute, 10, 10},
	} {
		if p.note(step.n, at.Add(step.after)); p.most() != step.want {
			t.Errorf("%v after the first of 40 slots it counts %d, want %d", step.after, p.most(), step.want)
		}
	}
}

func TestLower(t *testing.T) {
	if got := lower(0, 7, 3, 0, math.MaxInt64); got != 3 {
		t.Errorf("the lowest is %d, want 3", got)
	}
	if got := lower(0, 0); got != 0 {
		t.Errorf("of no limits the lowest is %d", got)
	}
}
