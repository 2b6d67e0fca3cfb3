package jobs

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/keys"
)

// tally of a job's counters, over all stripes.
type counters map[counterAt]int64

type counterAt struct {
	name  keys.Counter
	level int64
}

// sumLevels returns a counter, summed over all levels.
func (c counters) sumLevels(name keys.Counter) (n int64) {
	for at, v := range c {
		if at.name == name {
			n += v
		}
	}
	return n
}

// readCounters reads all counters of a job, summed over all stripes.
func (j *Records) readCounters(ctx context.Context, r store.Reader, id mapreduce.JobID) (counters, error) {
	pairs, _, err := r.GetRange(ctx, j.keys.Counters(id), store.RangeOptions{})
	if err != nil {
		return nil, err
	}
	all := make(counters)
	for _, kv := range pairs {
		at, _, err := j.counterKey(kv.Key)
		if err != nil {
			return nil, err
		}
		all[at] += decodeCount(kv.Value)
	}
	return all, nil
}

// counterKey returns which counter a key is, and whose stripe.
func (j *Records) counterKey(key []byte) (counterAt, mapreduce.NodeID, error) {
	_, rest, err := j.keys.Last(key)
	if err != nil {
		return counterAt{}, "", err
	}
	rest.Skip() // the job
	at := counterAt{keys.Counter(rest.Int()), rest.Int()}
	return at, mapreduce.NodeID(rest.Text()), rest.Err()
}

// readCounter reads one counter at one level, over all stripes.
func (j *Records) readCounter(ctx context.Context, r store.Reader, id mapreduce.JobID, c keys.Counter, level int64) (int64, error) {
	pairs, _, err := r.GetRange(ctx, j.keys.CounterStripes(id, c, level), store.RangeOptions{})
	n := int64(0)
	for _, kv := range pairs {
		n += decodeCount(kv.Value)
	}
	return n, err
}

// decodeCount returns the number that a counter holds: 64 bits, little-endian. A value
// of another length counts as 0.
func decodeCount(value []byte) int64 {
	if len(value) != 8 {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(value))
}

// A LevelStatus is how far a job's level is.
type LevelStatus struct {
	State     mapreduce.JobState
	Epoch     int64
	Level     int64 // -1 while documents are parsed, 0 while they are mapped
	Units     int64 // planned in this level
	Completed int64
	Failed    int64
	Size      int64 // tokens of the outputs
	// Of the level whose outputs this one takes, if there is one.
	SourceCompleted, SourceSize int64
	Planned                     []Level // levels, from 0 on
	TreeTop                     int64   // the last of the levels that were planned at once with their tree; 0 if there is no such tree
	Failures                    int64   // of all levels, if the job is to fail fast
	FailFast                    bool
	Sweeping                    bool
	Next                        int64 // grows with each step in which some node plans the next level, if this one has ended
}

// InTree reports whether the level above this one is planned, as part of a tree
// that was planned at once.
func (s *LevelStatus) InTree() bool { return s.Level >= 0 && s.Level < s.TreeTop }

// Ended reports whether no unit of the level can move any more.
func (s *LevelStatus) Ended() bool { return s.Completed+s.Failed >= s.Units }

// LevelStatus reads how far a job is, without writing anything. The counters
// are as new as the latest commit that was acknowledged before the call.
func (j *LevelsPart) LevelStatus(ctx context.Context, id mapreduce.JobID) (*LevelStatus, error) {
	var s *LevelStatus
	err := j.db.view(ctx, func(tx store.Tx) error {
		ctl, err := j.readControl(ctx, tx, id)
		if err != nil {
			return err
		}
		s = &LevelStatus{
			State: mapreduce.JobState(ctl.State), Epoch: ctl.Epoch, Level: ctl.Level,
			FailFast: ctl.FailFast, Sweeping: ctl.Sweeping, TreeTop: ctl.TreeTop,
		}
		for _, l := range ctl.Levels {
			s.Planned = append(s.Planned, levelFrom(l))
		}
		if s.FailFast {
			all, err := j.readCounters(ctx, tx, id)
			if err != nil {
				return err
			}
			s.Failures = all.sumLevels(keys.Failed)
		}
		s.Units = unitsOf(ctl, ctl.Level)
		source := int64(-2) // a level that no job has
		if ctl.Level > 0 {
			source = levelAt(ctl, ctl.Level).GetSource()
		}
		for _, c := range []struct {
			name  keys.Counter
			level int64
			to    *int64
		}{
			{keys.Completed, ctl.Level, &s.Completed},
			{keys.Failed, ctl.Level, &s.Failed},
			{keys.Size, ctl.Level, &s.Size},
			{keys.Completed, source, &s.SourceCompleted},
			{keys.Size, source, &s.SourceSize},
		} {
			if *c.to, err = j.readCounter(ctx, tx, id, c.name, c.level); err != nil {
				return err
			}
		}
		if !s.Ended() {
			return nil
		}
		var next storagev1.Plan // or the first, and the others of a tree
		_, err = read(ctx, tx, j.keys.Plan(id, max(1, s.Level+1)), &next)
		s.Next = plannedSoFar(&next)
		return err
	})
	return s, err
}

// LevelSizes returns how many units of a level have an output, and the tokens of
// all outputs.
func (j *LevelsPart) LevelSizes(ctx context.Context, id mapreduce.JobID, level int64) (completed, tokens int64, err error) {
	err = j.db.view(ctx, func(tx store.Tx) error {
		if completed, err = j.readCounter(ctx, tx, id, keys.Completed, level); err != nil {
			return err
		}
		tokens, err = j.readCounter(ctx, tx, id, keys.Size, level)
		return err
	})
	return completed, tokens, err
}

// Complete ends a job whose last level has ended.
func (j *LevelsPart) Complete(ctx context.Context, id mapreduce.JobID, epoch int64) error {
	return j.db.changeControl(ctx, failpoint.Complete, id, func(_ store.Tx, ctl *storagev1.Ctl) (string, bool, error) {
		if ctl.Epoch != epoch || !mapreduce.JobState(ctl.State).Running() {
			return "", false, nil
		}
		ctl.State = uint32(mapreduce.JobComplete)
		return "complete", true, nil
	})
}

// PlantParsed plants the units of parsed documents, in the order of their parse
// units, until all are planted. next returns the units of the document of a
// parse unit, none if it has no text.
func (j *LevelsPart) PlantParsed(ctx context.Context, id mapreduce.JobID, epoch int64, next func(ctx context.Context, u *storagev1.Unit) ([]Batch, error)) error {
	cursor := int64(0)
	for {
		parsed, err := j.db.orderPage(ctx, id, -1, cursor, 64)
		if err != nil {
			return err
		}
		for _, u := range parsed {
			if err := j.insertDocument(ctx, id, epoch, u, next); err != nil {
				return err
			}
			cursor = u.Index + 1
		}
		if len(parsed) == 0 {
			return nil
		}
	}
}

func (j *LevelsPart) insertDocument(ctx context.Context, id mapreduce.JobID, epoch int64, u *storagev1.Unit, next func(ctx context.Context, u *storagev1.Unit) ([]Batch, error)) error {
	if mapreduce.UnitState(u.Status) != mapreduce.UnitComplete {
		return nil
	}
	batches, err := next(ctx, u)
	if err != nil {
		return err
	}
	for i := range batches {
		if err := j.insertBatch(ctx, id, epoch, &batches[i]); err != nil {
			return err
		}
	}
	return nil
}

func (j *LevelsPart) insertBatch(ctx context.Context, id mapreduce.JobID, epoch int64, b *Batch) error {
	return j.db.update(ctx, failpoint.Plant, func(tx store.Tx) error {
		ctl, err := j.readControl(ctx, tx, id)
		if err != nil || ctl.Epoch != epoch {
			return err
		}
		for _, c := range b.Blobs {
			tx.Set(j.keys.BlobChunk(id, c.SHA256, c.Index), c.Data)
		}
		ks := make([][]byte, len(b.Units))
		for i, u := range b.Units {
			ks[i] = j.keys.Unit(id, mapreduce.UnitID(u.UnitId))
		}
		old, err := readPresent(ctx, tx, ks)
		if err != nil {
			return err
		}
		for i, u := range b.Units {
			if old == nil || old[i] == nil { // else planted before: by an earlier run, or before a resume
				j.insertNew(tx, id, u)
				tx.Add(j.keys.Counter(id, keys.Planted, 0, j.node), 1)
				if b.Counted {
					continue
				}
				tx.Add(j.keys.Counter(id, keys.CharactersParsed, 0, j.node), u.Source.GetCharEnd()-u.Source.GetCharStart())
			}
		}
		return nil
	})
}

// StartMapping turns a job whose units are all planted to level 0, which is as
// first says but for the number of its units. A unit of all documents that is
// staged and was never claimed goes if dissolve is set: its documents have got
// units of their own.
func (j *LevelsPart) StartMapping(ctx context.Context, id mapreduce.JobID, epoch int64, first Level, dissolve bool) error {
	return j.db.changeControl(ctx, failpoint.Map, id, func(tx store.Tx, ctl *storagev1.Ctl) (string, bool, error) {
		if ctl.Epoch != epoch || ctl.Level >= 0 || !mapreduce.JobState(ctl.State).Running() {
			return "", false, nil
		}
		planted, err := j.readCounter(ctx, tx, id, keys.Planted, 0)
		if err != nil {
			return "", false, err
		}
		if dissolve {
			if err := j.removeDirect(ctx, tx, id, ctl); err != nil {
				return "", false, err
			}
		}
		first.Units = ctl.StagedUnits + planted
		ctl.Level, ctl.State = 0, uint32(first.Phase)
		ctl.Levels = []*storagev1.Level{first.toStored()}
		return fmt.Sprintf("level 0: %d units", first.Units), true, nil
	})
}

// orderPage reads units of level -1 or 0 from an index on, in order. There may be
// fewer than limit, but only at the end there are none.
func (d *DB) orderPage(ctx context.Context, id mapreduce.JobID, level, from int64, limit int) ([]*storagev1.Unit, error) {
	return d.readFitting(ctx, limit, func(r store.Reader, most int) ([]*storagev1.Unit, error) {
		return d.records.unitsFrom(ctx, r, id, level, from, most)
	})
}

// leastPage is how many units a page has room for at least.
const leastPage = 16

// readFitting reads up to limit units in one transaction.
func (d *DB) readFitting(ctx context.Context, limit int, page func(r store.Reader, most int) ([]*storagev1.Unit, error)) ([]*storagev1.Unit, error) {
	var units []*storagev1.Unit
	failed := 0
	err := d.view(ctx, func(tx store.Tx) (err error) {
		units, err = page(tx.Snapshot(), shrinkLimit(limit, leastPage, failed))
		failed++ // should it run again
		return err
	})
	return units, err
}

// shrinkLimit returns how many of n things a transaction should read that failed so
// often: half as many each time, as a store that is slow, or lags behind, has no
// time for more. It asks for least of them at least.
func shrinkLimit(n, least, failed int) int { return min(n, max(least, n>>min(failed, 30))) }

// unitsFrom reads up to limit units of a level from an index on, in order.
func (j *Records) unitsFrom(ctx context.Context, r store.Reader, id mapreduce.JobID, level, from int64, limit int) ([]*storagev1.Unit, error) {
	return j.unitsIn(ctx, r, id, level, from, math.MaxInt64, limit)
}

// unitsIn reads up to limit units of a level with indexes in [from, end), in
// order.
func (j *Records) unitsIn(ctx context.Context, r store.Reader, id mapreduce.JobID, level, from, end int64, limit int) ([]*storagev1.Unit, error) {
	ids, err := j.unitIDsIn(ctx, r, id, level, from, end, limit)
	if err != nil {
		return nil, err
	}
	return j.unitsNamed(ctx, r, id, ids)
}

// unitsNamed reads units, as far as they are there.
func (j *Records) unitsNamed(ctx context.Context, r store.Reader, id mapreduce.JobID, ids []mapreduce.UnitID) ([]*storagev1.Unit, error) {
	ks := make([][]byte, len(ids))
	for i, u := range ids {
		ks[i] = j.keys.Unit(id, u)
	}
	found, err := readUnits(ctx, r, ks)
	return slices.DeleteFunc(found, func(u *storagev1.Unit) bool { return u == nil }), err
}

func (j *Records) unitIDsIn(ctx context.Context, r store.Reader, id mapreduce.JobID, level, from, end int64, limit int) ([]mapreduce.UnitID, error) {
	if level <= 0 {
		span := store.Range{Begin: j.keys.Order(id, level, from), End: j.keys.Order(id, level, end)}
		pairs, _, err := r.GetRange(ctx, span, store.RangeOptions{Limit: limit})
		ids := make([]mapreduce.UnitID, len(pairs))
		for i, kv := range pairs {
			ids[i] = mapreduce.UnitID(kv.Value)
		}
		return ids, err
	}
	ctl, err := j.readControl(ctx, r, id)
	if err != nil {
		return nil, err
	}
	l := levelAt(ctl, level)
	var ids []mapreduce.UnitID
	for i := from; i < min(l.GetUnits(), end) && len(ids) < limit; i++ {
		ids = append(ids, unitAt(l, i))
	}
	return ids, nil
}
