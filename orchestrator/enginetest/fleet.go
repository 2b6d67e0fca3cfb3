package enginetest

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
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/scripted"
	"github.com/coditect/mapreduce/worker/step"
)

// A Gate is a store that a process loses when it dies: from then on nothing it
// does has any effect. While it is frozen, as a process is that is stopped,
// nothing has any either, but all of it has later.
type Gate struct {
	store.Store
	Dead atomic.Bool

	mu     sync.Mutex
	thawed chan struct{} // closed when it is; nil if it is not frozen. Guarded by mu
}

var errDead = errors.New("this process is dead")

// Freeze lets the process stand still at its next transaction.
func (g *Gate) Freeze() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.thawed = make(chan struct{})
}

// Thaw lets a frozen process go on.
func (g *Gate) Thaw() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.thawed != nil {
		close(g.thawed)
		g.thawed = nil
	}
}

// pass waits until the process goes on, and fails if it is dead.
func (g *Gate) pass(ctx context.Context) error {
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
	if g.Dead.Load() {
		return errDead
	}
	return nil
}

// Begin implements store.Store.
func (g *Gate) Begin(ctx context.Context) (store.Tx, error) {
	if err := g.pass(ctx); err != nil {
		return nil, err
	}
	tx, err := g.Store.Begin(ctx)
	return gatedTx{tx, g}, err
}

type gatedTx struct {
	store.Tx
	gate *Gate
}

// Commit implements store.Tx.
func (t gatedTx) Commit(ctx context.Context) error {
	if err := t.gate.pass(ctx); err != nil {
		return err
	}
	return t.Tx.Commit(ctx)
}

// A Counter is an agent that remembers what was run.
type Counter struct {
	agent.Agent
	Lean      bool                    // it remembers nothing of attempts that have ended: for millions of units
	Mu        sync.Mutex              // guards the fields below
	now, most map[mapreduce.JobID]int // attempts under way
	running   map[protocol.Held]bool
	atPeak    map[mapreduce.JobID][]protocol.Held // attempts that ran when most did
	busy      time.Duration                       // sum over attempts
	Begun     map[protocol.Held]int               // how often each attempt was begun
	Done      map[mapreduce.UnitID]int            // results made
	Calls     int64                               // of models, that have ended
}

// NewCounter returns a counter of what scripted agents run.
func NewCounter() *Counter {
	c := &Counter{
		now: make(map[mapreduce.JobID]int), most: make(map[mapreduce.JobID]int),
		Begun: make(map[protocol.Held]int), Done: make(map[mapreduce.UnitID]int),
		running: make(map[protocol.Held]bool), atPeak: make(map[mapreduce.JobID][]protocol.Held),
	}
	c.Agent = &scripted.Agent{Ledger: c}
	return c
}

// Record implements scripted.Ledger.
func (c *Counter) Record(e scripted.Entry) error {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if e.End {
		c.Calls++
	}
	return nil
}

// Peak returns how many attempts at units of a job ran at once, and how long all
// attempts took together.
func (c *Counter) Peak(id mapreduce.JobID) (most int, busy time.Duration) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	return c.most[id], c.busy
}

// AttemptsAtPeak returns the attempts at units of a job that ran when most did.
func (c *Counter) AttemptsAtPeak(id mapreduce.JobID) []protocol.Held {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	return c.atPeak[id]
}

// Attempts returns how many were begun.
func (c *Counter) Attempts() (n int) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	for _, times := range c.Begun {
		n += times
	}
	return n
}

// Made returns how many calls of models have ended.
func (c *Counter) Made() int64 {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	return c.Calls
}

// Run implements agent.Agent.
func (c *Counter) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	c.Mu.Lock()
	held := protocol.Held{Job: task.Job, Unit: task.Unit, Attempt: task.Attempt}
	if !c.Lean {
		c.Begun[held]++
	}
	c.now[task.Job]++
	c.running[held] = true
	if c.now[task.Job] > c.most[task.Job] {
		c.most[task.Job], c.atPeak[task.Job] = c.now[task.Job], nil
		for h := range c.running {
			if h.Job == task.Job {
				c.atPeak[task.Job] = append(c.atPeak[task.Job], h)
			}
		}
	}
	c.Mu.Unlock()

	start := time.Now()
	res, err := c.Agent.Run(ctx, task, calls)

	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.now[task.Job]--
	delete(c.running, held)
	c.busy += time.Since(start)
	if err == nil && !c.Lean {
		c.Done[task.Unit]++
	}
	return res, err
}

// A Fleet is a cluster whose orchestrators and workers come, go, and die.
type Fleet struct {
	*Cluster
	Faults  *fault.Store
	Config  orchestrator.Config
	Counter *Counter
	Works   string // what its workers are for
	Random  *rand.Rand
	joined  int // workers
	Killed  []mapreduce.SessionID
	// sessions counts the workers, so that the log tells which is which.
	sessions int
	Lost     int // units that workers held when they died

	mu     sync.Mutex  // guards the variables below
	Nodes  []*Standing // by address; nil while none is there
	passed map[failpoint.Point]int
	fatal  failpoint.Point // at which the next orchestrator dies; empty if none does
	outage failpoint.Point // at which the store goes away; empty if it does not
}

// A Standing is an orchestrator at an address.
type Standing struct {
	*Node
	Gate  *Gate
	ctx   context.Context // of its streams
	sever context.CancelFunc
}

// Steady are settings with which nobody who lives is taken for dead, whatever
// the store does for a few seconds.
func Steady() orchestrator.Config {
	return orchestrator.Config{
		Adopt: true, Heartbeat: 200 * time.Millisecond, Lease: 3 * time.Second, Grace: 3 * time.Second,
		Poll: 500 * time.Millisecond, Seal: 100 * time.Millisecond,
	}
}

// NewFleet returns a fleet with so many orchestrators and no worker.
func NewFleet(t *testing.T, seed uint64, nodes int, rates fault.Rates, config orchestrator.Config) *Fleet {
	t.Helper()
	return NewFleetOver(t, NewCluster(t), seed, nodes, rates, config)
}

// NewFleetOver is NewFleet over the store of a cluster of which nobody runs.
func NewFleetOver(t *testing.T, c *Cluster, seed uint64, nodes int, rates fault.Rates, config orchestrator.Config) *Fleet {
	t.Helper()
	f := &Fleet{
		Cluster: c, Faults: fault.New(c.Store, fault.Config{Seed: seed, Rates: rates}), Config: config,
		Counter: NewCounter(), Works: "scripted", Random: rand.New(rand.NewPCG(seed, 1)), Nodes: make([]*Standing, nodes),
		passed: make(map[failpoint.Point]int),
	}
	t.Cleanup(func() {
		f.Faults.Heal()
		f.Faults.Settle()
	})
	for i := range nodes {
		f.Start(i)
	}
	return f
}

// pass counts a point, and lets the orchestrator die there that is to.
func (f *Fleet) pass(n *Standing, p failpoint.Point) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.passed[p]++
	if p == f.outage {
		f.outage = ""
		f.Faults.BeginOutage()
	}
	if p == f.fatal && slices.Contains(f.Nodes, n) {
		f.fatal = ""
		n.Gate.Dead.Store(true)
		n.sever()
	}
}

// BeginOutageAt has the store go away once an orchestrator passes a point.
func (f *Fleet) BeginOutageAt(p failpoint.Point) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outage = p
}

// KillAt has the orchestrator die that passes a point next.
func (f *Fleet) KillAt(p failpoint.Point) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fatal = p
}

// HasPassed returns how often orchestrators came by a point.
func (f *Fleet) HasPassed(p failpoint.Point) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.passed[p]
}

// Start runs an orchestrator at an address.
func (f *Fleet) Start(i int) {
	n := &Standing{Gate: &Gate{Store: f.Faults}}
	n.ctx, n.sever = context.WithCancel(context.Background())
	f.Store, f.Hook = n.Gate, func(p failpoint.Point) { f.pass(n, p) }
	n.Node = f.Orchestrator(f.Config)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Nodes[i] = n
}

// Node returns the orchestrator at an address.
func (f *Fleet) Node(i int) *Standing {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.Nodes[i]
}

// streamsOf returns the context of an orchestrator's streams.
func (f *Fleet) streamsOf(n *Standing) context.Context {
	f.mu.Lock()
	defer f.mu.Unlock()
	return n.ctx
}

// Cut ends all streams of an orchestrator, and lets none in until it is mended.
func (f *Fleet) Cut(n *Standing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n.sever()
}

// Mend lets streams to an orchestrator in again.
func (f *Fleet) Mend(n *Standing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n.ctx.Err() != nil {
		n.ctx, n.sever = context.WithCancel(context.Background())
	}
}

// Any returns an orchestrator that runs.
func (f *Fleet) Any() *Node {
	f.T.Helper()
	for i := range f.Nodes {
		if n := f.Node(i); n != nil {
			return n.Node
		}
	}
	f.T.Fatal("no orchestrator runs")
	return nil
}

// Stop ends the orchestrator at an address: in order, or as a crash does.
func (f *Fleet) Stop(i int, crash bool) {
	f.mu.Lock()
	n := f.Nodes[i]
	f.Nodes[i] = nil
	f.mu.Unlock()
	if n == nil {
		return
	}
	if crash {
		n.Gate.Dead.Store(true)
		f.Cut(n)
	}
	n.Gate.Thaw()
	n.Node.Stop()
	f.Cut(n)
}

// A Member is a worker of the fleet.
type Member struct {
	*worker.Worker
	session mapreduce.SessionID
	Stop    func()
	dead    atomic.Bool
	ctx     context.Context // of its streams
	sever   context.CancelFunc
}

// Join runs a worker for whatever orchestrators there are at the time.
func (f *Fleet) Join(config worker.Config) *Member {
	f.T.Helper()
	f.joined++
	var known []int
	for i := range f.Nodes {
		known = append(known, (i+f.joined)%len(f.Nodes)) // so that workers spread
	}
	return f.JoinTo(config, known...)
}

// JoinTo runs a worker that knows some addresses.
func (f *Fleet) JoinTo(config worker.Config, known ...int) *Member {
	f.T.Helper()
	f.sessions++
	config.Session = mapreduce.SessionID(fmt.Sprintf("w_%d", f.sessions))
	m := &Member{session: config.Session}
	m.ctx, m.sever = context.WithCancel(context.Background())
	for _, i := range known {
		config.Connect = append(config.Connect, func(ctx context.Context) (worker.Stream, error) {
			n := f.Node(i)
			if n == nil || m.dead.Load() {
				return nil, errs.New(errs.Unavailable, "nobody is there")
			}
			ctx, cut := context.WithCancel(ctx)
			context.AfterFunc(m.ctx, cut)
			context.AfterFunc(f.streamsOf(n), cut)
			return n.Connect(ctx)
		})
	}

	config.Steps = step.Serving(f.Works, Mortal{f.Counter, m.ctx})
	var err error
	if m.Worker, err = worker.New(config); err != nil {
		f.T.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := m.Run(ctx); err != nil && !m.dead.Load() {
			f.T.Errorf("worker: %v", err)
		}
	})
	m.Stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		m.sever()
	})
	f.T.Cleanup(m.Stop)
	return m
}

// A Mortal runs units as long as its worker lives.
type Mortal struct {
	*Counter
	Life context.Context
}

// Run implements agent.Agent.
func (a Mortal) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	ctx, die := context.WithCancel(ctx)
	defer die()
	defer context.AfterFunc(a.Life, die)()
	return a.Counter.Run(context.WithValue(ctx, lifeKey{}, a.Life), task, calls)
}

type lifeKey struct{}

// LifeIn returns the life of the worker that runs a unit, in whose context ctx is; nil if none does.
func LifeIn(ctx context.Context) context.Context {
	life, _ := ctx.Value(lifeKey{}).(context.Context)
	return life
}

// Kill ends a worker as a crash does: nothing it has is reported.
func (f *Fleet) Kill(m *Member) {
	f.Lost += m.Stats().Held
	f.Killed = append(f.Killed, m.session)
	m.dead.Store(true)
	m.sever()
	m.Stop()
}
