package schedule

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/fair"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/schedule/view"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A Job is a job on the scheduler, in parts: what it is, and how it stands with its queue,
// with its grant, with its turns and with others. The scheduler's mu guards all of it.
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
	running bool // it may make claims

	// Kept by the jobTable, which counts them by tenant and model as well.
	held     int // units that sessions of this node hold, or are being given
	reported int // of these, those that were reported, and wait for a turn or its end

	queue    view.Queue
	grant    view.Grant
	turns    turnState
	progress progressMark
	priming  prefixPriming
	place    fair.Place
	wants    workers.Wants // what its units need of a worker, once its spec is known

	// Reserving is held while what runs reserves more: at once, only one would commit.
	Reserving chan struct{}
	// parkedAfter is the parked unit behind which the next poll looks for more.
	parkedAfter mapreduce.UnitID
}

// currency returns what the job's budget is in; tokens while its spec is not known.
func (j *Job) currency() mapreduce.Currency {
	if j.spec == nil {
		return mapreduce.InTokens
	}
	return j.spec.BudgetIn
}

// Tenant implements fair.Item.
func (j *Job) Tenant() mapreduce.TenantID { return j.tenant }

// Priority implements fair.Item.
func (j *Job) Priority() int { return j.priority }

// Place implements fair.Item.
func (j *Job) Place() *fair.Place { return &j.place }

// isStarved reports whether j has units that nothing but slots keeps from running.
func (j *Job) isStarved() bool {
	return j.running && !j.assembles && !j.grant.IsClaiming() && !j.isFailing() && j.queue.MayHaveUnits()
}

// isIdle reports whether nothing of j is under way here.
func (j *Job) isIdle() bool { return j.held == 0 && j.turns.isIdle() }

// isFailing reports whether j is about to be failed.
func (j *Job) isFailing() bool { return j.failing != 0 && j.failing == j.epoch }

// setWants enters what units of j need of a worker, once its spec was set.
func (j *Job) setWants() {
	j.wants = jobWants(j.ID, j.tenant, j.spec, j.models, j.needs)
	j.wants.Nothing = j.assembles
}

// jobWants returns what the units of a job need of a worker.
func jobWants(id mapreduce.JobID, tenant mapreduce.TenantID, spec *mapreduce.JobSpec, models []string, needs mapreduce.Requirements) workers.Wants {
	return workers.Wants{Job: id, Tenant: tenant, Needs: needs, Models: models, SkipsBreakers: spec.OnBreaker == mapreduce.BreakerSkip}
}

// endUnit notes that a unit of a claim has ended. With the last one the claim's record is to
// be cleared.
func (j *Job) endUnit(c *workers.Claim) {
	if c.EndUnit() {
		j.turns.ended = append(j.turns.ended, c.ID)
	}
}

// usesFleetCalls reports whether units of a job make calls that the fleet counts. Those
// of a job that is not known yet may.
func (j *Job) usesFleetCalls() bool { return j.spec == nil || j.asks }

// PutJob puts a job that may run on the scheduler, or brings what stands there up to
// date. If all units that wait are known, its queue need not be read.
func (s *Scheduler) PutJob(id mapreduce.JobID, ctl *records.Control, spec *mapreduce.JobSpec, stages jobspec.Stages, asks bool, share int64, waiting []records.Candidate) {
	s.mu.Lock()
	defer s.mu.Unlock()

	j := s.jobs.getOrAdd(id)
	if j.running && (j.epoch > ctl.Epoch || j.epoch == ctl.Epoch && waiting != nil) {
		return // what stands there is no older
	}

	s.fairQueue.Remove(j) // its tenant was not known if only reports had come for it
	j.grant.Adopt(j.spec, spec)

	s.jobs.change(j, func() {
		j.tenant, j.priority, j.spec, j.share = ctl.Tenant, ctl.Priority, spec, share
		j.stages, j.asks, j.needs, j.running = stages, asks, jobspec.Requirements(spec, stages.Current()), true
	})

	j.epoch, j.assembles = ctl.Epoch, ctl.AtResult()
	j.setWants()
	j.queue.Open(ctl.OpenLevel(), max(1, ctl.Shards), waiting)
	j.queue.NoteWaiting(s.now())
	s.Models.lookAgainFor(j)
	s.activateJob(j)
}

// TenantOf returns whose a job is that stands on the scheduler.
func (s *Scheduler) TenantOf(id mapreduce.JobID) (tenant mapreduce.TenantID, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs.find(id)
	if j == nil || !j.running {
		return "", false
	}
	return j.tenant, true
}

// HasEpoch reports whether a job stands on the scheduler as of an epoch.
func (s *Scheduler) HasEpoch(id mapreduce.JobID, epoch int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs.find(id)
	return j != nil && j.running && j.epoch == epoch
}

// RetireJob takes a job that may not run off the scheduler, unless reports for it are
// still to come.
func (s *Scheduler) RetireJob(id mapreduce.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs.find(id)
	if j == nil {
		return
	}
	s.jobs.stop(j)
	j.queue.NoteWaiting(s.now())
	j.queue.Restart()
	s.dropJob(j)
}

// dropJob forgets a job that nothing is left to do for. The caller holds s.mu.
func (s *Scheduler) dropJob(j *Job) {
	if !j.running && j.isIdle() && len(j.turns.ended) == 0 {
		s.fairQueue.Remove(j)
		s.jobs.remove(j)
		s.workers.ForgetJob(j.ID)
	}
}

// Running returns the jobs on the scheduler that may run.
func (s *Scheduler) Running() []mapreduce.JobID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jobs.running()
}

// SleepersAfter returns behind which parked unit of a job to go on looking.
func (s *Scheduler) SleepersAfter(id mapreduce.JobID) mapreduce.UnitID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs.find(id); j != nil {
		return j.parkedAfter
	}
	return ""
}

// SleepersSeen notes behind which parked unit of a job to go on looking.
func (s *Scheduler) SleepersSeen(id mapreduce.JobID, next mapreduce.UnitID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs.find(id); j != nil {
		j.parkedAfter = next
	}
}

// Compiled returns a job that stands on the scheduler, compiled; else nil.
func (s *Scheduler) Compiled(id mapreduce.JobID) *jobspec.Compiled {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs.find(id); j != nil {
		return j.stages.Compiled
	}
	return nil
}

// Enqueue puts units into a job's queue that are known to wait there.
func (s *Scheduler) Enqueue(id mapreduce.JobID, found []records.Candidate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs.find(id); j != nil && j.running {
		j.queue.PutBack(found)
		j.queue.NoteWaiting(s.now())
		s.activateJob(j)
	}
}

// Reread makes a job's queue be read again: something may have been put into it.
func (s *Scheduler) Reread(id mapreduce.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs.find(id); j != nil && j.running {
		j.queue.Restart()
		s.activateJob(j)
	}
}
