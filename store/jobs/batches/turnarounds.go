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

// tellsFor is for how long it tells something of others how long a batch took: vendors are quicker at some times of
// the day than at others, and with some models than with those that follow them.
const tellsFor = 24 * time.Hour

// Turnarounds returns how long the batches of a model took that ended by themselves of late, "provider/model".
func (st *Store) Turnarounds(ctx context.Context, model string) (took []time.Duration, err error) {
	since := st.NowMicros() - tellsFor.Microseconds()
	err = st.db.View(ctx, func(tx store.Tx) error {
		var kept storagev1.Turnarounds
		took = nil
		_, err := records.Read(ctx, tx.Snapshot(), st.Keys.AllBatches().Turnarounds(model), &kept)
		if err != nil || len(kept.EndedMicros) != len(kept.Micros) { // an earlier version kept them, which says no times
			return err
		}

		for i, micros := range kept.Micros {
			if kept.EndedMicros[i] >= since {
				took = append(took, time.Duration(micros)*time.Microsecond)
			}
		}
		return nil
	})
	return took, err
}

// noteTurnaround keeps how long a batch took, unless it was cancelled: then it tells nothing of others. Of two
// transactions that do so at once one may be forgotten: no conflict is worth it.
func (st reports) noteTurnaround(ctx context.Context, tx store.Tx, b *storagev1.Batch, ctl *storagev1.Ctl, e *Ended, now int64) error {
	if e == nil || b.Ending || mapreduce.JobState(ctl.State) == mapreduce.JobCancelled {
		return nil
	}

	var kept storagev1.Turnarounds
	key := st.Keys.AllBatches().Turnarounds(e.Model)
	if _, err := records.Read(ctx, tx.Snapshot(), key, &kept); err != nil {
		return err
	}

	// Of those that an earlier version kept nobody knows when they ended. Such a version, which adds to the first list
	// alone, would move the two against each other: then all is begun anew.
	if len(kept.EndedMicros) != len(kept.Micros) {
		kept.Reset()
	}
	kept.Micros, kept.EndedMicros = append(kept.Micros, e.Took.Microseconds()), append(kept.EndedMicros, now)
	kept.Micros = kept.Micros[max(0, len(kept.Micros)-mostTurnarounds):]
	kept.EndedMicros = kept.EndedMicros[max(0, len(kept.EndedMicros)-mostTurnarounds):]
	tx.Set(key, records.Encode(&kept))
	return nil
}
