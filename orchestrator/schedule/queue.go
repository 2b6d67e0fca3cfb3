package schedule

import (
	"maps"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
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

// ScanPosition returns how far a job's queues were read, of how many and up to which
// level, and whether another orchestrator claims where this one did.
func (b *Scheduler) ScanPosition(r *Job) (cursors []Cursor, shards, level int64, crowded bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	crowded, r.crowded = r.crowded, false
	return slices.Clone(r.cursors), r.shards, r.level, crowded
}

// ApplyScan takes what a committer read of a job's queues. No cursors mean that it could
// not: then they are read from the beginning.
func (b *Scheduler) ApplyScan(r *Job, found []records.Candidate, cursors []Cursor) {
	b.mu.Lock()
	defer b.mu.Unlock()

	r.reading = false
	if r.reread {
		// Something was put into the queue while it was read: it is read from the
		// beginning.
		r.reread = false
	} else {
		r.cursors = cursors
		r.drained = cursors != nil && !slices.ContainsFunc(cursors, func(c Cursor) bool { return !c.isDone() })
	}

	r.queue = append(r.queue, r.unseenCandidates(found)...)
	r.noteWaiting(b.now())
	b.activateJob(r)
}

// unseenCandidates returns those of found that are neither in the queue in memory nor
// taken from it. The caller holds the scheduler's mu.
func (r *Job) unseenCandidates(found []records.Candidate) []records.Candidate {
	seen := make(map[records.Candidate]bool, len(r.queue))
	for _, c := range r.queue {
		seen[c] = true
	}

	found = slices.DeleteFunc(found, func(c records.Candidate) bool {
		_, taken := r.taken[c]
		return taken || seen[c]
	})

	// Candidates of turns that have ended cannot show up in a later read.
	maps.DeleteFunc(r.taken, func(_ records.Candidate, underWay bool) bool { return !underWay })
	return found
}

// takeCandidates notes that a turn is to claim candidates. The caller holds the
// scheduler's mu.
func (r *Job) takeCandidates(all []records.Candidate) {
	if r.taken == nil {
		r.taken = make(map[records.Candidate]bool)
	}
	for _, c := range all {
		r.taken[c] = true
	}
}

// returnCandidates notes that the turn has ended. The caller holds the scheduler's mu.
func (r *Job) returnCandidates(all []records.Candidate) {
	for _, c := range all {
		if r.reading {
			r.taken[c] = false
		} else {
			delete(r.taken, c)
		}
	}
}

// restartScan makes the job's queues be read from the beginning. The caller holds the
// scheduler's mu.
func (r *Job) restartScan() {
	r.cursors, r.drained = nil, false
	r.reread = r.reading
}

// noteCrowding makes a job be read elsewhere if most of what was to be claimed had gone:
// another orchestrator is claiming just there. The caller holds the scheduler's mu.
func (r *Job) noteCrowding(candidates, gone int) {
	if candidates < 2 || 2*gone < candidates {
		return
	}
	r.queue = slices.DeleteFunc(r.queue, func(c records.Candidate) bool { return c.Class == keys.ClassNew })
	r.crowded = true
	r.restartScan()
}

// putBack returns candidates that are still to be claimed. The caller holds the
// scheduler's mu.
func (r *Job) putBack(c []records.Candidate) {
	if len(c) > 0 {
		r.queue = append(append(make([]records.Candidate, 0, len(c)+len(r.queue)), c...), r.queue...)
	}
}

// Enqueue puts units into a job's queue that are known to wait there.
func (b *Scheduler) Enqueue(id mapreduce.JobID, found []records.Candidate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.runs[id]; r != nil && r.running {
		r.putBack(found)
		r.noteWaiting(b.now())
		b.activateJob(r)
	}
}

// Reread makes a job's queue be read again: something may have been put into it.
func (b *Scheduler) Reread(id mapreduce.JobID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.runs[id]; r != nil && r.running {
		r.restartScan()
		b.activateJob(r)
	}
}
