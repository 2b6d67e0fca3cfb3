//go:build fdb

package fdb

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"github.com/apple/foundationdb/bindings/go/src/fdb"

	"github.com/coditect/mapreduce/store"
)

// A tx is one attempt at a transaction.
type tx struct {
	store     *Store
	t         fdb.Transaction
	stamp     fdb.FutureKey
	writes    bool  // the transaction has writes or write conflicts
	pinned    bool  // the read version is known
	failure   error // error of a write, reported by Commit
	used      bool  // committed or discarded
	committed bool  // committed
}

var _ store.Tx = (*tx)(nil)

// awaitFutures runs wait, which blocks on futures of the transaction. If ctx ends, it
// cancels the transaction, which ends wait.
func (x *tx) awaitFutures(ctx context.Context, wait func() error) error {
	if x.used {
		return store.ErrUsed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if x.store.isClosed() {
		return store.ErrClosed
	}

	stop := context.AfterFunc(ctx, x.t.Cancel)
	err := wait()
	stop()

	if err == nil {
		return nil
	}
	return withCause(ctx, mapError(err))
}

// withCause joins the cause of ctx to an error after ctx has ended.
func withCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return err
}

// A reader reads with the transaction, serializably or by snapshot.
type reader interface {
	Get(fdb.KeyConvertible) fdb.FutureByteSlice
	GetRange(fdb.Range, fdb.RangeOptions) fdb.RangeResult
}

// readPinned runs wait after the read version is known, so that every read, even of
// the transaction's own writes, fixes the version. A read of the store waits for the
// version anyway.
func (x *tx) readPinned(ctx context.Context, wait func() error) error {
	return x.awaitFutures(ctx, func() error {
		if !x.pinned {
			if _, err := x.t.GetReadVersion().Get(); err != nil {
				return err
			}
			x.pinned = true
		}
		return wait()
	})
}

// Get implements store.Reader.
func (x *tx) Get(ctx context.Context, key []byte) ([]byte, error) { return x.getValue(ctx, x.t, key) }

func (x *tx) getValue(ctx context.Context, r reader, key []byte) (value []byte, err error) {
	err = x.readPinned(ctx, func() (err error) {
		value, err = r.Get(fdb.Key(key)).Get()
		return err
	})
	return value, err
}

// GetAll implements store.Reader.
func (x *tx) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	return x.getValues(ctx, x.t, keys)
}

func (x *tx) getValues(ctx context.Context, r reader, keys [][]byte) ([][]byte, error) {
	values := make([][]byte, len(keys))
	err := x.readPinned(ctx, func() (err error) {
		// All reads are under way together.
		futures := make([]fdb.FutureByteSlice, len(keys))
		for i, k := range keys {
			futures[i] = r.Get(fdb.Key(k))
		}

		for i, f := range futures {
			if values[i], err = f.Get(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return values, nil
}

// GetRange implements store.Reader.
func (x *tx) GetRange(ctx context.Context, r store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	if o.Bytes == 0 {
		return x.getRange(ctx, x.t, r, o)
	}

	// The client reads ahead and adds a conflict for everything it has read. So
	// a read with a limit of bytes reads a snapshot, and adds the conflict for
	// the pairs that it returns.
	pairs, more, err := x.getRange(ctx, x.t.Snapshot(), r, o)
	if err != nil {
		return nil, false, err
	}

	if more && len(pairs) > 0 {
		last := pairs[len(pairs)-1].Key
		if o.Reverse {
			r.Begin = last
		} else {
			r.End = store.Single(last).End
		}
	}

	x.AddReadConflict(r)
	return pairs, more, nil
}

func (x *tx) getRange(ctx context.Context, from reader, r store.Range, o store.RangeOptions) (pairs []store.KeyValue, more bool, err error) {
	if bytes.Compare(r.Begin, r.End) >= 0 {
		// Nothing is read, but the read version is fixed.
		return nil, false, x.readPinned(ctx, func() error { return nil })
	}

	mode := fdb.StreamingModeWantAll
	if o.Bytes > 0 {
		// With all that is wanted at once, the client would read to the end of the range.
		mode = fdb.StreamingModeIterator
	}

	err = x.readPinned(ctx, func() error {
		it := from.GetRange(keyRange(r), fdb.RangeOptions{Limit: o.Limit, Reverse: o.Reverse, Mode: mode}).Iterator()
		size := 0
		for it.Advance() {
			kv, err := it.Get()
			if err != nil {
				return err
			}

			if o.Bytes > 0 && size >= o.Bytes {
				more = true
				return nil
			}
			pairs = append(pairs, store.KeyValue{Key: kv.Key, Value: nonNil(kv.Value)})
			size += len(kv.Key) + len(kv.Value)
		}

		more = o.Limit > 0 && len(pairs) == o.Limit
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	return pairs, more, nil
}

// nonNil replaces a nil value by an empty one, because nil stands for a missing
// value.
func nonNil(v []byte) []byte {
	if v == nil {
		return []byte{}
	}
	return v
}

func keyRange(r store.Range) fdb.KeyRange {
	return fdb.KeyRange{Begin: fdb.Key(r.Begin), End: fdb.Key(r.End)}
}

// Snapshot implements store.Tx.
func (x *tx) Snapshot() store.Reader { return snapshot{x} }

type snapshot struct{ *tx }

func (s snapshot) Get(ctx context.Context, key []byte) ([]byte, error) {
	return s.getValue(ctx, s.t.Snapshot(), key)
}

func (s snapshot) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	return s.getValues(ctx, s.t.Snapshot(), keys)
}

func (s snapshot) GetRange(ctx context.Context, r store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	return s.getRange(ctx, s.t.Snapshot(), r, o)
}

// ReadVersion implements store.Tx.
func (x *tx) ReadVersion(ctx context.Context) (version uint64, err error) {
	err = x.readPinned(ctx, func() error {
		v, err := x.t.GetReadVersion().Get()
		version = uint64(v)
		return err
	})
	return version, err
}

// checkKey records a write to key, and reports whether the key is valid. Without the
// check the binding panics, or the cluster refuses late, if a limit is exceeded.
func (x *tx) checkKey(key []byte) bool {
	x.writes = true
	switch {
	case len(key) > store.MaxKeySize:
		x.fail(store.ErrKeyTooLarge)
	case len(key) > 0 && key[0] == 0xFF:
		x.fail(store.ErrReservedKey)
	default:
		return true
	}
	return false
}

func (x *tx) fail(err error) {
	if x.failure == nil {
		x.failure = err
	}
}

func (x *tx) checkValue(value []byte) bool {
	if len(value) > store.MaxValueSize {
		x.fail(store.ErrValueTooLarge)
		return false
	}
	return true
}

// Set implements store.Tx.
func (x *tx) Set(key, value []byte) {
	if x.checkKey(key) && x.checkValue(value) {
		x.t.Set(fdb.Key(key), value)
	}
}

// Clear implements store.Tx.
func (x *tx) Clear(key []byte) {
	if x.checkKey(key) {
		x.t.Clear(fdb.Key(key))
	}
}

// checkSpan reports whether a range is not empty and within the limits.
func (x *tx) checkSpan(r store.Range) bool {
	if bytes.Compare(r.Begin, r.End) >= 0 {
		return false
	}
	if len(r.Begin) > store.MaxKeySize || len(r.End) > store.MaxKeySize+1 {
		x.fail(store.ErrKeyTooLarge)
		return false
	}
	return true
}

// ClearRange implements store.Tx.
func (x *tx) ClearRange(r store.Range) {
	if x.checkSpan(r) {
		x.writes = true
		x.t.ClearRange(keyRange(r))
	}
}

// Add implements store.Tx.
func (x *tx) Add(key []byte, delta int64) {
	if x.checkKey(key) {
		x.t.Add(fdb.Key(key), binary.LittleEndian.AppendUint64(nil, uint64(delta)))
	}
}

// SetVersionstampedKey implements store.Tx.
func (x *tx) SetVersionstampedKey(key []byte, offset int, value []byte) {
	if !x.checkKey(key) || !x.checkValue(value) {
		return
	}
	if offset < 0 || offset+len(store.Versionstamp{}) > len(key) {
		x.fail(errors.New("store/fdb: a versionstamp does not fit its key there"))
		return
	}
	param := append(make([]byte, 0, len(key)+4), key...)
	x.t.SetVersionstampedKey(fdb.Key(binary.LittleEndian.AppendUint32(param, uint32(offset))), value)
}

// AddReadConflict implements store.Tx.
func (x *tx) AddReadConflict(r store.Range) {
	if !x.checkSpan(r) {
		return
	}

	if !x.pinned || x.used { // else nothing is to be awaited or refused
		if err := x.readPinned(context.Background(), func() error { return nil }); err != nil {
			x.fail(err)
			return
		}
	}

	if err := x.t.AddReadConflictRange(keyRange(r)); err != nil {
		x.fail(mapError(err))
	}
}

// AddWriteConflict implements store.Tx.
func (x *tx) AddWriteConflict(r store.Range) {
	if x.checkSpan(r) {
		x.writes = true
		if err := x.t.AddWriteConflictRange(keyRange(r)); err != nil {
			x.fail(mapError(err))
		}
	}
}

// Commit implements store.Tx.
func (x *tx) Commit(ctx context.Context) error {
	if x.used {
		return store.ErrUsed
	}
	if x.failure != nil {
		x.used = true
		return x.failure
	}

	if x.writes {
		x.stamp = x.t.GetVersionstamp()
	}

	err := x.awaitFutures(ctx, func() error { return x.t.Commit().Get() })
	x.used = true
	x.committed = err == nil && x.writes

	if err != nil && ctx.Err() != nil && x.writes && !store.MaybeCommitted(err) {
		// The wait was cancelled: the cluster may or may not have begun to commit.
		return errors.Join(store.ErrTimedOut, err)
	}
	return err
}

// Versionstamp implements store.Tx.
func (x *tx) Versionstamp() (store.Versionstamp, error) {
	if !x.committed {
		return store.Versionstamp{}, store.ErrUnreadable
	}
	stamp, err := x.stamp.Get()
	if err != nil {
		return store.Versionstamp{}, mapError(err)
	}
	return store.Versionstamp(stamp), nil
}

// Discard implements store.Tx.
func (x *tx) Discard() {
	if !x.used {
		x.used = true
		x.t.Cancel()
	}
}
