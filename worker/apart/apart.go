// Package apart runs a unit apart: in a process of its own, whose worker has a relay for its
// orchestrator. Workers were lost while they ran the unit, and nobody knows whether the unit
// was why. If the process ends while this one lives, the unit was: nothing else ran there.
// If this one is lost as well, that says nothing again.
//
// It knows of one unit and its process, and of what other processes must know when they start. How units
// get slots, and how processes are started, it must not import: both are handed to it.
package apart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/report"
)

// A Start starts a process with a worker of one slot that connects to f, and to nothing
// else. The process must not outlive this one.
type Start func(f protocol.Fleet) (Process, error)

// A Process is one in which a unit runs.
type Process interface {
	// Ended is closed when the process has ended, and its stream with it.
	Ended() <-chan struct{}
	// Err says how the process ended. It returns nil while the process runs.
	Err() error
	// Stop ends the process, and returns when it has ended.
	Stop()
}

// Most bounds the units that run apart at once: each takes the memory of a process.
const Most = 8

// beat is how often the process says how far its unit is.
const beat = time.Second

// A Unit is an attempt at a unit that is to run apart, with what sees to it in this process. All of it must be
// set, and any goroutine may use it.
type Unit struct {
	Assignment protocol.Assignment
	Spec       *mapreduce.JobSpec
	Reports    report.Reporter // of the attempt
	Grace      time.Duration   // from the end of the attempt's context until it is given up
	Blobs      protocol.Blobs  // to and from the orchestrator
	Manners    Manners
	Log        *slog.Logger // which names the unit

	Began func()            // the process has begun the unit
	Ask   func()            // has the question of the account put to the orchestrator
	Say   func(note string) // tells the orchestrator what the unit says of itself
}

// Manners are what is known of what servers of models do not take.
type Manners interface {
	// Learn takes what others have learned. What is new is news of this process if pass says so.
	Learn(all []protocol.ModelManners, pass bool)

	// All returns everything that is known.
	All() []protocol.ModelManners
}

// isOf reports whether h names the attempt.
func (u *Unit) isOf(h protocol.Held) bool {
	own := u.Reports.Held
	return own.Job == h.Job && own.Unit == h.Unit && own.Attempt == h.Attempt
}

// Run runs a unit in a process of its own, and returns its report.
func (rs *Relays) Run(start Start, u *Unit) *protocol.Report {
	relay := newRelay(u)
	rs.add(relay)
	defer rs.remove(relay)

	// The relay is known before the process starts, so that it misses no shares of limits.
	relay.shares = rs.knownShares
	process, err := start(relay)
	if err != nil {
		u.Log.Error("unit handed back: no process could be started for it to run apart from others", "error", err)
		return u.Reports.Returned(fmt.Sprintf("no process could be started for it to run apart from others: %v", err))
	}
	defer process.Stop()

	select {
	case r := <-relay.ended:
		return r
	case <-process.Ended():
		return relay.lastReport(process)
	case <-u.Reports.Context.Done():
		return relay.interrupt(process)
	}
}

// A relay is the orchestrator of a process in which one unit runs. What the process says of
// the unit, this worker says to its own orchestrator, and the other way round; blobs go
// straight through. The goroutines of the process's calls use it, while that of the slot waits
// for what it says.
type relay struct {
	unit   *Unit
	shares func() []protocol.LimitShare // that hold now
	ended  chan *protocol.Report        // capacity 1: how the process ended the attempt
	out    chan *protocol.ToWorker
	taken  atomic.Bool // the process has connected
	noted  int64       // the number of the last note that was passed on; of Work alone
}

var _ protocol.Fleet = (*relay)(nil)

// maxUnread bounds the messages that a process has not read. One that reads nothing must
// not hold up this worker: it misses what is more.
const maxUnread = 256

func newRelay(u *Unit) *relay {
	return &relay{unit: u, ended: make(chan *protocol.Report, 1), out: make(chan *protocol.ToWorker, maxUnread)}
}

// Work implements protocol.Fleet for the only session that there is.
func (r *relay) Work(ctx context.Context, stream protocol.WorkStream) error {
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
func (r *relay) assignment() *protocol.ToWorker {
	u := r.unit
	a := u.Assignment
	a.Alone = false // it is
	return &protocol.ToWorker{
		Welcome:     &protocol.Welcome{Node: "apart", Epoch: 1, Heartbeat: beat},
		Jobs:        []protocol.JobInfo{{Job: a.Job, Stage: a.Stage, Spec: *u.Spec}},
		Assignments: []protocol.Assignment{a},
		Limits:      r.shares(),
		Manners:     u.Manners.All(),
	}
}

// tell sends the process a message, and drops it if the process reads nothing. It does not
// wait.
func (r *relay) tell(m *protocol.ToWorker) {
	select {
	case r.out <- m:
	default:
	}
}

// sendAll sends the messages that tell has queued, until ctx or the stream ends.
func (r *relay) sendAll(ctx context.Context, stream protocol.WorkStream) {
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
func (r *relay) hear(m *protocol.FromWorker) {
	for _, h := range m.Started {
		if r.unit.isOf(h) {
			r.unit.Began()
		}
	}

	if m.Heartbeat != nil {
		for _, p := range m.Heartbeat.Progress {
			if r.unit.isOf(p.Held) {
				r.follow(p)
			}
		}
	}

	if len(m.Manners) > 0 {
		r.unit.Manners.Learn(m.Manners, true)
	}
	for i := range m.Reports {
		rep := &m.Reports[i]
		if !r.unit.isOf(protocol.Held{Job: rep.Job, Unit: rep.Unit, Attempt: rep.Attempt}) {
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
func (r *relay) reserve(ctx context.Context, q protocol.ReserveRequest) {
	if !r.unit.isOf(q.Held) {
		return
	}

	question := r.unit.Reports.Account.AskFor(q.Tokens)
	r.unit.Ask()
	select {
	case <-question.Done:
		r.tell(&protocol.ToWorker{Reserved: []protocol.ReserveReply{{Held: q.Held, Granted: question.Granted}}})
	case <-ctx.Done():
	}
}

// errNotApart refuses transfers of other units.
var errNotApart = errs.New(errs.Precondition, "the unit does not run in this process")

// GetBlob implements protocol.Blobs.
func (r *relay) GetBlob(ctx context.Context, q *protocol.BlobRequest, take func([]byte) error) error {
	if !r.unit.isOf(q.Held) {
		return errNotApart
	}
	return r.unit.Blobs.GetBlob(ctx, q, take)
}

// PutBlob implements protocol.Blobs.
func (r *relay) PutBlob(ctx context.Context, q *protocol.BlobRequest, next func() ([]byte, error)) (*protocol.BlobStored, error) {
	if !r.unit.isOf(q.Held) {
		return nil, errNotApart
	}
	return r.unit.Blobs.PutBlob(ctx, q, next)
}

// lastReport returns the report of an attempt whose process has ended: the one that it has
// made before, or that it ended.
func (r *relay) lastReport(process Process) *protocol.Report {
	select {
	case rep := <-r.ended:
		return rep
	default:
	}

	u := r.unit
	u.Reports.Account.ChargeReserved()
	return u.Reports.Errored(protocol.Retryable, 0, fmt.Sprintf(
		"attempt %d ended its process, in which nothing else ran, at %s: %v",
		u.Reports.Held.Attempt, time.Now().UTC().Format(time.RFC3339), process.Err()))
}

// interrupt ends an attempt that is to end. The process has half of the time for that which
// an agent has in this one.
func (r *relay) interrupt(process Process) *protocol.Report {
	u := r.unit
	r.tell(&protocol.ToWorker{Cancel: []protocol.Held{u.Reports.Held}})

	patience := time.NewTimer(u.Grace / 2)
	defer patience.Stop()

	// A result counts even if it comes late. Of anything else only the spending is kept:
	// the attempt ended because it was interrupted.
	select {
	case rep := <-r.ended:
		if rep.Outcome == protocol.Done {
			return rep
		}
		u.Reports.Account.FollowReport(rep)
	case <-process.Ended():
		u.Reports.Account.ChargeReserved()
	case <-patience.C:
		u.Reports.Account.ChargeReserved()
	}
	return u.Reports.Failed(u.Reports.InterruptCause())
}

// follow takes over how far the process says that the unit is.
func (r *relay) follow(p protocol.Progress) {
	r.unit.Reports.Account.FollowSpent(p.Tokens)
	if p.Number > r.noted { // else it was said before
		r.noted = p.Number
		r.unit.Say(p.Note)
	}
}
