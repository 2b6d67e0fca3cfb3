// Package breaker has the circuit breakers of a worker: each stops the calls of all units
// to a provider and model that only fail, and lets one through after a while to see whether
// they work again. The fleet can also stop calls that other workers have found to fail.
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
	"github.com/coditect/mapreduce/api/protocol"
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
	orders map[string]*order // by name
}

// An order is what the fleet has said of the calls to a name: none begins before until. Then one
// at once does, which is proving, until one has worked.
type order struct {
	until   time.Time
	proving bool
	worked  bool
	changed chan struct{} // closed when a call that waits may begin, or may not any more
}

// NewSet returns a set without breakers. When a breaker opens because calls failed, opened
// is called with its name, how long it will be open, and the last failure. No lock is held
// then.
func NewSet(opened func(name string, d time.Duration, cause error)) *Set {
	return &Set{opened: opened, all: make(map[key]*Breaker), orders: make(map[string]*order)}
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
func (bs *Set) Open() []protocol.BreakerState { return bs.list(false) }

// Untold returns those of Open of which the fleet may not know: it has not ordered that
// nobody calls the name.
func (bs *Set) Untold() []protocol.BreakerState { return bs.list(true) }

func (bs *Set) list(untold bool) []protocol.BreakerState {
	bs.mu.Lock()
	defer bs.mu.Unlock()

	var out []protocol.BreakerState
	for _, b := range bs.all {
		if o := bs.orders[b.key.name]; untold && o != nil && time.Now().Before(o.until) {
			continue
		}
		if e := b.openError(); e != nil {
			out = append(out, protocol.BreakerState{Name: e.Name, OpenFor: e.OpenFor})
		}
	}

	// Jobs may have breakers of the same name, of which the one that is open longest is
	// listed.
	slices.SortFunc(out, func(a, b protocol.BreakerState) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return int(b.OpenFor - a.OpenFor)
	})
	return slices.CompactFunc(out, func(a, b protocol.BreakerState) bool { return a.Name == b.Name })
}

// Order lets no call to name begin for d, whichever breaker it is under: another worker's has
// opened, and one need not fail as often again to learn the same. It replaces an earlier
// order. 0 ends that: calls work again, or if probe is set, they are to show whether they do.
// What failed before the order counts no more then.
func (bs *Set) Order(name string, d time.Duration, probe bool) {
	bs.mu.Lock()
	defer bs.mu.Unlock()

	now, before := time.Now(), bs.orders[name]
	if d <= 0 && probe && before != nil && !now.Before(before.until) {
		return // calls are to show it already
	}

	delete(bs.orders, name)
	if d > 0 || probe {
		bs.orders[name] = &order{until: now.Add(d), changed: make(chan struct{})}
	}

	if before == nil {
		return
	}

	close(before.changed)
	if d > 0 || before.worked {
		return
	}

	for k, b := range bs.all {
		if k.name == name {
			b.reset()
		}
	}
}

// orderError returns the error of calls to name while the fleet lets none begin, else nil.
func (bs *Set) orderError(name string) *agent.BreakerError {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	return bs.errorOf(name)
}

func (bs *Set) errorOf(name string) *agent.BreakerError {
	o := bs.orders[name]
	if o == nil {
		return nil
	}
	if left := time.Until(o.until); left > 0 {
		return &agent.BreakerError{Name: name, OpenFor: left}
	}
	return nil
}

// takeTurn waits until a call to name may begin by what the fleet says. If the call shows
// whether calls work again, it returns the order that is so.
func (bs *Set) takeTurn(ctx context.Context, name string) (*order, error) {
	for {
		o, changed, err := bs.tryTurn(name)

		if changed == nil {
			return o, err
		}

		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// tryTurn does what takeTurn does, or returns what is closed when to try again.
func (bs *Set) tryTurn(name string) (*order, <-chan struct{}, error) {
	bs.mu.Lock()
	defer bs.mu.Unlock()

	if err := bs.errorOf(name); err != nil {
		return nil, nil, err
	}

	o := bs.orders[name]
	switch {
	case o == nil || o.worked:
		return nil, nil, nil
	case o.proving:
		return nil, o.changed, nil
	}

	o.proving = true
	return o, nil, nil
}

// endTurn ends the turn of a call, of which worked says that the vendor has answered it. o is
// nil if the call showed nothing.
func (bs *Set) endTurn(o *order, worked bool) {
	if o == nil {
		return
	}

	bs.mu.Lock()
	defer bs.mu.Unlock()

	o.proving, o.worked = false, o.worked || worked
	select {
	case <-o.changed: // another order has replaced it
	default:
		close(o.changed)
		o.changed = make(chan struct{})
	}
}

// A Breaker stops calls to a provider and model that only fail. After a while
// it is half open: one call probes, and the others wait to learn from it.
type Breaker struct {
	key key
	set *Set

	mu    sync.Mutex    // guards the fields below; no method of circuit is called under it
	state *circuit      // replaced by an order that ends
	until time.Time     // when it stops being open
	ended chan struct{} // if not nil: closed when the next call ends
	fresh bool          // it opened and opened was not called yet
	cause error         // of the last failure
}

type circuit = gobreaker.TwoStepCircuitBreaker[struct{}]

func newBreaker(k key, set *Set) *Breaker {
	b := &Breaker{key: k, set: set}
	b.state = b.newCircuit()
	return b
}

// newCircuit returns what counts failures, closed.
func (b *Breaker) newCircuit() *circuit {
	var c *circuit
	c = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:          b.key.name,
		MaxRequests:   1,
		Timeout:       b.key.timeout,
		ReadyToTrip:   func(n gobreaker.Counts) bool { return int(n.ConsecutiveFailures) >= b.key.threshold },
		OnStateChange: func(_ string, _, to gobreaker.State) { b.stateChanged(c, to) },
		IsExcluded:    func(err error) bool { return errors.Is(err, errExcluded) },
	})
	return c
}

// errExcluded stands for outcomes that do not depend on the provider's health.
var errExcluded = errors.New("says nothing of the provider")

// stateChanged is called by a circuit, under its lock.
func (b *Breaker) stateChanged(c *circuit, to gobreaker.State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if to == gobreaker.StateOpen && c == b.state {
		b.until, b.fresh = time.Now().Add(b.key.timeout), true
	}
}

// current returns what counts failures now.
func (b *Breaker) current() *circuit {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// reset closes the breaker. Calls under way do not count.
func (b *Breaker) reset() {
	c := b.newCircuit()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state, b.fresh = c, false
	b.wakeWaiting()
}

// CheckOpen returns a *agent.BreakerError while the breaker is open, or the fleet lets nobody
// call, else nil.
func (b *Breaker) CheckOpen() error {
	open := b.set.orderError(b.key.name)
	if own := b.openError(); own != nil && (open == nil || own.OpenFor > open.OpenFor) {
		open = own
	}

	if open == nil {
		return nil
	}
	return open
}

// openError returns the error of calls while the breaker itself is open, else nil.
func (b *Breaker) openError() *agent.BreakerError {
	if b.current().State() != gobreaker.StateOpen {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	// The first probe is let through after until, not at it.
	return &agent.BreakerError{Name: b.key.name, OpenFor: max(time.Until(b.until), 0) + time.Millisecond}
}

// Run makes a call, unless the breaker is open: the error is then a *agent.BreakerError. While
// the breaker is half open, Run waits until it is known whether calls work again.
func (b *Breaker) Run(ctx context.Context, call func(context.Context) error) error {
	a, err := b.admitCall(ctx)
	if err != nil {
		return err
	}
	return b.runAdmitted(ctx, a, call)
}

// Try is Run for a call that can be made elsewhere: where Run would wait for the outcome of another
// call, it returns a *agent.BreakerError.
func (b *Breaker) Try(ctx context.Context, call func(context.Context) error) error {
	if err := b.CheckOpen(); err != nil {
		return err
	}

	o, changed, err := b.set.tryTurn(b.key.name)
	switch {
	case err != nil:
		return err
	case changed != nil:
		return b.provingError()
	}

	// The turn has to be given back if the breaker of this worker lets no call through.
	report, err := b.current().Allow()
	if err != nil {
		b.set.endTurn(o, false)
		return b.provingError()
	}

	return b.runAdmitted(ctx, admission{report, o}, call)
}

// provingFor is after how long a call is worth trying again while another shows whether calls work.
const provingFor = time.Second

// provingError is the error of a call that does not wait for what another call shows.
func (b *Breaker) provingError() error {
	return &agent.BreakerError{Name: b.key.name, OpenFor: provingFor}
}

// runAdmitted makes a call that was admitted, and judges its outcome.
func (b *Breaker) runAdmitted(ctx context.Context, a admission, call func(context.Context) error) error {
	outcome, answered := errExcluded, false // of a call that panics
	defer func() {
		a.report(outcome)
		b.set.endTurn(a.order, answered)
		b.callEnded()
	}()

	err := call(ctx)

	outcome = judgeOutcome(ctx, err)
	answered = outcome == nil || errors.Is(outcome, errExcluded) && ctx.Err() == nil

	if outcome != nil && b.set.orderError(b.key.name) != nil {
		outcome = errExcluded // of a call that began before, which says nothing that the fleet does not know
	}

	if outcome != nil && !errors.Is(outcome, errExcluded) {
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

// An admission is the right to make one call.
type admission struct {
	report func(error) // takes the outcome of the call
	order  *order      // not nil: the call shows whether calls work again
}

// admitCall waits until a call may be made.
func (b *Breaker) admitCall(ctx context.Context) (admission, error) {
	if err := b.CheckOpen(); err != nil {
		return admission{}, err
	}

	o, err := b.set.takeTurn(ctx, b.key.name)
	if err != nil {
		return admission{}, err
	}

	report, err := b.awaitClosed(ctx)
	if err != nil {
		b.set.endTurn(o, false)
		return admission{}, err
	}

	return admission{report, o}, nil
}

// awaitClosed waits until a call may be made by what this worker has seen, and returns what
// takes its outcome.
func (b *Breaker) awaitClosed(ctx context.Context) (report func(error), err error) {
	for {
		if err := b.CheckOpen(); err != nil {
			return nil, err
		}

		// The channel is taken before the call is asked for, so that no end is missed.
		ended := b.nextEnd()
		report, err = b.current().Allow()
		switch {
		case err == nil:
			return report, nil
		case errors.Is(err, gobreaker.ErrOpenState):
			continue // it has opened this moment
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

// wakeWaiting wakes the waiting calls. mu is held.
func (b *Breaker) wakeWaiting() {
	if b.ended != nil {
		close(b.ended)
		b.ended = nil
	}
}

// callEnded wakes the waiting calls, and calls opened if the call opened the breaker.
func (b *Breaker) callEnded() {
	b.mu.Lock()
	b.wakeWaiting()
	fresh, cause := b.fresh, b.cause
	b.fresh = false
	b.mu.Unlock()

	// opened is called without the lock, as it may look at the breaker.
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
	if class != protocol.Retryable || calledOff || errors.Is(err, context.Canceled) || errors.Is(err, agent.ErrBudget) {
		return errExcluded
	}

	return err
}
