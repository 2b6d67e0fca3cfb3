package batches

import (
	"context"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// mostTurnarounds is of how many batches of a model it is kept how long they took.
const mostTurnarounds = 32

// Turnarounds returns how long the last batches of a model took that ended by themselves, "provider/model".
func (st *Store) Turnarounds(ctx context.Context, model string) (took []time.Duration, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		var kept storagev1.Turnarounds
		took = nil
		_, err := records.Read(ctx, tx.Snapshot(), st.Keys.Turnarounds(model), &kept)
		for _, micros := range kept.Micros {
			took = append(took, time.Duration(micros)*time.Microsecond)
		}
		return err
	})
	return took, err
}

// noteTurnaround keeps how long a batch took, unless it was cancelled: then it tells nothing of others. Of two
// transactions that do so at once one may be forgotten: no conflict is worth it.
func (st *Store) noteTurnaround(ctx context.Context, tx store.Tx, b *storagev1.Batch, ctl *storagev1.Ctl, e *Ended) error {
	if e == nil || b.Ending || mapreduce.JobState(ctl.State) == mapreduce.JobCancelled {
		return nil
	}

	var kept storagev1.Turnarounds
	key := st.Keys.Turnarounds(e.Model)
	if _, err := records.Read(ctx, tx.Snapshot(), key, &kept); err != nil {
		return err
	}
	kept.Micros = append(kept.Micros, e.Took.Microseconds())
	kept.Micros = kept.Micros[max(0, len(kept.Micros)-mostTurnarounds):]
	tx.Set(key, records.Encode(&kept))
	return nil
}
