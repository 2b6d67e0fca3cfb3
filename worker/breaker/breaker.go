// Package breaker has the circuit breakers of a worker: each stops the calls of all units to
// a provider and model that only fail, and lets one through after a while to see whether
// they work again. The fleet can stop calls as well, of which others have found that they fail.
//
// It knows no unit and no orchestrator: whoever makes breakers is told when one opens.
package breaker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
)

// A key tells breakers apart: jobs with other settings have their own.
type key struct {
	name      string // provider/model
	threshold int
	timeout   time.Duration
}

// A Set holds the breakers of a worker. It is safe for concurrent use.
type Set struct {
	opened func(name string, d time.Duration, cause error)

	mu     sync.Mutex // guards the fields below
	all    map[key]*Breaker
	orders map[string]time.Time // by name: until when the fleet lets nobody call
}

// NewSet returns a set without breakers. Of a breaker that opens because calls failed,
// opened is told the name, how long it will be open, and the last failure; it is called
// without locks.
func NewSet(opened func(name string, d time.Duration, cause error)) *Set {
	return &Set{opened: opened, all: make(map[key]*Breaker), orders: make(map[string]time.Time)}
}

// Of returns the breaker that a job's calls to name are under; an empty name means its own
// provider and model.
func (bs *Set) Of(spec *mapreduce.JobSpec, name string) *Breaker {
	if name == "" {
		name = spec.Provider + "/" + spec.Model
	}
	k := key{name, spec.BreakerThreshold, spec.BreakerTimeout}
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b := bs.all[k]
	if b == nil {
		b = newBreaker(k, bs)
		bs.all[k] = b
	}
	return b
}

// Open returns the breakers that are open because calls failed, each name once, in order.
func (bs *Set) Open() []mapreduce.BreakerState {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	var out []mapreduce.BreakerState
	for _, b := range bs.all {
		if b.state.State() == gobreaker.StateOpen {
			out = append(out, mapreduce.BreakerState{Name: b.key.name, OpenFor: b.openError().OpenFor})
		}
	}
	slices.SortFunc(out, func(a, b mapreduce.BreakerState) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return int(b.OpenFor - a.OpenFor)
	})
	return slices.CompactFunc(out, func(a, b mapreduce.BreakerState) bool { return a.Name == b.Name })
}

// Order lets no call to name begin for d, whichever breaker it is under: another worker's has
// opened, and one need not fail as often again to learn the same. It replaces an earlier
// order; 0 only ends that.
func (bs *Set) Order(name string, d time.Duration) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	delete(bs.orders, name)
	if d > 0 {
		bs.orders[name] = time.Now().Add(d)
	}
}

// checkOrder returns a *agent.BreakerError while the fleet lets nobody call name, else nil.
func (bs *Set) checkOrder(name string) error {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	until, ordered := bs.orders[name]
	left := time.Until(until)
	switch {
	case !ordered:
		return nil
	case left <= 0:
		delete(bs.orders, name)
		return nil
	}
	return &agent.BreakerError{Name: name, OpenFor: left}
}

// A Breaker stops calls to a provider and model that only fail. After a while
// it is half open: one call probes, and the others wait to learn from it.
type Breaker struct {
	key   key
	set   *Set
	state *gobreaker.TwoStepCircuitBreaker[struct{}]

	mu    sync.Mutex    // guards the fields below; state is never called under it
	until time.Time     // when it stops being open
	ended chan struct{} // if not nil: closed when the next call ends
	fresh bool          // it opened and opened was not called yet
	cause error         // of the last failure
}

func newBreaker(k key, set *Set) *Breaker {
	b := &Breaker{key: k, set: set}
	b.state = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:          k.name,
		MaxRequests:   1,
		Timeout:       k.timeout,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return int(c.ConsecutiveFailures) >= k.threshold },
		OnStateChange: b.stateChanged,
		IsExcluded:    func(err error) bool { return errors.Is(err, errExcluded) },
	})
	return b
}

// errExcluded stands for outcomes that do not depend on the provider's health.
var errExcluded = errors.New("says nothing of the provider")

// stateChanged is called by state, under its lock.
func (b *Breaker) stateChanged(_ string, _, to gobreaker.State) {
	if to != gobreaker.StateOpen {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.until = time.Now().Add(b.key.timeout)
	b.fresh = true
}

// CheckOpen returns a *agent.BreakerError while the breaker is open, or the fleet lets nobody
// call, else nil.
func (b *Breaker) CheckOpen() error {
	if b.state.State() == gobreaker.StateOpen {
		return b.openError()
	}
	return b.set.checkOrder(b.key.name)
}

func (b *Breaker) openError() *agent.BreakerError {
	b.mu.Lock()
	defer b.mu.Unlock()
	// The first probe is let through after until, not at it.
	return &agent.BreakerError{Name: b.key.name, OpenFor: max(time.Until(b.until), 0) + time.Millisecond}
}

// Run makes a call, unless the breaker is open: the error is then a *agent.BreakerError. While
// the breaker is half open, Run waits until it is known whether calls work again.
func (b *Breaker) Run(ctx context.Context, call func(context.Context) error) error {
	report, err := b.admitCall(ctx)
	if err != nil {
		return err
	}
	outcome := errExcluded // of a call that panics
	defer func() {
		report(outcome)
		b.callEnded()
	}()
	err = call(ctx)
	if outcome = judgeOutcome(ctx, err); outcome != nil && !errors.Is(outcome, errExcluded) {
		b.noteFailure(err)
	}
	return err
}

// noteFailure keeps the reason why a call failed, to report it if the failure opens the
// breaker.
func (b *Breaker) noteFailure(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cause = err
}

// admitCall waits until a call may be made, and returns what takes its outcome.
func (b *Breaker) admitCall(ctx context.Context) (report func(error), err error) {
	for {
		if err := b.set.checkOrder(b.key.name); err != nil {
			return nil, err
		}
		ended := b.nextEnd()
		report, err = b.state.Allow()
		if err == nil {
			return report, nil
		}
		if errors.Is(err, gobreaker.ErrOpenState) {
			return nil, b.openError()
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// nextEnd returns a channel that is closed when a call ends.
func (b *Breaker) nextEnd() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended == nil {
		b.ended = make(chan struct{})
	}
	return b.ended
}

// callEnded wakes the waiting calls, and calls opened if the call opened the breaker.
func (b *Breaker) callEnded() {
	b.mu.Lock()
	if b.ended != nil {
		close(b.ended)
		b.ended = nil
	}
	fresh, cause := b.fresh, b.cause
	b.fresh = false
	b.mu.Unlock()
	if fresh {
		b.set.opened(b.key.name, b.key.timeout, cause)
	}
}

// judgeOutcome returns what an outcome says of the provider's health: nil, errExcluded
// or err. A request that can never succeed, and one that was called off, say
// nothing; one that took too long does.
func judgeOutcome(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, waits := errors.AsType[*agent.BreakerError](err); waits {
		return errExcluded // it was held back, as for want of room
	}
	class, _ := agent.Classify(err)
	cause := context.Cause(ctx)
	calledOff := cause != nil && !errors.Is(cause, context.DeadlineExceeded)
	if class != mapreduce.Retryable || calledOff || errors.Is(err, context.Canceled) || errors.Is(err, agent.ErrBudget) {
		return errExcluded
	}
	return err
}
