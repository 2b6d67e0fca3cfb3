package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// Sleepers returns units of a job whose time is to be waited for: units that back
// off, at most limit, and among limit parked units those that go on without a call,
// beginning behind the parked unit after. It also returns behind which parked unit
// the next call should begin, which is "" after the last.
func (st *Store) Sleepers(ctx context.Context, id mapreduce.JobID, after mapreduce.UnitID, limit int) (refs []records.SleeperRef, next mapreduce.UnitID, err error) {
	err = st.db.View(ctx, func(tx store.Tx) (err error) {
		refs, next, err = st.ListSleepers(ctx, tx.Snapshot(), id, after, limit)
		return err
	})
	return refs, next, err
}

// ListSleepers returns what Store.Sleepers does.
func (rec Records) ListSleepers(ctx context.Context, r store.Reader, id mapreduce.JobID, after mapreduce.UnitID, limit int) ([]records.SleeperRef, mapreduce.UnitID, error) {
	delayed, err := rec.listDelayed(ctx, r, id, limit)
	if err != nil {
		return nil, "", err
	}
	parked, next, err := rec.listParked(ctx, r, id, after, limit)
	return append(delayed, parked...), next, err
}

func (rec Records) listDelayed(ctx context.Context, r store.Reader, id mapreduce.JobID, limit int) ([]records.SleeperRef, error) {
	pairs, _, err := r.GetRange(ctx, rec.Keys.Queues(id).AllDelayed(), store.RangeOptions{Limit: limit})
	if err != nil {
		return nil, err
	}

	refs := make([]records.SleeperRef, 0, len(pairs))
	for _, kv := range pairs {
		var d storagev1.Delay
		if err := records.Decode(kv.Key, kv.Value, &d); err != nil {
			return nil, err
		}
		unit, err := rec.Units.OfKey(kv.Key)
		if err != nil {
			return nil, err
		}
		refs = append(refs, records.SleeperRef{Sleeper: records.Sleeper{Unit: unit}, For: rec.SleepLeft(time.Duration(d.Micros)*time.Microsecond, d.EndMicros)})
	}

	return refs, nil
}

func (rec Records) listParked(ctx context.Context, r store.Reader, id mapreduce.JobID, after mapreduce.UnitID, limit int) (refs []records.SleeperRef, next mapreduce.UnitID, err error) {
	all := rec.Keys.Queues(id).AllParked()
	if after != "" {
		all.Begin = store.Single(rec.Keys.Queues(id).Parked(after)).End
	}

	pairs, more, err := r.GetRange(ctx, all, store.RangeOptions{Limit: limit, Bytes: store.TargetTxSize})
	if err != nil {
		return nil, "", err
	}

	for _, kv := range pairs {
		var p storagev1.Parked
		if err := records.Decode(kv.Key, kv.Value, &p); err != nil {
			return nil, "", err
		}
		unit, err := rec.Units.OfKey(kv.Key)
		if err != nil {
			return nil, "", err
		}

		// The next call begins behind the last of these.
		if more {
			next = unit
		}
		if p.WakeMicros > 0 {
			refs = append(refs, records.SleeperRef{
				Sleeper: records.Sleeper{Unit: unit, Attempt: p.Attempt, Handle: p.Handle},
				For:     rec.SleepLeft(time.Duration(p.WakeMicros)*time.Microsecond, p.EndMicros),
			})
		}
	}

	return refs, next, nil
}

// Queued reports whether any unit of a job may be claimed or backs off. The pending
// units of a job that has none are all parked.
func (st *Store) Queued(ctx context.Context, id mapreduce.JobID) (queued bool, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		queued = false
		for _, r := range []store.Range{st.Keys.Queues(id).AllReady(), st.Keys.Queues(id).AllDelayed()} {
			pairs, _, err := tx.Snapshot().GetRange(ctx, r, store.RangeOptions{Limit: 1})
			if err != nil {
				return err
			}
			queued = queued || len(pairs) > 0
		}

		return nil
	})
	return queued, err
}

// Wakeup puts units whose time has come into the queue, and returns those that wait
// there then.
func (st *Store) Wakeup(ctx context.Context, id mapreduce.JobID, sleepers []records.Sleeper) ([]records.Candidate, error) {
	var woken []records.Candidate
	err := st.db.Update(ctx, failpoint.Wakeup, func(tx store.Tx) error {
		woken = nil
		if _, err := st.Jobs.Control(ctx, tx, id); err != nil {
			return err
		}

		for _, s := range sleepers {
			u, err := st.Units.Read(ctx, tx, id, s.Unit)
			if err != nil {
				return err
			}

			if u == nil || mapreduce.UnitState(u.Status) != mapreduce.Pending || u.Queue == nil {
				continue
			}

			switch {
			case u.Queue.Class == keys.ClassDelayed && s.Attempt == 0, u.Queue.Class == keys.ClassParked && s.Attempt == u.Attempt:
				st.Units.Release(tx, id, u)
			case !records.IsClaimable(u):
				continue // it sleeps for another reason than that which has ended
			}
			woken = append(woken, *records.CandidateOf(u))
		}
		return nil
	})
	return woken, err
}

// Wake makes a unit go on that is parked under a handle, and keeps the answer for
// its next attempts. It returns the unit, and where it waits to be claimed; nil if it
// does so no more, because an earlier call has woken it by the same handle. If the
// unit neither is parked under the handle nor was woken by it last, the error is
// errs.NotFound.
func (st *Store) Wake(ctx context.Context, id mapreduce.JobID, name mapreduce.UnitID, call protocol.WakeCall) (*records.Unit, *records.Candidate, error) {
	var u *storagev1.Unit
	woke := int64(-1) // the attempt that an earlier run found parked: it may have committed
	err := st.db.Update(ctx, failpoint.Wake, func(tx store.Tx) error {
		if _, err := st.Jobs.Control(ctx, tx, id); err != nil {
			return err
		}
		var err error
		if u, err = st.Units.Read(ctx, tx, id, name); err != nil {
			return err
		}

		parked, err := st.Units.IsParkedUnder(ctx, tx, id, u, call.Handle)
		switch {
		case err != nil:
			return err
		case parked && (woke < 0 || woke == u.Attempt):
			woke = u.Attempt
			u.Woken = call.Handle
			tx.Set(st.Keys.Queues(id).Woken(name), records.Encode(&storagev1.WakeCall{Handle: call.Handle, Answer: call.Answer}))
			st.Units.Release(tx, id, u)
			st.Jobs.AddCalled(ctx, tx, id, &storagev1.Checkpoint{
				Kind: uint32(mapreduce.EventWoken), Level: u.Level, Message: records.ClipText(fmt.Sprintf("unit %s was woken under %q", name, call.Handle)),
			})
			st.Jobs.WakeOthers(tx)
			return nil
		case u != nil && u.Woken == call.Handle:
			return nil
		}

		return &errs.Error{
			Kind: errs.NotFound, Reason: "NOT_PARKED",
			Message: fmt.Sprintf("unit %q of job %s is not parked under %q", name, id, call.Handle),
		}
	})
	if err != nil {
		return nil, nil, err
	}

	if records.IsClaimable(u) {
		return records.UnitFrom(u), records.CandidateOf(u), nil
	}
	return records.UnitFrom(u), nil, nil
}
