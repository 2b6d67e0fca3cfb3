package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/coditect/mapreduce/store"
)

var _ store.Verifier = (*Store)(nil)

// Verify checks the sums of all blocks of all tables. Logs need no check: they
// were read when the store was opened. Tables that come meanwhile are not looked
// at.
func (s *Store) Verify(ctx context.Context, found func(store.Damage) error) (files int, err error) {
	tables, err := s.tables()
	if errors.Is(err, store.ErrClosed) {
		return 0, err
	}
	if err != nil {
		return 0, found(store.Damage{File: s.folder, Err: err})
	}
	for _, number := range slices.Sorted(maps.Keys(tables)) {
		if ctx.Err() != nil {
			return files, context.Cause(ctx)
		}
		err := s.verifyTable(ctx, number)
		if err != nil {
			now, again := s.tables()
			if _, used := now[number]; again == nil && !used {
				continue // replaced since, and removed
			}
			err = found(store.Damage{File: s.tablePath(number), Keys: tables[number], Err: err})
		}
		if err != nil {
			return files, err
		}
		files++
	}
	return files, nil
}

// tables returns the tables of now, by the number of their file, with the keys
// that may be in them.
func (s *Store) tables() (map[uint64]store.Range, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	levels, err := s.db.SSTables()
	if err != nil {
		return nil, err
	}
	all := make(map[uint64]store.Range)
	for _, level := range levels {
		for _, t := range level {
			keys := store.Range{Begin: t.Smallest.UserKey, End: store.Single(t.Largest.UserKey).End}
			if other, known := all[uint64(t.BackingSSTNum)]; known { // several tables in one file
				keys.Begin = slices.MinFunc([][]byte{keys.Begin, other.Begin}, bytes.Compare)
				keys.End = slices.MaxFunc([][]byte{keys.End, other.End}, bytes.Compare)
			}
			all[uint64(t.BackingSSTNum)] = keys
		}
	}
	return all, nil
}

func (s *Store) tablePath(number uint64) string {
	return s.config.FS.PathJoin(s.folder, fmt.Sprintf("%06d.sst", number))
}

func (s *Store) verifyTable(ctx context.Context, number uint64) error {
	file, err := s.config.FS.Open(s.tablePath(number))
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(file)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	options := s.options()
	options.EnsureDefaults()
	r, err := sstable.NewReader(ctx, readable, options.MakeReaderOptions())
	if err != nil {
		return errors.Join(err, readable.Close())
	}
	return errors.Join(r.ValidateBlockChecksums(), r.Close())
}
