package worker

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/transfer"
)

// deliveries have reports sent, each after what its attempt has made is stored: entries of the
// journal, answers for others, and its output. Slots and agents begin puts, with the session's
// lock held; a put runs in a goroutine of its own, for which Run waits at its end.
type deliveries struct {
	mu        *sync.Mutex // the session's, which guards entries
	out       *outbox
	transfers *transfer.Carrier
	log       *slog.Logger

	life    context.Context // ends when the session does; set by Run
	putting sync.WaitGroup
}

// puts are what is being stored of an attempt, for which its report waits. The session's lock
// guards them.
type puts struct {
	underWay int
	ctx      context.Context
	stop     context.CancelCauseFunc // ends ctx; nil if nothing was put

	sending  bool // entries of the journal are being put
	sendUpTo int  // entries that are to be
}

// beginPut stores something of an attempt, for which its report waits. It ends when
// nobody waits for the attempt any more. The lock is held.
func (d *deliveries) beginPut(e *entry, put func(context.Context)) {
	p := &e.puts
	if p.stop == nil {
		p.ctx, p.stop = context.WithCancelCause(d.life)
	}

	ctx := p.ctx
	p.underWay++

	d.putting.Go(func() {
		put(ctx)
		// The report waits for the last of its puts. Whichever ends last queues it.
		d.mu.Lock()
		defer d.mu.Unlock()
		if p.underWay--; p.underWay == 0 && e.phase == reported {
			d.out.queueReport(e)
		}
	})
}

// stopPuts ends what is being stored of an attempt that nobody waits for. The lock is held.
func (d *deliveries) stopPuts(e *entry) {
	if e.puts.stop != nil {
		e.puts.stop(errOver)
	}
}

// deliverReport queues the report of an attempt, after its output is stored. The lock is held.
func (d *deliveries) deliverReport(e *entry) {
	if e.report.Length > 0 && !e.apart { // else the process in which it ran has put it
		d.beginPut(e, func(ctx context.Context) { d.putOutput(ctx, e) })
	}
	if e.puts.underWay == 0 {
		d.out.queueReport(e)
	}
}

// putOutput stores the output of a report. Where that is refused for good, the
// attempt has failed, and where the store is damaged, its unit.
func (d *deliveries) putOutput(ctx context.Context, e *entry) {
	d.mu.Lock()
	r := e.report
	b, data := protocol.Blob{Kind: protocol.BlobOutput, SHA256: r.SHA256}, r.Output
	d.mu.Unlock()

	err := d.transfers.Put(ctx, e.held, b, data, 0)
	if err == nil || ctx.Err() != nil || errors.Is(err, errs.Precondition) { // the last: the report will be refused as well
		return
	}

	d.log.Error("storing an output", e.logged("error", err)...)
	d.mu.Lock()
	defer d.mu.Unlock()

	// The report was settled with the time that the attempt took; its replacement keeps
	// that.
	elapsed := e.report.Elapsed
	class, _ := agent.Classify(err)
	e.report = e.reports.Errored(class, 0, fmt.Sprintf("output of %d bytes: %v", len(data), err))
	e.report.Elapsed = elapsed
}

// sendEntries has all entries of the journal stored that are there now. The report of
// the attempt waits for it. The lock is held.
func (d *deliveries) sendEntries(e *entry) {
	c, p := e.calls, &e.puts
	if c.journal == nil {
		return // the agent was not started
	}

	c.MarkKept()
	p.sendUpTo = c.journal.Len()

	if p.sending || c.journal.Waiting() == 0 {
		return
	}

	p.sending = true
	d.beginPut(e, func(ctx context.Context) { d.putEntries(ctx, e) })
}

// putEntries stores entries, as many at once as fit, until those are stored that were
// to be sent.
func (d *deliveries) putEntries(ctx context.Context, e *entry) {
	j, p := e.calls.journal, &e.puts
	for {
		d.mu.Lock()
		first, data, n := j.Next(p.sendUpTo)
		p.sending = n > 0
		d.mu.Unlock()
		if n == 0 {
			return
		}

		sum := sha256.Sum256(data)
		b := protocol.Blob{Kind: protocol.BlobJournal, FirstEntry: first, SHA256: sum[:]}

		err := d.transfers.Put(ctx, e.held, b, data, 0)
		if err == nil {
			j.Acknowledge(n)
			continue
		}

		j.Break(fmt.Errorf("the journal of the unit is not stored any more: %w", err))
		if ctx.Err() == nil && !errors.Is(err, errs.Precondition) { // the last: the report will be refused as well
			d.log.Error("storing the journal of a unit", e.logged("error", err)...)
		}
	}
}
