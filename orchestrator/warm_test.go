package orchestrator_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
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

// Of a job whose prompts begin alike one unit of the whole fleet runs alone, and
// the others when it has ended, however it did, or when it takes too long.
func TestTheFirstUnitRunsAlone(t *testing.T) {
	type first = func(context.Context, func() (*agent.Result, error)) (*agent.Result, error)
	for name, tt := range map[string]struct {
		first first
		warms bool
		alone time.Duration // how long it surely is
		all   time.Duration // when all surely run
	}{
		"it is answered": {nil, true, time.Second, 6 * time.Second},
		"it fails": {func(context.Context, func() (*agent.Result, error)) (*agent.Result, error) {
			return nil, errors.New("no")
		}, true, 0, 5 * time.Second},
		"it takes very long": {func(ctx context.Context, _ func() (*agent.Result, error)) (*agent.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, true, 25 * time.Second, 40 * time.Second},
		"nothing is to be kept": {nil, false, 0, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T) {
				c, g := newCluster(t), newGauge()
				s := &starter{Agent: g, first: tt.first}
				config := fleetConfig()
				config.Warms = func(*mapreduce.JobSpec) bool { return tt.warms }
				a, b := c.orchestrator(config), c.orchestrator(config)
				c.worker(s, worker.Config{Slots: 10, Prefetch: 5}, a)
				c.worker(s, worker.Config{Slots: 10, Prefetch: 5}, b)
				pass(t, 5*time.Second)
				spec := slow("scripted")
				spec.Vars["script.latency"] = "2s"
				id := a.submit(spec, 400)
				pass(t, tt.alone)
				synctest.Wait()
				if n := s.began.Load(); tt.alone > 0 && n != 1 {
					t.Errorf("%d units had begun after %v, want the first alone", n, tt.alone)
				}
				pass(t, tt.all-tt.alone)
				synctest.Wait()
				if n := g.of("scripted"); n < 19 {
					t.Errorf("%d units run at once after %v, want 20", n, tt.all)
				}
				a.endWithin(id, 30*time.Minute)
			})
		})
	}
}

// A worker that dies of the first unit, or with it, keeps nobody waiting.
func TestTheFirstUnitIsLost(t *testing.T) {
	virtually(t, func(t *testing.T) {
		c := newCluster(t)
		config := fleetConfig()
		config.Warms = func(*mapreduce.JobSpec) bool { return true }
		a, b := c.orchestrator(config), c.orchestrator(config)
		stuck := &starter{Agent: &scripted.Agent{}, first: func(ctx context.Context, _ func() (*agent.Result, error)) (*agent.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		c.worker(stuck, worker.Config{Slots: 4}, a)
		pass(t, 5*time.Second)
		id := a.submit(slow("scripted"), 50)
		pass(t, time.Second)
		if n := stuck.began.Load(); n != 1 {
			t.Fatalf("%d units had begun, want the first alone", n)
		}
		c.worker(&scripted.Agent{}, worker.Config{Slots: 10}, b)
		a.stop()
		if job := b.endWithin(id, 30*time.Minute); job.State != mapreduce.JobComplete || job.FailedUnits != 0 {
			t.Errorf("the job is %v with %d failed units", job.State, job.FailedUnits)
		}
	})
}
