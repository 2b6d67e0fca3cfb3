package batches

import (
	"context"
	"slices"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Withdraw takes back the lines of a job that does not run which no vendor has, of units of a level and above: what these
// read is to be made anew, and nobody begins a batch while the job does not run. Batches that nobody has begun are taken
// apart for it. The units are let go, so those that are kept put their lines again. It returns errs.Aborted if the job runs.
func (st *Store) Withdraw(ctx context.Context, id mapreduce.JobID, level int64) error {
	for more := true; more; {
		err := st.db.Update(ctx, failpoint.Resume, func(tx store.Tx) (err error) {
			more, err = (withdrawals{st}).takeApart(ctx, tx, id)
			return err
		})
		if err != nil {
			return err
		}
	}

	rest := st.Keys.Batches(id).AllBatchable()
	for more := true; more; {
		var next store.Range // what is left behind this step
		err := st.db.Update(ctx, failpoint.Resume, func(tx store.Tx) (err error) {
			next, more, err = (withdrawals{st}).withdrawSome(ctx, tx, id, level, rest)
			return err
		})
		if err != nil {
			return err
		}
		rest = next
	}
	return nil
}

// Withdrawals take lines and batches back.
type withdrawals struct{ *Store }

// stopped reads a job that is not to run.
func (st withdrawals) stopped(ctx context.Context, tx store.Tx, id mapreduce.JobID) (*storagev1.Ctl, error) {
	ctl, err := st.Jobs.Control(ctx, tx, id)
	if err == nil && mapreduce.JobState(ctl.State).Running() {
		err = errs.New(errs.Aborted, "job %s is being changed by another request; try again", id)
	}
	return ctl, err
}

// takeApart has lines of the first batch that nobody has begun wait for another one, as many as one transaction takes, and
// removes a batch that has none any more. It reports whether there may be more to do.
func (st withdrawals) takeApart(ctx context.Context, tx store.Tx, id mapreduce.JobID) (more bool, err error) {
	ctl, err := st.stopped(ctx, tx, id)
	if err != nil {
		return false, err
	}
	all, err := st.readBatches(ctx, tx, id)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(all, func(b *storagev1.Batch) bool { return protocol.BatchState(b.State) == protocol.BatchPlanned })
	if i < 0 {
		return false, nil
	}

	b, key := all[i], st.Keys.Batches(id).Batch(all[i].Number)
	changes := queue.NewChanges(st.Records, tx, id, ctl)
	left, err := reports(st).takeRest(ctx, changes, b, &protocol.BatchReport{Rest: protocol.LineAgain}, new(Result))
	if err != nil {
		return false, err
	}
	if left {
		tx.Set(key, records.Encode(b))
	} else {
		tx.Clear(key)
	}
	changes.Record()
	return true, nil
}

// withdrawSome takes back lines of units of a level and above that are in no batch, as many of rest as one transaction
// takes. It returns what is behind these, and whether that is anything.
func (st withdrawals) withdrawSome(ctx context.Context, tx store.Tx, id mapreduce.JobID, level int64, rest store.Range) (next store.Range, more bool, err error) {
	ctl, err := st.stopped(ctx, tx, id)
	if err != nil {
		return rest, false, err
	}
	pairs, more, err := tx.GetRange(ctx, rest, store.RangeOptions{Limit: protocol.MaxReplies})
	if err != nil {
		return rest, false, err
	}

	changes := queue.NewChanges(st.Records, tx, id, ctl)
	for _, kv := range pairs {
		rest.Begin = store.Single(kv.Key).End
		unit, err := st.Units.OfKey(kv.Key)
		if err != nil {
			return rest, false, err
		}
		u, err := st.Units.Read(ctx, tx, id, unit)
		if err != nil {
			return rest, false, err
		}
		if u == nil || u.Line == nil || u.Level < level {
			continue
		}
		if err := st.withdraw(ctx, changes, u); err != nil {
			return rest, false, err
		}
	}
	changes.Record()
	return rest, more, nil
}

// withdraw takes back the line of a unit, which is in no batch, and what it reserved.
func (st withdrawals) withdraw(ctx context.Context, changes *queue.Changes, u *storagev1.Unit) error {
	line := u.Line
	parked, err := st.Units.IsParkedUnder(ctx, changes.Tx, changes.Job, u, protocol.LineHandle(line.Key))
	if err != nil {
		return err
	}
	if err := changes.WithdrawLine(ctx, u); err != nil {
		return err
	}

	if parked {
		st.Units.Release(changes.Tx, changes.Job, u)
	} else {
		st.Units.Set(changes.Tx, changes.Job, u)
	}
	return st.nodes.TakeUnspent(ctx, changes.Tx, changes.Job, mapreduce.NodeID(line.Node), line.Reserved)
}
