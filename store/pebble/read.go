package pebble

import (
	"bytes"
	"context"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/coditect/mapreduce/store"
)

// Get returns the value of key.
func (t *tx) Get(ctx context.Context, key []byte) ([]byte, error) {
	return t.getValue(ctx, key, true)
}

// GetAll returns the values of keys.
func (t *tx) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	return t.getValues(ctx, keys, true)
}

// GetRange returns the pairs of r.
func (t *tx) GetRange(ctx context.Context, r store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	return t.getRange(ctx, r, o, true)
}

// Snapshot returns a reader whose reads add no conflicts.
func (t *tx) Snapshot() store.Reader { return (*snapshotReader)(t) }

// A snapshotReader is a tx that reads without adding conflicts.
type snapshotReader tx

// Get returns the value of key.
func (t *snapshotReader) Get(ctx context.Context, key []byte) ([]byte, error) {
	return (*tx)(t).getValue(ctx, key, false)
}

// GetAll returns the values of keys.
func (t *snapshotReader) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	return (*tx)(t).getValues(ctx, keys, false)
}

// GetRange returns the pairs of r.
func (t *snapshotReader) GetRange(ctx context.Context, r store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	return (*tx)(t).getRange(ctx, r, o, false)
}

func (t *tx) getValue(ctx context.Context, key []byte, serializable bool) ([]byte, error) {
	if err := t.beginRead(ctx); err != nil {
		return nil, err
	}
	defer t.store.endUse()
	own, err := t.ownWrites(key, serializable)
	if err != nil {
		return nil, err
	}
	return t.resolveValue(own, key)
}

// resolveValue returns the value of key after the transaction's own writes.
func (t *tx) resolveValue(own pending, key []byte) ([]byte, error) {
	if own.isKnown() {
		return bytes.Clone(own.applyTo(nil)), nil
	}
	base, err := t.view.get(key)
	if err != nil {
		return nil, err
	}
	return own.applyTo(base), nil
}

// ownWrites returns the effect of the transaction's own writes on key. If the value
// depends on the store, a serializable read adds a conflict.
func (t *tx) ownWrites(key []byte, serializable bool) (pending, error) {
	if isReserved(key) {
		return pending{}, store.ErrReservedKey
	}
	if len(t.writes.stamped) > 0 && t.writes.mayHoldStamp(store.Single(key)) {
		return pending{}, store.ErrUnreadable
	}

	p := t.writes.effectOn(key)
	if serializable && !p.isKnown() {
		t.reads.keys.add(key, t.store.hashKey(key))
	}
	return p, nil
}

// getValues copies all values into few pieces of memory.
func (t *tx) getValues(ctx context.Context, keys [][]byte, serializable bool) ([][]byte, error) {
	if err := t.beginRead(ctx); err != nil {
		return nil, err
	}
	defer t.store.endUse()

	if serializable {
		t.reads.keys.grow(len(keys), totalSize(keys))
	}

	values := make([][]byte, len(keys))
	var a arena

	for i, key := range keys {
		own, err := t.ownWrites(key, serializable)
		if err != nil {
			return nil, err
		}
		if own.effect == untouched {
			values[i], err = a.copyValue(t.view, key)
		} else {
			values[i], err = t.resolveValue(own, key)
		}
		if err != nil {
			return nil, err
		}
	}

	return values, nil
}

func totalSize(keys [][]byte) (n int) {
	for _, key := range keys {
		n += len(key)
	}
	return n
}

// An arena copies small byte strings into larger pieces of memory. The copies stay
// valid and do not overlap.
type arena struct {
	free []byte
	next int // size of the next piece
}

const (
	minPiece = 1 << 10
	maxPiece = 32 << 10
)

// copyBytes returns a copy of b that is never nil.
func (a *arena) copyBytes(b []byte) []byte {
	if len(b) == 0 {
		return []byte{}
	}

	if len(b) > cap(a.free) {
		a.next = min(max(2*a.next, minPiece), maxPiece)
		if len(b) > a.next/4 {
			// A long one gets memory of its own, for it would use up most of a piece.
			return append(make([]byte, 0, len(b)), b...)
		}
		a.free = make([]byte, 0, a.next)
	}

	out := append(a.free[:0:len(b)], b...)
	a.free = a.free[len(b):cap(a.free)][:0]
	return out
}

func (a *arena) copyValue(v *view, key []byte) (value []byte, err error) {
	err = v.withValue(key, func(found []byte) { value = a.copyBytes(found) })
	return value, err
}

func (t *tx) getRange(ctx context.Context, r store.Range, o store.RangeOptions, serializable bool) ([]store.KeyValue, bool, error) {
	if err := checkRange(r); err != nil {
		return nil, false, err
	}
	if err := t.beginRead(ctx); err != nil {
		return nil, false, err
	}
	defer t.store.endUse()

	if bytes.Compare(r.Begin, r.End) >= 0 {
		return nil, false, nil
	}

	pairs, more, err := t.scanRange(ctx, r, o)
	if err != nil {
		return nil, false, err
	}

	// If there are more pairs, the range was read only up to the last of these.
	seen := r
	if more && o.Reverse {
		seen.Begin = pairs[len(pairs)-1].Key
	} else if more {
		seen.End = store.Single(pairs[len(pairs)-1].Key).End
	}

	if t.writes.mayHoldStamp(seen) {
		return nil, false, store.ErrUnreadable
	}

	if serializable {
		t.writes.visitStored(seen, t.readRange)
	}
	return pairs, more, nil
}

// scanRange merges the writes of the transaction over the stored pairs.
func (t *tx) scanRange(ctx context.Context, r store.Range, o store.RangeOptions) (pairs []store.KeyValue, more bool, err error) {
	iter, err := t.view.snapshot.NewIter(&pebbledb.IterOptions{LowerBound: r.Begin, UpperBound: r.End})
	if err != nil {
		return nil, false, readError(err)
	}

	m := mergeIterator{writes: &t.writes, iter: iter, reverse: o.Reverse}
	if len(t.writes.ops) > 0 {
		m.ownKeys = t.writes.keysIn(r)
	}

	pairs, more, err = m.collectPairs(ctx, o)
	if e := iter.Close(); err == nil && e != nil {
		err = readError(e)
	}
	return pairs, more, err
}
