package fleet

import (
	"context"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/orchestrator/supervise"
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

func (h *idleTimer) startWaiting(now time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.since, h.waiting = now, true
}

func (h *idleTimer) stopWaiting() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = false
}

// silentFor returns how long a worker has said nothing while it could.
func (h *idleTimer) silentFor(now time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.waiting {
		return 0
	}
	return now - h.since
}

// streamOf returns the stream of a session: all sessions on the scheduler have one of
// this orchestrator's.
func streamOf(s *schedule.Session) *workerStream { return s.Peer.(*workerStream) }

// EndSilentStreams ends the streams of workers that have said nothing for the lease, or
// have read nothing of what they were sent.
func (f *Fleet) EndSilentStreams() {
	now := f.supervisor.StoreUptime()
	for _, s := range f.scheduler.Sessions.All() {
		if quiet := streamOf(s).idleTimer.silentFor(now); quiet > f.config.Lease {
			f.config.Logger.Warn("worker is silent", "session", s.ID, "for", quiet)
			s.Peer.Stop(errSilent)
		}

		if stuck := streamOf(s).out.stuckFor(time.Now()); stuck > f.config.Lease {
			f.config.Logger.Warn("worker does not read", "session", s.ID, "for", stuck)
			s.Peer.Stop(errUnread)
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

// EndOverdueAttempts fails attempts that are not over though they should long have been:
// their workers keep to no timeout.
func (f *Fleet) EndOverdueAttempts() {
	slack := func(s *schedule.Session) time.Duration {
		w := streamOf(s)
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
	supervise.CallEvery(ctx, f.maxWorkerSilence()/3, func() {
		for _, s := range f.scheduler.Sessions.All() {
			streamOf(s).out.sendKeepalive()
		}
	})
}

// sendKeepalive queues an empty message, unless another is queued.
func (q *outbox) sendKeepalive() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed && len(q.queue) == 0 {
		q.queue = append(q.queue, &mapreduce.ToWorker{}) // of no bytes worth counting
		q.more.Signal()
	}
}
