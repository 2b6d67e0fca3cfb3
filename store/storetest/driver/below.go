package driver

import (
	"context"

	"github.com/coditect/mapreduce/store"
)

// A below is the part of a store whose keys begin with a prefix, as a store of
// its own. What is kept there names no prefix, so that tests need not know it.
type below struct {
	store  store.Store
	prefix []byte
}

var _ store.Store = (*below)(nil)

// Below returns the part of s whose keys begin with prefix.
func Below(s store.Store, prefix string) store.Store {
	return &below{store: s, prefix: []byte(prefix)}
}

func (b *below) key(k []byte) []byte {
	return append(append(make([]byte, 0, len(b.prefix)+len(k)+4), b.prefix...), k...)
}

func (b *below) span(r store.Range) store.Range {
	return store.Range{Begin: b.key(r.Begin), End: b.key(r.End)}
}

// Begin implements store.Store.
func (b *below) Begin(ctx context.Context) (store.Tx, error) {
	tx, err := b.store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &belowTx{Tx: tx, belowReader: belowReader{tx, b}}, nil
}

// Watch implements store.Store.
func (b *below) Watch(ctx context.Context, key []byte) (<-chan struct{}, error) {
	return b.store.Watch(ctx, b.key(key))
}

// Close implements store.Store.
func (b *below) Close() error { return b.store.Close() }

type belowReader struct {
	reader store.Reader
	below  *below
}

var _ store.Reader = belowReader{}

// Get implements store.Reader.
func (r belowReader) Get(ctx context.Context, key []byte) ([]byte, error) {
	return r.reader.Get(ctx, r.below.key(key))
}

// GetAll implements store.Reader.
func (r belowReader) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	whole := make([][]byte, len(keys))
	for i, k := range keys {
		whole[i] = r.below.key(k)
	}
	return r.reader.GetAll(ctx, whole)
}

// GetRange implements store.Reader.
func (r belowReader) GetRange(ctx context.Context, keys store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	pairs, more, err := r.reader.GetRange(ctx, r.below.span(keys), o)
	for i := range pairs {
		pairs[i].Key = pairs[i].Key[len(r.below.prefix):]
	}
	return pairs, more, err
}

// A belowTx has the methods of the transaction that need no key, and its own.
type belowTx struct {
	store.Tx
	belowReader
}

var _ store.Tx = (*belowTx)(nil)

// Get implements store.Reader.
func (x *belowTx) Get(ctx context.Context, key []byte) ([]byte, error) {
	return x.belowReader.Get(ctx, key)
}

// GetAll implements store.Reader.
func (x *belowTx) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	return x.belowReader.GetAll(ctx, keys)
}

// GetRange implements store.Reader.
func (x *belowTx) GetRange(ctx context.Context, r store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	return x.belowReader.GetRange(ctx, r, o)
}

// Snapshot implements store.Tx.
func (x *belowTx) Snapshot() store.Reader { return belowReader{x.Tx.Snapshot(), x.below} }

// Set implements store.Tx.
func (x *belowTx) Set(key, value []byte) { x.Tx.Set(x.below.key(key), value) }

// Clear implements store.Tx.
func (x *belowTx) Clear(key []byte) { x.Tx.Clear(x.below.key(key)) }

// ClearRange implements store.Tx.
func (x *belowTx) ClearRange(r store.Range) { x.Tx.ClearRange(x.below.span(r)) }

// Add implements store.Tx.
func (x *belowTx) Add(key []byte, delta int64) { x.Tx.Add(x.below.key(key), delta) }

// SetVersionstampedKey implements store.Tx.
func (x *belowTx) SetVersionstampedKey(key []byte, offset int, value []byte) {
	x.Tx.SetVersionstampedKey(x.below.key(key), offset+len(x.below.prefix), value)
}

// AddReadConflict implements store.Tx.
func (x *belowTx) AddReadConflict(r store.Range) { x.Tx.AddReadConflict(x.below.span(r)) }

// AddWriteConflict implements store.Tx.
func (x *belowTx) AddWriteConflict(r store.Range) { x.Tx.AddWriteConflict(x.below.span(r)) }
