// Package queue moves units between waiting and their end. Turns is the transaction that
// matters: it takes reports of ended attempts and claims units for the slots that they
// freed; it also lets go reduces whose inputs have all ended. Sessions binds a session of
// a worker to an orchestrator, and puts back what a lost session held. Store reads the
// queues of a job, and wakes units that back off or are parked.
//
// Changes is how units of a job change inside one transaction, whoever changes them:
// they complete, fail, wait, are given back and are tried again, with the counters, the
// ledger of documents and the reduces above them.
package queue

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// Records reads and writes the queues of a job inside a transaction of its caller.
type Records struct{ *records.Records }

// A Store reads the queues of jobs, and wakes units that sleep.
type Store struct {
	db *records.DB
	Records
}

// New returns the operations on the records of db.
func New(db *records.DB) *Store { return &Store{db, Records{db.Records()}} }

// A Stretch is a part of one of a job's queues: the entries of new work in
// [From, To), and before them what came back, if Returned is set. At most Limit
// entries are read; 0 means no bound.
type Stretch struct {
	Shard    int64
	From, To int64
	Returned bool
	Limit    int
}

// Scan returns the units that wait in a stretch of a job's queue, and whether
// there are more.
func (st *Store) Scan(ctx context.Context, id mapreduce.JobID, s Stretch) (found []records.Candidate, more bool, err error) {
	r := store.Range{Begin: st.Keys.Queues(id).Ready(s.Shard, keys.ClassNew, s.From), End: st.Keys.Queues(id).Ready(s.Shard, keys.ClassNew, s.To)}

	// Units that came back wait before new work.
	if s.Returned {
		r.Begin = st.Keys.Queues(id).Ready(s.Shard, keys.ClassRequeued, 0)
	}

	err = st.db.View(ctx, func(tx store.Tx) error {
		found = found[:0]
		pairs, m, err := tx.Snapshot().GetRange(ctx, r, store.RangeOptions{Limit: s.Limit})
		if err != nil {
			return err
		}
		more = m

		for _, kv := range pairs {
			c, err := st.readEntry(kv)
			if err != nil {
				return err
			}
			found = append(found, c)
		}

		return nil
	})
	return found, more, err
}

// Last returns where the last unit of a stretch waits, or -1 if none does.
func (st *Store) Last(ctx context.Context, id mapreduce.JobID, s Stretch) (seq int64, err error) {
	r := store.Range{Begin: st.Keys.Queues(id).Ready(s.Shard, keys.ClassNew, s.From), End: st.Keys.Queues(id).Ready(s.Shard, keys.ClassNew, s.To)}
	err = st.db.View(ctx, func(tx store.Tx) error {
		pairs, _, err := tx.Snapshot().GetRange(ctx, r, store.RangeOptions{Limit: 1, Reverse: true})
		if err != nil || len(pairs) == 0 {
			seq = -1
			return err
		}

		c, err := st.readEntry(pairs[0])
		seq = c.Seq
		return err
	})
	return seq, err
}

// readEntry returns what an entry of a queue says.
func (rec Records) readEntry(kv store.KeyValue) (records.Candidate, error) {
	_, rest, err := rec.Keys.Last(kv.Key)
	if err != nil {
		return records.Candidate{}, err
	}
	rest.Skip()
	c := records.Candidate{Unit: mapreduce.UnitID(kv.Value), Shard: rest.Int(), Class: uint32(rest.Int()), Seq: rest.Int()}
	return c, rest.Err()
}
