package lifecycle

import (
	"context"
	"fmt"
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
	"github.com/coditect/mapreduce/store/jobs/causes"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// An advancer takes jobs from level to level, and ends them. Its methods are safe for
// concurrent use.
type advancer struct {
	jobs       *jobs.Jobs
	specs      *jobspec.Finder
	scheduler  *schedule.Scheduler
	grants     *grant.Manager
	members    *cluster.Membership
	intake     *ingest.Intake
	roster     *Roster
	seals      *cluster.Seals
	endings    *endings
	assembler  *assembler
	signals    *cluster.Signals
	supervisor *cluster.Supervisor
	atOnce     AtOnce
	troubles   cluster.Troubles // of jobs that cannot be advanced
}

// loop looks after the jobs that are due, each in a goroutine of its own,
// never two for one job, and tenants in turn.
func (a *advancer) loop(ctx context.Context) {
	var (
		wg      sync.WaitGroup
		waiting = agenda{most: a.atOnce}
	)
	defer wg.Wait()

	for {
		for id, whole := range a.signals.TakeDue() {
			tenant, _ := a.scheduler.TenantOf(id) // others share a turn
			waiting.add(tenant, id, whole)
		}

		for id, whole := range waiting.begin() {
			wg.Go(func() {
				// Deferred calls run in reverse: the job has ended when the loop looks for
				// room.
				defer a.signals.DueSignal.Wake()
				defer waiting.end(id)
				a.supervisor.ForJob(ctx, id, "advancing a job", func() { a.advanceDueJob(ctx, id, whole) })
			})
		}

		select {
		case <-ctx.Done():
			return
		case <-a.signals.DueSignal.C():
		}
	}
}

// advanceDueJob looks at how far a job is, and takes it as far as it can go without
// any unit moving; or if that is not due, it only lets go what waited for units
// that have ended.
func (a *advancer) advanceDueJob(ctx context.Context, id mapreduce.JobID, whole bool) {
	err := a.unblockReduces(ctx, id)
	if err == nil && whole {
		err = a.advanceJob(ctx, id)
	}

	switch {
	case ctx.Err() != nil:
	case err == nil:
		if whole {
			a.troubles.End(id)
		}
	case errs.KindOf(err) == errs.NotFound && a.isGone(ctx, id):
		a.troubles.End(id)
		a.assembler.stop(id)
		a.scheduler.RetireJob(id)
		a.scheduler.Sessions.DropUnits(id)
	case a.roster.has(id) && a.supervisor.MustFail(&a.troubles, id, err):
		a.supervisor.LogFailure(ctx, "a job cannot be advanced", err, "job", id)
		if a.supervisor.FailJob(ctx, id, err) {
			a.endings.mark(id)
		}
	default:
		a.supervisor.LogFailure(ctx, "advancing a job; trying again", err, "job", id)
		a.signals.CallAt(time.Now().Add(time.Second), func(context.Context) { a.signals.MarkDue(id) })
	}
}

// isGone reports whether a job is not there any more. That something else is not found
// that belongs to a job does not say so.
func (a *advancer) isGone(ctx context.Context, id mapreduce.JobID) bool {
	_, err := a.jobs.View.Control(ctx, id)
	return errs.KindOf(err) == errs.NotFound
}

func (a *advancer) advanceJob(ctx context.Context, id mapreduce.JobID) error {
	if f, ok := a.signals.PendingFailure(id); ok {
		err := a.jobs.Lifecycle.Fail(ctx, id, f.Epoch, f.Why)
		// It stays pending until it is stored, or the job is gone.
		if err == nil || errs.KindOf(err) == errs.NotFound {
			a.signals.ClearFailure(id, f)
		}
		if err != nil {
			return err
		}
		a.endings.mark(id)
	}

	if a.signals.TakeTreeLook(id) {
		if err := a.unblockAll(ctx, id); err != nil {
			if errs.KindOf(err) != errs.NotFound {
				// It was taken, and must not be lost.
				a.signals.RequestTreeLook(id)
			}
			return err
		}
	}

	s, err := a.jobs.Levels.Status(ctx, id)
	// Several nodes may see that a level has ended: one of them goes first.
	if err == nil && s.State.Running() && s.Ended() && a.roster.has(id) {
		s, err = a.members.GiveWay(ctx, id, s)
	}
	if err == nil && s.State.Running() && a.roster.has(id) && !a.scheduler.HasEpoch(id, s.Epoch) {
		err = a.roster.Refresh(ctx, id) // another has turned it
	}

	if err != nil {
		return err
	}

	if !s.State.Running() {
		return a.handleStoppedJob(ctx, id, s)
	}

	a.endings.clear(id)
	if !a.roster.has(id) {
		return nil
	}

	if u, err := a.failsFast(ctx, id, s); err != nil {
		return err
	} else if u != nil {
		return a.failFast(ctx, id, s, u)
	}

	if err := a.judge(ctx, id, s); err != nil {
		return err
	}
	if s.Ended() {
		return a.turnLevel(ctx, id, s)
	}

	if s.AtResult {
		a.assembler.begin(id)
		return nil
	}

	if s.Level < 0 && s.MapEarly {
		waiting, err := a.intake.InsertEarly(ctx, id, s.Epoch)
		a.scheduler.Enqueue(id, waiting) // before units that parse: no model is to wait for these
		if err != nil {
			return err
		}
	}

	return a.grants.Adjust(ctx, id)
}

// handleStoppedJob takes a job that does not run off the scheduler, and ends what a cancel
// has begun.
func (a *advancer) handleStoppedJob(ctx context.Context, id mapreduce.JobID, s *lifecycle.Status) error {
	a.scheduler.RetireJob(id)
	a.signals.NotifyWatchers(id)
	a.endings.note(ctx, id, s.State)
	if s.State != mapreduce.JobPaused { // which accepts what is under way
		a.assembler.stop(id)
	}

	if s.State != mapreduce.JobCancelled {
		return a.seals.SealAll(ctx, id)
	}

	// Any node may end what a cancel has begun.
	a.scheduler.Sessions.DropUnits(id)
	var cursor []byte
	for done := !s.Sweeping; !done; {
		var err error
		if cursor, done, err = a.jobs.Lifecycle.SweepCancelled(ctx, id, cursor); err != nil {
			return err
		}
	}

	return a.seals.SealAll(ctx, id)
}

// failsFast returns a failed unit whose stage, or else the job, has its job fail with the first;
// nil if there is none. One whose cause is ignored is accepted. Of a pipeline none of whose stages
// says so, units of all levels count: those of a tree run together.
func (a *advancer) failsFast(ctx context.Context, id mapreduce.JobID, s *lifecycle.Status) (*records.Unit, error) {
	if s.Failed == 0 && s.Failures == 0 || s.AtResult {
		return nil, nil
	}

	compiled, err := a.specs.Job(ctx, id)
	if err != nil {
		return nil, err
	}

	stages := compiled.Graph.Pipeline().Stages
	if !slices.ContainsFunc(stages, func(stage *pipeline.Stage) bool { return stage.OnError != "" }) {
		if !s.FailFast || s.Failures == 0 {
			return nil, nil
		}
		return a.jobs.Causes.FirstNotIgnored(ctx, id, causes.AnyLevel)
	}

	spec := *compiled.Spec
	if s.Level >= 0 {
		spec = jobspec.ForStage(spec, stages[s.Planned[s.Level].Stage])
	}
	if spec.OnError != mapreduce.FailFast || s.Failed == 0 {
		return nil, nil
	}
	return a.jobs.Causes.FirstNotIgnored(ctx, id, s.Level)
}

func (a *advancer) failFast(ctx context.Context, id mapreduce.JobID, s *lifecycle.Status, u *records.Unit) error {
	why := fmt.Sprintf("unit %s failed, and the job is to fail fast: %s", u.ID, lastOf(u.Errors))
	if err := a.jobs.Lifecycle.Fail(ctx, id, s.Epoch, why); err != nil {
		return err
	}

	a.endings.mark(id)
	a.signals.MarkDue(id)
	return nil
}

func lastOf(list []string) string {
	if len(list) == 0 {
		return "no reason given"
	}
	return list[len(list)-1]
}

// turnLevel ends a level: it plans the next, or completes the job.
func (a *advancer) turnLevel(ctx context.Context, id mapreduce.JobID, s *lifecycle.Status) error {
	switch {
	case s.Level < 0:
		if err := a.intake.StartMapping(ctx, id, s.Epoch); err != nil {
			return err
		}
	case s.AtResult:
		if err := a.assembler.endAssembled(ctx, id, s); err != nil {
			return err
		}
	case s.Completed == 0:
		if err := a.failAll(ctx, id, s); err != nil {
			return err
		}
	case s.InTree():
		if err := a.ascendLevel(ctx, id, s); err != nil {
			return err
		}
	default:
		if err := a.planLevel(ctx, id, s); err != nil {
			return err
		}
	}

	a.endings.mark(id) // if that was the last level
	a.signals.NotifyWatchers(id)
	a.signals.MarkDue(id)
	return a.roster.Refresh(ctx, id)
}

func (a *advancer) failAll(ctx context.Context, id mapreduce.JobID, s *lifecycle.Status) error {
	u, err := a.jobs.View.FirstFailed(ctx, id)
	if err != nil {
		return err
	}

	skipped, err := a.jobs.View.Skipped(ctx, id, 0, 1)
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

	return a.jobs.Lifecycle.Fail(ctx, id, s.Epoch, why)
}
