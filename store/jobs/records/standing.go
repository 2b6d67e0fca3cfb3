package records

import (
	"context"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/keys"
)

// A UnitStanding is how a unit of a level stands.
type UnitStanding struct {
	ID    mapreduce.UnitID
	Index int64 // in its level
	mapreduce.UnitStanding
}

// Standings reads how up to limit units of a level stand, from an index on, in order. It decodes nothing else of them,
// and of a level that is complete it reads no unit.
func (rec *UnitRecords) Standings(ctx context.Context, r store.Reader, id mapreduce.JobID, level, from int64, limit int) ([]UnitStanding, error) {
	ctl, err := rec.jobs.Control(ctx, r, id)
	if err != nil {
		return nil, err
	}
	ids, indexes, err := rec.placesIn(ctx, r, id, level, from, math.MaxInt64, limit)
	if err != nil || len(ids) == 0 {
		return nil, err
	}

	// The counter of a level changes with its units, in one transaction. All units of a level that the job has come to are
	// planned.
	completed, err := rec.jobs.Counter(ctx, r, id, keys.Completed, level)
	if err != nil {
		return nil, err
	}
	if level <= ctl.Level && completed == UnitsOf(ctl, level) {
		all := make([]UnitStanding, len(indexes))
		for i, index := range indexes {
			all[i] = UnitStanding{ids[i], index, mapreduce.UnitStanding{State: mapreduce.UnitComplete}}
		}
		return all, nil
	}
	return rec.standingsOf(ctx, r, id, ids, indexes)
}

// standingsOf reads how units stand that are named, each with its index. Those that are not there are left out.
func (rec *UnitRecords) standingsOf(ctx context.Context, r store.Reader, id mapreduce.JobID, ids []mapreduce.UnitID, indexes []int64) ([]UnitStanding, error) {
	ks := rec.keysOf(id, ids)
	values, err := readBeside(ctx, r, ks)
	if err != nil {
		return nil, err
	}

	all := make([]UnitStanding, 0, len(ids))
	lean, stored := proto.UnmarshalOptions{DiscardUnknown: true}, new(storagev1.UnitStanding)
	for i, v := range values {
		if v == nil {
			continue
		}
		if err := lean.Unmarshal(v, stored); err != nil {
			return nil, CorruptError(ks[i], "%v", err)
		}
		state := mapreduce.UnitState(stored.Status)
		all = append(all, UnitStanding{ids[i], indexes[i], mapreduce.UnitStanding{
			State: state, Parked: state == mapreduce.Pending && stored.GetQueue().GetClass() == keys.ClassParked,
		}})
	}
	return all, nil
}
