// Package review keeps what people have decided about values of jobs' results.
//
// Decisions are added and never changed: of several about a value the last one counts, and all are
// kept for as long as the job is. Each is stored in one transaction with an event that has its hash,
// so the audit chain holds the decisions as well. What a decision means, and whether it fits, others
// know.
package review

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// A Store keeps decisions.
type Store struct {
	db *records.DB
	*records.Records
}

// New returns the operations on the records of db.
func New(db *records.DB) *Store { return &Store{db, db.Records()} }

// A Decision is a decision as it is stored.
type Decision struct {
	keys.DecisionAt
	*storagev1.Decision
}

// Decide adds a decision about a value of a complete job, which was found at an epoch of the job. The
// caller sets all of d but its number and its time. These things might happen:
//  1. the decision: it is stored, now or by an earlier call with the same request;
//  2. errs.NotFound: there is no such job;
//  3. errs.Precondition: the job is not complete;
//  4. errs.Aborted: the job is at another epoch, and its result may be another;
//  5. errs.Exhausted: there are as many decisions about the value as are kept.
func (st *Store) Decide(ctx context.Context, id mapreduce.JobID, epoch int64, d *Decision) (*Decision, error) {
	var kept *Decision
	err := st.db.Update(ctx, failpoint.Decide, func(tx store.Tx) error {
		// A deletion clears the control record, so nothing is written behind it.
		ctl, err := st.Jobs.Control(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case mapreduce.JobState(ctl.State) != mapreduce.JobComplete:
			return records.WrongState("review", id, mapreduce.JobState(ctl.State))
		case ctl.Epoch != epoch:
			return errs.New(errs.Aborted, "job %s was resumed meanwhile; look at the value again", id)
		}

		var added bool
		if kept, added, err = st.next(ctx, tx, id, d); added {
			st.add(ctx, tx, id, kept, "")
		}
		return err
	})
	return kept, err
}

// next returns a decision with its number and its time, as it is to be added to those about its value; or
// the one that its request has added before, and that it is not new.
func (st *Store) next(ctx context.Context, tx store.Tx, id mapreduce.JobID, d *Decision) (kept *Decision, isNew bool, err error) {
	before, err := st.within(ctx, tx, id, st.Keys.Decisions(id).OfValue(d.Record, d.Field))
	if err != nil {
		return nil, false, err
	}
	for _, b := range before {
		// The same call came before, or this transaction ran before and nobody heard of it.
		if d.Request != "" && b.Request == d.Request {
			return b, false, nil
		}
	}
	if len(before) >= mapreduce.MaxValueDecisions {
		return nil, false, errs.New(errs.Exhausted, "%d decisions were taken about this value; no more are kept", len(before))
	}

	kept = &Decision{d.DecisionAt, proto.CloneOf(d.Decision)}
	kept.Number, kept.TimeMicros = int64(len(before))+1, st.NowMicros()
	return kept, true, nil
}

// within returns the decisions in a range, by record, field and number.
func (st *Store) within(ctx context.Context, tx store.Reader, id mapreduce.JobID, r store.Range) ([]*Decision, error) {
	var all []*Decision
	for more := true; more; {
		var pairs []store.KeyValue
		var err error
		if pairs, more, err = tx.GetRange(ctx, r, store.RangeOptions{Limit: mapreduce.MaxValueDecisions, Bytes: store.TargetTxSize}); err != nil {
			return nil, err
		}

		for _, kv := range pairs {
			one, err := st.decode(id, kv)
			if err != nil {
				return nil, err
			}
			all = append(all, one)
			r.Begin = store.Single(kv.Key).End
		}
	}
	return all, nil
}

// add writes a decision, and its event: a transaction has one, which says as well what else follows.
func (st *Store) add(ctx context.Context, tx store.Tx, id mapreduce.JobID, d *Decision, follows string) {
	key, value := st.Keys.Decisions(id).Key(d.DecisionAt), records.Encode(d.Decision)
	tx.Set(key, value)

	st.Jobs.AddCalled(ctx, tx, id, &storagev1.Checkpoint{
		Kind: uint32(mapreduce.EventDecided), Decided: SumOf(d.DecisionAt, value),
		Message: records.ClipText(fmt.Sprintf("%s of record %s: %s%s", d.Field, d.Record, mapreduce.ReviewVerdict(d.Verdict), follows)),
	})
	st.Jobs.WakeOthers(tx)
}

// SumOf returns the hash of a decision, given its stored value: it is about that value of that record.
func SumOf(at keys.DecisionAt, value []byte) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%q\n%d\n", at.Record, at.Field, at.Number)
	h.Write(value)
	return h.Sum(nil)
}

func (st *Store) decode(id mapreduce.JobID, kv store.KeyValue) (*Decision, error) {
	at, err := st.Keys.Decisions(id).At(kv.Key)
	if err != nil {
		return nil, records.CorruptError(kv.Key, "%v", err)
	}
	d := &Decision{at, new(storagev1.Decision)}
	return d, records.Decode(kv.Key, kv.Value, d.Decision)
}

// List returns a page of decisions, in the order of their keys, and the token of the next.
func (st *Store) List(ctx context.Context, q mapreduce.ListDecisionsQuery) (page []*Decision, next string, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		page, next = nil, ""
		s := tx.Snapshot()
		if _, err := st.Jobs.Control(ctx, s, q.Job); err != nil {
			return err
		}

		r, err := st.rangeOf(q)
		if err != nil {
			return err
		}
		pairs, more, err := s.GetRange(ctx, r, store.RangeOptions{Limit: q.PageSize, Bytes: 4 * store.TargetTxSize})
		if err != nil {
			return err
		}

		for _, kv := range pairs {
			d, err := st.decode(q.Job, kv)
			if err != nil {
				return err
			}
			page = append(page, d)
		}

		if more {
			next = hex.EncodeToString(pairs[len(pairs)-1].Key[len(st.Keys.Decisions(q.Job).Prefix()):])
		}
		return nil
	})
	return page, next, err
}

// rangeOf returns the range of the decisions that a query asks for, behind those of the page before.
func (st *Store) rangeOf(q mapreduce.ListDecisionsQuery) (store.Range, error) {
	of := st.Keys.Decisions(q.Job)
	r := of.All()
	if q.Record != "" {
		r = of.OfRecord(q.Record)
	}
	if q.PageToken == "" {
		return r, nil
	}

	rest, err := hex.DecodeString(q.PageToken)
	if err != nil || len(rest) == 0 {
		return r, errs.Field("page_token", "is not one that a list returned")
	}
	r.Begin = store.Single(append(of.Prefix(), rest...)).End
	return r, nil
}
