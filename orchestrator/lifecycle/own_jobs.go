package lifecycle

import (
	"context"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// RefreshJobs puts the jobs that may run on the scheduler, and has those looked at that may
// not any more. What it acts on it reads again: those that look returns may be as old as a
// heartbeat.
func (m *Manager) RefreshJobs(ctx context.Context, look func(context.Context) ([]records.RunRef, error)) error {
	refs, err := look(ctx)
	if err != nil {
		return err
	}

	runs := make(map[mapreduce.JobID]bool, len(refs))
	for _, ref := range refs {
		runs[ref.Job] = true
		if !m.isOwnJob(ref.Job) || m.scheduler.HasEpoch(ref.Job, ref.Epoch) {
			continue
		}

		err := m.RefreshJob(ctx, ref.Job)
		switch {
		case err == nil || errs.KindOf(err) == errs.NotFound: // deleted meanwhile
		case cluster.ClassOf(err) == cluster.Passing:
			return err
		default: // it concerns this job alone
			m.supervisor.LogFailure(ctx, "looking at a job", err, "job", ref.Job)
			m.signals.MarkDue(ref.Job) // it fails if it has to
		}
	}

	// A job that is not among them any more has stopped, or was deleted.
	for _, id := range m.scheduler.Running() {
		if !runs[id] {
			m.signals.MarkDue(id)
		}
	}
	return nil
}

// RefreshJob brings one job on the scheduler up to date.
func (m *Manager) RefreshJob(ctx context.Context, id mapreduce.JobID) error {
	st, err := m.jobs.View.Standing(ctx, id)
	if err != nil {
		return err
	}

	switch {
	case !m.isOwnJob(id):
	case !st.Control.State.Running():
		m.signals.MarkDue(id) // it may be that a cancel has begun and is not done
	case !m.scheduler.HasEpoch(id, st.Control.Epoch):
		m.ScheduleJob(ctx, id, st, nil, nil)
	}
	return nil
}

// isOwnJob reports whether this orchestrator runs a job.
func (m *Manager) isOwnJob(id mapreduce.JobID) bool {
	if m.config.Adopt {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ownJobs[id]
}

// MarkOwnJob makes a job one that this orchestrator runs.
func (m *Manager) MarkOwnJob(id mapreduce.JobID) {
	if m.config.Adopt {
		return // it runs all there are
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ownJobs[id] = true
}
