package review

import (
	"context"
	"fmt"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A Waiting is a unit that waits for a person.
type Waiting struct {
	Unit   mapreduce.UnitID
	Index  int64  // of a map unit
	Handle string // that it is parked under
	// Answer returns what wakes the unit, given all decisions about its records, those about one value in
	// order; nil while values wait that nobody has decided about. It may be called again.
	Answer func(all []*Decision) ([]byte, error)
}

// DecideWaiting adds a decision about a value of the output that a unit waits with, and wakes the unit if it
// was the last one. It returns where the unit waits to be claimed then. These things might happen:
//  1. the decision: it is stored, now or by an earlier call with the same request;
//  2. errs.NotFound: there is no such job;
//  3. errs.Aborted: the unit waits no more, or for something else; errs.Precondition: the job has ended;
//  4. errs.Exhausted: there are as many decisions about the value as are kept;
//  5. the error of Answer.
func (st *Store) DecideWaiting(ctx context.Context, id mapreduce.JobID, w Waiting, d *Decision) (kept *Decision, woken *records.Candidate, err error) {
	err = st.db.Update(ctx, failpoint.Decide, func(tx store.Tx) error {
		kept, woken = nil, nil
		ctl, err := st.Jobs.Control(ctx, tx, id)
		if err != nil {
			return err
		}
		u, err := st.Units.Read(ctx, tx, id, w.Unit)
		if err != nil {
			return err
		}
		parked, err := st.Units.IsParkedUnder(ctx, tx, id, u, w.Handle)
		if err != nil {
			return err
		}

		// A decision that was stored before counts whatever became of the unit since.
		var added bool
		if kept, added, err = st.next(ctx, tx, id, d); err != nil {
			return err
		}
		switch {
		case !parked && added:
			return errs.New(errs.Aborted, "unit %s of job %s waits no more for what was decided; look at the value again", w.Unit, id)
		case !parked && u != nil && u.Woken == w.Handle && records.IsClaimable(u):
			woken = records.CandidateOf(u)
			return nil
		case !added:
			return nil
		case mapreduce.JobState(ctl.State).Ended(): // its units stay as they were, and nobody runs them
			return records.WrongState("review", id, mapreduce.JobState(ctl.State))
		}

		all, err := st.within(ctx, tx, id, st.Keys.Decisions(id).OfUnit(w.Index))
		if err != nil {
			return err
		}
		answer, err := w.Answer(append(all, kept))
		if err != nil {
			return err
		}
		if answer == nil {
			st.add(ctx, tx, id, kept, "")
			return nil
		}
		st.add(ctx, tx, id, kept, fmt.Sprintf("; unit %s goes on, as all its values are decided", w.Unit))
		woken = st.wake(tx, id, u, &storagev1.WakeCall{Handle: w.Handle, Answer: answer})
		return nil
	})
	return kept, woken, err
}

// An Overdue is a unit whose time to wait is over.
type Overdue struct {
	Waiting
	Attempt int64 // that parked it: it may wait again by now
}

// MaxOverdue bounds the units that EndWaits takes at once: what was decided about all of them fits a transaction.
const MaxOverdue = 32

// EndWaits wakes units whose time to wait is over, with the answers that these give to the decisions that there are. It
// returns where they wait to be claimed then; those that do not wait there are left out.
func (st *Store) EndWaits(ctx context.Context, id mapreduce.JobID, units []Overdue) (woken []records.Candidate, err error) {
	err = st.db.Update(ctx, failpoint.Wakeup, func(tx store.Tx) error {
		woken = nil
		ctl, err := st.Jobs.Control(ctx, tx, id)
		if err != nil || mapreduce.JobState(ctl.State).Ended() { // then its units stay as they were
			return err
		}

		ended := false
		for i := range units {
			at, now, err := st.endWait(ctx, tx, id, &units[i])
			if err != nil {
				return err
			}
			if ended = ended || now; at != nil {
				woken = append(woken, *at)
			}
		}
		if ended {
			st.Jobs.WakeOthers(tx)
		}
		return nil
	})
	return woken, err
}

// endWait wakes one unit. It returns where the unit waits to be claimed, nil if it does not, and whether it was woken now.
func (st *Store) endWait(ctx context.Context, tx store.Tx, id mapreduce.JobID, w *Overdue) (woken *records.Candidate, now bool, err error) {
	u, err := st.Units.Read(ctx, tx, id, w.Unit)
	if err != nil {
		return nil, false, err
	}
	parked, err := st.Units.IsParkedUnder(ctx, tx, id, u, w.Handle)
	switch {
	case err != nil:
		return nil, false, err
	case parked && u.Attempt == w.Attempt:
	case u != nil && u.Woken == w.Handle && records.IsClaimable(u): // this transaction ran before, or somebody has decided
		return records.CandidateOf(u), false, nil
	default:
		return nil, false, nil
	}

	all, err := st.within(ctx, tx, id, st.Keys.Decisions(id).OfUnit(w.Index))
	if err != nil {
		return nil, false, err
	}
	answer, err := w.Answer(all)
	if err != nil {
		return nil, false, err
	}
	st.Jobs.AddCheckpoint(tx, id, &storagev1.Checkpoint{
		Kind: uint32(mapreduce.EventWoken), Level: u.Level, Message: records.ClipText(fmt.Sprintf("unit %s goes on, as the time in which its values were to be decided is over", w.Unit)),
	})
	return st.wake(tx, id, u, &storagev1.WakeCall{Handle: w.Handle, Answer: answer, Over: true}), true, nil
}

// wake lets a parked unit go on with an answer.
func (st *Store) wake(tx store.Tx, id mapreduce.JobID, u *storagev1.Unit, call *storagev1.WakeCall) *records.Candidate {
	u.Woken = call.Handle
	tx.Set(st.Keys.Queues(id).Woken(mapreduce.UnitID(u.UnitId)), records.Encode(call))
	st.Units.Release(tx, id, u)
	return records.CandidateOf(u)
}

// OfUnit returns all decisions about records of a map unit, by its index, in the order of the records.
func (st *Store) OfUnit(ctx context.Context, id mapreduce.JobID, index int64) (all []*Decision, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		all, err = st.within(ctx, tx.Snapshot(), id, st.Keys.Decisions(id).OfUnit(index))
		return err
	})
	return all, err
}

// Parked returns parked units of a job with the handles that they wait under, behind the unit after: at
// most limit of them. More says whether others follow.
func (st *Store) Parked(ctx context.Context, id mapreduce.JobID, after mapreduce.UnitID, limit int) (units []ParkedUnit, more bool, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		units = nil
		r := tx.Snapshot()
		if _, err := st.Jobs.Control(ctx, r, id); err != nil {
			return err
		}

		all := st.Keys.Queues(id).AllParked()
		if after != "" {
			all.Begin = store.Single(st.Keys.Queues(id).Parked(after)).End
		}
		var pairs []store.KeyValue
		if pairs, more, err = r.GetRange(ctx, all, store.RangeOptions{Limit: limit, Bytes: store.TargetTxSize}); err != nil {
			return err
		}

		for _, kv := range pairs {
			var p storagev1.Parked
			if err := records.Decode(kv.Key, kv.Value, &p); err != nil {
				return err
			}
			unit, err := st.Units.OfKey(kv.Key)
			if err != nil {
				return err
			}
			units = append(units, ParkedUnit{unit, p.Handle})
		}
		return nil
	})
	return units, more, err
}

// A ParkedUnit is a unit with the handle that it waits under.
type ParkedUnit struct {
	Unit   mapreduce.UnitID
	Handle string
}
