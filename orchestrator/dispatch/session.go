package dispatch

import (
	"cmp"
	"context"
	"errors"
	"io"
	"reflect"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/grant"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
)

// A workerStream is the stream of a session, seen from here.
type workerStream struct {
	*workers.Session
	out       *outbox
	stop      context.CancelCauseFunc // ends the stream
	life      context.Context         // ends with the stream, but holds nothing of it
	idleTimer idleTimer
	lookUps   *rate.Limiter // of jobs that it names and the scheduler does not know
	checking  chan struct{} // full while as many of its outputs are checked as it may have waiting

	mu   sync.Mutex // guards the variables below
	gets int        // blobs that it gets, and
	puts int        // that it puts
}

// Send implements schedule.Peer.
func (s *workerStream) Send(m *protocol.ToWorker) { s.out.put(m) }

// Lags implements schedule.Peer.
func (s *workerStream) Lags() bool { return s.out.isFull() }

// Stop implements schedule.Peer.
func (s *workerStream) Stop(why error) { s.stop(why) }

// Work implements protocol.Fleet.
func (f *Fleet) Work(ctx context.Context, stream protocol.WorkStream) error {
	if err := f.admission.admitStream(ctx); err != nil {
		return err
	}
	defer f.admission.streams.Done()

	first, err := f.receiveHello(ctx, stream)
	if err != nil {
		return err
	}
	if err := checkHello(first.Hello); err != nil {
		return err
	}

	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	life, stop := newLife()
	defer stop(nil)
	defer context.AfterFunc(life, func() { end(context.Cause(life)) })()

	s, err := f.bindSession(ctx, life, first, stop)
	if err != nil {
		return err
	}

	clean, err := f.serveSession(ctx, s, first, stream)
	if !clean {
		f.metrics.StreamReset(ctx, isRefusal(cmp.Or(context.Cause(life), context.Cause(ctx))))
	}

	// The session is kept for a while, and would keep the messages that were not sent.
	s.out.discard()
	f.handleStreamEnd(s, clean, stream.ClosedByWorker())
	return err
}

// newLife returns a context for what is to end with a stream. It does not derive from that
// of the stream: the session is kept until its worker has had the time to come back and its
// units are elsewhere, and would keep the stream for as long, with all that its worker has
// sent and nobody has read.
func newLife() (life context.Context, stop context.CancelCauseFunc) {
	return context.WithCancelCause(context.Background())
}

// isRefusal reports whether a stream ended for what its worker did or left out, as the
// cause of the end of its context says.
func isRefusal(cause error) bool {
	return cause != nil && !errors.Is(cause, context.Canceled) && !errors.Is(cause, schedule.ErrSuperseded) && !errors.Is(cause, ErrStopped)
}

// receiveHello returns what a worker says first. One that says nothing for the lease is
// sent away, and all are when the orchestrator leaves.
func (f *Fleet) receiveHello(ctx context.Context, stream protocol.WorkStream) (*protocol.FromWorker, error) {
	var m *protocol.FromWorker
	var err error
	said := make(chan struct{})

	f.admission.streams.Go(func() { // Recv ends when the stream does, which may be after first
		defer close(said)
		err = f.supervisor.ContainPanic(ctx, "greeting a worker", func() (err error) {
			m, err = stream.Recv()
			return err
		})
	})

	t := time.NewTimer(f.config.Lease)
	defer t.Stop()

	select {
	case <-said:
		if errors.Is(err, io.EOF) {
			return nil, errs.Field("hello", "must come first, and nothing was said")
		}
		return m, err
	case <-t.C:
		return nil, errSilent
	case <-f.admission.leaving:
		return nil, errLeaving
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// serveSession carries a bound session until its stream ends, and reports whether the
// worker ended it in order. A worker that does not read holds up no other.
func (f *Fleet) serveSession(ctx context.Context, s *workerStream, first *protocol.FromWorker, stream protocol.WorkStream) (clean bool, err error) {
	sent, received := make(chan error, 1), make(chan error, 1)
	ctx, end := context.WithCancel(ctx)
	defer end()

	f.admission.streams.Add(2) // Send and Recv end when the stream does, which may be after serve
	go func() {
		defer f.admission.streams.Done()
		received <- f.supervisor.ContainPanic(ctx, "hearing a worker", func() error { return f.receiveMessages(ctx, s, first, stream) }, "session", s.ID)
	}()

	go func() {
		defer f.admission.streams.Done()
		sent <- f.supervisor.ContainPanic(ctx, "telling a worker", func() error {
			return s.out.sendQueued(stream, func(m *protocol.ToWorker, err error) { f.takeBackUnsent(s, m, err) })
		}, "session", s.ID)
	}()

	// Whichever ends first ends the session.
	select {
	case err = <-received:
		clean = err == nil
	case err = <-sent:
		// The select below takes it again.
		sent <- err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}

	// Queued messages are still sent, unless the stream has broken.
	s.out.close()
	select {
	case e := <-sent:
		err = cmp.Or(err, e)
	case <-ctx.Done():
		err = cmp.Or(err, context.Cause(ctx))
	}

	return clean, err
}

const (
	maxSlots   = 2000 // one transaction binds all that a session holds
	maxHolding = 2 * maxSlots
)

func checkHello(h *protocol.Hello) error {
	switch {
	case h == nil:
		return errs.Field("hello", "must come first")
	case h.Session == "":
		return errs.Field("hello.session", "must not be empty")
	case h.Slots < 1 || h.Slots > maxSlots:
		return errs.Field("hello.slots", "is %d; it must be 1 to %d", h.Slots, maxSlots)
	case h.Prefetch < 0 || h.Prefetch > maxSlots:
		return errs.Field("hello.prefetch", "is %d; it must be 0 to %d", h.Prefetch, maxSlots)
	case len(h.Holding) > maxHolding:
		return errs.Field("hello.holding", "names %d units; at most %d fit", len(h.Holding), maxHolding)
	}
	return nil
}

// bindSession takes a worker's session up, and puts it on the scheduler. The session of a
// worker that drains does so from the start, as it must be given nothing.
func (f *Fleet) bindSession(ctx, life context.Context, first *protocol.FromWorker, stop context.CancelCauseFunc) (*workerStream, error) {
	hello := first.Hello

	before, _, err := f.jobs.Nodes.Epoch(ctx, hello.Session)
	if err != nil {
		return nil, err
	}

	// An epoch must never come again, even when the session's record was
	// removed in between: the clock makes that so, and nothing rests on its
	// being right.
	epoch := max(before, time.Now().UnixMicro()) + 1

	f.scheduler.Sessions.Supersede(hello.Session, epoch)
	by, _ := mapreduce.CallerOf(ctx) // who has a tenant works for that alone
	idle := f.scheduler.Sessions.Expect(workers.NewSession(hello, by.Tenant, epoch, first.Drain, nil), hello.Holding, f.grants.MaxCalls())
	b, err := f.jobs.Sessions.Bind(ctx, hello, by.Tenant, epoch, idle)
	if err != nil {
		f.Losses.handleUnbound(hello.Session, before, epoch)
		return nil, err
	}

	s := &workerStream{
		out: newOutbox(f.scheduler.Sessions.OfferAgain), stop: stop, life: life, lookUps: newLookUps(), checking: make(chan struct{}, maxChecking),
	}
	s.Session = workers.NewSession(hello, by.Tenant, b.Epoch, first.Drain, s)

	silence := f.maxWorkerSilence()
	if hello.Embedded {
		silence = 0 // there is no other orchestrator for it
	}

	s.out.put(&protocol.ToWorker{Welcome: &protocol.Welcome{
		Node: f.jobs.Node(), Epoch: b.Epoch, Heartbeat: f.config.Heartbeat, Drop: b.Drop, Silence: silence,
	}})

	if !f.scheduler.Sessions.Enter(s.Session, b.Kept) {
		f.Losses.handleUnbound(s.ID, s.Epoch)
	}

	f.scheduler.Grants.MarkCallsDue() // some may have come with the session
	if err := f.grants.AskForCalls(ctx); err != nil {
		f.supervisor.LogFailure(ctx, "asking for the fleet's slots", err)
	}

	for _, id := range b.Jobs {
		f.scheduler.Reread(id)
	}

	running := f.scheduler.Running()
	for _, id := range running[:min(len(running), grant.MaxDue)] {
		f.signals.MarkDue(id) // it may lack slots that it had no use for before
	}

	f.config.Logger.Info("worker bound", "session", s.ID, "slots", s.Slots, "kept", len(b.Kept), "dropped", len(b.Drop))
	return s, nil
}

// receiveMessages takes what a worker says until its stream ends, with its first message
// the rest of what that says.
func (f *Fleet) receiveMessages(ctx context.Context, s *workerStream, first *protocol.FromWorker, stream protocol.WorkStream) error {
	if err := f.handleMessage(ctx, s, first); err != nil {
		return err
	}

	for {
		if err := s.out.awaitRoom(ctx, f.config.Lease); err != nil {
			return err
		}

		// A worker counts as silent only while it is waited for.
		s.idleTimer.startWaiting(f.supervisor.StoreUptime())
		m, err := stream.Recv()
		s.idleTimer.stopWaiting()

		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}

		if err := f.handleMessage(ctx, s, m); err != nil {
			return err
		}
	}
}

// handleMessage takes one message: reports, signs of life, and requests for tokens. What may
// take long has streams of its own, such as looking for a text or an answer, or
// storing what a unit has done: so it delays no other unit's report.
func (f *Fleet) handleMessage(ctx context.Context, s *workerStream, m *protocol.FromWorker) error {
	suspects, err := f.reports.hear(ctx, s, m)
	if err != nil {
		return err
	}

	if len(suspects) > 0 {
		err := f.supervisor.RetryStoreCall(ctx, "noting which units have begun", func() error { return f.jobs.Sessions.Started(ctx, suspects) })
		if err != nil {
			return err
		}
	}

	return f.grants.RaiseReservations(ctx, s.Session, m.Reserve)
}

// takeBackUnsent takes back the units of a message that could not be sent for what it was, not
// for want of a connection. A unit that was alone in it failed an attempt: handed out again, it
// would break the next stream. Of several, nobody knows which it was, so each goes apart next.
func (f *Fleet) takeBackUnsent(s *workerStream, m *protocol.ToWorker, err error) {
	if errs.KindOf(err) != errs.Invalid {
		return
	}

	wasAlone := len(m.Assignments) == 1
	for i := range m.Assignments {
		a := &m.Assignments[i]
		report := &protocol.Report{Job: a.Job, Unit: a.Unit, Attempt: a.Attempt, Outcome: protocol.Returned}

		if wasAlone {
			report.Errors = []string{"it could not be handed out: " + err.Error()}
			f.config.Logger.Error("a unit cannot be handed out", "job", a.Job, "unit", a.Unit, "attempt", a.Attempt, "session", s.ID, "error", err)
		}
		f.scheduler.Sessions.EnterReportFor(s.Session, report, wasAlone)
	}
}

// closedGrace is how long a worker has to come back that has closed its connection itself. It
// needs one way to this orchestrator and back for that, and no more of the network's time-outs.
const closedGrace = 300 * time.Millisecond

// handleStreamEnd deals with a stream that has ended: the worker has the grace period to
// come back, unless it said goodbye and holds nothing. A worker whose own system closed the
// connection has most likely ended; one that lives makes the next connection at once.
func (f *Fleet) handleStreamEnd(s *workerStream, clean, closed bool) {
	running, done, ok := f.scheduler.Sessions.Leave(s.Session)
	if !ok {
		return // taken up again already
	}

	grace := f.config.Grace
	switch {
	case clean && done:
		grace = 0
	case closed:
		grace = min(grace, closedGrace)
	}

	f.config.Logger.Info("worker left", "session", s.ID, "clean", clean, "closed", closed, "running", len(running))
	f.supervisor.AfterGrace(grace, func(ctx context.Context) { f.Losses.expireLostSession(ctx, s.Session, running) })
}

// An outbox holds the messages for a session until its sender sends them. A worker that
// does not read has its outbox fill up: then it is given no units, and what it says is
// not heard, until it has read; if it reads nothing for long, its stream ends.
type outbox struct {
	emptied func() // called when it was full, and is not any more

	mu         sync.Mutex // guards the variables below
	more       *sync.Cond
	queue      []*protocol.ToWorker
	bytes      int64         // of what is queued or being sent, about
	unanswered int           // reports that came, and whose verdicts were not put
	unheld     int           // of these, at most: reports of attempts that the worker does not hold
	room       chan struct{} // closed unless the worker is not heard for now
	stuck      time.Time     // since when a message is being sent; zero while none is
	closed     bool
}

// maxUnanswered is how many reports of a worker may wait for their verdicts before what
// else it says is heard. It holds at most maxHolding units, and may report each again.
const maxUnanswered = 2 * maxHolding

// maxUnheld is how many of these may be of attempts that the worker does not hold. Each
// costs a transaction, as what was spent counts.
const maxUnheld = 64

// outboxBytes is how much may wait for a worker before it has to read.
const outboxBytes = 4 << 20

// newOutbox returns an empty outbox, which calls emptied when it was full and is not any
// more.
func newOutbox(emptied func()) *outbox {
	o := &outbox{room: make(chan struct{}), emptied: emptied}
	o.more = sync.NewCond(&o.mu)
	close(o.room)
	return o
}

func (o *outbox) put(m *protocol.ToWorker) {
	o.mu.Lock()
	defer o.mu.Unlock()

	if o.closed {
		return
	}

	o.queue = append(o.queue, m)
	o.change(func() {
		o.bytes += messageSize(m)
		o.unanswered = max(0, o.unanswered-len(m.Verdicts))
		o.unheld = min(o.unheld, o.unanswered)
	})

	o.more.Signal()
}

// noteReports notes that reports came, some of attempts that the worker does not hold.
func (o *outbox) noteReports(n, unheld int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.change(func() {
		o.unanswered += n
		o.unheld += unheld
	})
}

// change runs how, which changes what waits for the worker or what is to be heard of it,
// and closes or opens the room for more. The caller holds mu.
func (o *outbox) change(how func()) {
	full := o.isCrowded()
	how()
	switch now := o.isCrowded(); {
	case now && !full:
		o.room = make(chan struct{})
	case full && !now:
		close(o.room)
	}
}

// isCrowded reports whether no more is to be heard of the worker for now. The caller
// holds mu.
func (o *outbox) isCrowded() bool {
	return o.bytes >= outboxBytes || o.unanswered >= maxUnanswered || o.unheld >= maxUnheld
}

// isFull reports whether the worker has to read before it is sent more.
func (o *outbox) isFull() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes >= outboxBytes
}

// awaitRoom waits until the worker has read enough, and its reports were dealt with.
func (o *outbox) awaitRoom(ctx context.Context, most time.Duration) error {
	o.mu.Lock()
	room := o.room
	o.mu.Unlock()

	// There nearly always is room, and then no timer is needed.
	select {
	case <-room:
		return nil
	default:
	}

	t := time.NewTimer(most)
	defer t.Stop()

	select {
	case <-room:
		return nil
	case <-t.C:
		return errUnread
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stuckFor returns for how long the worker has not taken the message that is being sent.
func (o *outbox) stuckFor(now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stuck.IsZero() {
		return 0
	}
	return now.Sub(o.stuck)
}

// messageSize is about how many bytes a message takes.
func messageSize(m *protocol.ToWorker) int64 {
	n := 128 + 128*(len(m.Verdicts)+len(m.Reserved)+len(m.Cancel)+len(m.Forget)+len(m.Limits)+len(m.Jobs)) + 768*len(m.Manners)
	for i := range m.Assignments {
		n += assignmentSize(&m.Assignments[i])
	}
	return int64(n)
}

// close lets what is in the outbox be sent, and nothing more.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.more.Signal()
}

// discard drops what was not sent, as its stream has ended: the session is kept for longer.
func (o *outbox) discard() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed, o.queue = true, nil
	o.more.Signal()
}

// sendQueued sends what is put into the outbox until it is closed, messages that carry only
// verdicts together. If one cannot be sent, failed is called with it.
func (o *outbox) sendQueued(stream protocol.WorkStream, failed func(*protocol.ToWorker, error)) error {
	for {
		batch, size, ok := o.takeBatch()
		if !ok {
			return nil
		}

		for _, m := range coalesceVerdicts(batch) {
			o.noteSending(time.Now())
			if err := stream.Send(m); err != nil {
				o.close()
				failed(m, err)
				return err
			}
		}

		o.noteSent(size)
	}
}

// noteSending notes since when a message is being sent.
func (o *outbox) noteSending(since time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stuck = since
}

// noteSent notes that what was taken was sent.
func (o *outbox) noteSent(size int64) {
	o.mu.Lock()
	full := o.bytes >= outboxBytes
	o.stuck = time.Time{}
	o.change(func() { o.bytes -= size })
	emptied := full && o.bytes < outboxBytes
	o.mu.Unlock()

	// Outside the lock: emptied takes the scheduler's, whose holders put messages here.
	if emptied {
		o.emptied()
	}
}

// takeBatch takes what is queued, and returns how many bytes that is, about.
func (o *outbox) takeBatch() ([]*protocol.ToWorker, int64, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) == 0 && !o.closed {
		o.more.Wait()
	}
	batch := o.queue
	o.queue = nil
	return batch, o.bytes, len(batch) > 0
}

// coalesceVerdicts joins runs of messages that carry only verdicts.
func coalesceVerdicts(batch []*protocol.ToWorker) []*protocol.ToWorker {
	joined := batch[:1]
	for _, m := range batch[1:] {
		last := joined[len(joined)-1]
		if onlyVerdicts(m) {
			last.Verdicts = append(last.Verdicts, m.Verdicts...)
			continue
		}
		joined = append(joined, m)
	}
	return joined
}

func onlyVerdicts(m *protocol.ToWorker) bool {
	rest := *m
	rest.Verdicts = nil
	return reflect.ValueOf(rest).IsZero()
}
