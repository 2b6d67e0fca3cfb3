package orchestrator

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/sessions"
	"github.com/coditect/mapreduce/store/jobs/turns"
)

// A session is a worker's stream, seen from here.
type session struct {
	id        mapreduce.SessionID
	epoch     int64
	slots     int
	prefetch  int
	offer     mapreduce.Offer
	out       *outbox
	stop      context.CancelCauseFunc // ends its stream
	life      context.Context         // of its stream
	idleTimer idleTimer
	checking  chan struct{} // full while as many of its outputs are checked as it may have waiting

	// Guarded by the scheduler's mu.
	gets     int  // blobs that it gets, and
	puts     int  // that it puts
	gone     bool // its stream has ended, or another has taken it up
	draining bool
	promised int // slots set aside for turns under way
	busy     int // units given and not reported
	held     map[unitKey]*heldUnit
	breakers map[string]time.Time      // open until
	seen     time.Time                 // of its latest message
	knows    map[mapreduce.JobID]int64 // the epoch whose spec it was told
	refused  int                       // of its outputs
	texts    *int64                    // of the scheduler: bytes of the texts that held units keep
}

type unitKey struct {
	job  mapreduce.JobID
	unit mapreduce.UnitID
}

// A heldUnit is an attempt that a session was given.
type heldUnit struct {
	attempt  int
	claim    *claimOf
	reserved int64
	granted  bool // reserved from this node's grant
	suspect  bool // not the first attempt: a worker may have died of an earlier one
	running  bool
	reported bool
	checking bool // its output is being checked: it has ended, and holds its slot
	taken    bool // its report is in a turn under way

	// What it was given, for its output to be checked against; nil if that has to
	// be read again.
	unit *storagev1.Unit
	text []byte
}

// maxKeptTexts bounds the texts of units that run, in bytes, that are kept for
// their outputs to be checked against.
const maxKeptTexts = 32 << 20

// keepInput has a unit keep what it was given, as far as there is room. The caller holds
// the scheduler's mu.
func (s *session) keepInput(h *heldUnit, u *storagev1.Unit, text []byte) {
	h.unit = u
	if n := int64(len(text)); text != nil && *s.texts+n <= maxKeptTexts {
		h.text = bytes.Clone(text) // it may be part of something larger
		*s.texts += n
	}
}

// dropInput forgets what a unit was given. The caller holds the scheduler's mu.
func (s *session) dropInput(h *heldUnit) {
	*s.texts -= int64(len(h.text))
	h.unit, h.text = nil, nil
}

// A claimOf counts the units of a claim that have not ended.
type claimOf struct {
	id       turns.HeldID
	left     int
	released bool // by the turn that ended its last units
}

// endUnit notes that a unit has ended. With the last one the claim's record is to be
// cleared.
func (c *claimOf) endUnit(r *scheduledJob) {
	if c.left--; c.left == 0 && !c.released {
		r.release = append(r.release, c.id)
	}
}

// canRun reports whether s may be given units of r. The caller holds the
// board's mu.
func (s *session) canRun(r *scheduledJob) bool {
	if s.gone || s.draining || r.needs.MetBy(s.offer) != "" {
		return false
	}
	if r.spec.OnBreaker == mapreduce.BreakerSkip {
		return true // its units end with an error there, rather than wait
	}
	until, open := s.breakers[breakerOf(r.spec)]
	return !open || time.Now().After(until)
}

func breakerOf(spec *mapreduce.JobSpec) string { return spec.Provider + "/" + spec.Model }

// freeUnits is how many more units s may be given, and idle how many of them it would
// run at once.
func (s *session) freeUnits() int { return s.slots + s.prefetch - s.busy - s.promised }
func (s *session) idleSlots() int { return s.slots - s.busy - s.promised }

// countHeld counts what s has of a job, as far as it can run at once.
func (s *session) countHeld(r *scheduledJob) (n int) {
	for key := range s.held {
		if key.job == r.id {
			n++
		}
	}
	return min(n, s.slots)
}

func (s *session) holdUnit(job mapreduce.JobID, u *storagev1.Unit, c *claimOf, granted bool) {
	s.busy++
	s.held[unitKey{job, mapreduce.UnitID(u.UnitId)}] = &heldUnit{
		attempt: int(u.Attempt), claim: c, reserved: u.Reserved, granted: granted,
		suspect: u.Attempt > 1,
	}
}

// noteReported notes that an attempt has ended on the worker, so that its slot is
// free. It returns false for an attempt that the session does not hold.
func (s *session) noteReported(r *mapreduce.Report) bool {
	h := s.held[unitKey{r.Job, r.Unit}]
	if h == nil || h.attempt != r.Attempt {
		return false
	}
	if !h.reported {
		h.reported = true
		s.busy--
	}
	return true
}

// forgetAttempt removes an attempt whose verdict is known.
func (s *session) forgetAttempt(job mapreduce.JobID, unit mapreduce.UnitID, attempt int) *heldUnit {
	key := unitKey{job, unit}
	h := s.held[key]
	if h == nil || h.attempt != attempt {
		return nil
	}
	delete(s.held, key)
	s.dropInput(h)
	if !h.reported {
		s.busy--
	}
	return h
}

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
func (o *Orchestrator) serveSession(ctx context.Context, s *session, first *mapreduce.FromWorker, stream mapreduce.WorkStream) (clean bool, err error) {
	sent, received := make(chan error, 1), make(chan error, 1)
	ctx, end := context.WithCancel(ctx)
	defer end()
	o.streams.Add(2) // Send and Recv end when the stream does, which may be after serve
	go func() {
		defer o.streams.Done()
		received <- o.supervisor.ContainPanic(ctx, "hearing a worker", func() error { return o.receiveMessages(ctx, s, first, stream) }, "session", s.id)
	}()
	go func() {
		defer o.streams.Done()
		sent <- o.supervisor.ContainPanic(ctx, "telling a worker", func() error {
			return s.out.sendQueued(stream, func(m *mapreduce.ToWorker, err error) { o.blameUnsent(s, m, err) })
		}, "session", s.id)
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
func (o *Orchestrator) bindSession(ctx context.Context, first *mapreduce.FromWorker, stop context.CancelCauseFunc) (*session, error) {
	hello := first.Hello
	before, _, err := o.jobs.Nodes.Epoch(ctx, hello.Session)
	if err != nil {
		return nil, err
	}
	// An epoch must never come again, even when the session's record was
	// removed in between: the clock makes that so, and nothing rests on its
	// being right.
	epoch := max(before, time.Now().UnixMicro()) + 1
	o.scheduler.supersedeSession(hello.Session, epoch)
	b, err := o.jobs.Sessions.Bind(ctx, hello, epoch)
	if err != nil {
		o.handleUnbound(hello.Session, before, epoch)
		return nil, err
	}
	s := &session{
		id: hello.Session, epoch: b.Epoch, slots: hello.Slots, prefetch: hello.Prefetch,
		offer: hello.Offer, out: newOutbox(), stop: stop, life: ctx, held: make(map[unitKey]*heldUnit),
		breakers: make(map[string]time.Time), seen: time.Now(), knows: make(map[mapreduce.JobID]int64),
		draining: first.Drain, checking: make(chan struct{}, maxChecking), texts: &o.scheduler.texts,
	}
	silence := o.config.maxWorkerSilence()
	if hello.Embedded {
		silence = 0 // there is no other orchestrator for it
	}
	s.out.put(&mapreduce.ToWorker{Welcome: &mapreduce.Welcome{
		Node: o.jobs.Node(), Epoch: b.Epoch, Heartbeat: o.config.Heartbeat, Drop: b.Drop, Silence: silence,
	}})
	if !o.scheduler.enterSession(s, b.Kept) {
		o.handleUnbound(s.id, s.epoch)
	}
	o.scheduler.callsChange() // some may have come with the session
	if err := o.fleetSlots(ctx); err != nil {
		o.supervisor.LogFailure(ctx, "asking for the fleet's slots", err)
	}
	for _, id := range b.Jobs {
		o.scheduler.rereadQueue(id)
	}
	for _, id := range o.scheduler.runningJobs() {
		o.signals.MarkDue(id) // it may lack slots that it had no use for before
	}
	o.log.Info("worker bound", "session", s.id, "slots", s.slots, "kept", len(b.Kept), "dropped", len(b.Drop))
	return s, nil
}

// handleUnbound sees to a session that could not be taken up, or not for certain: if
// its worker does not come back, nobody else here knows of it.
func (o *Orchestrator) handleUnbound(id mapreduce.SessionID, epochs ...int64) {
	for _, e := range epochs {
		o.expireAfter(nodes.SessionRef{Session: id, Node: o.jobs.Node(), Epoch: e}, nil, o.config.Grace)
	}
}

// supersedeSession ends an older stream of a session on this node.
func (b *scheduler) supersedeSession(id mapreduce.SessionID, epoch int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.sessions[id]; s != nil && s.epoch < epoch {
		b.displaceSession(s)
	}
}

// displaceSession ends the stream of a session that another has taken up. The caller holds b.mu.
func (b *scheduler) displaceSession(s *session) {
	b.suspendSession(s)
	s.stop(errSuperseded)
}

var errSuperseded = errs.New(errs.Aborted, "the session was taken up by another stream")

// suspendSession takes a session off the scheduler whose stream has ended. Until its worker
// is known to be gone, or elsewhere, what it holds may be running, and takes up
// slots of its jobs. The caller holds b.mu.
func (b *scheduler) suspendSession(s *session) {
	s.gone = true
	delete(b.sessions, s.id)
	if old := b.away[s.id]; old != nil {
		b.letGo(old)
	}
	b.away[s.id] = s
	b.wake.Broadcast()
}

// letGo forgets what a session held. The caller holds b.mu.
func (b *scheduler) letGo(s *session) {
	if b.away[s.id] == s {
		delete(b.away, s.id)
	}
	for key, h := range s.held {
		s.dropInput(h)
		if r := b.runs[key.job]; r != nil {
			b.addHeldUnits(r, -1)
			b.fairQueue.add(r)
		}
	}
	s.held = nil
	b.wake.Broadcast()
}

// enterSession puts a session with what it holds on the scheduler. It returns false if a later
// stream of it came first.
func (b *scheduler) enterSession(s *session, kept []sessions.Held) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	other, old := b.sessions[s.id], b.away[s.id]
	if other != nil && other.epoch > s.epoch || old != nil && old.epoch > s.epoch {
		s.gone = true // two streams of one session came in the wrong order
		s.stop(errSuperseded)
		return false
	}
	if other != nil {
		b.displaceSession(other)
	}
	if old := b.away[s.id]; old != nil {
		b.letGo(old)
	}
	claims := make(map[string]*claimOf)
	for _, h := range kept {
		c := claims[h.Claim]
		if c == nil {
			c = &claimOf{id: turns.HeldID{Session: s.id, Claim: h.Claim}}
			claims[h.Claim] = c
		}
		c.left++
		s.busy++
		s.held[unitKey{h.Job, h.Unit}] = &heldUnit{
			attempt: h.Attempt, claim: c, reserved: h.Reserved, granted: h.Node == b.node, running: h.Running,
			suspect: h.Attempt > 1,
		}
		r := b.getOrAddJob(h.Job)
		b.addHeldUnits(r, 1)
		r.grantUnsure = true // slots may have come with it
	}
	b.sessions[s.id] = s
	b.dealAll(time.Now())
	for _, r := range b.runs {
		b.fairQueue.add(r)
	}
	b.wake.Broadcast()
	return true
}

func (b *scheduler) allSessions() []*session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rotateSessions()
}

// receiveMessages takes what a worker says until its stream ends, with its first message
// the rest of what that says.
func (o *Orchestrator) receiveMessages(ctx context.Context, s *session, first *mapreduce.FromWorker, stream mapreduce.WorkStream) error {
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
func (o *Orchestrator) handleMessage(ctx context.Context, s *session, m *mapreduce.FromWorker) error {
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
	return o.raiseReservations(ctx, s, m.Reserve)
}

// hearReports enters a message on the scheduler, with those of its reports whose outputs
// were checked at once; the others follow once they were. It returns what board.applyMessage
// does.
func (o *Orchestrator) hearReports(ctx context.Context, s *session, m *mapreduce.FromWorker) ([]mapreduce.Held, error) {
	later, err := o.checkQuick(ctx, s, m)
	if err != nil {
		return nil, err
	}
	suspects, urgent := o.scheduler.applyMessage(s, m)
	if urgent {
		o.scheduler.modelsChanged.Wake()
	}
	return suspects, o.checkLater(ctx, s, later)
}

// holdsAttempt reports whether s was given an attempt and has not lost it.
func (b *scheduler) holdsAttempt(s *session, h mapreduce.Held) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	held := s.held[unitKey{h.Job, h.Unit}]
	return held != nil && held.attempt == h.Attempt
}

// applyMessage enters a message on the scheduler. It returns the units that have begun to
// run and are suspected of having brought a worker down before.
func (b *scheduler) applyMessage(s *session, m *mapreduce.FromWorker) (suspects []mapreduce.Held, urgent bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.seen = time.Now()
	for _, h := range m.Started {
		if held := s.held[unitKey{h.Job, h.Unit}]; held != nil && held.attempt == h.Attempt {
			held.running = true
			if held.suspect {
				suspects = append(suspects, h)
			}
		}
	}
	for i := range m.Reports {
		urgent = b.enterReport(s, &m.Reports[i]) || urgent
	}
	urgent = b.hearLimits(m.Limits, s.seen) || urgent
	if hb := m.Heartbeat; hb != nil {
		for _, br := range hb.Breakers {
			s.breakers[br.Name] = s.seen.Add(br.OpenFor)
		}
		urgent = b.hearBreakers(hb.Breakers, s.seen) || urgent
	}
	if m.Drain {
		s.draining = true
	}
	if urgent {
		b.dealAll(s.seen) // what is known here already
	}
	b.wake.Broadcast()
	return suspects, urgent
}

// enterReport enters a report on the scheduler. It returns whether the fleet has to know
// what it says of the provider.
func (b *scheduler) enterReport(s *session, rep *mapreduce.Report) (urgent bool) {
	s.noteReported(rep)
	r := b.getOrAddJob(rep.Job)
	urgent = b.noteProbeOutcome(r, rep, s.seen)
	b.notePrimingEnd(r, rep)
	r.reports = append(r.reports, pendingReport{report: rep, session: s, jitter: randomJitter()})
	b.fairQueue.add(r)
	return urgent
}

// blameUnsent blames the units of a message that could not be sent for what it was, not
// for want of a connection: handed out again they would break the next stream.
func (o *Orchestrator) blameUnsent(s *session, m *mapreduce.ToWorker, err error) {
	if errs.KindOf(err) != errs.Invalid {
		return
	}
	for i := range m.Assignments {
		a := &m.Assignments[i]
		o.log.Error("a unit cannot be handed out", "job", a.Job, "unit", a.Unit, "attempt", a.Attempt, "session", s.id, "error", err)
		o.reportFor(s, &mapreduce.Report{
			Job: a.Job, Unit: a.Unit, Attempt: a.Attempt, Outcome: mapreduce.Returned,
			Errors: []string{"it could not be handed out: " + err.Error()},
		}, true)
	}
}

// handleStreamEnd deals with a stream that has ended: the worker has the grace period to
// come back, unless it said goodbye and holds nothing.
func (o *Orchestrator) handleStreamEnd(s *session, clean bool) {
	b := o.scheduler
	b.mu.Lock()
	if b.sessions[s.id] != s {
		b.mu.Unlock()
		return // taken up again already
	}
	empty := len(s.held) == 0
	running := make(map[mapreduce.Held]bool)
	for key, h := range s.held {
		if h.running && !h.reported && !h.checking {
			running[mapreduce.Held{Job: key.job, Unit: key.unit, Attempt: h.attempt}] = true
		}
	}
	b.suspendSession(s)
	b.mu.Unlock()
	grace := o.config.Grace
	if clean && empty && s.draining {
		grace = 0
	}
	o.log.Info("worker left", "session", s.id, "clean", clean, "running", len(running))
	o.supervisor.AfterGrace(grace, func(ctx context.Context) { o.expireLostSession(ctx, s, running) })
}

// expireLostSession expires a session whose worker did not come back in time. If it did, or
// went elsewhere, nothing is left to do here but to forget it.
func (o *Orchestrator) expireLostSession(ctx context.Context, s *session, running map[mapreduce.Held]bool) {
	err := o.expireSession(ctx, nodes.SessionRef{Session: s.id, Node: o.jobs.Node(), Epoch: s.epoch}, running)
	if err != nil {
		o.supervisor.LogFailure(ctx, "expiring a session; trying again", err, "session", s.id)
		o.supervisor.AfterGrace(time.Second, func(ctx context.Context) { o.expireLostSession(ctx, s, running) })
		return
	}
	o.scheduler.mu.Lock()
	defer o.scheduler.mu.Unlock()
	o.scheduler.letGo(s)
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
