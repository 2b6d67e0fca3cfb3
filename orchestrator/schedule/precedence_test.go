package schedule_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// fleetOf starts orchestrators with a worker of two slots each, and returns one of them,
// once they have heard of each other, and the spec of a job of several levels that all
// of them have a part in.
func fleetOf(c *enginetest.Cluster, t *testing.T, n int) (one *enginetest.Node, spec mapreduce.JobSpec) {
	for range n {
		one = c.Orchestrator(enginetest.FleetConfig())
		c.Worker(&scripted.Agent{}, worker.Config{Slots: 2}, one)
	}
	enginetest.Pass(t, 10*time.Second)
	spec = enginetest.Script(map[string]string{"script.latency": "100ms", "script.output_bytes": "400"})
	spec.Parallelism, spec.ReduceContextLimit, spec.ReduceBatchSize = 2*n, 300, 3
	return one, spec
}

// Slots of a job without a budget are asked for once, and not at each of its levels.
func TestSlotsAreKeptFromLevelToLevel(t *testing.T) {
	testenv.Raced(t)

	enginetest.Virtually(t, func(t *testing.T) {
		const fleet = 8
		var grants, returns atomic.Int64 // runs of transactions
		c := enginetest.NewCluster(t)
		c.Hook = func(p failpoint.Point) {
			switch p {
			case failpoint.Grant.Before():
				grants.Add(1)
			case failpoint.Return.Before():
				returns.Add(1)
			}
		}
		n, spec := fleetOf(c, t, fleet)
		id := n.Submit(spec, 200)
		var mapped int64 // grants that its first level took
		n.Until(id, func(j *mapreduce.Job) bool {
			if j.Level == 0 {
				mapped = grants.Load()
			}
			return j.Level > 3
		})
		if n := returns.Load(); n > 0 {
			t.Errorf("slots were returned %d times while the job ran", n)
		}
		if n := grants.Load() - mapped; n > 0 {
			t.Errorf("after the first level, slots were asked for %d times more", n)
		}
		n.WantEnd(id, mapreduce.JobComplete)
	})
}

// An orchestrator that dies while it plans a level is not waited for.
func TestAPlanThatIsLeftInPartIsGoneOnWith(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		var steps atomic.Int64
		begun, stuck := make(chan struct{}), make(chan struct{})
		c.Hook = func(p failpoint.Point) {
			if p == failpoint.Plan.After() && steps.Add(1) == 1 {
				close(begun)
				<-stuck // with the level planned in part
			}
		}
		a, b := c.Orchestrator(enginetest.FleetConfig()), c.Orchestrator(enginetest.FleetConfig())
		t.Cleanup(func() { close(stuck) })
		c.Worker(enginetest.Nop{}, worker.Config{Slots: 64, Prefetch: 128}, a, b)
		enginetest.Pass(t, 10*time.Second)
		spec := enginetest.Script(nil)
		spec.Parallelism, spec.ReduceContextLimit, spec.ReduceBatchSize = 64, 1000, 2
		id := a.Submit(spec, 4000)
		<-begun
		if s, err := a.Jobs.Levels.Status(t.Context(), id); err != nil || s.Level != 0 || s.Next == 0 || s.Next >= 2000 {
			t.Fatalf("the job is at %+v (error %v), want level 1 planned in part", s, err)
		}
		left := time.Now()
		b.Until(id, func(j *mapreduce.Job) bool { return j.Level > 0 })
		if took := time.Since(left); took > 10*time.Second {
			t.Errorf("the level was gone on with after %v", took)
		}
		b.WantEnd(id, mapreduce.JobComplete)
	})
}

// Who plans a level in many steps is let do it, however long it takes. Another that
// sees at the same moment that it is due may begin too; it finds out in its first
// step, which may have to run twice, as it meets that of the first.
func TestALevelInManyStepsIsPlannedByOne(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		var steps [4]atomic.Int64
		var nodes []*enginetest.Node
		for i := range steps {
			c.Hook = func(p failpoint.Point) {
				switch p {
				case failpoint.Plan.Before():
					steps[i].Add(1)
					<-time.After(10 * time.Millisecond)
				case failpoint.Plan.After():
					<-time.After(200 * time.Millisecond) // it is slow, and not gone
				case failpoint.Beat.Before():
					<-time.After(20 * time.Millisecond)
				}
			}
			nodes = append(nodes, c.Orchestrator(enginetest.FleetConfig()))
		}
		c.Worker(enginetest.Nop{}, worker.Config{Slots: 64, Prefetch: 128}, nodes...)
		enginetest.Pass(t, 10*time.Second)
		spec := enginetest.Script(nil)
		spec.Parallelism, spec.ReduceContextLimit, spec.ReduceBatchSize = 64, 1000, 2
		id := nodes[0].Submit(spec, 10000)
		nodes[0].Until(id, func(j *mapreduce.Job) bool { return j.Level > 0 })
		var by []int64
		for i := range steps {
			by = append(by, steps[i].Load())
		}
		slices.Sort(by)
		if most := len(by) - 1; by[most] < 5 || by[most-1] > 2 {
			t.Errorf("orchestrators planned level 1 in %v steps, want many of one, and of others two at most", by)
		}
	})
}

// Orchestrators that see what is due at the same time go to it one after the other:
// few transactions meet those of others, or find it done.
func TestOrchestratorsGoOneAfterTheOther(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	enginetest.Virtually(t, func(t *testing.T) {
		const fleet, jobs, levels = 8, 20, 4
		most := map[failpoint.Step]int64{ // without regard for each other, it would be
			failpoint.Grant: jobs * (fleet - 1) * 5 / 4, // three times as many
			failpoint.Plan:  jobs * levels * 3 / 2,      // twice as many
			failpoint.Seal:  jobs * 50,                  // three times as many
		}
		tried := make(map[failpoint.Point]*atomic.Int64)
		for s := range most {
			tried[s.Before()] = new(atomic.Int64)
		}
		c := enginetest.NewCluster(t)
		c.Hook = func(p failpoint.Point) {
			if n, ok := tried[p]; ok {
				n.Add(1)
				<-time.After(10 * time.Millisecond) // in which it meets others
			}
			if p == failpoint.Beat.Before() {
				<-time.After(15 * time.Millisecond) // which is what they wait for each other
			}
		}
		n, spec := fleetOf(c, t, fleet)
		for range jobs {
			if j := n.WantEnd(n.Submit(spec, 60), mapreduce.JobComplete); j.Level != levels {
				t.Fatalf("the job has %d levels, want %d", j.Level, levels)
			}
		}
		for s, most := range most {
			if n := tried[s.Before()].Load(); n > most {
				t.Errorf("transactions that %s ran %d times, want at most %d", s, n, most)
			} else {
				t.Logf("transactions that %s ran %d times, of at most %d", s, n, most)
			}
		}
	})
}
