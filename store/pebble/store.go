// Package pebble implements store.Store in a folder of one machine. It adds a small
// layer of optimistic transactions to Pebble, a log-structured merge tree.
//
// A commit has these steps. The caller's goroutine checks limits and encodes the
// writes. One committer takes all waiting requests, in order, and refuses those
// that read keys which a newer commit wrote (history). The rest become a group: one
// Pebble batch, one version, one write to the log. A publisher waits until the log
// is synced, and marks the version as synced (files.Mark). Only then it makes the
// group's snapshot the one that new transactions read, and acknowledges the commits. So
// a read version is always a synced group. Nothing that anyone saw is lost when the
// machine fails, and Open says so if damage to a file has lost it. Later groups are
// written while a sync runs.
//
// It imports package store and what is below this package, and nothing else of the
// project.
package pebble

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/pebble/internal/files"
)

// Config configures a store. The zero value works.
type Config struct {
	// CacheSize bounds the cache of blocks read from disk, in bytes.
	// Defaults to 64 MiB.
	CacheSize int64
	// MemTableSize is the size, in bytes, at which writes in memory are
	// flushed to a table. Memory may hold up to four times as much. Defaults
	// to 8 MiB.
	MemTableSize uint64
	// FlushDelay is how long the deletion of a range waits in memory until it is
	// flushed, so that the room of what it deleted is free. A negative one waits
	// until the writes in memory are flushed anyway. Defaults to 10 s.
	FlushDelay time.Duration
	// HistorySize bounds the memory, in bytes, for the keys of recent
	// commits, which serve to find conflicts. If it is used up before
	// store.MaxTxAge has passed, transactions older than the remembered
	// commits fail with store.ErrTooOld. Defaults to 32 MiB.
	HistorySize int
	// MinFree is the free disk space, in bytes, below which commits are
	// refused with store.ErrNoSpace. Pebble cannot survive a failed write
	// to its log, and compactions need room to work. Defaults to 256 MiB.
	MinFree uint64
	// FreeSpace returns the free disk space in bytes. Defaults to asking the
	// file system of the store's folder.
	FreeSpace func() (uint64, error)
	// Now is the clock for the age of transactions. Its readings are only
	// compared with each other, so they should be monotonic. Defaults to
	// time.Now.
	Now func() time.Time
	// Fatal is called if a disk fails in such a way that the store cannot
	// continue and only a restart can tell what was written. It must not
	// return. Defaults to a panic.
	Fatal func(message string)
	// Logger receives the events of the store. Defaults to silence.
	Logger *slog.Logger
	// ReadOnly opens a store without changing its files, even if some tables
	// are damaged. Undamaged data can be read, and commits that write are
	// refused. The folder may be one that cannot be written to, such as a copy
	// on a disk for reading only. A store that was never completely created is created all the
	// same. Defaults to false.
	ReadOnly bool
	// Beside are the names of files that are not part of the store and may be
	// in its folder before it is created. Defaults to none.
	Beside []string
	// FS holds the files. Defaults to the operating system's.
	FS vfs.FS
}

func (c Config) withDefaults() Config {
	if c.CacheSize == 0 {
		c.CacheSize = 64 << 20
	}
	if c.MemTableSize == 0 {
		c.MemTableSize = 8 << 20
	}
	if c.FlushDelay == 0 {
		c.FlushDelay = 10 * time.Second
	}
	if c.HistorySize == 0 {
		c.HistorySize = 32 << 20
	}
	if c.MinFree == 0 {
		c.MinFree = 256 << 20
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Fatal == nil {
		c.Fatal = func(message string) { panic("store/pebble: " + message) }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.FS == nil {
		c.FS = vfs.Default
	}

	return c
}

// A Store is a store.Store in a folder, which it holds exclusively until Close.
type Store struct {
	config Config
	folder string
	db     *pebbledb.DB
	lock   *pebbledb.Lock
	seed   maphash.Seed

	register *files.Register
	mark     *files.Mark // nil before the files are checked, and if the store is opened for reading only
	unmarked logThrottle // of marks that cannot be written

	queue   queue   // from Commit to the committer
	views   views   // from the publisher to transactions
	watches watches // notified by the publisher
	workers sync.WaitGroup
	stats   stats
	long    longSums // noted by reads, shortened by the committer

	// gate is held for reading by every operation that uses db. Close holds
	// it for writing, and so waits for these operations.
	gate   sync.RWMutex
	closed bool // guarded by gate
}

var _ store.Store = (*Store)(nil)

// Begin returns a new transaction.
func (s *Store) Begin(ctx context.Context) (store.Tx, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := s.beginUse(); err != nil {
		return nil, err
	}
	defer s.endUse()
	return &tx{store: s}, nil
}

// Watch returns a channel that is closed after the value of key changed.
func (s *Store) Watch(ctx context.Context, key []byte) (<-chan struct{}, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := s.beginUse(); err != nil {
		return nil, err
	}
	defer s.endUse()
	return s.watches.add(ctx, key, s.hashKey(key)), nil
}

// Close waits for commits in progress, ends all watches and releases the folder. A
// caller should end its transactions before. Reads of open transactions fail with
// store.ErrClosed.
func (s *Store) Close() error {
	s.gate.Lock()
	already := s.closed
	s.closed = true
	s.gate.Unlock()

	if already {
		return nil
	}

	// In this order: the workers use the watches and the views until they have ended.
	s.queue.close()
	s.workers.Wait()
	s.watches.close()

	version := s.views.currentVersion()
	s.views.close()

	err := errors.Join(s.db.Close(), s.mark.Close())
	if err == nil && !s.config.ReadOnly {
		s.markClosed(version)
	}

	if err = errors.Join(err, s.lock.Close()); err != nil {
		return fmt.Errorf("store/pebble: close %s: %w", s.folder, err)
	}
	return nil
}

// markClosed lets the next Open check more strictly for damage. It may fail on a
// full disk without any loss.
func (s *Store) markClosed(version uint64) {
	if err := s.register.SetState(files.StateClosed, version); err != nil {
		s.config.Logger.Warn("store is closed but not marked so", "error", err)
	}
}

// beginUse begins an operation that uses the database; endUse ends it.
func (s *Store) beginUse() error {
	s.gate.RLock()
	if s.closed {
		s.gate.RUnlock()
		return store.ErrClosed
	}
	return nil
}

func (s *Store) endUse() { s.gate.RUnlock() }

func (s *Store) hashKey(key []byte) uint64 { return maphash.Bytes(s.seed, key) }

// Metrics counts the work of a store since it was opened, and its size.
type Metrics struct {
	DiskBytes    uint64 // size on disk
	HistoryBytes int64  // memory used for finding conflicts
	Version      uint64 // version of the newest visible commit
	Commits      int64  // transactions that wrote and committed
	Refused      int64  // commits refused, for conflicts, age or lack of space
	Groups       int64  // writes to the log that those commits shared
}

// stats are written by the committer and the publisher.
type stats struct {
	commits, refused, groups, history atomic.Int64
}

// Metrics returns the current figures; those of a closed store are zero.
func (s *Store) Metrics() Metrics {
	if s.beginUse() != nil {
		return Metrics{}
	}
	defer s.endUse()

	return Metrics{
		DiskBytes:    s.db.Metrics().DiskSpaceUsage(),
		HistoryBytes: s.stats.history.Load(),
		Version:      s.views.currentVersion(),
		Commits:      s.stats.commits.Load(),
		Refused:      s.stats.refused.Load(),
		Groups:       s.stats.groups.Load(),
	}
}
