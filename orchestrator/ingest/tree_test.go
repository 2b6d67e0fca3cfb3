package ingest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// The tests of this file are the acceptance vectors of docs/requirements.md,
// section S2, as far as they concern what a job may ask for.

func strategy(of mapreduce.Strategy) func(*mapreduce.JobSpec) {
	return func(s *mapreduce.JobSpec) { s.Strategy = of }
}

// TestWrongTreesAreRefused covers B3, B4, B6, B7, B8 and B9: whatever goes not
// together is refused, naming the field and the rule, and nothing is stored.
func TestWrongTreesAreRefused(t *testing.T) {
	const adaptive, fixed = mapreduce.StrategyAdaptive, mapreduce.StrategyStatic
	c, n := enginetest.One(t, &scripted.Agent{})
	before := enginetest.Pairs(t, c.Store)
	for _, tt := range []struct {
		name        string
		ask         enginetest.Ask
		field, rule string
	}{
		{"B3 groups of none", enginetest.Ask{enginetest.Static(0)}, "chunk_size", "at least 2"},
		{"B3 groups of one", enginetest.Ask{enginetest.Static(1)}, "chunk_size", "at least 2"},
		{"B3 groups of less than none", enginetest.Ask{enginetest.Static(-5)}, "chunk_size", "at least 2"},
		{"B4 group and budget", enginetest.Ask{enginetest.Static(5), enginetest.Budget(100)}, "target_token_budget", "together with chunk_size"},
		{"B4 group and window", enginetest.Ask{enginetest.Static(5), enginetest.Window(100)}, "context_window", "together with chunk_size"},
		{"B4 budget and window", enginetest.Ask{enginetest.Budget(5), enginetest.Window(100)}, "context_window", "together with target_token_budget"},
		{"B4 all three", enginetest.Ask{enginetest.Static(5), enginetest.Budget(5), enginetest.Window(100)}, "target_token_budget", "together with chunk_size"},
		{"B6 ratio of none", enginetest.Ask{enginetest.Window(100), enginetest.Ratio(0)}, "budget_ratio", "above 0"},
		{"B6 negative ratio", enginetest.Ask{enginetest.Window(100), enginetest.Ratio(-0.5)}, "budget_ratio", "above 0"},
		{"B6 ratio above 1", enginetest.Ask{enginetest.Window(100), enginetest.Ratio(1.01)}, "budget_ratio", "at most 1"},
		{"B6 ratio alone", enginetest.Ask{enginetest.Ratio(0.5)}, "budget_ratio", "needs context_window"},
		{"B6 ratio and budget", enginetest.Ask{enginetest.Budget(100), enginetest.Ratio(0.5)}, "budget_ratio", "needs context_window"},
		{"B7 nothing left of the window", enginetest.Ask{enginetest.Window(1), enginetest.Ratio(0.5)}, "context_window", "budget of 0 tokens"},
		{"B8 no levels", enginetest.Ask{enginetest.Budget(100), enginetest.Levels(0)}, "max_reduce_levels", "at least 1"},
		{"B8 less than no levels", enginetest.Ask{enginetest.Budget(100), enginetest.Levels(-1)}, "max_reduce_levels", "at least 1"},
		{"B9 budget of none", enginetest.Ask{enginetest.Budget(0)}, "target_token_budget", "at least 1"},
		{"B9 negative budget", enginetest.Ask{enginetest.Budget(-1)}, "target_token_budget", "at least 1"},
		{"window of none", enginetest.Ask{enginetest.Window(0)}, "context_window", "at least 1"},
		{"adaptive without a budget", enginetest.Ask{strategy(adaptive)}, "strategy", "needs target_token_budget"},
		{"adaptive with groups", enginetest.Ask{strategy(adaptive), enginetest.Static(5)}, "chunk_size", "for the static strategy"},
		{"adaptive with batches", enginetest.Ask{strategy(adaptive), enginetest.Budget(100), enginetest.Batches(0, 4)}, "reduce_batch_size", "for the batches strategy"},
		{"budget with a limit", enginetest.Ask{enginetest.Budget(100), enginetest.Batches(1000, 0)}, "reduce_context_limit", "for the batches strategy"},
		{"static with a budget", enginetest.Ask{strategy(fixed), enginetest.Budget(100)}, "target_token_budget", "for the adaptive strategy"},
		{"static with a window", enginetest.Ask{strategy(fixed), enginetest.Window(100)}, "context_window", "for the adaptive strategy"},
		{"static with levels", enginetest.Ask{strategy(fixed), enginetest.Levels(3)}, "max_reduce_levels", "for the adaptive strategy"},
		{"static with batches", enginetest.Ask{strategy(fixed), enginetest.Batches(0, 4)}, "reduce_batch_size", "for the batches strategy"},
		{"groups with batches", enginetest.Ask{enginetest.Static(5), enginetest.Batches(0, 4)}, "reduce_batch_size", "for the batches strategy"},
		{"batches of one", enginetest.Ask{enginetest.Batches(0, 1)}, "reduce_batch_size", "at least 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := n.SubmitJob(t.Context(), enginetest.Asking(tt.ask...), enginetest.Documents(3))
			var e *errs.Error
			if !errors.As(err, &e) || e.Kind != errs.Invalid {
				t.Fatalf("got %v, want it refused", err)
			}
			if e.Field != tt.field || !strings.Contains(e.Message, tt.rule) {
				t.Errorf("got field %q and rule %q, want %q and %q", e.Field, e.Message, tt.field, tt.rule)
			}
		})
	}
	if diff := cmp.Diff(before, enginetest.Pairs(t, c.Store)); diff != "" {
		t.Errorf("something was stored (-before +after):\n%s", diff)
	}
}

// TestTreesAreFilledIn: the job's record says what its tree will be, with every
// default.
func TestTreesAreFilledIn(t *testing.T) {
	const adaptive, fixed = mapreduce.StrategyAdaptive, mapreduce.StrategyStatic
	_, n := enginetest.One(t, &scripted.Agent{})
	for _, tt := range []struct {
		name      string
		ask, want enginetest.Ask
	}{
		{"nothing", nil, enginetest.Ask{enginetest.Batches(100_000, 10)}},
		{"a limit", enginetest.Ask{enginetest.Batches(7, 0)}, enginetest.Ask{enginetest.Batches(7, 10)}},
		{"a batch", enginetest.Ask{enginetest.Batches(0, 7)}, enginetest.Ask{enginetest.Batches(100_000, 7)}},
		{"B3 groups of two", enginetest.Ask{enginetest.Static(2)}, enginetest.Ask{strategy(fixed), enginetest.Static(2)}},
		{"B5 static", enginetest.Ask{strategy(fixed)}, enginetest.Ask{strategy(fixed), enginetest.Static(5)}},
		{"B8 a budget", enginetest.Ask{enginetest.Budget(4000)}, enginetest.Ask{strategy(adaptive), enginetest.Budget(4000), enginetest.Levels(10)}},
		{"B6 a window", enginetest.Ask{enginetest.Window(128_000)}, enginetest.Ask{strategy(adaptive), enginetest.Window(128_000), enginetest.Ratio(0.5), enginetest.Levels(10)}},
		{"B6 all of a window", enginetest.Ask{enginetest.Window(100), enginetest.Ratio(1), enginetest.Levels(3)}, enginetest.Ask{strategy(adaptive), enginetest.Window(100), enginetest.Ratio(1), enginetest.Levels(3)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			job, err := n.GetJob(t.Context(), n.Submit(enginetest.Asking(tt.ask...), 1))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(treeIn(enginetest.Asking(tt.want...)), treeIn(job.Spec)); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
		})
	}
}

// treeIn returns what a spec says of the tree, and nothing else.
func treeIn(s mapreduce.JobSpec) mapreduce.JobSpec {
	return mapreduce.JobSpec{
		Strategy: s.Strategy, ChunkSize: s.ChunkSize, TargetTokenBudget: s.TargetTokenBudget, ContextWindow: s.ContextWindow,
		BudgetRatio: s.BudgetRatio, MaxReduceLevels: s.MaxReduceLevels,
		ReduceContextLimit: s.ReduceContextLimit, ReduceBatchSize: s.ReduceBatchSize,
	}
}
