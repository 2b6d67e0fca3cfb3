package schedule

import (
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// The prompts of a job's units begin alike, and vendors cache a beginning that is long
// enough: the first prompt pays for writing it, and later prompts read it for a tenth. If
// all units asked at once, each would pay for writing. So the first unit that this
// orchestrator begins of such a job runs alone. The others begin once it has ended, with
// whatever outcome, or takes too long. Each orchestrator primes for itself: an agreement
// among n of them would save n-1 writes a job, and cost transactions and waiting.

// Priming lets one unit of a job run before the others. The scheduler's mu guards the
// state of it that jobs hold.
type Priming struct{ sched *Scheduler }

// A prefixPriming is how far a job is with priming.
type prefixPriming struct {
	cold  bool      // no unit has ended yet
	done  bool      // the job is never cold again
	since time.Time // when the first unit was seen to run; zero if it was not
}

// Start makes a job a cold one, unless it was cold before.
func (p *Priming) Start(id mapreduce.JobID) {
	p.sched.mu.Lock()
	defer p.sched.mu.Unlock()
	if j := p.sched.getOrAddJob(id); !j.priming.done {
		j.priming.cold = true
	}
}

// capSlots returns how many units of a job may begin, of which held run and free more
// could. The caller holds the scheduler's mu, as callers of the functions below do.
func (p *prefixPriming) capSlots(free, held int) int {
	if !p.cold {
		return free
	}
	return min(free, 1-held)
}

// end lets all units of a job run.
func (p *Priming) end(j *Job) {
	if !j.priming.cold {
		return
	}
	j.priming.cold, j.priming.done = false, true
	p.sched.activateJob(j)
}

// noteReport ends the priming of a job with a report of its first unit. A unit that was
// returned before it called the model has written nothing to the vendor's cache.
func (p *Priming) noteReport(j *Job, rep *mapreduce.Report) {
	if rep.Outcome != mapreduce.Returned || rep.Calls > 0 {
		p.end(j)
	}
}

// EndIfSlow ends the priming of a job whose first unit has run for a time.
func (p *Priming) EndIfSlow(id mapreduce.JobID, limit time.Duration, now time.Time) {
	p.sched.mu.Lock()
	defer p.sched.mu.Unlock()

	j := p.sched.runs[id]
	if j == nil || !j.priming.cold || j.held == 0 {
		return
	}

	priming := &j.priming
	if priming.since.IsZero() {
		priming.since = now
	}
	if now.Sub(priming.since) >= limit {
		p.end(j)
	}
}
