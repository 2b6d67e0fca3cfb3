package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
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
		if !differ(&last, job) {
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
	changed, done := o.notices.watch(id)
	defer done()
	job, err := o.jobs.Job(ctx, id)
	if err != nil {
		return false, err
	}
	if err := fn(job); err != nil || !job.State.Running() {
		return false, err
	}
	if err := wait(ctx, watchPause, nil); err != nil {
		return false, err
	}
	return true, wait(ctx, time.Second, changed)
}

func differ(a, b *mapreduce.Job) bool {
	return a.State != b.State || a.Epoch != b.Epoch || a.CompletedUnits != b.CompletedUnits || a.FailedUnits != b.FailedUnits ||
		a.RunningUnits != b.RunningUnits || a.TotalTokens != b.TotalTokens || a.AuditHead != b.AuditHead || a.TotalUnits != b.TotalUnits
}

// wait waits for d, or until c closes.
func wait(ctx context.Context, d time.Duration, c <-chan struct{}) error {
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
	if err := o.resume(ctx, id, r); err != nil {
		return nil, err
	}
	o.own(id)
	o.notices.changed(id)
	if err := o.refreshJob(ctx, id); err != nil {
		return nil, err
	}
	return o.jobs.Job(ctx, id)
}

// resume waits for units that stand in the way of what is to be planned again.
func (o *Orchestrator) resume(ctx context.Context, id mapreduce.JobID, r mapreduce.Resume) error {
	for {
		err := o.jobs.Resume(ctx, id, r)
		var e *errs.Error
		if !errors.As(err, &e) || e.Reason != jobs.UnitsRunning {
			return err
		}
		if werr := wait(ctx, e.RetryAfter, nil); werr != nil {
			return err
		}
	}
}

// PauseJob implements mapreduce.Service.
func (o *Orchestrator) PauseJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	return o.turned(ctx, id, o.jobs.Pause(ctx, id, jobs.AnyEpoch, "asked for"))
}

// CancelJob implements mapreduce.Service.
func (o *Orchestrator) CancelJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	return o.turned(ctx, id, o.jobs.Cancel(ctx, id))
}

func (o *Orchestrator) turned(ctx context.Context, id mapreduce.JobID, err error) (*mapreduce.Job, error) {
	if err != nil {
		return nil, err
	}
	o.notices.due(id)
	o.notices.changed(id)
	return o.jobs.Job(ctx, id)
}

// DeleteJob implements mapreduce.Service.
func (o *Orchestrator) DeleteJob(ctx context.Context, id mapreduce.JobID) error {
	if err := o.jobs.Delete(ctx, id); err != nil {
		return err
	}
	o.notices.due(id)
	o.notices.changed(id)
	return nil
}

// ListUnits implements mapreduce.Service.
func (o *Orchestrator) ListUnits(ctx context.Context, q mapreduce.ListUnitsQuery) (*mapreduce.UnitPage, error) {
	size, err := pageSize(q.PageSize, 100)
	if err != nil {
		return nil, err
	}
	level, from, err := parseUnitToken(q.PageToken)
	if err != nil {
		return nil, err
	}
	ctl, err := o.jobs.Ctl(ctx, q.Job)
	if err != nil {
		return nil, err
	}
	page, weight := &mapreduce.UnitPage{}, 0
	for level < int64(len(ctl.LevelUnits)) {
		some, err := o.jobs.UnitsFrom(ctx, q.Job, level, from, min(size, 256))
		if err != nil {
			return nil, err
		}
		if len(some) == 0 {
			level, from = level+1, 0
			continue
		}
		for _, u := range some {
			if len(page.Units) == size || weight > messageBytes {
				page.NextPageToken = fmt.Sprintf("%d:%d", level, from)
				return page, nil
			}
			from = u.Index + 1
			if !wanted(q.States, u) {
				continue
			}
			unit, err := o.listed(ctx, q, u)
			if err != nil {
				return nil, err
			}
			weight += len(unit.Output)
			page.Units = append(page.Units, unit)
		}
	}
	return page, nil
}

func parseUnitToken(token string) (level, from int64, err error) {
	if token == "" {
		return -1, 0, nil
	}
	a, b, ok := strings.Cut(token, ":")
	level, err1 := strconv.ParseInt(a, 10, 64)
	from, err2 := strconv.ParseInt(b, 10, 64)
	if !ok || err1 != nil || err2 != nil || level < -1 || from < 0 {
		return 0, 0, errs.Field("page_token", "is not one that a list returned")
	}
	return level, from, nil
}

func wanted(states []mapreduce.UnitState, u *storagev1.Unit) bool {
	if slices.Contains(states, mapreduce.UnitState(u.Status)) {
		return true
	}
	return len(states) == 0
}

func (o *Orchestrator) listed(ctx context.Context, q mapreduce.ListUnitsQuery, u *storagev1.Unit) (*mapreduce.Unit, error) {
	unit := jobs.UnitOf(q.Job, u)
	if u.Inputs != nil {
		err := o.eachInput(ctx, q.Job, u, func(in *storagev1.Unit) error {
			unit.DependsOn = append(unit.DependsOn, mapreduce.UnitID(in.UnitId))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if q.Outputs && unit.State == mapreduce.UnitComplete {
		var err error
		if unit.Output, err = o.jobs.Output(ctx, q.Job, u); err != nil {
			return nil, err
		}
	}
	return unit, nil
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
	return o.jobs.Check(ctx, found)
}
