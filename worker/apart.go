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
func (u *unit) runApart() *mapreduce.Report {
	if r := u.refuseRun(); r != nil {
		return r
	}

	relay := newRelay(u)
	u.session.addRelay(relay)
	defer u.session.removeRelay(relay)

	// The relay is known before the process starts, so that it misses no shares of limits.
	process, err := u.session.cfg.StartApart(relay)
	if err != nil {
		u.session.cfg.Logger.Error("unit handed back: no process could be started for it to run apart from others",
			"job", u.id.job, "unit", u.id.unit, "attempt", u.attempt, "error", err)
		return u.returnedReport(fmt.Sprintf("no process could be started for it to run apart from others: %v", err))
	}
	defer process.Stop()

	select {
	case r := <-relay.ended:
		return r
	case <-process.Ended():
		return relay.lastReport(process)
	case <-u.ctx.Done():
		return relay.interrupt(process)
	}
}

// A relay is the orchestrator of a process in which one unit runs. What the process says of
// the unit, this worker says to its own orchestrator, and the other way round; blobs go
// straight through.
type relay struct {
	unit  *unit
	ended chan *mapreduce.Report // capacity 1: how the process ended the attempt
	out   chan *mapreduce.ToWorker
	taken atomic.Bool // the process has connected
	noted int64       // the number of the last note that was passed on; of Work alone
}

var _ mapreduce.Fleet = (*relay)(nil)

// maxUnread bounds the messages that a process has not read. One that reads nothing must
// not hold up this worker: it misses what is more.
const maxUnread = 256

func newRelay(u *unit) *relay {
	return &relay{unit: u, ended: make(chan *mapreduce.Report, 1), out: make(chan *mapreduce.ToWorker, maxUnread)}
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
	u := r.unit
	a := u.task.Assignment
	a.Alone = false // it is
	return &mapreduce.ToWorker{
		Welcome:     &mapreduce.Welcome{Node: "apart", Epoch: 1, Heartbeat: apartBeat},
		Jobs:        []mapreduce.JobInfo{{Job: u.id.job, Stage: u.task.Stage, Spec: *u.job.spec}},
		Assignments: []mapreduce.Assignment{a},
		Limits:      u.session.knownShares(),
		Manners:     u.session.knownManners(),
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
		if r.isOurs(h) {
			r.unit.session.startedApart(r.unit)
		}
	}

	if m.Heartbeat != nil {
		for _, p := range m.Heartbeat.Progress {
			if r.isOurs(p.Held) {
				r.follow(p)
			}
		}
	}

	r.unit.session.learnManners(m.Manners, true)
	for i := range m.Reports {
		rep := &m.Reports[i]
		if !r.isOurs(mapreduce.Held{Job: rep.Job, Unit: rep.Unit, Attempt: rep.Attempt}) {
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

// isOurs reports whether h names the attempt.
func (r *relay) isOurs(h mapreduce.Held) bool {
	return h.Job == r.unit.id.job && h.Unit == r.unit.id.unit && h.Attempt == r.unit.attempt
}

// reserve asks the orchestrator for tokens on behalf of the process.
func (r *relay) reserve(ctx context.Context, q mapreduce.ReserveRequest) {
	if !r.isOurs(q.Held) {
		return
	}

	question := r.unit.askFor(q.Tokens)
	r.unit.session.out.queueQuestion(r.unit)
	select {
	case <-question.done:
		r.tell(&mapreduce.ToWorker{Reserved: []mapreduce.ReserveReply{{Held: q.Held, Granted: question.granted}}})
	case <-ctx.Done():
	}
}

// errNotApart refuses transfers of other units.
var errNotApart = errs.New(errs.Precondition, "the unit does not run in this process")

// GetBlob implements mapreduce.Blobs.
func (r *relay) GetBlob(ctx context.Context, q *mapreduce.BlobRequest, take func([]byte) error) error {
	if !r.isOurs(q.Held) {
		return errNotApart
	}
	return r.unit.session.transfers.GetBlob(ctx, q, take)
}

// PutBlob implements mapreduce.Blobs.
func (r *relay) PutBlob(ctx context.Context, q *mapreduce.BlobRequest, next func() ([]byte, error)) (*mapreduce.BlobStored, error) {
	if !r.isOurs(q.Held) {
		return nil, errNotApart
	}
	return r.unit.session.transfers.PutBlob(ctx, q, next)
}

// lastReport returns the report of an attempt whose process has ended: the one that it has
// made before, or that it ended.
func (r *relay) lastReport(process ApartProcess) *mapreduce.Report {
	select {
	case rep := <-r.ended:
		return rep
	default:
	}

	u := r.unit
	u.chargeReserved()
	return u.erroredReport(mapreduce.Retryable, 0, fmt.Sprintf(
		"attempt %d ended its process, in which nothing else ran, at %s: %v",
		u.attempt, time.Now().UTC().Format(time.RFC3339), process.Err()))
}

// interrupt ends an attempt that is to end. The process has half of the time for that which
// an agent has in this one.
func (r *relay) interrupt(process ApartProcess) *mapreduce.Report {
	u := r.unit
	r.tell(&mapreduce.ToWorker{Cancel: []mapreduce.Held{u.attemptHeld()}})

	patience := time.NewTimer(u.session.cfg.Grace / 2)
	defer patience.Stop()

	// A result counts even if it comes late. Of anything else only the spending is kept:
	// the attempt ended because it was interrupted.
	select {
	case rep := <-r.ended:
		if rep.Outcome == mapreduce.Done {
			return rep
		}
		u.followReport(rep)
	case <-process.Ended():
		u.chargeReserved()
	case <-patience.C:
		u.chargeReserved()
	}
	return u.failedReport(u.interruptCause())
}

// follow takes over how far the process says that the unit is.
func (r *relay) follow(p mapreduce.Progress) {
	r.unit.followSpent(p.Tokens)
	if p.Number > r.noted { // else it was said before
		r.noted = p.Number
		r.unit.Progress(p.Note)
	}
}

// followSpent takes over what the process in which the unit runs says that it has spent.
func (a *account) followSpent(t mapreduce.Tokens) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spent = t
}

// followReport takes over what the process in which the unit ran says that it has spent.
func (a *account) followReport(r *mapreduce.Report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spent, a.cost, a.savings = r.Tokens, r.CostMicros, r.Savings
	a.calls, a.latency, a.prompt = r.Calls, r.Latency, r.Prompt
	a.tools, a.toolTime = r.Tools, r.ToolTime
}

// chargeReserved counts all that was reserved as spent, of a job with a budget: what a
// process had spent that has ended nobody knows.
func (a *account) chargeReserved() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bounded {
		a.spent.In += max(0, a.granted-a.spent.Total())
	}
}

// askFor returns the open question for a reservation, or one for so many tokens in all.
func (a *account) askFor(tokens int64) *reserveQuestion {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asking == nil {
		a.asking = &reserveQuestion{tokens: tokens, done: make(chan struct{})}
	}
	return a.asking
}

// startedApart has the timeout of a unit begin when its process has begun it. The process
// keeps to the timeout itself, once it has what the unit needs; this one only sees to it
// that the attempt ends.
func (s *session) startedApart(u *unit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.phase == running && !u.interrupted {
		u.timer.Reset(2*u.limit + s.cfg.Grace)
	}
}

// addRelay has a relay sent the shares of limits that come from now on.
func (s *session) addRelay(r *relay) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.relays[r] = struct{}{}
}

// removeRelay removes a relay whose unit has ended.
func (s *session) removeRelay(r *relay) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.relays, r)
}

// A knownShare is a share of limits of a model, and when it came.
type knownShare struct {
	share mapreduce.LimitShare
	came  time.Time
}

// passShares notes shares of limits, and passes them on to the processes in which units run
// apart: they call models as well.
func (s *session) passShares(shares []mapreduce.LimitShare) {
	s.mu.Lock()
	var told []*relay
	for i := range shares {
		s.shares[shares[i].Name] = knownShare{shares[i], time.Now()}
	}
	for r := range s.relays {
		told = append(told, r)
	}
	s.mu.Unlock()

	for _, r := range told {
		r.tell(&mapreduce.ToWorker{Limits: shares})
	}
}

// knownShares returns the shares of limits that hold now.
func (s *session) knownShares() []mapreduce.LimitShare {
	s.mu.Lock()
	defer s.mu.Unlock()

	var all []mapreduce.LimitShare
	for _, k := range s.shares {
		// A share was given for a time from when it came. The process begins to count when
		// it gets it.
		share, passed := k.share, time.Since(k.came)
		if share.For > 0 {
			share.For = max(1, share.For-passed)
		}
		share.Pause, share.OpenFor = max(0, share.Pause-passed), max(0, share.OpenFor-passed)
		all = append(all, share)
	}
	return all
}
