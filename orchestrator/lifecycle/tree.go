package lifecycle

import (
	"context"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// unblockReduces lets go the reduces of a job's tree whose inputs have ended, as turns of
// this node have noted.
func (a *advancer) unblockReduces(ctx context.Context, id mapreduce.JobID) error {
	refs := a.signals.TakeEndedInputs(id)
	for len(refs) > 0 {
		batch := refs[:min(len(refs), queue.MaxUnblock)]
		ready, told, err := a.jobs.Turns.Unblock(ctx, id, batch)
		if err != nil {
			if errs.KindOf(err) != errs.NotFound {
				a.signals.KeepEndedInputs(id, refs)
			}
			return err
		}

		refs = append(refs[len(batch):], told...) // a reduce that was skipped has ended too
		a.scheduler.Enqueue(id, ready)
		if len(told) > 0 { // which may be all that was left
			a.signals.NotifyWatchers(id)
			a.signals.MarkDue(id)
		}
	}
	return nil
}

// unblockAll lets go the reduces that nodes which died have not let go.
func (a *advancer) unblockAll(ctx context.Context, id mapreduce.JobID) error {
	for at := (records.WaitRef{}); ; {
		refs, err := a.jobs.Turns.Forgotten(ctx, id, at, queue.MaxUnblock)
		if err != nil || len(refs) == 0 {
			return err
		}

		at = refs[len(refs)-1]
		at.Index++
		a.signals.KeepEndedInputs(id, refs)
		if err := a.unblockReduces(ctx, id); err != nil {
			return err
		}
	}
}

// ascendLevel turns a tree to the next level. Whatever waited for the level that has
// ended has to run now.
func (a *advancer) ascendLevel(ctx context.Context, id mapreduce.JobID, s *lifecycle.Status) error {
	if err := a.unblockAll(ctx, id); err != nil {
		return err
	}
	return a.jobs.Levels.Ascend(ctx, id, s.Epoch)
}
