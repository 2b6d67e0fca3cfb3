// Package nodes keeps which orchestrators live, which are in doubt, and the sessions
// of workers that each holds.
package nodes

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Signs are what a sign of life sees beside itself.
type Signs struct {
	Beats map[mapreduce.NodeID]int64 // every orchestrator's count
	// Runs are the jobs that may run, so that who shows life every second needs no
	// other look at them; but if there are very many, or what is stored of them is
	// damaged, Seen is false. A node lives all the same.
	Runs []records.RunRef
	Seen bool
}

// seenRuns is how many jobs a sign of life looks at.
const seenRuns = 1000

// Beat shows that this node lives.
func (st *Store) Beat(ctx context.Context, count int64) (*Signs, error) {
	var s *Signs
	err := st.db.Update(ctx, failpoint.Beat, func(tx store.Tx) (err error) {
		s = new(Signs)
		tx.Set(st.Keys.Beat(st.Node), records.Encode(&storagev1.Beat{Count: count}))
		if s.Beats, err = st.readBeats(ctx, tx); err != nil {
			return err
		}
		var more bool
		if s.Runs, more, err = st.ReadRuns(ctx, tx, seenRuns); store.Retryable(err) {
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
		beats, err = st.readBeats(ctx, tx)
		return err
	})
	return beats, err
}

func (rec Records) readBeats(ctx context.Context, tx store.Tx) (map[mapreduce.NodeID]int64, error) {
	beats := make(map[mapreduce.NodeID]int64)
	pairs, _, err := tx.Snapshot().GetRange(ctx, rec.Keys.Beats(), store.RangeOptions{})
	if err != nil {
		return nil, err
	}
	for _, kv := range pairs {
		var b storagev1.Beat
		if err := records.Decode(kv.Key, kv.Value, &b); err != nil {
			return nil, err
		}
		_, rest, err := rec.Keys.Last(kv.Key)
		if err != nil {
			return nil, err
		}
		beats[mapreduce.NodeID(rest.Text())] = b.Count
	}
	return beats, nil
}
