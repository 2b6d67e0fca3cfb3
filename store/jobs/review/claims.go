package review

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Claims returns who is about to review which records of a job, in the order of the records.
func (st *Store) Claims(ctx context.Context, id mapreduce.JobID, by string) (all []mapreduce.RecordClaim, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		all = nil
		r := tx.Snapshot()
		if _, err := st.Jobs.Control(ctx, r, id); err != nil {
			return err
		}
		return st.eachClaim(ctx, r, id, func(_ []byte, record mapreduce.RecordID, c *storagev1.Reviewing) {
			if c.EndMicros > st.NowMicros() {
				all = append(all, claimOf(record, c, by))
			}
		})
	})
	return all, err
}

// Claim says that somebody is about to review some records of a job, and returns what Claims does then. Records
// that others hold stay theirs; what has lapsed is removed. These things might happen:
//  1. the claims: they are stored;
//  2. errs.NotFound: there is no such job;
//  3. errs.Exhausted: the principal would hold more records than one may.
func (st *Store) Claim(ctx context.Context, c mapreduce.Claim, by string) (all []mapreduce.RecordClaim, err error) {
	err = st.db.Update(ctx, failpoint.Decide, func(tx store.Tx) error {
		all = nil
		// A deletion clears the control record, so nothing is written behind it.
		if _, err := st.Jobs.Control(ctx, tx, c.Job); err != nil {
			return err
		}

		now := st.NowMicros()
		asked := make(map[mapreduce.RecordID]bool, len(c.Records))
		for _, record := range c.Records {
			asked[record] = true
		}
		held := 0
		err := st.eachClaim(ctx, tx, c.Job, func(key []byte, record mapreduce.RecordID, had *storagev1.Reviewing) {
			switch {
			case had.EndMicros <= now || had.Principal == by && asked[record]: // it is written anew, or given back
				tx.Clear(key)
				return
			case had.Principal == by:
				held++
			default:
				delete(asked, record)
			}
			all = append(all, claimOf(record, had, by))
		})
		if err != nil {
			return err
		}

		if c.Time > 0 && held+len(asked) > mapreduce.MaxHeldRecords {
			return errs.New(errs.Exhausted, "%s would hold %d records of job %s, and at most %d are held by one: give some back", by, held+len(asked), c.Job, mapreduce.MaxHeldRecords)
		}
		if c.Time > 0 {
			mine := &storagev1.Reviewing{Principal: by, EndMicros: now + c.Time.Microseconds()}
			for record := range asked {
				tx.Set(st.Keys.Decisions(c.Job).Reviewing(record), records.Encode(mine))
				all = append(all, claimOf(record, mine, by))
			}
		}
		return nil
	})
	sortClaims(all)
	return all, err
}

// eachClaim calls visit with each claim of a job that is stored, also those that have lapsed.
func (st *Store) eachClaim(ctx context.Context, tx store.Reader, id mapreduce.JobID, visit func(key []byte, record mapreduce.RecordID, c *storagev1.Reviewing)) error {
	r := st.Keys.Decisions(id).AllReviewing()
	for more := true; more; {
		var pairs []store.KeyValue
		var err error
		if pairs, more, err = tx.GetRange(ctx, r, store.RangeOptions{Limit: mapreduce.MaxHeldRecords, Bytes: store.TargetTxSize}); err != nil {
			return err
		}

		for _, kv := range pairs {
			record, err := st.Keys.Decisions(id).ReviewingAt(kv.Key)
			if err != nil {
				return records.CorruptError(kv.Key, "%v", err)
			}

			var c storagev1.Reviewing
			if err := records.Decode(kv.Key, kv.Value, &c); err != nil {
				return err
			}
			visit(kv.Key, record, &c)
			r.Begin = store.Single(kv.Key).End
		}
	}
	return nil
}

func claimOf(record mapreduce.RecordID, c *storagev1.Reviewing, by string) mapreduce.RecordClaim {
	return mapreduce.RecordClaim{Record: record, By: c.Principal, Own: c.Principal == by, End: time.UnixMicro(c.EndMicros).UTC()}
}

// sortClaims puts claims into the order of their records.
func sortClaims(all []mapreduce.RecordClaim) {
	slices.SortFunc(all, func(a, b mapreduce.RecordClaim) int {
		aUnit, aRecord, _ := a.Record.Parse()
		bUnit, bRecord, _ := b.Record.Parse()
		return cmp.Or(cmp.Compare(aUnit, bUnit), cmp.Compare(aRecord, bRecord))
	})
}
