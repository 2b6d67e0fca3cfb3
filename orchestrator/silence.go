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

// A calm is a clock that runs while the store answers signs of life, and from one
// to the next for two beats at most: so it stands still while the store is away, or
// this process is stopped, and runs on, if slower, with a store that is only slow.
type calm struct {
	mu   sync.Mutex // guards the variables below
	ran  time.Duration
	last time.Time // when the store answered; zero if its last answer was an error
}

// answered has the clock run on.
func (c *calm) answered(now time.Time, most time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ran = c.at(now, most)
	c.last = now
}

// stop has the clock stand still until the store answers again.
func (c *calm) stop(now time.Time, most time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ran = c.at(now, most)
	c.last = time.Time{}
}

// at returns what the clock shows. The caller holds mu.
func (c *calm) at(now time.Time, most time.Duration) time.Duration {
	if c.last.IsZero() {
		return c.ran
	}
	return c.ran + min(now.Sub(c.last), most)
}

// calmly returns for how long, in all, the store has been answering.
func (o *Orchestrator) calmly() time.Duration {
	o.calm.mu.Lock()
	defer o.calm.mu.Unlock()
	return o.calm.at(time.Now(), 2*o.config.Beat)
}

// silentFor returns how long another orchestrator has given no sign of life while
// others could.
func (o *Orchestrator) silentFor(s sight) time.Duration { return o.calmly() - s.since }

// stillQuiet reports whether another orchestrator has given no sign of life since
// it was seen.
func (o *Orchestrator) stillQuiet(node mapreduce.NodeID, s sight) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.quiet[node] == s
}

// spare calls end once a worker has had d to come back. It cannot while the store
// is away, and tries seldom then: so if the store was, the worker has the lease.
func (o *Orchestrator) spare(d time.Duration, end func(context.Context)) {
	begun, from := time.Now(), o.calmly()
	var look func(context.Context)
	look = func(ctx context.Context) {
		had, need := o.calmly()-from, d
		if away := time.Since(begun) - had; away > o.config.Grace/2 {
			need = max(d, o.config.Lease)
		}
		if had < need {
			o.notices.at(time.Now().Add(max(need-had, o.config.Beat/2)), look)
			return
		}
		end(ctx)
	}
	o.notices.at(begun.Add(d), look)
}

// A hearing is since when a session's stream waits for its worker's word. While it
// deals with one, the worker is not silent.
type hearing struct {
	mu      sync.Mutex    // guards the variables below
	since   time.Duration // on the clock that runs while the store answers
	waiting bool
}

func (h *hearing) wait(now time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.since, h.waiting = now, true
}

func (h *hearing) deal() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = false
}

// silentFor returns how long a worker has said nothing while it could.
func (h *hearing) silentFor(now time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.waiting {
		return 0
	}
	return now - h.since
}

// silent ends the streams of workers that have said nothing for the lease.
func (o *Orchestrator) silent() {
	now := o.calmly()
	for _, s := range o.board.allSessions() {
		if quiet := s.hearing.silentFor(now); quiet > o.config.Lease {
			o.log.Warn("worker is silent", "session", s.id, "for", quiet)
			s.stop(errSilent)
		}
	}
}

var errSilent = errs.New(errs.Deadline, "no heartbeat within the lease")

// maxSilence bounds how long workers wait for a sign of life of an orchestrator.
const maxSilence = 2500 * time.Millisecond

// silence is how long a worker waits for one before it connects elsewhere: then
// it does so in good time before others take this orchestrator for dead, and give
// to others what its workers run.
func (c Config) silence() time.Duration { return min(c.Lease/2, maxSilence) }

// murmurs gives workers signs of life.
func (o *Orchestrator) murmurs(ctx context.Context) {
	every(ctx, o.config.silence()/3, func() {
		for _, s := range o.board.allSessions() {
			s.out.murmur()
		}
	})
}

// murmur has something said, if nothing is about to be.
func (q *outbox) murmur() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed && len(q.queue) == 0 {
		q.queue = append(q.queue, &mapreduce.ToWorker{})
		q.more.Signal()
	}
}

// lasting does what a worker's message asks of the store, until the store has
// done it. While the store is away the stream waits: its worker has nowhere
// better to go, and lost its units if it were cut off.
func (o *Orchestrator) lasting(ctx context.Context, what string, do func() error) error {
	for pause := minQuiet; ; pause = min(2*pause, maxQuiet) {
		err := do()
		if err == nil || !store.Retryable(err) || errors.Is(err, store.ErrNoSpace) {
			return err
		}
		o.failed(ctx, what+"; trying again", err)
		if cause := clock.Sleep(ctx, pause); cause != nil {
			return cause
		}
	}
}
