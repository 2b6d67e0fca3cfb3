package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	pebbledb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/coditect/mapreduce/store"
)

var _ store.Verifier = (*Store)(nil)

// Verify checks the checksums of all blocks of all tables. It does not check logs,
// which were read when the store was opened, nor tables created meanwhile.
func (s *Store) Verify(ctx context.Context, found func(store.Damage) error) (files int, err error) {
	tables, err := s.currentTables()
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

		err := s.verifyTable(ctx, tables[number])
		if err != nil {
			now, again := s.currentTables()
			if _, used := now[number]; again == nil && !used {
				continue // replaced since, and removed
			}
			err = found(store.Damage{File: s.tablePath(tables[number]), Keys: tables[number].keys, Err: err})
		}

		if err != nil {
			return files, err
		}
		files++
	}
	return files, nil
}

// A table is a file of the tree.
type table struct {
	info pebbledb.SSTableInfo
	keys store.Range // range of the keys in it
}

// currentTables returns the current tables by the number of their file.
func (s *Store) currentTables() (map[uint64]table, error) {
	if err := s.beginUse(); err != nil {
		return nil, err
	}
	defer s.endUse()

	levels, err := s.db.SSTables()
	if err != nil {
		return nil, err
	}

	all := make(map[uint64]table)
	for _, level := range levels {
		for _, info := range level {
			keys := store.Range{Begin: info.Smallest.UserKey, End: store.Single(info.Largest.UserKey).End}
			number := uint64(info.BackingSSTNum)
			if other, known := all[number]; known { // several tables in one file
				keys.Begin = slices.MinFunc([][]byte{keys.Begin, other.keys.Begin}, bytes.Compare)
				keys.End = slices.MaxFunc([][]byte{keys.End, other.keys.End}, bytes.Compare)
			}
			all[number] = table{info, keys}
		}
	}

	return all, nil
}

func (s *Store) tablePath(t table) string {
	return s.config.FS.PathJoin(s.folder, fmt.Sprintf("%06d.sst", uint64(t.info.BackingSSTNum)))
}

func (s *Store) verifyTable(ctx context.Context, t table) error {
	file, err := s.config.FS.Open(s.tablePath(t))
	if err != nil {
		return err
	}

	readable, err := sstable.NewSimpleReadable(file)
	if err != nil {
		return errors.Join(err, file.Close())
	}

	options := s.pebbleOptions()
	options.EnsureDefaults()
	reading := options.MakeReaderOptions()
	reading.CacheOpts.FileNum = t.info.BackingSSTNum // for messages

	r, err := sstable.NewReader(ctx, readable, reading)
	if err != nil {
		return errors.Join(err, readable.Close())
	}

	return errors.Join(r.ValidateBlockChecksums(), r.Close())
}
