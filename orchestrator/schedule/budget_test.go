package schedule_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
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

// What was spent before a pause is not there again after it.
func TestBudgetPausesAgain(t *testing.T) {
	_, n := enginetest.One(t, &scripted.Agent{})
	spec := enginetest.Script(map[string]string{"script.tokens_in": "800", "script.tokens_out": "200"})
	spec.Budget, spec.ReduceShare = 100_000, 0.1
	id := n.Submit(spec, 200)
	n.WantEnd(id, mapreduce.JobPaused)
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{Budget: 150_000}); err != nil {
		t.Fatal(err)
	}
	if spent := n.WantEnd(id, mapreduce.JobPaused).TotalTokens.Total(); spent > 135_000 || spent < 100_000 {
		t.Errorf("paused after %d tokens; the map may spend 135000", spent)
	}
}

func TestBudgetThatIsLoweredHolds(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	c.Worker(&scripted.Agent{}, worker.Config{Slots: 2}, n)
	spec := enginetest.Script(map[string]string{"script.tokens_in": "1000", "script.latency": "5ms"})
	spec.Budget = 1_000_000
	id := n.Submit(spec, 200)
	n.Until(id, func(j *mapreduce.Job) bool { return j.CompletedUnits > 5 })
	if _, err := n.PauseJob(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{Budget: 50_000}); err != nil {
		t.Fatal(err)
	}
	if spent := n.WantEnd(id, mapreduce.JobPaused).TotalTokens.Total(); spent > 40_000 {
		t.Errorf("paused after %d tokens; the map may spend 40000", spent)
	}
}

// A steadyCalls agent makes calls that take what they reserve.
type steadyCalls struct {
	calls int
	each  int64 // tokens
}

func (a steadyCalls) Run(ctx context.Context, _ *agent.Task, calls agent.Calls) (*agent.Result, error) {
	for range a.calls {
		if err := calls.Reserve(ctx, a.each, 0); err != nil {
			return nil, err
		}
		calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: a.each}})
	}
	return &agent.Result{Size: 1}, nil
}

func TestReservationsStayWithinTheBudget(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	c.Worker(steadyCalls{20, 1000}, worker.Config{Slots: 4}, n)
	spec := enginetest.Script(nil)
	spec.Budget, spec.ReduceShare = 200_000, 0.1
	id := n.Submit(spec, 30)
	for range 3 {
		if spent := n.WantEnd(id, mapreduce.JobPaused).TotalTokens.Total(); spent > 180_000 {
			t.Fatalf("paused after %d tokens; the map may spend 180000", spent)
		}
		if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil {
			t.Fatal(err)
		}
	}
}

// A greedyAgent reserves more for a map unit's call than the unit's claim did.
type greedyAgent struct {
	most int64 // tokens of the call
	runs atomic.Int64
}

func (a *greedyAgent) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	if task.Kind != mapreduce.KindMap {
		return &agent.Result{Size: 1}, nil
	}
	if a.runs.Add(1) > 1000 {
		return nil, agent.PermanentJob(errors.New("units are claimed and handed back without end"))
	}
	if err := calls.Reserve(ctx, a.most, 0); err != nil {
		return nil, err
	}
	select { // the call takes its time, while the other unit asks
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: 10}})
	return &agent.Result{Size: 1}, ctx.Err()
}

// Two units whose claims set too little aside for a call take turns, where the budget
// suffices for one such call at a time: they are not claimed together again and again.
func TestUnitsThatNeedMoreThanTheirClaimTakeTurns(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true, Estimate: func(*mapreduce.JobSpec, int64) int64 { return 1000 }}))
		greedy := &greedyAgent{most: 30_000}
		c.Worker(greedy, worker.Config{Slots: 2}, n)
		spec := enginetest.Script(nil)
		spec.Budget, spec.ReduceShare = 61_000, 0.5
		n.WantEnd(n.Submit(spec, 2), mapreduce.JobComplete)
		if runs := greedy.runs.Load(); runs > 6 {
			t.Errorf("two units ran %d times, want at most 6", runs)
		}
	})
}

// Two units reserve at once what is there for one of them. The store is slow with the
// first, of which the second then sees nothing there.
func TestReservationsAtOnceStayWithinTheBudget(t *testing.T) {
	testenv.Raced(t)

	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		begun, stored := make(chan struct{}), make(chan struct{})
		var reservations atomic.Int64
		c.Hook = func(p failpoint.Point) {
			if p == failpoint.Reserve.Before() && reservations.Add(1) == 1 {
				close(begun)
				<-stored
			}
		}
		n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
		first, second := enginetest.Greet(t, n, "first", 1), enginetest.Greet(t, n, "second", 1)
		spec := enginetest.Script(nil)
		spec.Budget = 100_000
		n.Submit(spec, 5)
		a, b := first.Assigned(), second.Assigned()
		first.Ask(a, 60_000)
		<-begun
		second.Ask(b, 40_000)
		enginetest.Pass(t, time.Second) // for all that can be done meanwhile
		close(stored)
		if !first.Reserved() || second.Reserved() {
			t.Error("want 60000 of the 80000 tokens that the map may spend, and not 40000 besides")
		}
		if !second.Reserve(b, 15_000) {
			t.Error("what is left cannot be reserved")
		}
	})
}

// A job that is paused does not stand on the scheduler of a node that comes later.
func TestReservationsOfAPausedJobOnAnotherNode(t *testing.T) {
	enginetest.Virtually(t, reservedElsewhere)
}

func reservedElsewhere(t *testing.T) {
	c := enginetest.NewCluster(t)
	a := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	w := enginetest.Greet(t, a, "worker", 1)
	spec := enginetest.Script(nil)
	spec.Budget = 30_000
	id := a.Submit(spec, 5)
	held := w.Assigned()
	if _, err := a.PauseJob(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	a.Stop()
	b := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	w = enginetest.Greet(t, b, "worker", 1, held)
	for _, tokens := range []int64{1_000_000, 24_001} {
		if w.Reserve(held, tokens) {
			t.Errorf("%d tokens were reserved; the map may spend 24000", tokens)
		}
	}
	for tries := 0; !w.Reserve(held, 23_000); tries++ { // once the first node is given up
		if tries == 100 {
			t.Fatal("23000 of 24000 tokens cannot be reserved")
		}
		enginetest.Pass(t, 100*time.Millisecond)
	}
	if w.Reserve(held, 24_001) {
		t.Error("24001 tokens were reserved; the map may spend 24000")
	}
}
