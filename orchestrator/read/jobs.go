// Package read answers what clients ask: how jobs stand, their units and events, what the
// store holds, and how servers and workers stand.
package read

import (
	"context"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/check"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A Reader answers what clients ask of jobs. Its methods are those of mapreduce.Service of
// the same names, believe their callers, and are safe for concurrent use.
type Reader struct {
	jobs      *jobs.Jobs
	specs     *jobspec.Finder
	scheduler *schedule.Scheduler
	seals     *cluster.Seals
	signals   *cluster.Signals
	config    Config
}

// A Config says what a Reader rests on. All of it must be set.
type Config struct {
	// Verify checks an output.
	Verify check.Verify
	// AnswerBytes bounds the answers of models that are kept for a tenant, and AnswerAge
	// is how long one is kept.
	AnswerBytes int64
	AnswerAge   time.Duration
	// Until returns when the batches of a job with a deadline are ended; the zero time of another job.
	Until func(context.Context, mapreduce.JobID) (time.Time, error)
}

// New returns a reader of the jobs of a store.
func New(j *jobs.Jobs, specs *jobspec.Finder, s *schedule.Scheduler, seals *cluster.Seals, signals *cluster.Signals, c Config) *Reader {
	return &Reader{jobs: j, specs: specs, scheduler: s, seals: seals, signals: signals, config: c}
}

// GetJob returns a job as it stands, with its stages. A job whose pipeline cannot be read
// is returned without them: its owner must see why it failed.
func (r *Reader) GetJob(ctx context.Context, _ mapreduce.Principal, id mapreduce.JobID) (*mapreduce.Job, error) {
	job, levels, err := r.jobs.View.JobWithLevels(ctx, id)
	if err != nil {
		return nil, err
	}

	if compiled, err := r.specs.Compiled(id, &job.Spec); err == nil {
		job.Stages = stagesOf(compiled, levels)
	}
	if job.Coverage.Documents.Skipped > 0 {
		if job.Skipped, err = r.firstSkipped(ctx, id); err != nil {
			return nil, err
		}
	}

	if job.State.Running() && r.jobs.IsFull() {
		job.Warnings = append(job.Warnings, diskFull)
	}

	r.warnOfWaits(job)
	r.excludeWaiting(job)
	return job, nil
}

// firstSkipped returns the first of the skipped documents of a job.
func (r *Reader) firstSkipped(ctx context.Context, id mapreduce.JobID) ([]mapreduce.SkippedDocument, error) {
	found, err := r.jobs.View.Skipped(ctx, id, 0, mapreduce.MaxShownSkips)
	if err != nil {
		return nil, err
	}
	list := make([]mapreduce.SkippedDocument, len(found))
	for i, s := range found {
		list[i] = s.SkippedDocument
	}
	return list, nil
}

// warnOfWaits warns of what keeps a running job from going on.
func (r *Reader) warnOfWaits(job *mapreduce.Job) {
	if !job.State.Running() || job.RunningUnits > 0 { // workers of other nodes may have what it needs
		return
	}
	if why := r.scheduler.Waits(job.ID); why != "" {
		job.Warnings = append(job.Warnings, why)
	}
}

// excludeWaiting leaves units that wait at a worker out of those that run. In the store
// both are with their worker.
func (r *Reader) excludeWaiting(job *mapreduce.Job) {
	if job.RunningUnits > 0 {
		job.RunningUnits = max(0, job.RunningUnits-r.scheduler.Sessions.CountWaiting(job.ID))
	}
}

// diskFull is the warning of a running job while its store has no room.
const diskFull = "the disk of the store is nearly full: nothing new is stored until there is room, and nothing is lost; free some space"

// stagesOf sums the levels of each stage.
func stagesOf(c *jobspec.Compiled, levels []records.LevelProgress) []mapreduce.StageProgress {
	g := c.Graph
	var parsing mapreduce.StageProgress
	stages := make([]mapreduce.StageProgress, len(g.Pipeline().Stages))
	for i, s := range g.Pipeline().Stages {
		stages[i] = mapreduce.StageProgress{Name: s.Name, Phase: g.Phase(i)}
	}

	for _, l := range levels {
		of := &parsing
		if !l.Parses {
			if l.Stage >= len(stages) { // of a store that doctor finds fault with
				continue
			}
			of = &stages[l.Stage]
		}
		of.Units, of.Completed, of.Failed = of.Units+l.Units, of.Completed+l.Completed, of.Failed+l.Failed
	}

	// A job that parses nothing has no such stage.
	if parsing.Units == 0 {
		return stages
	}
	parsing.Phase = mapreduce.Decomposition
	return append([]mapreduce.StageProgress{parsing}, stages...)
}

const maxPage = 1000

// ListJobs returns a page of jobs, 20 unless the query says how many, 1,000 at most.
func (r *Reader) ListJobs(ctx context.Context, _ mapreduce.Principal, q mapreduce.ListJobsQuery) (*mapreduce.JobPage, error) {
	var err error
	if q.PageSize, err = pageSize(q.PageSize, 20); err != nil {
		return nil, err
	}

	page, err := r.jobs.View.List(ctx, q)
	if err != nil {
		return nil, err
	}

	for _, job := range page.Jobs {
		r.excludeWaiting(job)
	}
	return page, nil
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

// WatchJob calls fn with a job whenever it has changed, or units of it have said something,
// until it does not run any more. Changes made here are seen at once, those of other
// orchestrators within a second, and what units say there within two signs of life.
func (r *Reader) WatchJob(ctx context.Context, _ mapreduce.Principal, id mapreduce.JobID, fn func(*mapreduce.Job) error) error {
	var last mapreduce.Job
	feed := r.signals.Feeds.Follow(id)
	defer feed.Close()

	told := func(job *mapreduce.Job) error {
		job.Activity = feed.Next()
		if !jobsDiffer(&last, job) && len(job.Activity) == 0 {
			return nil
		}
		last = *job
		return fn(job)
	}

	for {
		running, err := r.watchOnce(ctx, id, told)
		if err != nil || !running {
			return err
		}
	}
}

// watchOnce shows fn a job and waits until it may have changed. It reports
// whether the job runs.
func (r *Reader) watchOnce(ctx context.Context, id mapreduce.JobID, fn func(*mapreduce.Job) error) (running bool, err error) {
	// The watch begins before the job is read, so that no change is missed in between.
	changed, done := r.signals.Watch(id)
	defer done()

	job, err := r.jobs.View.Job(ctx, id)
	if err != nil {
		return false, err
	}

	if !job.State.Running() {
		return r.watchEnd(ctx, id, fn)
	}

	r.warnOfWaits(job)
	r.excludeWaiting(job)
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
func (r *Reader) watchEnd(ctx context.Context, id mapreduce.JobID, fn func(*mapreduce.Job) error) (running bool, err error) {
	if err := r.seals.SealAll(ctx, id); err != nil && errs.KindOf(err) != errs.NotFound {
		return false, err
	}
	job, err := r.jobs.View.Job(ctx, id)
	if err != nil {
		return false, err
	}
	return job.State.Running(), fn(job)
}

func jobsDiffer(a, b *mapreduce.Job) bool {
	return a.State != b.State || a.Epoch != b.Epoch || a.CompletedUnits != b.CompletedUnits || a.FailedUnits != b.FailedUnits ||
		a.RunningUnits != b.RunningUnits || a.ParkedUnits != b.ParkedUnits || a.TotalTokens != b.TotalTokens || a.AuditHead != b.AuditHead || a.TotalUnits != b.TotalUnits ||
		!slices.Equal(a.Warnings, b.Warnings)
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

// ListEvents returns a page of what happened to a job, 100 unless the query says how many.
func (r *Reader) ListEvents(ctx context.Context, _ mapreduce.Principal, q mapreduce.ListEventsQuery) (*mapreduce.EventPage, error) {
	var err error
	if q.PageSize, err = pageSize(q.PageSize, 100); err != nil {
		return nil, err
	}
	return r.jobs.Audit.List(ctx, q)
}

// CheckStore checks the whole store with all outputs, and calls found for each fault.
func (r *Reader) CheckStore(ctx context.Context, _ mapreduce.Principal, q mapreduce.CheckQuery, found func(mapreduce.Finding) error) error {
	if q.RepairCounters {
		if err := r.jobs.Tenants.Repair(ctx, found); err != nil {
			return err
		}
	}
	if err := r.jobs.Check.RunWith(ctx, r.config.Verify, found); err != nil || !q.CountKeys {
		return err
	}
	return r.jobs.Check.Count(ctx, found)
}

// AnswerCache returns how many answers of models are kept for a tenant, and forgets them if
// that is asked for.
func (r *Reader) AnswerCache(ctx context.Context, _ mapreduce.Principal, t mapreduce.TenantID, forget bool) (*mapreduce.AnswerCache, error) {
	c, err := r.jobs.Answers.Stats(ctx, t)
	if err == nil && forget {
		err = r.jobs.Answers.Clear(ctx, t)
	}
	if err != nil {
		return nil, err
	}
	c.MaxBytes, c.MaxAge = r.config.AnswerBytes, r.config.AnswerAge
	return &c, nil
}

// Caller returns the caller itself, with all roles that it has.
func (r *Reader) Caller(_ context.Context, by mapreduce.Principal) (*mapreduce.Principal, error) {
	by.Roles = by.AllRoles()
	return &by, nil
}

// ListCertificates returns the certificates of cascades that a tenant's jobs use.
func (r *Reader) ListCertificates(ctx context.Context, _ mapreduce.Principal, t mapreduce.TenantID) ([]mapreduce.Certificate, error) {
	return r.jobs.Cascade.Certificates(ctx, t)
}

// DropCertificate removes a certificate.
func (r *Reader) DropCertificate(ctx context.Context, _ mapreduce.Principal, t mapreduce.TenantID, id mapreduce.CertificateID) error {
	return r.jobs.Cascade.Drop(ctx, t, id)
}

// SumCosts returns what jobs have spent.
func (r *Reader) SumCosts(ctx context.Context, _ mapreduce.Principal, q mapreduce.CostQuery) (*mapreduce.CostSums, error) {
	return r.jobs.View.Costs(ctx, &q)
}

// TenantUse returns what a tenant uses of its quotas.
func (r *Reader) TenantUse(ctx context.Context, _ mapreduce.Principal, t mapreduce.TenantID) (*mapreduce.TenantUse, error) {
	return r.jobs.View.Use(ctx, t)
}

// TenantOf returns the tenant of a job, or errs.NotFound.
func (r *Reader) TenantOf(ctx context.Context, id mapreduce.JobID) (mapreduce.TenantID, error) {
	ctl, err := r.jobs.View.Control(ctx, id)
	if err != nil {
		return "", err
	}
	return ctl.Tenant, nil
}
