package queue_test

import (
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/queue"
)

// A node that saw a job out of budget, or failing, may come to say so only once
// somebody has resumed it.
func TestWhatWasSeenOfAnEarlierEpochStopsNothing(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 2)
	slow, other := w.Nodes[0], w.Nodes[1]
	id := w.Submit(slow, jobstest.Spec(), jobstest.Texts(3))
	seen, err := slow.Levels.Status(w.Ctx, id)
	w.Must(err)
	w.Must(other.Lifecycle.Pause(w.Ctx, id, seen.Epoch, "asked for"))
	w.Must(other.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
	w.Must(slow.Lifecycle.Pause(w.Ctx, id, seen.Epoch, "no budget is left"))
	w.Must(slow.Lifecycle.Fail(w.Ctx, id, seen.Epoch, "all units failed"))
	if job := w.Job(id); !job.State.Running() || job.Error != "" {
		t.Errorf("job is %v: %s", job.State, job.Error)
	}
	refs, err := slow.View.Runs(w.Ctx)
	w.Must(err)
	now, err := slow.Levels.Status(w.Ctx, id)
	w.Must(err)
	if len(refs) != 1 || refs[0].Epoch != now.Epoch || now.Epoch == seen.Epoch {
		t.Errorf("listed to run: %+v, at epoch %d", refs, now.Epoch)
	}
	w.Must(slow.Lifecycle.Fail(w.Ctx, id, now.Epoch, "all units failed"))
	if job := w.Job(id); job.State != mapreduce.JobFailed {
		t.Errorf("job is %v", job.State)
	}
	w.Healthy()
}

// A turn that learns that no unit of its job can succeed claims none, whoever has a slot.
// What it would have claimed still waits, and so does the unit whose report said so.
func TestATurnWithAFailureOfTheJobClaimsNothing(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(5))
	s, _ := w.Bind(j, "worker")
	u := w.Claim(j, id, s, 1)[0]
	claim := w.ClaimOf(j, id, s, 3)
	res := w.Turn(j, &queue.Turn{
		Job: id, Claim: claim,
		Reports: []queue.Report{{Report: jobstest.Errored(id, u, protocol.PermanentJob), Session: s.ID}},
	})
	if res.JobError != "it broke" || len(res.Claimed) > 0 || len(res.Left) != len(claim.Candidates) {
		t.Errorf("error %q, %d claimed and %d left of %d", res.JobError, len(res.Claimed), len(res.Left), len(claim.Candidates))
	}
	if again := w.Claim(j, id, s, 5); len(again) != 5 { // as after a resume
		t.Errorf("%d units wait, want 5", len(again))
	}
	w.Healthy()
}
