// Package lifecycle is the life of a job between turns: from level to level, to its end and
// its result, and what clients change of it.
package lifecycle

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/plural"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/grant"
	"github.com/coditect/mapreduce/orchestrator/ingest"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
)

// A Config says how a Manager works. All of it must be set.
type Config struct {
	Adopt bool          // it runs every job that may run, and not its own alone
	Seal  time.Duration // between two seals
	// Retire is how often jobs are looked for whose time is over.
	Retire time.Duration
	// AtOnce is how many jobs are looked after at once. It must not be less than 1 each.
	AtOnce AtOnce
	Logger *slog.Logger
	// AsksModels reports whether the steps of a provider ask models.
	AsksModels func(provider string) bool
	// Warms reports whether the first unit of a job runs alone, so that the others find the
	// beginning of its prompts in the vendor's cache. It may be nil.
	Warms func(*mapreduce.JobSpec) bool
	// Ended is called with a job that this orchestrator has ended, once it is; nil is not.
	Ended func(context.Context, *mapreduce.Job)
}

// Parts are the parts of an orchestrator that a Manager works with. All must be set.
type Parts struct {
	Jobs       *jobs.Jobs
	Specs      *jobspec.Finder
	Scheduler  *schedule.Scheduler
	Grants     *grant.Manager
	Members    *cluster.Membership
	Intake     *ingest.Intake
	Results    *Assembler
	Signals    *cluster.Signals
	Supervisor *cluster.Supervisor
}

// A Manager takes jobs from level to level, ends them, and changes them on request. Its
// methods are safe for concurrent use.
type Manager struct {
	jobs       *jobs.Jobs
	specs      *jobspec.Finder
	scheduler  *schedule.Scheduler
	grants     *grant.Manager
	members    *cluster.Membership
	intake     *ingest.Intake
	results    *Assembler
	signals    *cluster.Signals
	supervisor *cluster.Supervisor
	config     Config
	troubles   cluster.Troubles // of jobs that cannot be advanced

	mu      sync.Mutex // guards the variables below
	ownJobs map[mapreduce.JobID]bool
	ending  map[mapreduce.JobID]bool // that this node may have ended, and did not look at since
}

// New returns a manager of the jobs of a store. It does nothing on its own but
// in its loops.
func New(p Parts, c Config) *Manager {
	return &Manager{
		jobs: p.Jobs, specs: p.Specs, scheduler: p.Scheduler, grants: p.Grants, members: p.Members, intake: p.Intake,
		results: p.Results, signals: p.Signals, supervisor: p.Supervisor, config: c,
		ownJobs: make(map[mapreduce.JobID]bool), ending: make(map[mapreduce.JobID]bool),
	}
}

// AdvanceLoop looks after the jobs that are due, each in a goroutine of its own,
// never two for one job, and tenants in turn.
func (m *Manager) AdvanceLoop(ctx context.Context) {
	var (
		wg      sync.WaitGroup
		waiting = agenda{most: m.config.AtOnce}
	)
	defer wg.Wait()

	for {
		for id, whole := range m.signals.TakeDue() {
			tenant, _ := m.scheduler.TenantOf(id) // others share a turn
			waiting.add(tenant, id, whole)
		}

		for id, whole := range waiting.begin() {
			wg.Go(func() {
				// Deferred calls run in reverse: the job has ended when the loop looks for
				// room.
				defer m.signals.DueSignal.Wake()
				defer waiting.end(id)
				m.supervisor.ForJob(ctx, id, "advancing a job", func() { m.advanceDueJob(ctx, id, whole) })
			})
		}

		select {
		case <-ctx.Done():
			return
		case <-m.signals.DueSignal.C():
		}
	}
}

// advanceDueJob looks at how far a job is, and takes it as far as it can go without
// any unit moving; or if that is not due, it only lets go what waited for units
// that have ended.
func (m *Manager) advanceDueJob(ctx context.Context, id mapreduce.JobID, whole bool) {
	err := m.unblockReduces(ctx, id)
	if err == nil && whole {
		err = m.advanceJob(ctx, id)
	}

	switch {
	case ctx.Err() != nil:
	case err == nil:
		if whole {
			m.troubles.End(id)
		}
	case errs.KindOf(err) == errs.NotFound && m.isGone(ctx, id):
		m.troubles.End(id)
		m.results.Stop(id)
		m.scheduler.RetireJob(id)
		m.scheduler.Sessions.DropUnits(id)
	case m.isOwnJob(id) && m.supervisor.MustFail(&m.troubles, id, err):
		m.supervisor.LogFailure(ctx, "a job cannot be advanced", err, "job", id)
		if m.supervisor.FailJob(ctx, id, err) {
			m.markEnding(id)
		}
	default:
		m.supervisor.LogFailure(ctx, "advancing a job; trying again", err, "job", id)
		m.signals.CallAt(time.Now().Add(time.Second), func(context.Context) { m.signals.MarkDue(id) })
	}
}

// isGone reports whether a job is not there any more. That something else is not found
// that belongs to a job does not say so.
func (m *Manager) isGone(ctx context.Context, id mapreduce.JobID) bool {
	_, err := m.jobs.View.Control(ctx, id)
	return errs.KindOf(err) == errs.NotFound
}

func (m *Manager) advanceJob(ctx context.Context, id mapreduce.JobID) error {
	if f, ok := m.signals.PendingFailure(id); ok {
		err := m.jobs.Lifecycle.Fail(ctx, id, f.Epoch, f.Why)
		// It stays pending until it is stored, or the job is gone.
		if err == nil || errs.KindOf(err) == errs.NotFound {
			m.signals.ClearFailure(id, f)
		}
		if err != nil {
			return err
		}
		m.markEnding(id)
	}

	if m.signals.TakeTreeLook(id) {
		if err := m.unblockAll(ctx, id); err != nil {
			if errs.KindOf(err) != errs.NotFound {
				// It was taken, and must not be lost.
				m.signals.RequestTreeLook(id)
			}
			return err
		}
	}

	s, err := m.jobs.Levels.Status(ctx, id)
	// Several nodes may see that a level has ended: one of them goes first.
	if err == nil && s.State.Running() && s.Ended() && m.isOwnJob(id) {
		s, err = m.members.GiveWay(ctx, id, s)
	}
	if err == nil && s.State.Running() && m.isOwnJob(id) && !m.scheduler.HasEpoch(id, s.Epoch) {
		err = m.RefreshJob(ctx, id) // another has turned it
	}

	if err != nil {
		return err
	}

	if !s.State.Running() {
		return m.handleStoppedJob(ctx, id, s)
	}

	m.clearEnding(id)
	if !m.isOwnJob(id) {
		return nil
	}

	if must, err := m.mustFailFast(ctx, id, s); err != nil {
		return err
	} else if must {
		return m.failFast(ctx, id, s)
	}

	if s.Ended() {
		return m.turnLevel(ctx, id, s)
	}

	if s.AtResult {
		m.results.Begin(id)
		return nil
	}

	if s.Level < 0 && s.MapEarly {
		waiting, err := m.intake.PlantEarly(ctx, id, s.Epoch)
		m.scheduler.Enqueue(id, waiting) // before units that parse: no model is to wait for these
		if err != nil {
			return err
		}
	}

	return m.grants.Adjust(ctx, id)
}

// handleStoppedJob takes a job that does not run off the scheduler, and ends what a cancel
// has begun.
func (m *Manager) handleStoppedJob(ctx context.Context, id mapreduce.JobID, s *lifecycle.Status) error {
	m.scheduler.RetireJob(id)
	m.signals.NotifyWatchers(id)
	m.noteEnd(ctx, id, s.State)
	if s.State != mapreduce.JobPaused { // which accepts what is under way
		m.results.Stop(id)
	}

	if s.State != mapreduce.JobCancelled {
		return m.SealAll(ctx, id)
	}

	// Any node may end what a cancel has begun.
	m.scheduler.Sessions.DropUnits(id)
	var cursor []byte
	for done := !s.Sweeping; !done; {
		var err error
		if cursor, done, err = m.jobs.Lifecycle.SweepCancelled(ctx, id, cursor); err != nil {
			return err
		}
	}

	return m.SealAll(ctx, id)
}

// mustFailFast reports whether a unit has failed whose stage, or else the job, has its job
// fail with the first. Of a pipeline none of whose stages says so, units of all levels
// count: those of a tree run together.
func (m *Manager) mustFailFast(ctx context.Context, id mapreduce.JobID, s *lifecycle.Status) (bool, error) {
	if s.Failed == 0 && s.Failures == 0 || s.AtResult {
		return false, nil
	}

	compiled, err := m.specs.Job(ctx, id)
	if err != nil {
		return false, err
	}

	stages := compiled.Graph.Pipeline().Stages
	if !slices.ContainsFunc(stages, func(stage *pipeline.Stage) bool { return stage.OnError != "" }) {
		return s.FailFast && s.Failures > 0, nil
	}

	spec := *compiled.Spec
	if s.Level >= 0 {
		spec = jobspec.ForStage(spec, stages[s.Planned[s.Level].Stage])
	}
	return spec.OnError == mapreduce.FailFast && s.Failed > 0, nil
}

func (m *Manager) failFast(ctx context.Context, id mapreduce.JobID, s *lifecycle.Status) error {
	why := plural.Count(max(s.Failures, s.Failed), "unit") + " failed, and the job is to fail fast"
	if u, err := m.jobs.View.FirstFailed(ctx, id); err != nil {
		return err
	} else if u != nil {
		why = fmt.Sprintf("unit %s failed, and the job is to fail fast: %s", u.ID, lastOf(u.Errors))
	}

	if err := m.jobs.Lifecycle.Fail(ctx, id, s.Epoch, why); err != nil {
		return err
	}

	m.markEnding(id)
	m.signals.MarkDue(id)
	return nil
}

func lastOf(list []string) string {
	if len(list) == 0 {
		return "no reason given"
	}
	return list[len(list)-1]
}

// turnLevel ends a level: it plans the next, or completes the job.
func (m *Manager) turnLevel(ctx context.Context, id mapreduce.JobID, s *lifecycle.Status) error {
	switch {
	case s.Level < 0:
		if err := m.intake.StartMapping(ctx, id, s.Epoch); err != nil {
			return err
		}
	case s.AtResult:
		if err := m.results.EndAssembled(ctx, id, s); err != nil {
			return err
		}
	case s.Completed == 0:
		if err := m.failAll(ctx, id, s); err != nil {
			return err
		}
	case s.InTree():
		if err := m.ascendLevel(ctx, id, s); err != nil {
			return err
		}
	default:
		if err := m.planLevel(ctx, id, s); err != nil {
			return err
		}
	}

	m.markEnding(id) // if that was the last level
	m.signals.NotifyWatchers(id)
	m.signals.MarkDue(id)
	return m.RefreshJob(ctx, id)
}

// markEnding notes that this orchestrator may have ended a job.
func (m *Manager) markEnding(id mapreduce.JobID) {
	if m.config.Ended == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ending[id] = true
}

// clearEnding notes that a job has not ended.
func (m *Manager) clearEnding(id mapreduce.JobID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.ending, id)
}

// noteEnd calls Config.Ended for a job that has ended, if this orchestrator has ended it.
func (m *Manager) noteEnd(ctx context.Context, id mapreduce.JobID, state mapreduce.JobState) {
	if m.config.Ended == nil {
		return
	}

	m.mu.Lock()
	here := m.ending[id]
	delete(m.ending, id)
	m.mu.Unlock()

	if !here || state == mapreduce.JobPaused {
		return
	}

	job, err := m.jobs.View.Job(ctx, id)
	if err != nil {
		m.supervisor.LogFailure(ctx, "reading a job that has ended", err, "job", id)
		return
	}
	m.config.Ended(ctx, job)
}

func (m *Manager) failAll(ctx context.Context, id mapreduce.JobID, s *lifecycle.Status) error {
	u, err := m.jobs.View.FirstFailed(ctx, id)
	if err != nil {
		return err
	}

	skipped, err := m.jobs.View.Skipped(ctx, id, 0, 1)
	if err != nil {
		return err
	}

	why := "no document is left to process"
	switch {
	case u != nil && s.Failed > 0:
		why = fmt.Sprintf("%s of level %d failed; the first, %s: %s", plural.Of(s.Failed, s.Failed, "unit"), s.Level, u.ID, lastOf(u.Errors))
	case u != nil:
		why += fmt.Sprintf("; the first to fail, %s: %s", u.ID, lastOf(u.Errors))
	case len(skipped) > 0:
		why += fmt.Sprintf("; the first that was skipped, %s: %s", skipped[0].Document, skipped[0].Reason)
	}

	return m.jobs.Lifecycle.Fail(ctx, id, s.Epoch, why)
}
