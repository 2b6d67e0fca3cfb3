package storetest_test

import (
	"bytes"
	"context"
	"errors"
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
		{
			name: "empty reads as missing", caughtBy: "an empty value is present", lockstep: true,
			wrap: gets(func(value []byte) []byte {
				if len(value) == 0 {
					return nil
				}
				return value
			}),
		},
		{
			name: "missing reads as empty", caughtBy: "a missing key reads as nil", lockstep: true,
			wrap: gets(func(value []byte) []byte { return append([]byte{}, value...) }),
		},
		{
			name: "values are shared", caughtBy: "what is read belongs to the caller",
			wrap: txs(func(tx store.Tx) store.Tx { return &sharing{tx, make(map[string][]byte)} }),
		},
		{
			name: "get all sorts", caughtBy: "get all keeps the order of keys",
			wrap: txs(func(tx store.Tx) store.Tx { return sorting{tx} }),
		},
		{
			name: "direction ignored", caughtBy: "ranges are in the order of bytes", lockstep: true,
			wrap: ranges(func(ctx context.Context, r store.Reader, keys store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
				o.Reverse = false
				return r.GetRange(ctx, keys, o)
			}),
		},
		{
			name: "limit before direction", caughtBy: "a limit cuts a range", lockstep: true,
			wrap: ranges(func(ctx context.Context, r store.Reader, keys store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
				reverse := o.Reverse
				o.Reverse = false
				pairs, more, err := r.GetRange(ctx, keys, o)
				if reverse {
					slices.Reverse(pairs)
				}
				return pairs, more, err
			}),
		},
		{
			name: "limit ignored", caughtBy: "a limit cuts a range", lockstep: true,
			wrap: ranges(func(ctx context.Context, r store.Reader, keys store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
				o.Limit = 0
				return r.GetRange(ctx, keys, o)
			}),
		},
		{
			name: "bytes ignored", caughtBy: "a number of bytes cuts a range", lockstep: true,
			wrap: ranges(func(ctx context.Context, r store.Reader, keys store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
				o.Bytes = 0
				return r.GetRange(ctx, keys, o)
			}),
		},
		{
			name: "never more", caughtBy: "pages of a range add up to it", lockstep: true,
			wrap: ranges(func(ctx context.Context, r store.Reader, keys store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
				pairs, _, err := r.GetRange(ctx, keys, o)
				return pairs, false, err
			}),
		},
		{
			name: "reads of many versions", caughtBy: "reads of one transaction are of one version", lockstep: true,
			wrap: func(s store.Store) store.Store {
				return begins{s, func(tx store.Tx) store.Tx { return wandering{tx, s} }}
			},
		},
		{
			name: "read version at begin", caughtBy: "the first read sees what was acknowledged before it", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx {
				_, _ = tx.ReadVersion(context.Background())
				return tx
			}),
		},
	}
}

func conflictMutants() []mutant {
	return []mutant{
		{
			name: "no phantoms found", caughtBy: "no phantom", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx { return phantoms{tx} }),
		},
		{
			name: "limited reads unchecked", caughtBy: "no phantom before the last key of a limited read", lockstep: true,
			wrap: ranges(func(ctx context.Context, r store.Reader, keys store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
				if o.Limit > 0 || o.Bytes > 0 {
					return r.(store.Tx).Snapshot().GetRange(ctx, keys, o)
				}
				return r.GetRange(ctx, keys, o)
			}),
		},
		{
			name: "limited reads check the whole range", caughtBy: "a limited read ends at its last key", lockstep: true,
			wrap: ranges(func(ctx context.Context, r store.Reader, keys store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
				r.(store.Tx).AddReadConflict(keys)
				return r.GetRange(ctx, keys, o)
			}),
		},
		{
			name: "points unchecked", caughtBy: "no lost update", lockstep: true, history: true,
			wrap: txs(func(tx store.Tx) store.Tx { return unchecked{tx} }),
		},
		{
			name: "snapshots checked", caughtBy: "snapshot get conflicts with nothing", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx { return checkedSnapshots{tx} }),
		},
		{
			name: "own writes conflict", caughtBy: "reading own writes adds no conflict", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx { return ownConflicts{tx} }),
		},
		{
			name: "own adds are blind", caughtBy: "reading an own add conflicts", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx { return &blindAdds{tx, make(map[string]bool)} }),
		},
		{
			name: "no read conflicts added", caughtBy: "add read conflict conflicts with what is written in it", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx { return noReadConflicts{tx} }),
		},
		{
			name: "no write conflicts added", caughtBy: "write conflicts are validated", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx { return noWriteConflicts{tx} }),
		},
		{
			name: "clears of nothing are no writes", caughtBy: "get conflicts with what is written in it", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx { return idleClears{tx} }),
		},
		{
			name: "clears read", caughtBy: "blind writes never conflict",
			wrap: txs(func(tx store.Tx) store.Tx { return readingClears{tx} }),
		},
		{
			name: "reads conflict by themselves", caughtBy: "transactions that only read succeed", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx { return conflictingReads{tx} }),
		},
	}
}

func writeMutants() []mutant {
	return []mutant{
		{
			name: "own writes unseen", caughtBy: "own writes are read", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx { return &buffered{Tx: tx} }),
		},
		{
			name: "commits in two halves", caughtBy: "readers see a whole world while writers go on",
			wrap: func(s store.Store) store.Store {
				return begins{s, func(tx store.Tx) store.Tx { return &halves{buffered{Tx: tx}, s} }}
			},
		},
		{
			name: "adds get lost", caughtBy: "add after add, set and clear of others", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx { return lossyAdds{tx} }),
		},
		{
			name: "adds conflict", caughtBy: "adds do not conflict", lockstep: true,
			wrap: txs(func(tx store.Tx) store.Tx { return conflictingAdds{tx} }),
		},
		{
			name: "pending versionstamps unseen", caughtBy: "a pending versionstamp is unreadable",
			wrap: txs(func(tx store.Tx) store.Tx { return &lateStamps{Tx: tx} }),
		},
		{
			name: "another versionstamp", caughtBy: "a versionstamp is the commit's",
			wrap: txs(func(tx store.Tx) store.Tx { return zeroStamps{tx} }),
		},
		{
			name: "long keys cut", caughtBy: "a key too large",
			wrap: txs(func(tx store.Tx) store.Tx { return shortKeys{tx} }),
		},
	}
}

func lifeMutants() []mutant {
	return []mutant{
		{
			name: "commit again", caughtBy: "a transaction is used once",
			wrap: commits(func(ctx context.Context, tx store.Tx) error {
				if err := tx.Commit(ctx); !errors.Is(err, store.ErrUsed) {
					return err
				}
				return nil
			}),
		},
		{
			name: "an ended context lies", caughtBy: "a commit whose context has ended tells the truth",
			wrap: commits(func(ctx context.Context, tx store.Tx) error {
				if err := tx.Commit(context.WithoutCancel(ctx)); err != nil {
					return err
				}
				return ctx.Err()
			}),
		},
		{
			name: "closed looks like old", caughtBy: "a closed store says so",
			wrap: commits(func(ctx context.Context, tx store.Tx) error {
				err := tx.Commit(ctx)
				if errors.Is(err, store.ErrClosed) {
					return store.ErrTooOld
				}
				return err
			}),
		},
		{
			name: "watches never fire", caughtBy: "a watch fires on a change", waits: true,
			wrap: watches(func(ctx context.Context, s store.Store, key []byte) (<-chan struct{}, error) {
				return make(chan struct{}), nil
			}),
		},
		{
			name: "watches outlive their context", caughtBy: "a watch ends with its context", waits: true,
			wrap: watches(func(ctx context.Context, s store.Store, key []byte) (<-chan struct{}, error) {
				return s.Watch(context.WithoutCancel(ctx), key)
			}),
		},
		{
			name: "watches of another key", caughtBy: "no wake-up is lost", waits: true,
			wrap: watches(func(ctx context.Context, s store.Store, key []byte) (<-chan struct{}, error) {
				return s.Watch(ctx, append(bytes.Clone(key), 0))
			}),
		},
	}
}
