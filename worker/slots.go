package worker

import (
	"cmp"
	"context"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/report"
)

// fillSlots starts waiting attempts while there are slots for them. mu is held.
func (s *session) fillSlots() {
	for e := s.startNext(); e != nil; e = s.startNext() {
		s.slots.Add(1)
		go s.runSlot(e, e.attempt)
	}
}

// startNext makes the attempt that is next a running one, and returns it for its slot to run;
// nil if there is none. mu is held.
func (s *session) startNext() *entry {
	e := s.queue.next()
	if e == nil {
		return nil
	}

	e.phase = running
	a := e.attempt
	e.deadline.start(cmp.Or(a.task.Timeout, a.job.spec.UnitTimeout), func() { s.expire(e) })
	s.out.queueStart(e)
	return e
}

// runSlot runs attempts until there is none to run. An agent may end the goroutine
// under it (runtime.Goexit): the slot is then taken up by another.
func (s *session) runSlot(e *entry, a *attempt) {
	owned := true
	defer func() {
		if e != nil && owned {
			if e, a, owned = s.finish(e, a.reports.Failed(errGoexit)); e != nil {
				s.slots.Add(1)
				go s.runSlot(e, a)
			}
		}
		if owned {
			s.slots.Done()
		}
	}()

	for e != nil && owned {
		e, a, owned = s.finish(e, a.execute())
	}
}

// finish takes the outcome of an attempt and returns the one to run next, if any. If the
// attempt was abandoned, the slot is no longer owned by the caller.
func (s *session) finish(e *entry, r *protocol.Report) (next *entry, a *attempt, owned bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	// The report was settled, and the slots given away, when the attempt was abandoned.
	if e.abandoned {
		s.stats.Abandoned--
		return nil, nil, false
	}

	s.settle(e, r)
	if next = s.releaseSlots(e); next != nil {
		a = next.attempt
	}
	return next, a, true
}

// releaseSlots gives an attempt's slots back and returns the attempt to run next in the
// caller's place. mu is held.
func (s *session) releaseSlots(e *entry) *entry {
	s.queue.release(e)
	next := s.startNext()
	s.fillSlots()
	s.checkIdle()
	return next
}

// interruptAll interrupts everything that runs, and reports whether anything
// did, be it an attempt that was given up before.
func (s *session) interruptAll(why error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, e := range s.entries.running() {
		e.deadline.interrupt(why, s.cfg.Grace)
	}
	return s.queue.taken > 0
}

// expire is called when an attempt's time is over, and again after its grace.
func (s *session) expire(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A timer that has fired may wait for the lock while the attempt ends or is paused.
	switch d := &e.deadline; {
	case e.report != nil, d.paused && !d.interrupted:
	case !d.interrupted:
		d.interrupt(&report.LateError{After: d.limit}, s.cfg.Grace)
	default:
		s.abandon(e)
	}
}

// abandon settles an attempt whose agent does not return, and gives its slots to
// others: no unit stops a worker. That the attempt is then over is up to the
// agents: those of the program end within moments of their context. mu is held.
func (s *session) abandon(e *entry) {
	cause := context.Cause(e.calls.ctx)
	s.cfg.Logger.Error("agent does not return", e.logged("cause", cause, "grace", s.cfg.Grace)...)

	e.abandoned = true
	s.stats.Abandoned++
	s.settle(e, e.reports.Failed(cause))

	// The goroutine of the agent keeps running, but counts as no slot any more; another
	// takes its place.
	if next := s.releaseSlots(e); next != nil {
		s.slots.Add(1)
		go s.runSlot(next, next.attempt)
	}
	s.slots.Done()
}
