package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coditect/mapreduce/store"
)

// remindEvery is the least time between two lines of a log about one trouble.
const remindEvery = time.Minute

// maxTroubles bounds the troubles that are told apart.
const maxTroubles = 1000

// A throttledError is what fails, and is tried again, for some time.
type throttledError struct {
	since time.Time // its first failure
	said  time.Time // its last line
	last  time.Time // its last failure
	times int
}

// countFailure counts a failure, and reports whether it is time for a line about it.
func (t *throttledError) countFailure(now time.Time) bool {
	if t.times == 0 {
		t.since = now
	}
	t.times++
	t.last = now
	if t.times > 1 && now.Sub(t.said) < remindEvery {
		return false
	}
	t.said = now
	return true
}

// An errorThrottle keeps what lasts from filling the log. The zero value has no troubles.
type errorThrottle struct {
	mu    sync.Mutex                 // guards the variables below
	away  throttledError             // the store does not answer: everything fails
	other map[string]*throttledError // by what fails
}

// noteAway counts a failure of the store as a whole.
func (t *errorThrottle) noteAway(now time.Time) (away throttledError, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	due = t.away.countFailure(now)
	return t.away, due
}

// noteFailure counts a failure. One that has not happened for a while is a new one.
func (t *errorThrottle) noteFailure(what string, now time.Time) (known throttledError, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.other == nil || len(t.other) >= maxTroubles {
		t.other = make(map[string]*throttledError)
	}

	of := t.other[what]
	if of == nil || now.Sub(of.last) > remindEvery {
		of = new(throttledError)
		t.other[what] = of
	}

	due = of.countFailure(now)
	return *of, due
}

// endStoreTrouble ends the trouble with the store, and returns it.
func (t *errorThrottle) endStoreTrouble() throttledError {
	t.mu.Lock()
	defer t.mu.Unlock()
	ended := t.away
	t.away = throttledError{}
	return ended
}

// LogFailure logs an error of something that will be tried again: the first at once,
// and while it lasts a line a minute. While the store is away everything fails,
// which is one trouble; that it lacks space it says itself.
func (s *Supervisor) LogFailure(ctx context.Context, what string, err error, args ...any) {
	if err == nil || ctx.Err() != nil {
		return
	}

	now := time.Now()
	var known throttledError
	due := false
	switch {
	case errors.Is(err, store.ErrNoSpace):
	case store.Retryable(err): // and was tried often enough
		if known, due = s.throttle.noteAway(now); due && known.times > 1 {
			what = "the store still does not answer"
		} else if due {
			what = "the store does not answer, and is tried again; what runs goes on: " + what
		}
	default:
		known, due = s.throttle.noteFailure(what+fmt.Sprint(args...), now)
	}

	args = append(args, "err", err)
	if known.times > 1 {
		args = append(args, "failures", known.times, "for", now.Sub(known.since).Round(time.Second))
	}

	if due {
		s.log.Warn(what, args...)
	} else {
		s.log.Debug(what, args...)
	}
}

// NoteStoreWorks notes that the store works.
func (s *Supervisor) NoteStoreWorks() {
	if ended := s.throttle.endStoreTrouble(); ended.times > 0 {
		s.log.Warn("the store answers again", "failures", ended.times, "after", time.Since(ended.since).Round(time.Second))
	}
}
