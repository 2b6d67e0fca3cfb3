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
// and of a level whose units have all ended it reads no unit: those that are not in the list of failed ones are complete.
func (rec *UnitRecords) Standings(ctx context.Context, r store.Reader, id mapreduce.JobID, level, from int64, limit int) ([]UnitStanding, error) {
	ids, indexes, err := rec.placesIn(ctx, r, id, level, from, math.MaxInt64, limit)
	if err != nil || len(ids) == 0 {
		return nil, err
	}

	ended, failed, err := rec.endedLevel(ctx, r, id, level)
	if err != nil {
		return nil, err
	}
	if !ended {
		return rec.standingsOf(ctx, r, id, ids, indexes)
	}

	all, listed := make([]UnitStanding, len(ids)), make([][]byte, len(ids))
	if failed > 0 {
		ks := make([][]byte, len(ids))
		for i, u := range ids {
			ks[i] = rec.keys.Queues(id).Failed(level, u)
		}
		if listed, err = readBeside(ctx, r, ks); err != nil {
			return nil, err
		}
	}
	for i, index := range indexes {
		state := mapreduce.UnitComplete
		if listed[i] != nil {
			state = mapreduce.UnitFailed
		}
		all[i] = UnitStanding{ids[i], index, mapreduce.UnitStanding{State: state}}
	}
	return all, nil
}

// endedLevel reports whether all units of a level have ended, and how many have failed. Its counters change with its units,
// in one transaction, and all units of a level that the job has come to are planned.
func (rec *UnitRecords) endedLevel(ctx context.Context, r store.Reader, id mapreduce.JobID, level int64) (ended bool, failed int64, err error) {
	ctl, err := rec.jobs.Control(ctx, r, id)
	if err != nil {
		return false, 0, err
	}
	completed, err := rec.jobs.Counter(ctx, r, id, keys.Completed, level)
	if err != nil {
		return false, 0, err
	}
	failed, err = rec.jobs.Counter(ctx, r, id, keys.Failed, level)
	return level <= ctl.Level && completed+failed == UnitsOf(ctl, level), failed, err
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
