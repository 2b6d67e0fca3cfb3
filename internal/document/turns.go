package document

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// Turns let as many documents be read at once as there are processors, however many want to be.
// More at once would each be slower, and hold more memory, and no document would be ready
// sooner. They are safe for concurrent use.
type Turns struct {
	all     int64 // turns at once
	free    *semaphore.Weighted
	running atomic.Int64 // turns that are taken
	begun   atomic.Int64 // turns that were ever taken
}

// NewTurns returns turns of which some may be taken at once. Zero means as many as Go runs
// goroutines at once.
func NewTurns(atOnce int) *Turns {
	if atOnce <= 0 {
		atOnce = runtime.GOMAXPROCS(0)
	}
	return &Turns{all: int64(atOnce), free: semaphore.NewWeighted(int64(atOnce))}
}

// ErrTime is the cause by which the context of work ends that has used up its time.
var ErrTime = errors.New("document: it has used up its time")

// Do runs work in a turn. Its context ends by ErrTime once it has used a processor for the
// limit: time in which others had the processor does not count, nor does the wait for the
// turn. Work that used up its time beside others is run once more alone, with a limit of its
// own: others take caches and memory from it. The error is that of waiting for a turn. wait
// may be nil; otherwise it runs each wait, so that the caller need not count it either.
//
// Only the goroutine of work is measured, so it must not leave its work to others.
func (t *Turns) Do(ctx context.Context, limit time.Duration, wait Waiter, work func(ctx context.Context)) error {
	crowded, err := t.run(ctx, 1, limit, wait, work)
	if err != nil || !crowded {
		return err
	}
	_, err = t.run(ctx, t.all, limit, wait, work)
	return err
}

// Once runs work in a turn, as Do does, but never a second time.
func (t *Turns) Once(ctx context.Context, limit time.Duration, work func(ctx context.Context)) error {
	_, err := t.run(ctx, 1, limit, nil, work)
	return err
}

// A Waiter runs a wait for a turn, and returns its error.
type Waiter func(wait func() error) error

// run runs work as soon as some turns are free, and reports whether it used up its time while
// other work was under way.
func (t *Turns) run(ctx context.Context, turns int64, limit time.Duration, wait Waiter, work func(ctx context.Context)) (crowded bool, err error) {
	take := func() error { return t.free.Acquire(ctx, turns) }
	switch {
	case t.free.TryAcquire(turns): // which is no wait
	case wait != nil:
		err = wait(take)
	default:
		err = take()
	}
	if err != nil {
		return false, context.Cause(ctx)
	}
	defer t.free.Release(turns)

	beside, number := t.running.Add(1) > 1, t.begun.Add(1)
	defer t.running.Add(-1)
	over := within(ctx, limit, work)
	return over && (beside || t.begun.Load() != number), nil
}

// within runs work with a context that ends by ErrTime once it has used a processor for the
// limit, and reports whether it has.
func within(ctx context.Context, limit time.Duration, work func(ctx context.Context)) (over bool) {
	runtime.LockOSThread() // so that the time of the thread is that of the work
	defer runtime.UnlockOSThread()
	more := new(atomic.Int64) // granted to the work, in nanoseconds
	within, cancel := context.WithCancelCause(context.WithValue(ctx, granted{}, more))
	defer cancel(nil)

	used := processorTime()
	var timer *time.Timer
	armed := make(chan struct{}) // closed when timer is set
	timer = time.AfterFunc(limit, func() {
		<-armed
		if left := limit + time.Duration(more.Load()) - used(); left > 0 { // others had the processor meanwhile, or more was granted
			timer.Reset(max(left, time.Millisecond))
			return
		}
		cancel(ErrTime)
	})
	close(armed)
	defer timer.Stop()

	if used() >= limit { // a limit this short has passed, and the timer may come later than the end of the work
		cancel(ErrTime)
	}
	work(within)
	return ctx.Err() == nil && errors.Is(context.Cause(within), ErrTime)
}

// granted is the key of the time that was granted to work, in its context.
type granted struct{}

// GrantTime adds to the time that the work of a context has: a document whose pages take much work
// by their nature, as pictures do, has as much time for each of them. It does nothing for work that
// is not done in a turn.
func GrantTime(ctx context.Context, more time.Duration) {
	if to, ok := ctx.Value(granted{}).(*atomic.Int64); ok {
		to.Add(int64(more))
	}
}
