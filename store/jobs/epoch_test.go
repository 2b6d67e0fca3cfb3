package jobs_test

import (
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
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
