package causes

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A Pick says whether units that failed for a cause are meant. Nil means all units.
type Pick func(cause string) bool

// Only picks the units of one cause.
func Only(cause string) Pick { return func(c string) bool { return c == cause } }

// NotIgnored returns a pick of all failed units of a job whose cause is not ignored.
func (st *Store) NotIgnored(ctx context.Context, id mapreduce.JobID) (Pick, error) {
	var marks []*storagev1.CauseMark
	err := st.db.View(ctx, func(tx store.Tx) (err error) {
		marks, err = st.Marks(ctx, tx.Snapshot(), id)
		return err
	})

	ignored := make(map[string]bool)
	for _, m := range marks {
		if m.State == uint32(mapreduce.CauseIgnored) {
			ignored[m.Cause] = true
		}
	}
	if len(ignored) == 0 {
		return nil, err
	}
	return func(c string) bool { return !ignored[c] }, err
}

// Lowest returns the lowest level of a job with a failed unit that is picked, and whether there is one.
func (st *Store) Lowest(ctx context.Context, id mapreduce.JobID, pick Pick) (level int64, found bool, err error) {
	err = st.walk(ctx, id, st.Keys.Queues(id).AllFailed(), func(f failure) (more bool) {
		if found = f.picked(pick); found {
			level = f.level
		}
		return !found
	})
	return level, found, err
}

// AnyLevel stands for all levels of a job.
const AnyLevel = math.MinInt64

// FirstNotIgnored returns a failed unit of a level of a job, or of the lowest of any, whose cause is not ignored; nil if
// there is none.
func (st *Store) FirstNotIgnored(ctx context.Context, id mapreduce.JobID, level int64) (u *records.Unit, err error) {
	pick, err := st.NotIgnored(ctx, id)
	if err != nil {
		return nil, err
	}

	among := st.Keys.Queues(id).AllFailed()
	if level != AnyLevel {
		among = st.Keys.Queues(id).FailedLevel(level)
	}
	err = st.walk(ctx, id, among, func(f failure) (more bool) {
		if f.picked(pick) {
			u = records.UnitFrom(f.unit)
		}
		return u == nil
	})
	return u, err
}

// Count returns how many units of a job have failed for each of some causes, also of those for which none has.
func (st *Store) Count(ctx context.Context, id mapreduce.JobID, of map[string]bool) (map[string]int64, error) {
	counts := make(map[string]int64, len(of))
	for cause := range of {
		counts[cause] = 0
	}

	err := st.walk(ctx, id, st.Keys.Queues(id).AllFailed(), func(f failure) (more bool) {
		if f.unit != nil && of[f.cause] {
			counts[f.cause]++
		}
		return true
	})
	return counts, err
}

// Few returns the failed units of a job, in order of level and index, if there are at most so many: then none of its other
// units is looked at. Else it returns none.
func (st *Store) Few(ctx context.Context, id mapreduce.JobID, most int) (units []*records.Unit, few bool, err error) {
	all := st.Keys.Queues(id).AllFailed()
	err = st.db.View(ctx, func(tx store.Tx) error {
		pairs, _, err := tx.Snapshot().GetRange(ctx, all, store.RangeOptions{Limit: most + 1})
		few = len(pairs) <= most
		return err
	})
	if err != nil || !few {
		return nil, false, err
	}

	err = st.walk(ctx, id, all, func(f failure) (more bool) {
		if f.unit != nil {
			units = append(units, records.UnitFrom(f.unit))
		}
		return len(units) <= most // others may have failed meanwhile
	})
	if err != nil || len(units) > most {
		return nil, false, err
	}

	// The list has the units of a level by their ids.
	slices.SortFunc(units, func(a, b *records.Unit) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Index, b.Index))
	})
	return units, true, nil
}

// A failure is an entry of the list of a job's failed units.
type failure struct {
	entry store.KeyValue
	level int64
	unit  *storagev1.Unit // nil if it is not there
	cause string          // of the unit
}

// picked reports whether the unit is there, and picked.
func (f failure) picked(pick Pick) bool { return f.unit != nil && (pick == nil || pick(f.cause)) }

// walk calls do with each of a job's failed units whose entries are in rest, by level, until that wants no more.
func (st *Store) walk(ctx context.Context, id mapreduce.JobID, rest store.Range, do func(failure) (more bool)) error {
	for more := true; more; {
		var step []failure
		err := st.db.View(ctx, func(tx store.Tx) error {
			pairs, further, err := tx.Snapshot().GetRange(ctx, rest, store.RangeOptions{Limit: records.StepUnits})
			if err != nil {
				return err
			}
			more = further
			step, err = st.failures(ctx, tx.Snapshot(), id, pairs)
			return err
		})
		if err != nil {
			return err
		}

		for _, f := range step {
			if !do(f) {
				return nil
			}
			rest.Begin = store.Single(f.entry.Key).End
		}
	}
	return nil
}

// failures reads the units of entries of the list of failed units.
func (rec Records) failures(ctx context.Context, r store.Reader, id mapreduce.JobID, entries []store.KeyValue) ([]failure, error) {
	all, ks := make([]failure, len(entries)), make([][]byte, len(entries))
	for i, kv := range entries {
		_, name, err := rec.Keys.Last(kv.Key)
		if err != nil {
			return nil, err
		}
		name.Skip()
		all[i] = failure{entry: kv, level: name.Int()}
		ks[i] = rec.Keys.Job(id).Unit(mapreduce.UnitID(name.Text()))
	}

	units, err := records.ReadUnits(ctx, r, ks)
	for i, u := range units {
		if u != nil {
			all[i].unit, all[i].cause = u, mapreduce.CauseOfAll(u.Errors)
		}
	}
	return all, err
}

// Picked returns those entries of the list of a job's failed units whose units are picked.
func (rec Records) Picked(ctx context.Context, r store.Reader, id mapreduce.JobID, entries []store.KeyValue, pick Pick) (picked []store.KeyValue, err error) {
	if pick == nil || len(entries) == 0 {
		return entries, nil
	}

	all, err := rec.failures(ctx, r, id, entries)
	for _, f := range all {
		if f.picked(pick) {
			picked = append(picked, f.entry)
		}
	}
	return picked, err
}
