package schedule

import (
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
)

// The prompts of a job's units begin alike, and vendors cache a beginning that is long
// enough: the first prompt pays for writing it, and later prompts read it for a tenth. If
// all units asked at once, each would pay for writing. So the first unit that this
// orchestrator begins of such a job runs alone. The others begin once it has ended, with
// whatever outcome, or takes too long. Each orchestrator primes for itself: an agreement
// among n of them would save n-1 writes a job, and cost transactions and waiting.

// A prefixPriming is how far a job is with priming.
type prefixPriming struct {
	cold  bool      // no unit has ended yet
	done  bool      // the job is never cold again
	since time.Time // when the first unit was seen to run; zero if it was not
}

// start makes a job a cold one, unless it was cold before.
func (p *prefixPriming) start() { p.cold = p.cold || !p.done }

// capSlots returns how many units of a job may begin, of which held run and free more
// could.
func (p *prefixPriming) capSlots(free, held int) int {
	if !p.cold {
		return free
	}
	return min(free, 1-held)
}

// end lets all units of a job run, and reports whether they could not before.
func (p *prefixPriming) end() (more bool) {
	more = p.cold
	p.cold, p.done = false, p.done || p.cold
	return more
}

// noteReport ends the priming of a job with a report of its first unit, and reports whether
// it did. A unit that was returned before it called the model has written nothing to the
// vendor's cache.
func (p *prefixPriming) noteReport(rep *protocol.Report) (more bool) {
	return (rep.Outcome != protocol.Returned || rep.Calls > 0) && p.end()
}

// endIfSlow ends the priming of a job whose first unit runs, as is seen now, once it has been
// seen to run for a time. It reports whether it did.
func (p *prefixPriming) endIfSlow(limit time.Duration, now time.Time) (more bool) {
	if !p.cold {
		return false
	}
	if p.since.IsZero() {
		p.since = now
	}
	return now.Sub(p.since) >= limit && p.end()
}

// Prime has one unit of a job run before the others, unless that was so before.
func (s *Scheduler) Prime(id mapreduce.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs.getOrAdd(id).priming.start()
}

// EndSlowPriming lets all units of a job run whose first has run for a time.
func (s *Scheduler) EndSlowPriming(id mapreduce.JobID, limit time.Duration, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs.find(id); j != nil && j.held > 0 && j.priming.endIfSlow(limit, now) {
		s.activateJob(j)
	}
}
