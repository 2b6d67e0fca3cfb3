package worker

import (
	"slices"

	"github.com/coditect/mapreduce/worker/apart"
)

// A slotQueue is what waits for a slot, and how many slots are taken. It decides which attempt
// is next, and starts none: session does, in goroutines. The session's lock guards it.
type slotQueue struct {
	slots     int  // that there are
	runsApart bool // what must run alone can have a process of its own

	waiting []*entry // in order of arrival
	taken   int      // slots
	apart   int      // attempts that run in processes of their own
}

// add lets an attempt wait.
func (q *slotQueue) add(e *entry) { q.waiting = append(q.waiting, e) }

// remove gives an attempt up that waits.
func (q *slotQueue) remove(e *entry) {
	q.waiting = slices.DeleteFunc(q.waiting, func(other *entry) bool { return other == e })
}

// removeAll gives up everything that waits, and returns it.
func (q *slotQueue) removeAll() []*entry {
	all := q.waiting
	q.waiting = nil
	return all
}

// next takes the slots for the attempt that waits longest, and returns it; nil if there is none
// or its slots are not free. An attempt that must run alone runs apart, in a process of its own;
// while as many do as may, others overtake it. Where none can be started it takes all slots, and
// makes those behind it wait.
func (q *slotQueue) next() *entry {
	at := slices.IndexFunc(q.waiting, func(e *entry) bool { return !q.mustRunApart(e) || q.apart < apart.Most })
	if at < 0 {
		return nil
	}

	e := q.waiting[at]
	e.weight, e.apart = 1, q.mustRunApart(e)
	if e.alone && !e.apart {
		e.weight = q.slots
	}

	if q.taken+e.weight > q.slots {
		return nil
	}

	// The slots are taken before the lock is given back, whoever runs the attempt then.
	q.taken += e.weight
	if e.apart {
		q.apart++
	}
	q.waiting = slices.Delete(q.waiting, at, at+1)
	return e
}

// mustRunApart reports whether an attempt is to run in a process of its own.
func (q *slotQueue) mustRunApart(e *entry) bool { return e.alone && q.runsApart }

// release gives the slots of an attempt back.
func (q *slotQueue) release(e *entry) {
	q.taken -= e.weight
	if e.apart {
		q.apart--
	}
}
