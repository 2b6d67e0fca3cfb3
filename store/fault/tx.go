package fault

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash"
	"hash/fnv"

	"github.com/coditect/mapreduce/store"
)

var _ store.Tx = (*tx)(nil)

// A tx is for one goroutine, so it has no lock. It copies keys and values, because
// the caller may reuse its slices before a late commit.
type tx struct {
	store     *Store
	inner     store.Tx
	recovery  int
	written   hash.Hash64 // hash of the keys written; nil if there are none
	readFault error       // the fault that ended its reads
	used      bool        // committed or discarded
	abandoned bool        // ended by a fault: the caller must not use inner any more
}

// Get implements store.Reader.
func (t *tx) Get(ctx context.Context, key []byte) ([]byte, error) {
	return reader{t, t.inner}.Get(ctx, key)
}

// GetAll implements store.Reader.
func (t *tx) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	return reader{t, t.inner}.GetAll(ctx, keys)
}

// GetRange implements store.Reader.
func (t *tx) GetRange(ctx context.Context, r store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	return reader{t, t.inner}.GetRange(ctx, r, o)
}

// Snapshot implements store.Tx.
func (t *tx) Snapshot() store.Reader { return reader{t, t.inner.Snapshot()} }

// ReadVersion implements store.Tx.
func (t *tx) ReadVersion(ctx context.Context) (uint64, error) {
	if err := t.drawReadFault(ctx); err != nil {
		return 0, err
	}
	return t.inner.ReadVersion(ctx)
}

// Set implements store.Tx.
func (t *tx) Set(key, value []byte) {
	if t.noteWrite(key) {
		t.inner.Set(bytes.Clone(key), bytes.Clone(value))
	}
}

// Clear implements store.Tx.
func (t *tx) Clear(key []byte) {
	if t.noteWrite(key) {
		t.inner.Clear(bytes.Clone(key))
	}
}

// ClearRange implements store.Tx.
func (t *tx) ClearRange(r store.Range) {
	if t.noteWrite(r.Begin, r.End) {
		t.inner.ClearRange(cloneRange(r))
	}
}

// Add implements store.Tx.
func (t *tx) Add(key []byte, delta int64) {
	if t.noteWrite(key) {
		t.inner.Add(bytes.Clone(key), delta)
	}
}

// SetVersionstampedKey implements store.Tx.
func (t *tx) SetVersionstampedKey(key []byte, offset int, value []byte) {
	if t.noteWrite(key) {
		t.inner.SetVersionstampedKey(bytes.Clone(key), offset, bytes.Clone(value))
	}
}

// AddReadConflict implements store.Tx.
func (t *tx) AddReadConflict(r store.Range) {
	if !t.used {
		t.inner.AddReadConflict(cloneRange(r))
	}
}

// AddWriteConflict implements store.Tx.
func (t *tx) AddWriteConflict(r store.Range) {
	if t.noteWrite(r.Begin, r.End) {
		t.inner.AddWriteConflict(cloneRange(r))
	}
}

// Commit implements store.Tx.
func (t *tx) Commit(ctx context.Context) error {
	if t.used {
		return store.ErrUsed
	}

	t.used = true
	if t.written == nil {
		return t.inner.Commit(ctx)
	}
	if t.readFault != nil {
		t.abandonInner()
		return t.readFault
	}

	t.store.mu.Lock()
	kind := t.store.drawCommit(t.recovery, string(t.written.Sum(nil)))
	t.store.mu.Unlock()
	return t.commitWith(ctx, kind)
}

// commitWith commits with a fault of the given kind.
func (t *tx) commitWith(ctx context.Context, kind Kind) error {
	switch kind {
	case Conflict, Rerun:
		return t.refuseCommit(kind, store.ErrConflict)
	case TooOld:
		return t.refuseCommit(kind, store.ErrTooOld)
	case Behind:
		return t.refuseCommit(kind, store.ErrProcessBehind)
	case TooLarge:
		return t.refuseCommit(kind, store.ErrTxTooLarge)
	case UnknownLost:
		return t.refuseCommit(kind, store.ErrUnknownResult)
	case TimedOutLost:
		return t.refuseCommit(kind, store.ErrTimedOut)
	case UnknownCommitted:
		return t.commitUnknown(ctx, kind)
	case TimedOutLate:
		// It is committed later, so the caller must not use it any more.
		t.abandoned = true
		t.store.delayCommit(t.inner)
		return newError(kind, store.ErrTimedOut)
	case Outage, Doomed:
		return t.commitInRecovery(ctx, kind)
	case SlowCommit:
		t.store.config.Pause(ctx)
	}

	return t.store.commitInner(ctx, t.inner)
}

// commitInRecovery commits in a recovery: a transaction is too old, or the result of
// its commit is unknown.
func (t *tx) commitInRecovery(ctx context.Context, kind Kind) error {
	if t.store.flipCoin() {
		return t.refuseCommit(kind, store.ErrTooOld)
	}
	if t.store.flipCoin() {
		return t.refuseCommit(kind, store.ErrUnknownResult)
	}
	return t.commitUnknown(ctx, kind)
}

// refuseCommit fails without committing.
func (t *tx) refuseCommit(kind Kind, err error) error {
	t.abandonInner()
	return newError(kind, err)
}

// commitUnknown commits and reports an unknown result, whatever it is, unless the
// inner store fails with an error that is not retryable.
func (t *tx) commitUnknown(ctx context.Context, kind Kind) error {
	err := t.store.commitInner(ctx, t.inner)
	t.abandonInner()
	if err != nil && !store.Retryable(err) {
		return err
	}
	return newError(kind, store.ErrUnknownResult)
}

func (t *tx) abandonInner() {
	t.abandoned = true
	t.inner.Discard()
}

// Versionstamp implements store.Tx.
func (t *tx) Versionstamp() (store.Versionstamp, error) {
	if t.abandoned {
		return store.Versionstamp{}, store.ErrUnreadable
	}
	return t.inner.Versionstamp()
}

// Discard implements store.Tx.
func (t *tx) Discard() {
	t.used = true
	if !t.abandoned {
		t.inner.Discard()
	}
}

// noteWrite records the keys of a write, and reports whether the transaction may
// still write.
func (t *tx) noteWrite(keys ...[]byte) bool {
	if t.used {
		return false
	}

	if t.written == nil {
		t.written = fnv.New64a()
	}
	for _, key := range keys {
		_, _ = t.written.Write(binary.AppendUvarint(nil, uint64(len(key)))) // a hash never fails
		_, _ = t.written.Write(key)
	}
	return true
}

// drawReadFault decides whether a read of t fails. After one has failed, all fail,
// as in FoundationDB.
func (t *tx) drawReadFault(ctx context.Context) error {
	if t.used {
		return store.ErrUsed
	}
	if t.readFault != nil {
		return t.readFault
	}

	t.store.mu.Lock()
	kind := t.store.drawRead(t.recovery)
	t.store.mu.Unlock()

	switch kind {
	case ReadTooOld, Doomed:
		t.readFault = newError(kind, store.ErrTooOld)
	case ReadBehind, Outage:
		t.readFault = newError(kind, store.ErrProcessBehind)
	case SlowRead:
		t.store.config.Pause(ctx)
	}

	return t.readFault
}

// A reader adds faults to the inner transaction or its snapshot.
type reader struct {
	t     *tx
	inner store.Reader
}

func (r reader) Get(ctx context.Context, key []byte) ([]byte, error) {
	if err := r.t.drawReadFault(ctx); err != nil {
		return nil, err
	}
	return r.inner.Get(ctx, key)
}

func (r reader) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	if err := r.t.drawReadFault(ctx); err != nil {
		return nil, err
	}
	return r.inner.GetAll(ctx, keys)
}

func (r reader) GetRange(ctx context.Context, keys store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	if err := r.t.drawReadFault(ctx); err != nil {
		return nil, false, err
	}
	return r.inner.GetRange(ctx, keys, o)
}

func cloneRange(r store.Range) store.Range {
	return store.Range{Begin: bytes.Clone(r.Begin), End: bytes.Clone(r.End)}
}
