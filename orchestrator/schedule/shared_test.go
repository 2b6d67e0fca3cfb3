package schedule_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
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
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
	"github.com/coditect/mapreduce/worker/step"
)

// A vendor is a model that all workers of a test ask, each through gates of its
// own, as processes of a fleet do. It keeps limits as vendors do.
type vendor struct {
	latency  time.Duration
	random   *rand.Rand // if there is one, latency is a mean, of a log-normal distribution
	requests float64    // a minute; 0 is no limit
	most     int        // calls at once; 0 is no limit
	headers  bool       // it tells its limits
	broken   func(n int) bool
	failTime time.Duration // that a call takes which fails for that

	mu       sync.Mutex // guards the variables below
	full     bool       // it refuses all calls
	level    float64
	at       time.Time
	calls    int
	refused  int
	failed   int
	inFlight int
	peak     int // calls at once, of those let in
	times    []time.Time
	busy     time.Duration     // of calls that have ended
	open     map[int]time.Time // calls under way
}

func (*vendor) Name() string { return "scripted" }

func (*vendor) Can() llm.Capabilities { return llm.Capabilities{} }

// Complete implements llm.Provider.
func (v *vendor) Complete(ctx context.Context, _ *llm.Request) (*llm.Response, error) {
	begun := time.Now()
	n, limits, latency, err := v.enter(begun)
	if err != nil {
		if v.failTime > 0 {
			<-time.After(v.failTime)
		}
		return nil, err
	}
	t := time.NewTimer(latency)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.inFlight--
	delete(v.open, n)
	v.busy += time.Since(begun)
	return &llm.Response{
		Parts: []llm.Part{{Text: "yes"}}, Stop: llm.StopEnd, Limits: limits, Usage: llm.Usage{Input: 1, Output: 1},
	}, context.Cause(ctx)
}

// spread is sigma of the latencies' distribution.
const spread = 0.8

// enter lets a call in, and says how long it takes, or refuses it.
func (v *vendor) enter(now time.Time) (n int, l llm.Limits, latency time.Duration, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.calls++
	v.times = append(v.times, now)
	if v.broken != nil && v.broken(v.calls) {
		v.failed++
		return 0, llm.Limits{}, 0, &llm.Error{Kind: llm.Server, Status: 500}
	}
	if v.requests > 0 {
		if v.at.IsZero() {
			v.level, v.at = v.requests, now
		}
		v.level = min(v.level+now.Sub(v.at).Minutes()*v.requests, v.requests)
		v.at = now
	}
	switch {
	case v.full, v.most > 0 && v.inFlight >= v.most:
		v.refused++
		return 0, llm.Limits{}, 0, &llm.Error{Kind: llm.RateLimited, Status: 429, RetryAfter: time.Second}
	case v.requests > 0 && v.level < 1:
		v.refused++
		return 0, llm.Limits{}, 0, &llm.Error{Kind: llm.RateLimited, Status: 429, RetryAfter: time.Second, Limits: v.told()}
	}
	v.level--
	v.inFlight++
	v.peak = max(v.peak, v.inFlight)
	if v.open == nil {
		v.open = make(map[int]time.Time)
	}
	v.open[v.calls] = now
	latency = v.latency
	if v.random != nil {
		latency = time.Duration(float64(latency) * math.Exp(spread*v.random.NormFloat64()-spread*spread/2))
	}
	return v.calls, v.told(), latency, nil
}

func (v *vendor) told() llm.Limits {
	if !v.headers {
		return llm.Limits{}
	}
	return llm.Limits{Requests: llm.Bucket{Known: true, Limit: int64(v.requests), Remaining: int64(v.level)}}
}

func (v *vendor) look(fn func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	fn()
}

// An asker is an agent that asks the vendor once a unit.
type asker struct {
	agent.Agent // for what is no call
	vendor      *vendor
	gates       *decorator.Gates
}

// Run implements agent.Agent.
func (a *asker) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	limited := &decorator.Limit{Provider: a.vendor, Gates: a.gates, Count: func(*llm.Request) int64 { return 1 }}
	guarded := &decorator.Guard{Provider: limited, Caller: calls}
	req := &llm.Request{Model: llm.Model(task.Spec.Model), MaxTokens: 1, Messages: []llm.Message{llm.Say(llm.User, "?")}}
	if _, err := guarded.Complete(ctx, req); err != nil {
		return nil, err
	}
	return a.Agent.Run(ctx, task, calls)
}

// ask starts a worker whose units ask v.
func ask(c *enginetest.Cluster, v *vendor, slots int, nodes ...*enginetest.Node) (drain func()) {
	gates := decorator.NewGates(func(string) decorator.Rates { return decorator.Rates{} })
	return c.Worker(&asker{Agent: &scripted.Agent{}, vendor: v, gates: gates}, worker.Config{Slots: slots, Limits: gates}, nodes...)
}

// submitAsking submits a job of n units that ask.
func submitAsking(n *enginetest.Node, units int) mapreduce.JobID {
	spec := enginetest.Script(nil)
	spec.Model, spec.Parallelism, spec.ReduceContextLimit, spec.MaxAttempts = "m", 100, 1<<30, 1
	return n.Submit(spec, units)
}

// A fleet of two orchestrators and four workers keeps to the limits of a vendor
// that tells them, wherever the units run, and uses them.
func TestTheFleetKeepsToWhatAVendorTells(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		v := &vendor{latency: 500 * time.Millisecond, requests: 600, headers: true}
		a, b := c.Orchestrator(enginetest.FleetConfig()), c.Orchestrator(enginetest.FleetConfig())
		for _, n := range []*enginetest.Node{a, a, b, b} {
			ask(c, v, 10, n)
		}
		start := time.Now()
		const units = 2400
		id := submitAsking(a, units)
		a.Until(id, func(j *mapreduce.Job) bool { return !j.State.Running() })
		took := time.Since(start)
		v.look(func() {
			if v.refused > units/1000 {
				t.Errorf("%d of %d calls were refused, want fewer than one in a thousand", v.refused, v.calls)
			}
			if v.peak > 50 {
				t.Errorf("%d calls at once, want at most 50", v.peak)
			}
		})
		// A full bucket at first, and then what flows in.
		best := time.Duration((units - 600) * float64(time.Minute) / 600)
		if took > best*13/10 {
			t.Errorf("%d calls took %v; the vendor would have let them through in %v", units, took, best)
		}
	})
}

// A vendor that tells nothing but that it has enough is asked less, by all, and
// then a little more again; no attempt is lost by that.
func TestTheFleetLearnsHowMuchAVendorTakes(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		v := &vendor{latency: time.Second, most: 12}
		a, b := c.Orchestrator(enginetest.FleetConfig()), c.Orchestrator(enginetest.FleetConfig())
		for _, n := range []*enginetest.Node{a, a, b, b} {
			ask(c, v, 10, n)
		}
		const units = 1000
		id := submitAsking(a, units)
		start := time.Now()
		a.Until(id, func(j *mapreduce.Job) bool { return !j.State.Running() })
		took := time.Since(start)
		job, err := a.GetJob(t.Context(), id)
		if err != nil || job.FailedUnits > 0 {
			t.Errorf("%d units failed for want of room, with one attempt each (error %v)", job.FailedUnits, err)
		}
		v.look(func() {
			if v.refused*10 > units {
				t.Errorf("%d of %d calls were refused, want fewer than one in ten", v.refused, v.calls)
			}
			if best := units / time.Duration(v.most) * v.latency; took > 3*best {
				t.Errorf("%d calls took %v; the vendor would have let them through in %v", units, took, best)
			}
		})
	})
}

// A job is paused whose model refuses every call for long. One whose calls take long is
// not, be it that the model refused one just now, or long ago.
func TestAModelThatRefusesAll(t *testing.T) {
	for _, just := range []bool{true, false} {
		t.Run(fmt.Sprint("just now ", just), func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) { refusesAll(t, just) })
		})
	}
}

func refusesAll(t *testing.T, just bool) {
	c := enginetest.NewCluster(t)
	v := &vendor{latency: 5 * time.Minute, full: true}
	config := enginetest.FleetConfig()
	config.Stuck = 3 * time.Minute
	a := c.Orchestrator(config)
	ask(c, v, 10, a)
	begun := time.Now()
	id := submitAsking(a, 3)
	job := a.WantEnd(id, mapreduce.JobPaused)
	if took := time.Since(begun); took < config.Stuck || took > config.Stuck+time.Minute || !strings.Contains(job.Error, "refused every call") {
		t.Errorf("paused after %v, want after %v, as %q", took, config.Stuck, job.Error)
	}
	if _, err := a.CancelJob(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	var refused int
	v.look(func() { refused = v.refused })
	if !just {
		v.look(func() { v.full = false })
		enginetest.Pass(t, 10*time.Minute)
	}
	id = submitAsking(a, 1)
	enginetest.Pass(t, 5*time.Second)
	v.look(func() {
		v.full = false
		if just != (v.refused > refused) {
			t.Errorf("%d calls of the second job were refused", v.refused-refused)
		}
	})
	enginetest.Pass(t, 6*time.Minute)
	a.WantEnd(id, mapreduce.JobComplete)
}

// When a vendor fails, the whole fleet stops asking: few calls are lost, no unit
// is, and while it is down one call at a time probes. Who probes has a slot for it,
// also of a job that may run on fewer than the workers of one orchestrator have.
func TestTheFleetSharesItsBreaker(t *testing.T) {
	for _, parallelism := range []int{100, 20, 1} {
		t.Run(fmt.Sprint("parallelism ", parallelism), func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) { breakerIsShared(t, parallelism) })
		})
	}
}

func breakerIsShared(t *testing.T, parallelism int) {
	c := enginetest.NewCluster(t)
	v := &vendor{latency: 100 * time.Millisecond}
	a, b := c.Orchestrator(enginetest.FleetConfig()), c.Orchestrator(enginetest.FleetConfig())
	var down bool
	v.broken = func(int) bool { return down }
	for _, n := range []*enginetest.Node{a, a, b, b} {
		ask(c, v, 10, n)
	}
	spec := enginetest.Script(nil)
	spec.Model, spec.Parallelism, spec.ReduceContextLimit = "m", parallelism, 1<<30
	spec.BreakerTimeout, spec.MaxAttempts = 30*time.Second, 50
	id := a.Submit(spec, 15*min(parallelism, 40)+200)
	a.Until(id, func(j *mapreduce.Job) bool { return j.CompletedUnits > 100 })
	v.look(func() { down = true })
	var began int
	enginetest.Pass(t, 15*time.Second)
	v.look(func() { began = len(v.times) })
	enginetest.Pass(t, 5*time.Minute)
	v.look(func() {
		down = false
		probes := len(v.times) - began
		if probes < 8 || probes > 12 {
			t.Errorf("%d calls in five minutes of a vendor that is down; want one each half a minute", probes)
		}
		if v.failed > 4*10+4*3+12 {
			t.Errorf("%d calls failed, want few", v.failed)
		}
	})
	up := time.Now()
	a.Until(id, func(j *mapreduce.Job) bool { return !j.State.Running() })
	if job, err := a.GetJob(t.Context(), id); err != nil || job.State != mapreduce.JobComplete || job.FailedUnits > 0 {
		t.Errorf("the job is %v, and %d units failed (error %v)", job.State, job.FailedUnits, err)
	}
	if took := time.Since(up); took > 2*time.Minute {
		t.Errorf("the job ended %v after the vendor was well again", took)
	}
}

// The breaker of the fleet closes though no orchestrator is there for as long as it is open.
func TestABreakerClosesThoughNodesKeepGoingDown(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		nodes := []*enginetest.Node{c.Orchestrator(enginetest.FleetConfig()), c.Orchestrator(enginetest.FleetConfig())}
		down := true
		v := &vendor{latency: time.Second, broken: func(int) bool { return down }}
		for i := range nodes {
			ask(c, v, 4, nodes[i])
		}
		spec := enginetest.Script(nil)
		spec.Model, spec.Parallelism, spec.ReduceContextLimit, spec.BreakerTimeout, spec.MaxAttempts = "m", 8, 1<<30, 2*time.Minute, 50
		id := nodes[0].Submit(spec, 20)
		enginetest.Pass(t, 20*time.Second)
		v.look(func() { down = false })
		for turn := range 12 {
			enginetest.Pass(t, 20*time.Second)
			nodes[turn%2].Stop()
			nodes[turn%2] = c.Orchestrator(enginetest.FleetConfig())
			ask(c, v, 4, nodes[turn%2])
		}
		if job, err := nodes[0].GetJob(t.Context(), id); err != nil || job.State != mapreduce.JobComplete {
			t.Errorf("four minutes after the vendor was well again the job is %v (error %v), with %d units complete", job.State, err, job.CompletedUnits)
		}
	})
}

// A worker was told of an open breaker, and is away while that closes. The orchestrator to which
// it comes then tells it that nothing limits the model: what another one said is over.
func TestAWorkerThatWasAwayLearnsThatABreakerHasClosed(t *testing.T) {
	testenv.Raced(t)

	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		a, b := c.Orchestrator(enginetest.FleetConfig()), c.Orchestrator(enginetest.FleetConfig())
		var there atomic.Pointer[enginetest.Node]
		there.Store(a)
		down := true
		away := &vendor{latency: time.Second, broken: func(int) bool { return down }}
		gates := decorator.NewGates(func(string) decorator.Rates { return decorator.Rates{} })
		c.Worker(&asker{Agent: &scripted.Agent{}, vendor: away, gates: gates}, worker.Config{
			Slots: 4, Limits: gates, Connect: []worker.Connect{func(ctx context.Context) (worker.Stream, error) {
				if n := there.Load(); n != nil {
					return n.Connect(ctx)
				}
				return nil, errs.New(errs.Unavailable, "nobody is there")
			}},
		})
		spec := enginetest.Script(nil)
		spec.Model, spec.Parallelism, spec.ReduceContextLimit, spec.BreakerTimeout, spec.MaxAttempts = "m", 8, 1<<30, time.Minute, 50
		id := a.Submit(spec, 600)
		enginetest.Pass(t, 10*time.Second)
		there.Store(nil)
		a.Stop()
		stays := &vendor{latency: time.Second}
		ask(c, stays, 4, b)
		enginetest.Pass(t, time.Minute)
		away.look(func() { down = false })
		var before int
		stays.look(func() { before = stays.calls })
		away.look(func() { away.calls = 0 })
		there.Store(b)
		enginetest.Pass(t, 20*time.Second)
		away.look(func() {
			if before == 0 || away.calls < 4*10 {
				t.Errorf("%d calls of a second were made since the worker is back, by four slots in 20s; another made %d before", away.calls, before)
			}
		})
		b.WantEnd(id, mapreduce.JobComplete)
	})
}

// Units that do not wait for a breaker end while it is open. They make no call, except a few
// that find out whether calls work again: one at once at each worker of the node that probes.
func TestUnitsThatSkipAnOpenBreakerMakeFewCalls(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		a, b := c.Orchestrator(enginetest.FleetConfig()), c.Orchestrator(enginetest.FleetConfig())
		v := &vendor{failTime: 2 * time.Second, broken: func(int) bool { return true }}
		for _, n := range []*enginetest.Node{a, a, b, b} {
			ask(c, v, 10, n)
		}
		spec := enginetest.Script(nil)
		spec.Model, spec.ReduceContextLimit, spec.BreakerTimeout, spec.MaxAttempts = "m", 1<<30, 30*time.Second, 100
		waits := a.Submit(spec, 10)
		enginetest.Pass(t, 10*time.Second)
		var before int
		v.look(func() { before = v.calls })
		spec.OnBreaker, spec.Parallelism = mapreduce.BreakerSkip, 40
		skipped := 0
		const probes = 4
		for begun := time.Now(); time.Since(begun) < probes*30*time.Second; {
			skipped += int(a.Rest(a.Submit(spec, 40)).FailedUnits)
			enginetest.Pass(t, time.Second)
		}
		v.look(func() {
			if n := v.calls - before; n < probes-1 || n > probes*5 {
				t.Errorf("a vendor that is down was called %d times in %d times of the breaker; %d units skipped it", n, probes, skipped)
			}
		})
		if job, err := a.GetJob(t.Context(), waits); err != nil || job.FailedUnits > 0 {
			t.Errorf("of the job that waits %d units have failed (error %v)", job.FailedUnits, err)
		}
	})
}

// When the breaker of the fleet closes, workers call again, though a job's own would stay open
// for longer. Until then no unit is handed out over and over.
func TestABreakerClosesForJobsThatAreMorePatient(t *testing.T) {
	testenv.Raced(t)

	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		n := c.Orchestrator(enginetest.FleetConfig())
		down := false
		v := &vendor{latency: time.Second, broken: func(int) bool { return down }}
		ask(c, v, 4, n)
		ask(c, v, 4, n)
		spec := enginetest.Script(nil)
		spec.Model, spec.Parallelism, spec.ReduceContextLimit, spec.BreakerTimeout, spec.MaxAttempts = "m", 8, 1<<30, 20*time.Second, 50
		first := n.Submit(spec, 100)
		spec.BreakerThreshold, spec.BreakerTimeout = 1<<20, time.Hour
		second := n.Submit(spec, 100)
		n.Until(second, func(j *mapreduce.Job) bool { return j.CompletedUnits > 10 })
		v.look(func() { down = true })
		enginetest.Pass(t, 5*time.Second)
		v.look(func() { down = false })
		up := time.Now()
		for _, id := range []mapreduce.JobID{first, second} {
			n.WantEnd(id, mapreduce.JobComplete)
			for _, u := range n.Units(id) {
				if u.Attempts > 5 {
					t.Errorf("unit %s of job %s had %d attempts, %d of which failed", u.ID, id, u.Attempts, u.Failures)
				}
			}
		}
		if took := time.Since(up); took > 2*time.Minute {
			t.Errorf("the jobs ended %v after the vendor was well again", took)
		}
	})
}

// While nobody may ask a model, nodes do not take tokens of its jobs and give them
// back over and over.
func TestTokensRestWhileABreakerIsOpen(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		var moved atomic.Int64
		c.Hook = func(p failpoint.Point) {
			if p == failpoint.Grant.After() || p == failpoint.Return.After() {
				moved.Add(1)
			}
		}
		v := &vendor{latency: 100 * time.Millisecond}
		a, b := c.Orchestrator(enginetest.FleetConfig()), c.Orchestrator(enginetest.FleetConfig())
		var down bool
		v.broken = func(int) bool { return down }
		ask(c, v, 10, a)
		ask(c, v, 10, b)
		spec := enginetest.Script(nil)
		spec.Model, spec.Parallelism, spec.ReduceContextLimit, spec.Budget = "m", 20, 1<<30, 1_000_000
		spec.BreakerTimeout, spec.MaxAttempts = 30*time.Second, 50
		id := a.Submit(spec, 400)
		a.Until(id, func(j *mapreduce.Job) bool { return j.CompletedUnits > 100 })
		v.look(func() { down = true })
		enginetest.Pass(t, 15*time.Second)
		before := moved.Load()
		enginetest.Pass(t, 5*time.Minute)
		if n := moved.Load() - before; n > 10*10 { // ten probes
			t.Errorf("grants were asked for and returned %d times in five minutes of a vendor that is down", n)
		}
		v.look(func() { down = false })
		a.WantEnd(id, mapreduce.JobComplete)
	})
}

// Slots of a job go where its model may be asked: all calls that the fleet may make
// at once are made, however its orchestrators came to their slots.
func TestSlotsFollowTheLimitsOfAModel(t *testing.T) {
	for name, set := range map[string]func(*orchestrator.Config){
		"of the model": func(c *orchestrator.Config) {
			c.Limits = func(string) orchestrator.ModelLimits { return orchestrator.ModelLimits{Calls: 4} }
		},
		"of all models": func(c *orchestrator.Config) { c.MaxCalls = 4 },
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) {
				c := enginetest.NewCluster(t)
				v := &vendor{latency: time.Second}
				config := enginetest.FleetConfig()
				set(&config)
				a, b := c.Orchestrator(config), c.Orchestrator(config)
				ask(c, v, 20, a)
				enginetest.Pass(t, 10*time.Second)
				spec := enginetest.Script(nil)
				spec.Model, spec.Parallelism, spec.ReduceContextLimit = "m", 4, 1<<30
				id := a.Submit(spec, 400)
				a.Until(id, func(j *mapreduce.Job) bool { return j.CompletedUnits > 8 })
				ask(c, v, 20, b) // which has a part of the calls, and no slot yet
				enginetest.Pass(t, 15*time.Second)
				var before int
				v.look(func() { before = v.calls })
				enginetest.Pass(t, 20*time.Second)
				v.look(func() {
					if n := v.calls - before; n < 4*20*9/10 {
						t.Errorf("%d calls of a second each began in 20s, where four may be made at once", n)
					}
					if v.peak > 4 {
						t.Errorf("%d calls at once, want at most 4", v.peak)
					}
				})
				a.WantEnd(id, mapreduce.JobComplete)
			})
		})
	}
}

// Orchestrators die with shares of a model's limits. Others have them after the
// lease, and the fleet goes on as fast as before.
func TestSharesOfTheDeadComeBack(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		v := &vendor{latency: time.Second, most: 8}
		nodes := []*enginetest.Node{c.Orchestrator(enginetest.FleetConfig()), c.Orchestrator(enginetest.FleetConfig()), c.Orchestrator(enginetest.FleetConfig())}
		ask(c, v, 10, nodes...)
		ask(c, v, 10, nodes[1], nodes[2], nodes[0])
		ask(c, v, 10, nodes[2], nodes[0], nodes[1])
		id := submitAsking(nodes[0], 600)
		nodes[0].Until(id, func(j *mapreduce.Job) bool { return j.CompletedUnits > 50 })
		nodes[1].Stop()
		nodes[2].Stop()
		enginetest.Pass(t, 30*time.Second)
		var before int
		v.look(func() { before = v.calls - v.refused })
		enginetest.Pass(t, 20*time.Second)
		v.look(func() {
			if done := v.calls - v.refused - before; done < 20*v.most/2 {
				t.Errorf("%d calls in 20s after two of three orchestrators died; the vendor takes %d", done, 20*v.most)
			}
		})
		nodes[0].Until(id, func(j *mapreduce.Job) bool { return !j.State.Running() })
		if job, err := nodes[0].GetJob(t.Context(), id); err != nil || job.FailedUnits > 0 {
			t.Errorf("%d units failed (error %v)", job.FailedUnits, err)
		}
	})
}

// 2,000 units whose calls take two seconds on average, some far longer, by four
// workers: never more than fifty calls at once, and all of the fifty are used.
func TestFiftyCallsAtOnceAndNeverMore(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	enginetest.Virtually(t, func(t *testing.T) {
		const units, most = 2000, 50
		c := enginetest.NewCluster(t)
		v := &vendor{latency: 2 * time.Second, random: rand.New(rand.NewPCG(1, 2))}
		n := c.Orchestrator(enginetest.FleetConfig())
		for range 4 {
			ask(c, v, 20, n)
		}
		id := submitAsking(n, units)
		start := time.Now()
		n.Until(id, func(j *mapreduce.Job) bool { return j.CompletedUnits >= units-most }) // then there are too few to fill it
		took := time.Since(start)
		v.look(func() {
			all := v.busy
			for _, begun := range v.open {
				all += time.Since(begun)
			}
			busy := all.Seconds() / took.Seconds() / most
			t.Logf("in %v %d calls ended: %.1f %% of the places were used, %.0f documents a minute, %.1f times one at a time",
				took, v.calls-v.inFlight, 100*busy, (units-most)/took.Minutes(), all.Seconds()/took.Seconds())
			if v.peak > most || busy < 0.98 {
				t.Errorf("%d calls at once, %.1f %% of the places used; want at most %d, and 98 %%", v.peak, 100*busy, most)
			}
		})
		n.Until(id, func(j *mapreduce.Job) bool { return !j.State.Running() })
	})
}

// Workers are killed a hundred times with calls under way. No place is lost by
// that, and none is given twice.
func TestKillsLoseNoPlace(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		const most, slots = 10, 4
		c := enginetest.NewCluster(t)
		v := &vendor{latency: 2 * time.Second, random: rand.New(rand.NewPCG(3, 4))}
		config := enginetest.FleetConfig()
		config.Grace, config.MaxCalls = 500*time.Millisecond, most
		n := c.Orchestrator(config)
		var workers [4]func()
		for i := range workers {
			workers[i] = askMortal(c, v, slots, n)
		}
		submitAsking(n, 2000)
		for i := range 100 {
			enginetest.Pass(t, time.Second)
			workers[i%len(workers)]()
			workers[i%len(workers)] = askMortal(c, v, slots, n)
		}
		full := 0 // again, once the units that were with a worker when it died have run alone
		for end := time.Now().Add(time.Hour); full < most && time.Now().Before(end); {
			enginetest.Pass(t, time.Second)
			v.look(func() { full = v.inFlight })
		}
		if full != most || v.peak > most {
			t.Errorf("after a hundred kills %d calls run at once, and never more than %d did; want %d", full, v.peak, most)
		}
	})
}

// living is an agent that begins nothing once its worker is dead.
type living struct {
	agent.Agent
	life context.Context
}

func (a living) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	if a.life.Err() != nil {
		return nil, a.life.Err()
	}
	return a.Agent.Run(ctx, task, calls)
}

// askMortal starts a worker whose units ask v, and returns what kills it as a
// crash does.
func askMortal(c *enginetest.Cluster, v *vendor, slots int, n *enginetest.Node) (kill func()) {
	gates := decorator.NewGates(func(string) decorator.Rates { return decorator.Rates{} })
	life, sever := context.WithCancel(context.Background())
	all := enginetest.NewCounter()
	all.Agent = living{&asker{Agent: &scripted.Agent{}, vendor: v, gates: gates}, life}
	w, err := worker.New(worker.Config{
		Slots: slots, Limits: gates, Steps: step.Serving("scripted", enginetest.Mortal{Counter: all, Life: life}),
		Connect: []worker.Connect{func(ctx context.Context) (worker.Stream, error) {
			if life.Err() != nil {
				return nil, errs.New(errs.Unavailable, "nobody is there")
			}
			ctx, cut := context.WithCancel(ctx)
			context.AfterFunc(life, cut)
			return n.Connect(ctx)
		}},
	})
	if err != nil {
		c.T.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = w.Run(ctx) }) // it dies with what it holds
	kill = func() {
		sever()
		cancel()
	}
	c.T.Cleanup(func() {
		kill()
		running.Wait()
	})
	return kill
}
