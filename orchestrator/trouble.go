package orchestrator

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

// A trouble is what fails, and is tried again, for some time.
type trouble struct {
	since time.Time // its first failure
	said  time.Time // its last line
	last  time.Time // its last failure
	times int
}

// note counts a failure, and reports whether it is time for a line about it.
func (t *trouble) note(now time.Time) bool {
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

// troubles keep what lasts from filling the log. The zero value has none.
type troubles struct {
	mu    sync.Mutex          // guards the variables below
	away  trouble             // the store does not answer: everything fails
	other map[string]*trouble // by what fails
}

// noteAway counts a failure of the store as a whole.
func (t *troubles) noteAway(now time.Time) (away trouble, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	due = t.away.note(now)
	return t.away, due
}

// note counts a failure. One that has not happened for a while is a new one.
func (t *troubles) note(what string, now time.Time) (known trouble, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.other == nil || len(t.other) >= maxTroubles {
		t.other = make(map[string]*trouble)
	}
	of := t.other[what]
	if of == nil || now.Sub(of.last) > remindEvery {
		of = new(trouble)
		t.other[what] = of
	}
	due = of.note(now)
	return *of, due
}

// end ends the trouble with the store, and returns it.
func (t *troubles) end() trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	ended := t.away
	t.away = trouble{}
	return ended
}

// failed logs an error of something that will be tried again: the first at once,
// and while it lasts a line a minute. While the store is away everything fails,
// which is one trouble; that it lacks space it says itself.
func (o *Orchestrator) failed(ctx context.Context, what string, err error, args ...any) {
	if err == nil || ctx.Err() != nil {
		return
	}
	now := time.Now()
	var known trouble
	due := false
	switch {
	case errors.Is(err, store.ErrNoSpace):
	case store.Retryable(err): // and was tried often enough
		if known, due = o.trouble.noteAway(now); due && known.times > 1 {
			what = "the store still does not answer"
		} else if due {
			what = "the store does not answer, and is tried again; what runs goes on: " + what
		}
	default:
		known, due = o.trouble.note(what+fmt.Sprint(args...), now)
	}
	args = append(args, "err", err)
	if known.times > 1 {
		args = append(args, "failures", known.times, "for", now.Sub(known.since).Round(time.Second))
	}
	if due {
		o.log.Warn(what, args...)
	} else {
		o.log.Debug(what, args...)
	}
}

// well notes that the store works.
func (o *Orchestrator) well() {
	if ended := o.trouble.end(); ended.times > 0 {
		o.log.Warn("the store answers again", "failures", ended.times, "after", time.Since(ended.since).Round(time.Second))
	}
}
