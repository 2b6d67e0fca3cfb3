package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/jobs"
)

// GetJob implements mapreduce.Service.
func (o *Orchestrator) GetJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	return o.jobs.Job(ctx, id)
}

const maxPage = 1000

// ListJobs implements mapreduce.Service.
func (o *Orchestrator) ListJobs(ctx context.Context, q mapreduce.ListJobsQuery) (*mapreduce.JobPage, error) {
	var err error
	if q.PageSize, err = pageSize(q.PageSize, 20); err != nil {
		return nil, err
	}
	return o.jobs.ListJobs(ctx, q)
}

func pageSize(n, otherwise int) (int, error) {
	switch {
	case n < 0:
		return 0, errs.Field("page_size", "must not be negative")
	case n == 0:
		return otherwise, nil
	}
	return min(n, maxPage), nil
}

// watchPause is the least time between two looks at a watched job.
const watchPause = 100 * time.Millisecond

// WatchJob implements mapreduce.Service. Changes made here are seen at once,
// those of other orchestrators within a second.
func (o *Orchestrator) WatchJob(ctx context.Context, id mapreduce.JobID, fn func(*mapreduce.Job) error) error {
	var last mapreduce.Job
	told := func(job *mapreduce.Job) error {
		if !jobsDiffer(&last, job) {
			return nil
		}
		last = *job
		return fn(job)
	}
	for {
		running, err := o.watchOnce(ctx, id, told)
		if err != nil || !running {
			return err
		}
	}
}

// watchOnce shows fn a job and waits until it may have changed. It reports
// whether the job runs.
func (o *Orchestrator) watchOnce(ctx context.Context, id mapreduce.JobID, fn func(*mapreduce.Job) error) (running bool, err error) {
	changed, done := o.signals.Watch(id)
	defer done()
	job, err := o.jobs.Job(ctx, id)
	if err != nil {
		return false, err
	}
	if !job.State.Running() {
		return o.watchEnd(ctx, id, fn)
	}
	if err := fn(job); err != nil {
		return false, err
	}
	if err := clock.Sleep(ctx, watchPause); err != nil {
		return false, err
	}
	return true, waitUntil(ctx, time.Second, changed)
}

// watchEnd shows fn a job that does not run any more, once all its checkpoints are
// chained: who waited for its end finds the chain whole. It reports whether the
// job runs again.
func (o *Orchestrator) watchEnd(ctx context.Context, id mapreduce.JobID, fn func(*mapreduce.Job) error) (running bool, err error) {
	if err := o.sealAll(ctx, id); err != nil && errs.KindOf(err) != errs.NotFound {
		return false, err
	}
	job, err := o.jobs.Job(ctx, id)
	if err != nil {
		return false, err
	}
	return job.State.Running(), fn(job)
}

func jobsDiffer(a, b *mapreduce.Job) bool {
	return a.State != b.State || a.Epoch != b.Epoch || a.CompletedUnits != b.CompletedUnits || a.FailedUnits != b.FailedUnits ||
		a.RunningUnits != b.RunningUnits || a.ParkedUnits != b.ParkedUnits || a.TotalTokens != b.TotalTokens || a.AuditHead != b.AuditHead || a.TotalUnits != b.TotalUnits
}

// waitUntil waits for d, or until c closes.
func waitUntil(ctx context.Context, d time.Duration, c <-chan struct{}) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
	case <-c:
	}
	return nil
}

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

// ListUnits implements mapreduce.Service.
func (o *Orchestrator) ListUnits(ctx context.Context, q mapreduce.ListUnitsQuery) (*mapreduce.UnitPage, error) {
	size, err := pageSize(q.PageSize, 100)
	if err != nil {
		return nil, err
	}
	at, err := parseUnitToken(q.PageToken)
	if err != nil {
		return nil, err
	}
	ctl, err := o.jobs.Ctl(ctx, q.Job)
	if err != nil {
		return nil, err
	}
	rec, err := o.jobs.Record(ctx, q.Job)
	if err != nil {
		return nil, err
	}
	spec := jobs.SpecOf(rec.Config)
	compiled, err := o.specs.Compiled(q.Job, &spec)
	if err != nil {
		return nil, err
	}
	stages := jobspec.NewStages(compiled, ctl)
	page, weight := &mapreduce.UnitPage{}, 0
	for at.level < jobs.Levels(ctl) {
		some, err := o.jobs.UnitsFrom(ctx, q.Job, at.level, at.index, min(size, 256))
		if err != nil {
			return nil, err
		}
		if len(some) == 0 {
			at = unitToken{level: at.level + 1}
			continue
		}
		parked, err := o.jobs.Parkings(ctx, q.Job, some)
		if err != nil {
			return nil, err
		}
		for _, u := range some {
			if len(page.Units) == size || weight > messageBytes {
				page.NextPageToken = at.String()
				return page, nil
			}
			if !matchesStates(q.States, u) {
				at = unitToken{at.level, u.Index + 1, 0}
				continue
			}
			unit, next, err := o.listedUnit(ctx, q, u, at.input)
			if err != nil {
				return nil, err
			}
			unit.Stage = stages.StageName(u.Level)
			unit.Parking = parked[u.UnitId]
			page.Units = append(page.Units, unit)
			if unit.Continues {
				page.NextPageToken = unitToken{at.level, u.Index, next}.String()
				return page, nil
			}
			at = unitToken{at.level, u.Index + 1, 0}
			weight += len(unit.Output) + idBytes(unit.DependsOn)
		}
	}
	return page, nil
}

// A unitToken says where a page of units begins: at the unit of a level with an
// index, and within what that depends on.
type unitToken struct{ level, index, input int64 }

func (t unitToken) String() string { return fmt.Sprintf("%d:%d:%d", t.level, t.index, t.input) }

func parseUnitToken(token string) (unitToken, error) {
	t := unitToken{level: -1}
	if token == "" {
		return t, nil
	}
	parts := strings.Split(token, ":")
	to := []*int64{&t.level, &t.index, &t.input}
	ok := len(parts) == len(to)
	for i := 0; ok && i < len(to); i++ {
		var err error
		*to[i], err = strconv.ParseInt(parts[i], 10, 64)
		ok = err == nil
	}
	if !ok || t.level < -1 || t.index < 0 || t.input < 0 {
		return t, errs.Field("page_token", "is not one that a list returned")
	}
	return t, nil
}

func matchesStates(states []mapreduce.UnitState, u *storagev1.Unit) bool {
	if slices.Contains(states, mapreduce.UnitState(u.Status)) {
		return true
	}
	return len(states) == 0
}

// listedUnit returns a unit as a query asks for it. If it depends on more units than
// a page should hold, next says with which of them to go on.
func (o *Orchestrator) listedUnit(ctx context.Context, q mapreduce.ListUnitsQuery, u *storagev1.Unit, input int64) (unit *mapreduce.Unit, next int64, err error) {
	unit = jobs.UnitOf(q.Job, u)
	if q.Inputs && u.Inputs != nil {
		if next, err = o.inputsOf(ctx, unit, u, input); err != nil {
			return nil, 0, err
		}
	}
	if q.Outputs && unit.State == mapreduce.UnitComplete && input == 0 { // else it was on the page before
		if unit.Output, err = o.jobs.Output(ctx, q.Job, u); err != nil {
			return nil, 0, err
		}
	}
	return unit, next, nil
}

// inputsOf enters what a unit depends on, from an index on, as far as a page
// should hold it.
func (o *Orchestrator) inputsOf(ctx context.Context, unit *mapreduce.Unit, u *storagev1.Unit, from int64) (next int64, err error) {
	from = max(from, u.Inputs.First)
	for from < u.Inputs.End {
		if idBytes(unit.DependsOn) > messageBytes {
			unit.Continues = true
			return from, nil
		}
		page, err := o.jobs.Inputs(ctx, unit.Job, u, from, 1024)
		if err != nil || len(page) == 0 {
			return 0, err
		}
		for _, in := range page {
			unit.DependsOn = append(unit.DependsOn, mapreduce.UnitID(in.UnitId))
			from = in.Index + 1
		}
	}
	return 0, nil
}

// idBytes returns about how many bytes of a message ids take.
func idBytes(ids []mapreduce.UnitID) (n int) {
	for _, id := range ids {
		n += len(id) + 3
	}
	return n
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

// ListEvents implements mapreduce.Service.
func (o *Orchestrator) ListEvents(ctx context.Context, q mapreduce.ListEventsQuery) (*mapreduce.EventPage, error) {
	var err error
	if q.PageSize, err = pageSize(q.PageSize, 100); err != nil {
		return nil, err
	}
	return o.jobs.ListEvents(ctx, q)
}

// CheckStore implements mapreduce.Service.
func (o *Orchestrator) CheckStore(ctx context.Context, found func(mapreduce.Finding) error) error {
	return o.jobs.CheckWith(ctx, o.checker.VerifyOutput, found)
}
