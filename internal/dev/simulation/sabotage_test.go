package simulation_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/simulation"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/outcome/journal"
	"github.com/coditect/mapreduce/store"
)

// The tests of this file plant a fault in what the service relies on: what is said to be stored is not, two
// transactions that conflict are both committed, or workers are not told what is paid for. The simulation has to find
// each of them, and to make what it finds small.

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

// An oblivious fleet gives workers what earlier attempts have remembered under other names, so that
// these ask models again what was answered and paid for.
type oblivious struct{ protocol.Fleet }

// Work implements protocol.Fleet.
func (o oblivious) Work(ctx context.Context, s protocol.WorkStream) error {
	return o.Fleet.Work(ctx, obliviousStream{s})
}

type obliviousStream struct{ protocol.WorkStream }

// Send implements protocol.WorkStream.
func (o obliviousStream) Send(m *protocol.ToWorker) error {
	said := *m
	said.Assignments = slices.Clone(m.Assignments)
	for i := range said.Assignments {
		renamed, err := renameEntries(said.Assignments[i].Journal)
		if err != nil {
			return err
		}
		said.Assignments[i].Journal = renamed
	}
	return o.WorkStream.Send(&said)
}

func renameEntries(data []byte) (renamed []byte, err error) {
	entries, err := journal.Split(data)
	if err != nil {
		return nil, err
	}

	for _, raw := range entries {
		e, err := journal.Decode(raw)
		if err != nil {
			return nil, err
		}
		e.Key += ", of old"
		if raw, err = e.Encode(); err != nil {
			return nil, err
		}
		renamed = journal.AppendEntry(renamed, raw)
	}
	return renamed, nil
}

func TestPlantedFaultsAreFound(t *testing.T) {
	sabotaged := func(wrap func(store.Tx) store.Tx) simulation.Options {
		return simulation.Options{Sabotage: planting(wrap)}
	}

	for name, c := range map[string]struct {
		plant func() simulation.Options
		says  string // what is to be found, where it is one thing
	}{
		"lost updates":      {func() simulation.Options { return sabotaged(func(tx store.Tx) store.Tx { return hasty{tx} }) }, ""},
		"ignored conflicts": {func() simulation.Options { return sabotaged(func(tx store.Tx) store.Tx { return heedless{tx} }) }, ""},
		"lost commits": {func() simulation.Options {
			commits := new(atomic.Int64)
			return sabotaged(func(tx store.Tx) store.Tx { return &forgetful{Tx: tx, commits: commits} })
		}, ""},
		"calls paid again": {func() simulation.Options {
			return simulation.Options{Tamper: func(f protocol.Fleet) protocol.Fleet { return oblivious{f} }}
		}, "calls were paid for again"},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.Unraced(t, testenv.Alike)

			for seed := uint64(1); seed <= 1000; seed++ {
				var broken []string
				if !t.Run(fmt.Sprint(seed), func(t *testing.T) {
					broken = play(t, simulation.Of(seed), c.plant()).Broken
				}) {
					return
				}
				if strings.Contains(strings.Join(broken, "\n"), c.says) && len(broken) > 0 {
					t.Logf("seed %d finds it: %s", seed, strings.Join(broken, "\n"))
					return
				}
			}
			t.Error("no seed of a thousand finds it")
		})
	}
}
