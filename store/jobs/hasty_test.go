package jobs_test

import (
	"context"
	"testing"

	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
)

// A hasty store has no time to read many keys in one transaction, as a cluster
// that is slow, or lags behind.
type hasty struct{ store.Store }

type hastyTx struct{ store.Tx }

type hastyReader struct{ store.Reader }

func (h hasty) Begin(ctx context.Context) (store.Tx, error) {
	tx, err := h.Store.Begin(ctx)
	return hastyTx{tx}, err
}

func (t hastyTx) Snapshot() store.Reader { return hastyReader{t.Tx.Snapshot()} }

func (r hastyReader) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	if len(keys) > 20 {
		return nil, store.ErrTooOld
	}
	return r.Reader.GetAll(ctx, keys)
}

// Pages for which a store has no time are read all the same, in smaller parts:
// none of their units is missing, and none comes twice.
func TestPagesThatTakeTooLong(t *testing.T) {
	const units = 300
	w := newWorld(t, hasty{open(t)}, 1)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(units))
	w.run(j, id)
	all := func(page func(from int64) ([]*storagev1.Unit, error)) (units []*storagev1.Unit) {
		t.Helper()
		for from := int64(0); ; {
			some, err := page(from)
			w.must(err)
			if len(some) == 0 {
				return units
			}
			for _, u := range some {
				if u.Index < from {
					t.Fatalf("unit %d is on a page from %d on", u.Index, from)
				}
				from = u.Index + 1
			}
			units = append(units, some...)
		}
	}
	level := func(n int64) []*storagev1.Unit {
		return all(func(from int64) ([]*storagev1.Unit, error) { return j.UnitsFrom(w.ctx, id, n, from, 256) })
	}
	if n := len(level(0)); n != units {
		t.Errorf("level 0 has %d units, want %d", n, units)
	}
	reduced := 0
	for _, u := range level(1) {
		reduced += len(all(func(from int64) ([]*storagev1.Unit, error) {
			return j.Inputs(w.ctx, id, u, max(from, u.Inputs.First), 1024)
		}))
	}
	if reduced != units {
		t.Errorf("reduces take %d units, want %d", reduced, units)
	}
}
