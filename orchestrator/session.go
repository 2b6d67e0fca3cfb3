package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/store/jobs/nodes"
)

// A workerStream is the stream of a session, seen from here.
type workerStream struct {
	*schedule.Session
	out       *outbox
	stop      context.CancelCauseFunc // ends the stream
	life      context.Context         // of the stream
	idleTimer idleTimer
	checking  chan struct{} // full while as many of its outputs are checked as it may have waiting

	mu   sync.Mutex // guards the variables below
	gets int        // blobs that it gets, and
	puts int        // that it puts
}

// Send implements schedule.Peer.
func (s *workerStream) Send(m *mapreduce.ToWorker) { s.out.put(m) }

// Stop implements schedule.Peer.
func (s *workerStream) Stop(why error) { s.stop(why) }

// Work implements mapreduce.Fleet.
func (o *Orchestrator) Work(ctx context.Context, stream mapreduce.WorkStream) error {
	if err := o.admitStream(ctx); err != nil {
		return err
	}
	defer o.streams.Done()
	first, err := o.receiveHello(ctx, stream)
	if err != nil {
		return err
	}
	if err := checkHello(first.Hello); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s, err := o.bindSession(ctx, first, stop)
	if err != nil {
		return err
	}
	clean, err := o.serveSession(ctx, s, first, stream)
	o.handleStreamEnd(s, clean)
	return err
}

// receiveHello returns what a worker says first. One that says nothing for the lease is
// sent away, and all are when the orchestrator leaves.
func (o *Orchestrator) receiveHello(ctx context.Context, stream mapreduce.WorkStream) (*mapreduce.FromWorker, error) {
	var m *mapreduce.FromWorker
	var err error
	said := make(chan struct{})
	o.streams.Go(func() { // Recv ends when the stream does, which may be after first
		defer close(said)
		err = o.supervisor.ContainPanic(ctx, "greeting a worker", func() (err error) {
			m, err = stream.Recv()
			return err
		})
	})
	t := time.NewTimer(o.config.Lease)
	defer t.Stop()
	select {
	case <-said:
		return m, err
	case <-t.C:
		return nil, errSilent
	case <-o.leaving:
		return nil, errLeaving
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

var errLeaving = errs.New(errs.Unavailable, "this orchestrator is leaving; connect to another")

// serveSession carries a bound session until its stream ends, and reports whether the
// worker ended it in order. Nobody waits for a worker that does not read.
func (o *Orchestrator) serveSession(ctx context.Context, s *workerStream, first *mapreduce.FromWorker, stream mapreduce.WorkStream) (clean bool, err error) {
	sent, received := make(chan error, 1), make(chan error, 1)
	ctx, end := context.WithCancel(ctx)
	defer end()
	o.streams.Add(2) // Send and Recv end when the stream does, which may be after serve
	go func() {
		defer o.streams.Done()
		received <- o.supervisor.ContainPanic(ctx, "hearing a worker", func() error { return o.receiveMessages(ctx, s, first, stream) }, "session", s.ID)
	}()
	go func() {
		defer o.streams.Done()
		sent <- o.supervisor.ContainPanic(ctx, "telling a worker", func() error {
			return s.out.sendQueued(stream, func(m *mapreduce.ToWorker, err error) { o.blameUnsent(s, m, err) })
		}, "session", s.ID)
	}()
	select {
	case err = <-received:
		clean = err == nil
	case err = <-sent:
		sent <- err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	s.out.close()
	select {
	case e := <-sent:
		err = cmp.Or(err, e)
	case <-ctx.Done():
		err = cmp.Or(err, context.Cause(ctx))
	}
	return clean, err
}

// admitStream admits a stream while the orchestrator runs.
func (o *Orchestrator) admitStream(ctx context.Context) error {
	select {
	case <-o.started:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-o.leaving:
		return errLeaving
	default:
		o.streams.Add(1)
		return nil
	}
}

const (
	maxSlots   = 2000 // one transaction binds all that a session holds
	maxHolding = 2 * maxSlots
)

func checkHello(h *mapreduce.Hello) error {
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

// bindSession takes a worker's session up, and puts it on the scheduler. A worker that
// drains is told so from the start: it must be given nothing.
func (o *Orchestrator) bindSession(ctx context.Context, first *mapreduce.FromWorker, stop context.CancelCauseFunc) (*workerStream, error) {
	hello := first.Hello
	before, _, err := o.jobs.Nodes.Epoch(ctx, hello.Session)
	if err != nil {
		return nil, err
	}
	// An epoch must never come again, even when the session's record was
	// removed in between: the clock makes that so, and nothing rests on its
	// being right.
	epoch := max(before, time.Now().UnixMicro()) + 1
	o.scheduler.Sessions.Supersede(hello.Session, epoch)
	b, err := o.jobs.Sessions.Bind(ctx, hello, epoch)
	if err != nil {
		o.handleUnbound(hello.Session, before, epoch)
		return nil, err
	}
	s := &workerStream{
		out: newOutbox(), stop: stop, life: ctx, checking: make(chan struct{}, maxChecking),
	}
	s.Session = schedule.NewSession(hello, b.Epoch, first.Drain, s)
	silence := o.config.maxWorkerSilence()
	if hello.Embedded {
		silence = 0 // there is no other orchestrator for it
	}
	s.out.put(&mapreduce.ToWorker{Welcome: &mapreduce.Welcome{
		Node: o.jobs.Node(), Epoch: b.Epoch, Heartbeat: o.config.Heartbeat, Drop: b.Drop, Silence: silence,
	}})
	if !o.scheduler.Sessions.Enter(s.Session, b.Kept) {
		o.handleUnbound(s.ID, s.Epoch)
	}
	o.scheduler.Grants.MarkCallsDue() // some may have come with the session
	if err := o.grants.AskForCalls(ctx); err != nil {
		o.supervisor.LogFailure(ctx, "asking for the fleet's slots", err)
	}
	for _, id := range b.Jobs {
		o.scheduler.Reread(id)
	}
	for _, id := range o.scheduler.Running() {
		o.signals.MarkDue(id) // it may lack slots that it had no use for before
	}
	o.log.Info("worker bound", "session", s.ID, "slots", s.Slots, "kept", len(b.Kept), "dropped", len(b.Drop))
	return s, nil
}

// handleUnbound sees to a session that could not be taken up, or not for certain: if
// its worker does not come back, nobody else here knows of it.
func (o *Orchestrator) handleUnbound(id mapreduce.SessionID, epochs ...int64) {
	for _, e := range epochs {
		o.expireAfter(nodes.SessionRef{Session: id, Node: o.jobs.Node(), Epoch: e}, nil, o.config.Grace)
	}
}

// receiveMessages takes what a worker says until its stream ends, with its first message
// the rest of what that says.
func (o *Orchestrator) receiveMessages(ctx context.Context, s *workerStream, first *mapreduce.FromWorker, stream mapreduce.WorkStream) error {
	if err := o.handleMessage(ctx, s, first); err != nil {
		return err
	}
	for {
		s.idleTimer.startWaiting(o.supervisor.StoreUptime())
		m, err := stream.Recv()
		s.idleTimer.stopWaiting()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := o.handleMessage(ctx, s, m); err != nil {
			return err
		}
	}
}

// handleMessage takes one message: reports, signs of life, and requests for tokens. What may
// take long has streams of its own, such as looking for a text or an answer, or
// storing what a unit has done: so it delays no other unit's report.
func (o *Orchestrator) handleMessage(ctx context.Context, s *workerStream, m *mapreduce.FromWorker) error {
	suspects, err := o.hearReports(ctx, s, m)
	if err != nil {
		return err
	}
	if len(suspects) > 0 {
		err := o.supervisor.RetryStoreCall(ctx, "noting which units have begun", func() error { return o.jobs.Sessions.Started(ctx, suspects) })
		if err != nil {
			return err
		}
	}
	return o.grants.RaiseReservations(ctx, s.Session, m.Reserve)
}

// hearReports enters a message on the scheduler, with those of its reports whose outputs
// were checked at once; the others follow once they were. It returns what board.Apply
// does.
func (o *Orchestrator) hearReports(ctx context.Context, s *workerStream, m *mapreduce.FromWorker) ([]mapreduce.Held, error) {
	later, err := o.checkQuick(ctx, s, m)
	if err != nil {
		return nil, err
	}
	suspects := o.scheduler.Sessions.Apply(s.Session, m)
	return suspects, o.checkLater(ctx, s, later)
}

// blameUnsent blames the units of a message that could not be sent for what it was, not
// for want of a connection: handed out again they would break the next stream.
func (o *Orchestrator) blameUnsent(s *workerStream, m *mapreduce.ToWorker, err error) {
	if errs.KindOf(err) != errs.Invalid {
		return
	}
	for i := range m.Assignments {
		a := &m.Assignments[i]
		o.log.Error("a unit cannot be handed out", "job", a.Job, "unit", a.Unit, "attempt", a.Attempt, "session", s.ID, "error", err)
		o.scheduler.Sessions.EnterReportFor(s.Session, &mapreduce.Report{
			Job: a.Job, Unit: a.Unit, Attempt: a.Attempt, Outcome: mapreduce.Returned,
			Errors: []string{"it could not be handed out: " + err.Error()},
		}, true)
	}
}

// handleStreamEnd deals with a stream that has ended: the worker has the grace period to
// come back, unless it said goodbye and holds nothing.
func (o *Orchestrator) handleStreamEnd(s *workerStream, clean bool) {
	running, done, ok := o.scheduler.Sessions.Leave(s.Session)
	if !ok {
		return // taken up again already
	}
	grace := o.config.Grace
	if clean && done {
		grace = 0
	}
	o.log.Info("worker left", "session", s.ID, "clean", clean, "running", len(running))
	o.supervisor.AfterGrace(grace, func(ctx context.Context) { o.expireLostSession(ctx, s.Session, running) })
}

// expireLostSession expires a session whose worker did not come back in time. If it did, or
// went elsewhere, nothing is left to do here but to forget it.
func (o *Orchestrator) expireLostSession(ctx context.Context, s *schedule.Session, running map[mapreduce.Held]bool) {
	err := o.expireSession(ctx, nodes.SessionRef{Session: s.ID, Node: o.jobs.Node(), Epoch: s.Epoch}, running)
	if err != nil {
		o.supervisor.LogFailure(ctx, "expiring a session; trying again", err, "session", s.ID)
		o.supervisor.AfterGrace(time.Second, func(ctx context.Context) { o.expireLostSession(ctx, s, running) })
		return
	}
	o.scheduler.Sessions.Forget(s)
}

// An outbox holds what a session is to be told, until its sender gets to it.
type outbox struct {
	mu     sync.Mutex // guards the variables below
	more   *sync.Cond
	queue  []*mapreduce.ToWorker
	closed bool
}

func newOutbox() *outbox {
	q := &outbox{}
	q.more = sync.NewCond(&q.mu)
	return q
}

func (q *outbox) put(m *mapreduce.ToWorker) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.queue = append(q.queue, m)
		q.more.Signal()
	}
}

// close lets what is in the outbox be sent, and nothing more.
func (q *outbox) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.more.Signal()
}

// sendQueued sends what is put into the outbox until it is closed, small messages
// together.
// If one cannot be sent, failed is called with it.
func (q *outbox) sendQueued(stream mapreduce.WorkStream, failed func(*mapreduce.ToWorker, error)) error {
	for {
		batch, ok := q.takeBatch()
		if !ok {
			return nil
		}
		for _, m := range coalesceVerdicts(batch) {
			if err := stream.Send(m); err != nil {
				q.close()
				failed(m, err)
				return err
			}
		}
	}
}

func (q *outbox) takeBatch() ([]*mapreduce.ToWorker, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.queue) == 0 && !q.closed {
		q.more.Wait()
	}
	batch := q.queue
	q.queue = nil
	return batch, len(batch) > 0
}

// coalesceVerdicts joins runs of messages that carry only verdicts.
func coalesceVerdicts(batch []*mapreduce.ToWorker) []*mapreduce.ToWorker {
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

func onlyVerdicts(m *mapreduce.ToWorker) bool {
	return m.Welcome == nil && !m.Goodbye && len(m.Assignments) == 0 && len(m.Jobs) == 0 &&
		len(m.Reserved) == 0 && len(m.Cancel) == 0 && len(m.Forget) == 0 && len(m.Limits) == 0
}
