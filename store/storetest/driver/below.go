package driver

import (
	"context"

	"github.com/coditect/mapreduce/store"
)

// A prefixedStore is the part of a store whose keys begin with a prefix, as a
// store of its own. What is kept there names no prefix, so that tests need not
// know it.
type prefixedStore struct {
	store  store.Store
	prefix []byte
}

var _ store.Store = (*prefixedStore)(nil)

// Below returns the part of s whose keys begin with prefix.
func Below(s store.Store, prefix string) store.Store {
	return &prefixedStore{store: s, prefix: []byte(prefix)}
}

func (s *prefixedStore) prefixedKey(k []byte) []byte {
	return append(append(make([]byte, 0, len(s.prefix)+len(k)+4), s.prefix...), k...)
}

func (s *prefixedStore) prefixedRange(r store.Range) store.Range {
	return store.Range{Begin: s.prefixedKey(r.Begin), End: s.prefixedKey(r.End)}
}

// Begin implements store.Store.
func (s *prefixedStore) Begin(ctx context.Context) (store.Tx, error) {
	tx, err := s.store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &prefixedTx{Tx: tx, prefixedReader: prefixedReader{tx, s}}, nil
}

// Watch implements store.Store.
func (s *prefixedStore) Watch(ctx context.Context, key []byte) (<-chan struct{}, error) {
	return s.store.Watch(ctx, s.prefixedKey(key))
}

// Close implements store.Store.
func (s *prefixedStore) Close() error { return s.store.Close() }

type prefixedReader struct {
	reader store.Reader
	below  *prefixedStore
}

var _ store.Reader = prefixedReader{}

// Get implements store.Reader.
func (r prefixedReader) Get(ctx context.Context, key []byte) ([]byte, error) {
	return r.reader.Get(ctx, r.below.prefixedKey(key))
}

// GetAll implements store.Reader.
func (r prefixedReader) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	whole := make([][]byte, len(keys))
	for i, k := range keys {
		whole[i] = r.below.prefixedKey(k)
	}
	return r.reader.GetAll(ctx, whole)
}

// GetRange implements store.Reader.
func (r prefixedReader) GetRange(ctx context.Context, keys store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	pairs, more, err := r.reader.GetRange(ctx, r.below.prefixedRange(keys), o)
	for i := range pairs {
		pairs[i].Key = pairs[i].Key[len(r.below.prefix):]
	}
	return pairs, more, err
}

// A prefixedTx has the methods of the transaction that need no key, and its own.
type prefixedTx struct {
	store.Tx
	prefixedReader
}

var _ store.Tx = (*prefixedTx)(nil)

// Get implements store.Reader.
func (t *prefixedTx) Get(ctx context.Context, key []byte) ([]byte, error) {
	return t.prefixedReader.Get(ctx, key)
}

// GetAll implements store.Reader.
func (t *prefixedTx) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	return t.prefixedReader.GetAll(ctx, keys)
}

// GetRange implements store.Reader.
func (t *prefixedTx) GetRange(ctx context.Context, r store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	return t.prefixedReader.GetRange(ctx, r, o)
}

// Snapshot implements store.Tx.
func (t *prefixedTx) Snapshot() store.Reader { return prefixedReader{t.Tx.Snapshot(), t.below} }

// Set implements store.Tx.
func (t *prefixedTx) Set(key, value []byte) { t.Tx.Set(t.below.prefixedKey(key), value) }

// Clear implements store.Tx.
func (t *prefixedTx) Clear(key []byte) { t.Tx.Clear(t.below.prefixedKey(key)) }

// ClearRange implements store.Tx.
func (t *prefixedTx) ClearRange(r store.Range) { t.Tx.ClearRange(t.below.prefixedRange(r)) }

// Add implements store.Tx.
func (t *prefixedTx) Add(key []byte, delta int64) { t.Tx.Add(t.below.prefixedKey(key), delta) }

// SetVersionstampedKey implements store.Tx.
func (t *prefixedTx) SetVersionstampedKey(key []byte, offset int, value []byte) {
	t.Tx.SetVersionstampedKey(t.below.prefixedKey(key), offset+len(t.below.prefix), value)
}

// AddReadConflict implements store.Tx.
func (t *prefixedTx) AddReadConflict(r store.Range) { t.Tx.AddReadConflict(t.below.prefixedRange(r)) }

// AddWriteConflict implements store.Tx.
func (t *prefixedTx) AddWriteConflict(r store.Range) { t.Tx.AddWriteConflict(t.below.prefixedRange(r)) }
