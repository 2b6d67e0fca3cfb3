package orchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/scripted"
	"github.com/coditect/mapreduce/worker/step"
)

// A gate is a store that a process loses when it dies: from then on nothing it
// does has any effect. While it is frozen, as a process is that is stopped,
// nothing has any either, but all of it has later.
type gate struct {
	store.Store
	dead atomic.Bool

	mu     sync.Mutex
	thawed chan struct{} // closed when it is; nil if it is not frozen. Guarded by mu
}

var errDead = errors.New("this process is dead")

func (g *gate) freeze() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.thawed = make(chan struct{})
}

func (g *gate) thaw() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.thawed != nil {
		close(g.thawed)
		g.thawed = nil
	}
}

// pass waits until the process goes on, and fails if it is dead.
func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	thawed := g.thawed
	g.mu.Unlock()
	if thawed != nil {
		select {
		case <-thawed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if g.dead.Load() {
		return errDead
	}
	return nil
}

func (g *gate) Begin(ctx context.Context) (store.Tx, error) {
	if err := g.pass(ctx); err != nil {
		return nil, err
	}
	tx, err := g.Store.Begin(ctx)
	return gatedTx{tx, g}, err
}

type gatedTx struct {
	store.Tx
	gate *gate
}

func (t gatedTx) Commit(ctx context.Context) error {
	if err := t.gate.pass(ctx); err != nil {
		return err
	}
	return t.Tx.Commit(ctx)
}

// A counter is an agent that remembers what was run.
type counter struct {
	agent.Agent
	mu        sync.Mutex              // guards the fields below
	now, most map[mapreduce.JobID]int // attempts under way
	running   map[mapreduce.Held]bool
	atPeak    map[mapreduce.JobID][]mapreduce.Held // attempts that ran when most did
	busy      time.Duration                        // sum over attempts
	begun     map[mapreduce.Held]int               // how often each attempt was begun
	done      map[mapreduce.UnitID]int             // results made
	calls     int64                                // of models, that have ended
}

func newCounter() *counter {
	c := &counter{
		now: make(map[mapreduce.JobID]int), most: make(map[mapreduce.JobID]int),
		begun: make(map[mapreduce.Held]int), done: make(map[mapreduce.UnitID]int),
		running: make(map[mapreduce.Held]bool), atPeak: make(map[mapreduce.JobID][]mapreduce.Held),
	}
	c.Agent = &scripted.Agent{Ledger: c}
	return c
}

// Record implements scripted.Ledger.
func (c *counter) Record(e scripted.Entry) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.End {
		c.calls++
	}
	return nil
}

// peak returns how many attempts at units of a job ran at once, and how long all
// attempts took together.
func (c *counter) peak(id mapreduce.JobID) (most int, busy time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most[id], c.busy
}

// attemptsAtPeak returns the attempts at units of a job that ran when most did.
func (c *counter) attemptsAtPeak(id mapreduce.JobID) []mapreduce.Held {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.atPeak[id]
}

// attempts returns how many were begun.
func (c *counter) attempts() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, times := range c.begun {
		n += times
	}
	return n
}

// made returns how many calls of models have ended.
func (c *counter) made() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

func (c *counter) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	c.mu.Lock()
	c.begun[mapreduce.Held{Job: task.Job, Unit: task.Unit, Attempt: task.Attempt}]++
	c.now[task.Job]++
	held := mapreduce.Held{Job: task.Job, Unit: task.Unit, Attempt: task.Attempt}
	c.running[held] = true
	if c.now[task.Job] > c.most[task.Job] {
		c.most[task.Job], c.atPeak[task.Job] = c.now[task.Job], nil
		for h := range c.running {
			if h.Job == task.Job {
				c.atPeak[task.Job] = append(c.atPeak[task.Job], h)
			}
		}
	}
	c.mu.Unlock()
	start := time.Now()
	res, err := c.Agent.Run(ctx, task, calls)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now[task.Job]--
	delete(c.running, held)
	c.busy += time.Since(start)
	if err == nil {
		c.done[task.Unit]++
	}
	return res, err
}

// A fleet is a cluster whose orchestrators and workers come, go, and die.
type fleet struct {
	*testCluster
	faults  *fault.Store
	config  orchestrator.Config
	counter *counter
	works   string // what its workers are for
	random  *rand.Rand
	joined  int // workers
	killed  []mapreduce.SessionID
	// sessions counts the workers, so that the log tells which is which.
	sessions int
	lost     int // units that workers held when they died

	mu     sync.Mutex  // guards the variables below
	nodes  []*standing // by address; nil while none is there
	passed map[failpoint.Point]int
	fatal  failpoint.Point // at which the next orchestrator dies; empty if none does
	outage failpoint.Point // at which the store goes away; empty if it does not
}

// A standing is an orchestrator at an address.
type standing struct {
	*node
	gate  *gate
	ctx   context.Context // of its streams
	sever context.CancelFunc
}

// steady are settings with which nobody who lives is taken for dead, whatever
// the store does for a few seconds.
func steady() orchestrator.Config {
	return orchestrator.Config{
		Adopt: true, Heartbeat: 200 * time.Millisecond, Lease: 3 * time.Second, Grace: 3 * time.Second,
		Poll: 500 * time.Millisecond, Seal: 100 * time.Millisecond,
	}
}

// unhurried are settings for tests that last for hours of virtual time: what is done at
// intervals is done a hundred times as seldom as with steady.
func unhurried() orchestrator.Config {
	c := steady()
	c.Heartbeat, c.Beat, c.Lease, c.Grace = 20*time.Second, 20*time.Second, 5*time.Minute, 5*time.Minute
	c.Poll, c.Seal = 20*time.Second, 10*time.Second
	return c
}

// newFleet returns a fleet with so many orchestrators and no worker.
func newFleet(t *testing.T, seed uint64, nodes int, rates fault.Rates, config orchestrator.Config) *fleet {
	t.Helper()
	c := newCluster(t)
	f := &fleet{
		testCluster: c, faults: fault.New(c.store, fault.Config{Seed: seed, Rates: rates}), config: config,
		counter: newCounter(), works: "scripted", random: rand.New(rand.NewPCG(seed, 1)), nodes: make([]*standing, nodes),
		passed: make(map[failpoint.Point]int),
	}
	t.Cleanup(func() {
		f.faults.Heal()
		f.faults.Settle()
	})
	for i := range nodes {
		f.start(i)
	}
	return f
}

// pass counts a point, and lets the orchestrator die there that is to.
func (f *fleet) pass(n *standing, p failpoint.Point) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.passed[p]++
	if p == f.outage {
		f.outage = ""
		f.faults.BeginOutage()
	}
	if p == f.fatal && slices.Contains(f.nodes, n) {
		f.fatal = ""
		n.gate.dead.Store(true)
		n.sever()
	}
}

// beginOutageAt has the store go away once an orchestrator passes a point.
func (f *fleet) beginOutageAt(p failpoint.Point) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outage = p
}

// killAt has the orchestrator die that passes a point next.
func (f *fleet) killAt(p failpoint.Point) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fatal = p
}

func (f *fleet) hasPassed(p failpoint.Point) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.passed[p]
}

// start runs an orchestrator at an address.
func (f *fleet) start(i int) {
	n := &standing{gate: &gate{Store: f.faults}}
	n.ctx, n.sever = context.WithCancel(context.Background())
	f.store, f.hook = n.gate, func(p failpoint.Point) { f.pass(n, p) }
	n.node = f.orchestrator(f.config)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes[i] = n
}

// node returns the orchestrator at an address.
func (f *fleet) node(i int) *standing {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nodes[i]
}

// streamsOf returns the context of an orchestrator's streams.
func (f *fleet) streamsOf(n *standing) context.Context {
	f.mu.Lock()
	defer f.mu.Unlock()
	return n.ctx
}

// cut ends all streams of an orchestrator, and lets none in until it is mended.
func (f *fleet) cut(n *standing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n.sever()
}

func (f *fleet) mend(n *standing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n.ctx.Err() != nil {
		n.ctx, n.sever = context.WithCancel(context.Background())
	}
}

// any returns an orchestrator that runs.
func (f *fleet) any() *node {
	f.t.Helper()
	for i := range f.nodes {
		if n := f.node(i); n != nil {
			return n.node
		}
	}
	f.t.Fatal("no orchestrator runs")
	return nil
}

// stop ends the orchestrator at an address: in order, or as a crash does.
func (f *fleet) stop(i int, crash bool) {
	f.mu.Lock()
	n := f.nodes[i]
	f.nodes[i] = nil
	f.mu.Unlock()
	if n == nil {
		return
	}
	if crash {
		n.gate.dead.Store(true)
		f.cut(n)
	}
	n.gate.thaw()
	n.node.stop()
	f.cut(n)
}

// A member is a worker of the fleet.
type member struct {
	*worker.Worker
	session mapreduce.SessionID
	stop    func()
	dead    atomic.Bool
	ctx     context.Context // of its streams
	sever   context.CancelFunc
}

// join runs a worker for whatever orchestrators there are at the time.
func (f *fleet) join(config worker.Config) *member {
	f.t.Helper()
	f.joined++
	var known []int
	for i := range f.nodes {
		known = append(known, (i+f.joined)%len(f.nodes)) // so that workers spread
	}
	return f.joinTo(config, known...)
}

// joinTo runs a worker that knows some addresses.
func (f *fleet) joinTo(config worker.Config, known ...int) *member {
	f.t.Helper()
	f.sessions++
	config.Session = mapreduce.SessionID(fmt.Sprintf("w_%d", f.sessions))
	m := &member{session: config.Session}
	m.ctx, m.sever = context.WithCancel(context.Background())
	for _, i := range known {
		config.Connect = append(config.Connect, func(ctx context.Context) (worker.Stream, error) {
			n := f.node(i)
			if n == nil || m.dead.Load() {
				return nil, errs.New(errs.Unavailable, "nobody is there")
			}
			ctx, cut := context.WithCancel(ctx)
			context.AfterFunc(m.ctx, cut)
			context.AfterFunc(f.streamsOf(n), cut)
			return n.Connect(ctx)
		})
	}
	config.Steps = step.Serving(f.works, mortal{f.counter, m.ctx})
	var err error
	if m.Worker, err = worker.New(config); err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := m.Run(ctx); err != nil && !m.dead.Load() {
			f.t.Errorf("worker: %v", err)
		}
	})
	m.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		m.sever()
	})
	f.t.Cleanup(m.stop)
	return m
}

// A mortal runs units as long as its worker lives.
type mortal struct {
	*counter
	life context.Context
}

func (a mortal) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	ctx, die := context.WithCancel(ctx)
	defer die()
	defer context.AfterFunc(a.life, die)()
	return a.counter.Run(ctx, task, calls)
}

// kill ends a worker as a crash does: nothing it has is reported.
func (f *fleet) kill(m *member) {
	f.lost += m.Stats().Held
	f.killed = append(f.killed, m.session)
	m.dead.Store(true)
	m.sever()
	m.stop()
}
