package lifecycle

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// ResumeJob lets a job go on that was paused, has failed, or should be planned again in part.
func (m *Manager) ResumeJob(ctx context.Context, id mapreduce.JobID, r mapreduce.Resume) (*mapreduce.Job, error) {
	if r.Budget < 0 {
		return nil, errs.Field("budget", "must not be negative")
	}
	if err := m.resumeUnits(ctx, id, r); err != nil {
		return nil, err
	}
	if err := m.noteResumed(ctx, id); err != nil {
		return nil, err
	}
	return m.jobs.View.Job(ctx, id)
}

// resumeUnits waits for running units of the levels to plan again, and then resumes the
// job. If the caller stops waiting, the job is resumed when these units have ended, unless
// another request for the job comes first.
func (m *Manager) resumeUnits(ctx context.Context, id mapreduce.JobID, r mapreduce.Resume) error {
	m.signals.ClearResume(id)
	waited := false

	for {
		err := m.jobs.Lifecycle.Resume(ctx, id, r)
		e := inTheWay(err)
		if e == nil && (err == nil || ctx.Err() == nil || !waited) {
			return err
		}

		if waited = true; ctx.Err() != nil || clock.Sleep(ctx, e.RetryAfter) != nil {
			m.signals.SetResume(id, r)
			m.resumeLater(id, time.Second)
			if e != nil {
				e.Message += "; the job goes on when that has ended"
			}
			return err
		}
	}
}

// inTheWay returns the error that says that units do which still run, or nil if
// err is another.
func inTheWay(err error) *errs.Error {
	if e, ok := errors.AsType[*errs.Error](err); ok && e.Reason == records.UnitsRunning {
		return e
	}
	return nil
}

// resumeLater resumes a job after a while, and as long as units are in the way.
func (m *Manager) resumeLater(id mapreduce.JobID, after time.Duration) {
	m.signals.CallAt(time.Now().Add(after), func(ctx context.Context) {
		r, meant := m.signals.PendingResume(id)
		if !meant {
			return
		}

		err := m.jobs.Lifecycle.Resume(ctx, id, r)
		if e := inTheWay(err); e != nil {
			m.resumeLater(id, e.RetryAfter)
			return
		}

		if err != nil && cluster.ClassOf(err) == cluster.Passing && ctx.Err() == nil {
			m.supervisor.LogFailure(ctx, "resuming a job; trying again", err, "job", id)
			m.resumeLater(id, time.Second)
			return
		}

		m.signals.ClearResume(id)
		if err == nil {
			err = m.noteResumed(ctx, id)
		}
		if err != nil {
			m.supervisor.LogFailure(ctx, "resuming a job", err, "job", id)
		}
	})
}

// noteResumed sees to a job that goes on.
func (m *Manager) noteResumed(ctx context.Context, id mapreduce.JobID) error {
	m.MarkOwnJob(id)
	m.signals.NotifyWatchers(id)
	return m.RefreshJob(ctx, id)
}

// PauseJob pauses a job; what its workers run ends.
func (m *Manager) PauseJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	m.signals.ClearResume(id)
	return m.jobAfterChange(ctx, id, m.jobs.Lifecycle.Pause(ctx, id, records.AnyEpoch, "pause was asked for"))
}

// CancelJob cancels a job, and stops what its workers run.
func (m *Manager) CancelJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	m.signals.ClearResume(id)
	before, err := m.jobs.View.Control(ctx, id)
	if err != nil {
		return nil, err
	}
	if err = m.jobs.Lifecycle.Cancel(ctx, id); err == nil && before.State != mapreduce.JobCancelled {
		m.markEnding(id)
	}
	return m.jobAfterChange(ctx, id, err)
}

func (m *Manager) jobAfterChange(ctx context.Context, id mapreduce.JobID, err error) (*mapreduce.Job, error) {
	if err != nil {
		return nil, err
	}
	m.signals.MarkDue(id)
	m.signals.NotifyWatchers(id)
	return m.jobs.View.Job(ctx, id)
}

// DeleteJob deletes a job that has ended.
func (m *Manager) DeleteJob(ctx context.Context, id mapreduce.JobID) error {
	m.signals.ClearResume(id)
	if err := m.jobs.Lifecycle.Delete(ctx, id); err != nil {
		return err
	}
	m.signals.MarkDue(id)
	m.signals.NotifyWatchers(id)
	return nil
}

// WakeUnit wakes a parked unit with an answer to what it waits for.
func (m *Manager) WakeUnit(ctx context.Context, job mapreduce.JobID, unit mapreduce.UnitID, handle string, answer []byte) (*mapreduce.Unit, error) {
	switch {
	case handle == "" || len(handle) > mapreduce.MaxHandle || !utf8.ValidString(handle):
		return nil, errs.Field("handle", "must be text of 1 to %d bytes", mapreduce.MaxHandle)
	case len(answer) > mapreduce.MaxWakeAnswer:
		return nil, errs.Field("answer", "has %d bytes; at most %d are taken", len(answer), mapreduce.MaxWakeAnswer)
	}

	u, candidate, err := m.jobs.Queue.Wake(ctx, job, unit, mapreduce.WakeCall{Handle: handle, Answer: answer})
	if err != nil {
		return nil, err
	}

	if candidate != nil {
		m.scheduler.Enqueue(job, []records.Candidate{*candidate})
	}
	m.signals.NotifyWatchers(job)
	return u.Describe(job), nil
}
