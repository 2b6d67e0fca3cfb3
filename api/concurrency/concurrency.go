// Package concurrency bounds how many calls of peers a process carries out at once, so that
// what is under way goes on however much more is asked. Calls beyond that wait without
// taking a processor, and each peer has its turn; those that would wait too long are refused, and
// learn when to try again.
//
// How many may be carried out at once follows from how many goroutines are ready to run and
// wait for a processor: whatever else the process does stands in line behind them. Calls
// that wait for a store leave processors idle, so there may be many of them; calls that
// compute may not.
//
// The package imports nothing of the project but the error kinds.
package concurrency

import (
	"cmp"
	"container/list"
	"context"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
)

// Limits are those of a Limiter. The zero Limits work.
type Limits struct {
	// Least is how many calls may be carried out at once at least.
	// Defaults to one for two processors, so that the rest has as much for itself.
	Least int
	// Most is how many may be at most. Defaults to 128 for each processor.
	Most int
	// Ready is how many goroutines may be ready to run, and wait for a processor, before
	// fewer calls are let in. Defaults to one for each processor.
	Ready int
	// Waiting is how many calls may wait. Defaults to 4,096.
	Waiting int
	// Patience is how long a call waits before it is refused. Defaults to 5 s.
	Patience time.Duration

	// Long is how long a call has its slot to itself: others go on beside one that lasts, or a
	// few of them would keep all others waiting. Defaults to 250 ms.
	Long time.Duration

	// CountReady returns how many goroutines are ready to run. Defaults to what the
	// runtime says.
	CountReady func() int
}

func (l Limits) withDefaults() Limits {
	processors := runtime.GOMAXPROCS(0)
	l.Least = cmp.Or(l.Least, max(1, processors/2))
	l.Most = cmp.Or(l.Most, 128*processors)
	l.Ready = cmp.Or(l.Ready, processors)

	l.Waiting = cmp.Or(l.Waiting, 4096)
	l.Patience = cmp.Or(l.Patience, 5*time.Second)
	l.Long = cmp.Or(l.Long, 250*time.Millisecond)

	if l.CountReady == nil {
		l.CountReady = countReady
	}
	return l
}

const (
	// lookEvery is how long the count of ready goroutines counts, once it was taken.
	lookEvery = 2 * time.Millisecond
	// retryAfter is how long a refused caller should wait at least.
	retryAfter = time.Second
)

// A Limiter bounds how many calls are carried out at once. Its methods, and those of its
// slots, are safe for concurrent use.
type Limiter struct {
	limits Limits

	mu      sync.Mutex // guards the variables below, and those of slots
	atOnce  int        // calls that may be carried out
	working list.List  // of the slots of calls that are, those that have theirs for the longest time first
	waiting int
	looked  time.Time
	lines   map[any]*line // of peers of which calls wait
	turn    []*line       // the same, in the order in which they have their turn
	alarm   *time.Timer   // calls ring; nil before the first call has waited
	armed   bool          // the alarm is set, as it is while calls wait
}

// A line is the calls of one peer that wait.
type line struct {
	peer         any
	begun, fresh []*Slot // those that had a slot before go first: they hold memory
}

// New returns a limiter that begins with 16 calls at once, or as near to that as its limits are.
func New(limits Limits) *Limiter {
	l := &Limiter{limits: limits.withDefaults(), lines: make(map[any]*line)}
	l.atOnce = min(max(l.limits.Least, 16), l.limits.Most)
	return l
}

// A Slot is held by a call that is carried out. A nil Slot is that of a call which nothing bounds.
type Slot struct {
	limiter *Limiter
	ctx     context.Context // of the call, which the slot is a part of
	peer    any
	since   time.Time     // that the call has the slot
	at      *list.Element // of working; nil if the call has no slot
	left    bool          // the call has ended, and needs no slot any more
	granted chan struct{} // gets one element when a slot is handed to a call that waits
}

// Enter waits until a call of a peer may be carried out: peers are told apart by ==. It fails with
// errs.Exhausted if too many wait, or it has waited for too long. The slot must be left.
func (l *Limiter) Enter(ctx context.Context, peer any) (*Slot, error) {
	s := &Slot{limiter: l, ctx: ctx, peer: peer, granted: make(chan struct{}, 1)}

	l.mu.Lock()
	l.look()
	if l.take(s) {
		l.mu.Unlock()
		return s, nil
	}
	if l.waiting >= l.limits.Waiting {
		l.mu.Unlock()
		return nil, errBusy()
	}
	l.enqueue(s, false)
	l.mu.Unlock()

	patience := time.NewTimer(l.limits.Patience)
	defer patience.Stop()
	return s, s.wait(ctx, patience.C)
}

// wait waits until the slot is granted, the time is over or the context has ended.
func (s *Slot) wait(ctx context.Context, over <-chan time.Time) error {
	select {
	case <-s.granted:
		return nil
	case <-over:
		return s.withdraw(errBusy())
	case <-ctx.Done():
		return s.withdraw(context.Cause(ctx))
	}
}

// take gives a slot to a call if one is free and no other call waits. The caller holds mu.
func (l *Limiter) take(s *Slot) bool {
	l.forgetLong()
	if l.waiting > 0 || l.working.Len() >= l.atOnce {
		return false
	}
	l.hold(s)
	return true
}

// hold gives a slot to a call. The caller holds mu.
func (l *Limiter) hold(s *Slot) {
	s.since = time.Now()
	s.at = l.working.PushBack(s)
}

// forgetLong lets others go on beside calls that last. The caller holds mu.
func (l *Limiter) forgetLong() {
	for first := l.working.Front(); first != nil; first = l.working.Front() {
		s := first.Value.(*Slot)
		if time.Since(s.since) < l.limits.Long {
			return
		}
		l.working.Remove(first)
		s.at = nil
	}
}

// errBusy is the error of calls that are refused.
func errBusy() error {
	return &errs.Error{
		Kind: errs.Exhausted, Reason: "BUSY", RetryAfter: retryAfter,
		Message: "more is asked of this process than it can answer; try again later",
	}
}

// withdraw has a slot wait no more. It returns why it does not, or nil if it was granted meanwhile.
func (s *Slot) withdraw(why error) error {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-s.granted:
		return nil
	default:
	}
	l.dequeue(s)
	return why
}

// Leave gives the slot back. The call has ended.
func (s *Slot) Leave() {
	if s == nil {
		return
	}
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	s.left = true
	s.limiter.leave(s)
}

// Await makes a call that waits for the peer, for memory, or for anything else but a processor. Others
// have the slot meanwhile. It returns without one if the context of the call has ended, or if another
// goroutine of the call waits already.
func (s *Slot) Await(wait func() error) error {
	if s == nil || !s.lend() {
		return wait()
	}
	err := wait()
	s.resume()
	return err
}

// lend gives the slot to others, and reports whether there was one.
func (s *Slot) lend() bool {
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	held := s.at != nil
	s.limiter.leave(s)
	return held
}

// resume waits for a slot for a call that has begun, and so is not refused any more.
func (s *Slot) resume() {
	l := s.limiter
	l.mu.Lock()
	if s.left || l.take(s) {
		l.mu.Unlock()
		return
	}
	l.enqueue(s, true)
	l.mu.Unlock()
	_ = s.wait(s.ctx, nil) // a call whose context has ended goes on without

	l.mu.Lock()
	defer l.mu.Unlock()
	if s.left { // nobody else would give it back
		l.leave(s)
	}
}

// leave gives a slot back, and hands it on. The caller holds mu.
func (l *Limiter) leave(s *Slot) {
	if s.at == nil {
		return
	}
	l.look()
	l.working.Remove(s.at)
	s.at = nil
	l.handOn()
}

// handOn gives slots that are free to calls that wait. The caller holds mu.
func (l *Limiter) handOn() {
	l.forgetLong()
	for l.waiting > 0 && l.working.Len() < l.atOnce {
		s := l.next()
		l.hold(s)
		s.granted <- struct{}{}
	}
}

// arm sets the alarm while calls wait, for when a slot has been held for long: nobody may enter or leave
// until then. One that goes off too early, as that slot was left meanwhile, is set again. The caller
// holds mu.
func (l *Limiter) arm() {
	first := l.working.Front()
	if l.armed || l.waiting == 0 || first == nil {
		return
	}

	l.armed = true
	left := l.limits.Long - time.Since(first.Value.(*Slot).since)
	if l.alarm == nil {
		l.alarm = time.AfterFunc(left, l.ring)
	} else {
		l.alarm.Reset(left)
	}
}

// ring hands on the slots of calls that last.
func (l *Limiter) ring() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = false
	l.handOn()
	l.arm()
}

// enqueue has a slot wait in the line of its peer, and serves who has its turn if there may be more at
// once by now. The caller holds mu.
func (l *Limiter) enqueue(s *Slot, begun bool) {
	of := l.lines[s.peer]
	if of == nil {
		of = &line{peer: s.peer}
		l.lines[s.peer] = of
		l.turn = append(l.turn, of)
	}

	if begun {
		of.begun = append(of.begun, s)
	} else {
		of.fresh = append(of.fresh, s)
	}
	l.waiting++

	l.handOn()
	l.arm()
}

// next takes the call that has its turn out of its line: the first of the peer that had none for
// the longest time. The caller holds mu, and some call waits.
func (l *Limiter) next() *Slot {
	of := l.turn[0]
	l.turn = l.turn[1:]

	from := &of.begun
	if len(of.begun) == 0 {
		from = &of.fresh
	}
	s := (*from)[0]
	*from = (*from)[1:]
	l.waiting--

	if len(of.begun)+len(of.fresh) > 0 {
		l.turn = append(l.turn, of)
	} else {
		delete(l.lines, of.peer)
	}
	return s
}

// dequeue takes a call out of its line that waits no more. The caller holds mu.
func (l *Limiter) dequeue(s *Slot) {
	of := l.lines[s.peer]
	isIt := func(other *Slot) bool { return other == s }
	of.begun, of.fresh = slices.DeleteFunc(of.begun, isIt), slices.DeleteFunc(of.fresh, isIt)
	l.waiting--

	if len(of.begun)+len(of.fresh) == 0 {
		delete(l.lines, s.peer)
		l.turn = slices.DeleteFunc(l.turn, func(other *line) bool { return other == of })
	}
}

// look counts the goroutines that are ready, once in a while, and lets fewer calls be carried out
// if there are too many, or one more if there are not and calls wait. The caller holds mu.
func (l *Limiter) look() {
	now := time.Now()
	if now.Sub(l.looked) < lookEvery || l.working.Len() < l.limits.Least {
		return
	}
	l.looked = now

	switch ready := l.limits.CountReady(); {
	case ready > l.limits.Ready:
		l.atOnce = max(l.limits.Least, l.atOnce-max(1, l.atOnce/8))
	case l.working.Len() >= l.atOnce:
		l.atOnce = min(l.limits.Most, l.atOnce+1)
	}
}

// countReady returns how many goroutines of this process are ready to run, and wait for a processor.
func countReady() int {
	sample := []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0 // an older runtime: calls are bounded by Most alone
	}
	return int(sample[0].Value.Uint64())
}
