// Package lifecycle is the life of a job between turns: from level to level, to its end and
// its result, and what clients change of it.
package lifecycle

import (
	"context"
	"log/slog"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/grant"
	"github.com/coditect/mapreduce/orchestrator/ingest"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A Config says how jobs are looked after. All of it must be set, unless it says otherwise.
type Config struct {
	Adopt  bool          // every job is run that may run, and not this orchestrator's own alone
	Poll   time.Duration // between two searches for work without a notification
	Retire time.Duration // between two searches for jobs whose time is over
	Grace  time.Duration // to give back the result that was begun when the orchestrator stops
	// AtOnce is how many jobs are looked after at once. It must not be less than 1 each.
	AtOnce AtOnce
	// SmallResult is how many units of level 0 a job may have whose result is tried as a
	// small one.
	SmallResult int64
	Logger      *slog.Logger
	// AsksModels reports whether the steps of a provider ask models.
	AsksModels func(provider string) bool
	// Warms reports whether the first unit of a job runs alone, so that the others find the
	// beginning of its prompts in the vendor's cache. It may be nil. WarmFor is for how long
	// the others wait at most.
	Warms   func(*mapreduce.JobSpec) bool
	WarmFor time.Duration
	// Ended is called with a job that this orchestrator has ended, once it is; nil is not.
	Ended func(context.Context, *mapreduce.Job)
}

// Parts are the parts of an orchestrator that a Lifecycle works with. All must be set.
type Parts struct {
	Jobs       *jobs.Jobs
	Specs      *jobspec.Finder
	Scheduler  *schedule.Scheduler
	Grants     *grant.Manager
	Members    *cluster.Membership
	Seals      *cluster.Seals
	Intake     *ingest.Intake
	Signals    *cluster.Signals
	Supervisor *cluster.Supervisor

	// EndWaits lets units go on that have waited for people as long as they may, at most review.MaxOverdue. It returns
	// where they wait to be claimed then; by unit, what went wrong with it alone; and what did with all others.
	EndWaits func(context.Context, mapreduce.JobID, []records.Sleeper) ([]records.Candidate, []error, error)
}

// A Lifecycle looks after jobs. Its methods, and those of its parts, are safe for concurrent
// use.
type Lifecycle struct {
	Roster   *Roster
	Steering *Steering
	Results  *Results

	advancer  *advancer
	assembler *assembler
	retention *retention
	sleepers  *sleepers
}

// New returns what looks after the jobs of a store. It does nothing on its own but in its
// loops.
func New(p Parts, c Config) *Lifecycle {
	asleep := &sleepers{jobs: p.Jobs, scheduler: p.Scheduler, signals: p.Signals, supervisor: p.Supervisor, endWaits: p.EndWaits}
	ended := &endings{jobs: p.Jobs, supervisor: p.Supervisor, call: c.Ended, ids: make(map[mapreduce.JobID]bool)}
	results := &Results{jobs: p.Jobs, specs: p.Specs, seals: p.Seals, supervisor: p.Supervisor}
	roster := newRoster(p, c, asleep)
	finishing := newAssembler(p, c, results)

	return &Lifecycle{
		Roster: roster, Results: results,
		Steering: &Steering{jobs: p.Jobs, scheduler: p.Scheduler, roster: roster, endings: ended, signals: p.Signals, supervisor: p.Supervisor},

		advancer: &advancer{
			jobs: p.Jobs, specs: p.Specs, scheduler: p.Scheduler, grants: p.Grants, members: p.Members, intake: p.Intake,
			roster: roster, seals: p.Seals, endings: ended, assembler: finishing, signals: p.Signals, supervisor: p.Supervisor, atOnce: c.AtOnce,
		},
		assembler: finishing,
		retention: &retention{jobs: p.Jobs, signals: p.Signals, supervisor: p.Supervisor, log: c.Logger, every: c.Retire},
		sleepers:  asleep,
	}
}

// Loops returns what is done for jobs all the time, by name.
func (l *Lifecycle) Loops() map[string]func(context.Context) {
	return map[string]func(context.Context){
		"wakes": l.Roster.wakeLoop, "polls": l.Roster.pollLoop, "timers": l.sleepers.loop,
		"advance": l.advancer.loop, "results": l.assembler.loop, "retention": l.retention.loop,
	}
}
