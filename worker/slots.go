package worker

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// fillSlots starts waiting units while there are slots for them. mu is held.
func (s *session) fillSlots() {
	for u := s.nextUnit(); u != nil; u = s.nextUnit() {
		s.slots.Add(1)
		go s.runSlot(u)
	}
}

// nextUnit takes the slots for the unit that waits longest, or returns nil if there
// is none or its slots are not free. A unit that must run alone runs apart, in a process of
// its own; while as many do as may, others overtake it. Where none can be started it takes
// all slots, and makes those behind it wait. mu is held.
func (s *session) nextUnit() *unit {
	at := slices.IndexFunc(s.queue, func(u *unit) bool { return !s.mustRunApart(u) || s.apart < maxApart })
	if at < 0 {
		return nil
	}

	u := s.queue[at]
	u.weight, u.apart = 1, s.mustRunApart(u)
	if u.task.Alone && !u.apart {
		u.weight = s.cfg.Slots
	}

	if s.taken+u.weight > s.cfg.Slots {
		return nil
	}

	// The slots are taken before the lock is given back, whoever runs the unit then.
	s.taken += u.weight
	if u.apart {
		s.apart++
	}

	s.queue = slices.Delete(s.queue, at, at+1)
	s.beginUnit(u)
	return u
}

// mustRunApart reports whether a unit that waits is to run in a process of its own.
func (s *session) mustRunApart(u *unit) bool { return u.task.Alone && s.cfg.StartApart != nil }

// beginUnit makes a unit a running one. mu is held.
func (s *session) beginUnit(u *unit) {
	u.phase = running
	u.ctx, u.cancel = context.WithCancelCause(context.Background())
	u.limit = cmp.Or(u.task.Timeout, u.job.spec.UnitTimeout)
	u.timer = time.AfterFunc(u.limit, func() { s.expireUnit(u) })
	s.out.queueStart(u)
}

// restartTimeout restarts the timeout of a unit whose blobs have arrived, or whose turn it is.
func (s *session) restartTimeout(u *unit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !u.interrupted {
		u.paused = false
		u.timer.Reset(u.limit)
	}
}

// pauseTimeout stops the timeout of a unit that waits for its turn at the processor.
func (s *session) pauseTimeout(u *unit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !u.interrupted {
		u.paused = true
		u.timer.Stop()
	}
}

// runSlot runs units until there is none to run. An agent may end the goroutine
// under it (runtime.Goexit): the slot is then taken up by another.
func (s *session) runSlot(u *unit) {
	owned := true
	defer func() {
		if u != nil && owned {
			if u, owned = s.finishUnit(u, u.failedReport(errGoexit)); u != nil {
				s.slots.Add(1)
				go s.runSlot(u)
			}
		}
		if owned {
			s.slots.Done()
		}
	}()

	for u != nil && owned {
		u, owned = s.finishUnit(u, u.executeAttempt())
	}
}

// finishUnit takes the outcome of a unit's attempt and returns the unit to run
// next, if any. If the attempt was abandoned, the slot is no longer owned by
// the caller.
func (s *session) finishUnit(u *unit, r *mapreduce.Report) (next *unit, owned bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	// The report was settled, and the slots given away, when the attempt was abandoned.
	if u.abandoned {
		s.stats.Abandoned--
		return nil, false
	}

	u.task = nil // the inputs are not needed to wait for a verdict
	s.settleUnit(u, r)
	return s.releaseSlots(u), true
}

// releaseSlots gives a unit's slots back and returns the unit to run next in the
// caller's place. mu is held.
func (s *session) releaseSlots(u *unit) *unit {
	s.taken -= u.weight
	if u.apart {
		s.apart--
	}
	next := s.nextUnit()
	s.fillSlots()
	s.checkIdle()
	return next
}

// interruptUnit ends the context of a running unit and allows it a grace period.
// mu is held.
func (s *session) interruptUnit(u *unit, why error) {
	if !u.interrupted {
		u.interrupted = true
		u.cancel(why)
		u.timer.Reset(s.cfg.Grace)
	}
}

// interruptAll interrupts everything that runs, and reports whether anything
// did, be it a unit that was given up before.
func (s *session) interruptAll(why error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, u := range s.units {
		if u.phase == running {
			s.interruptUnit(u, why)
		}
	}
	return s.taken > 0
}

// expireUnit is called when a unit's time is over, and again after its grace.
func (s *session) expireUnit(u *unit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A timer that has fired may wait for the lock while the attempt ends or is paused.
	switch {
	case u.report != nil, u.paused && !u.interrupted:
	case !u.interrupted:
		s.interruptUnit(u, &deadlineError{u.limit})
	default:
		s.abandonUnit(u)
	}
}

// abandonUnit settles a unit whose agent does not return, and gives its slots to
// others: no unit stops a worker. That the attempt is then over is up to the
// agents: those of the program end within moments of their context. mu is held.
func (s *session) abandonUnit(u *unit) {
	s.cfg.Logger.Error("agent does not return", "job", u.id.job, "unit", u.id.unit, "attempt", u.attempt,
		"cause", context.Cause(u.ctx), "grace", s.cfg.Grace)

	u.abandoned = true
	s.stats.Abandoned++
	s.settleUnit(u, u.failedReport(context.Cause(u.ctx)))

	// The goroutine of the agent keeps running, but counts as no slot any more; another
	// takes its place.
	if next := s.releaseSlots(u); next != nil {
		s.slots.Add(1)
		go s.runSlot(next)
	}
	s.slots.Done()
}
