package lifecycle_test

import (
	"testing"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

func TestResumeTriesFailedUnitsAgain(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	drain := c.Worker(&scripted.Agent{}, worker.Config{Slots: 8}, n)
	spec := enginetest.Script(map[string]string{
		"script.poison.doc-0000003": "permanent", "script.poison.doc-0000017": "permanent", "script.output_bytes": "500",
	})
	spec.ReduceContextLimit = 10
	id := n.Submit(spec, 30)
	before := n.WantEnd(id, mapreduce.JobComplete)
	if before.FailedUnits == 0 {
		t.Fatal("no unit failed: the test shows nothing")
	}
	drain()
	c.Worker(enginetest.Heal{Agent: &scripted.Agent{}}, worker.Config{Slots: 8}, n)
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil {
		t.Fatal(err)
	}
	after := n.WantEnd(id, mapreduce.JobComplete)
	if after.FailedUnits != 0 || after.CompletedUnits != 30+3+1 || after.Coverage.Documents.Mapped != 30 {
		t.Errorf("after resume: %+v", after)
	}
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); errs.KindOf(err) != errs.Precondition {
		t.Errorf("resume of a complete job: %v, want a failed precondition", err)
	}
}

func TestPauseResumeCancelDelete(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	id := n.Submit(enginetest.Script(nil), 20)
	if job, err := n.PauseJob(t.Context(), id); err != nil || job.State != mapreduce.JobPaused {
		t.Fatalf("pause: %+v, %v", job, err)
	}
	if err := n.DeleteJob(t.Context(), "mr_20000101_aaaaaa"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("delete of no job: %v", err)
	}
	if job, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil || job.State != mapreduce.Mapping {
		t.Fatalf("resume: %+v, %v", job, err)
	}
	c.Worker(&scripted.Agent{}, worker.Config{Slots: 2}, n) // only now, or all might be mapped before ResumeJob looks
	n.WantEnd(id, mapreduce.JobComplete)
	if _, err := n.CancelJob(t.Context(), id); errs.KindOf(err) != errs.Precondition {
		t.Errorf("cancel of a complete job: %v", err)
	}
	if err := n.DeleteJob(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := n.GetJob(t.Context(), id); errs.KindOf(err) != errs.NotFound {
		t.Errorf("after delete: %v", err)
	}
}

func TestCancelStopsWhatRuns(t *testing.T) {
	_, n := enginetest.One(t, &scripted.Agent{})
	id := n.Submit(enginetest.Script(map[string]string{"script.latency": "1h"}), 20)
	n.Until(id, func(j *mapreduce.Job) bool { return j.RunningUnits >= 8 })
	if _, err := n.CancelJob(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	n.WantEnd(id, mapreduce.JobCancelled)
	next := n.Submit(enginetest.Script(nil), 5) // the slots are free again
	n.WantEnd(next, mapreduce.JobComplete)
	for _, u := range n.Units(id) {
		if u.State != mapreduce.UnitCancelled {
			t.Errorf("unit %s is %v", u.ID, u.State)
		}
	}
}
