package orchestrator

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
)

// This file judges workers by what they say, and lets them judge this
// orchestrator by what it says. Nobody is judged for a time in which the store
// did not answer, or this process stood still: then nobody could show life.

// A storeUptime is a clock that runs while the store answers signs of life, and from one
// to the next for two beats at most: so it stands still while the store is away, or
// this process is stopped, and runs on, if slower, with a store that is only slow.
type storeUptime struct {
	mu         sync.Mutex // guards the variables below
	uptime     time.Duration
	lastAnswer time.Time // when the store answered; zero if its last answer was an error
}

// noteAnswer has the clock run on.
func (c *storeUptime) noteAnswer(now time.Time, most time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uptime = c.uptimeAt(now, most)
	c.lastAnswer = now
}

// stopClock has the clock stand still until the store answers again.
func (c *storeUptime) stopClock(now time.Time, most time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uptime = c.uptimeAt(now, most)
	c.lastAnswer = time.Time{}
}

// uptimeAt returns what the clock shows. The caller holds mu.
func (c *storeUptime) uptimeAt(now time.Time, most time.Duration) time.Duration {
	if c.lastAnswer.IsZero() {
		return c.uptime
	}
	return c.uptime + min(now.Sub(c.lastAnswer), most)
}

// storeUptimeNow returns for how long, in all, the store has been answering.
func (o *Orchestrator) storeUptimeNow() time.Duration {
	o.storeUptime.mu.Lock()
	defer o.storeUptime.mu.Unlock()
	return o.storeUptime.uptimeAt(time.Now(), 2*o.config.Beat)
}

// silentFor returns how long another orchestrator has given no sign of life while
// others could.
func (o *Orchestrator) silentFor(s nodeSighting) time.Duration { return o.storeUptimeNow() - s.since }

// stillQuiet reports whether another orchestrator has given no sign of life since
// it was seen.
func (o *Orchestrator) stillQuiet(node mapreduce.NodeID, s nodeSighting) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.silentNodes[node] == s
}

// afterGrace calls end once a worker has had d to come back. It cannot while the store
// is away, and tries seldom then: so if the store was, the worker has the lease.
func (o *Orchestrator) afterGrace(d time.Duration, end func(context.Context)) {
	begun, from := time.Now(), o.storeUptimeNow()
	var look func(context.Context)
	look = func(ctx context.Context) {
		had, need := o.storeUptimeNow()-from, d
		if away := time.Since(begun) - had; away > o.config.Grace/2 {
			need = max(d, o.config.Lease)
		}
		if had < need {
			o.signals.callAt(time.Now().Add(max(need-had, o.config.Beat/2)), look)
			return
		}
		end(ctx)
	}
	o.signals.callAt(begun.Add(d), look)
}

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

// endSilentStreams ends the streams of workers that have said nothing for the lease.
func (o *Orchestrator) endSilentStreams() {
	now := o.storeUptimeNow()
	for _, s := range o.scheduler.allSessions() {
		if quiet := s.idleTimer.silentFor(now); quiet > o.config.Lease {
			o.log.Warn("worker is silent", "session", s.id, "for", quiet)
			s.stop(errSilent)
		}
	}
}

var errSilent = errs.New(errs.Deadline, "no heartbeat within the lease")

// maxSilence bounds how long workers wait for a sign of life of an orchestrator.
const maxSilence = 2500 * time.Millisecond

// maxWorkerSilence is how long a worker waits for one before it connects elsewhere: then
// it does so in good time before others take this orchestrator for dead, and give
// to others what its workers run.
func (c Config) maxWorkerSilence() time.Duration { return min(c.Lease/2, maxSilence) }

// keepaliveLoop gives workers signs of life.
func (o *Orchestrator) keepaliveLoop(ctx context.Context) {
	callEvery(ctx, o.config.maxWorkerSilence()/3, func() {
		for _, s := range o.scheduler.allSessions() {
			s.out.sendKeepalive()
		}
	})
}

// sendKeepalive has something said, if nothing is about to be.
func (q *outbox) sendKeepalive() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed && len(q.queue) == 0 {
		q.queue = append(q.queue, &mapreduce.ToWorker{})
		q.more.Signal()
	}
}

// retryStoreCall does what a worker's message asks of the store, until the store has
// done it. While the store is away the stream waits: its worker has nowhere
// better to go, and lost its units if it were cut off.
func (o *Orchestrator) retryStoreCall(ctx context.Context, what string, do func() error) error {
	for pause := minQuiet; ; pause = min(2*pause, maxQuiet) {
		err := do()
		if err == nil || !store.Retryable(err) || errors.Is(err, store.ErrNoSpace) {
			return err
		}
		o.logFailure(ctx, what+"; trying again", err)
		if cause := clock.Sleep(ctx, pause); cause != nil {
			return cause
		}
	}
}
