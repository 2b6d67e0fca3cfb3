package enginetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/html"
	"github.com/coditect/mapreduce/internal/document/plain"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/storetest/driver"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/scripted"
	"github.com/coditect/mapreduce/worker/step"
	"github.com/coditect/mapreduce/worker/step/parse"
	"github.com/coditect/mapreduce/worker/step/rules"
)

// Rest waits until a job does not run, for as long as jobs wait for models.
func (n *Node) Rest(id mapreduce.JobID) *mapreduce.Job {
	n.T.Helper()
	return n.EndWithin(id, 3*time.Hour)
}

// A Cluster is orchestrators and workers over one store, in this process.
type Cluster struct {
	T     testing.TB
	Store store.Store
	nodes int
	Hook  failpoint.Hook                      // of its orchestrators; may be nil
	Wrap  func(protocol.Fleet) protocol.Fleet // what workers talk to instead of an orchestrator; may be nil
}

// NewCluster returns a cluster over an empty store, of which nobody runs yet. The store is in
// memory, so that tests do not wait for a disk.
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	return &Cluster{T: t, Store: driver.Open(t)}
}

// NewLargeCluster is NewCluster over a store on a disk, for jobs that do not fit in memory.
func NewLargeCluster(t testing.TB) *Cluster {
	t.Helper()
	return &Cluster{T: t, Store: driver.OpenLarge(t)}
}

// Virtually runs a test in virtual time. That stands still while anybody waits
// for something outside of the test, as a watch on a cluster always does.
func Virtually(t *testing.T, run func(t *testing.T)) {
	t.Helper()
	if _, found := driver.Cluster(t); found {
		t.Skip("time is virtual, and a cluster's is not")
	}
	synctest.Test(t, run)
}

// VirtuallyIfItCan runs a test in virtual time, and on a cluster, whose time is real, in
// real time: a test that waits for a lease, and is right in both.
func VirtuallyIfItCan(t *testing.T, run func(t *testing.T)) {
	t.Helper()
	if _, found := driver.Cluster(t); found {
		run(t)
		return
	}
	synctest.Test(t, run)
}

// A Node is one running orchestrator, with a client of it.
type Node struct {
	*client.Client
	T    testing.TB
	Jobs *jobs.Jobs
	Orch *orchestrator.Orchestrator
	Stop func()
}

// Quick are settings with which tests need not wait long. No worker is late with
// them, however slow the machine: a test of what is late sets its own.
func Quick(c orchestrator.Config) orchestrator.Config {
	c.Heartbeat, c.Lease, c.Grace = 50*time.Millisecond, time.Minute, 100*time.Millisecond
	c.Poll, c.Seal = 100*time.Millisecond, 20*time.Millisecond
	return c
}

// Orchestrator runs an orchestrator until the test ends or stops it.
func (c *Cluster) Orchestrator(config orchestrator.Config) *Node {
	c.T.Helper()

	c.nodes++
	id := mapreduce.NodeID(fmt.Sprintf("node-%d", c.nodes))
	j := jobs.New(store.NewDB(c.Store, store.Config{}), keys.New(), id, time.Now)
	j.SetHook(c.Hook)
	o, err := orchestrator.New(j, config)
	if err != nil {
		c.T.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := o.Run(ctx); err != nil {
			c.T.Error(err)
		}
	})
	<-o.Started()

	// Clients and workers talk to it over the wire, within the process.
	var fleet protocol.Fleet = o
	if c.Wrap != nil {
		fleet = c.Wrap(o)
	}
	srv, err := server.New(o, fleet, server.Config{})
	if err != nil {
		c.T.Fatal(err)
	}
	cl, err := client.NewInProcess(srv, client.Config{})
	if err != nil {
		c.T.Fatal(err)
	}

	n := &Node{Client: cl, T: c.T, Jobs: j, Orch: o}
	n.Stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		if err := cl.Close(); err != nil {
			c.T.Error(err)
		}
		stop, done := context.WithTimeout(context.Background(), 5*time.Second)
		defer done()
		srv.Shutdown(stop)
	})
	c.T.Cleanup(n.Stop)
	return n
}

// Worker runs a worker for nodes and returns what drains it.
func (c *Cluster) Worker(a agent.Agent, config worker.Config, nodes ...*Node) (drain func()) {
	c.T.Helper()
	return c.WorkerFor("scripted", a, config, nodes...)
}

// ByRules returns what runs the units of jobs by rules, those that parse as well.
func ByRules() step.Runner {
	t := rules.New()
	formats, err := document.NewRegistry(plain.TextFormat(), plain.MarkdownFormat(), html.Format())
	if err != nil {
		panic(err)
	}
	t[step.Parse] = parse.Runner{Formats: formats}
	return t
}

// WorkerFor runs a worker for one provider.
func (c *Cluster) WorkerFor(provider string, a agent.Agent, config worker.Config, nodes ...*Node) (drain func()) {
	c.T.Helper()
	for _, n := range nodes {
		config.Connect = append(config.Connect, func(ctx context.Context) (worker.Stream, error) {
			s, err := n.Connect(ctx)
			if err != nil {
				return nil, err
			}
			return trusting{s}, nil
		})
	}

	config.Steps = step.Serving(provider, a)
	w, err := worker.New(config)
	if err != nil {
		c.T.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			c.T.Errorf("worker: %v", err)
		}
	})

	drain = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	c.T.Cleanup(drain)
	return drain
}

// A trusting stream lets its orchestrator be silent for ever. A worker on a machine that
// stood still for some seconds would else leave it, and be late for the grace of quick.
type trusting struct{ worker.Stream }

// Recv implements worker.Stream.
func (s trusting) Recv() (*protocol.ToWorker, error) {
	m, err := s.Stream.Recv()
	if err == nil && m.Welcome != nil {
		m.Welcome.Silence = 0
	}
	return m, err
}

// Documents are n short texts, in the order of their ids.
func Documents(n int) iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		for i := range n {
			d := &mapreduce.Document{ID: mapreduce.DocumentID(fmt.Sprintf("doc-%07d", i)), Content: fmt.Appendf(nil, "text of document %d", i)}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// Script returns a job for scripted agents, which do as vars say; nil is all as usual.
func Script(vars map[string]string) mapreduce.JobSpec {
	return mapreduce.JobSpec{Provider: "scripted", Schema: []byte(`{"type":"object"}`), Vars: vars}
}

// Submit submits a job over so many documents.
func (n *Node) Submit(spec mapreduce.JobSpec, docs int) mapreduce.JobID {
	n.T.Helper()
	job, err := n.SubmitJob(n.T.Context(), spec, Documents(docs))
	if err != nil {
		n.T.Fatal(err)
	}
	return job.ID
}

// End waits until a job does not run, and returns it. It fails only where nothing
// goes on any more.
func (n *Node) End(id mapreduce.JobID) *mapreduce.Job {
	n.T.Helper()
	return n.EndWithin(id, 10*time.Minute)
}

// EndWithin is End for jobs that take longer, or less long, than ten minutes.
func (n *Node) EndWithin(id mapreduce.JobID, most time.Duration) *mapreduce.Job {
	n.T.Helper()
	ctx, cancel := context.WithTimeout(n.T.Context(), most)
	defer cancel()
	var last *mapreduce.Job
	if err := n.WatchJob(ctx, id, func(j *mapreduce.Job) error { last = j; return nil }); err != nil {
		n.T.Fatalf("watching %s: %v; last %+v", id, err, last)
	}
	return last
}

// WantEnd is End, and ends the test unless the job came to a state.
func (n *Node) WantEnd(id mapreduce.JobID, state mapreduce.JobState) *mapreduce.Job {
	n.T.Helper()
	job := n.End(id)
	if job.State != state {
		n.T.Fatalf("job ended %v (%s), want %v", job.State, job.Error, state)
	}
	return job
}

// Nop is an agent that does nothing, at once.
type Nop struct{}

// Run implements agent.Agent.
func (Nop) Run(context.Context, *agent.Task, agent.Calls) (*agent.Result, error) {
	return &agent.Result{Size: 1}, nil
}

// Heal runs units as a scripted agent does, without the script.
type Heal struct{ *scripted.Agent }

// Run implements agent.Agent.
func (h Heal) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	well := *task
	spec := *task.Spec
	spec.Vars = map[string]string{"script.output_bytes": spec.Vars["script.output_bytes"]}
	if spec.Vars["script.output_bytes"] == "" {
		spec.Vars = nil
	}
	well.Spec = &spec
	return h.Agent.Run(ctx, &well, calls)
}

// FleetConfig are the settings of an orchestrator that is one of several.
func FleetConfig() orchestrator.Config {
	c := Steady()
	c.Heartbeat, c.Lease, c.Poll = 300*time.Millisecond, 3*time.Second, 500*time.Millisecond
	return c
}

// Pass lets time pass.
func Pass(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
		t.Fatal(errors.Join(fmt.Errorf("waiting %v", d), context.Cause(t.Context())))
	}
}

// One returns a cluster of one orchestrator and one worker.
func One(t *testing.T, a *scripted.Agent) (*Cluster, *Node) {
	t.Helper()
	c := NewCluster(t)
	n := c.Orchestrator(Quick(orchestrator.Config{Adopt: true}))
	c.Worker(a, worker.Config{Slots: 8, Prefetch: 4}, n)
	return c, n
}

// Units returns all units of a job, by id.
func (n *Node) Units(id mapreduce.JobID) map[mapreduce.UnitID]*mapreduce.Unit {
	n.T.Helper()
	all := make(map[mapreduce.UnitID]*mapreduce.Unit)
	q := mapreduce.ListUnitsQuery{Job: id, PageSize: 7, Inputs: true}
	var begun *mapreduce.Unit // goes on with the next page
	for {
		page, err := n.ListUnits(n.T.Context(), q)
		if err != nil {
			n.T.Fatal(err)
		}
		for _, u := range page.Units {
			if begun != nil && begun.ID == u.ID {
				u.DependsOn = append(begun.DependsOn, u.DependsOn...)
			} else if all[u.ID] != nil {
				n.T.Errorf("unit %s is listed twice", u.ID)
			}
			all[u.ID], begun = u, nil
			if u.Continues {
				begun = u
			}
		}
		if q.PageToken = page.NextPageToken; q.PageToken == "" {
			return all
		}
	}
}

var errEnough = errors.New("seen enough")

// Until watches a job until seen is true of it.
func (n *Node) Until(id mapreduce.JobID, seen func(*mapreduce.Job) bool) {
	n.T.Helper()
	err := n.WatchJob(n.T.Context(), id, func(j *mapreduce.Job) error {
		if seen(j) {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		n.T.Fatalf("watch ended with %v", err)
	}
}
