package schedule

import (
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
)

// An Overdue is an attempt that is not over though its worker has had all the time that
// the attempt may take: a worker that keeps to the timeout of its units has reported by
// then, and one that only says that it lives is not believed for ever.
type Overdue struct {
	Session *workers.Session
	Held    protocol.Held
	// Report says so in the worker's name.
	Report protocol.Report
}

// Overdue returns the attempts that are overdue at a time of the store's uptime, and has
// each of them reported. An attempt gets its inputs within the timeout of its unit, and
// then runs for that; slack is what a worker may take beyond, to stop an attempt and to
// report. One that has not begun waits for those that were given before it. Units that parse
// wait for the turns of others beside that, which does not count as theirs: a worker may have
// one processor for all of its slots.
func (s *Sessions) Overdue(now time.Duration, slack func(*workers.Session) time.Duration) []Overdue {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	var all []Overdue
	for session := range s.workers.All() {
		most, rounds := slack(session), time.Duration(session.Rounds())
		longest, parsing := s.sched.jobs.longestTimeout(session), session.CountParsing()
		for h := range session.Attempts() {
			j := s.sched.jobs.find(h.Job)
			if h.HasEnded() || j == nil || j.spec == nil {
				continue
			}

			clock := h.Look(now, parsing)
			turns := time.Duration(clock.Parsing) * longest // of a unit that parses

			// Its timeout counts twice, once for its inputs and once for its run.
			limit, since := 2*j.spec.UnitTimeout+most, clock.Began
			if h.Unit.Parses() {
				limit += turns
			}
			if !h.Runs() {
				// It may have to wait for all that was given before it, in rounds of as
				// many as the session has slots.
				limit, since = limit+rounds*(2*longest+most+turns), clock.Given
			}

			if now-since < limit {
				continue
			}

			all = append(all, Overdue{Session: session, Held: h.Held, Report: overdueReport(h, j, now-since)})
		}
	}
	return all
}

// overdueReport is the report of an attempt that is overdue. What it has spent nobody
// knows, so of a job with a budget it counts as all that it was allowed to.
func overdueReport(h *workers.Attempt, j *Job, after time.Duration) protocol.Report {
	why := fmt.Sprintf("timed out: its worker has held it for %v without starting it, and sends only signs of life", after.Round(time.Second))
	if h.Runs() {
		why = fmt.Sprintf("timed out: it has run for %v and may take %v, and its worker sends only signs of life", after.Round(time.Second), j.spec.UnitTimeout)
	}

	rep := protocol.Report{
		Job: h.Job, Unit: h.Unit, Attempt: h.Held.Attempt, Outcome: protocol.Errored, Class: protocol.Retryable, Errors: []string{why},
	}

	switch {
	case j.spec.Budget == 0:
	case j.spec.BudgetIn == mapreduce.InDollars:
		rep.CostMicros = h.Reserved
	default:
		rep.Tokens.In = h.Reserved
	}
	return rep
}

// EnterOverdue enters the report of an attempt that is overdue, and has its worker stop.
// It returns false if the attempt has ended meanwhile.
func (s *Sessions) EnterOverdue(o *Overdue) bool {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	if h := o.Session.Attempt(o.Held); h == nil || h.HasEnded() || !s.workers.Has(o.Session) {
		return false
	}

	s.enterReport(o.Session, &o.Report)
	s.sched.jobs.getOrAdd(o.Held.Job).turns.lastReport().overdue = true
	o.Session.Peer.Send(&protocol.ToWorker{Cancel: []protocol.Held{o.Held}})
	s.sched.wake.Signal()
	return true
}
