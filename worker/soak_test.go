package worker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/scripted"
	"github.com/coditect/mapreduce/worker/observe"
	"github.com/coditect/mapreduce/worker/step"
)

// A book is a ledger in memory. Any attempt makes each call at most once.
type book struct {
	mu      sync.Mutex // guards the fields below
	entries map[scripted.Entry]int
}

func (b *book) Record(e scripted.Entry) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries[e]++
	return nil
}

// A gauge is an agent that notes how many units run at once.
type gauge struct {
	agent.Agent
	mu        sync.Mutex // guards the fields below
	now, most int
}

func (g *gauge) add(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now += n
	g.most = max(g.most, g.now)
}

func (g *gauge) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	g.add(1)
	defer g.add(-1)
	return g.Agent.Run(ctx, task, calls)
}

// Several workers and a fleet with every fault that the protocol allows: each
// unit ends as its script says, whoever ran it; no call of an attempt is made
// twice; no worker runs more than it has slots; and nothing is left behind.
func TestSoak(t *testing.T) {
	seeds := testenv.Storms(t, 20)
	var met observe.Stats // in all runs
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { soak(t, uint64(seed), &met) })
		})
	}
	if seeds < 5 {
		return // which need not meet everything
	}
	if met.Duplicates == 0 || met.Refused == 0 || met.Panics == 0 || met.Unknown == 0 || met.Connections < 100 {
		t.Errorf("the runs met too little: %+v", met)
	}
}

func soak(t *testing.T, seed uint64, met *observe.Stats) {
	const units, workers, slots = 200, 3, 4
	spec := mapreduce.JobSpec{
		Provider: "scripted", Budget: 1 << 40, UnitTimeout: 20 * time.Second, BreakerThreshold: 1000,
		Vars: map[string]string{
			"script.seed": fmt.Sprint(seed), "script.latency": "lognormal:200ms,0.8", "script.calls": "2",
			"script.tokens_in": "4000", "script.tokens_out": "2000", "script.output_bytes": "70000",
			"script.fail_rate": "0.1", "script.panic_rate": "0.02", "script.hang_rate": "0.01",
			"script.goexit_rate": "0.01", "script.permanent_rate": "0.05", "script.wrong_quote_rate": "0.1",
			"script.poison.u7": "huge", "script.poison.u8": "nul", "script.poison.u9": "garbled", "script.poison.u10": "panic",
		},
	}
	o := newOrchestra(seed, spec, assignments(units))
	o.faults = faults{cut: 0.05, lost: 0.05, late: 0.2, duplicate: 0.1}
	release := make(chan struct{})
	ledger := &book{entries: make(map[scripted.Entry]int)}
	ctx, stop := context.WithCancel(t.Context())
	var streams, running sync.WaitGroup
	var gauges []*gauge
	var all []*worker.Worker
	for i := range workers {
		g := &gauge{Agent: &scripted.Agent{Ledger: ledger, Release: release}}
		gauges = append(gauges, g)
		w := newWorker(t, worker.Config{
			Slots: slots, Prefetch: i, Connect: []worker.Connect{o.connect(&streams), o.connect(&streams)},
			Steps: step.Serving("scripted", g),
		})
		all = append(all, w)
		running.Go(func() {
			if err := w.Run(ctx); err != nil {
				t.Errorf("Run = %v", err)
			}
		})
	}
	select {
	case <-o.finished:
	case <-time.After(time.Hour):
		t.Error("units are left after an hour")
	}
	o.calm()
	after(10 * time.Second) // so that every worker has found its way back
	stop()
	running.Wait()
	for i, g := range gauges {
		if g.most > slots+g.now { // those that hang hold no slot
			t.Errorf("worker %d ran %d units at once in %d slots", i, g.most, slots)
		}
	}
	close(release)
	streams.Wait()
	for _, w := range all {
		addStats(t, met, w.Stats())
	}
	checkSoak(t, o, ledger)
}

// addStats adds what a worker met, and checks that nothing is left in it.
func addStats(t *testing.T, sum *observe.Stats, st observe.Stats) {
	t.Helper()
	sum.Duplicates += st.Duplicates
	sum.Refused += st.Refused
	sum.Connections += st.Connections
	sum.Panics += st.Panics
	sum.Unknown += st.Unknown
	if st.Held+st.Running+st.Waiting > 0 {
		t.Errorf("left behind: %+v", st)
	}
}

func newWorker(t *testing.T, cfg worker.Config) *worker.Worker {
	t.Helper()
	w, err := worker.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func assignments(n int) []protocol.Assignment {
	var as []protocol.Assignment
	for i := range n {
		a := protocol.Assignment{Job: jobID, Unit: mapreduce.UnitID(fmt.Sprintf("u%d", i)), Kind: mapreduce.KindMap}
		a.Index, a.Alone = int64(i), i%50 == 49
		text := fmt.Sprintf("\n\ndocument %d\nhas two lines", i)
		a.Text = &protocol.Text{Content: []byte(text), CoreEnd: len(text)}
		as = append(as, a)
	}
	return as
}

func checkSoak(t *testing.T, o *orchestra, ledger *book) {
	t.Helper()
	for _, p := range o.problems {
		t.Error(p)
	}
	for e, n := range ledger.entries {
		if n != 1 {
			t.Errorf("call made %d times: %+v", n, e)
		}
	}
	complete := 0
	for id, r := range o.units {
		if r.state == mapreduce.UnitComplete {
			complete++
			checkPayload(t, r)
		} else if len(r.errors) == 0 {
			t.Errorf("%s is %v without a reason", id, r.state)
		}
	}
	if complete < 150 || complete == len(o.units) {
		t.Errorf("%d units are complete; want most, and not all", complete)
	}
}

// checkPayload checks an output against the script, run anew without a worker.
func checkPayload(t *testing.T, r *record) {
	t.Helper()
	got, err := scripted.PayloadOf(r.output)
	if err != nil {
		t.Errorf("%s: %v", r.assignment.Unit, err)
		return
	}
	want := fmt.Sprintf("document %d", r.assignment.Index)
	if got.Unit != r.assignment.Unit || got.Wrong == (got.Quote == want) || len(got.Filler) != 70000 {
		got.Filler = ""
		t.Errorf("%s: payload = %+v", r.assignment.Unit, got)
	}
}

// The same script gives the same outputs however the fleet behaves.
func TestSameOutputs(t *testing.T) {
	outputs := func(seed uint64, f faults) map[mapreduce.UnitID]string {
		got := make(map[mapreduce.UnitID]string)
		synctest.Test(t, func(t *testing.T) {
			spec := mapreduce.JobSpec{Provider: "scripted", Vars: map[string]string{
				"script.seed": "5", "script.latency": "lognormal:50ms,1", "script.fail_rate": "0.05", "script.wrong_quote_rate": "0.3",
			}}
			o := newOrchestra(seed, spec, assignments(60))
			o.faults = f
			var streams sync.WaitGroup
			w := newWorker(t, worker.Config{
				Slots: 4, Prefetch: 4, Connect: []worker.Connect{o.connect(&streams)},
				Steps: step.Serving("scripted", &scripted.Agent{}),
			})
			ctx, stop := context.WithCancel(t.Context())
			streams.Go(func() {
				if err := w.Run(ctx); err != nil {
					t.Errorf("Run = %v", err)
				}
			})
			<-o.finished
			o.calm()
			stop()
			streams.Wait()
			for id, r := range o.units {
				got[id] = string(r.output)
			}
		})
		return got
	}
	calm, stormy := outputs(1, faults{}), outputs(2, faults{cut: 0.1, lost: 0.1, late: 0.3, duplicate: 0.2})
	if diff := cmp.Diff(calm, stormy); diff != "" {
		t.Errorf("outputs (-calm +stormy):\n%s", diff)
	}
}
