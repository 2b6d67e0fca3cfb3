package pebble_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/pebble"
	"github.com/coditect/mapreduce/store/tuple"
)

// openDisk opens a store on a real disk, where syncs cost what they cost.
func openDisk(b *testing.B) *pebble.Store {
	b.Helper()
	s, err := pebble.Open(b.TempDir(), pebble.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

func update(b *testing.B, s store.Store, fn func(tx store.Tx) error) {
	b.Helper()
	tx, err := s.Begin(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	defer tx.Discard()
	if err := fn(tx); err != nil {
		b.Fatal(err)
	}
	if err := tx.Commit(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// unitKey is a key as the service has them.
func unitKey(table string, n int) []byte {
	return tuple.Append(make([]byte, 0, 64), "mapreduce", table, "mr_20250101_abcdef", n)
}

// BenchmarkSerialCommit is one small transaction after the other: about a sync
// each.
func BenchmarkSerialCommit(b *testing.B) {
	s := openDisk(b)
	value := make([]byte, 100)
	n := 0
	for b.Loop() {
		n++
		update(b, s, func(tx store.Tx) error { tx.Set(unitKey("units", n), value); return nil })
	}
}

// BenchmarkBatches is concurrent committers that each write 200 small values a
// transaction.
func BenchmarkBatches(b *testing.B) {
	const writes = 200
	for _, parallelism := range []int{1, 4, 8} {
		b.Run(fmt.Sprintf("committers=%d", parallelism*runtime.GOMAXPROCS(0)), func(b *testing.B) {
			s := openDisk(b)
			value := make([]byte, 100)
			var next atomic.Int64
			b.SetParallelism(parallelism)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					first := int(next.Add(writes))
					update(b, s, func(tx store.Tx) error {
						for i := range writes {
							tx.Set(unitKey("units", first+i), value)
						}
						return nil
					})
				}
			})
			b.ReportMetric(float64(b.N)*writes/b.Elapsed().Seconds(), "writes/s")
		})
	}
}

// BenchmarkSmallCommits is many committers of one small write each: what a sync
// costs is shared.
func BenchmarkSmallCommits(b *testing.B) {
	s := openDisk(b)
	value := make([]byte, 100)
	var next atomic.Int64
	b.SetParallelism(64)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n := int(next.Add(1))
			update(b, s, func(tx store.Tx) error { tx.Set(unitKey("units", n), value); return nil })
		}
	})
}

// BenchmarkClaim is a transaction as the service makes them: 64 pairs of a queue
// read by snapshot, conflicts on just those, 64 records read, 200 writes.
func BenchmarkClaim(b *testing.B) {
	b.Run("disk", func(b *testing.B) { benchmarkClaim(b, openDisk(b)) })
	b.Run("memory", func(b *testing.B) { benchmarkClaim(b, open(b, pebble.Config{FS: vfs.NewMem()})) })
}

func benchmarkClaim(b *testing.B, s *pebble.Store) {
	const units = 64
	record := make([]byte, 200)
	fill(b, s, b.N, record)
	ctx := context.Background()
	seq := 0
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		update(b, s, func(tx store.Tx) error {
			queue := store.Range{Begin: unitKey("ready", seq), End: unitKey("ready", 1<<40)}
			pairs, _, err := tx.Snapshot().GetRange(ctx, queue, store.RangeOptions{Limit: units})
			if err != nil {
				return err
			}
			if len(pairs) != units {
				return fmt.Errorf("%d units left", len(pairs))
			}
			keys := make([][]byte, units)
			for i, pair := range pairs {
				tx.AddReadConflict(store.Single(pair.Key))
				keys[i] = unitKey("units", int(binary.BigEndian.Uint64(pair.Value)))
			}
			records, err := tx.GetAll(ctx, keys)
			if err != nil {
				return err
			}
			for i, r := range records {
				if r == nil {
					return errors.New("no record")
				}
				tx.Clear(pairs[i].Key)
				tx.Set(keys[i], r)
				tx.Set(unitKey("held", seq+i), nil)
			}
			for i := range 8 {
				tx.Add(unitKey("ctr", i), 1)
			}
			return nil
		})
		seq += units
	}
	b.ReportMetric(float64(b.N)*units/b.Elapsed().Seconds(), "units/s")
}

// fill stores 64 queued units for each of n claims.
func fill(b *testing.B, s store.Store, n int, record []byte) {
	b.Helper()
	for claim := range n {
		update(b, s, func(tx store.Tx) error {
			for i := range 64 {
				u := claim*64 + i
				tx.Set(unitKey("ready", u), binary.BigEndian.AppendUint64(nil, uint64(u)))
				tx.Set(unitKey("units", u), record)
			}
			return nil
		})
	}
}

// BenchmarkGet is a serializable read of one key.
func BenchmarkGet(b *testing.B) {
	const reads = 1000 // a transaction
	s := openDisk(b)
	fill(b, s, 1000, make([]byte, 200))
	ctx := context.Background()
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%reads > 0 {
			continue
		}
		update(b, s, func(tx store.Tx) error {
			for i := range reads {
				if v, err := tx.Get(ctx, unitKey("units", i*31)); v == nil {
					return err
				}
			}
			return nil
		})
	}
}
