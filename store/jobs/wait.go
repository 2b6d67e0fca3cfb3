package jobs

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/keys"
)

// A WaitRef is a reduce of a tree that waits for its inputs.
type WaitRef struct{ Level, Index int64 }

// noteParent remembers the reduce that waits for u.
func (t *changes) noteParent(u *storagev1.Unit) {
	if u.Parent > 0 {
		t.told = append(t.told, WaitRef{u.Level + 1, u.Parent - 1})
	}
}

// tellParent adds the end of u to what the reduce above it waits for. Nobody has to
// read that here, so units of one group that end at once are in nobody's way;
// Unblock looks at it when this is durable.
func (t *changes) tellParent(ctx context.Context, u *storagev1.Unit, n keys.Waiting) error {
	if u.Parent == 0 {
		return nil
	}
	if t.ctl.TreeTop == 0 {
		// The tree is being planned again, because a document that could not
		// be parsed is tried again. What is planned counts u as it was.
		var cursor storagev1.Plan
		if _, err := read(ctx, t.tx, t.keys.Plan(t.job, 1), &cursor); err != nil || u.Index >= cursor.Cursor {
			return err
		}
	}
	t.tx.Add(t.keys.Wait(t.job, u.Level+1, u.Parent-1), int64(n))
	t.noteParent(u)
	return nil
}

// reduceAt returns the id of a reduce of a tree.
func reduceAt(ctl *storagev1.Ctl, r WaitRef) mapreduce.UnitID {
	return unitAt(levelAt(ctl, r.Level), r.Index)
}

// MaxUnblock is how many reduces Unblock takes at once.
const MaxUnblock = 200

// Unblock lets go those of some reduces whose inputs have all ended: into their
// queue, or if none of their inputs has an output, to their end. It returns
// those that may be claimed, and those that wait for one that has ended so, now or
// when it was let go before: by whichever node, or by this call, when nobody knew
// that it had committed. A reduce that still waits, or was let go before, stays as
// it is.
func (j *TurnsPart) Unblock(ctx context.Context, id mapreduce.JobID, refs []WaitRef) (ready []Candidate, told []WaitRef, err error) {
	err = j.db.update(ctx, failpoint.Unblock, func(tx store.Tx) error {
		ready, told = nil, nil
		ctl, err := j.readControl(ctx, tx, id)
		if err != nil || ctl.TreeTop == 0 || mapreduce.JobState(ctl.State) == mapreduce.JobCancelled {
			return err
		}
		due, err := j.dueReduces(ctx, tx, id, refs)
		if err != nil {
			return err
		}
		t := newChanges(j.Records, tx, id, ctl)
		for _, r := range due {
			c, err := t.releaseReduce(ctx, r)
			if err != nil {
				return err
			}
			if c != nil {
				ready = append(ready, *c)
			}
		}
		told = t.told
		t.recordTurn()
		return nil
	})
	return ready, told, err
}

// dueReduces returns those of refs whose inputs have all ended, once each. What they
// wait for is read by snapshot: their inputs end all the time.
func (j reduceWriter) dueReduces(ctx context.Context, tx store.Tx, id mapreduce.JobID, refs []WaitRef) ([]WaitRef, error) {
	var found []WaitRef
	ks := make([][]byte, len(refs))
	for i, r := range refs {
		ks[i] = j.keys.Wait(id, r.Level, r.Index)
	}
	values, err := tx.Snapshot().GetAll(ctx, ks)
	if err != nil {
		return nil, err
	}
	for i, v := range values {
		if v != nil && keys.Waiting(decodeCount(v)).Left() == 0 && !slices.Contains(found, refs[i]) {
			found = append(found, refs[i])
		}
	}
	return found, nil
}

// releaseReduce ends the waiting of one reduce. It returns where it may be claimed, or
// nil if it was let go before or has ended.
func (t *changes) releaseReduce(ctx context.Context, r WaitRef) (*Candidate, error) {
	w, found, err := t.readWaits(ctx, r)
	skips := w.Survivors() == 0
	if err != nil || !found || w.Left() > 0 || w >= keys.LetGo && !skips {
		return nil, err
	}
	u, err := t.readReduce(ctx, r)
	if err != nil {
		return nil, err
	}
	if w >= keys.LetGo { // and it was skipped
		t.noteParent(u)
		return nil, nil
	}
	if mapreduce.UnitState(u.Status) != mapreduce.Blocked {
		return nil, corruptError(t.keys.Unit(t.job, mapreduce.UnitID(u.UnitId)), "unit %s of %s is %s, and was not let go", u.UnitId, t.job, mapreduce.UnitState(u.Status))
	}
	t.setWaits(r, w|keys.LetGo)
	if skips {
		return nil, t.skipReduce(ctx, u)
	}
	t.enqueueUnit(t.tx, t.job, u, keys.ClassNew)
	t.setUnit(t.tx, t.job, u)
	return candidateOf(u), nil
}

// skipReduce fails a reduce that has nothing to reduce.
func (t *changes) skipReduce(ctx context.Context, u *storagev1.Unit) error {
	why := "skipped: none of its inputs has a result"
	first, err := t.unitsIn(ctx, t.tx.Snapshot(), t.job, u.Inputs.GetLevel(), u.Inputs.GetFirst(), u.Inputs.GetEnd(), 1)
	if err != nil {
		return err
	}
	if len(first) > 0 && len(first[0].Errors) > 0 {
		why += fmt.Sprintf("; the first, %s, failed: %s", first[0].UnitId, first[0].Errors[len(first[0].Errors)-1])
	}
	u.Errors = keepErrors(nil, []string{why})
	if err := t.failUnit(ctx, u); err != nil {
		return err
	}
	t.setUnit(t.tx, t.job, u)
	return nil
}

func (t *changes) readWaits(ctx context.Context, r WaitRef) (w keys.Waiting, found bool, err error) {
	v, err := t.tx.Get(ctx, t.keys.Wait(t.job, r.Level, r.Index))
	return keys.Waiting(decodeCount(v)), v != nil, err
}

func (t *changes) setWaits(r WaitRef, w keys.Waiting) {
	t.tx.Set(t.keys.Wait(t.job, r.Level, r.Index), binary.LittleEndian.AppendUint64(nil, uint64(w)))
}

func (t *changes) readReduce(ctx context.Context, r WaitRef) (*storagev1.Unit, error) {
	name := reduceAt(t.ctl, r)
	u, err := t.readUnit(ctx, t.tx, t.job, name)
	if err == nil && u == nil {
		err = corruptError(t.keys.Unit(t.job, name), "unit %s of %s is waited for, and is not there", name, t.job)
	}
	return u, err
}

// Forgotten returns reduces of a tree that wait for nothing any more, from one on
// and in order, at most limit of them: nodes died before they let them go.
func (j *TurnsPart) Forgotten(ctx context.Context, id mapreduce.JobID, from WaitRef, limit int) ([]WaitRef, error) {
	var found []WaitRef
	r := j.keys.Waits(id)
	r.Begin = j.keys.Wait(id, from.Level, from.Index)
	for more := true; more && len(found) < limit; {
		var page []store.KeyValue
		err := j.db.view(ctx, func(tx store.Tx) (err error) {
			page, more, err = tx.Snapshot().GetRange(ctx, r, store.RangeOptions{Limit: 5000})
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, kv := range page {
			r.Begin = store.Single(kv.Key).End
			if len(found) == limit || !keys.Waiting(decodeCount(kv.Value)).Due() {
				continue
			}
			at, err := j.waitRef(kv.Key)
			if err != nil {
				return nil, err
			}
			found = append(found, at)
		}
	}
	return found, nil
}

// waitRef returns the reduce whose inputs a key counts.
func (j *Records) waitRef(key []byte) (WaitRef, error) {
	_, rest, err := j.keys.Last(key)
	if err != nil {
		return WaitRef{}, err
	}
	rest.Skip() // the job
	at := WaitRef{Level: rest.Int(), Index: rest.Int()}
	return at, rest.Err()
}

// reopenReduce has the reduce above u wait for it again, u being tried again or waiting
// itself. What the reduce came to, if it had ended, counts no more, nor does what
// was made of that.
func (t *changes) reopenReduce(ctx context.Context, u *storagev1.Unit, had keys.Waiting) error {
	if u.Parent == 0 || t.ctl.TreeTop == 0 {
		return nil
	}
	at := WaitRef{u.Level + 1, u.Parent - 1}
	w, _, err := t.readWaits(ctx, at)
	if err != nil {
		return err
	}
	w += keys.OneLeft - had
	if w < keys.LetGo {
		t.setWaits(at, w)
		return nil
	}
	t.setWaits(at, w-keys.LetGo)
	above, err := t.readReduce(ctx, at)
	if err != nil {
		return err
	}
	return t.blockReduce(ctx, above)
}

// blockReduce makes a reduce wait that had been let go.
func (t *changes) blockReduce(ctx context.Context, u *storagev1.Unit) error {
	var had keys.Waiting
	unit := mapreduce.UnitID(u.UnitId)
	state := mapreduce.UnitState(u.Status)
	switch state {
	case mapreduce.Processing:
		return &errs.Error{
			Kind: errs.Unavailable, Reason: UnitsRunning, RetryAfter: time.Second,
			Message: fmt.Sprintf("unit %s of job %s still runs", unit, t.job),
		}
	case mapreduce.Pending:
		t.dequeueUnit(t.tx, t.job, u)
	case mapreduce.UnitComplete:
		had = keys.OneSurvivor
		t.add(keys.Completed, u.Level, -1)
		t.add(keys.Size, u.Level, -u.Result.GetSize())
		t.ended.ReopenedUnits = append(t.ended.ReopenedUnits, newOutcome(u, u.Result.GetSha256(), mapreduce.Tokens{}))
		t.tx.ClearRange(t.keys.Results(t.job, unit))
	case mapreduce.UnitFailed:
		t.add(keys.Failed, u.Level, -1)
		t.tx.Clear(t.keys.Failed(t.job, u.Level, unit))
	default:
		return corruptError(t.keys.Unit(t.job, unit), "unit %s of %s is %s, and was let go", unit, t.job, state)
	}
	// Its attempts go on being counted: a late report of one must not be taken
	// for that of the next.
	u.Status, u.Result, u.Session, u.Claim = uint32(mapreduce.Blocked), nil, "", ""
	u.Failures, u.Kills, u.Started, u.Errors, u.Put = 0, 0, false, nil, nil
	u.Queue = &storagev1.Queue{Shard: u.Queue.GetShard()}
	if u.Woken != "" { // by an answer that was about other inputs
		u.Woken = ""
		t.tx.Clear(t.keys.Woken(t.job, unit))
	}
	t.tx.ClearRange(t.keys.State(t.job, unit))
	t.setUnit(t.tx, t.job, u)
	if !state.Ended() {
		return nil
	}
	return t.reopenReduce(ctx, u, had)
}
