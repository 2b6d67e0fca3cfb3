package orchestrator_test

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/mapreduce"
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

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, driver.Leaks()...) }

// A testCluster is orchestrators and workers over one store, in this process.
type testCluster struct {
	t     testing.TB
	store store.Store
	nodes int
	hook  failpoint.Hook                        // of its orchestrators; may be nil
	wrap  func(mapreduce.Fleet) mapreduce.Fleet // what workers talk to instead of an orchestrator; may be nil
}

func newCluster(t testing.TB) *testCluster {
	t.Helper()
	return &testCluster{t: t, store: driver.OpenOnDisk(t)}
}

// virtually runs a test in virtual time. That stands still while anybody waits
// for something outside of the test, as a watch on a cluster always does.
func virtually(t *testing.T, run func(t *testing.T)) {
	t.Helper()
	if _, found := driver.Cluster(t); found {
		t.Skip("time is virtual, and a cluster's is not")
	}
	synctest.Test(t, run)
}

// virtuallyIfItCan runs a test in virtual time, and on a cluster, whose time is real, in
// real time: a test that waits for a lease, and is right in both.
func virtuallyIfItCan(t *testing.T, run func(t *testing.T)) {
	t.Helper()
	if _, found := driver.Cluster(t); found {
		run(t)
		return
	}
	synctest.Test(t, run)
}

// A node is one running orchestrator, with a client of it.
type node struct {
	*client.Client
	t    testing.TB
	jobs *jobs.Jobs
	orch *orchestrator.Orchestrator
	stop func()
}

// quick are settings with which tests need not wait long. No worker is late with
// them, however slow the machine: a test of what is late sets its own.
func quick(c orchestrator.Config) orchestrator.Config {
	c.Heartbeat, c.Lease, c.Grace = 50*time.Millisecond, time.Minute, 100*time.Millisecond
	c.Poll, c.Seal = 100*time.Millisecond, 20*time.Millisecond
	return c
}

func (c *testCluster) orchestrator(config orchestrator.Config) *node {
	c.t.Helper()
	c.nodes++
	id := mapreduce.NodeID(fmt.Sprintf("node-%d", c.nodes))
	j := jobs.New(store.NewDB(c.store, store.Config{}), keys.New(), id, time.Now)
	j.SetHook(c.hook)
	o, err := orchestrator.New(j, config)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := o.Run(ctx); err != nil {
			c.t.Error(err)
		}
	})
	<-o.Started()
	var fleet mapreduce.Fleet = o
	if c.wrap != nil {
		fleet = c.wrap(o)
	}
	srv, err := server.New(o, fleet, server.Config{})
	if err != nil {
		c.t.Fatal(err)
	}
	cl, err := client.NewInProcess(srv, client.Config{})
	if err != nil {
		c.t.Fatal(err)
	}
	n := &node{Client: cl, t: c.t, jobs: j, orch: o}
	n.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		if err := cl.Close(); err != nil {
			c.t.Error(err)
		}
		stop, done := context.WithTimeout(context.Background(), 5*time.Second)
		defer done()
		srv.Shutdown(stop)
	})
	c.t.Cleanup(n.stop)
	return n
}

// worker runs a worker for nodes and returns what drains it.
func (c *testCluster) worker(a agent.Agent, config worker.Config, nodes ...*node) (drain func()) {
	c.t.Helper()
	return c.workerFor("scripted", a, config, nodes...)
}

// byRules returns what runs the units of jobs by rules, those that parse as well.
func byRules() step.Runner {
	t := rules.New()
	formats, err := document.NewRegistry(plain.TextFormat(), plain.MarkdownFormat(), html.Format())
	if err != nil {
		panic(err)
	}
	t[step.Parse] = parse.Runner{Formats: formats}
	return t
}

// workerFor runs a worker for one provider.
func (c *testCluster) workerFor(provider string, a agent.Agent, config worker.Config, nodes ...*node) (drain func()) {
	c.t.Helper()
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
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			c.t.Errorf("worker: %v", err)
		}
	})
	drain = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	c.t.Cleanup(drain)
	return drain
}

// A trusting stream lets its orchestrator be silent for ever. A worker on a machine that
// stood still for some seconds would else leave it, and be late for the grace of quick.
type trusting struct{ worker.Stream }

func (s trusting) Recv() (*mapreduce.ToWorker, error) {
	m, err := s.Stream.Recv()
	if err == nil && m.Welcome != nil {
		m.Welcome.Silence = 0
	}
	return m, err
}

func documents(n int) iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		for i := range n {
			d := &mapreduce.Document{ID: mapreduce.DocumentID(fmt.Sprintf("doc-%07d", i)), Content: fmt.Appendf(nil, "text of document %d", i)}
			if !yield(d, nil) {
				return
			}
		}
	}
}

func script(vars map[string]string) mapreduce.JobSpec {
	return mapreduce.JobSpec{Provider: "scripted", Schema: []byte(`{"type":"object"}`), Vars: vars}
}

func (n *node) submit(spec mapreduce.JobSpec, docs int) mapreduce.JobID {
	n.t.Helper()
	job, err := n.SubmitJob(n.t.Context(), spec, documents(docs))
	if err != nil {
		n.t.Fatal(err)
	}
	return job.ID
}

// end waits until a job does not run, and returns it. It fails only where nothing
// goes on any more.
func (n *node) end(id mapreduce.JobID) *mapreduce.Job {
	n.t.Helper()
	return n.endWithin(id, 10*time.Minute)
}

func (n *node) endWithin(id mapreduce.JobID, most time.Duration) *mapreduce.Job {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), most)
	defer cancel()
	var last *mapreduce.Job
	if err := n.WatchJob(ctx, id, func(j *mapreduce.Job) error { last = j; return nil }); err != nil {
		n.t.Fatalf("watching %s: %v; last %+v", id, err, last)
	}
	return last
}

func (n *node) wantEnd(id mapreduce.JobID, state mapreduce.JobState) *mapreduce.Job {
	n.t.Helper()
	job := n.end(id)
	if job.State != state {
		n.t.Fatalf("job ended %v (%s), want %v", job.State, job.Error, state)
	}
	return job
}

func TestOneJobFromEndToEnd(t *testing.T) {
	c := newCluster(t)
	n := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
	c.worker(&scripted.Agent{}, worker.Config{Slots: 8, Prefetch: 4}, n)
	job := n.wantEnd(n.submit(script(nil), 100), mapreduce.JobComplete)
	if job.CompletedUnits != job.TotalUnits || job.TotalUnits < 101 || job.FailedUnits != 0 || job.RunningUnits != 0 {
		t.Errorf("units: %d of %d complete, %d failed, %d running", job.CompletedUnits, job.TotalUnits, job.FailedUnits, job.RunningUnits)
	}
	if l := job.Coverage.Documents; l.Total != 100 || l.Mapped != 100 {
		t.Errorf("ledger of documents: %+v", l)
	}
}

// BenchmarkUnits measures units a second through the whole path.
func BenchmarkUnits(b *testing.B) {
	c := newCluster(b)
	n := c.orchestrator(orchestrator.Config{Adopt: true, MaxCalls: 1000})
	spec := script(nil)
	spec.Parallelism = 64
	spec.ReduceContextLimit = 1 << 60
	c.worker(nop{}, worker.Config{Slots: 64, Prefetch: 128}, n)
	id := n.submit(spec, b.N)
	b.ResetTimer()
	n.wantEnd(id, mapreduce.JobComplete)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "units/s")
	b.ReportMetric(float64(n.jobs.DB().Stats().Commits.Load())/float64(b.N), "commits/unit")
}

type nop struct{}

func (nop) Run(context.Context, *agent.Task, agent.Calls) (*agent.Result, error) {
	return &agent.Result{Size: 1}, nil
}

// heal runs units as a scripted agent does, without the script.
type heal struct{ *scripted.Agent }

func (h heal) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	well := *task
	spec := *task.Spec
	spec.Vars = map[string]string{"script.output_bytes": spec.Vars["script.output_bytes"]}
	if spec.Vars["script.output_bytes"] == "" {
		spec.Vars = nil
	}
	well.Spec = &spec
	return h.Agent.Run(ctx, &well, calls)
}
