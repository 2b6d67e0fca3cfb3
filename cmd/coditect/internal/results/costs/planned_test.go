package costs_test

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/costs"
)

// A job is compared with its plan once it has ended, in what the plan has, and in money where that
// is known.
func TestPlannedBesideActual(t *testing.T) {
	job := &mapreduce.Job{
		State: mapreduce.JobComplete, TotalUnits: 9, Calls: 6, TotalTokens: mapreduce.Tokens{In: 1001, Out: 0}, CostMicros: 2_000_000,
		Plan: &mapreduce.JobPlan{Units: 10, PlanSpend: mapreduce.PlanSpend{Calls: 4, Tokens: mapreduce.Tokens{In: 1001}, CostMicros: 1_000_000}},
	}
	cost := 2.0

	got := costs.PlannedOf(job, costs.Pricing{}, &cost)
	want := &costs.Planned{
		Units: costs.Compared{Planned: 10, Actual: 9, Difference: new(-10.0)},
		Calls: costs.Compared{Planned: 4, Actual: 6, Difference: new(50.0)},
		In:    costs.Compared{Planned: 1001, Actual: 1001, Difference: new(0.0)},
		Out:   costs.Compared{},
		Cost:  costs.ComparedCost{Planned: new(1.0), Actual: &cost, Difference: new(100.0)},
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}

	if p := costs.PlannedOf(job, costs.Pricing{}, nil); p.Cost.Difference != nil {
		t.Errorf("a cost that is not known differs by %v", *p.Cost.Difference)
	}
	job.State = mapreduce.Mapping
	if p := costs.PlannedOf(job, costs.Pricing{}, &cost); p.Units.Difference != nil || p.Cost.Difference != nil {
		t.Errorf("a job that runs differs by %+v", p)
	}
	job.Plan = nil
	if p := costs.PlannedOf(job, costs.Pricing{}, &cost); p != nil {
		t.Errorf("a job without a plan gave %+v", p)
	}
}
