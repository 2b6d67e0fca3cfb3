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
func (b *Scheduler) IsProgressing(id mapreduce.JobID, job *mapreduce.Job, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	r, running := b.runs[id], job.RunningUnits
	if r == nil {
		return true
	}

	unanswered := b.Models.modelUnanswered(r, now)
	if unanswered {
		running -= int64(r.held)
	}

	before := r.lastProgress
	r.lastProgress = progressMark{job.Epoch, job.CompletedUnits + job.FailedUnits}
	moves := running > 0 || r.lastProgress != before
	if moves && !unanswered {
		r.stuckSince = now
	}

	return moves
}

// modelUnanswered reports whether none of a job's models answers anybody: its breaker is open,
// which it is until a probe succeeds however many are made, or the vendor refuses
// every call for want of room. Units that skip open breakers wait for room as others do.
// The caller holds the scheduler's mu.
func (g *Models) modelUnanswered(r *Job, now time.Time) bool {
	if r.spec == nil || !r.asks {
		return false
	}
	return !slices.ContainsFunc(r.models, func(name string) bool {
		m := g.states[name]
		return m == nil || !m.HoldsBack(r.spec) && !m.IsRefusing(now)
	})
}

// StuckReason says why nothing of a job has been able to run here for d, or "", and as of
// which epoch, or that this begins.
func (b *Scheduler) StuckReason(id mapreduce.JobID, d time.Duration, now time.Time) (epoch int64, begins bool, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()

	r := b.runs[id]
	if r == nil || !r.running || r.assembles {
		return 0, false, ""
	}

	if len(b.Sessions.bound) == 0 || !b.Models.modelUnanswered(r, now) && (r.held > 0 || b.Sessions.countUsableSessions(r) > 0) {
		r.stuckSince = time.Time{}
		return r.epoch, false, ""
	}

	if begins = r.stuckSince.IsZero(); begins {
		r.stuckSince = now
	}
	if now.Sub(r.stuckSince) < d {
		return r.epoch, begins, ""
	}

	// If a worker has what the job needs, the model is taken for what keeps it from running.
	for _, s := range b.Sessions.bound {
		m := b.Models.states[r.model]
		if r.needs.MetBy(s.offer) && m != nil && !m.HoldsBack(r.spec) && m.IsRefusing(now) {
			return r.epoch, begins, fmt.Sprintf("%s has refused every call for %v, as its limits were reached; resume when it accepts calls again", m.Name, d)
		}
		if r.needs.MetBy(s.offer) {
			return r.epoch, begins, fmt.Sprintf("the circuit breaker of %s has been open for %v, after failed calls; resume when the provider answers again", r.model, d)
		}
	}

	missing := ""
	for _, s := range b.Sessions.bound {
		missing = cmp.Or(missing, r.needs.Missing(s.offer))
	}
	return r.epoch, begins, fmt.Sprintf("no worker has had the %s for %v; start one that has it, and resume", missing, d)
}

// Lacking returns what units of a job need and no worker that is connected here has, in
// words such as `tool "browser"`; "" if one has it, or none is connected.
func (b *Scheduler) Lacking(id mapreduce.JobID) (missing string) {
	b.mu.Lock()
	defer b.mu.Unlock()

	r := b.runs[id]
	if r == nil || !r.running || r.assembles || r.held > 0 {
		return ""
	}

	for _, s := range b.Sessions.bound {
		lacks := r.needs.Missing(s.offer)
		if lacks == "" {
			return ""
		}
		missing = cmp.Or(missing, lacks)
	}
	return missing
}

// NoteNotStuck counts anew for how long a job has been stuck.
func (b *Scheduler) NoteNotStuck(id mapreduce.JobID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.runs[id]; r != nil {
		r.stuckSince = time.Time{}
	}
}
