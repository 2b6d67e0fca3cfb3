package lifecycle

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/gate"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Steering is what clients change of jobs. Its methods are those of mapreduce.Service of the
// same names, believe their callers, and are safe for concurrent use.
type Steering struct {
	jobs       *jobs.Jobs
	scheduler  *schedule.Scheduler
	roster     *Roster
	endings    *endings
	signals    *cluster.Signals
	supervisor *cluster.Supervisor
}

// ResumeJob lets a job go on that was paused, has failed, or should be planned again in part.
func (s *Steering) ResumeJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID, r mapreduce.Resume) (*mapreduce.Job, error) {
	ctx = mapreduce.WithActor(ctx, by)
	if r.Budget < 0 {
		return nil, errs.Field("budget", "must not be negative")
	}
	if at := r.Deadline; !at.IsZero() && !at.After(time.Now()) {
		return nil, errs.Field("deadline", "is %s, which is past", at.UTC().Format("2006-01-02 15:04:05 UTC"))
	}

	if err := s.resumeUnits(ctx, id, r); err != nil {
		return nil, err
	}
	if err := s.noteResumed(ctx, id); err != nil {
		return nil, err
	}

	return s.jobs.View.Job(ctx, id)
}

// resumeUnits waits for running units of the levels to plan again, and then resumes the
// job. If the caller stops waiting, the job is resumed when these units have ended, unless
// another request for the job comes first.
func (s *Steering) resumeUnits(ctx context.Context, id mapreduce.JobID, r mapreduce.Resume) error {
	s.signals.ClearResume(id)
	waited := false

	for {
		err := s.jobs.Lifecycle.Resume(ctx, id, r)
		e := inTheWay(err)
		if e == nil && (err == nil || ctx.Err() == nil || !waited) {
			return err
		}

		if waited = true; ctx.Err() != nil || clock.Sleep(ctx, e.RetryAfter) != nil {
			s.signals.SetResume(id, r)
			s.resumeLater(id, time.Second)
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
func (s *Steering) resumeLater(id mapreduce.JobID, after time.Duration) {
	s.signals.CallAt(time.Now().Add(after), func(ctx context.Context) {
		r, meant := s.signals.PendingResume(id)
		if !meant {
			return
		}

		err := s.jobs.Lifecycle.Resume(ctx, id, r)
		if e := inTheWay(err); e != nil {
			s.resumeLater(id, e.RetryAfter)
			return
		}

		if err != nil && cluster.ClassOf(err) == cluster.Passing && ctx.Err() == nil {
			s.supervisor.LogFailure(ctx, "resuming a job; trying again", err, "job", id)
			s.resumeLater(id, time.Second)
			return
		}

		s.signals.ClearResume(id)
		if err == nil {
			err = s.noteResumed(ctx, id)
		}
		if err != nil {
			s.supervisor.LogFailure(ctx, "resuming a job", err, "job", id)
		}
	})
}

// noteResumed sees to a job that goes on.
func (s *Steering) noteResumed(ctx context.Context, id mapreduce.JobID) error {
	s.roster.Add(id)
	s.signals.NotifyWatchers(id)
	return s.roster.Refresh(ctx, id)
}

// MarkCause keeps what somebody says of a cause for which units of a job failed.
func (s *Steering) MarkCause(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID, cause string, state mapreduce.CauseState) (*mapreduce.Job, error) {
	ctx = mapreduce.WithActor(ctx, by)
	switch {
	case cause == "" || len(cause) > mapreduce.MaxCause || !utf8.ValidString(cause):
		return nil, errs.Field("cause", "must be text of 1 to %d bytes", mapreduce.MaxCause)
	case mapreduce.CauseOf(cause) != cause:
		return nil, errs.Field("cause", "is an error of one unit; that of all is %q", mapreduce.CauseOf(cause))
	case state > mapreduce.CauseResolved:
		return nil, errs.Field("state", "has no value %d", state)
	}

	if err := s.jobs.Causes.Mark(ctx, id, cause, state); err != nil {
		return nil, err
	}
	s.signals.NotifyWatchers(id)
	return s.jobs.View.Job(ctx, id)
}

// PauseJob pauses a job; what its workers run ends.
func (s *Steering) PauseJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID) (*mapreduce.Job, error) {
	ctx = mapreduce.WithActor(ctx, by)
	s.signals.ClearResume(id)
	return s.jobAfterChange(ctx, id, s.jobs.Lifecycle.Pause(ctx, id, records.AnyEpoch, "pause was asked for"))
}

// CancelJob cancels a job, and stops what its workers run.
func (s *Steering) CancelJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID) (*mapreduce.Job, error) {
	ctx = mapreduce.WithActor(ctx, by)
	s.signals.ClearResume(id)
	before, err := s.jobs.View.Control(ctx, id)
	if err != nil {
		return nil, err
	}
	if err = s.jobs.Lifecycle.Cancel(ctx, id); err == nil && before.State != mapreduce.JobCancelled {
		s.endings.mark(id)
	}
	return s.jobAfterChange(ctx, id, err)
}

func (s *Steering) jobAfterChange(ctx context.Context, id mapreduce.JobID, err error) (*mapreduce.Job, error) {
	if err != nil {
		return nil, err
	}
	s.signals.MarkDue(id)
	s.signals.NotifyWatchers(id)
	return s.jobs.View.Job(ctx, id)
}

// DeleteJob deletes a job that has ended.
func (s *Steering) DeleteJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID) error {
	ctx = mapreduce.WithActor(ctx, by)
	s.signals.ClearResume(id)
	if err := s.jobs.Lifecycle.Delete(ctx, id); err != nil {
		return err
	}
	s.signals.MarkDue(id)
	s.signals.NotifyWatchers(id)
	return nil
}

// WakeUnit wakes a parked unit with an answer to what it waits for.
func (s *Steering) WakeUnit(ctx context.Context, by mapreduce.Principal, job mapreduce.JobID, unit mapreduce.UnitID, handle string, answer []byte) (*mapreduce.Unit, error) {
	ctx = mapreduce.WithActor(ctx, by)
	switch {
	case handle == "" || len(handle) > mapreduce.MaxHandle || !utf8.ValidString(handle):
		return nil, errs.Field("handle", "must be text of 1 to %d bytes", mapreduce.MaxHandle)
	case len(answer) > mapreduce.MaxWakeAnswer:
		return nil, errs.Field("answer", "has %d bytes; at most %d are taken", len(answer), mapreduce.MaxWakeAnswer)
	case gate.IsHandle(handle):
		return nil, errs.New(errs.Precondition, "unit %q waits for decisions about its values, and goes on with the last of them: decide with \"coditect mapreduce review %s\", or on the page", unit, job)
	}

	u, candidate, err := s.jobs.Queue.Wake(ctx, job, unit, protocol.WakeCall{Handle: handle, Answer: answer})
	if err != nil {
		return nil, err
	}

	if candidate != nil {
		s.scheduler.Enqueue(job, []records.Candidate{*candidate})
	}
	s.signals.NotifyWatchers(job)
	return u.Describe(job), nil
}
