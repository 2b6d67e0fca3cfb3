package jobs_test

import (
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/queue"
)

// A node that saw a job out of budget, or failing, may come to say so only once
// somebody has resumed it.
func TestWhatWasSeenOfAnEarlierEpochStopsNothing(t *testing.T) {
	w := newWorld(t, open(t), 2)
	slow, other := w.nodes[0], w.nodes[1]
	id := w.submit(slow, spec(), texts(3))
	seen, err := slow.Levels.Status(w.ctx, id)
	w.must(err)
	w.must(other.Lifecycle.Pause(w.ctx, id, seen.Epoch, "asked for"))
	w.must(other.Lifecycle.Resume(w.ctx, id, mapreduce.Resume{}))
	w.must(slow.Lifecycle.Pause(w.ctx, id, seen.Epoch, "no budget is left"))
	w.must(slow.Lifecycle.Fail(w.ctx, id, seen.Epoch, "all units failed"))
	if job := w.job(id); !job.State.Running() || job.Error != "" {
		t.Errorf("job is %v: %s", job.State, job.Error)
	}
	refs, err := slow.View.Runs(w.ctx)
	w.must(err)
	now, err := slow.Levels.Status(w.ctx, id)
	w.must(err)
	if len(refs) != 1 || refs[0].Epoch != now.Epoch || now.Epoch == seen.Epoch {
		t.Errorf("listed to run: %+v, at epoch %d", refs, now.Epoch)
	}
	w.must(slow.Lifecycle.Fail(w.ctx, id, now.Epoch, "all units failed"))
	if job := w.job(id); job.State != mapreduce.JobFailed {
		t.Errorf("job is %v", job.State)
	}
	w.healthy()
}

// A turn that learns that no unit of its job can succeed claims none, whoever has a slot.
// What it would have claimed still waits, and so does the unit whose report said so.
func TestATurnWithAFailureOfTheJobClaimsNothing(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(5))
	s, _ := w.bind(j, "worker")
	u := w.claim(j, id, s, 1)[0]
	claim := w.claimOf(j, id, s, 3)
	res := w.turn(j, &queue.Turn{
		Job: id, Claim: claim,
		Reports: []queue.Report{{Report: errored(id, u, mapreduce.PermanentJob), Session: s.id}},
	})
	if res.JobError != "it broke" || len(res.Claimed) > 0 || len(res.Left) != len(claim.Candidates) {
		t.Errorf("error %q, %d claimed and %d left of %d", res.JobError, len(res.Claimed), len(res.Left), len(claim.Candidates))
	}
	if again := w.claim(j, id, s, 5); len(again) != 5 { // as after a resume
		t.Errorf("%d units wait, want 5", len(again))
	}
	w.healthy()
}
