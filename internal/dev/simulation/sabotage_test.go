package simulation_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coditect/mapreduce/internal/dev/simulation"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/store"
)

// The tests of this file plant a fault in what the service relies on: what is said to be stored is not,
// or two transactions that conflict are both committed. The simulation has to find each of them, and to
// make what it finds small.

// A plant wraps the transactions of a store.
type plant struct {
	store.Store
	wrap func(store.Tx) store.Tx
}

// Begin implements store.Store.
func (p plant) Begin(ctx context.Context) (store.Tx, error) {
	tx, err := p.Store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return p.wrap(tx), nil
}

// planting returns a sabotage that wraps transactions.
func planting(wrap func(store.Tx) store.Tx) func(store.Store) store.Store {
	return func(s store.Store) store.Store { return plant{s, wrap} }
}

// A hasty transaction adds by reading and writing, and does not see what others add meanwhile.
type hasty struct{ store.Tx }

// Add implements store.Tx.
func (h hasty) Add(key []byte, delta int64) {
	var sum uint64
	// An error ends the transaction, which is then not committed.
	if value, err := h.Snapshot().Get(context.Background(), key); err == nil && len(value) == 8 {
		sum = binary.LittleEndian.Uint64(value)
	}
	h.Set(key, binary.LittleEndian.AppendUint64(nil, sum+uint64(delta)))
}

// A heedless transaction is committed whatever others have changed of what it read.
type heedless struct{ store.Tx }

// Get implements store.Reader.
func (h heedless) Get(ctx context.Context, key []byte) ([]byte, error) {
	return h.Snapshot().Get(ctx, key)
}

// GetAll implements store.Reader.
func (h heedless) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	return h.Snapshot().GetAll(ctx, keys)
}

// GetRange implements store.Reader.
func (h heedless) GetRange(ctx context.Context, r store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	return h.Snapshot().GetRange(ctx, r, o)
}

// AddReadConflict implements store.Tx.
func (heedless) AddReadConflict(store.Range) {}

// A forgetful store acknowledges one commit in so many that writes, and does not store it.
type forgetful struct {
	store.Tx
	commits *atomic.Int64
	writes  bool
}

const forgets = 150

// Set implements store.Tx.
func (f *forgetful) Set(key, value []byte) {
	f.writes = true
	f.Tx.Set(key, value)
}

// Commit implements store.Tx.
func (f *forgetful) Commit(ctx context.Context) error {
	if f.writes && f.commits.Add(1)%forgets == 0 {
		f.Discard()
		return nil
	}
	return f.Tx.Commit(ctx)
}

func TestPlantedFaultsAreFound(t *testing.T) {
	for name, sabotage := range map[string]func() func(store.Store) store.Store{
		"lost updates": func() func(store.Store) store.Store { return planting(func(tx store.Tx) store.Tx { return hasty{tx} }) },
		"ignored conflicts": func() func(store.Store) store.Store {
			return planting(func(tx store.Tx) store.Tx { return heedless{tx} })
		},
		"lost commits": func() func(store.Store) store.Store {
			commits := new(atomic.Int64)
			return planting(func(tx store.Tx) store.Tx { return &forgetful{Tx: tx, commits: commits} })
		},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.Unraced(t, testenv.Alike)

			for seed := uint64(1); seed <= 1000; seed++ {
				var broken []string
				if !t.Run(fmt.Sprint(seed), func(t *testing.T) {
					broken = play(t, simulation.Of(seed), simulation.Options{Sabotage: sabotage()}).Broken
				}) {
					return
				}
				if len(broken) > 0 {
					t.Logf("seed %d finds it: %s", seed, strings.Join(broken, "\n"))
					return
				}
			}
			t.Error("no seed of a thousand finds it")
		})
	}
}
