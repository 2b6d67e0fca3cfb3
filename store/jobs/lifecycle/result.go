package lifecycle

import (
	"context"
	"crypto/sha256"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// The result of a job is the output of the only unit of its last level. That of a
// small job is stored by the transaction that completes the job; of any other, the
// level is planned, its unit claimed, and its output put, as with other units.

// MaxSmallResult is how large a result may be that is stored with the end of its job,
// in bytes.
const MaxSmallResult = 8 * store.ChunkSize

// CompleteWith ends a job whose last level has ended and whose result is small. In the
// same transaction the unit of the result is planned, begun and complete.
func (l *Levels) CompleteWith(ctx context.Context, id mapreduce.JobID, epoch int64, result []byte) error {
	if len(result) > MaxSmallResult {
		return errs.New(errs.Internal, "a result of %d bytes is stored with the end of its job", len(result))
	}

	return l.db.Update(ctx, failpoint.Complete, func(tx store.Tx) error {
		ctl, err := l.Jobs.Control(ctx, tx, id)
		// Another node may have ended the job, or have planned the unit of its result.
		if err != nil || ctl.Epoch != epoch || !mapreduce.JobState(ctl.State).Running() || records.AtResult(ctl) {
			return err
		}

		p := &planner{LevelRecords: l.LevelRecords, tx: tx, id: id, ctl: ctl, next: resultPlan(ctl), room: 1}
		inputs, err := p.wholeSource(ctx)
		if err != nil {
			return err
		}

		u := &storagev1.Unit{
			UnitId: string(mapreduce.ResultUnit), Kind: uint32(mapreduce.KindResult), Level: p.next.Number, Stage: int64(p.next.Stage),
			Inputs: inputs, Status: uint32(mapreduce.UnitComplete), Attempt: 1, Result: l.storeSmall(tx, id, result),
		}

		l.Units.Set(tx, id, u)
		tx.Add(l.Keys.Job(id).Counter(keys.Claimed, 0, l.Node), 1)
		tx.Add(l.Keys.Job(id).Counter(keys.Completed, u.Level, l.Node), 1)

		ctl.Levels = append(ctl.Levels, p.next.ToStored())
		ctl.Level, ctl.State = u.Level, uint32(mapreduce.JobComplete)
		return l.Jobs.WriteControlWith(ctx, tx, id, ctl, &storagev1.Checkpoint{
			Message: "complete", CompletedUnits: []*storagev1.Outcome{{Unit: u.UnitId, Attempt: u.Attempt, Sha256: u.Result.Sha256, Level: u.Level}},
		})
	})
}

// storeSmall stores a result as the output of a first attempt.
func (l *Levels) storeSmall(tx store.Tx, id mapreduce.JobID, data []byte) *storagev1.Result {
	sum := sha256.Sum256(data)
	r := &storagev1.Result{Attempt: 1, Length: int64(len(data)), Sha256: sum[:]}
	if len(data) <= protocol.MaxInline {
		r.Inline = data
		return r
	}
	r.Chunks = records.ChunksOf(r.Length)
	l.Units.SetOutput(tx, id, mapreduce.ResultUnit, r.Attempt, 0, data)
	return r
}

// resultPlan returns the level that assembles the result, above the one that the job
// has come to.
func resultPlan(ctl *storagev1.Ctl) Plan {
	last := records.LevelFrom(records.LevelAt(ctl, ctl.Level))
	return Plan{
		Epoch: ctl.Epoch, Number: ctl.Level + 1, Kind: mapreduce.KindResult,
		Level: records.Level{Units: 1, Stage: last.Stage, Source: ctl.Level, Unit: mapreduce.ResultUnit, Phase: last.Phase, Result: true},
	}
}

// PlanResult plans the unit that assembles the result of a job whose last level has
// ended.
func (l *Levels) PlanResult(ctx context.Context, id mapreduce.JobID, epoch int64) error {
	var next Plan
	err := l.db.View(ctx, func(tx store.Tx) error {
		ctl, err := l.Jobs.Control(ctx, tx, id)
		if err == nil {
			next = resultPlan(ctl)
		}
		return err
	})

	if err != nil || next.Epoch != epoch {
		return err
	}

	_, _, err = l.PlanStep(ctx, id, next)
	return err
}
