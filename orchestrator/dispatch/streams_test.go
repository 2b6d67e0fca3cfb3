package dispatch_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

func TestAStreamThatSaysNothingDoesNotKeepAnOrchestrator(t *testing.T) {
	c := enginetest.NewCluster(t)
	config := enginetest.Quick(orchestrator.Config{Adopt: true})
	config.Lease = time.Hour
	n := c.Orchestrator(config)
	if _, err := n.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := enginetest.Greet(t, n, "worker", 1) // the stream before it has arrived
	w.Until(func(m *protocol.ToWorker) bool { return m.Welcome != nil })
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		n.Stop()
	}()
	select {
	case <-stopped:
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for a worker that never said hello")
	}
}

func TestAStreamThatSaysNothingEnds(t *testing.T) {
	c := enginetest.NewCluster(t)
	config := enginetest.Quick(orchestrator.Config{Adopt: true})
	config.Lease = 500 * time.Millisecond
	n := c.Orchestrator(config)
	s, err := n.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if m, err := s.Recv(); err == nil {
		t.Errorf("it was answered %+v", m)
	}
}

// What a worker holds that does not read goes to others, however much waits for
// it.
func TestAWorkerThatDoesNotReadIsLost(t *testing.T) {
	c := enginetest.NewCluster(t)
	config := enginetest.Quick(orchestrator.Config{Adopt: true})
	config.Lease = 5 * time.Second
	n := c.Orchestrator(config)
	spec := enginetest.Script(nil)
	spec.MaxTokensPerUnit = 1 << 30
	text := []byte(strings.Repeat("x y ", 50_000))
	job, err := n.SubmitJob(t.Context(), spec, func(yield func(*mapreduce.Document, error) bool) {
		for i := range 30 {
			if !yield(&mapreduce.Document{ID: mapreduce.DocumentID(fmt.Sprint(i)), Content: text}, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	enginetest.Greet(t, n, "deaf", 100) // only now: its lease runs from here, and to submit 6 MB may take longer
	n.Until(job.ID, func(j *mapreduce.Job) bool { return j.RunningUnits >= 20 })
	c.Worker(&scripted.Agent{}, worker.Config{Slots: 4}, n)
	n.WantEnd(job.ID, mapreduce.JobComplete)
}

// A worker that comes back while it drains says so in its first message alone.
func TestAWorkerThatDrainsFromTheStartIsGivenNothing(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	id := n.Submit(enginetest.Script(nil), 4)
	w := enginetest.GreetWith(t, n, &protocol.FromWorker{Drain: true, Hello: &protocol.Hello{
		Session: "leaving", Slots: 4, Offer: mapreduce.Offer{Providers: []string{"scripted"}},
	}})
	w.Until(func(m *protocol.ToWorker) bool { return m.Welcome != nil })
	c.Worker(&scripted.Agent{}, worker.Config{Slots: 4}, n)
	n.WantEnd(id, mapreduce.JobComplete)
	for _, u := range n.Units(id) {
		if u.Attempts != 1 {
			t.Errorf("unit %s had %d attempts: it was given to the worker that leaves", u.ID, u.Attempts)
		}
	}
}

// Two streams of a session are bound at once, and the one that was bound first is the
// first to be taken up. The other replaces it, and nothing is counted twice.
func TestStreamsOfASessionThatAreBoundAtOnce(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		bound := []chan struct{}{make(chan struct{}), make(chan struct{})}
		var binds atomic.Int64
		c.Hook = func(p failpoint.Point) {
			if p == failpoint.Bind.After() {
				if i := binds.Add(1); i > 1 {
					<-bound[i-2]
				}
			}
		}
		n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
		w := enginetest.Greet(t, n, "worker", 1)
		spec := enginetest.Script(nil)
		spec.Parallelism = 1
		n.Submit(spec, 2)
		held := w.Assigned()
		w.Cut()
		older := enginetest.Greet(t, n, "worker", 1, held)
		enginetest.Pass(t, time.Second)
		newer := enginetest.Greet(t, n, "worker", 1, held)
		enginetest.Pass(t, time.Second)
		for _, b := range bound {
			close(b)
			enginetest.Pass(t, time.Second)
		}
		for {
			if _, err := older.Recv(); err != nil {
				if errs.KindOf(err) != errs.Aborted {
					t.Errorf("the older stream ended with %v", err)
				}
				break
			}
		}
		if v := newer.Report(held, enginetest.AsIs); v != protocol.Accepted {
			t.Errorf("the verdict on the newer stream is %v", v)
		}
		newer.Assigned() // of two units at most one may run at once
	})
}
