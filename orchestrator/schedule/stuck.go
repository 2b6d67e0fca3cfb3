package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// IsProgressing reports whether a job is not stuck after all: units of it run, or have
// ended since it was last looked at. None run for a moment between two levels.
// Those that run here do not count while its model answers nobody: they probe, or
// wait.
func (s *Scheduler) IsProgressing(id mapreduce.JobID, job *mapreduce.Job, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	j, running := s.runs[id], job.RunningUnits
	if j == nil {
		return true
	}

	unanswered := s.Models.modelUnanswered(j, now)
	if unanswered {
		running -= int64(j.held)
	}

	before := j.lastProgress
	j.lastProgress = progressMark{job.Epoch, job.CompletedUnits + job.FailedUnits}
	moves := running > 0 || j.lastProgress != before
	if moves && !unanswered {
		j.stuckSince = now
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

// StuckReason says why nothing of a job has been able to run here for d, or "", and as of
// which epoch, or that this begins.
func (s *Scheduler) StuckReason(id mapreduce.JobID, d time.Duration, now time.Time) (epoch int64, begins bool, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	j := s.runs[id]
	if j == nil || !j.running || j.assembles {
		return 0, false, ""
	}

	if len(s.Sessions.bound) == 0 || !s.Models.modelUnanswered(j, now) && (j.held > 0 || s.Sessions.countUsableSessions(j) > 0) {
		j.stuckSince = time.Time{}
		return j.epoch, false, ""
	}

	if begins = j.stuckSince.IsZero(); begins {
		j.stuckSince = now
	}
	if now.Sub(j.stuckSince) < d {
		return j.epoch, begins, ""
	}

	// If a worker has what the job needs, the model is taken for what keeps it from running.
	for _, session := range s.Sessions.bound {
		state := s.Models.states[j.model]
		if j.needs.MetBy(session.offer) && state != nil && !state.HoldsBack(j.spec) && state.IsRefusing(now) {
			return j.epoch, begins, fmt.Sprintf("%s has refused every call for %v, as its limits were reached; resume when it accepts calls again", state.Name, d)
		}
		if j.needs.MetBy(session.offer) {
			return j.epoch, begins, fmt.Sprintf("the circuit breaker of %s has been open for %v, after failed calls; resume when the provider answers again", j.model, d)
		}
	}

	missing := ""
	for _, session := range s.Sessions.bound {
		missing = cmp.Or(missing, j.needs.Missing(session.offer))
	}
	return j.epoch, begins, fmt.Sprintf("no worker has had the %s for %v; start one that has it, and resume", missing, d)
}

// Lacking returns what units of a job need and no worker that is connected here has, in
// words such as `tool "browser"`; "" if one has it, or none is connected.
func (s *Scheduler) Lacking(id mapreduce.JobID) (missing string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	j := s.runs[id]
	if j == nil || !j.running || j.assembles || j.held > 0 {
		return ""
	}

	for _, session := range s.Sessions.bound {
		lacks := j.needs.Missing(session.offer)
		if lacks == "" {
			return ""
		}
		missing = cmp.Or(missing, lacks)
	}
	return missing
}

// NoteNotStuck counts anew for how long a job has been stuck.
func (s *Scheduler) NoteNotStuck(id mapreduce.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.runs[id]; j != nil {
		j.stuckSince = time.Time{}
	}
}
