package plan_test

import (
	"errors"
	"math"
	"testing"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/internal/plan"
)

// fieldOf returns the field that err is about, or "".
func fieldOf(err error) string {
	if e, ok := errors.AsType[*errs.Error](err); ok && e.Kind == errs.Invalid {
		return e.Field
	}
	return ""
}

// B3 to B6, B8, B9, B11.
func TestConfigs(t *testing.T) {
	for _, test := range []struct {
		name   string
		config plan.Config
		field  string // that is wrong; empty if none
	}{
		{"B3: groups of 0", plan.Config{ChunkSize: new(int64(0))}, "chunk_size"},
		{"B3: groups of 1", plan.Config{ChunkSize: new(int64(1))}, "chunk_size"},
		{"B3: groups of 2", plan.Config{ChunkSize: new(int64(2))}, ""},
		{"B4: groups and a budget", plan.Config{ChunkSize: new(int64(3)), TargetTokenBudget: new(int64(100))}, "target_token_budget"},
		{"B4: groups and a window", plan.Config{ChunkSize: new(int64(3)), ContextWindow: new(int64(100))}, "context_window"},
		{"B4: a budget and a window", plan.Config{TargetTokenBudget: new(int64(3)), ContextWindow: new(int64(100))}, "context_window"},
		{"B4: all three", plan.Config{ChunkSize: new(int64(3)), TargetTokenBudget: new(int64(3)), ContextWindow: new(int64(100))}, "target_token_budget"},
		{"B5: nothing", plan.Config{}, ""},
		{"B6: a ratio of 0", plan.Config{ContextWindow: new(int64(100)), BudgetRatio: new(0.0)}, "budget_ratio"},
		{"B6: a ratio below 0", plan.Config{ContextWindow: new(int64(100)), BudgetRatio: new(-0.1)}, "budget_ratio"},
		{"B6: a ratio above 1", plan.Config{ContextWindow: new(int64(100)), BudgetRatio: new(1.1)}, "budget_ratio"},
		{"B6: a ratio that is no number", plan.Config{ContextWindow: new(int64(100)), BudgetRatio: new(math.NaN())}, "budget_ratio"},
		{"B6: a ratio of 1", plan.Config{ContextWindow: new(int64(100)), BudgetRatio: new(1.0)}, ""},
		{"B6: a ratio alone", plan.Config{BudgetRatio: new(0.5)}, "budget_ratio"},
		{"B6: a ratio beside a budget", plan.Config{TargetTokenBudget: new(int64(9)), BudgetRatio: new(0.5)}, "budget_ratio"},
		{"B7: half of 1", plan.Config{ContextWindow: new(int64(1)), BudgetRatio: new(0.5)}, "context_window"},
		{"B8: no levels", plan.Config{TargetTokenBudget: new(int64(9)), MaxReduceLevels: new(int64(0))}, "max_reduce_levels"},
		{"B8: fewer", plan.Config{TargetTokenBudget: new(int64(9)), MaxReduceLevels: new(int64(-1))}, "max_reduce_levels"},
		{"B8: levels of a static tree", plan.Config{Strategy: plan.Static, MaxReduceLevels: new(int64(3))}, "max_reduce_levels"},
		{"B9: no budget", plan.Config{TargetTokenBudget: new(int64(0))}, "target_token_budget"},
		{"B9: less", plan.Config{TargetTokenBudget: new(int64(-1))}, "target_token_budget"},
		{"B11: direct in a static tree", plan.Config{ChunkSize: new(int64(3)), Direct: true}, "direct"},
		{"B11: direct by default", plan.Config{Direct: true}, "direct"},
		{"B11: direct in an adaptive tree", plan.Config{TargetTokenBudget: new(int64(9)), Direct: true}, ""},
		{"an unknown strategy", plan.Config{Strategy: "clever"}, "strategy"},
		{"an unknown fallback", plan.Config{Fallback: "clever"}, "fallback"},
		{"adaptive to nothing", plan.Config{Strategy: plan.Adaptive}, "strategy"},
		{"levels, and nothing to adapt to", plan.Config{MaxReduceLevels: new(int64(3))}, "max_reduce_levels"},
		{"adaptive levels, and nothing to adapt to", plan.Config{Strategy: plan.Adaptive, MaxReduceLevels: new(int64(3))}, "strategy"},
		{"static with a budget", plan.Config{Strategy: plan.Static, TargetTokenBudget: new(int64(9))}, "target_token_budget"},
		{"static with a window", plan.Config{Strategy: plan.Static, ContextWindow: new(int64(9))}, "context_window"},
		{"adaptive in groups", plan.Config{Strategy: plan.Adaptive, ChunkSize: new(int64(9))}, "chunk_size"},
		{"batches in groups", plan.Config{Strategy: plan.Batches, ChunkSize: new(int64(9))}, "chunk_size"},
		{"static with a limit of batches", plan.Config{ChunkSize: new(int64(9)), ReduceContextLimit: new(int64(9))}, "reduce_context_limit"},
		{"adaptive in batches", plan.Config{TargetTokenBudget: new(int64(9)), ReduceBatchSize: new(int64(9))}, "reduce_batch_size"},
		{"batches of 1", plan.Config{ReduceBatchSize: new(int64(1))}, "reduce_batch_size"},
		{"no context", plan.Config{ReduceContextLimit: new(int64(0))}, "reduce_context_limit"},
		{"a prompt of less than nothing", plan.Config{PromptOverhead: -1}, "prompt_overhead"},
		{"an answer of less than nothing", plan.Config{ReservedOutput: -1}, "reserved_output"},
		{"a prompt that takes the budget", plan.Config{TargetTokenBudget: new(int64(100)), PromptOverhead: 60, ReservedOutput: 40}, "target_token_budget"},
		{"a prompt that overflows", plan.Config{TargetTokenBudget: new(int64(100)), PromptOverhead: math.MaxInt64, ReservedOutput: 40}, "target_token_budget"},
		{"a prompt that leaves a token", plan.Config{TargetTokenBudget: new(int64(100)), PromptOverhead: 60, ReservedOutput: 39}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := plan.New(test.config)
			if got := fieldOf(err); got != test.field || (err == nil) != (p != nil) || (err == nil) != (test.field == "") {
				t.Errorf("error %v about field %q, want one about %q", err, got, test.field)
			}
		})
	}
}

func newPlanner(t interface {
	Helper()
	Fatal(args ...any)
}, c plan.Config,
) *plan.Planner {
	t.Helper()
	p, err := plan.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// B5, B6, B7; and what is taken off.
func TestBudgets(t *testing.T) {
	for _, test := range []struct {
		name   string
		config plan.Config
		want   int64
	}{
		{"static has none", plan.Config{}, 0},
		{"the target", plan.Config{TargetTokenBudget: new(int64(8000))}, 8000},
		{"half by default", plan.Config{ContextWindow: new(int64(128_000))}, 64_000},
		{"half", plan.Config{ContextWindow: new(int64(128_000)), BudgetRatio: new(0.5)}, 64_000},
		{"two fifths", plan.Config{ContextWindow: new(int64(100_000)), BudgetRatio: new(0.4)}, 40_000},
		{"all", plan.Config{ContextWindow: new(int64(100_000)), BudgetRatio: new(1.0)}, 100_000},
		{"rounded down", plan.Config{ContextWindow: new(int64(3)), BudgetRatio: new(0.5)}, 1},
		{"decimal, not binary", plan.Config{ContextWindow: new(int64(100)), BudgetRatio: new(0.29)}, 29},
		{"batches", plan.Config{Fallback: plan.Batches}, 100_000},
		{"less the prompt and the answer", plan.Config{TargetTokenBudget: new(int64(8000)), PromptOverhead: 500, ReservedOutput: 1000}, 6500},
		{"less them, of a window", plan.Config{ContextWindow: new(int64(128_000)), PromptOverhead: 500, ReservedOutput: 1000}, 62_500},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := newPlanner(t, test.config).Budget(); got != test.want {
				t.Errorf("the budget is %d, want %d", got, test.want)
			}
		})
	}
}

func TestStrategies(t *testing.T) {
	for _, test := range []struct {
		name     string
		config   plan.Config
		strategy plan.Strategy
		mode     plan.Mode
		workflow string
	}{
		{"nothing is asked for", plan.Config{}, plan.Static, plan.ModeStatic, "MAP_REDUCE_STATIC"},
		{"the fallback", plan.Config{Fallback: plan.Batches}, plan.Batches, "", ""},
		{"a size beats the fallback", plan.Config{Fallback: plan.Batches, ChunkSize: new(int64(3))}, plan.Static, plan.ModeStatic, "MAP_REDUCE_STATIC"},
		{"a budget beats it too", plan.Config{Fallback: plan.Batches, TargetTokenBudget: new(int64(3))}, plan.Adaptive, plan.ModeAdaptive, "MAP_REDUCE_ADAPTIVE"},
		{"a batch size", plan.Config{ReduceBatchSize: new(int64(3))}, plan.Batches, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPlanner(t, test.config)
			if p.Strategy() != test.strategy || p.Mode() != test.mode || p.Mode().Workflow() != test.workflow {
				t.Errorf("%s, %q, %q", p.Strategy(), p.Mode(), p.Mode().Workflow())
			}
		})
	}
}

func TestItems(t *testing.T) {
	for _, test := range []struct {
		name          string
		tokens        int64
		most, overlap int64
		want          int
		first         string
	}{
		{"A2: exactly a unit", 50_000, 50_000, 500, 1, "d"},
		{"A2: one more", 50_001, 50_000, 500, 2, "d_chunk_0"},
		{"nothing", 0, 50_000, 500, 1, "d"},
		{"many", 99_500, 50_000, 500, 2, "d_chunk_0"},
		{"one more of these", 99_501, 50_000, 500, 3, "d_chunk_0"},
		{"an overlap as large as a unit", 10, 4, 9, 7, "d_chunk_0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			items, err := plan.Items("d", test.tokens, false, test.most, test.overlap)
			if err != nil {
				t.Fatal(err)
			}
			sum := int64(0)
			for _, it := range items {
				sum += it.Tokens
				if it.Tokens > test.most || it.Expected != (test.want > 1) || it.Guessed {
					t.Errorf("item %+v", it)
				}
			}
			if len(items) != test.want || string(items[0].Unit) != test.first || sum < test.tokens {
				t.Errorf("%d items of %d tokens, the first %s; want %d and %s", len(items), sum, items[0].Unit, test.want, test.first)
			}
		})
	}
	if _, err := plan.Items("d", math.MaxInt64, false, 16, 0); fieldOf(err) != "documents" {
		t.Errorf("a document that claims to have all tokens there are gave %v", err)
	}
}

// What is kept free for an answer is no more than it may have, nor than a quarter
// of the budget.
func TestReserve(t *testing.T) {
	for _, tt := range []struct {
		name               string
		budget, most, want int64
	}{
		{"all of an answer", 100_000, 8192, 8192},
		{"a quarter of the budget", 10_000, 8192, 2500},
		{"as much as a quarter", 32_768, 8192, 8192},
		{"no budget", 0, 8192, 0},
		{"next to none", 3, 8192, 0},
		{"no answer", 1000, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := plan.Reserve(tt.budget, tt.most); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}
