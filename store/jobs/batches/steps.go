package batches

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A Result is what a step has changed, beside batches.
type Result struct {
	Changed bool
	Woken   []records.Candidate // units that may be claimed
	Settled bool                // of a budget: there may be more to be granted
	Charges []mapreduce.Charge  // what lines took
	Tenant  mapreduce.TenantID  // whose the job is, if there are charges
	Ended   *Ended              // the batch that has ended; nil if none has that its vendor had
}

// Ended says how long its vendor took for a batch.
type Ended struct {
	Model string // "provider/model"
	Took  time.Duration
}

// Plan puts lines of a job that runs together in a batch, if that is due: see nextGroup. One transaction
// moves so many lines, so a large batch takes several. mark is drawn once for each, whatever becomes of the
// transaction; it is that of a batch that is begun by it. Lines that are too few for a batch of their
// vendor are answered: they are asked in real time. room says what the account of a provider may have of a model: no
// batch is larger than that. It may be nil.
func (st *Store) Plan(ctx context.Context, id mapreduce.JobID, mark string, hurry bool, room func(provider, model string) protocol.BatchRoom) (*Result, error) {
	var out *Result
	err := st.db.Update(ctx, failpoint.Group, func(tx store.Tx) error {
		out = new(Result)
		ctl, err := st.Jobs.Control(ctx, tx, id)
		if err != nil || !mapreduce.JobState(ctl.State).Running() {
			return err
		}

		before, err := st.readBatches(ctx, tx, id)
		if err != nil {
			return err
		}
		number, open := int64(1), []filling(nil)
		for _, b := range before {
			if out.Changed = b.Mark == mark; out.Changed {
				return nil // by an earlier run of this transaction
			}
			if number = b.Number + 1; isFilling(b) {
				open = append(open, filling{b.Number, b.Provider, b.Model, b.Lines, b.Bytes, b.Tokens})
			}
		}

		all, more, asked, err := (plans{st}).readWaiting(ctx, tx, id)
		if err != nil {
			return err
		}
		if room != nil {
			bound(all, room)
		}
		g := nextGroup(all, more, open, hurry)
		if g == nil {
			return nil
		}

		out.Changed = true
		if g.few {
			return (plans{st}).answerFew(ctx, tx, id, ctl, g, out)
		}
		b := &storagev1.Batch{Number: number, Mark: mark, Provider: g.into.provider, Model: g.into.model, State: uint32(protocol.BatchPlanned)}
		if i := slices.IndexFunc(before, func(b *storagev1.Batch) bool { return b.Number == g.into.number }); i >= 0 {
			b = before[i]
		}
		(plans{st}).fill(tx, id, b, g, asked)
		return nil
	})
	return out, err
}

// Plans put lines that wait together in batches.
type plans struct{ *Store }

// readWaiting returns lines of a job that are in no batch, in order, whether there are more, and their
// records. A line that another transaction changes meanwhile is a conflict; one that comes behind is none.
func (st plans) readWaiting(ctx context.Context, tx store.Tx, id mapreduce.JobID) ([]waiting, bool, map[mapreduce.UnitID]*storagev1.Asked, error) {
	of := st.Keys.Batches(id)
	pairs, more, err := tx.Snapshot().GetRange(ctx, of.AllBatchable(), store.RangeOptions{Limit: pageLines})
	if err != nil {
		return nil, false, nil, err
	}

	ks := make([][]byte, len(pairs))
	all := make([]waiting, 0, len(pairs))
	for i, kv := range pairs {
		unit, err := st.Units.OfKey(kv.Key)
		if err != nil {
			return nil, false, nil, err
		}
		ks[i] = of.Asked(unit)
		all = append(all, waiting{unit: unit})
		tx.AddReadConflict(store.Single(kv.Key))
	}

	values, err := tx.GetAll(ctx, ks)
	if err != nil {
		return nil, false, nil, err
	}
	asked := make(map[mapreduce.UnitID]*storagev1.Asked, len(values))
	for i, v := range values {
		a := new(storagev1.Asked)
		if v == nil {
			return nil, false, nil, records.CorruptError(ks[i], "unit %s waits for a batch, and what it has asked is not there", all[i].unit)
		}
		if err := records.Decode(ks[i], v, a); err != nil {
			return nil, false, nil, err
		}
		asked[all[i].unit] = a
		all[i].provider, all[i].model, all[i].size, all[i].tokens = a.Provider, a.Model, a.Size, a.Tokens
		all[i].mostLines, all[i].mostBytes, all[i].fewest = a.MostLines, a.MostBytes, a.Fewest
	}
	return all, more, asked, nil
}

// bound has no batch be larger than the room of its account, unless its vendor makes none of so few lines.
func bound(all []waiting, room func(provider, model string) protocol.BatchRoom) {
	for i := range all {
		w := &all[i]
		most := room(w.provider, w.model)
		if lines := max(most.Lines, w.fewest); most.Lines > 0 && (w.mostLines == 0 || lines < w.mostLines) {
			w.mostLines = lines
		}
		w.mostTokens = most.Tokens
	}
}

// fill stores a batch with the lines of a group behind those that it has.
func (st plans) fill(tx store.Tx, id mapreduce.JobID, b *storagev1.Batch, g *group, asked map[mapreduce.UnitID]*storagev1.Asked) {
	of := st.Keys.Batches(id)
	for i, w := range g.lines {
		a := asked[w.unit]
		a.Batch = b.Number
		tx.Set(of.Asked(w.unit), records.Encode(a))
		tx.Set(of.Line(b.Number, b.Lines+int64(i)), []byte(w.unit))
		tx.Clear(of.Batchable(w.unit))
	}

	b.Lines, b.Bytes, b.Filling = g.count(), g.into.bytes+g.bytes, !g.ends
	b.Tokens = g.into.tokens + g.tokens
	tx.Set(of.Batch(b.Number), records.Encode(b))
	tx.Set(of.Batching(), nil)
	if g.ends {
		st.Jobs.WakeOthers(tx) // whose workers may have the key of its vendor
	}
}

// answerFew answers lines that are too few for a batch, as many as one transaction takes.
func (st plans) answerFew(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, g *group, out *Result) error {
	changes := queue.NewChanges(st.Records, tx, id, ctl)

	lines := g.lines[:min(len(g.lines), protocol.MaxReplies)]
	for _, w := range lines {
		tx.Clear(st.Keys.Batches(id).Batchable(w.unit))
		reply := protocol.LineReply{Outcome: protocol.LineErrored, Error: "there are too few calls for a batch of their vendor"}
		if err := st.answer(ctx, changes, w.unit, "", &reply, out); err != nil {
			return err
		}
	}

	changes.Record()
	return nil
}

// answer settles what became of the line of a unit, which asked a model, "provider/model". One that is not open has been settled.
func (st *Store) answer(ctx context.Context, changes *queue.Changes, unit mapreduce.UnitID, model string, r *protocol.LineReply, out *Result) error {
	u, err := st.Units.Read(ctx, changes.Tx, changes.Job, unit)
	if err != nil || u == nil || u.Line == nil || u.Line.Answered {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}

	owner := mapreduce.NodeID(u.Line.Node)
	woken, unspent, err := changes.AnswerLine(ctx, u, model, r, data)
	if err != nil {
		return err
	}
	if woken != nil {
		out.Woken = append(out.Woken, *woken)
	}
	out.Settled = out.Settled || changes.Ctl.Budget > 0
	st.Units.Set(changes.Tx, changes.Job, u)
	return st.nodes.TakeUnspent(ctx, changes.Tx, changes.Job, owner, unspent)
}

// Take gives a batch to a session of this orchestrator to see to, unless another one that lives does.
// It reports whether the session has it, and the batch as it stands: no lines are added to it any more.
func (st *Store) Take(ctx context.Context, id mapreduce.JobID, number int64, session mapreduce.SessionID, epoch int64) (b protocol.Batch, taken bool, err error) {
	err = st.db.Update(ctx, failpoint.Take, func(tx store.Tx) error {
		taken = false
		place, err := st.find(ctx, tx, id, number)
		if err != nil || place.batch == nil {
			return err
		}
		stored := place.batch

		own, err := st.session(ctx, tx, session)
		if err != nil || own.GetNode() != string(st.Node) || own.GetEpoch() != epoch {
			return err // it is bound elsewhere, or has been declared dead
		}
		if holder := mapreduce.SessionID(stored.Holder); holder != session {
			other, err := st.session(ctx, tx, holder)
			if err != nil || other.GetNode() != "" {
				return err
			}
			stored.Holder, stored.Filling = string(session), false
			place.write(tx)
		}
		b, taken = describe(id, stored), true
		return nil
	})
	return b, taken, err
}

// session reads the record of a session; nil if it is gone.
func (st *Store) session(ctx context.Context, r store.Reader, id mapreduce.SessionID) (*storagev1.Session, error) {
	if id == "" {
		return nil, nil
	}
	s := new(storagev1.Session)
	found, err := records.Read(ctx, r, st.Keys.Nodes().Session(id), s)
	if !found {
		s = nil
	}
	return s, err
}

// Report takes what a session says of a batch that it sees to. These things might happen:
//  1. nil: all of it is stored, now or before;
//  2. errs.Precondition: the session does not see to the batch, or it is not one of that mark;
//  3. errs.Invalid: a batch cannot become that;
//  4. errs.Exhausted, with the reason errs.NoBatchRoom: it is begun, and the account has no room for it.
func (st *Store) Report(ctx context.Context, id mapreduce.JobID, number int64, session mapreduce.SessionID, account Account, r *protocol.BatchReport) (*Result, error) {
	all := &Result{}
	for {
		out, more, err := (reports{st}).report(ctx, id, number, session, account, r)
		if err != nil {
			return all, err
		}
		all.Charges, all.Tenant, all.Ended = append(all.Charges, out.Charges...), cmp.Or(out.Tenant, all.Tenant), out.Ended
		all.Woken, all.Settled, all.Changed = append(all.Woken, out.Woken...), all.Settled || out.Settled, true
		if !more {
			return all, nil
		}
	}
}

// Reports are what workers say of batches, as it is entered.
type reports struct{ *Store }

// report is one transaction of Report. Of a batch that is over, some of the lines may be left.
func (st reports) report(ctx context.Context, id mapreduce.JobID, number int64, session mapreduce.SessionID, account Account, r *protocol.BatchReport) (out *Result, more bool, err error) {
	now := st.NowMicros() // the same in each run
	gone := false         // it was there, so what finds it gone is this report
	err = st.db.Update(ctx, failpoint.Tell, func(tx store.Tx) error {
		out, more = new(Result), false
		place, err := st.find(ctx, tx, id, number)
		b := place.batch
		switch {
		case errs.KindOf(err) == errs.NotFound && gone && r.Over:
			return nil
		case err != nil:
			return err
		case b == nil && gone && r.Over:
			return nil
		case b == nil || b.Mark != r.Mark || b.Holder != string(session):
			return errs.New(errs.Precondition, "session %s does not see to batch %d of job %s", session, number, id)
		}

		gone = true
		if begins := protocol.BatchState(b.State) == protocol.BatchPlanned && r.State == protocol.BatchCreating; begins {
			if err := rooms(st).takeRoom(ctx, tx, id, b, account, now); err != nil {
				return err
			}
		}
		if err := st.move(b, r, now); err != nil {
			return err
		}
		if r.Over || r.State == protocol.BatchPlanned {
			rooms(st).leaveRoom(tx, id, b)
		}
		if place.orphan != nil { // whose lines are nobody's any more
			if place.write(tx); r.Over {
				tx.Clear(place.key)
			}
			return nil
		}

		changes := queue.NewChanges(st.Records, tx, id, place.ctl)
		if err := st.takeReplies(ctx, changes, b, r, out); err != nil {
			return err
		}
		if r.Over {
			if more, err = st.takeRest(ctx, changes, b, r, out); err != nil {
				return err
			}
		}
		if place.write(tx); r.Over && !more {
			out.Ended = endedOf(b, now)
			tx.Clear(place.key)
			if err := st.noteTurnaround(ctx, tx, b, place.ctl, out.Ended, now); err != nil {
				return err
			}
		}
		if len(out.Woken) > 0 {
			st.Jobs.WakeOthers(tx)
		}
		changes.Record()
		out.Charges, out.Tenant = changes.Charges(), changes.Tenant()
		return nil
	})
	return out, more, err
}

// endedOf returns how long a batch took that has ended now, from when it was first begun to be created. Clocks of
// two orchestrators tell that; nothing but measures rests on it.
func endedOf(b *storagev1.Batch, now int64) *Ended {
	if protocol.BatchState(b.State) != protocol.BatchCreated || b.CreatedMicros == 0 {
		return nil
	}
	return &Ended{Model: b.Provider + "/" + b.Model, Took: time.Duration(max(0, now-b.CreatedMicros)) * time.Microsecond}
}

// move enters how far a batch is.
func (st reports) move(b *storagev1.Batch, r *protocol.BatchReport, now int64) error {
	from, to := protocol.BatchState(b.State), r.State
	switch {
	case from == protocol.BatchPlanned && to == from: // it waits
		b.Trouble = records.ClipText(r.Trouble)
	case to == protocol.BatchUnknown || to == from && (to != protocol.BatchCreated || r.Vendor == b.Id):
		if r.Trouble != "" {
			b.Trouble = records.ClipText(r.Trouble)
		}
	case from == protocol.BatchPlanned && to == protocol.BatchCreating:
		b.CreatedMicros = cmp.Or(b.CreatedMicros, now)
	case from == protocol.BatchCreating && to == protocol.BatchPlanned:
		b.Tries++
		b.Trouble = records.ClipText(r.Trouble)
	case from == protocol.BatchCreating && to == protocol.BatchCreated && r.Vendor != "":
		b.Id, b.Trouble = r.Vendor, ""
	case from == protocol.BatchCreated && to == protocol.BatchPlanned && b.Answered == 0: // its vendor gave it up before it began
		b.Id, b.Trouble = "", records.ClipText(r.Trouble)
		b.Tries++
	default:
		return errs.New(errs.Invalid, "batch %d is in state %d, and cannot become %d with the id %q", b.Number, from, to, r.Vendor)
	}

	if to != protocol.BatchUnknown {
		b.State = uint32(to)
	}
	b.Done = min(max(b.Done, r.Done), b.Lines)
	return nil
}

// takeReplies settles what became of lines.
func (st reports) takeReplies(ctx context.Context, changes *queue.Changes, b *storagev1.Batch, r *protocol.BatchReport, out *Result) error {
	if len(r.Replies) > protocol.MaxReplies {
		return errs.New(errs.Invalid, "a report has %d replies; at most %d are taken", len(r.Replies), protocol.MaxReplies)
	}
	for i := range r.Replies {
		if err := st.takeReply(ctx, changes, b, &r.Replies[i], out); err != nil {
			return err
		}
	}
	return nil
}

// takeReply settles what became of one line. A line that is no more in its batch was settled before.
func (st reports) takeReply(ctx context.Context, changes *queue.Changes, b *storagev1.Batch, r *protocol.LineReply, out *Result) error {
	key := st.Keys.Batches(changes.Job).Line(b.Number, r.Number)
	unit, err := changes.Tx.Get(ctx, key)
	if err != nil || unit == nil {
		return err
	}

	changes.Tx.Clear(key)
	b.Answered++

	if r.Outcome == protocol.LineAgain {
		return st.putBack(ctx, changes, b, mapreduce.UnitID(unit), out)
	}
	return st.answer(ctx, changes, mapreduce.UnitID(unit), b.Provider+"/"+b.Model, r, out)
}

// putBack has a line wait for another batch. Its own was not begun. Of a unit that has ended meanwhile
// nothing is asked any more.
func (st reports) putBack(ctx context.Context, changes *queue.Changes, b *storagev1.Batch, unit mapreduce.UnitID, out *Result) error {
	if protocol.BatchState(b.State) != protocol.BatchPlanned {
		return errs.New(errs.Invalid, "batch %d is in state %d, and its vendor may have its lines: they go in no other", b.Number, b.State)
	}
	u, err := st.Units.Read(ctx, changes.Tx, changes.Job, unit)
	if err != nil || u == nil || u.Line == nil || u.Line.Answered {
		return err
	}
	if state := mapreduce.UnitState(u.Status); state == mapreduce.UnitComplete || state == mapreduce.UnitCancelled {
		return st.answer(ctx, changes, unit, b.Provider+"/"+b.Model, &protocol.LineReply{Outcome: protocol.LineCancelled}, out)
	}

	of, asked := st.Keys.Batches(changes.Job), new(storagev1.Asked)
	if _, err := records.Read(ctx, changes.Tx, of.Asked(unit), asked); err != nil {
		return err
	}
	asked.Batch = 0
	changes.Tx.Set(of.Asked(unit), records.Encode(asked))
	changes.Tx.Set(of.Batchable(unit), nil)
	return nil
}

// takeRest gives the lines of a batch that is over and has nothing about them their outcome, as many as
// one transaction takes, and reports whether there are more.
func (st reports) takeRest(ctx context.Context, changes *queue.Changes, b *storagev1.Batch, r *protocol.BatchReport, out *Result) (more bool, err error) {
	lines, _, err := changes.Tx.GetRange(ctx, st.Keys.Batches(changes.Job).Lines(b.Number), store.RangeOptions{Limit: protocol.MaxReplies + 1})
	if err != nil {
		return false, err
	}

	for i, kv := range lines {
		if i == protocol.MaxReplies {
			return true, nil
		}
		n, err := st.numberOf(kv.Key)
		if err != nil {
			return false, err
		}
		reply := protocol.LineReply{Number: n, Outcome: cmp.Or(r.Rest, protocol.LineLost), Error: r.Why}
		if err := st.takeReply(ctx, changes, b, &reply, out); err != nil {
			return false, err
		}
	}
	return false, nil
}
