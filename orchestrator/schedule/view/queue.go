// Package view is what a node has seen of what the store holds for jobs: the units that wait in
// their queues, and what it was granted of their slots and tokens, and of the calls of models. It
// is pure, and takes the time as an argument.
package view

import (
	"maps"
	"slices"
	"time"

	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// A Cursor is how far new work in one queue was read: of it, [at, to) is left,
// and after that [0, wrap). What is not in [at, own) others begin with.
type Cursor struct{ At, To, Wrap, Own int64 }

func (c *Cursor) isDone() bool { return c.At >= c.To && c.Wrap == 0 }

// MovePast moves c behind what was found.
func (c *Cursor) MovePast(found []records.Candidate, more bool) {
	switch {
	case more:
		if last := found[len(found)-1]; last.Class == keys.ClassNew {
			c.At = last.Seq + 1
		}
	case c.Wrap > 0:
		*c = Cursor{To: c.Wrap} // which is others'
	default:
		c.At = c.To
	}
}

// A Queue is what this node sees of a job's queues, which are in the store.
type Queue struct {
	level, shards int64
	waiting       []records.Candidate // seen waiting, and not claimed here
	// waitingSince is since when units are there of which none was claimed; zero while there
	// are none.
	waitingSince time.Time
	cursors      []Cursor // by shard; nil: from the beginning
	crowded      bool     // another orchestrator claims where this one did
	// taken are the candidates of turns under way, and those of turns that have ended since
	// the queue is being read: what is read may still show them.
	taken   map[records.Candidate]bool // whether the turn is under way
	drained bool                       // the queue was read to its end
	reading bool                       // it is being read
	reread  bool                       // something was put into it meanwhile
}

// Open begins with the queues of a level, of which all that waits may be known.
func (q *Queue) Open(level, shards int64, waiting []records.Candidate) {
	q.level, q.shards = level, shards
	q.Restart()
	if waiting != nil {
		q.waiting, q.cursors, q.drained = waiting, make([]Cursor, shards), true
	}
}

// Len returns how many units are seen waiting.
func (q *Queue) Len() int { return len(q.waiting) }

// NeedsRead reports whether the queue was not read to its end, and is not being read.
func (q *Queue) NeedsRead() bool { return !q.drained && !q.reading }

// BeginRead notes that the queue is being read.
func (q *Queue) BeginRead() { q.reading = true }

// Forget forgets the units that wait.
func (q *Queue) Forget() { q.waiting = nil }

// Age returns since how long units have waited of which none was claimed; 0 if none waits.
func (q *Queue) Age(now time.Time) time.Duration {
	if q.waitingSince.IsZero() {
		return 0
	}
	return now.Sub(q.waitingSince)
}

// MayHaveUnits reports whether units wait, or some may that were not read.
func (q *Queue) MayHaveUnits() bool { return len(q.waiting) > 0 || !q.drained && !q.reading }

// IsEmpty reports whether nothing waits, as was read to the end.
func (q *Queue) IsEmpty() bool { return q.drained && len(q.waiting) == 0 }

// Position returns how far the queues were read, of how many and up to which level, and
// whether another orchestrator claims where this one did.
func (q *Queue) Position() (cursors []Cursor, shards, level int64, crowded bool) {
	crowded, q.crowded = q.crowded, false
	return slices.Clone(q.cursors), q.shards, q.level, crowded
}

// Claim takes the first n of the units that wait, for a turn.
func (q *Queue) Claim(n int, now time.Time) (all []records.Candidate) {
	all = append(all, q.waiting[:n]...)
	q.waiting = q.waiting[n:]
	q.waitingSince = time.Time{}
	q.NoteWaiting(now)
	q.take(all)
	return all
}

// ApplyScan takes what was read. No cursors mean that nothing could be.
func (q *Queue) ApplyScan(found []records.Candidate, cursors []Cursor) {
	q.reading = false

	// If something was put into the queue while it was read, it is read from the beginning.
	if q.reread {
		q.reread = false
	} else {
		q.cursors = cursors
		q.drained = cursors != nil && !slices.ContainsFunc(cursors, func(c Cursor) bool { return !c.isDone() })
	}

	q.waiting = append(q.waiting, q.unseen(found)...)
}

// unseen returns those of found that are neither in the queue in memory nor
// taken from it.
func (q *Queue) unseen(found []records.Candidate) []records.Candidate {
	seen := make(map[records.Candidate]bool, len(q.waiting))
	for _, c := range q.waiting {
		seen[c] = true
	}

	found = slices.DeleteFunc(found, func(c records.Candidate) bool {
		_, taken := q.taken[c]
		return taken || seen[c]
	})

	// Candidates of turns that have ended cannot show up in a later read.
	maps.DeleteFunc(q.taken, func(_ records.Candidate, underWay bool) bool { return !underWay })
	return found
}

// take notes that a turn is to claim candidates.
func (q *Queue) take(all []records.Candidate) {
	if q.taken == nil {
		q.taken = make(map[records.Candidate]bool)
	}
	for _, c := range all {
		q.taken[c] = true
	}
}

// Release notes that the turn has ended which was to claim candidates.
func (q *Queue) Release(all []records.Candidate) {
	for _, c := range all {
		if q.reading {
			q.taken[c] = false
		} else {
			delete(q.taken, c)
		}
	}
}

// Restart makes the job's queues be read from the beginning.
func (q *Queue) Restart() {
	q.cursors, q.drained = nil, false
	q.reread = q.reading
}

// NoteCrowding makes a job be read elsewhere if most of what was to be claimed had gone:
// another orchestrator is claiming just there.
func (q *Queue) NoteCrowding(candidates, gone int) {
	if candidates < 2 || 2*gone < candidates {
		return
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(c records.Candidate) bool { return c.Class == keys.ClassNew })
	q.crowded = true
	q.Restart()
}

// PutBack returns candidates that are still to be claimed.
func (q *Queue) PutBack(c []records.Candidate) {
	if len(c) > 0 {
		q.waiting = append(append(make([]records.Candidate, 0, len(c)+len(q.waiting)), c...), q.waiting...)
	}
}

// NoteWaiting notes since when units wait of which none was claimed.
func (q *Queue) NoteWaiting(now time.Time) {
	switch {
	case len(q.waiting) == 0:
		q.waitingSince = time.Time{}
	case q.waitingSince.IsZero():
		q.waitingSince = now
	}
}
