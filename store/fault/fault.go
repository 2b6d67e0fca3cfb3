// Package fault puts seeded faults around a store: it is the bad day that the
// layers above are tested against. A Store of this package keeps the contract
// of package store. What it adds is all that the contract leaves open:
// conflicts for no reason, unknown commit results, commits that land later,
// transactions that are too old, outages and recoveries.
//
// With one goroutine the same seed gives the same faults. It imports nothing of
// the project but the port.
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

// Config says which faults happen and how often. The zero value has none, until
// they are scripted.
type Config struct {
	// Seed decides every draw.
	Seed uint64
	// Rates are the probabilities of the faults. Defaults to none.
	Rates Rates
	// LateAfter bounds the number of other commits before which a late one
	// lands: it is drawn from 0 to LateAfter, 0 being just before the next.
	// Defaults to 3.
	LateAfter int
	// Pause is called for SlowRead and SlowCommit. It may return early when
	// ctx ends. Defaults to letting other goroutines run.
	Pause func(ctx context.Context)
}

// A Store is a store.Store with faults around another.
type Store struct {
	inner  store.Store
	config Config

	// life is held for reading by whatever may run a late commit, so that
	// Close, which holds it for writing, leaves none behind.
	life sync.RWMutex

	mu       sync.Mutex // guards the fields below
	closed   bool       // no faults and no late commits any more
	random   *rand.Rand
	rates    Rates
	script   []Kind
	counts   map[Kind]int
	outage   bool
	recovery int             // transactions begun in an earlier one are doomed
	rerun    map[string]bool // what was made to run again, by what it writes
	late     []*late
}

// New returns inner with faults around it. Closing it closes inner.
func New(inner store.Store, c Config) *Store {
	if c.LateAfter == 0 {
		c.LateAfter = 3
	}
	if c.Pause == nil {
		c.Pause = yield
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

// yield lets others go first, often enough to let them finish something.
func yield(context.Context) {
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
		return nil, injected(Outage, store.ErrProcessBehind)
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
		return nil, injected(kind, store.ErrProcessBehind)
	case SpuriousWatch:
		fired := make(chan struct{})
		close(fired)
		return fired, nil
	}
	return s.inner.Watch(ctx, key)
}

// Close lands what is late and closes the inner store. It waits for commits
// under way; none lands after it returns.
func (s *Store) Close() error {
	s.life.Lock()
	defer s.life.Unlock()
	s.land(s.takeLate(true))
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	return s.inner.Close()
}

// Settle lands all commits that are late, and returns when they have.
func (s *Store) Settle() {
	s.life.RLock()
	defer s.life.RUnlock()
	s.land(s.takeLate(true))
}

// Heal ends the outage, sets all rates to zero and drops what was scripted.
// Commits that are late already still land; see Settle.
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

// FailNext scripts faults: each kind strikes once, at the next operation that it
// can strike, before any fault is drawn. Kinds that strike at the same kind of
// operation do so in this order.
func (s *Store) FailNext(kinds ...Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, kinds...)
}

// BeginOutage makes every operation fail with a retryable error until
// EndOutage or Heal. What commits in the outage is unknown.
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

// Recover is what a FoundationDB recovery looks like from a client: every
// transaction under way fails, by ErrTooOld or by ErrUnknownResult.
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

func injected(k Kind, err error) error { return &Error{Kind: k, Err: err} }
