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

func (b *prefixedStore) prefixedKey(k []byte) []byte {
	return append(append(make([]byte, 0, len(b.prefix)+len(k)+4), b.prefix...), k...)
}

func (b *prefixedStore) prefixedRange(r store.Range) store.Range {
	return store.Range{Begin: b.prefixedKey(r.Begin), End: b.prefixedKey(r.End)}
}

// Begin implements store.Store.
func (b *prefixedStore) Begin(ctx context.Context) (store.Tx, error) {
	tx, err := b.store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &prefixedTx{Tx: tx, prefixedReader: prefixedReader{tx, b}}, nil
}

// Watch implements store.Store.
func (b *prefixedStore) Watch(ctx context.Context, key []byte) (<-chan struct{}, error) {
	return b.store.Watch(ctx, b.prefixedKey(key))
}

// Close implements store.Store.
func (b *prefixedStore) Close() error { return b.store.Close() }

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
func (x *prefixedTx) Get(ctx context.Context, key []byte) ([]byte, error) {
	return x.prefixedReader.Get(ctx, key)
}

// GetAll implements store.Reader.
func (x *prefixedTx) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	return x.prefixedReader.GetAll(ctx, keys)
}

// GetRange implements store.Reader.
func (x *prefixedTx) GetRange(ctx context.Context, r store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	return x.prefixedReader.GetRange(ctx, r, o)
}

// Snapshot implements store.Tx.
func (x *prefixedTx) Snapshot() store.Reader { return prefixedReader{x.Tx.Snapshot(), x.below} }

// Set implements store.Tx.
func (x *prefixedTx) Set(key, value []byte) { x.Tx.Set(x.below.prefixedKey(key), value) }

// Clear implements store.Tx.
func (x *prefixedTx) Clear(key []byte) { x.Tx.Clear(x.below.prefixedKey(key)) }

// ClearRange implements store.Tx.
func (x *prefixedTx) ClearRange(r store.Range) { x.Tx.ClearRange(x.below.prefixedRange(r)) }

// Add implements store.Tx.
func (x *prefixedTx) Add(key []byte, delta int64) { x.Tx.Add(x.below.prefixedKey(key), delta) }

// SetVersionstampedKey implements store.Tx.
func (x *prefixedTx) SetVersionstampedKey(key []byte, offset int, value []byte) {
	x.Tx.SetVersionstampedKey(x.below.prefixedKey(key), offset+len(x.below.prefix), value)
}

// AddReadConflict implements store.Tx.
func (x *prefixedTx) AddReadConflict(r store.Range) { x.Tx.AddReadConflict(x.below.prefixedRange(r)) }

// AddWriteConflict implements store.Tx.
func (x *prefixedTx) AddWriteConflict(r store.Range) { x.Tx.AddWriteConflict(x.below.prefixedRange(r)) }
