package orchestrator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

func TestAStreamThatSaysNothingDoesNotKeepAnOrchestrator(t *testing.T) {
	c := newCluster(t)
	config := quick(orchestrator.Config{Adopt: true})
	config.Lease = time.Hour
	n := c.orchestrator(config)
	if _, err := n.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := greet(t, n, "worker", 1) // the stream before it has arrived
	w.until(func(m *mapreduce.ToWorker) bool { return m.Welcome != nil })
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		n.stop()
	}()
	select {
	case <-stopped:
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for a worker that never said hello")
	}
}

func TestAStreamThatSaysNothingEnds(t *testing.T) {
	c := newCluster(t)
	config := quick(orchestrator.Config{Adopt: true})
	config.Lease = 500 * time.Millisecond
	n := c.orchestrator(config)
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
	c := newCluster(t)
	config := quick(orchestrator.Config{Adopt: true})
	config.Lease = 5 * time.Second
	n := c.orchestrator(config)
	greet(t, n, "deaf", 100)
	spec := script(nil)
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
	n.until(job.ID, func(j *mapreduce.Job) bool { return j.RunningUnits >= 20 })
	c.worker(&scripted.Agent{}, worker.Config{Slots: 4}, n)
	n.wantEnd(job.ID, mapreduce.JobComplete)
}

// A worker that comes back while it drains says so in its first message alone.
func TestAWorkerThatDrainsFromTheStartIsGivenNothing(t *testing.T) {
	c := newCluster(t)
	n := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
	id := n.submit(script(nil), 4)
	w := greetWith(t, n, &mapreduce.FromWorker{Drain: true, Hello: &mapreduce.Hello{
		Session: "leaving", Slots: 4, Agents: []string{"scripted"},
	}})
	w.until(func(m *mapreduce.ToWorker) bool { return m.Welcome != nil })
	c.worker(&scripted.Agent{}, worker.Config{Slots: 4}, n)
	n.wantEnd(id, mapreduce.JobComplete)
	for _, u := range n.units(id) {
		if u.Attempts != 1 {
			t.Errorf("unit %s had %d attempts: it was given to the worker that leaves", u.ID, u.Attempts)
		}
	}
}
