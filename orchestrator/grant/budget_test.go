package grant_test

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

func TestBudgetPausesAndIsNeverOverspent(t *testing.T) {
	_, n := enginetest.One(t, &scripted.Agent{})
	spec := enginetest.Script(map[string]string{"script.tokens_in": "800", "script.tokens_out": "200"})
	spec.Budget = 100_000
	spec.ReduceShare = 0.1
	id := n.Submit(spec, 200)
	job := n.WantEnd(id, mapreduce.JobPaused)
	if spent := job.TotalTokens.Total(); spent > 90_000 || spent < 50_000 {
		t.Errorf("paused after %d tokens; the map may spend 90000 of %d", spent, spec.Budget)
	}
	if !strings.Contains(job.Error, "budget") {
		t.Errorf("error %q does not name the budget", job.Error)
	}
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{Budget: 400_000}); err != nil {
		t.Fatal(err)
	}
	job = n.WantEnd(id, mapreduce.JobComplete)
	if spent := job.TotalTokens.Total(); spent != 201_000 {
		t.Errorf("spent %d tokens, want 201000: none twice", spent)
	}
}

// A budget in dollars is that of tokens, by what calls cost; and it stays in dollars.
func TestBudgetInDollarsPausesAndIsNeverOverspent(t *testing.T) {
	_, n := enginetest.One(t, &scripted.Agent{})
	spec := enginetest.Script(map[string]string{"script.tokens_in": "800", "script.tokens_out": "200", "script.cost": "700"})
	spec.Budget, spec.BudgetIn, spec.ReduceShare = 70_000, mapreduce.InDollars, 0.1
	id := n.Submit(spec, 200)

	job := n.WantEnd(id, mapreduce.JobPaused)
	if job.CostMicros > 63_000 || job.CostMicros < 50_000 {
		t.Errorf("paused after %s; the map may spend $0.063", mapreduce.DollarText(job.CostMicros))
	}
	if !strings.Contains(job.Error, "of the budget of $0.07 ") || !strings.Contains(job.Error, "--max-cost N") {
		t.Errorf("error %q does not say what is left of the budget, and how to raise it", job.Error)
	}

	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{Budget: 1_000_000}); errs.KindOf(err) != errs.Precondition {
		t.Errorf("a budget in tokens: %v, want it refused", err)
	}
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{Budget: 1_000_000, BudgetIn: mapreduce.InDollars}); err != nil {
		t.Fatal(err)
	}
	if job = n.WantEnd(id, mapreduce.JobComplete); job.CostMicros != 201*700 {
		t.Errorf("%s are paid, want $0.1407: nothing twice", mapreduce.DollarText(job.CostMicros))
	}
}
