package lifecycle

import (
	"context"
	"sync"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/grant"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A Roster is the jobs that this orchestrator runs. It puts them on the scheduler, and looks
// for others: whenever it is notified, and every now and then.
type Roster struct {
	jobs       *jobs.Jobs
	specs      *jobspec.Finder
	scheduler  *schedule.Scheduler
	grants     *grant.Manager
	members    *cluster.Membership
	sleepers   *sleepers
	signals    *cluster.Signals
	supervisor *cluster.Supervisor
	config     Config

	polledLast mapreduce.JobID // of pollLoop only

	mu  sync.Mutex // guards the variable below
	own map[mapreduce.JobID]bool
}

func newRoster(p Parts, c Config, asleep *sleepers) *Roster {
	return &Roster{
		jobs: p.Jobs, specs: p.Specs, scheduler: p.Scheduler, grants: p.Grants, members: p.Members, sleepers: asleep,
		signals: p.Signals, supervisor: p.Supervisor, config: c, own: make(map[mapreduce.JobID]bool),
	}
}

// refreshAll puts the jobs that may run on the scheduler, and has those looked at that may
// not any more. What it acts on it reads again: those that look returns may be as old as a
// heartbeat.
func (r *Roster) refreshAll(ctx context.Context, look func(context.Context) ([]records.RunRef, error)) error {
	refs, err := look(ctx)
	if err != nil {
		return err
	}

	runs := make(map[mapreduce.JobID]bool, len(refs))
	for _, ref := range refs {
		runs[ref.Job] = true
		if !r.has(ref.Job) || r.scheduler.HasEpoch(ref.Job, ref.Epoch) {
			continue
		}

		err := r.Refresh(ctx, ref.Job)
		switch {
		case err == nil || errs.KindOf(err) == errs.NotFound: // deleted meanwhile
		case cluster.ClassOf(err) == cluster.Passing:
			return err
		default: // it concerns this job alone
			r.supervisor.LogFailure(ctx, "looking at a job", err, "job", ref.Job)
			r.signals.MarkDue(ref.Job) // it fails if it has to
		}
	}

	// A job that is not among them any more has stopped, or was deleted.
	for _, id := range r.scheduler.Running() {
		if !runs[id] {
			r.signals.MarkDue(id)
		}
	}
	return nil
}

// Refresh brings one job on the scheduler up to date.
func (r *Roster) Refresh(ctx context.Context, id mapreduce.JobID) error {
	st, err := r.jobs.View.Standing(ctx, id)
	if err != nil {
		return err
	}

	switch {
	case !r.has(id):
	case !st.Control.State.Running():
		r.signals.MarkDue(id) // it may be that a cancel has begun and is not done
	case !r.scheduler.HasEpoch(id, st.Control.Epoch):
		r.ScheduleJob(ctx, id, st, nil, nil)
	}
	return nil
}

// has reports whether this orchestrator runs a job.
func (r *Roster) has(id mapreduce.JobID) bool {
	if r.config.Adopt {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.own[id]
}

// Add makes a job one that this orchestrator runs.
func (r *Roster) Add(id mapreduce.JobID) {
	if r.config.Adopt {
		return // it runs all there are
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own[id] = true
}

// ScheduleJob puts a job on the scheduler. It compiles the job if compiled is nil. waiting
// holds all units that wait, or nothing if they are not known.
func (r *Roster) ScheduleJob(ctx context.Context, id mapreduce.JobID, st *records.Standing, compiled *jobspec.Compiled, waiting []records.Candidate) {
	spec := st.Job.Spec
	if compiled == nil {
		var err error
		compiled, err = r.specs.Compiled(id, &spec)
		// Without its pipeline the units of the job cannot be checked, and wait.
		r.supervisor.LogFailure(ctx, "reading the pipeline of a job", err, "job", id)
	}

	stages := jobspec.NewStages(compiled, st.Control)
	if stage := stages.Current(); stage != nil {
		spec = jobspec.ForStage(spec, stage)
	}
	spec.Budget = st.Control.Budget

	share := int64(0)
	if n := st.Job.Documents - st.Job.Skipped; n > 0 {
		share = spec.Budget / n
	}

	if r.usesPriming(st.Control, &spec) {
		r.scheduler.Prime(id)
	}
	r.scheduler.PutJob(id, st.Control, &spec, stages, r.config.AsksModels(spec.Provider), share, waiting)

	// Inputs of reduces may have ended without this node hearing of it.
	if st.Control.TreeTop > 0 {
		r.signals.RequestTreeLook(id)
	}

	r.signals.MarkDue(id)
	for _, ref := range st.Sleepers {
		r.signals.WakeLater(id, ref)
	}
	r.scheduler.SleepersSeen(id, st.NextParked)
}

// usesPriming reports whether the first unit of a job must run alone.
func (r *Roster) usesPriming(ctl *records.Control, spec *mapreduce.JobSpec) bool {
	return r.config.Warms != nil && ctl.State == mapreduce.Mapping && r.config.AsksModels(spec.Provider) &&
		spec.Replay == "" && r.config.Warms(spec)
}
