package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
)

// beginPut stores something of a unit, for which its report waits. It ends when
// nobody waits for the unit any more. mu is held.
func (s *session) beginPut(u *unit, put func(context.Context)) {
	if u.stopPuts == nil {
		u.putting, u.stopPuts = context.WithCancelCause(s.life)
	}

	ctx := u.putting
	u.puts++

	s.putting.Go(func() {
		put(ctx)
		// The report waits for the last of its puts. Whichever ends last queues it.
		s.mu.Lock()
		defer s.mu.Unlock()
		if u.puts--; u.puts == 0 && u.phase == reported {
			s.out.queueReport(u)
		}
	})
}

// deliverReport queues the report of a unit, after its output and state are stored. mu
// is held.
func (s *session) deliverReport(u *unit) {
	if u.report.Length > 0 && !u.apart { // else the process in which it ran has put it
		s.beginPut(u, func(ctx context.Context) { s.putOutput(ctx, u) })
	}
	if u.puts == 0 {
		s.out.queueReport(u)
	}
}

// putOutput stores the output of a report. Where that is refused for good, the
// attempt has failed, and where the store is damaged, its unit.
func (s *session) putOutput(ctx context.Context, u *unit) {
	s.mu.Lock()
	r, h := u.report, u.attemptHeld()
	b, data := mapreduce.Blob{Kind: mapreduce.BlobOutput, SHA256: r.SHA256}, r.Output
	s.mu.Unlock()

	err := s.transfers.Put(ctx, h, b, data, 0)
	if err == nil || ctx.Err() != nil || errors.Is(err, errs.Precondition) { // the last: the report will be refused as well
		return
	}

	s.cfg.Logger.Error("storing an output", "job", u.id.job, "unit", u.id.unit, "attempt", u.attempt, "error", err)
	s.mu.Lock()
	defer s.mu.Unlock()

	// The report was settled with the time that the attempt took; its replacement keeps
	// that.
	elapsed := u.report.Elapsed
	class, _ := agent.Classify(err)
	u.report = u.erroredReport(class, 0, fmt.Sprintf("output of %d bytes: %v", len(data), err))
	u.report.Elapsed = elapsed
}
