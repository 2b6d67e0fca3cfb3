package queue

import (
	"bytes"
	"context"
	"crypto/sha256"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// openLine has u wait for a batch to answer its line, and keeps reserved what that may cost of what
// the attempt has not spent. It reports whether there is something to wait for: not of a line that
// was answered meanwhile, or that is not there.
func (changes *Changes) openLine(ctx context.Context, u *storagev1.Unit, p *mapreduce.Parking, unspent int64, s *Settled) (waits bool, err error) {
	unit, all := mapreduce.UnitID(u.UnitId), changes.Keys.Batches(changes.Job)
	var asked storagev1.Asked
	found, err := records.Read(ctx, changes.Tx, all.Asked(unit), &asked)
	if err != nil || !found || !bytes.Equal(asked.Key, p.Line) {
		return false, err
	}

	if u.Line != nil && bytes.Equal(u.Line.Key, p.Line) {
		return !u.Line.Answered, nil // an earlier attempt has opened it
	}

	owner := mapreduce.NodeID(u.Node)
	if owner == "" {
		owner = changes.Node
	}
	s.Kept = min(max(0, p.Kept), unspent)
	u.Line = &storagev1.Line{Key: asked.Key, Reserved: s.Kept, Node: string(owner), Asked: asked.Length}

	changes.AddFor(owner, keys.Reserved, 0, s.Kept)
	changes.Add(keys.LinesOpen, u.Level, 1)
	changes.Tx.Set(all.Batchable(unit), nil)
	changes.Tx.Set(all.Batching(), nil)
	return true, nil
}

// AnswerLine settles what a batch made of the line of u, which is open, and keeps the reply, whose
// encoded form is data, for the next attempt. The model that was asked is "provider/model". It returns where the unit waits, if it was parked for
// that, and what is left of what was reserved. The caller writes the unit.
func (changes *Changes) AnswerLine(ctx context.Context, u *storagev1.Unit, model string, r *protocol.LineReply, data []byte) (woken *records.Candidate, unspent int64, err error) {
	line := u.Line
	owner := mapreduce.NodeID(line.Node)
	tokens, cost, unpriced := r.Tokens, r.CostMicros, r.Unpriced
	switch in := records.CurrencyOf(changes.Ctl); {
	case !r.Unmeasured:
	case in == mapreduce.InDollars:
		cost = line.Reserved
	default:
		tokens, unpriced = mapreduce.Tokens{In: line.Reserved}, line.Reserved
	}
	unspent = line.Reserved - records.CurrencyOf(changes.Ctl).Of(tokens, cost)

	changes.AddFor(owner, keys.Reserved, 0, -line.Reserved)
	changes.AddFor(owner, keys.TokensIn, 0, tokens.In)
	changes.AddFor(owner, keys.TokensOut, 0, tokens.Out)
	changes.AddFor(owner, keys.Cost, 0, cost)
	changes.Add(keys.LinesOpen, u.Level, -1)

	line.Reserved, line.Answered = 0, true
	u.TokensIn += tokens.In
	u.TokensOut += tokens.Out
	u.CostMicros += cost
	charge := mapreduce.Charge{Model: model, Tier: mapreduce.BatchTier, Tokens: tokens, CostMicros: cost, Unpriced: min(max(unpriced, 0), tokens.Total())}
	if r.Outcome == protocol.LineSucceeded {
		u.Calls++
		changes.AddFor(owner, keys.Calls, 0, 1)
		charge.Calls = 1
	}
	changes.charges = append(changes.charges, charge)
	changes.addSavings(u, owner, r.Savings)

	// Of a unit that has ended nobody will ask, but for one that failed, which a resume tries again.
	if state := mapreduce.UnitState(u.Status); state == mapreduce.UnitComplete || state == mapreduce.UnitCancelled {
		changes.clearLine(u)
		return nil, unspent, nil
	}

	sum := sha256.Sum256(data)
	line.Length, line.Sha256 = int64(len(data)), sum[:]
	changes.Units.SetReply(changes.Tx, changes.Job, mapreduce.UnitID(u.UnitId), data)

	q := Records{changes.Records}
	parked, err := q.Units.IsParkedUnder(ctx, changes.Tx, changes.Job, u, protocol.LineHandle(line.Key))
	if err != nil || !parked {
		return nil, unspent, err
	}
	q.Units.Release(changes.Tx, changes.Job, u)
	return records.CandidateOf(u), unspent, nil
}

// WithdrawLine ends the waiting of u for a batch, if its line is in none yet. The caller writes the unit.
func (changes *Changes) WithdrawLine(ctx context.Context, u *storagev1.Unit) error {
	if u.Line == nil || u.Line.Answered {
		return nil
	}

	var asked storagev1.Asked
	_, err := records.Read(ctx, changes.Tx, changes.Keys.Batches(changes.Job).Asked(mapreduce.UnitID(u.UnitId)), &asked)
	if err != nil || asked.Batch > 0 { // what it comes to is settled when the batch has ended
		return err
	}

	changes.AddFor(mapreduce.NodeID(u.Line.Node), keys.Reserved, 0, -u.Line.Reserved)
	changes.Add(keys.LinesOpen, u.Level, -1)
	changes.clearLine(u)
	return nil
}

// clearLine forgets the line of u, which is in no batch, and what became of it.
func (changes *Changes) clearLine(u *storagev1.Unit) {
	changes.Units.ClearAsked(changes.Tx, changes.Job, mapreduce.UnitID(u.UnitId), u.Line)
	u.Line = nil
}

// LineOpenError is why what a unit reads cannot change: a batch is to answer what it has asked.
func LineOpenError(id mapreduce.JobID, u *storagev1.Unit) error {
	return errs.New(errs.Precondition,
		"unit %s of job %s waits for a batch at the vendor of its model, and what it reads is to be made anew; resume the job once the batch has ended", u.UnitId, id)
}
