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
func (m *Manager) unblockReduces(ctx context.Context, id mapreduce.JobID) error {
	refs := m.signals.TakeEndedInputs(id)
	for len(refs) > 0 {
		batch := refs[:min(len(refs), queue.MaxUnblock)]
		ready, told, err := m.jobs.Turns.Unblock(ctx, id, batch)
		if err != nil {
			if errs.KindOf(err) != errs.NotFound {
				m.signals.KeepEndedInputs(id, refs)
			}
			return err
		}

		refs = append(refs[len(batch):], told...) // a reduce that was skipped has ended too
		m.scheduler.Enqueue(id, ready)
		if len(told) > 0 { // which may be all that was left
			m.signals.NotifyWatchers(id)
			m.signals.MarkDue(id)
		}
	}
	return nil
}

// unblockAll lets go the reduces that nodes which died have not let go.
func (m *Manager) unblockAll(ctx context.Context, id mapreduce.JobID) error {
	for at := (records.WaitRef{}); ; {
		refs, err := m.jobs.Turns.Forgotten(ctx, id, at, queue.MaxUnblock)
		if err != nil || len(refs) == 0 {
			return err
		}

		at = refs[len(refs)-1]
		at.Index++
		m.signals.KeepEndedInputs(id, refs)
		if err := m.unblockReduces(ctx, id); err != nil {
			return err
		}
	}
}

// ascendLevel turns a tree to the next level. Whatever waited for the level that has
// ended has to run now.
func (m *Manager) ascendLevel(ctx context.Context, id mapreduce.JobID, s *lifecycle.Status) error {
	if err := m.unblockAll(ctx, id); err != nil {
		return err
	}
	return m.jobs.Levels.Ascend(ctx, id, s.Epoch)
}
