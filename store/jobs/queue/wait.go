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

// NoteParent remembers the reduce that waits for u.
func (changes *Changes) NoteParent(u *storagev1.Unit) {
	if u.Parent > 0 {
		changes.Told = append(changes.Told, records.WaitRef{Level: u.Level + 1, Index: u.Parent - 1})
	}
}

// tellParent adds the end of u to the Waiting of the reduce above it. It does not read
// the Waiting, so units of one group that end together do not conflict. Unblock reads it
// when this transaction is durable.
func (changes *Changes) tellParent(ctx context.Context, u *storagev1.Unit, n keys.Waiting) error {
	if u.Parent == 0 {
		return nil
	}
	if changes.Ctl.TreeTop == 0 {
		// The tree is being planned again, because a document that could not
		// be parsed is tried again. What is planned counts u as it was.
		var cursor storagev1.Plan
		if _, err := records.Read(ctx, changes.Tx, changes.Keys.Plans(changes.Job).Cursor(1), &cursor); err != nil || u.Index >= cursor.Cursor {
			return err
		}
	}

	changes.Tx.Add(changes.Keys.Queues(changes.Job).Wait(u.Level+1, u.Parent-1), int64(n))
	changes.NoteParent(u)
	return nil
}

// ReduceAt returns the id of a reduce of a tree.
func ReduceAt(ctl *storagev1.Ctl, r records.WaitRef) mapreduce.UnitID {
	return records.UnitAt(records.LevelAt(ctl, r.Level), r.Index)
}

// ReleaseReduce ends the waiting of one reduce. It returns where it may be claimed, or
// nil if it was let go before or has ended.
func (changes *Changes) ReleaseReduce(ctx context.Context, r records.WaitRef) (*records.Candidate, error) {
	w, found, err := changes.readWaits(ctx, r)
	skips := w.Survivors() == 0
	if err != nil || !found || w.Left() > 0 || w >= keys.LetGo && !skips {
		return nil, err
	}

	u, err := changes.readReduce(ctx, r)
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

	changes.setWaits(r, w|keys.LetGo)
	if skips {
		return nil, changes.skipReduce(ctx, u)
	}

	changes.Units.Enqueue(changes.Tx, changes.Job, u, keys.ClassNew)
	changes.Units.Set(changes.Tx, changes.Job, u)
	return records.CandidateOf(u), nil
}

// skipReduce fails a reduce that has nothing to reduce.
func (changes *Changes) skipReduce(ctx context.Context, u *storagev1.Unit) error {
	why := "skipped: none of its inputs has a result"

	first, err := changes.Units.In(ctx, changes.Tx.Snapshot(), changes.Job, u.Inputs.GetLevel(), u.Inputs.GetFirst(), u.Inputs.GetEnd(), 1)
	if err != nil {
		return err
	}
	if len(first) > 0 && len(first[0].Errors) > 0 {
		why += fmt.Sprintf("; the first, %s, failed: %s", first[0].UnitId, first[0].Errors[len(first[0].Errors)-1])
	}

	u.Errors = records.KeepErrors(nil, []string{why})
	if err := changes.FailUnit(ctx, u); err != nil {
		return err
	}
	changes.Units.Set(changes.Tx, changes.Job, u)
	return nil
}

func (changes *Changes) readWaits(ctx context.Context, r records.WaitRef) (w keys.Waiting, found bool, err error) {
	v, err := changes.Tx.Get(ctx, changes.Keys.Queues(changes.Job).Wait(r.Level, r.Index))
	return keys.Waiting(records.DecodeCount(v)), v != nil, err
}

func (changes *Changes) setWaits(r records.WaitRef, w keys.Waiting) {
	changes.Tx.Set(changes.Keys.Queues(changes.Job).Wait(r.Level, r.Index), binary.LittleEndian.AppendUint64(nil, uint64(w)))
}

func (changes *Changes) readReduce(ctx context.Context, r records.WaitRef) (*storagev1.Unit, error) {
	name := ReduceAt(changes.Ctl, r)
	u, err := changes.Units.Read(ctx, changes.Tx, changes.Job, name)
	if err == nil && u == nil {
		err = records.CorruptError(changes.Keys.Job(changes.Job).Unit(name), "unit %s of %s is waited for, and is not there", name, changes.Job)
	}
	return u, err
}

// reopenReduce makes the reduce above u wait for u again, since u is tried again or waits
// itself. If the reduce had ended, its output is dropped, and so are the outputs of the
// reduces above it.
func (changes *Changes) reopenReduce(ctx context.Context, u *storagev1.Unit, had keys.Waiting) error {
	if u.Parent == 0 || changes.Ctl.TreeTop == 0 {
		return nil
	}

	at := records.WaitRef{Level: u.Level + 1, Index: u.Parent - 1}
	w, _, err := changes.readWaits(ctx, at)
	if err != nil {
		return err
	}

	w += keys.OneLeft - had
	// It had not been let go, so it only waits for one input more.
	if w < keys.LetGo {
		changes.setWaits(at, w)
		return nil
	}

	changes.setWaits(at, w-keys.LetGo)
	above, err := changes.readReduce(ctx, at)
	if err != nil {
		return err
	}
	return changes.blockReduce(ctx, above)
}

// blockReduce makes a reduce wait that had been let go.
func (changes *Changes) blockReduce(ctx context.Context, u *storagev1.Unit) error {
	var had keys.Waiting
	unit := mapreduce.UnitID(u.UnitId)
	state := mapreduce.UnitState(u.Status)

	switch {
	case u.Line.GetAnswered():
		changes.clearLine(u) // it was about other inputs
	case u.Line != nil:
		return LineOpenError(changes.Job, u)
	}

	switch state {
	case mapreduce.Processing:
		return &errs.Error{
			Kind: errs.Unavailable, Reason: records.UnitsRunning, RetryAfter: time.Second,
			Message: fmt.Sprintf("unit %s of job %s still runs", unit, changes.Job),
		}
	case mapreduce.Pending:
		changes.Units.Dequeue(changes.Tx, changes.Job, u)
	case mapreduce.UnitComplete:
		had = keys.OneSurvivor
		changes.Add(keys.Completed, u.Level, -1)
		changes.Add(keys.Size, u.Level, -u.Result.GetSize())
		changes.ended.ReopenedUnits = append(changes.ended.ReopenedUnits, newOutcome(u, u.Result.GetSha256(), mapreduce.Tokens{}))
		changes.Tx.ClearRange(changes.Keys.Outputs(changes.Job).Results(unit))
	case mapreduce.UnitFailed:
		changes.Add(keys.Failed, u.Level, -1)
		changes.Tx.Clear(changes.Keys.Queues(changes.Job).Failed(u.Level, unit))
	default:
		return records.CorruptError(changes.Keys.Job(changes.Job).Unit(unit), "unit %s of %s is %s, and was let go", unit, changes.Job, state)
	}

	// Its attempts go on being counted: a late report of one must not be taken
	// for that of the next.
	u.Status, u.Result, u.Session, u.Claim, u.Reporter = uint32(mapreduce.Blocked), nil, "", "", ""
	u.Failures, u.Kills, u.Returns, u.Parks, u.Started, u.Errors, u.Put = 0, 0, 0, 0, false, nil, nil
	u.Queue = &storagev1.Queue{Shard: u.Queue.GetShard()}

	if u.Woken != "" { // by an answer that was about other inputs
		u.Woken = ""
		changes.Tx.Clear(changes.Keys.Queues(changes.Job).Woken(unit))
	}

	changes.Units.ClearJournal(changes.Tx, changes.Job, u)
	changes.Units.ClearEvidence(changes.Tx, changes.Job, u)
	changes.Units.Set(changes.Tx, changes.Job, u)

	if !state.Ended() {
		return nil
	}
	return changes.reopenReduce(ctx, u, had)
}
