package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
)

// soon is when others go on with what an orchestrator did that was killed.
const soon = 3 * time.Second

// An orchestrator is killed that had all slots of a job, and all of its budget.
// Its workers find the other, and go on there: not after the lease, whatever the
// job was at. A worker that dies with it takes its own slot along, no more.
func TestSlotsOfTheDeadAreSoonFree(t *testing.T) {
	levels := enginetest.Script(map[string]string{"script.latency": "300ms"})
	levels.ReduceBatchSize, levels.ReduceContextLimit = 2, 10
	costs := enginetest.Script(map[string]string{"script.latency": "300ms", "script.tokens_in": "300", "script.tokens_out": "100"})
	costs.Budget, costs.ReduceContextLimit = 10_000_000, 1<<30
	for name, tt := range map[string]struct {
		spec   mapreduce.JobSpec
		docs   int
		worker bool // one of them dies as well
	}{
		"many documents":  {enginetest.Script(map[string]string{"script.latency": "300ms"}), 60, false},
		"many levels":     {levels, 16, false},
		"a budget":        {costs, 60, false},
		"a worker's host": {enginetest.Script(map[string]string{"script.latency": "300ms"}), 60, true},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range 10 {
				at := time.Second + time.Duration(i)*170*time.Millisecond
				t.Run(fmt.Sprint(at), func(t *testing.T) {
					if i > 3 {
						testenv.Lengthy(t)
					}
					testenv.Variant(t, i == 0 && (name == "many levels" || tt.worker))

					enginetest.Virtually(t, func(t *testing.T) { heirs(t, tt.spec, tt.docs, at, tt.worker) })
				})
			}
		})
	}
}

// heirs kills the orchestrator of a job of two slots, and with it one of its
// workers or none, and waits for the next unit.
func heirs(t *testing.T, spec mapreduce.JobSpec, docs int, at time.Duration, dies bool) {
	f := enginetest.NewFleet(t, 1, 2, nil, orchestrator.Config{Adopt: true})
	f.Cut(f.Node(1)) // so that all workers are with the first
	first, second := f.Join(worker.Config{Slots: 1}), f.Join(worker.Config{Slots: 1})
	spec.Parallelism = 2
	id := f.Node(0).Submit(spec, docs)
	<-time.After(at)
	f.Mend(f.Node(1))
	f.Stop(0, true)
	if dies {
		f.Kill(first)
	}
	begun := f.Counter.Attempts()
	died := time.Now()
	for f.Counter.Attempts() <= begun+1 { // what was under way may go on once
		<-time.After(10 * time.Millisecond)
		if took := time.Since(died); took > soon+300*time.Millisecond {
			t.Fatalf("no two units were begun within %v", took)
		}
	}
	f.Any().WantEnd(id, mapreduce.JobComplete)
	if most, _ := f.Counter.Peak(id); most > 2 {
		t.Errorf("%d units ran at once, want at most 2", most)
	}
	if got := second.Stats(); got.Accepted == 0 {
		t.Errorf("the worker that lives did nothing: %+v", got)
	}
}

// An orchestrator stands still with its worker, and both are taken for dead.
// Another runs the units of the job. When the two go on they still have the slots
// in mind that they had, and may not use them.
func TestZombieOrchestratorClaimsNothing(t *testing.T) {
	for _, still := range []time.Duration{2 * time.Second, 4 * time.Second, 9 * time.Second, 13 * time.Second, time.Minute} {
		t.Run(fmt.Sprint(still), func(t *testing.T) {
			testenv.Variant(t, still == 4*time.Second)

			enginetest.Virtually(t, func(t *testing.T) {
				f := enginetest.NewFleet(t, 1, 2, nil, orchestrator.Config{Adopt: true})
				spec := enginetest.Script(map[string]string{"script.latency": "700ms"})
				spec.Parallelism, spec.ReduceContextLimit = 2, 1<<30
				f.JoinTo(worker.Config{Slots: 2}, 0)
				id := f.Node(0).Submit(spec, int(still/(350*time.Millisecond))+30)
				<-time.After(2 * time.Second)
				f.Node(0).Gate.Freeze()
				f.JoinTo(worker.Config{Slots: 2}, 1)
				<-time.After(still)
				f.JoinTo(worker.Config{Slots: 2}, 0) // which nobody has taken for dead
				<-time.After(100 * time.Millisecond)
				f.Node(0).Gate.Thaw()
				f.Node(1).WantEnd(id, mapreduce.JobComplete)
				if most, _ := f.Counter.Peak(id); most != 2 {
					t.Errorf("%d units ran at once, want 2", most)
				}
			})
		})
	}
}

// Whoever gives a worker's units back may die between two steps of that: the rest go
// back with what else it leaves.
func TestASessionThatWasExpiredInPartIsTakenOver(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		const units = 600
		c := enginetest.NewCluster(t)
		a := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true, MaxCalls: units}))
		w := enginetest.Greet(t, a, "worker", units)
		spec := enginetest.Script(nil)
		spec.Parallelism = units
		id := a.Submit(spec, units)
		for got := 0; got < units; {
			given := w.Until(func(m *protocol.ToWorker) bool { return len(m.Assignments) > 0 }).Assignments
			got += len(given)
			var began protocol.FromWorker // or it is not given all
			for _, g := range given {
				began.Started = append(began.Started, protocol.Held{Job: g.Job, Unit: g.Unit, Attempt: g.Attempt, Running: true})
			}
			if err := w.Send(&began); err != nil {
				t.Fatal(err)
			}
		}
		epoch, node, err := a.Jobs.Nodes.Epoch(t.Context(), "worker")
		if err != nil {
			t.Fatal(err)
		}
		a.Stop()
		if loss, err := a.Jobs.Sessions.Expire(t.Context(), "worker", node, epoch, nil); err != nil || loss.Done {
			t.Fatalf("the first step of expiring %d units left nothing to do (error %v)", units, err)
		}
		b := c.Orchestrator(enginetest.FleetConfig())
		c.Worker(enginetest.Nop{}, worker.Config{Slots: 64}, b)
		b.WantEnd(id, mapreduce.JobComplete)
	})
}
