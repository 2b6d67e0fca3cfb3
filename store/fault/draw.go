package fault

import (
	"context"
	"slices"

	"github.com/coditect/mapreduce/store"
)

// A lateCommit has failed with ErrTimedOut, and is committed after some others.
type lateCommit struct {
	inner store.Tx
	after int // other commits that come before it
}

// The draw functions decide what happens to an operation and count it. The
// caller holds s.mu.

func (s *Store) drawRead(recovery int) Kind {
	return s.countFault(s.chooseFault(s.currentFault(recovery), readKinds()))
}

func (s *Store) drawWatch() Kind {
	return s.countFault(s.chooseFault(s.currentFault(s.recovery), watchKinds()))
}

// drawCommit decides the fault of a transaction whose written keys hash to
// fingerprint.
func (s *Store) drawCommit(recovery int, fingerprint string) Kind {
	kind := s.chooseFault(s.currentFault(recovery), commitKinds())
	if kind == Rerun {
		if s.rerun[fingerprint] {
			delete(s.rerun, fingerprint)
			return None
		}
		s.rerun[fingerprint] = true
	}
	return s.countFault(kind)
}

// currentFault returns the fault that every operation meets now, or None.
func (s *Store) currentFault(recovery int) Kind {
	switch {
	case s.outage:
		return Outage
	case recovery != s.recovery:
		return Doomed
	default:
		return None
	}
}

// chooseFault returns state if it is a fault, otherwise a scripted fault of one of
// kinds, otherwise a drawn one.
func (s *Store) chooseFault(state Kind, kinds []Kind) Kind {
	if s.closed {
		return None
	}

	if state != None {
		return state
	}

	for i, k := range s.script {
		if slices.Contains(kinds, k) {
			s.script = slices.Delete(s.script, i, i+1)
			return k
		}
	}

	// One draw serves all kinds: their rates share the interval from 0 to 1.
	draw := s.random.Float64()
	for _, k := range kinds {
		if draw < s.rates[k] {
			return k
		}
		draw -= s.rates[k]
	}

	return None
}

func (s *Store) countFault(k Kind) Kind {
	if k != None {
		s.counts[k]++
	}
	return k
}

// flipCoin flips a fair coin.
func (s *Store) flipCoin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(2) == 0
}

// delayCommit keeps inner, to commit it after some other commits.
func (s *Store) delayCommit(inner store.Tx) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		inner.Discard()
		return
	}
	s.late = append(s.late, &lateCommit{inner: inner, after: s.random.IntN(s.config.LateAfter + 1)})
}

// takeLate removes and returns the late commits that are due, or all.
func (s *Store) takeLate(all bool) []*lateCommit {
	s.mu.Lock()
	defer s.mu.Unlock()

	var due, rest []*lateCommit
	for _, l := range s.late {
		if all || l.after <= 0 {
			due = append(due, l)
		} else {
			rest = append(rest, l)
		}
	}

	s.late = rest
	return due
}

// commitLate commits the transactions that are due. Nobody waits for the outcome. A
// transaction that conflicts or is too old by now is never committed. The caller
// holds s.life.
func (s *Store) commitLate(due []*lateCommit) {
	for _, l := range due {
		_ = l.inner.Commit(context.Background())
		l.inner.Discard()
	}
}

// commitInner commits inner, after the late commits that are due.
func (s *Store) commitInner(ctx context.Context, inner store.Tx) error {
	s.life.RLock()
	defer s.life.RUnlock()
	s.commitLate(s.takeLate(false))
	err := inner.Commit(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.late {
		l.after--
	}
	return err
}
