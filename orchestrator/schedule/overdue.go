package schedule

import (
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// An Overdue is an attempt that is not over though its worker has had all the time that
// the attempt may take: a worker that keeps to the timeout of its units has reported by
// then, and one that only says that it lives is not believed for ever.
type Overdue struct {
	Session *Session
	Held    mapreduce.Held
	// Report says so in the worker's name.
	Report mapreduce.Report
}

// An attemptClock is since when an attempt is held, and since when it runs, on the clock
// that runs while the store answers; each as of the first look at the attempt. A look is
// no earlier than what it sees, so a worker has a little more time than it may take.
type attemptClock struct {
	looked  bool
	given   time.Duration
	running bool
	began   time.Duration
	// The most units that parse which the session held at once, at a look. They take turns at
	// the processors, so one of them, or what waits for its slot, may wait for all of them.
	parsing int
}

// Overdue returns the attempts that are overdue at a time of the store's uptime, and has
// each of them reported. An attempt gets its inputs within the timeout of its unit, and
// then runs for that; slack is what a worker may take beyond, to stop an attempt and to
// report. One that has not begun waits for those that were given before it. Units that parse
// wait for the turns of others beside that, which does not count as theirs: a worker may have
// one processor for all of its slots.
func (s *Sessions) Overdue(now time.Duration, slack func(*Session) time.Duration) []Overdue {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	var all []Overdue
	for _, session := range s.workers.bound {
		most := slack(session)
		rounds := time.Duration(1 + (session.prefetch+session.Slots-1)/session.Slots)
		longest, parsing := s.sched.jobs.longestTimeout(session), session.countParsing()
		for key, h := range session.held {
			j := s.sched.jobs.find(key.job)
			if h.reported || h.checking || j == nil || j.spec == nil {
				continue
			}

			h.clock.look(now, h.running)
			h.clock.parsing = max(h.clock.parsing, parsing)
			turns := time.Duration(h.clock.parsing) * longest // of a unit that parses

			// Its timeout counts twice, once for its inputs and once for its run.
			limit, since := 2*j.spec.UnitTimeout+most, h.clock.began
			if key.unit.Parses() {
				limit += turns
			}
			if !h.running {
				// It may have to wait for all that was given before it, in rounds of as
				// many as the session has slots.
				limit, since = limit+rounds*(2*longest+most+turns), h.clock.given
			}

			if now-since < limit {
				continue
			}

			held := mapreduce.Held{Job: key.job, Unit: key.unit, Attempt: h.attempt}
			all = append(all, Overdue{Session: session, Held: held, Report: overdueReport(held, h, j, now-since)})
		}
	}
	return all
}

// countParsing returns how many of the units that a session holds parse documents.
func (session *Session) countParsing() (n int) {
	for key := range session.held {
		if key.unit.Parses() {
			n++
		}
	}
	return n
}

// look notes an attempt as it is seen at a time.
func (c *attemptClock) look(now time.Duration, running bool) {
	if !c.looked {
		c.looked, c.given = true, now
	}
	if running && !c.running {
		c.running, c.began = true, now
	}
}

// overdueReport is the report of an attempt that is overdue. What it has spent nobody
// knows, so of a job with a budget it counts as all that it was allowed to.
func overdueReport(held mapreduce.Held, h *HeldUnit, j *Job, after time.Duration) mapreduce.Report {
	why := fmt.Sprintf("timed out: its worker has held it for %v without starting it, and sends only signs of life", after.Round(time.Second))
	if h.running {
		why = fmt.Sprintf("timed out: it has run for %v and may take %v, and its worker sends only signs of life", after.Round(time.Second), j.spec.UnitTimeout)
	}

	rep := mapreduce.Report{
		Job: held.Job, Unit: held.Unit, Attempt: held.Attempt, Outcome: mapreduce.Errored, Class: mapreduce.Retryable, Errors: []string{why},
	}

	if j.spec.Budget > 0 {
		rep.Tokens.In = h.Reserved
	}
	return rep
}

// EnterOverdue enters the report of an attempt that is overdue, and has its worker stop.
// It returns false if the attempt has ended meanwhile.
func (s *Sessions) EnterOverdue(o *Overdue) bool {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	h := o.Session.held[unitKey{o.Held.Job, o.Held.Unit}]
	if s.workers.bound[o.Session.ID] != o.Session || h == nil || h.attempt != o.Held.Attempt || h.reported || h.checking {
		return false
	}

	s.enterReport(o.Session, &o.Report)
	s.sched.jobs.getOrAdd(o.Held.Job).turns.lastReport().overdue = true
	o.Session.Peer.Send(&mapreduce.ToWorker{Cancel: []mapreduce.Held{o.Held}})
	s.sched.wake.Signal()
	return true
}
