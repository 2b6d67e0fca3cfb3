package batches

import (
	"context"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A place is where a batch is stored: with its job, or among those whose job is gone.
type place struct {
	key    []byte
	batch  *storagev1.Batch  // nil if there is none
	ctl    *storagev1.Ctl    // of its job
	orphan *storagev1.Orphan // that it is in; nil with a job
}

// find reads a batch. It returns errs.NotFound if there is neither its job nor the batch.
func (st *Store) find(ctx context.Context, tx store.Tx, id mapreduce.JobID, number int64) (p place, err error) {
	ctl, err := st.Jobs.Control(ctx, tx, id)
	if errs.KindOf(err) == errs.NotFound {
		p.key, p.orphan = st.Keys.Batches(id).Orphan(number), new(storagev1.Orphan)
		if found, also := records.Read(ctx, tx, p.key, p.orphan); also != nil || !found {
			return place{}, orElse(also, err)
		}
		p.batch = p.orphan.Batch
		return p, nil
	}
	if err != nil {
		return place{}, err
	}

	p = place{key: st.Keys.Batches(id).Batch(number), batch: new(storagev1.Batch), ctl: ctl}
	if found, err := records.Read(ctx, tx, p.key, p.batch); err != nil || !found {
		return place{}, err
	}
	return p, nil
}

func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// write stores the batch as it is now.
func (p *place) write(tx store.Tx) {
	if p.orphan != nil {
		tx.Set(p.key, records.Encode(p.orphan))
		return
	}
	tx.Set(p.key, records.Encode(p.batch))
}

// An Orphan is a batch that its vendor may have, and whose job is gone.
type Orphan struct {
	Held
	Tenant mapreduce.TenantID
	Own    bool              // its provider was that of its job
	Vars   map[string]string // of the job: see protocol.BatchVars
}

// Orphans returns the batches whose job is gone, with the living sessions that see to them.
func (st *Store) Orphans(ctx context.Context) (all []Orphan, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		all = nil
		r := tx.Snapshot()
		pairs, _, err := r.GetRange(ctx, st.Keys.AllBatches().Orphans(), store.RangeOptions{})
		if err != nil {
			return err
		}

		stored := make([]*storagev1.Batch, len(pairs))
		for i, kv := range pairs {
			_, rest, err := st.Keys.Last(kv.Key)
			if err != nil {
				return err
			}
			o := new(storagev1.Orphan)
			if err := records.Decode(kv.Key, kv.Value, o); err != nil {
				return err
			}
			stored[i] = o.Batch
			b := describe(mapreduce.JobID(rest.Text()), o.Batch)
			all = append(all, Orphan{Held: Held{Batch: b}, Tenant: mapreduce.TenantID(o.Tenant), Own: o.Own, Vars: o.Vars})
		}

		living, err := st.livingHolders(ctx, r, stored)
		for i, b := range stored {
			if living[b.Holder] {
				all[i].Session = mapreduce.SessionID(b.Holder)
			}
		}
		return err
	})
	return all, err
}
