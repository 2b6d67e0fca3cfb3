package rig

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/tuple"
)

// A Floor is how long a disk takes to keep something, at the arrivals of a
// latency.
type Floor struct {
	Sync   *Sample // a file is written to and synced
	Commit *Sample // the store commits a transaction of one write
}

// MeasureFloor measures the floor of latencies, at each of the times from now.
func (site *Site) MeasureFloor(ctx context.Context, at []time.Duration) (*Floor, error) {
	f := &Floor{new(Sample), new(Sample)}
	err := site.InPlace(func(p Place) error {
		s, err := p.OpenStore()
		if err != nil {
			return err
		}
		defer s.Close()

		file, err := os.Create(filepath.Join(p.Dir, "file"))
		if err != nil {
			return err
		}
		defer file.Close()

		db := store.NewDB(s, store.Config{})
		record := make([]byte, 512)

		// Both are measured in turn, so that they meet the same disk.
		return CallAt(ctx, at, func(i int) error {
			start := time.Now()
			if _, err := file.Write(record); err != nil {
				return err
			}
			if err := file.Sync(); err != nil {
				return err
			}
			f.Sync.Add(time.Since(start))

			start = time.Now()
			err := db.Update(ctx, func(tx store.Tx) error {
				tx.Set(tuple.AppendInt(tuple.AppendString(nil, p.KeyPrefix()), int64(i)), record)
				return nil
			})
			f.Commit.Add(time.Since(start))
			return err
		})
	})
	return f, err
}

// CallAt calls fn at each of the times from now, one after the other.
func CallAt(ctx context.Context, at []time.Duration, fn func(i int) error) error {
	start := time.Now()
	for i, t := range at {
		if err := clock.Sleep(ctx, time.Until(start.Add(t))); err != nil {
			return err
		}
		if err := fn(i); err != nil {
			return err
		}
	}
	return nil
}

// MeasureCommit returns the median time that a store takes for a commit of one write,
// a hundred of them, ten milliseconds apart.
func (p Place) MeasureCommit(ctx context.Context) (median time.Duration, err error) {
	s, err := p.OpenStore()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()

	db, took := store.NewDB(s, store.Config{}), new(Sample)
	for range 100 {
		if err := clock.Sleep(ctx, 10*time.Millisecond); err != nil {
			return 0, err
		}

		start := time.Now()
		err := db.Update(ctx, func(tx store.Tx) error {
			tx.Set(tuple.AppendString(tuple.AppendString(nil, p.KeyPrefix()), "commit"), make([]byte, 512))
			return nil
		})
		if err != nil {
			return 0, err
		}

		took.Add(time.Since(start))
	}
	return took.Quantile(.5), nil
}
