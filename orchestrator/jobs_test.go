package orchestrator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

func TestFailures(t *testing.T) {
	_, n := enginetest.One(t, &scripted.Agent{})
	t.Run("one unit fails, the rest is reduced", func(t *testing.T) {
		id := n.Submit(enginetest.Script(map[string]string{"script.poison.doc-0000003": "permanent"}), 10)
		job := n.WantEnd(id, mapreduce.JobComplete)
		if job.FailedUnits != 1 || job.CompletedUnits != 10 {
			t.Errorf("%d units failed, %d completed; want 1 and 10", job.FailedUnits, job.CompletedUnits)
		}
		u := n.Units(id)["doc-0000003"]
		if u.State != mapreduce.UnitFailed || len(u.Errors) == 0 || u.Attempts != 1 {
			t.Errorf("poisoned unit: %+v", u)
		}
		if l := job.Coverage.Documents; l.Mapped != 9 || l.Failed != 1 {
			t.Errorf("ledger: %+v", l)
		}
	})
	t.Run("fail-fast", func(t *testing.T) {
		spec := enginetest.Script(map[string]string{"script.poison.doc-0000003": "permanent"})
		spec.OnError = mapreduce.FailFast
		job := n.WantEnd(n.Submit(spec, 10), mapreduce.JobFailed)
		if !strings.Contains(job.Error, "doc-0000003") {
			t.Errorf("error is %q, want it to name the unit", job.Error)
		}
	})
	t.Run("A17: all units fail, no reducer runs", func(t *testing.T) {
		id := n.Submit(enginetest.Script(map[string]string{"script.permanent_rate": "1"}), 5)
		job := n.WantEnd(id, mapreduce.JobFailed)
		if job.TotalUnits != 5 || job.FailedUnits != 5 {
			t.Errorf("%d units, %d failed; want 5 and 5", job.TotalUnits, job.FailedUnits)
		}
	})
	t.Run("a unit that always fails uses up its attempts", func(t *testing.T) {
		spec := enginetest.Script(map[string]string{"script.poison.doc-0000000": "fail", "script.tokens_in": "7"})
		spec.MaxAttempts, spec.BreakerThreshold = 2, 100
		id := n.Submit(spec, 3)
		job := n.WantEnd(id, mapreduce.JobComplete)
		if u := n.Units(id)["doc-0000000"]; u.Attempts != 2 || u.State != mapreduce.UnitFailed {
			t.Errorf("unit: %+v", u)
		}
		if want := int64(7 * (2 + 1)); job.TotalTokens.In != want {
			t.Errorf("tokens in: %d, want %d", job.TotalTokens.In, want)
		}
	})
}

func TestWorkerThatLeavesHandsBack(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	hanging := c.Worker(&scripted.Agent{}, worker.Config{Slots: 4, DrainTimeout: 10 * time.Millisecond}, n)
	id := n.Submit(enginetest.Script(map[string]string{"script.latency": "1h"}), 4)
	n.Until(id, func(j *mapreduce.Job) bool { return j.RunningUnits == 4 })
	hanging()
	c.Worker(enginetest.Heal{Agent: &scripted.Agent{}}, worker.Config{Slots: 4}, n)
	job := n.WantEnd(id, mapreduce.JobComplete)
	if job.FailedUnits != 0 {
		t.Errorf("%d units failed", job.FailedUnits)
	}
	for _, u := range n.Units(id) {
		if u.Failures != 0 {
			t.Errorf("unit %s has %d failures; being handed back is none", u.ID, u.Failures)
		}
	}
}

// Workers whose orchestrator leaves take what they run to another. Nothing that
// was begun is begun again; what was on its way to a worker just then may come a
// second time.
func TestAnyNodeCarriesOn(t *testing.T) {
	c := enginetest.NewCluster(t)
	config := enginetest.Quick(orchestrator.Config{Adopt: true})
	config.Grace = 10 * time.Second
	a, b := c.Orchestrator(config), c.Orchestrator(config)
	made := enginetest.NewCounter()
	c.Worker(made, worker.Config{Slots: 4}, a, b)
	c.Worker(made, worker.Config{Slots: 4}, b, a)
	spec := enginetest.Script(map[string]string{"script.latency": "5ms", "script.output_bytes": "500"})
	spec.ReduceContextLimit = 10
	id := a.Submit(spec, 300)
	b.Until(id, func(j *mapreduce.Job) bool { return j.CompletedUnits > 50 })
	a.Stop()
	job := b.WantEnd(id, mapreduce.JobComplete)
	if job.CompletedUnits != 300+30+3+1 || job.FailedUnits != 0 {
		t.Errorf("job: %+v", job)
	}
	made.Mu.Lock()
	defer made.Mu.Unlock()
	begun := make(map[mapreduce.UnitID]int)
	for attempt, times := range made.Begun {
		begun[attempt.Unit] += times
	}
	for unit, times := range begun {
		if times != 1 {
			t.Errorf("unit %s was begun %d times: its worker never stopped", unit, times)
		}
	}
	if len(begun) != 334 {
		t.Errorf("%d units were begun, want 334", len(begun))
	}
}
