package orchestrator

import (
	"context"
	"errors"
	"iter"
	"time"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs"
)

// ResumeJob implements mapreduce.Service.
func (o *Orchestrator) ResumeJob(ctx context.Context, id mapreduce.JobID, r mapreduce.Resume) (*mapreduce.Job, error) {
	if r.Budget < 0 {
		return nil, errs.Field("budget", "must not be negative")
	}
	if err := o.resumeUnits(ctx, id, r); err != nil {
		return nil, err
	}
	if err := o.noteResumed(ctx, id); err != nil {
		return nil, err
	}
	return o.jobs.Job(ctx, id)
}

// resumeUnits waits for units that stand in the way of what is to be planned again. If
// the caller does not, the job is resumed once they have ended, unless somebody
// wants something else of it by then.
func (o *Orchestrator) resumeUnits(ctx context.Context, id mapreduce.JobID, r mapreduce.Resume) error {
	o.signals.ClearResume(id)
	waited := false
	for {
		err := o.jobs.Resume(ctx, id, r)
		e := inTheWay(err)
		if e == nil && (err == nil || ctx.Err() == nil || !waited) {
			return err
		}
		if waited = true; ctx.Err() != nil || clock.Sleep(ctx, e.RetryAfter) != nil {
			o.signals.SetResume(id, r)
			o.resumeLater(id, time.Second)
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
	if e, ok := errors.AsType[*errs.Error](err); ok && e.Reason == jobs.UnitsRunning {
		return e
	}
	return nil
}

// resumeLater resumes a job after a while, and as long as units are in the way.
func (o *Orchestrator) resumeLater(id mapreduce.JobID, after time.Duration) {
	o.signals.CallAt(time.Now().Add(after), func(ctx context.Context) {
		r, meant := o.signals.PendingResume(id)
		if !meant {
			return
		}
		err := o.jobs.Resume(ctx, id, r)
		if e := inTheWay(err); e != nil {
			o.resumeLater(id, e.RetryAfter)
			return
		}
		o.signals.ClearResume(id)
		if err == nil {
			err = o.noteResumed(ctx, id)
		}
		if err != nil {
			o.supervisor.LogFailure(ctx, "resuming a job", err, "job", id)
		}
	})
}

// noteResumed sees to a job that goes on.
func (o *Orchestrator) noteResumed(ctx context.Context, id mapreduce.JobID) error {
	o.markOwnJob(id)
	o.signals.NotifyWatchers(id)
	return o.refreshJob(ctx, id)
}

// PauseJob implements mapreduce.Service.
func (o *Orchestrator) PauseJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	o.signals.ClearResume(id)
	return o.jobAfterChange(ctx, id, o.jobs.Pause(ctx, id, jobs.AnyEpoch, "asked for"))
}

// CancelJob implements mapreduce.Service.
func (o *Orchestrator) CancelJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	o.signals.ClearResume(id)
	return o.jobAfterChange(ctx, id, o.jobs.Cancel(ctx, id))
}

func (o *Orchestrator) jobAfterChange(ctx context.Context, id mapreduce.JobID, err error) (*mapreduce.Job, error) {
	if err != nil {
		return nil, err
	}
	o.signals.MarkDue(id)
	o.signals.NotifyWatchers(id)
	return o.jobs.Job(ctx, id)
}

// DeleteJob implements mapreduce.Service.
func (o *Orchestrator) DeleteJob(ctx context.Context, id mapreduce.JobID) error {
	o.signals.ClearResume(id)
	if err := o.jobs.Delete(ctx, id); err != nil {
		return err
	}
	o.signals.MarkDue(id)
	o.signals.NotifyWatchers(id)
	return nil
}

// WakeUnit implements mapreduce.Service.
func (o *Orchestrator) WakeUnit(ctx context.Context, job mapreduce.JobID, unit mapreduce.UnitID, handle string, answer []byte) (*mapreduce.Unit, error) {
	switch {
	case handle == "" || len(handle) > mapreduce.MaxHandle || !utf8.ValidString(handle):
		return nil, errs.Field("handle", "must be text of 1 to %d bytes", mapreduce.MaxHandle)
	case len(answer) > mapreduce.MaxWakeAnswer:
		return nil, errs.Field("answer", "has %d bytes; at most %d are taken", len(answer), mapreduce.MaxWakeAnswer)
	}
	u, candidate, err := o.jobs.Wake(ctx, job, unit, mapreduce.WakeCall{Handle: handle, Answer: answer})
	if err != nil {
		return nil, err
	}
	if candidate != nil {
		o.scheduler.enqueueCandidates(job, []jobs.Candidate{*candidate})
	}
	o.signals.NotifyWatchers(job)
	return jobs.UnitOf(job, u), nil
}

// SubmitJob implements mapreduce.Service.
func (o *Orchestrator) SubmitJob(ctx context.Context, spec mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Job, error) {
	return o.intake.SubmitJob(ctx, spec, docs)
}

// GetJob implements mapreduce.Service.
func (o *Orchestrator) GetJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	return o.reader.GetJob(ctx, id)
}

// ListJobs implements mapreduce.Service.
func (o *Orchestrator) ListJobs(ctx context.Context, q mapreduce.ListJobsQuery) (*mapreduce.JobPage, error) {
	return o.reader.ListJobs(ctx, q)
}

// WatchJob implements mapreduce.Service. Changes made here are seen at once,
// those of other orchestrators within a second.
func (o *Orchestrator) WatchJob(ctx context.Context, id mapreduce.JobID, fn func(*mapreduce.Job) error) error {
	return o.reader.WatchJob(ctx, id, fn)
}

// ListUnits implements mapreduce.Service.
func (o *Orchestrator) ListUnits(ctx context.Context, q mapreduce.ListUnitsQuery) (*mapreduce.UnitPage, error) {
	return o.reader.ListUnits(ctx, q)
}

// ListEvents implements mapreduce.Service.
func (o *Orchestrator) ListEvents(ctx context.Context, q mapreduce.ListEventsQuery) (*mapreduce.EventPage, error) {
	return o.reader.ListEvents(ctx, q)
}

// CheckStore implements mapreduce.Service.
func (o *Orchestrator) CheckStore(ctx context.Context, found func(mapreduce.Finding) error) error {
	return o.reader.CheckStore(ctx, found)
}

// AnswerCache implements mapreduce.Service.
func (o *Orchestrator) AnswerCache(ctx context.Context, t mapreduce.TenantID, forget bool) (*mapreduce.AnswerCache, error) {
	return o.reader.AnswerCache(ctx, t, forget)
}
