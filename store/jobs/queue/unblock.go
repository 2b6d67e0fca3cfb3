package queue

import (
	"context"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// MaxUnblock is how many reduces Unblock takes at once.
const MaxUnblock = 200

// Unblock lets go those of some reduces whose inputs have all ended: into their queue, or
// if none of their inputs has an output, to their end. It returns those that may be
// claimed, and the reduces above those that have ended so: by this call, by an earlier run
// of it that had committed, or by another node. A reduce that still waits, or was let go
// before, stays as it is.
func (st *Turns) Unblock(ctx context.Context, id mapreduce.JobID, refs []records.WaitRef) (ready []records.Candidate, told []records.WaitRef, err error) {
	err = st.db.Update(ctx, failpoint.Unblock, func(tx store.Tx) error {
		// An earlier run of the transaction may have filled these.
		ready, told = nil, nil
		ctl, err := st.Jobs.Control(ctx, tx, id)
		if err != nil || ctl.TreeTop == 0 || mapreduce.JobState(ctl.State) == mapreduce.JobCancelled {
			return err
		}

		due, err := st.dueReduces(ctx, tx, id, refs)
		if err != nil {
			return err
		}

		changes := NewChanges(st.db.Records(), tx, id, ctl)
		for _, r := range due {
			c, err := changes.ReleaseReduce(ctx, r)
			if err != nil {
				return err
			}
			if c != nil {
				ready = append(ready, *c)
			}
		}

		told = changes.Told
		changes.Record()
		return nil
	})

	return ready, told, err
}

// dueReduces returns those of refs whose inputs have all ended, once each. What they
// wait for is read by snapshot: their inputs end all the time.
func (rec Records) dueReduces(ctx context.Context, tx store.Tx, id mapreduce.JobID, refs []records.WaitRef) ([]records.WaitRef, error) {
	var found []records.WaitRef
	ks := make([][]byte, len(refs))
	for i, r := range refs {
		ks[i] = rec.Keys.Queues(id).Wait(r.Level, r.Index)
	}
	values, err := tx.Snapshot().GetAll(ctx, ks)
	if err != nil {
		return nil, err
	}

	for i, v := range values {
		if v != nil && keys.Waiting(records.DecodeCount(v)).Left() == 0 && !slices.Contains(found, refs[i]) {
			found = append(found, refs[i])
		}
	}

	return found, nil
}

// Forgotten returns reduces of a tree that wait for nothing any more, from one on
// and in order, at most limit of them: nodes died before they let them go.
func (st *Turns) Forgotten(ctx context.Context, id mapreduce.JobID, from records.WaitRef, limit int) ([]records.WaitRef, error) {
	var found []records.WaitRef
	r := st.Keys.Queues(id).Waits()
	r.Begin = st.Keys.Queues(id).Wait(from.Level, from.Index)

	// The list may be longer than one transaction can read, so each page has its own.
	for more := true; more && len(found) < limit; {
		var page []store.KeyValue
		err := st.db.View(ctx, func(tx store.Tx) (err error) {
			page, more, err = tx.Snapshot().GetRange(ctx, r, store.RangeOptions{Limit: 5000})
			return err
		})
		if err != nil {
			return nil, err
		}

		for _, kv := range page {
			r.Begin = store.Single(kv.Key).End
			if len(found) == limit || !keys.Waiting(records.DecodeCount(kv.Value)).Due() {
				continue
			}
			at, err := st.Units.WaitRef(kv.Key)
			if err != nil {
				return nil, err
			}
			found = append(found, at)
		}
	}

	return found, nil
}
