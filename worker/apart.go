package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// This file runs a unit apart: in a process of its own, whose worker has this one for its
// orchestrator. Workers were lost while they ran the unit, and nobody knows whether the unit
// was why. If the process ends while this one lives, the unit was: nothing else ran there.
// If this one is lost as well, that says nothing again.

// StartApart starts a process with a worker of one slot that connects to f, and to nothing
// else. The process must not outlive this one.
type StartApart func(f mapreduce.Fleet) (ApartProcess, error)

// An ApartProcess is a process in which a unit runs.
type ApartProcess interface {
	// Ended is closed when the process has ended, and its stream with it.
	Ended() <-chan struct{}
	// Err says how the process ended. It returns nil while the process runs.
	Err() error
	// Stop ends the process, and returns when it has ended.
	Stop()
}

// maxApart bounds the units that run apart at once: each takes the memory of a process.
const maxApart = 8

// apartBeat is how often the process says how far its unit is.
const apartBeat = time.Second

// runApart runs the attempt in a process of its own.
func (t *attempt) runApart() *mapreduce.Report {
	if r := t.refuseRun(); r != nil {
		return r
	}

	relay := newRelay(t)
	t.session.relays.add(relay)
	defer t.session.relays.remove(relay)

	// The relay is known before the process starts, so that it misses no shares of limits.
	process, err := t.session.cfg.StartApart(relay)
	if err != nil {
		t.session.cfg.Logger.Error("unit handed back: no process could be started for it to run apart from others",
			t.entry.logged("error", err)...)
		return t.reports.Returned(fmt.Sprintf("no process could be started for it to run apart from others: %v", err))
	}
	defer process.Stop()

	select {
	case r := <-relay.ended:
		return r
	case <-process.Ended():
		return relay.lastReport(process)
	case <-t.ctx.Done():
		return relay.interrupt(process)
	}
}

// A relay is the orchestrator of a process in which one unit runs. What the process says of
// the unit, this worker says to its own orchestrator, and the other way round; blobs go
// straight through. The goroutines of the process's calls use it, while that of the slot waits
// for what it says; of the attempt they read only what does not change.
type relay struct {
	attempt *attempt
	ended   chan *mapreduce.Report // capacity 1: how the process ended the attempt
	out     chan *mapreduce.ToWorker
	taken   atomic.Bool // the process has connected
	noted   int64       // the number of the last note that was passed on; of Work alone
}

var _ mapreduce.Fleet = (*relay)(nil)

// maxUnread bounds the messages that a process has not read. One that reads nothing must
// not hold up this worker: it misses what is more.
const maxUnread = 256

func newRelay(t *attempt) *relay {
	return &relay{attempt: t, ended: make(chan *mapreduce.Report, 1), out: make(chan *mapreduce.ToWorker, maxUnread)}
}

// Work implements mapreduce.Fleet for the only session that there is.
func (r *relay) Work(ctx context.Context, stream mapreduce.WorkStream) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if first.Hello == nil {
		return errs.Field("hello", "must come first")
	}
	if !r.taken.CompareAndSwap(false, true) {
		return errs.New(errs.Exhausted, "the unit runs already")
	}
	if err := stream.Send(r.assignment()); err != nil {
		return err
	}

	var working sync.WaitGroup
	defer working.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	working.Go(func() { r.sendAll(ctx, stream) })

	// From here on sendAll alone writes to the process.
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, q := range m.Reserve {
			working.Go(func() { r.reserve(ctx, q) })
		}
		r.hear(m)
	}
}

// assignment is the first message to the process: the unit, its job, and what is known of
// limits and of servers.
func (r *relay) assignment() *mapreduce.ToWorker {
	t := r.attempt
	a := t.task.Assignment
	a.Alone = false // it is
	return &mapreduce.ToWorker{
		Welcome:     &mapreduce.Welcome{Node: "apart", Epoch: 1, Heartbeat: apartBeat},
		Jobs:        []mapreduce.JobInfo{{Job: t.held.Job, Stage: t.task.Stage, Spec: *t.job.spec}},
		Assignments: []mapreduce.Assignment{a},
		Limits:      t.session.relays.knownShares(),
		Manners:     t.session.cfg.Manners.All(),
	}
}

// tell sends the process a message, and drops it if the process reads nothing. It does not
// wait.
func (r *relay) tell(m *mapreduce.ToWorker) {
	select {
	case r.out <- m:
	default:
	}
}

// sendAll sends the messages that tell has queued, until ctx or the stream ends.
func (r *relay) sendAll(ctx context.Context, stream mapreduce.WorkStream) {
	for {
		select {
		case m := <-r.out:
			if stream.Send(m) != nil {
				return // Recv says why
			}
		case <-ctx.Done():
			return
		}
	}
}

// hear takes what the process says of the unit.
func (r *relay) hear(m *mapreduce.FromWorker) {
	for _, h := range m.Started {
		if r.attempt.entry.isOf(h) {
			r.attempt.entry.extendTime(r.attempt.session.cfg.Grace)
		}
	}

	if m.Heartbeat != nil {
		for _, p := range m.Heartbeat.Progress {
			if r.attempt.entry.isOf(p.Held) {
				r.follow(p)
			}
		}
	}

	if len(m.Manners) > 0 {
		r.attempt.session.cfg.Manners.Learn(m.Manners, true)
	}
	for i := range m.Reports {
		rep := &m.Reports[i]
		if !r.attempt.entry.isOf(mapreduce.Held{Job: rep.Job, Unit: rep.Unit, Attempt: rep.Attempt}) {
			continue
		}

		// ended holds one report. One that comes again is dropped, so that nobody waits
		// here.
		select {
		case r.ended <- rep:
		default: // it has said so before
		}
	}
}

// reserve asks the orchestrator for tokens on behalf of the process.
func (r *relay) reserve(ctx context.Context, q mapreduce.ReserveRequest) {
	if !r.attempt.entry.isOf(q.Held) {
		return
	}

	question := r.attempt.calls.AskFor(q.Tokens)
	r.attempt.session.out.queueQuestion(r.attempt.entry)
	select {
	case <-question.Done:
		r.tell(&mapreduce.ToWorker{Reserved: []mapreduce.ReserveReply{{Held: q.Held, Granted: question.Granted}}})
	case <-ctx.Done():
	}
}

// errNotApart refuses transfers of other units.
var errNotApart = errs.New(errs.Precondition, "the unit does not run in this process")

// GetBlob implements mapreduce.Blobs.
func (r *relay) GetBlob(ctx context.Context, q *mapreduce.BlobRequest, take func([]byte) error) error {
	if !r.attempt.entry.isOf(q.Held) {
		return errNotApart
	}
	return r.attempt.session.transfers.GetBlob(ctx, q, take)
}

// PutBlob implements mapreduce.Blobs.
func (r *relay) PutBlob(ctx context.Context, q *mapreduce.BlobRequest, next func() ([]byte, error)) (*mapreduce.BlobStored, error) {
	if !r.attempt.entry.isOf(q.Held) {
		return nil, errNotApart
	}
	return r.attempt.session.transfers.PutBlob(ctx, q, next)
}

// lastReport returns the report of an attempt whose process has ended: the one that it has
// made before, or that it ended.
func (r *relay) lastReport(process ApartProcess) *mapreduce.Report {
	select {
	case rep := <-r.ended:
		return rep
	default:
	}

	t := r.attempt
	t.calls.ChargeReserved()
	return t.reports.Errored(mapreduce.Retryable, 0, fmt.Sprintf(
		"attempt %d ended its process, in which nothing else ran, at %s: %v",
		t.held.Attempt, time.Now().UTC().Format(time.RFC3339), process.Err()))
}

// interrupt ends an attempt that is to end. The process has half of the time for that which
// an agent has in this one.
func (r *relay) interrupt(process ApartProcess) *mapreduce.Report {
	t := r.attempt
	r.tell(&mapreduce.ToWorker{Cancel: []mapreduce.Held{t.held}})

	patience := time.NewTimer(t.session.cfg.Grace / 2)
	defer patience.Stop()

	// A result counts even if it comes late. Of anything else only the spending is kept:
	// the attempt ended because it was interrupted.
	select {
	case rep := <-r.ended:
		if rep.Outcome == mapreduce.Done {
			return rep
		}
		t.calls.FollowReport(rep)
	case <-process.Ended():
		t.calls.ChargeReserved()
	case <-patience.C:
		t.calls.ChargeReserved()
	}
	return t.reports.Failed(t.reports.InterruptCause())
}

// follow takes over how far the process says that the unit is.
func (r *relay) follow(p mapreduce.Progress) {
	r.attempt.calls.FollowSpent(p.Tokens)
	if p.Number > r.noted { // else it was said before
		r.noted = p.Number
		r.attempt.calls.Progress(p.Note)
	}
}
