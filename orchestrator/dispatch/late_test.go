package dispatch_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// A level that is planned again counts its attempts from the start, and a result
// made of what its inputs were before must not be taken for one of them.
func TestAReportOfALevelThatWasDroppedIsStale(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	id := n.Submit(enginetest.Script(nil), 2)
	old := enginetest.Greet(t, n, "old", 1)
	old.Report(old.Assigned(), enginetest.AsIs)
	old.Report(old.Assigned(), func(r *protocol.Report) { r.Outcome, r.Class = protocol.Errored, protocol.PermanentUnit })
	final := old.Assigned()
	if final.Unit != mapreduce.FinalUnit {
		t.Fatalf("assigned %v, want the final reduce", final)
	}
	if _, err := n.PauseJob(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	old.Cut()
	for begun := time.Now(); ; <-time.After(10 * time.Millisecond) {
		if job, err := n.GetJob(t.Context(), id); err != nil || job.RunningUnits == 0 {
			break
		} else if time.Since(begun) > soonFailed { // it has the lease if the machine stood still
			t.Fatal("the worker is not given up")
		}
	}
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil {
		t.Fatal(err)
	}
	w := enginetest.Greet(t, n, "new", 1)
	w.Report(w.Assigned(), enginetest.AsIs)
	if again := w.Assigned(); again.Unit != final.Unit || again.Attempt != final.Attempt {
		t.Fatalf("assigned %v, want %v again", again, final)
	}
	old = enginetest.Greet(t, n, "old", 1, final)
	if v := old.Report(final, enginetest.AsIs); v != protocol.Stale {
		t.Errorf("verdict %v on a report of a reduce that was dropped, want stale", v)
	}
}

func TestAJobThatRunsOnAnotherNodeIsNotStuck(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) { // a busy machine may take 300 ms until the first unit runs
		c := enginetest.NewCluster(t)
		config := enginetest.Quick(orchestrator.Config{Adopt: true})
		config.Stuck = 300 * time.Millisecond
		a, b := c.Orchestrator(config), c.Orchestrator(config)
		c.WorkerFor("other", &scripted.Agent{}, worker.Config{Slots: 2}, a)
		c.Worker(&scripted.Agent{}, worker.Config{Slots: 2, Prefetch: 2}, b)
		b.WantEnd(b.Submit(enginetest.Script(map[string]string{"script.latency": "300ms"}), 10), mapreduce.JobComplete)
	})
}

// Nothing of a job runs while its next level is planned.
func TestAJobThatRestsBetweenTwoLevelsIsNotStuck(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		c.Hook = func(p failpoint.Point) {
			if p == failpoint.Plan.Before() {
				<-time.After(2 * time.Second)
			}
		}
		config := orchestrator.Config{Adopt: true, Stuck: 5 * time.Second}
		a, b := c.Orchestrator(config), c.Orchestrator(config)
		c.WorkerFor("other", &scripted.Agent{}, worker.Config{Slots: 2}, a)
		c.Worker(&scripted.Agent{}, worker.Config{Slots: 32}, b)
		spec := enginetest.Script(map[string]string{"script.latency": "300ms"})
		spec.ReduceBatchSize, spec.ReduceContextLimit = 2, 8
		job := b.WantEnd(b.Submit(spec, 64), mapreduce.JobComplete)
		if job.Level < 5 {
			t.Errorf("the job has ended at level %d; it is to rest often", job.Level)
		}
	})
}

func TestDocumentsWithMuchMetadata(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	drain := c.Worker(&scripted.Agent{}, worker.Config{Slots: 64, Prefetch: 64}, n)
	spec := enginetest.Script(map[string]string{"script.permanent_rate": "1"})
	spec.Parallelism = 1000
	job, err := n.SubmitJob(t.Context(), spec, func(yield func(*mapreduce.Document, error) bool) {
		for i := range 600 {
			d := &mapreduce.Document{
				ID: mapreduce.DocumentID(fmt.Sprint(i)), Content: []byte("text"),
				Metadata: map[string]string{"abstract": strings.Repeat("x", 4<<10-8)},
			}
			if !yield(d, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	n.WantEnd(job.ID, mapreduce.JobFailed)
	drain()
	c.Worker(enginetest.Heal{Agent: &scripted.Agent{}}, worker.Config{Slots: 64, Prefetch: 64}, n)
	if _, err := n.ResumeJob(t.Context(), job.ID, mapreduce.Resume{}); err != nil {
		t.Fatal(err)
	}
	n.WantEnd(job.ID, mapreduce.JobComplete)
}

// A worker that serves for months must not remember every job of them.
func TestWorkersAreToldToForgetJobs(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(orchestrator.Config{Adopt: true})
	w := enginetest.Greet(t, n, "w", 1)
	for range 3 {
		id := n.Submit(enginetest.Script(nil), 1)
		m := w.Until(func(m *protocol.ToWorker) bool { return len(m.Jobs) > 0 })
		if m.Jobs[0].Job != id {
			t.Errorf("introduced %s, want %s", m.Jobs[0].Job, id)
		}
		if len(m.Assignments) == 0 {
			m = w.Until(func(m *protocol.ToWorker) bool { return len(m.Assignments) > 0 })
		}
		w.Report(heldBy(m), enginetest.AsIs)
		w.Report(w.Assigned(), enginetest.AsIs) // the final reduce
		m = w.Until(func(m *protocol.ToWorker) bool { return len(m.Forget) > 0 })
		if m.Forget[0] != id {
			t.Errorf("told to forget %s, want %s", m.Forget[0], id)
		}
	}
}

func heldBy(m *protocol.ToWorker) protocol.Held {
	a := m.Assignments[0]
	return protocol.Held{Job: a.Job, Unit: a.Unit, Attempt: a.Attempt, Running: true}
}
