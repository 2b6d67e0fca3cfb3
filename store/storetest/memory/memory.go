// Package memory keeps a store in memory: the contract of package store in its
// plainest form, slow and easy to check by eye. The conformance suite holds
// drivers against it, and tests that need no disk may use it. It copies the
// whole index at every commit, so it is not for production.
//
// It imports nothing of the project but the port.
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
	log     []commit   // of the last store.MaxTxAge at least, ascending
	watches map[*watch]struct{}
	closed  bool
}

// A commit is what later transactions are validated against.
type commit struct {
	version uint64
	at      time.Time
	writes  []store.Range
}

// A watch waits for the value under key to differ from value.
type watch struct {
	key, value []byte
	done       chan struct{} // closed by whoever removes the watch from the set
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
		s.fire(w)
	})
	return w.done, nil
}

// Close implements store.Store. Closing again is harmless.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for w := range s.watches {
		s.fire(w)
	}
	return nil
}

// fire ends w once. The caller holds s.mu.
func (s *Store) fire(w *watch) {
	if _, ok := s.watches[w]; ok {
		delete(s.watches, w)
		close(w.done)
	}
}

// snapshot returns the present contents and their version.
func (s *Store) snapshot() (index, uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, 0, store.ErrClosed
	}
	return s.index, s.version, nil
}

// commit validates reads of version against what was committed since, and
// applies ops.
func (s *Store) commit(version uint64, reads, writes []store.Range, ops []op) (store.Versionstamp, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.Versionstamp{}, store.ErrClosed
	}
	if s.conflicts(version, reads) {
		return store.Versionstamp{}, store.ErrConflict
	}
	s.version++
	stamp := stampOf(s.version)
	next := slices.Clone(s.index)
	for _, o := range ops {
		next = o.apply(next, stamp)
		writes = append(writes, o.written(stamp))
	}
	s.index = next
	s.log = append(s.log, commit{version: s.version, at: time.Now(), writes: writes})
	s.trim()
	for w := range s.watches {
		if !same(w.value, next.get(w.key)) {
			s.fire(w)
		}
	}
	return stamp, nil
}

// conflicts reports whether a commit newer than version wrote in reads. The
// caller holds s.mu.
func (s *Store) conflicts(version uint64, reads []store.Range) bool {
	for _, c := range slices.Backward(s.log) {
		if c.version <= version {
			return false
		}
		if overlap(c.writes, reads) {
			return true
		}
	}
	return false
}

// trim forgets commits that no transaction young enough to commit began
// before. The caller holds s.mu.
func (s *Store) trim() {
	old := 0
	for old < len(s.log) && time.Since(s.log[old].at) > 2*store.MaxTxAge {
		old++
	}
	s.log = slices.Delete(s.log, 0, old)
}

// same tells a missing value from an empty one.
func same(a, b []byte) bool {
	return (a == nil) == (b == nil) && bytes.Equal(a, b)
}
