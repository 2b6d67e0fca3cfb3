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
func (s *Scheduler) ScanPosition(j *Job) (cursors []Cursor, shards, level int64, crowded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	crowded, j.crowded = j.crowded, false
	return slices.Clone(j.cursors), j.shards, j.level, crowded
}

// ApplyScan takes what a committer read of a job's queues. No cursors mean that it could
// not: then they are read from the beginning.
func (s *Scheduler) ApplyScan(j *Job, found []records.Candidate, cursors []Cursor) {
	s.mu.Lock()
	defer s.mu.Unlock()

	j.reading = false
	if j.reread {
		// Something was put into the queue while it was read: it is read from the
		// beginning.
		j.reread = false
	} else {
		j.cursors = cursors
		j.drained = cursors != nil && !slices.ContainsFunc(cursors, func(c Cursor) bool { return !c.isDone() })
	}

	j.queue = append(j.queue, j.unseenCandidates(found)...)
	j.noteWaiting(s.now())
	s.activateJob(j)
}

// unseenCandidates returns those of found that are neither in the queue in memory nor
// taken from it. The caller holds the scheduler's mu.
func (j *Job) unseenCandidates(found []records.Candidate) []records.Candidate {
	seen := make(map[records.Candidate]bool, len(j.queue))
	for _, c := range j.queue {
		seen[c] = true
	}

	found = slices.DeleteFunc(found, func(c records.Candidate) bool {
		_, taken := j.taken[c]
		return taken || seen[c]
	})

	// Candidates of turns that have ended cannot show up in a later read.
	maps.DeleteFunc(j.taken, func(_ records.Candidate, underWay bool) bool { return !underWay })
	return found
}

// takeCandidates notes that a turn is to claim candidates. The caller holds the
// scheduler's mu.
func (j *Job) takeCandidates(all []records.Candidate) {
	if j.taken == nil {
		j.taken = make(map[records.Candidate]bool)
	}
	for _, c := range all {
		j.taken[c] = true
	}
}

// returnCandidates notes that the turn has ended. The caller holds the scheduler's mu.
func (j *Job) returnCandidates(all []records.Candidate) {
	for _, c := range all {
		if j.reading {
			j.taken[c] = false
		} else {
			delete(j.taken, c)
		}
	}
}

// restartScan makes the job's queues be read from the beginning. The caller holds the
// scheduler's mu.
func (j *Job) restartScan() {
	j.cursors, j.drained = nil, false
	j.reread = j.reading
}

// noteCrowding makes a job be read elsewhere if most of what was to be claimed had gone:
// another orchestrator is claiming just there. The caller holds the scheduler's mu.
func (j *Job) noteCrowding(candidates, gone int) {
	if candidates < 2 || 2*gone < candidates {
		return
	}
	j.queue = slices.DeleteFunc(j.queue, func(c records.Candidate) bool { return c.Class == keys.ClassNew })
	j.crowded = true
	j.restartScan()
}

// putBack returns candidates that are still to be claimed. The caller holds the
// scheduler's mu.
func (j *Job) putBack(c []records.Candidate) {
	if len(c) > 0 {
		j.queue = append(append(make([]records.Candidate, 0, len(c)+len(j.queue)), c...), j.queue...)
	}
}

// Enqueue puts units into a job's queue that are known to wait there.
func (s *Scheduler) Enqueue(id mapreduce.JobID, found []records.Candidate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.runs[id]; j != nil && j.running {
		j.putBack(found)
		j.noteWaiting(s.now())
		s.activateJob(j)
	}
}

// Reread makes a job's queue be read again: something may have been put into it.
func (s *Scheduler) Reread(id mapreduce.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.runs[id]; j != nil && j.running {
		j.restartScan()
		s.activateJob(j)
	}
}
