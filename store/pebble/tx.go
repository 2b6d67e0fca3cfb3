package pebble

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/coditect/mapreduce/store"
)

// errStampOffset reports a mistake of the caller.
var errStampOffset = errors.New("store/pebble: versionstamp does not fit into the key at its offset")

// A tx is one attempt at a transaction.
type tx struct {
	store *Store
	view  *view     // the state that is read; nil until the first read
	began time.Time // when view was acquired

	writes         writes
	reads          footprint // serializable ones
	writeConflicts footprint // conflicts that AddWriteConflict added
	conflictErr    error     // error of AddReadConflict, reported by Commit

	ended bool
	stamp store.Versionstamp // of a commit that wrote
}

var _ store.Tx = (*tx)(nil)

// ReadVersion returns the version at which t reads.
func (t *tx) ReadVersion(ctx context.Context) (uint64, error) {
	if err := t.beginRead(ctx); err != nil {
		return 0, err
	}
	defer t.store.endUse()
	return t.view.version, nil
}

// beginRead begins a read: it acquires a view unless the transaction has one, and
// holds the store open until Store.endUse.
func (t *tx) beginRead(ctx context.Context) error {
	if t.ended {
		return store.ErrUsed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}

	if err := t.store.beginUse(); err != nil {
		return err
	}

	if t.view == nil {
		t.view = t.store.views.acquire()
		t.began = t.store.config.Now()
	} else if t.tooOld() {
		t.store.endUse()
		return store.ErrTooOld
	}
	return nil
}

func (t *tx) tooOld() bool {
	return t.view != nil && t.store.config.Now().Sub(t.began) > store.MaxTxAge
}

// Set stores value under key.
func (t *tx) Set(key, value []byte) { t.addWrite(op{kind: opSet, key: key, value: value}) }

// Clear removes key.
func (t *tx) Clear(key []byte) { t.addWrite(op{kind: opClear, key: key}) }

// ClearRange removes all keys of r.
func (t *tx) ClearRange(r store.Range) {
	if bytes.Compare(r.Begin, r.End) < 0 {
		t.addWrite(op{kind: opClearRange, key: r.Begin, value: r.End})
	}
}

// Add adds delta to the integer under key.
func (t *tx) Add(key []byte, delta int64) { t.addWrite(op{kind: opAdd, key: key, number: delta}) }

// SetVersionstampedKey stores value under key with a versionstamp at offset.
func (t *tx) SetVersionstampedKey(key []byte, offset int, value []byte) {
	o := op{kind: opStamp, key: key, value: value, number: int64(offset)}
	t.addWrite(o)
	if o.checkLimits() != nil {
		return
	}
	var after uint64
	if t.view != nil {
		after = t.view.version + 1
	}
	t.writes.pendingStamp(o, after)
}

func (t *tx) addWrite(o op) {
	if !t.ended {
		t.writes.add(o)
	}
}

// AddReadConflict makes Commit fail as if the transaction had read r. Keys that the
// transaction itself has written add no conflict.
func (t *tx) AddReadConflict(r store.Range) {
	if t.ended || bytes.Compare(r.Begin, r.End) >= 0 {
		return
	}

	if err := t.beginRead(context.Background()); err != nil {
		if t.conflictErr == nil {
			t.conflictErr = err
		}
		return
	}

	defer t.store.endUse()
	t.writes.visitStored(r, t.readRange)
}

// AddWriteConflict makes later commits that read in r fail.
func (t *tx) AddWriteConflict(r store.Range) {
	if !t.ended && bytes.Compare(r.Begin, r.End) < 0 {
		t.addTo(&t.writeConflicts, r)
	}
}

func (t *tx) readRange(r store.Range) { t.addTo(&t.reads, r) }

// addTo adds r to f. It adds a range of a single key as a key, which is cheaper to
// check.
func (t *tx) addTo(f *footprint, r store.Range) {
	if n := len(r.Begin); len(r.End) == n+1 && r.End[n] == 0 && bytes.Equal(r.Begin, r.End[:n]) {
		f.keys.add(r.Begin, t.store.hashKey(r.Begin))
		return
	}
	f.addRange(r)
}

// Commit applies the writes.
func (t *tx) Commit(ctx context.Context) error {
	if t.ended {
		return store.ErrUsed
	}

	// Whatever comes of it, a transaction is committed once.
	defer t.Discard()
	if len(t.writes.ops) == 0 && t.writeConflicts.isEmpty() {
		return nil
	}
	if err := t.checkCommit(ctx); err != nil {
		return err
	}

	r, err := t.newRequest()
	if err != nil {
		return err
	}

	if err := t.store.queue.put(r); err != nil {
		r.discardBatch()
		return err
	}

	if err := r.wait(ctx); err != nil {
		return err
	}

	t.stamp = r.stamp
	return nil
}

// checkCommit returns the reason why t cannot be committed, or nil.
func (t *tx) checkCommit(ctx context.Context) error {
	size := t.writes.size + t.reads.limitSize() + t.writeConflicts.limitSize()

	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case t.conflictErr != nil:
		return t.conflictErr
	case t.writes.err != nil:
		return t.writes.err
	case size > store.MaxTxSize:
		return store.ErrTxTooLarge
	case t.store.config.ReadOnly:
		return store.ErrReadOnly
	case t.tooOld():
		return store.ErrTooOld
	}
	return nil
}

// Versionstamp returns the stamp of a committed transaction that wrote.
func (t *tx) Versionstamp() (store.Versionstamp, error) {
	if t.stamp == (store.Versionstamp{}) {
		return t.stamp, store.ErrUnreadable
	}
	return t.stamp, nil
}

// Discard releases the resources of t.
func (t *tx) Discard() {
	if t.ended {
		return
	}
	t.ended = true
	if t.view != nil {
		t.store.views.release(t.view)
		t.view = nil
	}
	t.writes, t.reads, t.writeConflicts = writes{}, footprint{}, footprint{}
}

func isReserved(key []byte) bool { return len(key) > 0 && key[0] == 0xff }

// checkRange checks the bounds of a range. A bound may be the end of all keys, and
// one byte longer than a key, as the end of store.Single is.
func checkRange(r store.Range) error {
	switch {
	case len(r.Begin) > store.MaxKeySize+1, len(r.End) > store.MaxKeySize+1:
		return store.ErrKeyTooLarge
	case isReserved(r.Begin) && len(r.Begin) > 1, isReserved(r.End) && len(r.End) > 1:
		return store.ErrReservedKey
	}
	return nil
}
