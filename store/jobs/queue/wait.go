package queue

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// A tree is the reduces of a job as changes find them: each waits for the units below it.
type tree struct{ *Changes }

func treeOf(changes *Changes) tree { return tree{changes} }

// NoteParent remembers the reduce that waits for u.
func (changes *Changes) NoteParent(u *storagev1.Unit) {
	if u.Parent > 0 {
		changes.Told = append(changes.Told, records.WaitRef{Level: u.Level + 1, Index: u.Parent - 1})
	}
}

// tellParent adds the end of u to the Waiting of the reduce above it. It does not read
// the Waiting, so units of one group that end together do not conflict. Unblock reads it
// when this transaction is durable.
func (t tree) tellParent(ctx context.Context, u *storagev1.Unit, n keys.Waiting) error {
	if u.Parent == 0 {
		return nil
	}
	if t.Ctl.TreeTop == 0 {
		// The tree is being planned again, because a document that could not
		// be parsed is tried again. What is planned counts u as it was.
		var cursor storagev1.Plan
		if _, err := records.Read(ctx, t.Tx, t.Keys.Plans(t.Job).Cursor(1), &cursor); err != nil || u.Index >= cursor.Cursor {
			return err
		}
	}

	t.Tx.Add(t.Keys.Queues(t.Job).Wait(u.Level+1, u.Parent-1), int64(n))
	t.NoteParent(u)
	return nil
}

// ReduceAt returns the id of a reduce of a tree.
func ReduceAt(ctl *storagev1.Ctl, r records.WaitRef) mapreduce.UnitID {
	return records.UnitAt(records.LevelAt(ctl, r.Level), r.Index)
}

// ReleaseReduce ends the waiting of one reduce. It returns where it may be claimed, or
// nil if it was let go before or has ended.
func (changes *Changes) ReleaseReduce(ctx context.Context, r records.WaitRef) (*records.Candidate, error) {
	w, found, err := treeOf(changes).readWaits(ctx, r)
	skips := w.Survivors() == 0
	if err != nil || !found || w.Left() > 0 || w >= keys.LetGo && !skips {
		return nil, err
	}

	u, err := treeOf(changes).readReduce(ctx, r)
	if err != nil {
		return nil, err
	}
	if w >= keys.LetGo { // and it was skipped
		changes.NoteParent(u)
		return nil, nil
	}

	if mapreduce.UnitState(u.Status) != mapreduce.Blocked {
		return nil, records.CorruptError(changes.Keys.Job(changes.Job).Unit(mapreduce.UnitID(u.UnitId)), "unit %s of %s is %s, and was not let go", u.UnitId, changes.Job, mapreduce.UnitState(u.Status))
	}

	treeOf(changes).setWaits(r, w|keys.LetGo)
	if skips {
		return nil, treeOf(changes).skipReduce(ctx, u)
	}

	changes.Units.Enqueue(changes.Tx, changes.Job, u, keys.ClassNew)
	changes.Units.Set(changes.Tx, changes.Job, u)
	return records.CandidateOf(u), nil
}

// skipReduce fails a reduce that has nothing to reduce.
func (t tree) skipReduce(ctx context.Context, u *storagev1.Unit) error {
	why := "skipped: none of its inputs has a result"

	first, err := t.Units.In(ctx, t.Tx.Snapshot(), t.Job, u.Inputs.GetLevel(), u.Inputs.GetFirst(), u.Inputs.GetEnd(), 1)
	if err != nil {
		return err
	}
	if len(first) > 0 && len(first[0].Errors) > 0 {
		why += fmt.Sprintf("; the first, %s, failed: %s", first[0].UnitId, first[0].Errors[len(first[0].Errors)-1])
	}

	u.Errors = records.KeepErrors(nil, []string{why})
	if err := t.FailUnit(ctx, u); err != nil {
		return err
	}
	t.Units.Set(t.Tx, t.Job, u)
	return nil
}

func (t tree) readWaits(ctx context.Context, r records.WaitRef) (w keys.Waiting, found bool, err error) {
	v, err := t.Tx.Get(ctx, t.Keys.Queues(t.Job).Wait(r.Level, r.Index))
	return keys.Waiting(records.DecodeCount(v)), v != nil, err
}

func (t tree) setWaits(r records.WaitRef, w keys.Waiting) {
	t.Tx.Set(t.Keys.Queues(t.Job).Wait(r.Level, r.Index), binary.LittleEndian.AppendUint64(nil, uint64(w)))
}

func (t tree) readReduce(ctx context.Context, r records.WaitRef) (*storagev1.Unit, error) {
	name := ReduceAt(t.Ctl, r)
	u, err := t.Units.Read(ctx, t.Tx, t.Job, name)
	if err == nil && u == nil {
		err = records.CorruptError(t.Keys.Job(t.Job).Unit(name), "unit %s of %s is waited for, and is not there", name, t.Job)
	}
	return u, err
}

// reopenReduce makes the reduce above u wait for u again, since u is tried again or waits
// itself. If the reduce had ended, its output is dropped, and so are the outputs of the
// reduces above it.
func (t tree) reopenReduce(ctx context.Context, u *storagev1.Unit, had keys.Waiting) error {
	if u.Parent == 0 || t.Ctl.TreeTop == 0 {
		return nil
	}

	at := records.WaitRef{Level: u.Level + 1, Index: u.Parent - 1}
	w, _, err := t.readWaits(ctx, at)
	if err != nil {
		return err
	}

	w += keys.OneLeft - had
	// It had not been let go, so it only waits for one input more.
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
func (t tree) blockReduce(ctx context.Context, u *storagev1.Unit) error {
	var had keys.Waiting
	unit := mapreduce.UnitID(u.UnitId)
	state := mapreduce.UnitState(u.Status)

	switch {
	case u.Line.GetAnswered():
		t.clearLine(u) // it was about other inputs
	case u.Line != nil:
		return LineOpenError(t.Job, u)
	}

	switch state {
	case mapreduce.Processing:
		return &errs.Error{
			Kind: errs.Unavailable, Reason: records.UnitsRunning, RetryAfter: time.Second,
			Message: fmt.Sprintf("unit %s of job %s still runs", unit, t.Job),
		}
	case mapreduce.Pending:
		t.Units.Dequeue(t.Tx, t.Job, u)
	case mapreduce.UnitComplete:
		had = keys.OneSurvivor
		t.Add(keys.Completed, u.Level, -1)
		t.Add(keys.Size, u.Level, -u.Result.GetSize())
		t.ended.ReopenedUnits = append(t.ended.ReopenedUnits, newOutcome(u, u.Result.GetSha256(), mapreduce.Tokens{}))
		t.Tx.ClearRange(t.Keys.Outputs(t.Job).Results(unit))
	case mapreduce.UnitFailed:
		t.Add(keys.Failed, u.Level, -1)
		t.Tx.Clear(t.Keys.Queues(t.Job).Failed(u.Level, unit))
	default:
		return records.CorruptError(t.Keys.Job(t.Job).Unit(unit), "unit %s of %s is %s, and was let go", unit, t.Job, state)
	}

	// Its attempts go on being counted: a late report of one must not be taken
	// for that of the next.
	u.Status, u.Result, u.Session, u.Claim, u.Reporter = uint32(mapreduce.Blocked), nil, "", "", ""
	u.Failures, u.Kills, u.Returns, u.Parks, u.Started, u.Errors, u.Put = 0, 0, 0, 0, false, nil, nil
	u.Queue = &storagev1.Queue{Shard: u.Queue.GetShard()}

	if u.Woken != "" { // by an answer that was about other inputs
		u.Woken = ""
		t.Tx.Clear(t.Keys.Queues(t.Job).Woken(unit))
	}

	t.Units.ClearJournal(t.Tx, t.Job, u)
	t.Units.ClearEvidence(t.Tx, t.Job, u)
	t.Units.Set(t.Tx, t.Job, u)

	if !state.Ended() {
		return nil
	}
	return t.reopenReduce(ctx, u, had)
}
