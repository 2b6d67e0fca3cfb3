package dispatch_test

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/worker"
)

// The tests of this file bind sessions that hold units, so that their slots are known to the store before
// the orchestrator knows what they hold. A job of which one unit may run has no second one run.

// alone returns what a job asks for of which one unit may run.
func alone() mapreduce.JobSpec {
	spec := enginetest.Script(nil)
	spec.Parallelism = 1
	return spec
}

// wantOneRunning checks that one unit of a job runs.
func wantOneRunning(t *testing.T, n *enginetest.Node, id mapreduce.JobID) {
	t.Helper()
	job, err := n.GetJob(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if job.RunningUnits != 1 {
		t.Errorf("%d units run, and one may", job.RunningUnits)
	}
}

// welcome waits until a worker is taken up.
func welcome(w enginetest.Bare) enginetest.Bare {
	w.Until(func(m *protocol.ToWorker) bool { return m.Welcome != nil })
	return w
}

func TestSlotsOfASessionThatIsBeingBoundAreTaken(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		stands, bound := make(chan struct{}), make(chan struct{})
		var stand atomic.Bool
		c.Hook = func(p failpoint.Point) {
			if p == failpoint.Bind.After() && stand.CompareAndSwap(true, false) {
				close(stands)
				<-bound
			}
		}
		first, second := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true})), c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
		mover := welcome(enginetest.Greet(t, first, "mover", 1))
		welcome(enginetest.Greet(t, second, "other", 1))
		id := first.Submit(alone(), 2)
		held := mover.Assigned()

		mover.Cut()
		stand.Store(true)
		moved := enginetest.Greet(t, second, "mover", 1, held)
		<-stands
		enginetest.Pass(t, 10*time.Second) // the other orchestrator sees which slots it has
		wantOneRunning(t, second, id)

		close(bound)
		welcome(moved)
		enginetest.Pass(t, 10*time.Second)
		wantOneRunning(t, second, id)
	})
}

// What is claimed for a worker whose stream ends meanwhile is its own until it has been given up.
func TestSlotsOfAClaimForASessionThatHasLeftAreTaken(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		stands, known := make(chan struct{}), make(chan struct{})
		var stand atomic.Bool
		stand.Store(true)
		c.Hook = func(p failpoint.Point) {
			if p == failpoint.Turn.After() && stand.CompareAndSwap(true, false) {
				close(stands)
				<-known
			}
		}
		config := enginetest.Quick(orchestrator.Config{Adopt: true})
		config.Grace = 10 * time.Second
		n := c.Orchestrator(config)
		mortal := welcome(enginetest.Greet(t, n, "mortal", 1))
		id := n.Submit(alone(), 2)
		<-stands
		mortal.Cut()
		other := welcome(enginetest.Greet(t, n, "other", 1))
		enginetest.Pass(t, time.Second)

		close(known)
		enginetest.Pass(t, 5*time.Second)
		wantOneRunning(t, n, id)
		other.Assigned()
	})
}

// A mutedStore is one that once does not answer who binds the session "mortal", and has bound it.
type mutedStore struct {
	store.Store
	deaf atomic.Bool
}

// Begin implements store.Store.
func (s *mutedStore) Begin(ctx context.Context) (store.Tx, error) {
	tx, err := s.Store.Begin(ctx)
	return &bindingTx{Tx: tx, of: s}, err
}

type bindingTx struct {
	store.Tx
	of    *mutedStore
	binds bool
}

// Set implements store.Tx.
func (t *bindingTx) Set(key, value []byte) {
	t.binds = t.binds || bytes.Contains(key, []byte("mortal"))
	t.Tx.Set(key, value)
}

// Commit implements store.Tx.
func (t *bindingTx) Commit(ctx context.Context) error {
	err := t.Tx.Commit(ctx)
	if err != nil || !t.binds || !t.of.deaf.CompareAndSwap(true, false) {
		return err
	}
	<-ctx.Done()
	return fmt.Errorf("%w: %w", store.ErrTimedOut, context.Cause(ctx))
}

func TestSlotsOfASessionThatMayBeBoundAreTaken(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		s := &mutedStore{Store: c.Store}
		c.Store = s
		config := enginetest.Quick(orchestrator.Config{Adopt: true})
		config.Grace = 10 * time.Second
		n := c.Orchestrator(config)
		mortal := welcome(enginetest.Greet(t, n, "mortal", 1))
		id := n.Submit(alone(), 2)
		had := mortal.Assigned()
		other := welcome(enginetest.Greet(t, n, "other", 1))

		mortal.Cut()
		enginetest.Pass(t, 5*time.Second)
		s.deaf.Store(true)
		again := enginetest.Greet(t, n, "mortal", 1, had)
		enginetest.Pass(t, time.Second)
		again.Cut() // it does not know whether it was taken up, and nor does the orchestrator
		enginetest.Pass(t, 7*time.Second)
		wantOneRunning(t, n, id) // the stream before is forgotten, and this one is not yet

		other.Assigned()
	})
}

// A worker that was given up and comes back goes on with its unit only if a call of models is left for it. Else the
// unit waits, and runs when there is one. What another worker holds beyond its slots makes no call.
func TestAUnitThatIsTakenBackHasACall(t *testing.T) {
	for name, tt := range map[string]struct {
		most    int // calls at once
		ahead   int // units that wait at the other worker, behind the one that it runs
		dropped int // units that the worker does not go on with
		running int
	}{
		"one is left":               {most: 2, running: 2},
		"none is left":              {most: 1, dropped: 1, running: 1},
		"one is left by what waits": {most: 2, ahead: 1, running: 2},
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) {
				c := enginetest.NewCluster(t)
				n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true, MaxCalls: tt.most}))
				mortal := welcome(enginetest.Greet(t, n, "mortal", 1))
				lost := n.Submit(alone(), 1)
				had := mortal.Assigned()

				other := welcome(enginetest.GreetWith(t, n, &protocol.FromWorker{Hello: &protocol.Hello{
					Session: "other", Slots: 1, Prefetch: tt.ahead, Offer: mapreduce.Offer{Providers: []string{"other"}},
				}}))
				spec := alone()
				spec.Provider, spec.Parallelism = "other", 1+tt.ahead // neither worker runs what the other does
				stays := n.Submit(spec, 1+tt.ahead)
				enginetest.Pass(t, time.Second)
				mortal.Cut()
				enginetest.Pass(t, 5*time.Second) // it is given up
				other.Assigned()

				mortal = enginetest.Greet(t, n, "mortal", 1, had)
				dropped := mortal.Until(func(m *protocol.ToWorker) bool { return m.Welcome != nil }).Welcome.Drop
				if len(dropped) != tt.dropped {
					t.Errorf("the worker drops %v, want %d units", dropped, tt.dropped)
				}

				enginetest.Pass(t, 5*time.Second)
				running := 0
				for _, id := range []mapreduce.JobID{lost, stays} {
					job, err := n.GetJob(t.Context(), id)
					if err != nil {
						t.Fatal(err)
					}
					running += int(job.RunningUnits)
				}
				if running != tt.running {
					t.Errorf("%d units run, want %d", running, tt.running)
				}

				mortal.Cut()
				other.Cut()
				c.Worker(enginetest.Nop{}, worker.Config{Slots: 1}, n)
				c.WorkerFor("other", enginetest.Nop{}, worker.Config{Slots: 1}, n)
				for _, id := range []mapreduce.JobID{lost, stays} {
					n.WantEnd(id, mapreduce.JobComplete)
				}
			})
		})
	}
}
