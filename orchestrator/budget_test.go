package orchestrator_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// What was spent before a pause is not there again after it.
func TestBudgetPausesAgain(t *testing.T) {
	_, n := one(t, &scripted.Agent{})
	spec := script(map[string]string{"script.tokens_in": "800", "script.tokens_out": "200"})
	spec.Budget, spec.ReduceShare = 100_000, 0.1
	id := n.submit(spec, 200)
	n.wantEnd(id, mapreduce.JobPaused)
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{Budget: 150_000}); err != nil {
		t.Fatal(err)
	}
	if spent := n.wantEnd(id, mapreduce.JobPaused).TotalTokens.Total(); spent > 135_000 || spent < 100_000 {
		t.Errorf("paused after %d tokens; the map may spend 135000", spent)
	}
}

func TestBudgetThatIsLoweredHolds(t *testing.T) {
	c := newCluster(t)
	n := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
	c.worker(&scripted.Agent{}, worker.Config{Slots: 2}, n)
	spec := script(map[string]string{"script.tokens_in": "1000", "script.latency": "5ms"})
	spec.Budget = 1_000_000
	id := n.submit(spec, 200)
	n.until(id, func(j *mapreduce.Job) bool { return j.CompletedUnits > 5 })
	if _, err := n.PauseJob(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{Budget: 50_000}); err != nil {
		t.Fatal(err)
	}
	if spent := n.wantEnd(id, mapreduce.JobPaused).TotalTokens.Total(); spent > 40_000 {
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
		if err := calls.Reserve(ctx, a.each); err != nil {
			return nil, err
		}
		calls.Spent(a.each, 0, 0)
	}
	return &agent.Result{Size: 1}, nil
}

func TestReservationsStayWithinTheBudget(t *testing.T) {
	c := newCluster(t)
	n := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
	c.worker(steadyCalls{20, 1000}, worker.Config{Slots: 4}, n)
	spec := script(nil)
	spec.Budget, spec.ReduceShare = 200_000, 0.1
	id := n.submit(spec, 30)
	for range 3 {
		if spent := n.wantEnd(id, mapreduce.JobPaused).TotalTokens.Total(); spent > 180_000 {
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
	if err := calls.Reserve(ctx, a.most); err != nil {
		return nil, err
	}
	select { // the call takes its time, while the other unit asks
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	calls.Spent(10, 0, 0)
	return &agent.Result{Size: 1}, ctx.Err()
}

// Two units whose claims set too little aside for a call take turns, where the budget
// suffices for one such call at a time: they are not claimed together again and again.
func TestUnitsThatNeedMoreThanTheirClaimTakeTurns(t *testing.T) {
	virtually(t, func(t *testing.T) {
		c := newCluster(t)
		n := c.orchestrator(quick(orchestrator.Config{Adopt: true, Estimate: func(*mapreduce.JobSpec, int64) int64 { return 1000 }}))
		greedy := &greedyAgent{most: 30_000}
		c.worker(greedy, worker.Config{Slots: 2}, n)
		spec := script(nil)
		spec.Budget, spec.ReduceShare = 61_000, 0.5
		n.wantEnd(n.submit(spec, 2), mapreduce.JobComplete)
		if runs := greedy.runs.Load(); runs > 6 {
			t.Errorf("two units ran %d times, want at most 6", runs)
		}
	})
}

// A bare worker is a stream that says what a test wants.
type bare struct {
	client.WorkerStream
	t   *testing.T
	cut context.CancelFunc
}

func greet(t *testing.T, n *node, session mapreduce.SessionID, slots int, held ...mapreduce.Held) bare {
	t.Helper()
	return greetWith(t, n, &mapreduce.FromWorker{Hello: &mapreduce.Hello{
		Session: session, Slots: slots, Offer: mapreduce.Offer{Providers: []string{"scripted"}}, Holding: held,
	}})
}

func greetWith(t *testing.T, n *node, first *mapreduce.FromWorker) bare {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	s, err := n.Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w := bare{s, t, cancel}
	w.say(first)
	return w
}

func (w bare) say(m *mapreduce.FromWorker) {
	w.t.Helper()
	if err := w.Send(m); err != nil {
		w.t.Fatal(err)
	}
}

// until receives until a message is what is waited for.
func (w bare) until(is func(*mapreduce.ToWorker) bool) *mapreduce.ToWorker {
	w.t.Helper()
	for {
		m, err := w.Recv()
		if err != nil {
			w.t.Fatal(err)
		}
		if is(m) {
			return m
		}
	}
}

func (w bare) assigned() mapreduce.Held {
	w.t.Helper()
	a := w.until(func(m *mapreduce.ToWorker) bool { return len(m.Assignments) > 0 }).Assignments[0]
	return mapreduce.Held{Job: a.Job, Unit: a.Unit, Attempt: a.Attempt, Running: true}
}

func (w bare) reserve(held mapreduce.Held, tokens int64) bool {
	w.t.Helper()
	w.ask(held, tokens)
	return w.reserved()
}

func (w bare) ask(held mapreduce.Held, tokens int64) {
	w.t.Helper()
	w.say(&mapreduce.FromWorker{Reserve: []mapreduce.ReserveRequest{{Held: held, Tokens: tokens}}})
}

func (w bare) reserved() bool {
	w.t.Helper()
	return w.until(func(m *mapreduce.ToWorker) bool { return len(m.Reserved) > 0 }).Reserved[0].Granted
}

// Two units reserve at once what is there for one of them. The store is slow with the
// first, of which the second then sees nothing there.
func TestReservationsAtOnceStayWithinTheBudget(t *testing.T) {
	virtually(t, func(t *testing.T) {
		c := newCluster(t)
		begun, stored := make(chan struct{}), make(chan struct{})
		var reservations atomic.Int64
		c.hook = func(p failpoint.Point) {
			if p == failpoint.Reserve.Before() && reservations.Add(1) == 1 {
				close(begun)
				<-stored
			}
		}
		n := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
		first, second := greet(t, n, "first", 1), greet(t, n, "second", 1)
		spec := script(nil)
		spec.Budget = 100_000
		n.submit(spec, 5)
		a, b := first.assigned(), second.assigned()
		first.ask(a, 60_000)
		<-begun
		second.ask(b, 40_000)
		pass(t, time.Second) // for all that can be done meanwhile
		close(stored)
		if !first.reserved() || second.reserved() {
			t.Error("want 60000 of the 80000 tokens that the map may spend, and not 40000 besides")
		}
		if !second.reserve(b, 15_000) {
			t.Error("what is left cannot be reserved")
		}
	})
}

// A job that is paused does not stand on the scheduler of a node that comes later.
func TestReservationsOfAPausedJobOnAnotherNode(t *testing.T) {
	virtually(t, reservedElsewhere)
}

func reservedElsewhere(t *testing.T) {
	c := newCluster(t)
	a := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
	w := greet(t, a, "worker", 1)
	spec := script(nil)
	spec.Budget = 30_000
	id := a.submit(spec, 5)
	held := w.assigned()
	if _, err := a.PauseJob(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	a.stop()
	b := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
	w = greet(t, b, "worker", 1, held)
	for _, tokens := range []int64{1_000_000, 24_001} {
		if w.reserve(held, tokens) {
			t.Errorf("%d tokens were reserved; the map may spend 24000", tokens)
		}
	}
	for tries := 0; !w.reserve(held, 23_000); tries++ { // once the first node is given up
		if tries == 100 {
			t.Fatal("23000 of 24000 tokens cannot be reserved")
		}
		pass(t, 100*time.Millisecond)
	}
	if w.reserve(held, 24_001) {
		t.Error("24001 tokens were reserved; the map may spend 24000")
	}
}
