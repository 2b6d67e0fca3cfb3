package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
)

// This file detects silent workers, and sends signs of life so that workers can detect a
// silent orchestrator.

// An idleTimer is since when a session's stream waits for its worker's word. While it
// deals with one, the worker is not silent.
type idleTimer struct {
	mu      sync.Mutex    // guards the variables below
	since   time.Duration // on the clock that runs while the store answers
	waiting bool
}

func (t *idleTimer) startWaiting(now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since, t.waiting = now, true
}

func (t *idleTimer) stopWaiting() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = false
}

// silentFor returns how long a worker has said nothing while it could.
func (t *idleTimer) silentFor(now time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.waiting {
		return 0
	}
	return now - t.since
}

// streamOf returns the stream of a session: all sessions on the scheduler have one of
// this orchestrator's.
func streamOf(session *workers.Session) *workerStream { return session.Peer.(*workerStream) }

// SilenceLoop looks for workers that say nothing, or keep to no timeout.
func (f *Fleet) SilenceLoop(ctx context.Context) {
	cluster.CallEvery(ctx, cluster.WithJitter(f.config.Poll), func() {
		f.endSilentStreams()
		f.endOverdueAttempts()
	})
}

// endSilentStreams ends the streams of workers that have said nothing for the lease, or
// have read nothing of what they were sent.
func (f *Fleet) endSilentStreams() {
	now := f.supervisor.StoreUptime()
	for _, session := range f.scheduler.Sessions.All() {
		if quiet := streamOf(session).idleTimer.silentFor(now); quiet > f.config.Lease {
			f.config.Logger.Warn("worker is silent", "session", session.ID, "for", quiet)
			session.Peer.Stop(errSilent)
		}

		if stuck := streamOf(session).out.stuckFor(time.Now()); stuck > f.config.Lease {
			f.config.Logger.Warn("worker does not read", "session", session.ID, "for", stuck)
			session.Peer.Stop(errUnread)
		}
	}
}

var errUnread = errs.New(errs.Deadline, "the worker read no message within the lease, or its reports could not be processed")

// stopping is what a worker may take to stop an attempt whose time is over, and to report
// it, and storing what it may take to store its output.
const (
	stopping = time.Minute
	storing  = 15 * time.Minute
)

// endOverdueAttempts fails attempts that are not over though they should long have been:
// their workers keep to no timeout.
func (f *Fleet) endOverdueAttempts() {
	slack := func(session *workers.Session) time.Duration {
		w := streamOf(session)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.puts > 0 {
			return f.config.Lease + storing
		}
		return f.config.Lease + stopping
	}

	for _, o := range f.scheduler.Sessions.Overdue(f.supervisor.StoreUptime(), slack) {
		if f.scheduler.Sessions.EnterOverdue(&o) {
			f.config.Logger.Warn("attempt timed out, and its worker sends only signs of life",
				"session", o.Session.ID, "job", o.Held.Job, "unit", o.Held.Unit, "attempt", o.Held.Attempt)
		}
	}
}

var errSilent = errs.New(errs.Deadline, "no heartbeat within the lease")

// maxSilence bounds how long workers wait for a sign of life of an orchestrator.
const maxSilence = 2500 * time.Millisecond

// maxWorkerSilence is how long a worker waits for a sign of life before it connects
// elsewhere. It does so well before others take this orchestrator for dead, and give to
// other workers what its workers run.
func (f *Fleet) maxWorkerSilence() time.Duration { return min(f.config.Lease/2, maxSilence) }

// KeepaliveLoop gives workers signs of life.
func (f *Fleet) KeepaliveLoop(ctx context.Context) {
	cluster.CallEvery(ctx, f.maxWorkerSilence()/3, func() {
		for _, session := range f.scheduler.Sessions.All() {
			streamOf(session).out.sendKeepalive()
		}
	})
}

// sendKeepalive queues an empty message, unless another is queued.
func (o *outbox) sendKeepalive() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed && len(o.queue) == 0 {
		o.queue = append(o.queue, &protocol.ToWorker{}) // of no bytes worth counting
		o.more.Signal()
	}
}
