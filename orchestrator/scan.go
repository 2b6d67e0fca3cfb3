package orchestrator

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// Orchestrators that all read one queue from its beginning would claim the same
// units, and all but one of their claims would be in vain. So each reads a long
// queue from a place of its own: what waits is parted among those that live, by
// their rank. One that comes to where another has been goes on at a place drawn
// at random.

// refillTo is how many candidates are read at once.
const refillTo = 512

// refillBeside is how many are read at once beside other orchestrators, which may
// claim them meanwhile.
const refillBeside = 128

// A cursor is how far new work in one queue was read: of it, [at, to) is left,
// and after that [0, wrap). What is not in [at, own) others begin with.
type cursor struct{ at, to, wrap, own int64 }

func (c *cursor) isDone() bool { return c.at >= c.to && c.wrap == 0 }

// movePast moves c behind what was found.
func (c *cursor) movePast(found []records.Candidate, more bool) {
	switch {
	case more:
		if last := found[len(found)-1]; last.Class == keys.ClassNew {
			c.at = last.Seq + 1
		}
	case c.wrap > 0:
		*c = cursor{to: c.wrap} // which is others'
	default:
		c.at = c.to
	}
}

// scanQueues reads on in a job's queues.
func (o *Orchestrator) scanQueues(ctx context.Context, r *scheduledJob) {
	b := o.scheduler
	b.mu.Lock()
	cursors := slices.Clone(r.cursors)
	shards, level, crowded := r.shards, r.level, r.crowded
	r.crowded = false
	b.mu.Unlock()
	s := scanner{o: o, job: r.id, limit: refillTo/int(shards) + 1}
	s.part, s.parts = o.queueStart(crowded)
	if s.parts > 1 {
		s.limit = refillBeside/int(shards) + 1
	}
	if s.again = cursors == nil; s.again {
		cursors = slices.Repeat([]cursor{{to: keys.Seq(level+1, 0)}}, int(shards))
	}
	for i := range cursors {
		if err := s.readQueue(ctx, int64(i), &cursors[i]); err != nil {
			o.supervisor.LogFailure(ctx, "reading a queue", err, "job", r.id)
			b.applyScan(r, nil, nil)
			return
		}
	}
	b.applyScan(r, s.found, cursors)
}

// queueStart returns where in a long queue this orchestrator begins, of how many: 0 is
// the front, and 1 would be the end.
func (o *Orchestrator) queueStart(crowded bool) (at float64, nodes int) {
	rank, of := o.members.QueuePlace()
	if of > 1 && crowded {
		return rand.Float64(), of
	}
	return float64(rank) / float64(of), of
}

// A scanner is one reading of a job's queues.
type scanner struct {
	o     *Orchestrator
	job   mapreduce.JobID
	again bool // from the beginning: what came back is read as well
	part  float64
	parts int
	limit int
	found []records.Candidate
}

// readQueue reads on in one queue.
func (s *scanner) readQueue(ctx context.Context, shard int64, c *cursor) error {
	st := queue.Stretch{Shard: shard, From: c.at, To: c.to, Returned: s.again, Limit: s.limit}
	found, more, err := s.o.jobs.Queue.Scan(ctx, s.job, st)
	if err != nil {
		return err
	}
	n := slices.IndexFunc(found, func(c records.Candidate) bool { return c.Class == keys.ClassNew })
	if s.parts == 1 || n < 0 {
		c.movePast(found, more)
		s.found = append(s.found, found...)
		return nil
	}
	s.found = append(s.found, found[:n]...)
	found = found[n:]
	if s.again && more {
		return s.readApart(ctx, st, found[0].Seq, c)
	}
	part := s.part
	if !s.again && c.at >= c.own {
		part = rand.Float64() // others began here
	}
	c.movePast(found, more)
	if s.again || c.at >= c.own {
		k := int(part * float64(len(found)))
		found = slices.Concat(found[k:], found[:k])
	}
	s.found = append(s.found, found...)
	return nil
}

// readApart reads a long queue from this orchestrator's place in it.
func (s *scanner) readApart(ctx context.Context, st queue.Stretch, first int64, c *cursor) error {
	last, err := s.o.jobs.Queue.Last(ctx, s.job, st)
	if err != nil {
		return err
	}
	span := float64(max(0, last-first))
	c.at = first + int64(s.part*span)
	c.wrap, c.own = c.at, c.at+int64(span/float64(s.parts))
	st.From, st.Returned = c.at, false
	found, more, err := s.o.jobs.Queue.Scan(ctx, s.job, st)
	if err != nil {
		return err
	}
	c.movePast(found, more)
	s.found = append(s.found, found...)
	return nil
}

// applyScan takes what a committer read of a job's queues; no cursors, nothing.
func (b *scheduler) applyScan(r *scheduledJob, found []records.Candidate, cursors []cursor) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.reading = false
	if r.reread {
		r.reread = false
	} else {
		r.cursors = cursors
		r.drained = !slices.ContainsFunc(cursors, func(c cursor) bool { return !c.isDone() })
	}
	r.queue = append(r.queue, r.unseenCandidates(found)...)
	b.activateJob(r)
}

// unseenCandidates returns those of found that are neither in the queue in memory nor
// taken from it. The caller holds b.mu.
func (r *scheduledJob) unseenCandidates(found []records.Candidate) []records.Candidate {
	seen := make(map[records.Candidate]bool, len(r.queue))
	for _, c := range r.queue {
		seen[c] = true
	}
	found = slices.DeleteFunc(found, func(c records.Candidate) bool {
		_, taken := r.taken[c]
		return taken || seen[c]
	})
	maps.DeleteFunc(r.taken, func(_ records.Candidate, underWay bool) bool { return !underWay })
	return found
}

// takeCandidates notes that a turn is to claim candidates. The caller holds b.mu.
func (r *scheduledJob) takeCandidates(all []records.Candidate) {
	if r.taken == nil {
		r.taken = make(map[records.Candidate]bool)
	}
	for _, c := range all {
		r.taken[c] = true
	}
}

// returnCandidates notes that the turn has ended. The caller holds b.mu.
func (r *scheduledJob) returnCandidates(all []records.Candidate) {
	for _, c := range all {
		if r.reading {
			r.taken[c] = false
		} else {
			delete(r.taken, c)
		}
	}
}

// restartScan makes the job's queues be read from the beginning. The caller holds
// b.mu.
func (r *scheduledJob) restartScan() {
	r.cursors, r.drained = nil, false
	r.reread = r.reading
}

// noteCrowding makes a job be read elsewhere if most of what was to be claimed had gone:
// another orchestrator is claiming just there. The caller holds b.mu.
func (r *scheduledJob) noteCrowding(candidates, gone int) {
	if candidates < 2 || 2*gone < candidates {
		return
	}
	r.queue = slices.DeleteFunc(r.queue, func(c records.Candidate) bool { return c.Class == keys.ClassNew })
	r.crowded = true
	r.restartScan()
}
