// Package memory implements a store in memory. It is the reference for the contract
// of package store: slow and simple. The conformance suite compares drivers with
// it, and tests that need no disk may use it. It copies the whole index at every
// commit, so it is not for production.
//
// It imports nothing of the project but package store.
package memory

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/store"
)

var _ store.Store = (*Store)(nil)

// A Store is a store.Store in memory. The zero value is an empty store.
type Store struct {
	mu      sync.Mutex // guards the fields below
	version uint64     // of the last commit
	index   index      // the contents at version
	log     []commit   // commits of at least the last store.MaxTxAge, ascending
	watches map[*watch]struct{}
	closed  bool
}

// A commit is a record of writes, against which later transactions are validated.
type commit struct {
	version uint64
	at      time.Time
	writes  []store.Range
}

// A watch waits for the value under key to differ from value.
type watch struct {
	key, value []byte
	done       chan struct{} // closed when the watch is removed from the set
}

// Begin implements store.Store.
func (s *Store) Begin(ctx context.Context) (store.Tx, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	return &tx{store: s}, nil
}

// Watch implements store.Store.
func (s *Store) Watch(ctx context.Context, key []byte) (<-chan struct{}, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.ErrClosed
	}

	w := &watch{key: bytes.Clone(key), value: s.index.get(key), done: make(chan struct{})}
	if s.watches == nil {
		s.watches = make(map[*watch]struct{})
	}
	s.watches[w] = struct{}{}

	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fireWatch(w)
	})
	return w.done, nil
}

// Close implements store.Store. Closing again is harmless.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for w := range s.watches {
		s.fireWatch(w)
	}
	return nil
}

// fireWatch ends w once. The caller holds s.mu.
func (s *Store) fireWatch(w *watch) {
	if _, ok := s.watches[w]; ok {
		delete(s.watches, w)
		close(w.done)
	}
}

// currentSnapshot returns the present contents and their version.
func (s *Store) currentSnapshot() (index, uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, 0, store.ErrClosed
	}
	return s.index, s.version, nil
}

// commit validates the reads at version against later commits, and applies ops.
func (s *Store) commit(version uint64, reads, writes []store.Range, ops []op) (store.Versionstamp, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.Versionstamp{}, store.ErrClosed
	}
	if s.hasConflict(version, reads) {
		return store.Versionstamp{}, store.ErrConflict
	}

	s.version++
	stamp := stampOf(s.version)

	// Open transactions read the old index, so a copy is changed.
	next := slices.Clone(s.index)
	for _, o := range ops {
		next = o.applyTo(next, stamp)
		writes = append(writes, o.writtenRange(stamp))
	}

	s.index = next
	s.log = append(s.log, commit{version: s.version, at: time.Now(), writes: writes})
	s.trimLog()

	for w := range s.watches {
		if !sameValue(w.value, next.get(w.key)) {
			s.fireWatch(w)
		}
	}

	return stamp, nil
}

// hasConflict reports whether a commit newer than version wrote in reads. The
// caller holds s.mu.
func (s *Store) hasConflict(version uint64, reads []store.Range) bool {
	for _, c := range slices.Backward(s.log) {
		if c.version <= version {
			return false
		}
		if rangesOverlap(c.writes, reads) {
			return true
		}
	}
	return false
}

// trimLog removes commits that are older than every transaction that may still
// commit. The caller holds s.mu.
func (s *Store) trimLog() {
	old := 0
	for old < len(s.log) && time.Since(s.log[old].at) > 2*store.MaxTxAge {
		old++
	}
	s.log = slices.Delete(s.log, 0, old)
}

// sameValue compares two values. A missing value differs from an empty one.
func sameValue(a, b []byte) bool {
	return (a == nil) == (b == nil) && bytes.Equal(a, b)
}
