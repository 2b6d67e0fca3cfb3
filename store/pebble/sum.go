package pebble

import (
	"encoding/binary"
	"io"
	"sync"
	"sync/atomic"

	pebbledb "github.com/cockroachdb/pebble/v2"
)

// sumMerger returns a Pebble merger that adds: a merge operand is a delta, and the
// oldest value may be anything that Set stored.
//
// Its name is stored with the data.
func (s *Store) sumMerger() *pebbledb.Merger {
	return &pebbledb.Merger{
		Name: "coditect.sum.v1",
		Merge: func(key, value []byte) (pebbledb.ValueMerger, error) {
			return &sum{total: decodeSum(value), long: &s.long, hash: s.hashKey(key)}, nil
		},
	}
}

// A sum wraps around at 64 bits, so the order in which Pebble adds does not matter.
type sum struct {
	total uint64
	added int // deltas and values after the first
	long  *longSums
	hash  uint64 // of the key
}

func (s *sum) MergeNewer(value []byte) error {
	s.total += decodeSum(value)
	s.added++
	return nil
}

func (s *sum) MergeOlder(value []byte) error { return s.MergeNewer(value) }

func (s *sum) Finish(bool) ([]byte, io.Closer, error) {
	if s.added >= longSum {
		s.long.note(s.hash)
	}
	return encodeSum(s.total), nil, nil
}

// longSum is how many deltas are added up again by each read, at most.
const longSum = 64

// maxLongSums bounds how many keys are noted that nobody may ever add to again.
const maxLongSums = 256

// longSums are the keys, by their hashes, of which a read has added up many deltas. Pebble
// keeps all of them until it writes a table: without more, each read of a counter that all
// transactions add to would take longer than the one before. Other keys with the same hash
// do no harm.
type longSums struct {
	some atomic.Bool // whether hashes may hold any, so that nobody else has to lock

	mu     sync.Mutex
	hashes map[uint64]struct{} // guarded by mu
}

func (l *longSums) note(hash uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hashes == nil || len(l.hashes) >= maxLongSums {
		l.hashes = make(map[uint64]struct{})
	}
	l.hashes[hash] = struct{}{}
	l.some.Store(true)
}

// remove returns the keys of a footprint that are noted, which are not any more.
func (l *longSums) remove(wrote *keyList) (found [][]byte) {
	if !l.some.Load() {
		return nil
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	for i := range wrote.len() {
		if _, ok := l.hashes[wrote.hashes[i]]; ok {
			delete(l.hashes, wrote.hashes[i])
			found = append(found, wrote.keyAt(i))
		}
	}

	l.some.Store(len(l.hashes) > 0)
	return found
}

func encodeSum(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }

// decodeSum reads a value of any length as FoundationDB does: missing bytes are
// zero, and extra bytes are cut off.
func decodeSum(value []byte) uint64 {
	var b [8]byte
	copy(b[:], value)
	return binary.LittleEndian.Uint64(b[:])
}
