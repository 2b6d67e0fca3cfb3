package orchestrator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
)

// The tests of this file run whole trees in virtual time, while orchestrators die
// with a level half planned and reduces half let go, workers die with what they
// run, and jobs are paused and resumed.

// paced is an agent whose units take their time.
type paced struct {
	agent.Agent
	takes func(task *agent.Task) time.Duration
}

// Run implements agent.Agent.
func (a paced) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	select {
	case <-time.After(a.takes(task)):
		return a.Agent.Run(ctx, task, calls)
	case <-ctx.Done():
		return nil, died(ctx)
	}
}

// died returns why ctx has ended, when a worker that was killed does not report it
// any more.
func died(ctx context.Context) error {
	<-time.After(time.Millisecond)
	return context.Cause(ctx)
}

// A grove is a job whose tree grows in a storm.
type grove struct {
	*enginetest.Fleet
	seed    uint64
	job     mapreduce.JobID
	members [3]*enginetest.Member
	phase   atomic.Int64 // resumes so far; from the second on nothing fails by itself
}

// chance returns a number below n that only depends on what it is for.
func (g *grove) chance(n uint64, what string, task *agent.Task) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, g.seed, what, task.Unit, g.phase.Load())
	return h.Sum64() >> 7 % n
}

// calm reports whether nothing fails any more.
func (g *grove) calm() bool { return g.phase.Load() >= 2 }

func (g *grove) agent() agent.Agent {
	return paced{
		enginetest.Collector{
			Size: func(_ *agent.Task, units []string) int64 { return int64(30 + 7*len(units)) },
			Fail: func(task *agent.Task) error {
				if !g.calm() && g.chance(10, "fails", task) == 0 {
					return agent.Permanent(fmt.Errorf("%s is broken", task.Unit))
				}
				return nil
			},
		},
		func(task *agent.Task) time.Duration {
			return time.Duration(20+g.chance(700, "takes", task)) * time.Millisecond
		},
	}
}

func TestSoakTrees(t *testing.T) {
	for name, tree := range map[string]enginetest.Ask{
		"static":   {enginetest.Static(3)},
		"pairs":    {enginetest.Static(2)},
		"adaptive": {enginetest.Budget(250)},
		"batches":  {enginetest.Batches(1, 3)},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "adaptive" {
				testenv.Unraced(t, testenv.Alike)
			}

			for seed := range testenv.Storms(t, 2) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					enginetest.Virtually(t, func(t *testing.T) { growTree(t, uint64(seed), tree) })
				})
			}
		})
	}
}

// growTree runs a job through a storm, and then another like it in peace.
func growTree(t *testing.T, seed uint64, tree enginetest.Ask) {
	g := &grove{Fleet: enginetest.NewFleet(t, seed, 2, fault.Retryable(0.005), enginetest.Steady()), seed: seed}
	g.Counter.Agent = g.agent()
	for i := range g.members {
		g.members[i] = g.Join(stormWorker(i))
	}
	spec, docs := enginetest.Asking(tree...), 8+g.Random.IntN(40)
	spec.Parallelism, spec.BreakerThreshold, spec.MaxAttempts = stormParallelism, 1<<20, 20
	g.job = g.Any().Submit(spec, docs)
	g.runToEnd()
	g.KillAt("") // nobody any more
	g.revive(func() {})
	g.Faults.Heal()
	g.Faults.Settle()
	n := g.Any()
	g.phase.Store(2)
	peace := n.Submit(spec, docs)
	n.WantEnd(peace, mapreduce.JobComplete)
	if diff := cmp.Diff(outputOf(n, peace), outputOf(n, g.job)); diff != "" {
		t.Errorf("result (-in peace +in the storm):\n%s", diff)
	}
	if diff := cmp.Diff(enginetest.Mapped(0, docs), n.Finals(g.job)); diff != "" {
		t.Errorf("documents in the result (-want +got):\n%s", diff)
	}
	units := n.Units(g.job)
	if got, want := enginetest.ShapeOf(t, units), enginetest.ShapeOf(t, n.Units(peace)); got != want {
		t.Errorf("levels are %s, and in peace %s", got, want)
	}
	g.begunOnce(units, spec.ChunkSize != nil)
	n.Healthy()
	for _, id := range []mapreduce.JobID{g.job, peace} {
		if _, err := n.Jobs.Audit.Seal(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if err := n.DeleteJob(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	n.Healthy()
	g.nothingLeft()
}

// outputOf returns the result of a job as its agent made it.
func outputOf(n *enginetest.Node, id mapreduce.JobID) (units []string) {
	n.T.Helper()
	u, err := n.Jobs.View.Unit(n.T.Context(), id, mapreduce.FinalUnit)
	if err != nil || u == nil {
		n.T.Fatalf("final unit: %v, %v", u, err)
	}
	data, err := n.Jobs.Content.Output(n.T.Context(), id, u)
	if err != nil {
		n.T.Fatal(err)
	}
	if err := json.Unmarshal([]byte(enginetest.ReasonOf(data)), &units); err != nil {
		n.T.Fatal(err)
	}
	return units
}

// runToEnd lets things happen until the job is complete, and resumes it as often as
// it ends otherwise.
func (g *grove) runToEnd() {
	for end := time.Now().Add(time.Hour); ; {
		// Whoever is asked may be dead, or die.
		job, err := g.Any().GetJob(g.T.Context(), g.job)
		switch {
		case err != nil:
		case job.State == mapreduce.JobComplete && job.FailedUnits == 0:
			return
		case !job.State.Running():
			if _, err := g.Any().ResumeJob(g.T.Context(), g.job, mapreduce.Resume{}); err == nil && job.State != mapreduce.JobPaused {
				g.phase.Add(1)
			}
		}
		if time.Now().After(end) {
			g.T.Fatalf("job has not ended: %+v, %v", job, err)
		}
		g.strikeTree()
	}
}

// strikeTree lets some things happen, and waits a moment.
func (g *grove) strikeTree() {
	pause := func() { <-time.After(time.Duration(50+g.Random.IntN(900)) * time.Millisecond) }
	if g.Random.IntN(3) == 0 {
		steps := []failpoint.Step{
			failpoint.Turn, failpoint.Unblock, failpoint.Unblock, failpoint.Ascend, failpoint.Plan, failpoint.Expire,
			failpoint.Resume, failpoint.Retry, failpoint.Bind, failpoint.Complete, failpoint.Grant, failpoint.Forget,
		}
		step := steps[g.Random.IntN(len(steps))]
		g.KillAt([]failpoint.Point{step.Before(), step.After()}[g.Random.IntN(2)])
	}
	if g.Random.IntN(8) == 0 { // it may have ended, and whoever is asked may be dead
		_, _ = g.Any().PauseJob(g.T.Context(), g.job)
	}
	if g.Random.IntN(10) == 0 {
		i := g.Random.IntN(len(g.Nodes))
		g.Stop(i, false)
		pause()
		g.Start(i)
	}
	if i := g.Random.IntN(len(g.members)); !g.calm() && g.Random.IntN(3) == 0 {
		g.Kill(g.members[i])
		pause()
		g.members[i] = g.Join(stormWorker(i))
	}
	pause()
	g.revive(pause)
}

// revive replaces orchestrators that have died.
func (g *grove) revive(pause func()) {
	for i := range g.Nodes {
		if g.Node(i).Gate.Dead.Load() {
			g.Stop(i, true)
			pause()
			g.Start(i)
		}
	}
}

// begunOnce checks that no attempt was begun twice: of a tree that stands, none at
// all, else none but of reduces that were planned again.
func (g *grove) begunOnce(units map[mapreduce.UnitID]*mapreduce.Unit, stands bool) {
	g.T.Helper()
	g.Counter.Mu.Lock()
	defer g.Counter.Mu.Unlock()
	for h, n := range g.Counter.Begun {
		u := units[h.Unit]
		if h.Job != g.job || u == nil || !stands && u.Level > 0 {
			continue
		}
		if n != 1 || h.Attempt > u.Attempts {
			g.T.Errorf("attempt %+v was begun %d times; the unit has had %d attempts", h, n, u.Attempts)
		}
	}
}

// nothingLeft checks that no key of a job is left.
func (g *grove) nothingLeft() {
	g.T.Helper()
	err := store.NewDB(g.Faults, store.Config{}).View(g.T.Context(), func(tx store.Tx) error {
		pairs, _, err := tx.GetRange(g.T.Context(), keys.New().Everything(), store.RangeOptions{})
		for _, kv := range pairs {
			if bytes.Contains(kv.Key, []byte("mr_")) {
				g.T.Errorf("left after the delete: %q", kv.Key)
			}
		}
		return err
	})
	if err != nil {
		g.T.Fatal(err)
	}
}

// waitFor waits until an attempt of a unit has begun.
func waitFor(f *enginetest.Fleet, unit mapreduce.UnitID, attempt int) {
	f.T.Helper()
	begun := func() bool {
		f.Counter.Mu.Lock()
		defer f.Counter.Mu.Unlock()
		for h := range f.Counter.Begun {
			if h.Unit == unit && h.Attempt >= attempt {
				return true
			}
		}
		return false
	}
	for end := time.Now().Add(time.Minute); !begun(); {
		if time.Now().After(end) {
			f.T.Fatalf("attempt %d of unit %s has not begun; begun are %v", attempt, unit, f.Counter.Begun)
		}
		<-time.After(100 * time.Millisecond)
	}
}

// barred is an agent for static trees by two whose documents from the third on
// cannot be mapped before the reduce over the first two has run.
func barred() agent.Agent {
	var reduced atomic.Bool
	return paced{
		enginetest.Collector{Fail: func(task *agent.Task) error {
			switch {
			case task.Unit == "reduce_L1_0":
				reduced.Store(true)
			case task.Text != nil && task.Unit > "doc-0000001" && !reduced.Load():
				return errors.New("not yet")
			}
			return nil
		}},
		func(*agent.Task) time.Duration { return time.Millisecond },
	}
}

func barredSpec() mapreduce.JobSpec {
	spec := enginetest.Asking(enginetest.Static(2))
	spec.BreakerThreshold, spec.MaxAttempts = 1<<20, 100
	return spec
}

// TestTenLostWorkersLoseNoUnit: ten workers are killed one after the other while they run
// the same unit. It is in the result like all others, and no failure of it is counted.
func TestTenLostWorkersLoseNoUnit(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		const kills = 10
		f := enginetest.NewFleet(t, 1, 1, nil, enginetest.Steady())
		f.Counter.Agent = paced{enginetest.Collector{}, func(task *agent.Task) time.Duration {
			if task.Unit == "doc-0000001" && task.Attempt <= kills {
				return time.Hour
			}
			return time.Millisecond
		}}
		id := f.Node(0).Submit(barredSpec(), 4)
		for attempt := range kills {
			m := f.Join(worker.Config{Slots: 1})
			waitFor(f, "doc-0000001", attempt+1)
			<-time.After(time.Second) // until it is known to run
			f.Kill(m)
			<-time.After(2 * f.Config.Lease) // until it is known to be lost
		}
		f.Join(worker.Config{Slots: 4})
		f.Node(0).WantEnd(id, mapreduce.JobComplete)
		if diff := cmp.Diff(enginetest.Mapped(0, 4), f.Node(0).Finals(id)); diff != "" {
			t.Errorf("documents in the result (-want +got):\n%s", diff)
		}
		if u := f.Node(0).Units(id)["doc-0000001"]; u.Failures != 0 || u.Attempts != kills+1 {
			t.Errorf("the unit has %d attempts and %d failures, want %d and none", u.Attempts, u.Failures, kills+1)
		}
		f.Node(0).Healthy()
	})
}

// TestReducesOfTheDeadAreLetGo: what an orchestrator had not let go yet that dies,
// or stops in order, does not wait for the end of its level, though others have the
// job already.
func TestReducesOfTheDeadAreLetGo(t *testing.T) {
	for _, p := range []failpoint.Point{failpoint.Unblock.Before(), failpoint.Unblock.After()} {
		t.Run(string(p), func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) {
				f := enginetest.NewFleet(t, 1, 2, nil, enginetest.Steady())
				f.Counter.Agent = barred()
				id := f.Node(0).Submit(barredSpec(), 4)
				<-time.After(2 * time.Second) // until the second has the job as well
				f.KillAt(p)
				f.Join(worker.Config{Slots: 4})
				f.Join(worker.Config{Slots: 4})
				<-time.After(time.Second)
				if !f.Node(0).Gate.Dead.Load() && !f.Node(1).Gate.Dead.Load() {
					t.Fatal("no orchestrator has died: the test shows nothing")
				}
				for i := range f.Nodes {
					if f.Node(i).Gate.Dead.Load() {
						f.Stop(i, true)
					}
				}
				n := f.Any()
				n.WantEnd(id, mapreduce.JobComplete)
				if diff := cmp.Diff(enginetest.Mapped(0, 4), n.Finals(id)); diff != "" {
					t.Errorf("documents in the result (-want +got):\n%s", diff)
				}
				n.Healthy()
			})
		})
	}
}
