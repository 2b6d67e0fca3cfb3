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

// A tx is for one goroutine, so it has no lock. It copies what it is handed,
// since a late commit outlives the caller's interest in its slices.
type tx struct {
	store    *Store
	inner    store.Tx
	recovery int
	written  hash.Hash64 // of the keys written; nil if there are none
	failed   error       // the fault that ended its reads
	used     bool        // committed or discarded
	gone     bool        // by a fault: inner is no longer the caller's
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
	if err := t.read(ctx); err != nil {
		return 0, err
	}
	return t.inner.ReadVersion(ctx)
}

// Set implements store.Tx.
func (t *tx) Set(key, value []byte) {
	if t.write(key) {
		t.inner.Set(bytes.Clone(key), bytes.Clone(value))
	}
}

// Clear implements store.Tx.
func (t *tx) Clear(key []byte) {
	if t.write(key) {
		t.inner.Clear(bytes.Clone(key))
	}
}

// ClearRange implements store.Tx.
func (t *tx) ClearRange(r store.Range) {
	if t.write(r.Begin, r.End) {
		t.inner.ClearRange(clone(r))
	}
}

// Add implements store.Tx.
func (t *tx) Add(key []byte, delta int64) {
	if t.write(key) {
		t.inner.Add(bytes.Clone(key), delta)
	}
}

// SetVersionstampedKey implements store.Tx.
func (t *tx) SetVersionstampedKey(key []byte, offset int, value []byte) {
	if t.write(key) {
		t.inner.SetVersionstampedKey(bytes.Clone(key), offset, bytes.Clone(value))
	}
}

// AddReadConflict implements store.Tx.
func (t *tx) AddReadConflict(r store.Range) {
	if !t.used {
		t.inner.AddReadConflict(clone(r))
	}
}

// AddWriteConflict implements store.Tx.
func (t *tx) AddWriteConflict(r store.Range) {
	if t.write(r.Begin, r.End) {
		t.inner.AddWriteConflict(clone(r))
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
	if t.failed != nil {
		t.abandon()
		return t.failed
	}
	t.store.mu.Lock()
	kind := t.store.drawCommit(t.recovery, string(t.written.Sum(nil)))
	t.store.mu.Unlock()
	return t.strike(ctx, kind)
}

// strike commits as kind has it.
func (t *tx) strike(ctx context.Context, kind Kind) error {
	switch kind {
	case Conflict, Rerun:
		return t.refuse(kind, store.ErrConflict)
	case TooOld:
		return t.refuse(kind, store.ErrTooOld)
	case Behind:
		return t.refuse(kind, store.ErrProcessBehind)
	case TooLarge:
		return t.refuse(kind, store.ErrTxTooLarge)
	case UnknownLost:
		return t.refuse(kind, store.ErrUnknownResult)
	case TimedOutLost:
		return t.refuse(kind, store.ErrTimedOut)
	case UnknownCommitted:
		return t.forget(ctx, kind)
	case TimedOutLate:
		t.gone = true
		t.store.delay(t.inner)
		return injected(kind, store.ErrTimedOut)
	case Outage, Doomed:
		return t.recovered(ctx, kind)
	case SlowCommit:
		t.store.config.Pause(ctx)
	}
	return t.store.commit(ctx, t.inner)
}

// recovered commits as a recovery would have it: some transactions had their
// commit under way and do not know how it ended, the others come too late.
func (t *tx) recovered(ctx context.Context, kind Kind) error {
	if t.store.flip() {
		return t.refuse(kind, store.ErrTooOld)
	}
	if t.store.flip() {
		return t.refuse(kind, store.ErrUnknownResult)
	}
	return t.forget(ctx, kind)
}

// refuse fails without a commit.
func (t *tx) refuse(kind Kind, err error) error {
	t.abandon()
	return injected(kind, err)
}

// forget commits and keeps the outcome to itself, whatever it is, unless the
// inner store says something that trying again would not mend.
func (t *tx) forget(ctx context.Context, kind Kind) error {
	err := t.store.commit(ctx, t.inner)
	t.abandon()
	if err != nil && !store.Retryable(err) {
		return err
	}
	return injected(kind, store.ErrUnknownResult)
}

func (t *tx) abandon() {
	t.gone = true
	t.inner.Discard()
}

// Versionstamp implements store.Tx.
func (t *tx) Versionstamp() (store.Versionstamp, error) {
	if t.gone {
		return store.Versionstamp{}, store.ErrUnreadable
	}
	return t.inner.Versionstamp()
}

// Discard implements store.Tx.
func (t *tx) Discard() {
	t.used = true
	if !t.gone {
		t.inner.Discard()
	}
}

// write notes that keys are written, and reports whether they still may be.
func (t *tx) write(keys ...[]byte) bool {
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

// read decides whether a read of t fails. Once one has, all do, as they do in
// FoundationDB.
func (t *tx) read(ctx context.Context) error {
	if t.used {
		return store.ErrUsed
	}
	if t.failed != nil {
		return t.failed
	}
	t.store.mu.Lock()
	kind := t.store.drawRead(t.recovery)
	t.store.mu.Unlock()
	switch kind {
	case ReadTooOld, Doomed:
		t.failed = injected(kind, store.ErrTooOld)
	case ReadBehind, Outage:
		t.failed = injected(kind, store.ErrProcessBehind)
	case SlowRead:
		t.store.config.Pause(ctx)
	}
	return t.failed
}

// A reader is the inner transaction or its snapshot, with faults.
type reader struct {
	t     *tx
	inner store.Reader
}

func (r reader) Get(ctx context.Context, key []byte) ([]byte, error) {
	if err := r.t.read(ctx); err != nil {
		return nil, err
	}
	return r.inner.Get(ctx, key)
}

func (r reader) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	if err := r.t.read(ctx); err != nil {
		return nil, err
	}
	return r.inner.GetAll(ctx, keys)
}

func (r reader) GetRange(ctx context.Context, keys store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	if err := r.t.read(ctx); err != nil {
		return nil, false, err
	}
	return r.inner.GetRange(ctx, keys, o)
}

func clone(r store.Range) store.Range {
	return store.Range{Begin: bytes.Clone(r.Begin), End: bytes.Clone(r.End)}
}
