package schedule_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
	"github.com/coditect/mapreduce/worker/llm/decorator"
)

// What is configured of a model holds for two orchestrators and four workers
// together where the vendor tells nothing, and where it tells more; it is used, and
// what the vendor tells counts where that is less. Workers that were told of more
// than there is can ask once or twice too often each as the vendor's bucket runs dry
// for the first time; with the refusal, all of them know.
func TestTheFleetKeepsToWhatIsConfigured(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	const units = 900
	minutes := func(rate float64) time.Duration { // a full bucket at first, and then what flows in
		return time.Duration((units - rate) / rate * float64(time.Minute))
	}
	for name, tt := range map[string]struct {
		vendor *vendor
		set    orchestrator.ModelLimits
		least  time.Duration
	}{
		"requests that are not told": {&vendor{requests: 300}, orchestrator.ModelLimits{Rates: mapreduce.Rates{Requests: 300}}, minutes(300)},
		"fewer than are told": {
			&vendor{requests: 600, headers: true}, orchestrator.ModelLimits{Rates: mapreduce.Rates{Requests: 300}}, minutes(300),
		},
		"more than are told": {
			&vendor{requests: 300, headers: true}, orchestrator.ModelLimits{Rates: mapreduce.Rates{Requests: 600}}, minutes(300),
		},
		"input":   {&vendor{}, orchestrator.ModelLimits{Rates: mapreduce.Rates{Input: 300}}, minutes(300)}, // a token a call
		"output":  {&vendor{}, orchestrator.ModelLimits{Rates: mapreduce.Rates{Output: 300}}, minutes(300)},
		"at once": {&vendor{most: 7}, orchestrator.ModelLimits{Calls: 7}, (units + 6) / 7 * 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "more than are told" && name != "at once" {
				testenv.Lengthy(t)
			}

			enginetest.Virtually(t, func(t *testing.T) {
				c, v := enginetest.NewCluster(t), tt.vendor
				v.latency = 500 * time.Millisecond
				config := enginetest.FleetConfig()
				config.Limits = func(model string) orchestrator.ModelLimits {
					if model != "scripted/m" {
						return orchestrator.ModelLimits{}
					}
					return tt.set
				}
				a, b := c.Orchestrator(config), c.Orchestrator(config)
				for _, n := range []*enginetest.Node{a, a, b, b} {
					ask(c, v, 10, n)
				}
				start := time.Now()
				id := submitAsking(a, units)
				a.Until(id, func(j *mapreduce.Job) bool { return j.State == mapreduce.JobComplete })
				took := time.Since(start)
				if took < tt.least*95/100 || took > tt.least*13/10 {
					t.Errorf("%d calls took %v, want about %v", units, took, tt.least)
				}
				few := 0
				if v.headers && float64(tt.set.Rates.Requests) > v.requests {
					few = 2 * 4 // workers
				}
				v.look(func() {
					if v.refused > few {
						t.Errorf("%d of %d calls were refused, want at most %d", v.refused, v.calls, few)
					}
				})
			})
		})
	}
}

// Where workers have hardly more slots than the fleet may make calls, none of these
// is spent on a unit that waits at one worker while another has a slot.
func TestNoCallWaitsBesideAFreeSlot(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		v := &vendor{latency: time.Second, random: rand.New(rand.NewPCG(1, 2))}
		config := enginetest.FleetConfig()
		config.MaxCalls = 12
		a := c.Orchestrator(config)
		for range 4 {
			gates := decorator.NewGates(func(string) decorator.Rates { return decorator.Rates{} })
			asks := &asker{Agent: &scripted.Agent{}, vendor: v, gates: gates}
			c.Worker(asks, worker.Config{Slots: 4, Prefetch: 4, Limits: gates}, a)
		}
		start := time.Now()
		id := submitAsking(a, 600)
		a.Until(id, func(j *mapreduce.Job) bool { return j.CompletedUnits >= 580 })
		took := time.Since(start)
		v.look(func() {
			if busy := v.busy.Seconds() / took.Seconds() / 12; busy < 0.97 {
				t.Errorf("%.3f of the calls that may be made were under way, want 0.97 at least", busy)
			}
		})
	})
}
