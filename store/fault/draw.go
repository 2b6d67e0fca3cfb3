package fault

import (
	"context"
	"slices"

	"github.com/coditect/mapreduce/store"
)

// A late commit has failed with ErrTimedOut, and is done after some others.
type late struct {
	inner store.Tx
	after int // other commits to come before it
}

// The draw functions decide what happens to an operation and count it. The
// caller holds s.mu.

func (s *Store) drawRead(recovery int) Kind {
	return s.counted(s.first(s.state(recovery), readKinds()))
}

func (s *Store) drawWatch() Kind {
	return s.counted(s.first(s.state(s.recovery), watchKinds()))
}

// drawCommit decides about a transaction that writes the keys of fingerprint.
func (s *Store) drawCommit(recovery int, fingerprint string) Kind {
	kind := s.first(s.state(recovery), commitKinds())
	if kind == Rerun {
		if s.rerun[fingerprint] {
			delete(s.rerun, fingerprint)
			return None
		}
		s.rerun[fingerprint] = true
	}
	return s.counted(kind)
}

// state returns the fault that strikes every operation now, if there is one.
func (s *Store) state(recovery int) Kind {
	switch {
	case s.outage:
		return Outage
	case recovery != s.recovery:
		return Doomed
	default:
		return None
	}
}

// first returns state if it is a fault, else what was scripted for one of
// kinds, else what is drawn.
func (s *Store) first(state Kind, kinds []Kind) Kind {
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
	draw := s.random.Float64()
	for _, k := range kinds {
		if draw < s.rates[k] {
			return k
		}
		draw -= s.rates[k]
	}
	return None
}

func (s *Store) counted(k Kind) Kind {
	if k != None {
		s.counts[k]++
	}
	return k
}

// flip is a fair coin.
func (s *Store) flip() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(2) == 0
}

// delay keeps inner to be committed after some other commits.
func (s *Store) delay(inner store.Tx) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		inner.Discard()
		return
	}
	s.late = append(s.late, &late{inner: inner, after: s.random.IntN(s.config.LateAfter + 1)})
}

// takeLate removes from the late commits those that are due, or all.
func (s *Store) takeLate(all bool) []*late {
	s.mu.Lock()
	defer s.mu.Unlock()
	var due, rest []*late
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

// land commits what is due. Nobody waits for the outcome: it may also conflict
// or be too old by now, and then it never happens. The caller holds s.life.
func (s *Store) land(due []*late) {
	for _, l := range due {
		_ = l.inner.Commit(context.Background())
		l.inner.Discard()
	}
}

// commit runs one commit of the inner store after the late ones that are due.
func (s *Store) commit(ctx context.Context, inner store.Tx) error {
	s.life.RLock()
	defer s.life.RUnlock()
	s.land(s.takeLate(false))
	err := inner.Commit(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.late {
		l.after--
	}
	return err
}
