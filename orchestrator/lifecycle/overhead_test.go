package lifecycle_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/checked"
)

// taking returns an overhead that is the same for all jobs.
func taking(prompt, answer int64) func(*mapreduce.JobSpec) (int64, int64) {
	return func(*mapreduce.JobSpec) (int64, int64) { return prompt, answer }
}

func taken(prompt, reserved int64) func(*mapreduce.JobSpec) {
	return func(s *mapreduce.JobSpec) { s.PromptOverhead, s.ReservedOutput = &prompt, &reserved }
}

// takenIn returns what a spec says is taken off the budget.
func takenIn(s mapreduce.JobSpec) string {
	say := func(n *int64) string {
		if n == nil {
			return "open"
		}
		return fmt.Sprint(*n)
	}
	return say(s.PromptOverhead) + ", " + say(s.ReservedOutput)
}

// B16 with prompts and answers: whatever a reduce reads leaves room in the budget
// for both, and workers are told the same budget.
func TestBudgetsLeaveRoomForPromptAndAnswer(t *testing.T) {
	for _, tt := range []struct {
		name           string
		prompt, answer int64
		ask            enginetest.Ask
		taken, shape   string
		budget         int64
	}{
		{"nothing is taken", 0, 0, enginetest.Ask{enginetest.Budget(1000)}, "open, open", "16 4 F", 1000},
		{"a prompt and an answer", 150, 50, enginetest.Ask{enginetest.Budget(1000)}, "150, 50", "16 6 2 F", 800},
		{"of an answer no more than a quarter is kept", 50, 8192, enginetest.Ask{enginetest.Budget(1000)}, "50, 250", "16 8 4 2 F", 700},
		{"of a window", 100, 8192, enginetest.Ask{enginetest.Window(2000)}, "100, 250", "16 8 4 2 F", 650},
		{"of the limit of batches", 100, 8192, enginetest.Ask{enginetest.Batches(4000, 4)}, "100, 1000", "16 4 F", 2900},
		{"what the job says stands", 150, 8192, enginetest.Ask{enginetest.Budget(1000), taken(0, 0)}, "0, 0", "16 4 F", 1000},
		{"what the job says of one", 150, 8192, enginetest.Ask{enginetest.Budget(1000), func(s *mapreduce.JobSpec) { s.ReservedOutput = new(int64(50)) }}, "150, 50", "16 6 2 F", 800},
		{"groups have no budget", 100, 100, enginetest.Ask{enginetest.Static(4)}, "open, open", "16 4 F", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var told atomic.Int64
			c := enginetest.NewCluster(t)
			n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true, Overhead: taking(tt.prompt, tt.answer)}))
			c.Worker(enginetest.Collector{Size: func(task *agent.Task, _ []string) int64 {
				p, err := plan.New(plan.ConfigOf(task.Spec))
				if err != nil {
					t.Error(err)
					return 1
				}
				told.Store(p.Budget())
				return 250 - int64(task.Level)
			}}, worker.Config{Slots: 4, Prefetch: 4}, n)
			id := n.Submit(enginetest.Asking(tt.ask...), 16)
			job := n.WantEnd(id, mapreduce.JobComplete)
			if got := takenIn(job.Spec); got != tt.taken {
				t.Errorf("taken off are %s, want %s", got, tt.taken)
			}
			if got := told.Load(); got != tt.budget {
				t.Errorf("workers have a budget of %d, want %d", got, tt.budget)
			}
			all := n.Units(id)
			if got := enginetest.ShapeOf(t, all); got != tt.shape {
				t.Errorf("levels are %s, want %s", got, tt.shape)
			}
			if job.Spec.Strategy != mapreduce.StrategyAdaptive {
				return
			}
			for _, u := range all {
				if read := int64(len(u.DependsOn)) * (251 - int64(u.Level)); u.Level > 0 && read > tt.budget {
					t.Errorf("unit %s reads %d tokens, and %d are left of the budget", u.ID, read, tt.budget)
				}
			}
		})
	}
}

// B17 with prompts and answers: a unit takes all documents only if they leave room
// for both, and the plan says so before.
func TestDirectLeavesRoomForPromptAndAnswer(t *testing.T) {
	docs, order := ordersOf(9, false)
	all := size(docs)
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{
		Adopt: true, Count: func(s string) int { return len(s) }, Overhead: taking(30, 20),
	}))
	c.WorkerFor("rules", checked.New(enginetest.ByRules()), worker.Config{Slots: 4, Prefetch: 4}, n)
	for _, tt := range []struct {
		name   string
		ask    enginetest.Ask
		direct bool
	}{
		{"fits beside both", enginetest.Ask{enginetest.Budget(all + 50)}, true},
		{"one too many", enginetest.Ask{enginetest.Budget(all + 49)}, false},
		{"fits beside nothing", enginetest.Ask{enginetest.Budget(all), taken(0, 0)}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := enginetest.Extracting(t, enginetest.Orders+"x-coditect: {key: [order]}\n")
			for _, a := range append(tt.ask, enginetest.Piped(withHeadChef(kitchen))) {
				a(&spec)
			}
			planned, err := n.PlanJob(t.Context(), mapreduce.PlanQuery{Spec: spec}, enginetest.Texts(docs, order...))
			if err != nil {
				t.Fatal(err)
			}
			id, _ := n.Run(spec, enginetest.Texts(docs, order...))
			ran := n.Tasks(id)
			if direct := len(ran) == 1; direct != tt.direct || direct != (len(planned.Tasks) == 1) {
				t.Errorf("%d units ran, %d were planned; direct: want %t", len(ran), len(planned.Tasks), tt.direct)
			}
		})
	}
}

// A budget that leaves nothing to read is refused before anything is stored, and
// planned as little.
func TestBudgetsThatLeaveNothingAreRefused(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true, Overhead: taking(750, 8192)}))
	before := enginetest.Pairs(t, c.Store)
	for _, tt := range []struct {
		name        string
		ask         enginetest.Ask
		field, rule string
	}{
		{"B7 a budget", enginetest.Ask{enginetest.Budget(1000)}, "target_token_budget", "1000 tokens leaves nothing to read beside 750 of the prompt and 250 of the answer"},
		{"B7 a window", enginetest.Ask{enginetest.Window(1000)}, "context_window", "500 tokens leaves nothing to read beside 750 of the prompt and 125 of the answer"},
		{"B7 a limit", enginetest.Ask{enginetest.Batches(1000, 10)}, "reduce_context_limit", "1000 tokens leaves nothing"},
		{"what the job says", enginetest.Ask{enginetest.Budget(5000), taken(2500, 2500)}, "target_token_budget", "5000 tokens leaves nothing"},
		{"a prompt of less than nothing", enginetest.Ask{taken(-1, 0)}, "prompt_overhead", "must not be negative"},
		{"an answer of less than nothing", enginetest.Ask{taken(0, -1)}, "reserved_output", "must not be negative"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, submitted := n.SubmitJob(t.Context(), enginetest.Asking(tt.ask...), enginetest.Documents(3))
			_, planned := n.PlanJob(t.Context(), mapreduce.PlanQuery{Spec: enginetest.Asking(tt.ask...)}, enginetest.Documents(3))
			var e *errs.Error
			if !errors.As(submitted, &e) || e.Field != tt.field || !strings.Contains(e.Message, tt.rule) {
				t.Errorf("got %v, want field %q and rule %q", submitted, tt.field, tt.rule)
			}
			if fmt.Sprint(planned) != fmt.Sprint(submitted) {
				t.Errorf("a submission gave %v, a plan %v", submitted, planned)
			}
		})
	}
	if diff := cmp.Diff(before, enginetest.Pairs(t, c.Store)); diff != "" {
		t.Errorf("something was stored (-before +after):\n%s", diff)
	}
}

// A job that is submitted again, or repeated, keeps the tree that it had, also at
// a node whose prompts have grown since.
func TestTreesOutliveTheirPrompts(t *testing.T) {
	c := enginetest.NewCluster(t)
	old := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	grown := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true, Overhead: taking(150, 50)}))
	c.Worker(enginetest.Collector{Size: func(*agent.Task, []string) int64 { return 250 }}, worker.Config{Slots: 4, Prefetch: 4}, old)
	spec := enginetest.Asking(enginetest.Budget(1000), func(s *mapreduce.JobSpec) { s.RequestID, s.Capture = "again", mapreduce.CaptureFull })
	first := old.WantEnd(old.Submit(spec, 16), mapreduce.JobComplete)
	if again := grown.Submit(spec, 16); again != first.ID {
		t.Errorf("submitted again it is %s, not %s", again, first.ID)
	}
	repeat, err := grown.SubmitJob(t.Context(), mapreduce.JobSpec{Tenant: first.Spec.Tenant, Replay: first.ID}, enginetest.Documents(0))
	if err != nil {
		t.Fatal(err)
	}
	if got := takenIn(repeat.Spec); got != "open, open" {
		t.Errorf("of its repetition are taken %s, and of the job nothing was", got)
	}
	other := spec
	other.RequestID = ""
	fresh, err := grown.GetJob(t.Context(), grown.Submit(other, 16))
	if err != nil {
		t.Fatal(err)
	}
	if got := takenIn(fresh.Spec); got != "150, 50" {
		t.Errorf("of a job that is new are taken %s", got)
	}
}
