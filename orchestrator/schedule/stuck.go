package schedule

import (
	"fmt"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A progressMark is how a job stood when it was looked into whether it is stuck.
type progressMark struct {
	stuckSince   time.Time // since when nothing can run it, as far as is known; zero if something can
	epoch, ended int64     // how far it was at the latest look
}

// look notes how far a job is, and reports whether that is not where it was.
func (p *progressMark) look(job *mapreduce.Job) (moved bool) {
	epoch, ended := job.Epoch, job.CompletedUnits+job.FailedUnits
	moved = p.epoch != epoch || p.ended != ended
	p.epoch, p.ended = epoch, ended
	return moved
}

// noteStuck notes that nothing can run the job, and returns for how long, and whether that
// begins.
func (p *progressMark) noteStuck(now time.Time) (stuck time.Duration, begins bool) {
	if begins = p.stuckSince.IsZero(); begins {
		p.stuckSince = now
	}
	return now.Sub(p.stuckSince), begins
}

// noteFree notes that something can run the job.
func (p *progressMark) noteFree() { p.stuckSince = time.Time{} }

// IsProgressing reports whether a job is not stuck after all: units of it run, or have
// ended since it was last looked at. None run for a moment between two levels.
// Those that run here do not count while its model answers nobody: they probe, or
// wait.
func (s *Scheduler) IsProgressing(id mapreduce.JobID, job *mapreduce.Job, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	j, running := s.jobs.find(id), job.RunningUnits
	if j == nil {
		return true
	}

	unanswered := s.Models.modelUnanswered(j, now)
	if unanswered {
		running -= int64(j.held)
	}

	moves := j.progress.look(job) || running > 0
	if moves && !unanswered {
		j.progress.stuckSince = now
	}

	return moves
}

// modelUnanswered reports whether none of a job's models answers anybody: its breaker is open,
// which it is until a probe succeeds however many are made, or the vendor refuses
// every call for want of room. Units that skip open breakers wait for room as others do.
// The caller holds the scheduler's mu.
func (m *Models) modelUnanswered(j *Job, now time.Time) bool {
	if j.spec == nil || !j.asks {
		return false
	}
	return !slices.ContainsFunc(j.models, func(name string) bool {
		s := m.states[name]
		return s == nil || !s.HoldsBack(j.spec) && !s.IsRefusing(now)
	})
}

// isRefusing reports whether it is the vendor of a job's first model that accepts no call,
// and not the model's breaker that keeps the job's units back. The caller holds the
// scheduler's mu.
func (m *Models) isRefusing(j *Job, now time.Time) bool {
	s := m.states[j.model]
	return s != nil && !s.HoldsBack(j.spec) && s.IsRefusing(now)
}

// StuckReason says why nothing of a job has been able to run here for d, or "", and as of
// which epoch, or that this begins.
func (s *Scheduler) StuckReason(id mapreduce.JobID, d time.Duration, now time.Time) (epoch int64, begins bool, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	j := s.jobs.find(id)
	if j == nil || !j.running || j.assembles {
		return 0, false, ""
	}

	if s.workers.Len() == 0 || !s.Models.modelUnanswered(j, now) && (j.held > 0 || s.workers.HasUsable(&j.wants, s.now())) {
		j.progress.noteFree()
		return j.epoch, false, ""
	}

	stuck, begins := j.progress.noteStuck(now)
	if stuck < d {
		return j.epoch, begins, ""
	}

	if missing := s.workers.Lacking(j.needs); missing != "" {
		return j.epoch, begins, fmt.Sprintf("no worker has had the %s for %v; start one that has it, and resume", missing, d)
	}

	// A worker has what the job needs, so the model is taken for what keeps it from running.
	if s.Models.isRefusing(j, now) {
		return j.epoch, begins, fmt.Sprintf("%s has refused every call for %v, as its limits were reached; resume when it accepts calls again", j.model, d)
	}
	return j.epoch, begins, fmt.Sprintf("the circuit breaker of %s has been open for %v, after failed calls; resume when the provider answers again", j.model, d)
}

// NoteNotStuck counts anew for how long a job has been stuck.
func (s *Scheduler) NoteNotStuck(id mapreduce.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs.find(id); j != nil {
		j.progress.noteFree()
	}
}
