package batches

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// Rescue has lines of a job that runs asked in real time, so that no more than most wait for batches. Lines
// that are in none are answered with that, as many as one transaction takes. If these are too few, batches are
// marked at once to be ended, the last first: whoever sees to one cancels it, and its lines are answered once its
// vendor says what became of them. Changed says that there may be more to do.
func (st *Store) Rescue(ctx context.Context, id mapreduce.JobID, most int64) (*Result, error) {
	var out *Result
	err := st.db.Update(ctx, failpoint.Rescue, func(tx store.Tx) error {
		out = new(Result)
		ctl, err := st.Jobs.Control(ctx, tx, id)
		if err != nil || !mapreduce.JobState(ctl.State).Running() {
			return err
		}

		all, err := st.readBatches(ctx, tx, id)
		if err != nil {
			return err
		}
		counts, err := st.Jobs.Counters(ctx, tx.Snapshot(), id)
		if err != nil {
			return err
		}
		open := counts.SumLevels(keys.LinesOpen) - endingLines(all)
		excess := open - most
		if excess <= 0 {
			return nil
		}

		// To end a batch takes its vendor minutes, which are not to pass before the others are answered.
		waiting := open - heldLines(all)
		more := excess - waiting
		if more > 0 {
			st.endBatches(tx, id, all, more)
			excess = waiting
		}
		answered, err := st.answerWaiting(ctx, tx, id, ctl, excess, out)
		out.Changed = answered > 0 || more > 0
		return err
	})
	return out, err
}

// endingLines is how many lines of batches are not answered that are being ended.
func endingLines(all []*storagev1.Batch) (lines int64) {
	for _, b := range all {
		if b.Ending {
			lines += b.Lines - b.Answered
		}
	}
	return lines
}

// heldLines is how many lines of batches are not answered that are not being ended.
func heldLines(all []*storagev1.Batch) (lines int64) {
	for _, b := range all {
		if !b.Ending {
			lines += b.Lines - b.Answered
		}
	}
	return lines
}

// answerWaiting answers lines that are in no batch, most at most, and as many as one transaction takes. It returns
// how many.
func (st *Store) answerWaiting(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, most int64, out *Result) (int, error) {
	if most <= 0 {
		return 0, nil
	}
	pairs, _, err := tx.GetRange(ctx, st.Keys.Batches(id).AllBatchable(), store.RangeOptions{Limit: int(min(most, protocol.MaxReplies))})
	if err != nil || len(pairs) == 0 {
		return 0, err
	}

	changes := queue.NewChanges(st.Records, tx, id, ctl)
	for _, kv := range pairs {
		unit, err := st.Units.OfKey(kv.Key)
		if err != nil {
			return 0, err
		}
		tx.Clear(kv.Key)
		reply := protocol.LineReply{Outcome: protocol.LineExpired, Error: "it was in no batch when too little time was left until the deadline"}
		if err := st.answer(ctx, changes, unit, "", &reply, out); err != nil {
			return 0, err
		}
	}
	if len(out.Woken) > 0 {
		st.Jobs.WakeOthers(tx)
	}
	changes.Record()
	out.Charges, out.Tenant = changes.Charges(), changes.Tenant()
	return len(pairs), nil
}

// endBatches marks batches to be ended, the last first, until so many lines are in those.
func (st *Store) endBatches(tx store.Tx, id mapreduce.JobID, all []*storagev1.Batch, lines int64) {
	for i := len(all) - 1; i >= 0 && lines > 0; i-- {
		b := all[i]
		if b.Ending || b.Lines == b.Answered {
			continue
		}
		b.Ending, b.Filling = true, false
		lines -= b.Lines - b.Answered
		tx.Set(st.Keys.Batches(id).Batch(b.Number), records.Encode(b))
	}
	st.Jobs.WakeOthers(tx)
}

// Open returns how many lines of a job wait, in a batch that is not being ended or in none.
func (st *Store) Open(ctx context.Context, id mapreduce.JobID) (lines int64, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		all, err := st.readBatches(ctx, tx.Snapshot(), id)
		if err != nil {
			return err
		}
		counts, err := st.Jobs.Counters(ctx, tx.Snapshot(), id)
		lines = counts.SumLevels(keys.LinesOpen) - endingLines(all)
		return err
	})
	return lines, err
}
