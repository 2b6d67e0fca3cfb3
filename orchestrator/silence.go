package orchestrator

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
)

// This file judges workers by what they say, and lets them judge this
// orchestrator by what it says. Nobody is judged for a time in which the store
// did not answer, or this process stood still: then nobody could show life.

// An answering is how the store has answered signs of life.
type answering struct {
	last  time.Time // when it did; zero if the last one failed
	since time.Time // since when it has answered each in time
}

// answered notes that the store has answered a sign of life, and reports whether
// it was away before.
func (o *Orchestrator) answered(now time.Time) (away bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	away = now.Sub(o.answers.last) > 2*o.config.Beat
	if away {
		o.answers.since = now
	}
	o.answers.last = now
	return away
}

// unanswered notes that a sign of life failed: that others are silent means
// nothing.
func (o *Orchestrator) unanswered() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answers.last = time.Time{}
	clear(o.quiet)
}

// healthy reports whether the store answers, and since when.
func (o *Orchestrator) healthy() (since time.Time, well bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.answers.since, time.Since(o.answers.last) <= 2*o.config.Beat
}

// stillQuiet reports whether another orchestrator has given no sign of life since
// it was seen, while the store is healthy.
func (o *Orchestrator) stillQuiet(node mapreduce.NodeID, s sight) bool {
	if _, well := o.healthy(); !well {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.quiet[node] == s
}

// spare calls end once a worker has had d to come back. While the store is away
// it cannot, so when the store was, it has the lease.
func (o *Orchestrator) spare(d time.Duration, end func(context.Context)) {
	o.spareOnce(d, false, end)
}

// spareOnce does so. Of a worker that has had the lease, an outage that is over
// is no excuse: there may always be another.
func (o *Orchestrator) spareOnce(d time.Duration, leased bool, end func(context.Context)) {
	begun := time.Now()
	o.notices.at(begun.Add(d), func(ctx context.Context) {
		since, well := o.healthy()
		switch {
		case !well:
			o.spareOnce(o.config.Beat, false, end)
		case since.After(begun) && !leased:
			o.spareOnce(o.config.Lease, true, end)
		default:
			end(ctx)
		}
	})
}

// A hearing is when a session's stream last began to wait for its worker's word.
// While it deals with one, the worker is not silent.
type hearing struct {
	mu      sync.Mutex // guards the variables below
	since   time.Time
	waiting bool
}

func (h *hearing) wait() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.since, h.waiting = time.Now(), true
}

func (h *hearing) deal() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = false
}

func (h *hearing) waits() (since time.Time, waiting bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since, h.waiting
}

// listens looks for workers that have said nothing for the lease. It waits for
// nothing else, so that if a look comes late this process has stood still, and
// what workers said meanwhile is not read yet.
func (o *Orchestrator) listens(ctx context.Context) {
	pause := jittered(o.config.Poll)
	looked := time.Now()
	every(ctx, pause, func() {
		now := time.Now()
		if now.Sub(looked) <= 2*pause {
			o.silent(now)
		}
		looked = now
	})
}

// silent ends the streams of workers that have said nothing for the lease.
func (o *Orchestrator) silent(now time.Time) {
	since, well := o.healthy()
	if !well {
		return
	}
	for _, s := range o.board.allSessions() {
		heard, waiting := s.hearing.waits()
		if heard.Before(since) {
			heard = since
		}
		if quiet := now.Sub(heard); waiting && quiet > o.config.Lease {
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
		if cause := wait(ctx, pause, nil); cause != nil {
			return cause
		}
	}
}
