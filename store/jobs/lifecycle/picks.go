package lifecycle

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// ReadPicked reads up to limit of the units that a unit picked, with indexes from
// from on, in order.
func (rec LevelRecords) ReadPicked(ctx context.Context, r store.Reader, id mapreduce.JobID, reduce *records.Unit, from int64, limit int) ([]*storagev1.Unit, error) {
	indexes, err := rec.PicksFrom(ctx, r, id, reduce, from, limit)
	if err != nil || len(indexes) == 0 {
		return nil, err
	}

	names, err := rec.unitIDsAt(ctx, r, id, reduce.Inputs.Level, indexes)
	if err != nil {
		return nil, err
	}

	units, err := rec.Units.Named(ctx, r, id, names)
	if err == nil && len(units) < len(indexes) {
		return nil, records.CorruptError(rec.Keys.Job(id).Unit(reduce.ID), "unit %s of %s takes %d units of which %d are there",
			reduce.ID, id, len(indexes), len(units))
	}

	return units, err
}

// PicksFrom reads up to limit of the indexes that a reduce picked, from one on.
func (rec LevelRecords) PicksFrom(ctx context.Context, r store.Reader, id mapreduce.JobID, reduce *records.Unit, from int64, limit int) ([]int64, error) {
	span := rec.Keys.Plans(id).PicksOf(reduce.Level, reduce.Index)
	before := store.Range{Begin: span.Begin, End: store.Single(rec.Keys.Plans(id).Picks(reduce.Level, reduce.Index, from)).End}
	pairs, _, err := r.GetRange(ctx, before, store.RangeOptions{Limit: 1, Reverse: true})
	if err != nil {
		return nil, err
	}

	if len(pairs) > 0 { // from lies within this one, or right behind it
		span.Begin = pairs[0].Key
	}

	pairs, _, err = r.GetRange(ctx, span, store.RangeOptions{Limit: limit/PickChunk + 2})
	if err != nil {
		return nil, err
	}

	var found []int64
	for _, kv := range pairs {
		var m storagev1.Picks
		if err := records.Decode(kv.Key, kv.Value, &m); err != nil {
			return nil, err
		}

		// The first index and the gaps between the others are stored.
		for at, i := m.First, 0; ; i++ {
			if at >= from && len(found) < limit {
				found = append(found, at)
			}
			if i == len(m.Gaps) {
				break
			}
			at += m.Gaps[i]
		}
	}

	return found, nil
}

// unitIDsAt returns the ids of units of a level. A unit of level 0 that is not there
// has none.
func (rec LevelRecords) unitIDsAt(ctx context.Context, r store.Reader, id mapreduce.JobID, level int64, indexes []int64) ([]mapreduce.UnitID, error) {
	names := make([]mapreduce.UnitID, len(indexes))
	// The id of a reduce follows from its index; that of a map unit stands in the order.
	if level > 0 {
		ctl, err := rec.Jobs.Control(ctx, r, id)
		if err != nil {
			return nil, err
		}
		for i, at := range indexes {
			names[i] = records.UnitAt(records.LevelAt(ctl, level), at)
		}
		return names, nil
	}

	ks := make([][]byte, len(indexes))
	for i, at := range indexes {
		ks[i] = rec.Keys.Job(id).Order(level, at)
	}
	values, err := r.GetAll(ctx, ks)

	for i, v := range values {
		names[i] = mapreduce.UnitID(v)
	}
	return names, err
}
