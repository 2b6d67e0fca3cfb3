// Package nodes keeps which orchestrators live, which are in doubt, and the sessions
// of workers that each holds; and it divides among them what the fleet may spend and
// run at once: tokens and slots of jobs, calls of models and their rates.
package nodes

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Records reads and writes signs of life, doubts and grants inside a transaction of its caller.
type Records struct{ *records.Records }

// A Store keeps which orchestrators live, and which sessions they hold.
type Store struct {
	db *records.DB
	Records
}

// New returns the operations on the records of db.
func New(db *records.DB) *Store { return &Store{db, Records{db.Records()}} }

// Signs are what Beat returns: what it has seen of the others, and of the jobs.
type Signs struct {
	Beats map[mapreduce.NodeID]int64 // every orchestrator's count
	News  map[mapreduce.NodeID]News  // what every orchestrator tells, if anything
	// Runs are the jobs that may run, so that who shows life every second needs no
	// other look at them; but if there are very many, or what is stored of them is
	// damaged, Seen is false. A node lives all the same.
	Runs []records.RunRef
	Seen bool
}

// seenRuns is how many jobs a sign of life looks at.
const seenRuns = 1000

// News is what a node passes on to the others with its sign of life, so that clients that
// watch a job at any node see what its units say at every node. Its size is the node's to
// bound.
type News struct {
	Watched []mapreduce.JobID // jobs that clients of the node watch
	Told    int64             // how many notes it has told in all
	Notes   []Note            // the latest of them
}

// A Note is what a unit of a job said.
type Note struct {
	Job mapreduce.JobID
	mapreduce.Activity
}

// Beat shows that this node lives, and passes its news on to the others.
func (st *Store) Beat(ctx context.Context, count int64, told News) (*Signs, error) {
	var s *Signs
	err := st.db.Update(ctx, failpoint.Beat, func(tx store.Tx) (err error) {
		s = new(Signs)
		tx.Set(st.Keys.Nodes().Beat(st.Node), records.Encode(beatOf(count, told)))
		if s.Beats, s.News, err = st.readBeats(ctx, tx); err != nil {
			return err
		}

		var more bool
		// A list that is damaged does not keep a node from living.
		if s.Runs, more, err = st.Jobs.Runs(ctx, tx, seenRuns); store.Retryable(err) {
			return err
		}

		s.Seen = err == nil && !more
		return nil
	})
	return s, err
}

// Beats returns every orchestrator's count.
func (st *Store) Beats(ctx context.Context) (beats map[mapreduce.NodeID]int64, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		var err error
		beats, _, err = st.readBeats(ctx, tx)
		return err
	})
	return beats, err
}

func (rec Records) readBeats(ctx context.Context, tx store.Tx) (map[mapreduce.NodeID]int64, map[mapreduce.NodeID]News, error) {
	beats, news := make(map[mapreduce.NodeID]int64), make(map[mapreduce.NodeID]News)
	pairs, _, err := tx.Snapshot().GetRange(ctx, rec.Keys.Nodes().Beats(), store.RangeOptions{})
	if err != nil {
		return nil, nil, err
	}

	for _, kv := range pairs {
		var b storagev1.Beat
		if err := records.Decode(kv.Key, kv.Value, &b); err != nil {
			return nil, nil, err
		}
		_, rest, err := rec.Keys.Last(kv.Key)
		if err != nil {
			return nil, nil, err
		}

		node := mapreduce.NodeID(rest.Text())
		beats[node] = b.Count
		if len(b.Watched) > 0 || len(b.Notes) > 0 {
			news[node] = newsOf(&b)
		}
	}

	return beats, news, nil
}

func beatOf(count int64, told News) *storagev1.Beat {
	b := &storagev1.Beat{Count: count, Told: told.Told}
	for _, id := range told.Watched {
		b.Watched = append(b.Watched, string(id))
	}
	for _, n := range told.Notes {
		b.Notes = append(b.Notes, &storagev1.Note{
			Job: string(n.Job), Unit: string(n.Unit), Attempt: int64(n.Attempt), Number: n.Number,
			TokensIn: n.Tokens.In, TokensOut: n.Tokens.Out, Text: n.Note,
		})
	}

	return b
}

func newsOf(b *storagev1.Beat) News {
	n := News{Told: b.Told}
	for _, id := range b.Watched {
		n.Watched = append(n.Watched, mapreduce.JobID(id))
	}
	for _, one := range b.Notes {
		n.Notes = append(n.Notes, Note{Job: mapreduce.JobID(one.Job), Activity: mapreduce.Activity{
			Unit: mapreduce.UnitID(one.Unit), Attempt: int(one.Attempt), Number: one.Number,
			Tokens: mapreduce.Tokens{In: one.TokensIn, Out: one.TokensOut}, Note: one.Text,
		}})
	}

	return n
}
