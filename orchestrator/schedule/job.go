package schedule

import (
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/turns"
)

// A Job is a job on the scheduler.
type Job struct {
	ID       mapreduce.JobID
	tenant   mapreduce.TenantID
	priority int
	spec     *mapreduce.JobSpec // as the units of the stage run with it
	stages   jobspec.Stages     // of its levels
	model    string             // "provider/model", the first of models; empty while the spec is not known
	models   []string           // in the order in which they are asked
	needs    mapreduce.Requirements
	asks     bool  // the stage's provider asks models
	share    int64 // of the budget, for one document
	// assembles says that all is done but for the result, which no worker assembles.
	assembles bool
	epoch     int64
	// failing is the newest epoch in which a report said that no unit can succeed; 0 if none
	// did. This node claims no more units in that epoch: they would ask their model in vain.
	failing int64
	level   int64
	shards  int64

	running bool            // it may make claims
	reports []pendingReport // waiting for a turn
	release []turns.HeldID  // claims all of whose units have ended
	turns   int             // under way
	held    int             // units that sessions of this node hold, or are being given: see addHeldUnits
	// reported is how many of these have been reported, and wait for a turn or its end.
	reported int
	retryAt  time.Time // no turn before: the last one failed
	retries  int       // turns that failed in a row
	batch    int       // most members of a turn, since one failed for one of its members; 0: as many as go

	queue []records.Candidate // seen waiting
	// waitingSince is since when units are in the queue of which none was claimed; zero
	// while it is empty.
	waitingSince time.Time
	cursors      []Cursor // by shard; nil: from the beginning
	crowded      bool     // another orchestrator claims where this one did
	// taken are the candidates of turns under way, and those of turns that have
	// ended since the queue is being read: what is read may still show them.
	taken   map[records.Candidate]bool // whether the turn is under way
	drained bool                       // the queue was read to its end
	starved bool                       // it waits for slots in the fair queue
	queued  bool                       // it waits for its turn there
	reading bool                       // it is being read
	reread  bool                       // something was put into it meanwhile

	slots        int64     // granted
	revocations  int64     // how often others took some of them
	grantUnsure  bool      // slots may not be what the store says
	tokens       int64     // granted and neither spent nor reserved
	granted      bool      // tokens is what the store says, but for what happened here since
	neededTokens int64     // tokens without which no unit can start; 0 if that is not so
	claiming     bool      // a claim of a job with a budget is under way
	blockedSince time.Time // since when it lacks tokens; zero if it does not
	// Reserving is held while what runs reserves more: at once, only one would commit.
	Reserving    chan struct{}
	stuckSince   time.Time    // since when no worker can run it, as far as is known; zero if one can
	lastProgress progressMark // how far it was when that was last looked into
	priming      prefixPriming
	// parkedAfter is the parked unit behind which the next poll looks for more.
	parkedAfter mapreduce.UnitID
}

// A progressMark is how far a job was at some moment at which it may have rested.
type progressMark struct{ epoch, ended int64 }

type pendingReport struct {
	Report  *mapreduce.Report
	Session *Session
	jitter  float64
	broke   bool // the unit broke the session's stream when it was handed out
	overdue bool // the worker did not report in time
	spoilt  bool // the worker's report could not be stored: this one says so instead
}

// turnSize bounds the reports of a turn of r, and the units that it claims.
func (r *Job) turnSize() int {
	if r.batch > 0 {
		return r.batch
	}
	return records.MaxBatch
}

// getOrAddJob returns a job, a new one if the scheduler has none. The caller holds b.mu.
func (b *Scheduler) getOrAddJob(id mapreduce.JobID) *Job {
	r := b.runs[id]
	if r == nil {
		r = &Job{ID: id, Reserving: make(chan struct{}, 1)}
		b.runs[id] = r
	}
	return r
}

// isStarved reports whether r has units that nothing but slots keeps from running.
func (r *Job) isStarved() bool {
	return r.running && !r.assembles && !r.claiming && !r.isFailing() && (len(r.queue) > 0 || !r.drained && !r.reading)
}

// isFailing reports whether r is about to be failed.
func (r *Job) isFailing() bool { return r.failing != 0 && r.failing == r.epoch }

// usesFleetCalls reports whether units of a job make calls that the fleet counts. Those
// of a job that is not known yet may.
func (r *Job) usesFleetCalls() bool { return r.spec == nil || r.asks }

// PutJob puts a job that may run on the scheduler, or brings what stands there up to
// date. If all units that wait are known, its queue need not be read.
func (b *Scheduler) PutJob(id mapreduce.JobID, ctl *records.Control, spec *mapreduce.JobSpec, stages jobspec.Stages, asks bool, share int64, waiting []records.Candidate) {
	b.mu.Lock()
	defer b.mu.Unlock()

	r := b.getOrAddJob(id)
	if r.running && (r.epoch > ctl.Epoch || r.epoch == ctl.Epoch && waiting != nil) {
		return // what stands there is no older
	}

	b.fairQueue.remove(r) // its tenant was not known if only reports had come for it

	if r.spec == nil || r.spec.Budget != spec.Budget {
		r.granted = false
	}
	if r.spec != nil && spec.Parallelism < r.spec.Parallelism {
		r.slots, r.grantUnsure = 0, true // of what all nodes have, some is to go
	}
	// Its submission may have granted slots, whose commit was unknown.
	r.grantUnsure = r.grantUnsure || r.spec == nil && r.slots == 0

	// Held units count by tenant and by models, which may change now.
	held, reported := r.held, r.reported
	b.addHeldUnits(r, -held)
	b.addReportedUnits(r, -reported)
	b.leaveModel(r)
	r.tenant, r.priority, r.spec, r.share = ctl.Tenant, ctl.Priority, spec, share
	r.stages, r.asks, r.needs, r.running = stages, asks, jobspec.Requirements(spec, stages.Current()), true
	b.enterModel(r)
	b.addHeldUnits(r, held) // which may have counted as calls
	b.addReportedUnits(r, reported)

	r.epoch, r.level, r.shards = ctl.Epoch, ctl.OpenLevel(), max(1, ctl.Shards)
	r.assembles, r.neededTokens = ctl.AtResult(), 0
	r.restartScan()
	if waiting != nil {
		r.queue, r.cursors, r.drained = waiting, make([]Cursor, r.shards), true
	}

	r.noteWaiting(b.now())
	b.Models.lookAgainFor(r)
	b.activateJob(r)
}

// TenantOf returns whose a job is that stands on the scheduler.
func (b *Scheduler) TenantOf(id mapreduce.JobID) (t mapreduce.TenantID, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[id]
	if r == nil || !r.running {
		return "", false
	}
	return r.tenant, true
}

// HasEpoch reports whether a job stands on the scheduler as of an epoch.
func (b *Scheduler) HasEpoch(id mapreduce.JobID, epoch int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[id]
	return r != nil && r.running && r.epoch == epoch
}

// RetireJob takes a job that may not run off the scheduler, unless reports for it are
// still to come.
func (b *Scheduler) RetireJob(id mapreduce.JobID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[id]
	if r == nil {
		return
	}
	b.stopJob(r)
	r.noteWaiting(b.now())
	r.restartScan()
	b.dropJob(r)
}

// stopJob ends the claims of a job's units here. The caller holds b.mu.
func (b *Scheduler) stopJob(r *Job) {
	b.addAsking(r, -1)
	r.running, r.queue = false, nil
}

// dropJob forgets a job that nothing is left to do for. The caller holds b.mu.
func (b *Scheduler) dropJob(r *Job) {
	if !r.running && r.turns == 0 && len(r.reports) == 0 && r.held == 0 && len(r.release) == 0 {
		b.fairQueue.remove(r)
		b.leaveModel(r)
		delete(b.runs, r.ID)
		b.Sessions.releaseJobOnWorkers(r.ID)
	}
}

// Running returns the jobs on the scheduler that may run.
func (b *Scheduler) Running() []mapreduce.JobID {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ids []mapreduce.JobID
	for id, r := range b.runs {
		if r.running {
			ids = append(ids, id)
		}
	}
	return ids
}

// SleepersAfter returns behind which parked unit of a job to go on looking.
func (b *Scheduler) SleepersAfter(id mapreduce.JobID) mapreduce.UnitID {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.runs[id]; r != nil {
		return r.parkedAfter
	}
	return ""
}

// SleepersSeen notes behind which parked unit of a job to go on looking.
func (b *Scheduler) SleepersSeen(id mapreduce.JobID, next mapreduce.UnitID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.runs[id]; r != nil {
		r.parkedAfter = next
	}
}

// Compiled returns a job that stands on the scheduler, compiled; else nil.
func (b *Scheduler) Compiled(id mapreduce.JobID) *jobspec.Compiled {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.runs[id]; r != nil {
		return r.stages.Compiled
	}
	return nil
}

// SpecOf returns the spec of a job; nil while that is not known.
func (b *Scheduler) SpecOf(r *Job) *mapreduce.JobSpec {
	b.mu.Lock()
	defer b.mu.Unlock()
	return r.spec
}
