package schedule_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// A starter is an agent whose first unit fares as it is told.
type starter struct {
	agent.Agent
	began atomic.Int64
	first func(ctx context.Context, run func() (*agent.Result, error)) (*agent.Result, error)
}

func (a *starter) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	run := func() (*agent.Result, error) { return a.Agent.Run(ctx, task, calls) }
	if a.began.Add(1) == 1 && a.first != nil {
		return a.first(ctx, run)
	}
	return run()
}

// TestTheFirstUnitRunsAlone submits jobs whose prompts begin alike. At each orchestrator
// one unit of the job runs alone. The others run when it has ended, with whatever outcome,
// or when it takes too long.
func TestTheFirstUnitRunsAlone(t *testing.T) {
	type first = func(context.Context, func() (*agent.Result, error)) (*agent.Result, error)
	for name, tt := range map[string]struct {
		nodes int // orchestrators, each with a worker of 10 slots
		first first
		warms bool
		alone time.Duration // how long it surely is
		all   time.Duration // when all surely run
	}{
		"it is answered":                      {1, nil, true, time.Second, 6 * time.Second},
		"it is answered at each orchestrator": {2, nil, true, time.Second, 6 * time.Second},
		"it fails": {1, func(context.Context, func() (*agent.Result, error)) (*agent.Result, error) {
			return nil, errors.New("no")
		}, true, 0, 5 * time.Second},
		"it takes very long": {1, func(ctx context.Context, _ func() (*agent.Result, error)) (*agent.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, true, 25 * time.Second, 40 * time.Second},
		"nothing is to be kept": {2, nil, false, 0, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.Variant(t, name == "it is answered at each orchestrator")

			enginetest.Virtually(t, func(t *testing.T) {
				c, g := enginetest.NewCluster(t), newGauge()
				s := &starter{Agent: g, first: tt.first}
				config := enginetest.FleetConfig()
				config.Warms = func(*mapreduce.JobSpec) bool { return tt.warms }
				var nodes []*enginetest.Node
				for range tt.nodes {
					nodes = append(nodes, c.Orchestrator(config))
					c.Worker(s, worker.Config{Slots: 10, Prefetch: 5}, nodes[len(nodes)-1])
				}
				a := nodes[0]
				enginetest.Pass(t, 5*time.Second)
				spec := slow("scripted")
				spec.Vars["script.latency"] = "2s"
				id := a.Submit(spec, 400)
				enginetest.Pass(t, tt.alone)
				synctest.Wait()
				if n := s.began.Load(); tt.alone > 0 && n != int64(tt.nodes) {
					t.Errorf("%d units had begun after %v, want one at each orchestrator", n, tt.alone)
				}
				enginetest.Pass(t, tt.all-tt.alone)
				synctest.Wait()
				if n := g.of("scripted"); int(n) < 10*tt.nodes-1 {
					t.Errorf("%d units run at once after %v, want %d", n, tt.all, 10*tt.nodes)
				}
				a.EndWithin(id, 30*time.Minute)
			})
		})
	}
}

// TestTheFirstUnitIsLost stops the only orchestrator that runs the first unit of a job:
// the other one does not wait for that unit.
func TestTheFirstUnitIsLost(t *testing.T) {
	testenv.Raced(t)

	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		config := enginetest.FleetConfig()
		config.Warms = func(*mapreduce.JobSpec) bool { return true }
		a, b := c.Orchestrator(config), c.Orchestrator(config)
		stuck := &starter{Agent: &scripted.Agent{}, first: func(ctx context.Context, _ func() (*agent.Result, error)) (*agent.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		c.Worker(stuck, worker.Config{Slots: 4}, a)
		enginetest.Pass(t, 5*time.Second)
		id := a.Submit(slow("scripted"), 50)
		enginetest.Pass(t, time.Second)
		if n := stuck.began.Load(); n != 1 {
			t.Fatalf("%d units had begun, want the first alone", n)
		}
		c.Worker(&scripted.Agent{}, worker.Config{Slots: 10}, b)
		a.Stop()
		if job := b.EndWithin(id, 30*time.Minute); job.State != mapreduce.JobComplete || job.FailedUnits != 0 {
			t.Errorf("the job is %v with %d failed units", job.State, job.FailedUnits)
		}
	})
}
