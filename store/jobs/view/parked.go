package view

import (
	"context"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// WakeCall returns the last call that woke a unit, nil if there is none.
func (st *Store) WakeCall(ctx context.Context, id mapreduce.JobID, name mapreduce.UnitID) (call *protocol.WakeCall, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		call = nil
		var w storagev1.WakeCall
		found, err := records.Read(ctx, tx.Snapshot(), st.Keys.Queues(id).Woken(name), &w)
		if found {
			call = &protocol.WakeCall{Handle: w.Handle, Answer: w.Answer}
		}
		return err
	})
	return call, err
}

// Parkings returns what those of some units wait for that are parked, by unit.
func (st *Store) Parkings(ctx context.Context, id mapreduce.JobID, units []*records.Unit) (map[mapreduce.UnitID]*mapreduce.Parking, error) {
	var ks [][]byte
	var names []mapreduce.UnitID
	for _, u := range units {
		if u.Parked {
			ks, names = append(ks, st.Keys.Queues(id).Parked(u.ID)), append(names, u.ID)
		}
	}

	if len(ks) == 0 {
		return nil, nil
	}

	found := make(map[mapreduce.UnitID]*mapreduce.Parking, len(ks))
	err := st.db.View(ctx, func(tx store.Tx) error {
		values, err := tx.Snapshot().GetAll(ctx, ks)
		for i, v := range values {
			var p storagev1.Parked
			if v == nil {
				continue // it was woken meanwhile
			}
			if err := records.Decode(ks[i], v, &p); err != nil {
				return err
			}
			found[names[i]] = &mapreduce.Parking{
				Handle: p.Handle, WakeAfter: time.Duration(p.WakeMicros) * time.Microsecond, Note: p.Note, Scores: p.Scores,
			}
		}
		return err
	})
	return found, err
}
