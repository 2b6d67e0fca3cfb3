package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/protocol"
)

const (
	helloTimeout = 10 * time.Second // from connecting to Welcome
	goodbyeWait  = time.Second      // for the verdicts of an orchestrator that leaves
	healthy      = time.Second      // a stream that lasts this long was a good one
)

// A connector keeps a session connected to one orchestrator after another. It is of the
// goroutine of Run.
type connector struct{ session *session }

// stayConnected keeps one stream after another until the session is drained or
// has resigned, life ends, or the first orchestrator reached refuses this worker
// for good. Each attempt goes to the next address: the one just lost is the least
// likely to be there. There is a pause only once all have been tried: the first orchestrator that
// is there again gives its workers no more time to find it, however many addresses they have.
func (c *connector) stayConnected(life context.Context) error {
	s := c.session
	pauses := &backoff.ExponentialBackOff{
		InitialInterval:     50 * time.Millisecond,
		RandomizationFactor: 1, // full jitter: a fleet must not come back in step
		Multiplier:          2,
		MaxInterval:         2 * time.Second,
	}
	welcomed := false
	untried := len(s.cfg.Connect) // addresses, until the next pause

	lost := time.Now() // when the last orchestrator was

	for i := 0; life.Err() == nil && !s.retiring.isIdle(); i++ {
		// An orchestrator that was met counts as lost only when its stream ends.
		start := time.Now()
		met, err := c.serveStream(life, i%len(s.cfg.Connect))
		welcomed = welcomed || met
		if met {
			lost = time.Now()
		}

		if !welcomed && isRefused(err) {
			return fmt.Errorf("worker: not let in: %w", err)
		}
		if s.retiring.isIdle() || life.Err() != nil || s.hasResigned(lost) {
			break
		}

		c.noteTrouble(s.cfg.addressOf(i%len(s.cfg.Connect)), met, err)

		// After a good stream all addresses are tried at once, the one just lost last.
		switch untried--; {
		case met && time.Since(start) >= healthy:
			pauses.Reset()
			untried = len(s.cfg.Connect)
		case untried == 0:
			c.waitReconnect(life, pauses.NextBackOff())
			untried = len(s.cfg.Connect)
		}
	}
	return nil
}

// noteTrouble logs why a stream ended, or why there was none, and keeps it for Trouble.
func (c *connector) noteTrouble(address string, met bool, err error) {
	what := "connection to orchestrator ended"
	if !met {
		what = "no connection to orchestrator"
	}

	at := fmt.Errorf("%s: %w", address, err)
	c.session.trouble.Store(&at)
	c.session.cfg.Logger.Warn(what, "address", address, "error", err)
}

// isRefused reports whether trying again cannot help.
func isRefused(err error) bool {
	return errors.Is(err, errs.Unauthenticated) || errors.Is(err, errs.Denied) || errors.Is(err, errs.Invalid)
}

// waitReconnect waits, unless there is nothing to come back for.
func (c *connector) waitReconnect(life context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-life.Done():
	case <-c.session.retiring.idle:
	case <-t.C:
	}
}

// errNoWelcome is the reason to abandon a stream on which no Welcome arrives.
var errNoWelcome = errors.New("orchestrator did not answer")

// serveStream carries the session over one stream to the orchestrator at a place of
// Config.Connect until it ends, and reports whether the orchestrator took it up.
func (c *connector) serveStream(life context.Context, at int) (met bool, err error) {
	s := c.session

	ctx, cancel := context.WithCancelCause(life)
	defer cancel(nil)
	impatience := time.AfterFunc(helloTimeout, func() { cancel(errNoWelcome) })
	defer impatience.Stop()

	stream, err := s.cfg.Connect[at](ctx)
	if err != nil {
		return false, fmt.Errorf("connect: %w", err)
	}

	// What ends the context says more than the error of the stream.
	first, err := c.sendHello(stream)
	if err != nil {
		return false, errors.Join(context.Cause(ctx), err)
	}

	if !impatience.Stop() {
		return false, errNoWelcome
	}

	l := &streamLink{session: s, stream: stream, address: s.cfg.addressOf(at), leaving: make(chan struct{})}
	return true, l.run(ctx, cancel, first)
}

// sendHello says hello and returns the orchestrator's first message.
func (c *connector) sendHello(stream Stream) (*protocol.ToWorker, error) {
	hello, announced := c.newHello()

	// A stream that was refused may end before the hello is sent: io.EOF says so, and Recv
	// why.
	err := stream.Send(hello)
	switch {
	case err == nil:
		noteAnnounced(announced)
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("hello: %w", err)
	}

	m, err := stream.Recv()
	if err != nil {
		return nil, fmt.Errorf("hello: %w", err)
	}
	if m.Welcome == nil {
		return nil, errors.New("hello: answered without a welcome")
	}
	return m, nil
}

// A streamLink is the session on one stream. One goroutine receives, and another sends what the
// outbox holds; run waits for both.
type streamLink struct {
	session *session
	stream  Stream
	address string        // for the log
	leaving chan struct{} // closed by the receiver when the orchestrator leaves
}

// run sends and receives until the stream ends, by whichever side.
func (l *streamLink) run(ctx context.Context, cancel context.CancelCauseFunc, first *protocol.ToWorker) error {
	s := l.session

	l.refillOutbox()
	s.transfers.GoOver(l.stream)
	defer s.transfers.GoOver(nil)

	s.connected.Store(true)
	defer s.connected.Store(false)
	s.cfg.Logger.Info("connected to orchestrator", "address", l.address, "node", first.Welcome.Node, "epoch", first.Welcome.Epoch)

	every := first.Welcome.Heartbeat
	if every <= 0 {
		every = s.cfg.Heartbeat
	}

	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if err := l.send(ctx, every); err != nil {
			cancel(err)
		}
	}()

	// Whichever side fails first ends the context, and with it the other.
	err := l.receiveAll(first, cancel)
	cancel(err)
	<-sent
	return context.Cause(ctx) // the first to fail
}

// send empties the outbox whenever there is something in it. What came up while
// a message was under way goes in the next, so messages grow with the load.
func (l *streamLink) send(ctx context.Context, every time.Duration) error {
	s := l.session
	tick := time.NewTicker(every)
	defer tick.Stop()

	for ctx.Err() == nil {
		// The outbox is emptied before each wait, as its wake says only that there may be
		// something.
		if err := l.flushOutbox(tick.C); err != nil {
			return err
		}

		select {
		case <-ctx.Done():
		case <-tick.C:
			s.out.queueHeartbeat()
		case <-s.out.wake:
		case <-s.cfg.Limits.Due():
			s.out.queueLimits()
		case <-s.cfg.Manners.Due():
			s.out.queueLimits()
		case <-l.leaving:
			return l.hangUp(tick.C)
		case <-s.retiring.idle:
			return l.hangUp(tick.C)
		}
	}
	return nil
}

// flushOutbox sends until the outbox is empty.
func (l *streamLink) flushOutbox(tick <-chan time.Time) error {
	for {
		select {
		case <-tick: // a busy worker is alive as well
			l.session.out.queueHeartbeat()
		default:
		}

		m, announced := l.pullMessage()
		if m == nil {
			return nil
		}
		if err := l.stream.Send(m); err != nil {
			return fmt.Errorf("send: %w", err)
		}
		noteAnnounced(announced)
	}
}

// hangUp sends the remaining messages and closes this side.
func (l *streamLink) hangUp(tick <-chan time.Time) error {
	if err := l.flushOutbox(tick); err != nil {
		return err
	}
	return l.stream.CloseSend()
}

// receiveAll takes messages until the stream ends. An orchestrator that leaves has
// a moment to send the verdicts it owes.
func (l *streamLink) receiveAll(m *protocol.ToWorker, cancel context.CancelCauseFunc) error {
	// An orchestrator that says nothing for longer than it said it would stands
	// still, or cannot be reached, and others will soon take it for dead.
	silence := cmp.Or(m.Welcome.Silence, math.MaxInt64)
	mute := time.AfterFunc(silence, func() { cancel(errMute) })
	defer mute.Stop()

	left := false
	for {
		l.handleMessage(m)
		if m.Goodbye && !left {
			left = true
			close(l.leaving)
			t := time.AfterFunc(goodbyeWait, func() { cancel(errGoodbye) })
			defer t.Stop()
		}

		var err error
		if m, err = l.stream.Recv(); err != nil {
			return err
		}
		mute.Reset(silence)
	}
}

var errMute = errors.New("orchestrator says nothing")

var errGoodbye = errors.New("orchestrator is leaving")

// handleMessage acts on one message.
func (l *streamLink) handleMessage(m *protocol.ToWorker) {
	s := l.session
	// The order matters: what earlier messages began is dropped first, a job is known
	// before its units come, and limits before these call models.
	if m.Welcome != nil {
		s.giveBackAll(m.Welcome.Drop)
	}

	for _, info := range m.Jobs {
		s.jobs.learn(info)
	}
	l.applyShares(m.Limits)
	if len(m.Manners) > 0 {
		s.cfg.Manners.Learn(m.Manners, false)
	}

	if len(m.Assignments) > 0 {
		s.queueAssignments(m.Assignments)
	}

	s.takeVerdicts(m.Verdicts)
	for _, r := range m.Reserved {
		s.takeReserve(r)
	}

	s.dropAll(m.Cancel, errCancelled)
	s.jobs.forget(m.Forget)
}
