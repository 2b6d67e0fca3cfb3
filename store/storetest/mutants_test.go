package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"

	"github.com/coditect/mapreduce/store"
)

// A mutant is a store that is wrong on purpose, and what must notice.
type mutant struct {
	name     string
	caughtBy string // the name of a check
	lockstep bool   // whether Lockstep must notice as well
	history  bool   // whether History must
	waits    bool   // whether the check waits in vain
	wrap     func(store.Store) store.Store
}

func mutants() []mutant {
	return slices.Concat(readMutants(), conflictMutants(), writeMutants(), lifeMutants())
}

func readMutants() []mutant {
	return []mutant{
		{name: "empty reads as missing", caughtBy: "an empty value is present", lockstep: true,
			wrap: gets(func(value []byte) []byte {
				if len(value) == 0 {
					return nil
				}
				return value
			})},
		{name: "missing reads as empty", caughtBy: "a missing key reads as nil", lockstep: true,
			wrap: gets(func(value []byte) []byte { return append([]byte{}, value...) })},
		{name: "values are shared", caughtBy: "what is read belongs to the caller",
			wrap: txs(func(tx store.Tx) store.Tx { return &sharing{tx, make(map[string][]byte)} })},
		{name: "get all sorts", caughtBy: "get all keeps the order of keys",
			wrap: txs(func(tx store.Tx) store.Tx { return sorting{tx} })},
		{name: "direction ignored", caughtBy: "ranges are in the order of bytes", lockstep: true,
			wrap: ranges(func(r store.Reader, ctx context.Context, keys store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
				o.Reverse = false
				return r.GetRange(ctx, keys, o)
			})},
		{name: "limit before direction", caughtBy: "a limit cuts a range", lockstep: true,
			wrap: ranges(func(r store.Reader, ctx context.Context, keys store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
				reverse := o.Reverse
				o.Reverse = false
				pairs, more, err := r.GetRange(ctx, keys, o)
				if reverse {
					slices.Reverse(pairs)
				}
				return pairs, more, err
			})},
		{name: "limit ignored", caughtBy: "a limit cuts a range", lockstep: true,
			wrap: ranges(func(r store.Reader, ctx context.Context, keys store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
				o.Limit = 0
				return r.GetRange(ctx, keys, o)
			})},
		{name: "bytes ignored", caughtBy: "a number of bytes cuts a range", lockstep: true,
			wrap: ranges(func(r store.Reader, ctx context.Context, keys store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
				o.Bytes = 0
				return r.GetRange(ctx, keys, o)
			})},
		{name: "never more", caughtBy: "pages of a range add up to it", lockstep: true,
			wrap: ranges(func(r store.Reader, ctx context.Context, keys store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
				pairs, _, err := r.GetRange(ctx, keys, o)
				return pairs, false, err
			})},
		{name: "reads of many versions", caughtBy: "reads of one transaction are of one version", lockstep: true,
			wrap: func(s store.Store) store.Store {
				return begins{s, func(tx store.Tx) store.Tx { return wandering{tx, s} }}
			}},
		{name: "read version at begin", caughtBy: "the first read sees what was acknowledged before it", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx {
				_, _ = tx.ReadVersion(context.Background())
				return tx
			})},
	}
}

func conflictMutants() []mutant {
	return []mutant{
		{name: "no phantoms found", caughtBy: "no phantom", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx { return phantoms{tx} })},
		{name: "limited reads unchecked", caughtBy: "no phantom before the last key of a limited read", lockstep: true,
			wrap: ranges(func(r store.Reader, ctx context.Context, keys store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
				if o.Limit > 0 || o.Bytes > 0 {
					return r.(store.Tx).Snapshot().GetRange(ctx, keys, o)
				}
				return r.GetRange(ctx, keys, o)
			})},
		{name: "limited reads check the whole range", caughtBy: "a limited read ends at its last key", lockstep: true,
			wrap: ranges(func(r store.Reader, ctx context.Context, keys store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
				r.(store.Tx).AddReadConflict(keys)
				return r.GetRange(ctx, keys, o)
			})},
		{name: "points unchecked", caughtBy: "no lost update", lockstep: true, history: true,
			wrap: txs(func(tx store.Tx) store.Tx { return unchecked{tx} })},
		{name: "snapshots checked", caughtBy: "snapshot get conflicts with nothing", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx { return checkedSnapshots{tx} })},
		{name: "own writes conflict", caughtBy: "reading own writes adds no conflict", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx { return ownConflicts{tx} })},
		{name: "own adds are blind", caughtBy: "reading an own add conflicts", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx { return &blindAdds{tx, make(map[string]bool)} })},
		{name: "no read conflicts added", caughtBy: "add read conflict conflicts with what is written in it", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx { return noReadConflicts{tx} })},
		{name: "no write conflicts added", caughtBy: "write conflicts are validated", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx { return noWriteConflicts{tx} })},
		{name: "clears of nothing are no writes", caughtBy: "get conflicts with what is written in it", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx { return idleClears{tx} })},
		{name: "clears read", caughtBy: "blind writes never conflict",
			wrap: txs(func(tx store.Tx) store.Tx { return readingClears{tx} })},
		{name: "reads conflict by themselves", caughtBy: "transactions that only read succeed", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx { return conflictingReads{tx} })},
	}
}

func writeMutants() []mutant {
	return []mutant{
		{name: "own writes unseen", caughtBy: "own writes are read", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx { return &buffered{Tx: tx} })},
		{name: "commits in two halves", caughtBy: "readers see a whole world while writers go on",
			wrap: func(s store.Store) store.Store {
				return begins{s, func(tx store.Tx) store.Tx { return &halves{buffered{Tx: tx}, s} }}
			}},
		{name: "adds get lost", caughtBy: "add after add, set and clear of others", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx { return lossyAdds{tx} })},
		{name: "adds conflict", caughtBy: "adds do not conflict", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx { return conflictingAdds{tx} })},
		{name: "pending versionstamps unseen", caughtBy: "a pending versionstamp is unreadable",
			wrap: txs(func(tx store.Tx) store.Tx { return &lateStamps{Tx: tx} })},
		{name: "another versionstamp", caughtBy: "a versionstamp is the commit's",
			wrap: txs(func(tx store.Tx) store.Tx { return zeroStamps{tx} })},
		{name: "long keys cut", caughtBy: "a key too large",
			wrap: txs(func(tx store.Tx) store.Tx { return shortKeys{tx} })},
	}
}

func lifeMutants() []mutant {
	return []mutant{
		{name: "commit again", caughtBy: "a transaction is used once",
			wrap: commits(func(tx store.Tx, ctx context.Context) error {
				if err := tx.Commit(ctx); !errors.Is(err, store.ErrUsed) {
					return err
				}
				return nil
			})},
		{name: "an ended context lies", caughtBy: "a commit whose context has ended tells the truth",
			wrap: commits(func(tx store.Tx, ctx context.Context) error {
				if err := tx.Commit(context.WithoutCancel(ctx)); err != nil {
					return err
				}
				return ctx.Err()
			})},
		{name: "closed looks like old", caughtBy: "a closed store says so",
			wrap: commits(func(tx store.Tx, ctx context.Context) error {
				err := tx.Commit(ctx)
				if errors.Is(err, store.ErrClosed) {
					return store.ErrTooOld
				}
				return err
			})},
		{name: "watches never fire", caughtBy: "a watch fires on a change", waits: true,
			wrap: watches(func(s store.Store, ctx context.Context, key []byte) (<-chan struct{}, error) {
				return make(chan struct{}), nil
			})},
		{name: "watches outlive their context", caughtBy: "a watch ends with its context", waits: true,
			wrap: watches(func(s store.Store, ctx context.Context, key []byte) (<-chan struct{}, error) {
				return s.Watch(context.WithoutCancel(ctx), key)
			})},
		{name: "watches of another key", caughtBy: "no wake-up is lost", waits: true,
			wrap: watches(func(s store.Store, ctx context.Context, key []byte) (<-chan struct{}, error) {
				return s.Watch(ctx, append(bytes.Clone(key), 0))
			})},
	}
}

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
	watch func(store.Store, context.Context, []byte) (<-chan struct{}, error)
}

func (s watching) Watch(ctx context.Context, key []byte) (<-chan struct{}, error) {
	return s.watch(s.Store, ctx, key)
}

func watches(watch func(store.Store, context.Context, []byte) (<-chan struct{}, error)) func(store.Store) store.Store {
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

type rangeReader func(store.Reader, context.Context, store.Range, store.RangeOptions) ([]store.KeyValue, bool, error)

type ranging struct {
	store.Tx
	read rangeReader
}

func (tx ranging) GetRange(ctx context.Context, r store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	return tx.read(tx.Tx, ctx, r, o)
}

func ranges(read rangeReader) func(store.Store) store.Store {
	return txs(func(tx store.Tx) store.Tx { return ranging{tx, read} })
}

type committing struct {
	store.Tx
	commit func(store.Tx, context.Context) error
}

func (tx committing) Commit(ctx context.Context) error { return tx.commit(tx.Tx, ctx) }

func commits(commit func(store.Tx, context.Context) error) func(store.Store) store.Store {
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

func (tx ownConflicts) Get(ctx context.Context, key []byte) ([]byte, error) {
	tx.AddReadConflict(store.Single(key))
	return tx.Tx.Get(ctx, key)
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
