package orchestrator_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// The tests of this file are the acceptance vectors of docs/requirements.md,
// section S2, as far as they concern what a job may ask for.

func static(k int64) func(*mapreduce.JobSpec) {
	return func(s *mapreduce.JobSpec) { s.ChunkSize = &k }
}

func budget(n int64) func(*mapreduce.JobSpec) {
	return func(s *mapreduce.JobSpec) { s.TargetTokenBudget = &n }
}

func window(n int64) func(*mapreduce.JobSpec) {
	return func(s *mapreduce.JobSpec) { s.ContextWindow = &n }
}

func ratio(x float64) func(*mapreduce.JobSpec) {
	return func(s *mapreduce.JobSpec) { s.BudgetRatio = &x }
}

func levels(n int64) func(*mapreduce.JobSpec) {
	return func(s *mapreduce.JobSpec) { s.MaxReduceLevels = &n }
}

func strategy(of mapreduce.Strategy) func(*mapreduce.JobSpec) {
	return func(s *mapreduce.JobSpec) { s.Strategy = of }
}

func batches(limit, size int) func(*mapreduce.JobSpec) {
	return func(s *mapreduce.JobSpec) { s.ReduceContextLimit, s.ReduceBatchSize = limit, size }
}

type ask = []func(*mapreduce.JobSpec)

func asking(ask ...func(*mapreduce.JobSpec)) mapreduce.JobSpec {
	spec := script(nil)
	for _, a := range ask {
		a(&spec)
	}
	return spec
}

// TestWrongTreesAreRefused covers B3, B4, B6, B7, B8 and B9: whatever goes not
// together is refused, naming the field and the rule, and nothing is stored.
func TestWrongTreesAreRefused(t *testing.T) {
	const adaptive, fixed = mapreduce.StrategyAdaptive, mapreduce.StrategyStatic
	c, n := one(t, &scripted.Agent{})
	before := pairs(t, c.store)
	for _, tt := range []struct {
		name        string
		ask         ask
		field, rule string
	}{
		{"B3 groups of none", ask{static(0)}, "chunk_size", "at least 2"},
		{"B3 groups of one", ask{static(1)}, "chunk_size", "at least 2"},
		{"B3 groups of less than none", ask{static(-5)}, "chunk_size", "at least 2"},
		{"B4 group and budget", ask{static(5), budget(100)}, "target_token_budget", "together with chunk_size"},
		{"B4 group and window", ask{static(5), window(100)}, "context_window", "together with chunk_size"},
		{"B4 budget and window", ask{budget(5), window(100)}, "context_window", "together with target_token_budget"},
		{"B4 all three", ask{static(5), budget(5), window(100)}, "target_token_budget", "together with chunk_size"},
		{"B6 ratio of none", ask{window(100), ratio(0)}, "budget_ratio", "above 0"},
		{"B6 negative ratio", ask{window(100), ratio(-0.5)}, "budget_ratio", "above 0"},
		{"B6 ratio above 1", ask{window(100), ratio(1.01)}, "budget_ratio", "at most 1"},
		{"B6 ratio alone", ask{ratio(0.5)}, "budget_ratio", "needs context_window"},
		{"B6 ratio and budget", ask{budget(100), ratio(0.5)}, "budget_ratio", "needs context_window"},
		{"B7 nothing left of the window", ask{window(1), ratio(0.5)}, "context_window", "budget of 0 tokens"},
		{"B8 no levels", ask{budget(100), levels(0)}, "max_reduce_levels", "at least 1"},
		{"B8 less than no levels", ask{budget(100), levels(-1)}, "max_reduce_levels", "at least 1"},
		{"B9 budget of none", ask{budget(0)}, "target_token_budget", "at least 1"},
		{"B9 negative budget", ask{budget(-1)}, "target_token_budget", "at least 1"},
		{"window of none", ask{window(0)}, "context_window", "at least 1"},
		{"adaptive without a budget", ask{strategy(adaptive)}, "strategy", "needs target_token_budget"},
		{"adaptive with groups", ask{strategy(adaptive), static(5)}, "chunk_size", "for the static strategy"},
		{"adaptive with batches", ask{strategy(adaptive), budget(100), batches(0, 4)}, "reduce_batch_size", "for the batches strategy"},
		{"budget with a limit", ask{budget(100), batches(1000, 0)}, "reduce_context_limit", "for the batches strategy"},
		{"static with a budget", ask{strategy(fixed), budget(100)}, "target_token_budget", "for the adaptive strategy"},
		{"static with a window", ask{strategy(fixed), window(100)}, "context_window", "for the adaptive strategy"},
		{"static with levels", ask{strategy(fixed), levels(3)}, "max_reduce_levels", "for the adaptive strategy"},
		{"static with batches", ask{strategy(fixed), batches(0, 4)}, "reduce_batch_size", "for the batches strategy"},
		{"groups with batches", ask{static(5), batches(0, 4)}, "reduce_batch_size", "for the batches strategy"},
		{"batches of one", ask{batches(0, 1)}, "reduce_batch_size", "at least 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := n.SubmitJob(t.Context(), asking(tt.ask...), documents(3))
			var e *errs.Error
			if !errors.As(err, &e) || e.Kind != errs.Invalid {
				t.Fatalf("got %v, want it refused", err)
			}
			if e.Field != tt.field || !strings.Contains(e.Message, tt.rule) {
				t.Errorf("got field %q and rule %q, want %q and %q", e.Field, e.Message, tt.field, tt.rule)
			}
		})
	}
	if diff := cmp.Diff(before, pairs(t, c.store)); diff != "" {
		t.Errorf("something was stored (-before +after):\n%s", diff)
	}
}

// pairs returns the keys of all records that only a submission makes.
func pairs(t *testing.T, s store.Store) []string {
	t.Helper()
	var found []string
	err := store.NewDB(s, store.Config{}).View(t.Context(), func(tx store.Tx) error {
		found = nil
		for _, r := range []store.Range{keys.New().Jobs(), keys.New().Ingests(), keys.New().RecentJobs()} {
			kvs, _, err := tx.GetRange(t.Context(), r, store.RangeOptions{})
			if err != nil {
				return err
			}
			for _, kv := range kvs {
				found = append(found, string(kv.Key))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestTreesAreFilledIn: the job's record says what its tree will be, with every
// default.
func TestTreesAreFilledIn(t *testing.T) {
	const adaptive, fixed = mapreduce.StrategyAdaptive, mapreduce.StrategyStatic
	_, n := one(t, &scripted.Agent{})
	for _, tt := range []struct {
		name      string
		ask, want ask
	}{
		{"nothing", nil, ask{batches(100_000, 10)}},
		{"a limit", ask{batches(7, 0)}, ask{batches(7, 10)}},
		{"a batch", ask{batches(0, 7)}, ask{batches(100_000, 7)}},
		{"B3 groups of two", ask{static(2)}, ask{strategy(fixed), static(2)}},
		{"B5 static", ask{strategy(fixed)}, ask{strategy(fixed), static(5)}},
		{"B8 a budget", ask{budget(4000)}, ask{strategy(adaptive), budget(4000), levels(10)}},
		{"B6 a window", ask{window(128_000)}, ask{strategy(adaptive), window(128_000), ratio(0.5), levels(10)}},
		{"B6 all of a window", ask{window(100), ratio(1), levels(3)}, ask{strategy(adaptive), window(100), ratio(1), levels(3)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			job, err := n.GetJob(t.Context(), n.submit(asking(tt.ask...), 1))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(treeIn(asking(tt.want...)), treeIn(job.Spec)); diff != "" {
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
