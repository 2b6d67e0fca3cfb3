// Package causes keeps what people have said of the causes for which units of jobs failed, and finds the units of a cause.
//
// It keeps to this:
//   - A mark is stored, changed and cleared in one transaction with an event that says what was said, and by whom; but for
//     what a resume changes of it, whose event says that.
//   - At most mapreduce.MaxCauseMarks causes of a job are marked. A cause that is open again has no mark.
//   - A mark counts no unit that was tried again since: a resume takes these out before it tries the first of them, and
//     counts anew before the job goes on. So a unit that fails for a resolved cause shows. What was counted in one epoch of
//     the job is not put in another, and a resume goes on only with all marks counted that there are then.
//
// Of the operations on stored jobs it imports records alone.
package causes

import (
	"context"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Records reads and writes marks inside a transaction of its caller.
type Records struct{ *records.Records }

// A Store keeps marks, and finds failed units by their cause.
type Store struct {
	db *records.DB
	Records
}

// New returns the operations on the records of db.
func New(db *records.DB) *Store { return &Store{db, Records{db.Records()}} }

// Marks returns the marks of a job, in the order of their keys.
func (rec Records) Marks(ctx context.Context, r store.Reader, id mapreduce.JobID) ([]*storagev1.CauseMark, error) {
	pairs, _, err := r.GetRange(ctx, rec.Keys.Job(id).CauseMarks(), store.RangeOptions{Limit: mapreduce.MaxCauseMarks})
	if err != nil {
		return nil, err
	}

	all := make([]*storagev1.CauseMark, len(pairs))
	for i, kv := range pairs {
		all[i] = new(storagev1.CauseMark)
		if err := records.Decode(kv.Key, kv.Value, all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// MarkOf returns a mark as it is shown.
func MarkOf(m *storagev1.CauseMark) mapreduce.CauseMark {
	return mapreduce.CauseMark{
		Cause: m.Cause, State: mapreduce.CauseState(m.State), By: m.Principal, Time: time.UnixMicro(m.TimeMicros).UTC(), Units: m.Units,
	}
}

// Mark says of the units of a job that failed for a cause that they are in a state, for the caller of ctx. The units are
// counted before, so of a job that runs there may be more by then.
func (st *Store) Mark(ctx context.Context, id mapreduce.JobID, cause string, state mapreduce.CauseState) error {
	for {
		epoch, units, err := st.countAt(ctx, id, cause)
		if err != nil {
			return err
		}

		stale := false // a resume may have tried some of them again meanwhile, and they are counted anew
		err = st.db.Update(ctx, failpoint.Mark, func(tx store.Tx) error {
			// A deletion clears the control record, so nothing is written behind it.
			ctl, err := st.Jobs.Control(ctx, tx, id)
			if err != nil {
				return err
			}
			if stale = ctl.Epoch != epoch; stale {
				return nil
			}
			return st.mark(ctx, tx, id, &storagev1.CauseMark{Cause: cause, State: uint32(state), Units: units, TimeMicros: st.NowMicros()})
		})
		if err != nil || !stale {
			return err
		}
	}
}

// countAt returns how many units of a job have failed for a cause, and its epoch before they were counted.
func (st *Store) countAt(ctx context.Context, id mapreduce.JobID, cause string) (epoch, units int64, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		ctl, err := st.Jobs.Control(ctx, tx.Snapshot(), id)
		epoch = ctl.GetEpoch()
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	counts, err := st.Count(ctx, id, map[string]bool{cause: true})
	return epoch, counts[cause], err
}

// mark puts a mark in the place of that which its cause has, or clears that, with an event.
func (rec Records) mark(ctx context.Context, tx store.Tx, id mapreduce.JobID, m *storagev1.CauseMark) error {
	marks, err := rec.Marks(ctx, tx, id)
	if err != nil {
		return err
	}
	var before *storagev1.CauseMark
	for _, other := range marks {
		if other.Cause == m.Cause {
			before = other
		}
	}

	state := mapreduce.CauseState(m.State)
	switch {
	case state == mapreduce.CauseOpen && before == nil:
		return nil // as it is
	case state == mapreduce.CauseOpen:
		tx.Clear(rec.Keys.Job(id).CauseMark(m.Cause))
	case m.Units == 0:
		return errs.New(errs.Precondition, "no unit of job %s has failed for this cause", id)
	case before == nil && len(marks) >= mapreduce.MaxCauseMarks:
		return errs.New(errs.Exhausted, "%d causes of job %s are marked; no more are kept", len(marks), id)
	case before != nil && before.State == m.State && before.Units == m.Units:
		return nil // this call came before, or this transaction ran and nobody heard of it
	default:
		rec.put(ctx, tx, id, m)
	}

	rec.Jobs.AddCalled(ctx, tx, id, &storagev1.Checkpoint{
		Kind:    uint32(mapreduce.EventMarked),
		Message: records.ClipText(fmt.Sprintf("%s: %d units that failed for: %s", state, m.Units, m.Cause)),
	})
	rec.Jobs.WakeOthers(tx)
	return nil
}

// put writes a mark of the caller of ctx.
func (rec Records) put(ctx context.Context, tx store.Tx, id mapreduce.JobID, m *storagev1.CauseMark) {
	if by, found := mapreduce.ActorOf(ctx); found {
		m.Principal = by.Name
	}
	tx.Set(rec.Keys.Job(id).CauseMark(m.Cause), records.Encode(m))
}

// Retry takes out of the marks of a job the units that a resume tries again: all but those whose cause is ignored, or those
// that failed for one cause. That one is ignored no more.
func (rec Records) Retry(ctx context.Context, tx store.Tx, id mapreduce.JobID, cause string) error {
	return rec.change(ctx, tx, id, func(m *storagev1.CauseMark) (keep bool) {
		ignored := m.State == uint32(mapreduce.CauseIgnored)
		switch {
		case m.Cause == cause && ignored:
			return false
		case m.Cause == cause || cause == "" && !ignored:
			m.Units = 0
		}
		return true
	})
}

// Recount has the marks of a job count what is left of their units, given how many failed units of each cause there are:
// levels that a resume drops have failed units, too. Of an ignored cause all are counted. If counts lacks a cause that is
// marked, which may have been marked since, it changes nothing and returns the causes to count.
func (rec Records) Recount(ctx context.Context, tx store.Tx, id mapreduce.JobID, counts map[string]int64) (uncounted map[string]bool, err error) {
	marks, err := rec.Marks(ctx, tx, id)
	if err != nil {
		return nil, err
	}

	causes, whole := make(map[string]bool, len(marks)), true
	for _, m := range marks {
		_, counted := counts[m.Cause]
		causes[m.Cause], whole = true, whole && counted
	}
	if !whole {
		return causes, nil
	}

	return nil, rec.change(ctx, tx, id, func(m *storagev1.CauseMark) (keep bool) {
		if m.State == uint32(mapreduce.CauseIgnored) {
			m.Units = counts[m.Cause]
		} else {
			m.Units = min(m.Units, counts[m.Cause])
		}
		return true
	})
}

// change changes the marks of a job, and clears those that are not to be kept.
func (rec Records) change(ctx context.Context, tx store.Tx, id mapreduce.JobID, do func(*storagev1.CauseMark) (keep bool)) error {
	marks, err := rec.Marks(ctx, tx, id)
	for _, m := range marks {
		key := rec.Keys.Job(id).CauseMark(m.Cause)
		if do(m) {
			tx.Set(key, records.Encode(m))
		} else {
			tx.Clear(key)
		}
	}
	return err
}
