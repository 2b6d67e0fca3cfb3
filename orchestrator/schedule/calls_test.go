package schedule_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// A gauge is an agent that counts what runs at once, by provider.
type gauge struct {
	agent.Agent
	mu   sync.Mutex // guards the variables below
	now  map[string]int
	all  int
	most int
}

func (g *gauge) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	g.count(task.Spec.Provider, 1)
	defer g.count(task.Spec.Provider, -1)
	return g.Agent.Run(ctx, task, calls)
}

func (g *gauge) count(provider string, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now[provider] += n
	g.all += n
	g.most = max(g.most, g.all)
}

func (g *gauge) of(provider string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now[provider]
}

func newGauge() *gauge { return &gauge{Agent: &scripted.Agent{}, now: make(map[string]int)} }

// slow is a job whose units take a second each.
func slow(provider string) mapreduce.JobSpec {
	spec := enginetest.Script(map[string]string{"script.latency": "1s"})
	spec.Provider, spec.Parallelism, spec.ReduceContextLimit = provider, 100, 1<<30
	return spec
}

// An orchestrator whose workers could make all the calls that the fleet may make,
// but have none to make, leaves them to one whose workers have.
func TestCallsGoToThoseWhoHaveUseForThem(t *testing.T) {
	testenv.Raced(t)

	enginetest.Virtually(t, func(t *testing.T) {
		c, g := enginetest.NewCluster(t), newGauge()
		config := enginetest.FleetConfig()
		config.MaxCalls = 10
		a, b := c.Orchestrator(config), c.Orchestrator(config)
		c.WorkerFor("other", g, worker.Config{Slots: 20}, a)
		enginetest.Pass(t, 5*time.Second)
		c.WorkerFor("scripted", g, worker.Config{Slots: 20}, b)
		enginetest.Pass(t, 5*time.Second)
		b.WantEnd(b.Submit(slow("scripted"), 100), mapreduce.JobComplete)
		if g.most != 10 {
			t.Errorf("%d units ran at once, want 10", g.most)
		}
	})
}

// Two orchestrators whose workers both have use for more calls than there are share
// them, whoever came first, and never make more; once one has no more use for its
// part the other has all.
func TestCallsAreShared(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		c, g := enginetest.NewCluster(t), newGauge()
		config := enginetest.FleetConfig()
		config.MaxCalls = 10
		a, b := c.Orchestrator(config), c.Orchestrator(config)
		c.WorkerFor("first", g, worker.Config{Slots: 20, Prefetch: 5}, a)
		first := a.Submit(slow("first"), 300)
		enginetest.Pass(t, 5*time.Second+time.Second/2)
		synctest.Wait() // until what ended has made room for others
		if n := g.of("first"); n != 10 {
			t.Errorf("%d run at once while nobody else has use for calls, want 10", n)
		}
		c.WorkerFor("second", g, worker.Config{Slots: 20, Prefetch: 5}, b)
		b.Submit(slow("second"), 2000)
		enginetest.Pass(t, 10*time.Second+time.Second/2)
		synctest.Wait()
		if one, two := g.of("first"), g.of("second"); one != 5 || two != 5 {
			t.Errorf("%d and %d run at once, want 5 and 5", one, two)
		}
		a.WantEnd(first, mapreduce.JobComplete)
		enginetest.Pass(t, 10*time.Second+time.Second/2)
		synctest.Wait()
		if n := g.of("second"); n != 10 {
			t.Errorf("%d run at once when nobody else has use for calls any more, want 10", n)
		}
		if g.most > 10 {
			t.Errorf("%d ran at once, want at most 10", g.most)
		}
	})
}

// A job's submission grants its slots to a node that has no worker, and the node
// sees the job before it hears of that. Another that has workers gets the slots.
func TestSlotsOfASubmissionAreNotForgotten(t *testing.T) {
	testenv.Raced(t)

	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		var late atomic.Bool
		c.Hook = func(p failpoint.Point) {
			if p == failpoint.Publish.After() && !late.Swap(true) {
				<-time.After(3 * time.Second)
			}
		}
		config := orchestrator.Config{Adopt: true}
		a := c.Orchestrator(config)
		id := a.Submit(enginetest.Script(nil), 5)
		if !late.Load() {
			t.Fatal("the node heard of the submission at once")
		}
		b := c.Orchestrator(config)
		c.Worker(&scripted.Agent{}, worker.Config{Slots: 2}, b)
		b.WantEnd(id, mapreduce.JobComplete)
	})
}
