package storetest_test

import (
	"bytes"
	"context"
	"runtime"
	"slices"

	"github.com/coditect/mapreduce/store"
)

// begins changes the transactions of a store.
type begins struct {
	store.Store
	change func(store.Tx) store.Tx
}

func (s begins) Begin(ctx context.Context) (store.Tx, error) {
	tx, err := s.Store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return s.change(tx), nil
}

func txs(change func(store.Tx) store.Tx) func(store.Store) store.Store {
	return func(s store.Store) store.Store { return begins{s, change} }
}

type watching struct {
	store.Store
	watch func(context.Context, store.Store, []byte) (<-chan struct{}, error)
}

func (s watching) Watch(ctx context.Context, key []byte) (<-chan struct{}, error) {
	return s.watch(ctx, s.Store, key)
}

func watches(watch func(context.Context, store.Store, []byte) (<-chan struct{}, error)) func(store.Store) store.Store {
	return func(s store.Store) store.Store { return watching{s, watch} }
}

type getting struct {
	store.Tx
	change func([]byte) []byte
}

func (tx getting) Get(ctx context.Context, key []byte) ([]byte, error) {
	value, err := tx.Tx.Get(ctx, key)
	return tx.change(value), err
}

func gets(change func([]byte) []byte) func(store.Store) store.Store {
	return txs(func(tx store.Tx) store.Tx { return getting{tx, change} })
}

type rangeReader func(context.Context, store.Reader, store.Range, store.RangeOptions) ([]store.KeyValue, bool, error)

type ranging struct {
	store.Tx
	read rangeReader
}

func (tx ranging) GetRange(ctx context.Context, r store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	return tx.read(ctx, tx.Tx, r, o)
}

func ranges(read rangeReader) func(store.Store) store.Store {
	return txs(func(tx store.Tx) store.Tx { return ranging{tx, read} })
}

type committing struct {
	store.Tx
	commit func(context.Context, store.Tx) error
}

func (tx committing) Commit(ctx context.Context) error { return tx.commit(ctx, tx.Tx) }

func commits(commit func(context.Context, store.Tx) error) func(store.Store) store.Store {
	return txs(func(tx store.Tx) store.Tx { return committing{tx, commit} })
}

type sharing struct {
	store.Tx
	read map[string][]byte
}

func (tx *sharing) Get(ctx context.Context, key []byte) ([]byte, error) {
	if value, ok := tx.read[string(key)]; ok {
		return value, nil
	}
	value, err := tx.Tx.Get(ctx, key)
	tx.read[string(key)] = value
	return value, err
}

type sorting struct{ store.Tx }

func (tx sorting) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	sorted := slices.Clone(keys)
	slices.SortFunc(sorted, bytes.Compare)
	return tx.Tx.GetAll(ctx, sorted)
}

type wandering struct {
	store.Tx
	store store.Store
}

func (tx wandering) Get(ctx context.Context, key []byte) ([]byte, error) {
	if _, err := tx.Tx.Get(ctx, key); err != nil {
		return nil, err
	}
	now, err := tx.store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer now.Discard()
	return now.Get(ctx, key)
}

type phantoms struct{ store.Tx }

func (tx phantoms) GetRange(ctx context.Context, r store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	pairs, more, err := tx.Snapshot().GetRange(ctx, r, o)
	for _, kv := range pairs {
		tx.AddReadConflict(store.Single(kv.Key))
	}
	return pairs, more, err
}

type unchecked struct{ store.Tx }

func (tx unchecked) Get(ctx context.Context, key []byte) ([]byte, error) {
	return tx.Snapshot().Get(ctx, key)
}

type checkedSnapshots struct{ store.Tx }

func (tx checkedSnapshots) Snapshot() store.Reader { return tx.Tx }

type ownConflicts struct{ store.Tx }

// Set conflicts before it writes: afterwards the key is the transaction's own.
func (tx ownConflicts) Set(key, value []byte) {
	tx.AddReadConflict(store.Single(key))
	tx.Tx.Set(key, value)
}

type blindAdds struct {
	store.Tx
	added map[string]bool
}

func (tx *blindAdds) Add(key []byte, delta int64) {
	tx.added[string(key)] = true
	tx.Tx.Add(key, delta)
}

func (tx *blindAdds) Get(ctx context.Context, key []byte) ([]byte, error) {
	if tx.added[string(key)] {
		return tx.Snapshot().Get(ctx, key)
	}
	return tx.Tx.Get(ctx, key)
}

type noReadConflicts struct{ store.Tx }

func (tx noReadConflicts) AddReadConflict(store.Range) {}

type noWriteConflicts struct{ store.Tx }

func (tx noWriteConflicts) AddWriteConflict(store.Range) {}

type idleClears struct{ store.Tx }

func (tx idleClears) Clear(key []byte) {
	if value, err := tx.Snapshot().Get(context.Background(), key); value != nil || err != nil {
		tx.Tx.Clear(key)
	}
}

type readingClears struct{ store.Tx }

func (tx readingClears) Clear(key []byte) {
	_, _ = tx.Get(context.Background(), key)
	tx.Tx.Clear(key)
}

type conflictingReads struct{ store.Tx }

func (tx conflictingReads) Commit(ctx context.Context) error {
	tx.AddWriteConflict(store.Single([]byte("reader")))
	return tx.Tx.Commit(ctx)
}

// buffered keeps its writes to itself until the commit.
type buffered struct {
	store.Tx
	writes []func(store.Tx)
}

func (tx *buffered) keep(write func(store.Tx)) { tx.writes = append(tx.writes, write) }

func (tx *buffered) Set(key, value []byte) { tx.keep(func(tx store.Tx) { tx.Set(key, value) }) }
func (tx *buffered) Clear(key []byte)      { tx.keep(func(tx store.Tx) { tx.Clear(key) }) }

func (tx *buffered) Add(key []byte, delta int64) { tx.keep(func(tx store.Tx) { tx.Add(key, delta) }) }

func (tx *buffered) Commit(ctx context.Context) error {
	for _, write := range tx.writes {
		write(tx.Tx)
	}
	return tx.Tx.Commit(ctx)
}

// halves commits its writes in two transactions.
type halves struct {
	buffered
	store store.Store
}

func (tx *halves) Commit(ctx context.Context) error {
	half := (len(tx.writes) + 1) / 2
	first, second := tx.writes[:half], tx.writes[half:]
	for _, write := range first {
		write(tx.Tx)
	}
	if err := tx.Tx.Commit(ctx); err != nil {
		return err
	}
	runtime.Gosched()
	rest, err := tx.store.Begin(ctx)
	if err != nil {
		return err
	}
	for _, write := range second {
		write(rest)
	}
	return rest.Commit(ctx)
}

type lossyAdds struct{ store.Tx }

func (tx lossyAdds) Add(key []byte, delta int64) {
	value, _ := tx.Snapshot().Get(context.Background(), key)
	tx.Set(key, add(value, delta))
}

type conflictingAdds struct{ store.Tx }

func (tx conflictingAdds) Add(key []byte, delta int64) {
	value, _ := tx.Get(context.Background(), key)
	tx.Set(key, add(value, delta))
}

type lateStamps struct {
	store.Tx
	buffered []func()
}

func (tx *lateStamps) SetVersionstampedKey(key []byte, offset int, value []byte) {
	tx.buffered = append(tx.buffered, func() { tx.Tx.SetVersionstampedKey(key, offset, value) })
}

func (tx *lateStamps) Commit(ctx context.Context) error {
	for _, write := range tx.buffered {
		write()
	}
	return tx.Tx.Commit(ctx)
}

type zeroStamps struct{ store.Tx }

func (tx zeroStamps) Versionstamp() (store.Versionstamp, error) {
	_, err := tx.Tx.Versionstamp()
	return store.Versionstamp{}, err
}

type shortKeys struct{ store.Tx }

func (tx shortKeys) Set(key, value []byte) { tx.Tx.Set(key[:min(len(key), store.MaxKeySize)], value) }
