package content

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// KeepState stores what an agent needs to go on where it is. It returns false
// if the attempt no longer stands.
func (st *Store) KeepState(ctx context.Context, s mapreduce.AgentState) (bool, error) {
	stands := false
	err := st.db.Update(ctx, failpoint.State, func(tx store.Tx) error {
		u, err := st.ReadUnit(ctx, tx, s.Job, s.Unit)
		if err != nil {
			return err
		}
		if stands = records.AttemptStands(u, s.Attempt); !stands {
			return nil
		}
		tx.ClearRange(st.Keys.State(s.Job, s.Unit))
		for i := 0; i*store.ChunkSize < len(s.Data); i++ {
			chunk := s.Data[i*store.ChunkSize : min((i+1)*store.ChunkSize, len(s.Data))]
			tx.Set(st.Keys.StateChunk(s.Job, s.Unit, int64(i)), chunk)
		}
		return nil
	})
	return stands, err
}

// State returns what an earlier attempt's agent left to go on with.
func (st *Store) State(ctx context.Context, id mapreduce.JobID, u mapreduce.UnitID) ([]byte, error) {
	var data []byte
	err := st.db.VisitChunks(ctx, st.Keys.State(id, u), func(chunk []byte) error {
		data = append(data, chunk...)
		return nil
	})
	return data, err
}
