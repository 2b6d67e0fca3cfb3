package rig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/tuple"
)

// Blind writes are made by so many goroutines, in batches of so many.
const (
	rawWriters = 16
	rawBatch   = 200
)

// RawWrites returns how many small writes a second Pebble itself, or the
// cluster, makes durable.
func (site *Site) RawWrites(ctx context.Context, n int) (rate float64, err error) {
	err = site.InPlace(func(p Place) (err error) {
		if p.Cluster != "" {
			rate, err = rawOnCluster(ctx, p, n)
		} else {
			rate, err = rawOnPebble(p, n)
		}
		return err
	})
	return rate, err
}

func rawOnPebble(p Place, n int) (float64, error) {
	db, err := pebbledb.Open(p.Dir, &pebbledb.Options{MemTableSize: 8 << 20, Logger: silentLogger{}})
	if err != nil {
		return 0, err
	}

	value := make([]byte, 100)
	rate, err := writeRaw(n, func(first int) error {
		b := db.NewBatch()
		for i := range rawBatch {
			if err := b.Set(rawKey(first+i), value, nil); err != nil {
				return err
			}
		}
		return b.Commit(pebbledb.Sync)
	})

	return rate, errors.Join(err, db.Close())
}

func rawOnCluster(ctx context.Context, p Place, n int) (float64, error) {
	s, err := p.OpenStore()
	if err != nil {
		return 0, err
	}

	db := store.NewDB(s, store.Config{})
	prefix, value := tuple.AppendString(nil, p.KeyPrefix()), make([]byte, 100)
	rate, err := writeRaw(n, func(first int) error {
		return db.Update(ctx, func(tx store.Tx) error {
			for i := range rawBatch {
				tx.Set(append(slices.Clip(prefix), rawKey(first+i)...), value)
			}
			return nil
		})
	})

	return rate, errors.Join(err, s.Close())
}

func rawKey(i int) []byte { return fmt.Appendf(nil, "mapreduce units mr_20250101_aaaaaa %012d", i) }

// writeRaw has write make n writes, in batches, and returns how many a second
// there were.
func writeRaw(n int, write func(first int) error) (float64, error) {
	var next atomic.Int64
	var writing sync.WaitGroup
	errs := make([]error, rawWriters)
	start := time.Now()
	for i := range errs {
		writing.Go(func() {
			for errs[i] == nil {
				first := int(next.Add(rawBatch)) - rawBatch
				if first >= n {
					return
				}
				errs[i] = write(first)
			}
		})
	}

	writing.Wait()
	return PerSecond(int(next.Load())-rawWriters*rawBatch, time.Since(start)), errors.Join(errs...)
}

type silentLogger struct{}

func (silentLogger) Infof(string, ...any)         {}
func (silentLogger) Errorf(string, ...any)        {}
func (silentLogger) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }
