// Package lifecycle is the life of a job between turns: from level to level, to its end,
// and what clients change of it.
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
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/notify"
	"github.com/coditect/mapreduce/orchestrator/supervise"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/levels"
	"github.com/coditect/mapreduce/store/jobs/records"
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
	// Ended is called with a job that this orchestrator has ended, once it is; nil is not.
	Ended func(context.Context, *mapreduce.Job)
}

// A Scheduler holds the jobs whose units are given out now.
type Scheduler interface {
	// ScheduleJob puts a job on the scheduler, compiled if it is not yet; HasEpoch reports whether one stands
	// there as of an epoch, and Running returns those that may run.
	ScheduleJob(ctx context.Context, id mapreduce.JobID, st *records.Standing, compiled *jobspec.Compiled, waiting []records.Candidate)
	HasEpoch(id mapreduce.JobID, epoch int64) bool
	Running() []mapreduce.JobID
	// TenantOf returns whose a job is, if the job is on the scheduler.
	TenantOf(id mapreduce.JobID) (t mapreduce.TenantID, known bool)
	// RetireJob takes a job off that may not run, and DropUnits stops what workers of
	// this node run of it.
	RetireJob(id mapreduce.JobID)
	DropUnits(id mapreduce.JobID)
	// Enqueue puts units into a job's queue that are known to wait there.
	Enqueue(id mapreduce.JobID, found []records.Candidate)
	// SleepersAfter returns behind which parked unit of a job to go on looking, and
	// SleepersSeen notes it.
	SleepersAfter(id mapreduce.JobID) mapreduce.UnitID
	SleepersSeen(id mapreduce.JobID, next mapreduce.UnitID)
	// AdjustGrants asks for the slots and tokens that a job lacks on this node, and gives
	// back those that it does not need.
	AdjustGrants(ctx context.Context, id mapreduce.JobID) error
}

// Turns say which of the nodes that see the same thing to do goes first.
type Turns interface {
	GiveWay(ctx context.Context, id mapreduce.JobID, s *levels.Status) (*levels.Status, error)
	TurnToSeal(id mapreduce.JobID) bool
}

// A Mapper plans the level of a job that reads documents, once all of these are text.
type Mapper interface {
	StartMapping(ctx context.Context, id mapreduce.JobID, epoch int64) error
	// PlantEarly adds the units of the documents that are text by now, of a job in which
	// those need not wait for the others, and returns where they wait.
	PlantEarly(ctx context.Context, id mapreduce.JobID, epoch int64) ([]records.Candidate, error)
}

// Results make the results of jobs that no stage has anything left to do for.
type Results interface {
	// Finish ends such a job with its result, or plans the unit that assembles it.
	Finish(ctx context.Context, id mapreduce.JobID, s *levels.Status) error
	// Begin has this node run that unit, and Stop ends that.
	Begin(id mapreduce.JobID)
	Stop(id mapreduce.JobID)
	// EndAssembled ends a job whose unit has ended.
	EndAssembled(ctx context.Context, id mapreduce.JobID, s *levels.Status) error
}

// A Manager takes jobs from level to level, ends them, and changes them on request. Its
// methods are safe for concurrent use.
type Manager struct {
	jobs       *jobs.Jobs
	specs      *jobspec.Finder
	config     Config
	scheduler  Scheduler
	turns      Turns
	mapper     Mapper
	results    Results
	signals    *notify.Jobs
	supervisor *supervise.Supervisor

	troubles supervise.Troubles // of jobs that cannot be advanced

	mu      sync.Mutex // guards the variables below
	ownJobs map[mapreduce.JobID]bool
	ending  map[mapreduce.JobID]bool // that this node may have ended, and did not look at since
}

// New returns a manager of the jobs of a store. It does nothing on its own but
// in its loops.
func New(j *jobs.Jobs, specs *jobspec.Finder, sch Scheduler, t Turns, mp Mapper, rs Results, signals *notify.Jobs, s *supervise.Supervisor, c Config) *Manager {
	return &Manager{
		jobs: j, specs: specs, config: c, scheduler: sch, turns: t, mapper: mp, results: rs, signals: signals, supervisor: s,
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
		m.scheduler.DropUnits(id)
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
		s, err = m.turns.GiveWay(ctx, id, s)
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
		waiting, err := m.mapper.PlantEarly(ctx, id, s.Epoch)
		m.scheduler.Enqueue(id, waiting) // before units that parse: no model is to wait for these
		if err != nil {
			return err
		}
	}

	return m.scheduler.AdjustGrants(ctx, id)
}

// handleStoppedJob takes a job that does not run off the scheduler, and ends what a cancel
// has begun.
func (m *Manager) handleStoppedJob(ctx context.Context, id mapreduce.JobID, s *levels.Status) error {
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
	m.scheduler.DropUnits(id)
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
func (m *Manager) mustFailFast(ctx context.Context, id mapreduce.JobID, s *levels.Status) (bool, error) {
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

func (m *Manager) failFast(ctx context.Context, id mapreduce.JobID, s *levels.Status) error {
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
func (m *Manager) turnLevel(ctx context.Context, id mapreduce.JobID, s *levels.Status) error {
	switch {
	case s.Level < 0:
		if err := m.mapper.StartMapping(ctx, id, s.Epoch); err != nil {
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

func (m *Manager) failAll(ctx context.Context, id mapreduce.JobID, s *levels.Status) error {
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
