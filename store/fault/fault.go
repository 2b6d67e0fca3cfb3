// Package fault wraps a store and injects faults, to test the layers above. A Store
// of this package keeps the contract of package store, and uses all the freedom
// that the contract leaves: conflicts for no reason, unknown commit results, late
// commits, transactions that are too old, outages and recoveries.
//
// With one goroutine the same seed gives the same faults. The package imports
// nothing of the project but package store.
package fault

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/coditect/mapreduce/store"
)

var _ store.Store = (*Store)(nil)

// Config sets which faults happen and how often. The zero value has no faults but
// those that are scripted.
type Config struct {
	// Seed decides every draw.
	Seed uint64
	// Rates are the probabilities of the faults. Defaults to none.
	Rates Rates
	// LateAfter bounds the number of other commits that come before a late
	// one. The number is drawn from 0 to LateAfter. Defaults to 3.
	LateAfter int
	// Pause is called for SlowRead and SlowCommit. It may return early when
	// ctx ends. Defaults to letting other goroutines run.
	Pause func(ctx context.Context)
}

// A Store is a store.Store with faults around another.
type Store struct {
	inner  store.Store
	config Config

	// life is held for reading by every operation that may run a late commit.
	// Close holds it for writing, so that no late commit runs afterwards.
	life sync.RWMutex

	mu       sync.Mutex // guards the fields below
	closed   bool       // no more faults and late commits
	random   *rand.Rand
	rates    Rates
	script   []Kind
	counts   map[Kind]int
	outage   bool
	recovery int             // transactions begun in an earlier one are doomed
	rerun    map[string]bool // transactions that were made to run again, by fingerprint
	late     []*lateCommit
}

// New returns inner with faults around it. Closing it closes inner.
func New(inner store.Store, c Config) *Store {
	if c.LateAfter == 0 {
		c.LateAfter = 3
	}
	if c.Pause == nil {
		c.Pause = yieldOften
	}

	return &Store{
		inner:  inner,
		config: c,
		random: rand.New(rand.NewPCG(c.Seed, 0)),
		rates:  c.Rates,
		counts: make(map[Kind]int),
		rerun:  make(map[string]bool),
	}
}

// yieldOften yields to other goroutines often enough to let them finish something.
func yieldOften(context.Context) {
	for range 10 {
		runtime.Gosched()
	}
}

// Begin implements store.Store. It fails only in an outage.
func (s *Store) Begin(ctx context.Context) (store.Tx, error) {
	s.mu.Lock()
	out, recovery := s.outage && !s.closed, s.recovery
	if out {
		s.counts[Outage]++
	}
	s.mu.Unlock()

	if out {
		return nil, newError(Outage, store.ErrProcessBehind)
	}

	inner, err := s.inner.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &tx{store: s, inner: inner, recovery: recovery}, nil
}

// Watch implements store.Store.
func (s *Store) Watch(ctx context.Context, key []byte) (<-chan struct{}, error) {
	s.mu.Lock()
	kind := s.drawWatch()
	s.mu.Unlock()

	switch kind {
	case Outage:
		return nil, newError(kind, store.ErrProcessBehind)
	case SpuriousWatch:
		fired := make(chan struct{})
		close(fired)
		return fired, nil
	}
	return s.inner.Watch(ctx, key)
}

// Close runs the late commits and closes the inner store. It waits for commits in
// progress, so that none happens after it returns.
func (s *Store) Close() error {
	s.life.Lock()
	defer s.life.Unlock()
	s.commitLate(s.takeLate(true))
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	return s.inner.Close()
}

// Settle runs all late commits, and returns when they are done.
func (s *Store) Settle() {
	s.life.RLock()
	defer s.life.RUnlock()
	s.commitLate(s.takeLate(true))
}

// Heal ends the outage, sets all rates to zero and drops scripted faults. Commits
// that are already late still happen; see Settle.
func (s *Store) Heal() {
	s.EndOutage()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rates, s.script = nil, nil
}

// SetRates replaces the rates of Config.
func (s *Store) SetRates(r Rates) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rates = r
}

// FailNext scripts faults: each kind hits once, at the next operation that it can
// hit, before any fault is drawn. Kinds that hit the same kind of operation do so
// in this order.
func (s *Store) FailNext(kinds ...Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, kinds...)
}

// BeginOutage makes every operation fail with a retryable error until EndOutage or
// Heal. The result of a commit in the outage is unknown.
func (s *Store) BeginOutage() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outage = true
}

// EndOutage ends an outage with a recovery. Without an outage it does nothing.
func (s *Store) EndOutage() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outage {
		s.outage = false
		s.recovery++
	}
}

// Recover simulates a recovery of FoundationDB as a client sees it: every
// transaction in progress fails, by ErrTooOld or by ErrUnknownResult.
func (s *Store) Recover() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recovery++
}

// Count returns how often faults of a kind have happened.
func (s *Store) Count(k Kind) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[k]
}

// Counts returns how often each kind of fault has happened.
func (s *Store) Counts() map[Kind]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := make(map[Kind]int, len(s.counts))
	maps.Copy(counts, s.counts)
	return counts
}

// An Error is an injected fault. It wraps the error of package store that the
// fault stands for.
type Error struct {
	Kind Kind
	Err  error
}

// Error implements error.
func (e *Error) Error() string { return "fault: injected " + e.Kind.String() + ": " + e.Err.Error() }

// Unwrap returns the error of package store.
func (e *Error) Unwrap() error { return e.Err }

// Injected reports whether err is a fault of this package, and which.
func Injected(err error) (Kind, bool) {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind, true
	}
	return None, false
}

func newError(k Kind, err error) error { return &Error{Kind: k, Err: err} }
