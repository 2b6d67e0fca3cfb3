package worker

import (
	"cmp"
	"context"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// fill starts waiting units while there are slots for them. mu is held.
func (s *session) fill() {
	for u := s.next(); u != nil; u = s.next() {
		s.slots.Add(1)
		go s.slot(u)
	}
}

// next takes the slots for the unit that waits longest, or returns nil if there
// is none or its slots are not free: a unit that must run alone makes those
// behind it wait. mu is held.
func (s *session) next() *unit {
	if len(s.queue) == 0 {
		return nil
	}
	u := s.queue[0]
	u.weight = 1
	if u.task.Alone {
		u.weight = s.cfg.Slots
	}
	if s.taken+u.weight > s.cfg.Slots {
		return nil
	}
	s.taken += u.weight
	s.queue[0] = nil
	s.queue = s.queue[1:]
	s.begin(u)
	return u
}

// begin makes a unit a running one. mu is held.
func (s *session) begin(u *unit) {
	u.phase = running
	u.ctx, u.cancel = context.WithCancelCause(context.Background())
	u.limit = cmp.Or(u.task.Timeout, u.job.spec.UnitTimeout)
	u.timer = time.AfterFunc(u.limit, func() { s.expire(u) })
	s.out.started = append(s.out.started, u)
	s.signal()
}

// restart gives a unit that has got what it needs its whole time from now on.
func (s *session) restart(u *unit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !u.interrupted {
		u.timer.Reset(u.limit)
	}
}

// slot runs units until there is none to run. An agent may end the goroutine
// under it (runtime.Goexit): the slot is then taken up by another.
func (s *session) slot(u *unit) {
	owned := true
	defer func() {
		if u != nil && owned {
			if u, owned = s.finish(u, u.failed(errGoexit)); u != nil {
				s.slots.Add(1)
				go s.slot(u)
			}
		}
		if owned {
			s.slots.Done()
		}
	}()
	for u != nil && owned {
		u, owned = s.finish(u, u.execute())
	}
}

// finish takes the outcome of a unit's attempt and returns the unit to run
// next, if any. If the attempt was abandoned, the slot is no longer owned by
// the caller.
func (s *session) finish(u *unit, r mapreduce.Report) (next *unit, owned bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.abandoned {
		s.stats.Abandoned--
		return nil, false
	}
	u.task = nil // the inputs are not needed to wait for a verdict
	s.settle(u, r)
	return s.release(u), true
}

// release gives a unit's slots back and returns the unit to run next in the
// caller's place. mu is held.
func (s *session) release(u *unit) *unit {
	s.taken -= u.weight
	next := s.next()
	s.fill()
	s.checkIdle()
	return next
}

// interrupt ends the context of a running unit and allows it a grace period.
// mu is held.
func (s *session) interrupt(u *unit, why error) {
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
			s.interrupt(u, why)
		}
	}
	return s.taken > 0
}

// expire is called when a unit's time is over, and again after its grace.
func (s *session) expire(u *unit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case u.ended:
	case !u.interrupted:
		s.interrupt(u, &deadlineError{u.limit})
	default:
		s.abandon(u)
	}
}

// abandon settles a unit whose agent does not return, and gives its slots to
// others. mu is held.
func (s *session) abandon(u *unit) {
	s.cfg.Logger.Error("agent does not return", "job", u.id.job, "unit", u.id.unit, "attempt", u.attempt,
		"cause", context.Cause(u.ctx), "grace", s.cfg.Grace)
	u.abandoned = true
	s.stats.Abandoned++
	s.settle(u, u.failed(context.Cause(u.ctx)))
	if next := s.release(u); next != nil {
		s.slots.Add(1)
		go s.slot(next)
	}
	s.slots.Done()
	if s.stats.Abandoned >= s.cfg.MaxAbandoned && !s.tired() {
		s.cfg.Logger.Error("too many agents do not return: the worker stops", "abandoned", s.stats.Abandoned)
		close(s.exhausted)
	}
}

// tired reports whether too many attempts were abandoned.
func (s *session) tired() bool {
	select {
	case <-s.exhausted:
		return true
	default:
		return false
	}
}
