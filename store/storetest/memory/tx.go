package memory

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/coditect/mapreduce/store"
)

var _ store.Tx = (*tx)(nil)

// A tx is for one goroutine, so it has no lock.
type tx struct {
	store *Store
	ended bool

	// The state that it reads, set at the first read.
	began   time.Time // zero before the first read
	version uint64
	view    index // the contents at version, with ops[:applied] applied
	applied int

	ops            []op
	known          []store.Range // keys whose value no longer depends on the store
	reads          []store.Range // read conflicts
	writeConflicts []store.Range // write conflicts besides those of ops
	size           int
	breach         error // the first limit exceeded
	stamp          *store.Versionstamp
}

// Snapshot implements store.Tx.
func (t *tx) Snapshot() store.Reader { return snapshotReader{t} }

// ReadVersion implements store.Tx.
func (t *tx) ReadVersion(ctx context.Context) (uint64, error) {
	if err := t.refreshView(ctx); err != nil {
		return 0, err
	}
	return t.version, nil
}

// Get implements store.Reader.
func (t *tx) Get(ctx context.Context, key []byte) ([]byte, error) {
	value, err := t.getValue(ctx, key)
	if err == nil {
		t.addRead(store.Single(key))
	}
	return value, err
}

// GetAll implements store.Reader.
func (t *tx) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	return getAll(ctx, t, keys)
}

// GetRange implements store.Reader.
func (t *tx) GetRange(ctx context.Context, r store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	pairs, covered, more, err := t.scanRange(ctx, r, o)
	if err == nil {
		t.addRead(covered)
	}
	return pairs, more, err
}

// Set implements store.Tx.
func (t *tx) Set(key, value []byte) {
	t.addWrite(op{kind: kindSet, key: key, value: nonNil(value)})
	t.known = append(t.known, store.Single(key))
}

// Clear implements store.Tx.
func (t *tx) Clear(key []byte) {
	t.checkLimit(len(key) > store.MaxKeySize, store.ErrKeyTooLarge)
	t.ClearRange(store.Single(key))
}

// ClearRange implements store.Tx.
func (t *tx) ClearRange(r store.Range) {
	if !isEmpty(r) {
		t.addWrite(op{kind: kindClear, span: r})
		t.known = append(t.known, r)
	}
}

// Add implements store.Tx.
func (t *tx) Add(key []byte, delta int64) {
	t.addWrite(op{kind: kindAdd, key: key, delta: delta})
}

// SetVersionstampedKey implements store.Tx.
func (t *tx) SetVersionstampedKey(key []byte, offset int, value []byte) {
	t.addWrite(op{kind: kindStamped, key: key, offset: offset, value: nonNil(value)})
}

// AddReadConflict implements store.Tx.
func (t *tx) AddReadConflict(r store.Range) {
	if !isEmpty(r) {
		t.checkRange(r)
		t.addRead(r)
	}
}

// AddWriteConflict implements store.Tx.
func (t *tx) AddWriteConflict(r store.Range) {
	if !isEmpty(r) {
		t.checkRange(r)
		t.writeConflicts = append(t.writeConflicts, r)
		t.size += len(r.Begin) + len(r.End)
	}
}

// Commit implements store.Tx.
func (t *tx) Commit(ctx context.Context) error {
	if t.ended {
		return store.ErrUsed
	}
	defer t.Discard()
	if len(t.ops) == 0 && len(t.writeConflicts) == 0 {
		return nil
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}

	t.checkLimit(t.size > store.MaxTxSize, store.ErrTxTooLarge)
	if t.breach != nil {
		return t.breach
	}

	if err := t.refreshView(ctx); err != nil {
		return err
	}

	stamp, err := t.store.commit(t.version, t.reads, t.writeConflicts, t.ops)
	if err == nil {
		t.stamp = &stamp
	}
	return err
}

// Versionstamp implements store.Tx.
func (t *tx) Versionstamp() (store.Versionstamp, error) {
	if t.stamp == nil {
		return store.Versionstamp{}, store.ErrUnreadable
	}
	return *t.stamp, nil
}

// Discard implements store.Tx.
func (t *tx) Discard() {
	t.ended = true
	t.view = nil
}

// refreshView applies the transaction's own writes to the view. The first call fixes
// the read version.
func (t *tx) refreshView(ctx context.Context) error {
	if t.ended {
		return store.ErrUsed
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}

	if t.began.IsZero() {
		view, version, err := t.store.currentSnapshot()
		if err != nil {
			return err
		}
		t.view, t.version, t.began = view, version, time.Now()
	} else if _, _, err := t.store.currentSnapshot(); err != nil {
		return err
	}

	if time.Since(t.began) > store.MaxTxAge {
		return store.ErrTooOld
	}

	// The view is shared with others until the transaction writes.
	if t.applied == 0 && len(t.ops) > 0 {
		t.view = slices.Clone(t.view)
	}

	for _, o := range t.ops[t.applied:] {
		if o.kind != kindStamped {
			t.view = o.applyTo(t.view, store.Versionstamp{})
		}
	}

	t.applied = len(t.ops)
	return nil
}

func (t *tx) getValue(ctx context.Context, key []byte) ([]byte, error) {
	if err := t.refreshView(ctx); err != nil {
		return nil, err
	}
	if holdsReserved(store.Single(key)) {
		return nil, store.ErrReservedKey
	}
	if t.mayHoldStamp(store.Single(key)) {
		return nil, store.ErrUnreadable
	}
	return bytes.Clone(t.view.get(key)), nil
}

// scanRange reads r. covered is the part of r that the answer depends on.
func (t *tx) scanRange(ctx context.Context, r store.Range, o store.RangeOptions) (pairs []store.KeyValue, covered store.Range, more bool, err error) {
	if err := t.refreshView(ctx); err != nil {
		return nil, r, false, err
	}
	if holdsReserved(r) {
		return nil, r, false, store.ErrReservedKey
	}

	found := t.view.pairsIn(r)
	bytesRead := 0
	for i := range found {
		kv := found[i]
		if o.Reverse {
			kv = found[len(found)-1-i]
		}
		pairs = append(pairs, store.KeyValue{Key: bytes.Clone(kv.Key), Value: bytes.Clone(kv.Value)})
		bytesRead += len(kv.Key) + len(kv.Value)
		if len(pairs) == o.Limit || o.Bytes > 0 && bytesRead >= o.Bytes {
			more = true
			break
		}
	}

	// A read that is cut short depends only on what it has returned.
	covered = r
	if more && o.Reverse {
		covered.Begin = pairs[len(pairs)-1].Key
	} else if more {
		covered.End = store.Single(pairs[len(pairs)-1].Key).End
	}

	if t.mayHoldStamp(covered) {
		return nil, r, false, store.ErrUnreadable
	}

	return pairs, covered, more, nil
}

// mayHoldStamp reports whether a stamped write of this transaction may fall into r.
func (t *tx) mayHoldStamp(r store.Range) bool {
	for _, o := range t.ops {
		if o.kind == kindStamped && rangesOverlap([]store.Range{o.stampRange()}, []store.Range{r}) {
			return true
		}
	}
	return false
}

// addRead adds r, without the keys that the transaction itself has written, to
// its reads.
func (t *tx) addRead(r store.Range) {
	if isEmpty(r) {
		return
	}
	for _, left := range subtractRanges(r, t.known) {
		t.reads = append(t.reads, left)
		t.size += len(left.Begin) + len(left.End)
	}
}

func (t *tx) addWrite(o op) {
	t.checkLimit(len(o.key) > store.MaxKeySize, store.ErrKeyTooLarge)
	t.checkLimit(len(o.value) > store.MaxValueSize, store.ErrValueTooLarge)
	if o.kind == kindClear {
		t.checkRange(o.span)
	} else {
		t.checkLimit(holdsReserved(store.Single(o.key)), store.ErrReservedKey)
	}
	t.ops = append(t.ops, o)
	t.size += o.byteSize()
}

// checkRange checks the bounds of a range. The end may be one byte longer than a
// key, so that the longest key has a range of its own.
func (t *tx) checkRange(r store.Range) {
	t.checkLimit(len(r.Begin) > store.MaxKeySize || len(r.End) > store.MaxKeySize+1, store.ErrKeyTooLarge)
	t.checkLimit(holdsReserved(r), store.ErrReservedKey)
}

func (t *tx) checkLimit(exceeded bool, err error) {
	if exceeded && t.breach == nil {
		t.breach = err
	}
}

// A snapshotReader reads like its transaction and adds no conflicts.
type snapshotReader struct{ t *tx }

func (s snapshotReader) Get(ctx context.Context, key []byte) ([]byte, error) {
	return s.t.getValue(ctx, key)
}

func (s snapshotReader) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	return getAll(ctx, s, keys)
}

func (s snapshotReader) GetRange(ctx context.Context, r store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	pairs, _, more, err := s.t.scanRange(ctx, r, o)
	return pairs, more, err
}

func getAll(ctx context.Context, r store.Reader, keys [][]byte) ([][]byte, error) {
	values := make([][]byte, len(keys))
	for i, key := range keys {
		value, err := r.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		values[i] = value
	}
	return values, nil
}

// nonNil replaces a nil value by an empty one, because nil stands for a missing
// value.
func nonNil(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}
