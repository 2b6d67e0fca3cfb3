// Package store is the port to a transactional, ordered key-value store with
// FoundationDB's contract: serializable optimistic transactions that detect
// conflicts on key ranges, snapshot reads, atomic adds, versionstamped keys and
// watches. Everything the service keeps is written once above this port;
// drivers are in the packages below it, and store/storetest states the contract
// as tests that every driver passes.
//
// It imports nothing of the project.
package store

import (
	"bytes"
	"context"
	"time"
)

// Limits of FoundationDB, kept by every driver. Exceeding one makes Commit
// return ErrKeyTooLarge, ErrValueTooLarge or ErrTxTooLarge, and a transaction
// older than MaxTxAge fails with ErrTooOld.
const (
	MaxKeySize   = 10_000     // bytes
	MaxValueSize = 100_000    // bytes
	MaxTxSize    = 10_000_000 // bytes of keys, values and conflict ranges
	MaxTxAge     = 5 * time.Second
)

// House rules, well inside the limits: what this service itself writes.
const (
	ChunkSize    = 64 << 10  // bytes of one chunk of a large value
	TargetTxSize = 512 << 10 // bytes of payload in one transaction
)

// A KeyValue is one pair of a range read. The caller owns both slices.
type KeyValue struct {
	Key, Value []byte
}

// A Range is the half-open interval of keys [Begin, End). If Begin is not below
// End it is empty: a read of it returns nothing, and a write or conflict on it
// is none.
type Range struct {
	Begin, End []byte
}

// Single returns the range that holds exactly key.
func Single(key []byte) Range {
	end := make([]byte, len(key)+1)
	copy(end, key)
	return Range{Begin: key, End: end}
}

// Prefixed returns the range of all keys that begin with prefix. The prefix
// must hold a byte other than 0xFF.
func Prefixed(prefix []byte) Range {
	end := bytes.TrimRight(prefix, "\xff")
	end = append([]byte(nil), end...)
	end[len(end)-1]++
	return Range{Begin: prefix, End: end}
}

// RangeOptions bound and direct a range read. The zero value reads everything,
// ascending: give a bound unless the range is known to be small.
type RangeOptions struct {
	Limit   int  // pairs; 0 means no bound
	Bytes   int  // stop after the pair that reaches this many bytes; 0 means no bound
	Reverse bool // from the end
}

// A Reader reads keys. A missing key reads as nil without error; a present key
// with an empty value reads as a non-nil empty slice.
type Reader interface {
	// Get returns the value of key, or nil if it has none.
	Get(ctx context.Context, key []byte) ([]byte, error)

	// GetAll returns the values of keys, in their order, with nil for those
	// that have none. The reads are under way together.
	GetAll(ctx context.Context, keys [][]byte) ([][]byte, error)

	// GetRange returns the pairs of r in order, and whether a bound of o cut
	// them short. A serializable read that was cut short conflicts only up
	// to, and with, the last key it returned.
	GetRange(ctx context.Context, r Range, o RangeOptions) (pairs []KeyValue, more bool, err error)
}

// A Tx is one attempt at a transaction. Its own reads are serializable: Commit
// fails with ErrConflict if a key or range read was written by a transaction
// that committed after this one's read version. All reads see the writes made
// before them in the same transaction; reading one's own write adds no
// conflict. A Tx is for one goroutine and one Commit.
//
// Writes do not fail at once: a breach of a limit is reported by Commit.
// Slices handed to a Tx must not be changed until it ends.
type Tx interface {
	Reader

	// Snapshot returns a reader of the same version, and of the same pending
	// writes, whose reads add no conflicts.
	Snapshot() Reader

	// ReadVersion returns the version at which this transaction reads; no
	// commit acknowledged before the call that first needed it is newer.
	ReadVersion(ctx context.Context) (uint64, error)

	// Set stores value under key.
	Set(key, value []byte)

	// Clear removes key. It is a blind write: it conflicts with nothing by
	// itself.
	Clear(key []byte)

	// ClearRange removes all keys of r.
	ClearRange(r Range)

	// Add adds delta to the 64-bit little-endian integer under key; a missing
	// key counts as zero. It conflicts with no other Add.
	Add(key []byte, delta int64)

	// SetVersionstampedKey stores value under key with its ten bytes at
	// offset replaced by the commit's versionstamp, which grows with every
	// commit. Until then the key cannot be read (ErrUnreadable).
	SetVersionstampedKey(key []byte, offset int, value []byte)

	// AddReadConflict makes Commit fail as if r had been read serializably
	// now: what this transaction has written itself adds no conflict.
	AddReadConflict(r Range)

	// AddWriteConflict makes transactions that read in r fail at their commit, as if
	// this transaction had written r.
	AddWriteConflict(r Range)

	// Commit applies the writes. These things might happen:
	//  1. nil: they are durable and visible to every later transaction;
	//  2. ErrConflict, ErrTooOld, ErrProcessBehind: nothing was written; run
	//     the transaction again;
	//  3. ErrUnknownResult: they were written or will never be;
	//  4. ErrTimedOut: they were written, or will be, or never;
	//  5. any other error: nothing was written, and trying again is no use.
	// A transaction without writes and write conflicts always succeeds.
	Commit(ctx context.Context) error

	// Versionstamp returns the stamp of a committed transaction that wrote,
	// and ErrUnreadable of any other.
	Versionstamp() (Versionstamp, error)

	// Discard gives up what the transaction holds. It may be called at any
	// time, and after Commit.
	Discard()
}

// A Versionstamp orders commits: eight bytes of version and two of order within
// it, both big-endian.
type Versionstamp [10]byte

// A Store begins transactions. Its methods are safe for concurrent use.
type Store interface {
	// Begin returns a new transaction. Nothing is read yet.
	Begin(ctx context.Context) (Tx, error)

	// Watch returns a channel that is closed some time after the value of key
	// differs from the value when Watch returned. It may also close for no reason,
	// and closes when ctx ends, so the caller must read the key again. A change that
	// is reversed soon may go unseen.
	Watch(ctx context.Context, key []byte) (<-chan struct{}, error)

	// Close ends the store; transactions under way fail with ErrClosed.
	Close() error
}
