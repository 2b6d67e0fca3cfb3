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

// turnSize bounds the reports of a turn of j, and the units that it claims.
func (j *Job) turnSize() int {
	if j.batch > 0 {
		return j.batch
	}
	return records.MaxBatch
}

// getOrAddJob returns a job, a new one if the scheduler has none. The caller holds s.mu.
func (s *Scheduler) getOrAddJob(id mapreduce.JobID) *Job {
	j := s.runs[id]
	if j == nil {
		j = &Job{ID: id, Reserving: make(chan struct{}, 1)}
		s.runs[id] = j
	}
	return j
}

// isStarved reports whether j has units that nothing but slots keeps from running.
func (j *Job) isStarved() bool {
	return j.running && !j.assembles && !j.claiming && !j.isFailing() && (len(j.queue) > 0 || !j.drained && !j.reading)
}

// isFailing reports whether j is about to be failed.
func (j *Job) isFailing() bool { return j.failing != 0 && j.failing == j.epoch }

// usesFleetCalls reports whether units of a job make calls that the fleet counts. Those
// of a job that is not known yet may.
func (j *Job) usesFleetCalls() bool { return j.spec == nil || j.asks }

// PutJob puts a job that may run on the scheduler, or brings what stands there up to
// date. If all units that wait are known, its queue need not be read.
func (s *Scheduler) PutJob(id mapreduce.JobID, ctl *records.Control, spec *mapreduce.JobSpec, stages jobspec.Stages, asks bool, share int64, waiting []records.Candidate) {
	s.mu.Lock()
	defer s.mu.Unlock()

	j := s.getOrAddJob(id)
	if j.running && (j.epoch > ctl.Epoch || j.epoch == ctl.Epoch && waiting != nil) {
		return // what stands there is no older
	}

	s.fairQueue.remove(j) // its tenant was not known if only reports had come for it

	if j.spec == nil || j.spec.Budget != spec.Budget {
		j.granted = false
	}
	if j.spec != nil && spec.Parallelism < j.spec.Parallelism {
		j.slots, j.grantUnsure = 0, true // of what all nodes have, some is to go
	}
	// Its submission may have granted slots, whose commit was unknown.
	j.grantUnsure = j.grantUnsure || j.spec == nil && j.slots == 0

	// Held units count by tenant and by models, which may change now.
	held, reported := j.held, j.reported
	s.addHeldUnits(j, -held)
	s.addReportedUnits(j, -reported)
	s.leaveModel(j)
	j.tenant, j.priority, j.spec, j.share = ctl.Tenant, ctl.Priority, spec, share
	j.stages, j.asks, j.needs, j.running = stages, asks, jobspec.Requirements(spec, stages.Current()), true
	s.enterModel(j)
	s.addHeldUnits(j, held) // which may have counted as calls
	s.addReportedUnits(j, reported)

	j.epoch, j.level, j.shards = ctl.Epoch, ctl.OpenLevel(), max(1, ctl.Shards)
	j.assembles, j.neededTokens = ctl.AtResult(), 0
	j.restartScan()
	if waiting != nil {
		j.queue, j.cursors, j.drained = waiting, make([]Cursor, j.shards), true
	}

	j.noteWaiting(s.now())
	s.Models.lookAgainFor(j)
	s.activateJob(j)
}

// TenantOf returns whose a job is that stands on the scheduler.
func (s *Scheduler) TenantOf(id mapreduce.JobID) (tenant mapreduce.TenantID, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.runs[id]
	if j == nil || !j.running {
		return "", false
	}
	return j.tenant, true
}

// HasEpoch reports whether a job stands on the scheduler as of an epoch.
func (s *Scheduler) HasEpoch(id mapreduce.JobID, epoch int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.runs[id]
	return j != nil && j.running && j.epoch == epoch
}

// RetireJob takes a job that may not run off the scheduler, unless reports for it are
// still to come.
func (s *Scheduler) RetireJob(id mapreduce.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.runs[id]
	if j == nil {
		return
	}
	s.stopJob(j)
	j.noteWaiting(s.now())
	j.restartScan()
	s.dropJob(j)
}

// stopJob ends the claims of a job's units here. The caller holds s.mu.
func (s *Scheduler) stopJob(j *Job) {
	s.addAsking(j, -1)
	j.running, j.queue = false, nil
}

// dropJob forgets a job that nothing is left to do for. The caller holds s.mu.
func (s *Scheduler) dropJob(j *Job) {
	if !j.running && j.turns == 0 && len(j.reports) == 0 && j.held == 0 && len(j.release) == 0 {
		s.fairQueue.remove(j)
		s.leaveModel(j)
		delete(s.runs, j.ID)
		s.Sessions.releaseJobOnWorkers(j.ID)
	}
}

// Running returns the jobs on the scheduler that may run.
func (s *Scheduler) Running() []mapreduce.JobID {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []mapreduce.JobID
	for id, j := range s.runs {
		if j.running {
			ids = append(ids, id)
		}
	}
	return ids
}

// SleepersAfter returns behind which parked unit of a job to go on looking.
func (s *Scheduler) SleepersAfter(id mapreduce.JobID) mapreduce.UnitID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.runs[id]; j != nil {
		return j.parkedAfter
	}
	return ""
}

// SleepersSeen notes behind which parked unit of a job to go on looking.
func (s *Scheduler) SleepersSeen(id mapreduce.JobID, next mapreduce.UnitID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.runs[id]; j != nil {
		j.parkedAfter = next
	}
}

// Compiled returns a job that stands on the scheduler, compiled; else nil.
func (s *Scheduler) Compiled(id mapreduce.JobID) *jobspec.Compiled {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.runs[id]; j != nil {
		return j.stages.Compiled
	}
	return nil
}

// SpecOf returns the spec of a job; nil while that is not known.
func (s *Scheduler) SpecOf(j *Job) *mapreduce.JobSpec {
	s.mu.Lock()
	defer s.mu.Unlock()
	return j.spec
}
