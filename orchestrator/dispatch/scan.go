package dispatch

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/orchestrator/schedule/view"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// If all orchestrators read one queue from its beginning, they would claim the same
// units, and only one of the claims would commit. So each orchestrator reads a long queue
// from its own place: the queue is divided among the living ones by their rank. An
// orchestrator that reaches a part where another has been continues at a random place.

// refillTo is how many candidates are read at once.
const refillTo = 512

// refillBeside is how many are read at once beside other orchestrators, which may
// claim them meanwhile.
const refillBeside = 128

// scanQueues reads on in a job's queues.
func (c *Committer) scanQueues(ctx context.Context, j *schedule.Job) {
	cursors, shards, level, crowded := c.scheduler.Turns.ScanPosition(j)
	s := scanner{committer: c, job: j.ID, limit: refillTo/int(shards) + 1}
	s.part, s.parts = c.queueStart(crowded)
	if s.parts > 1 {
		s.limit = refillBeside/int(shards) + 1
	}

	if s.again = cursors == nil; s.again {
		cursors = slices.Repeat([]view.Cursor{{To: keys.Seq(level+1, 0)}}, int(shards))
	}

	for i := range cursors {
		if err := s.readQueue(ctx, int64(i), &cursors[i]); err != nil {
			c.supervisor.LogFailure(ctx, "reading a queue", err, "job", j.ID)
			if ctx.Err() == nil && c.supervisor.MustFail(&c.troubles, j.ID, err) {
				c.supervisor.FailJob(ctx, j.ID, err)
			}
			c.delayRetry(j)
			// The candidates that were found are dropped with the cursors, as the next
			// reading begins anew.
			c.scheduler.Turns.ApplyScan(j, nil, nil)
			return
		}
	}

	c.scheduler.Turns.ApplyScan(j, s.found, cursors)
}

// queueStart returns where in a long queue this orchestrator begins, of how many: 0 is
// the front, and 1 would be the end.
func (c *Committer) queueStart(crowded bool) (at float64, nodes int) {
	rank, of := c.members.QueuePlace()
	if of > 1 && crowded {
		return rand.Float64(), of //nolint:gosec // a place to begin is no secret
	}
	return float64(rank) / float64(of), of
}

// A scanner is one reading of a job's queues.
type scanner struct {
	committer *Committer
	job       mapreduce.JobID
	again     bool // from the beginning: what came back is read as well
	part      float64
	parts     int
	limit     int
	found     []records.Candidate
}

// readQueue reads on in one queue.
func (s *scanner) readQueue(ctx context.Context, shard int64, c *view.Cursor) error {
	st := queue.Stretch{Shard: shard, From: c.At, To: c.To, Returned: s.again, Limit: s.limit}
	found, more, err := s.committer.jobs.Queue.Scan(ctx, s.job, st)
	if err != nil {
		return err
	}

	// Units that came back stand before new ones, and are taken as they come.
	n := slices.IndexFunc(found, func(c records.Candidate) bool { return c.Class == keys.ClassNew })
	if s.parts == 1 || n < 0 {
		c.MovePast(found, more)
		s.found = append(s.found, found...)
		return nil
	}

	s.found = append(s.found, found[:n]...)
	found = found[n:]
	if s.again && more {
		return s.readApart(ctx, st, found[0].Seq, c)
	}

	part := s.part
	if !s.again && c.At >= c.Own {
		part = rand.Float64() //nolint:gosec // others began here, and a place to begin is no secret
	}

	c.MovePast(found, more)
	if s.again || c.At >= c.Own {
		// Orchestrators that read the same stretch do not claim in the same order.
		k := int(part * float64(len(found)))
		found = slices.Concat(found[k:], found[:k])
	}

	s.found = append(s.found, found...)
	return nil
}

// readApart reads a long queue from this orchestrator's place in it.
func (s *scanner) readApart(ctx context.Context, st queue.Stretch, first int64, c *view.Cursor) error {
	last, err := s.committer.jobs.Queue.Last(ctx, s.job, st)
	if err != nil {
		return err
	}

	span := float64(max(0, last-first))
	c.At = first + int64(s.part*span)
	// The part of the queue before this place is read last.
	c.Wrap, c.Own = c.At, c.At+int64(span/float64(s.parts))
	st.From, st.Returned = c.At, false

	found, more, err := s.committer.jobs.Queue.Scan(ctx, s.job, st)
	if err != nil {
		return err
	}

	c.MovePast(found, more)
	s.found = append(s.found, found...)
	return nil
}
