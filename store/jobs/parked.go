package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/keys"
)

// A Sleeper is a pending unit that may not be claimed before its time has come.
type Sleeper struct {
	Unit mapreduce.UnitID
	// Attempt is the attempt that parked the unit; 0 says that it backs off. A
	// timer that was set for an earlier wait of the unit does not end a later one.
	Attempt int64
}

// A SleeperRef is a sleeper, and how long it sleeps.
type SleeperRef struct {
	Sleeper
	For time.Duration
}

// Sleepers returns units of a job whose time is to be waited for: units that back
// off, at most limit, and among limit parked units those that go on without a call,
// beginning behind the parked unit after. It also returns behind which parked unit
// the next call should begin, which is "" after the last.
func (j *QueuesPart) Sleepers(ctx context.Context, id mapreduce.JobID, after mapreduce.UnitID, limit int) (refs []SleeperRef, next mapreduce.UnitID, err error) {
	err = j.db.view(ctx, func(tx store.Tx) (err error) {
		refs, next, err = j.listSleepers(ctx, tx.Snapshot(), id, after, limit)
		return err
	})
	return refs, next, err
}

func (j queueRecords) listSleepers(ctx context.Context, r store.Reader, id mapreduce.JobID, after mapreduce.UnitID, limit int) ([]SleeperRef, mapreduce.UnitID, error) {
	delayed, err := j.listDelayed(ctx, r, id, limit)
	if err != nil {
		return nil, "", err
	}
	parked, next, err := j.listParked(ctx, r, id, after, limit)
	return append(delayed, parked...), next, err
}

func (j queueRecords) listDelayed(ctx context.Context, r store.Reader, id mapreduce.JobID, limit int) ([]SleeperRef, error) {
	pairs, _, err := r.GetRange(ctx, j.keys.DelayedAll(id), store.RangeOptions{Limit: limit})
	if err != nil {
		return nil, err
	}
	refs := make([]SleeperRef, 0, len(pairs))
	for _, kv := range pairs {
		var d storagev1.Delay
		if err := decode(kv.Key, kv.Value, &d); err != nil {
			return nil, err
		}
		unit, err := j.unitOfKey(kv.Key)
		if err != nil {
			return nil, err
		}
		refs = append(refs, SleeperRef{Sleeper{Unit: unit}, time.Duration(d.Micros) * time.Microsecond})
	}
	return refs, nil
}

func (j queueRecords) listParked(ctx context.Context, r store.Reader, id mapreduce.JobID, after mapreduce.UnitID, limit int) (refs []SleeperRef, next mapreduce.UnitID, err error) {
	all := j.keys.ParkedAll(id)
	if after != "" {
		all.Begin = store.Single(j.keys.Parked(id, after)).End
	}
	pairs, more, err := r.GetRange(ctx, all, store.RangeOptions{Limit: limit, Bytes: store.TargetTxSize})
	if err != nil {
		return nil, "", err
	}
	for _, kv := range pairs {
		var p storagev1.Parked
		if err := decode(kv.Key, kv.Value, &p); err != nil {
			return nil, "", err
		}
		unit, err := j.unitOfKey(kv.Key)
		if err != nil {
			return nil, "", err
		}
		if more {
			next = unit
		}
		if p.WakeMicros > 0 {
			refs = append(refs, SleeperRef{Sleeper{unit, p.Attempt}, time.Duration(p.WakeMicros) * time.Microsecond})
		}
	}
	return refs, next, nil
}

// unitOfKey returns the unit that a key names behind its job.
func (j *Records) unitOfKey(key []byte) (mapreduce.UnitID, error) {
	_, rest, err := j.keys.Last(key)
	if err != nil {
		return "", err
	}
	rest.Skip()
	return mapreduce.UnitID(rest.Text()), rest.Err()
}

// Queued reports whether any unit of a job may be claimed or backs off. The pending
// units of a job that has none are all parked.
func (j *QueuesPart) Queued(ctx context.Context, id mapreduce.JobID) (queued bool, err error) {
	err = j.db.view(ctx, func(tx store.Tx) error {
		queued = false
		for _, r := range []store.Range{j.keys.ReadyAll(id), j.keys.DelayedAll(id)} {
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
func (j *QueuesPart) Wakeup(ctx context.Context, id mapreduce.JobID, sleepers []Sleeper) ([]Candidate, error) {
	var woken []Candidate
	err := j.db.update(ctx, failpoint.Wakeup, func(tx store.Tx) error {
		woken = nil
		if _, err := j.readControl(ctx, tx, id); err != nil {
			return err
		}
		for _, s := range sleepers {
			u, err := j.readUnit(ctx, tx, id, s.Unit)
			if err != nil {
				return err
			}
			if u == nil || mapreduce.UnitState(u.Status) != mapreduce.Pending || u.Queue == nil {
				continue
			}
			switch {
			case u.Queue.Class == keys.ClassDelayed && s.Attempt == 0, u.Queue.Class == keys.ClassParked && s.Attempt == u.Attempt:
				j.releaseUnit(tx, id, u)
			case !isClaimable(u):
				continue // it sleeps for another reason than that which has ended
			}
			woken = append(woken, *candidateOf(u))
		}
		return nil
	})
	return woken, err
}

// releaseUnit puts a unit that sleeps into the queue.
func (j queueRecords) releaseUnit(tx store.Tx, id mapreduce.JobID, u *storagev1.Unit) {
	j.dequeueUnit(tx, id, u)
	j.enqueueUnit(tx, id, u, keys.ClassRequeued)
	j.setUnit(tx, id, u)
}

// isClaimable reports whether a unit waits in a queue from which it may be claimed.
func isClaimable(u *storagev1.Unit) bool {
	return mapreduce.UnitState(u.Status) == mapreduce.Pending && u.Queue != nil && u.Queue.Class < keys.ClassDelayed
}

// Wake makes a unit go on that is parked under a handle, and keeps the answer for
// its next attempts. It returns the unit, and where it waits to be claimed; nil if it
// does so no more, because an earlier call has woken it by the same handle. If the
// unit neither is parked under the handle nor was woken by it last, the error is
// errs.NotFound.
func (j *QueuesPart) Wake(ctx context.Context, id mapreduce.JobID, name mapreduce.UnitID, call mapreduce.WakeCall) (*storagev1.Unit, *Candidate, error) {
	var u *storagev1.Unit
	woke := int64(-1) // the attempt that an earlier run found parked: it may have committed
	err := j.db.update(ctx, failpoint.Wake, func(tx store.Tx) error {
		if _, err := j.readControl(ctx, tx, id); err != nil {
			return err
		}
		var err error
		if u, err = j.readUnit(ctx, tx, id, name); err != nil {
			return err
		}
		parked, err := j.parkedUnder(ctx, tx, id, u, call.Handle)
		switch {
		case err != nil:
			return err
		case parked && (woke < 0 || woke == u.Attempt):
			woke = u.Attempt
			u.Woken = call.Handle
			tx.Set(j.keys.Woken(id, name), encode(&storagev1.WakeCall{Handle: call.Handle, Answer: call.Answer}))
			j.releaseUnit(tx, id, u)
			j.wakeOthers(tx)
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
	if isClaimable(u) {
		return u, candidateOf(u), nil
	}
	return u, nil, nil
}

// parkedUnder reports whether a unit, which may be nil, is parked under a handle.
func (j queueRecords) parkedUnder(ctx context.Context, r store.Reader, id mapreduce.JobID, u *storagev1.Unit, handle string) (bool, error) {
	if !isParked(u) {
		return false, nil
	}
	var p storagev1.Parked
	_, err := read(ctx, r, j.keys.Parked(id, mapreduce.UnitID(u.UnitId)), &p)
	return p.Handle == handle, err
}

// isParked reports whether a unit, which may be nil, is parked.
func isParked(u *storagev1.Unit) bool {
	return mapreduce.UnitState(u.GetStatus()) == mapreduce.Pending && u.GetQueue().GetClass() == keys.ClassParked
}

// WakeCall returns the last call that woke a unit, nil if there is none.
func (j *QueuesPart) WakeCall(ctx context.Context, id mapreduce.JobID, name mapreduce.UnitID) (call *mapreduce.WakeCall, err error) {
	err = j.db.view(ctx, func(tx store.Tx) error {
		call = nil
		var w storagev1.WakeCall
		found, err := read(ctx, tx.Snapshot(), j.keys.Woken(id, name), &w)
		if found {
			call = &mapreduce.WakeCall{Handle: w.Handle, Answer: w.Answer}
		}
		return err
	})
	return call, err
}

// Parkings returns what those of some units wait for that are parked, by unit.
func (j *QueuesPart) Parkings(ctx context.Context, id mapreduce.JobID, units []*storagev1.Unit) (map[string]*mapreduce.Parking, error) {
	var ks [][]byte
	var names []string
	for _, u := range units {
		if isParked(u) {
			ks, names = append(ks, j.keys.Parked(id, mapreduce.UnitID(u.UnitId))), append(names, u.UnitId)
		}
	}
	if len(ks) == 0 {
		return nil, nil
	}
	found := make(map[string]*mapreduce.Parking, len(ks))
	err := j.db.view(ctx, func(tx store.Tx) error {
		values, err := tx.Snapshot().GetAll(ctx, ks)
		for i, v := range values {
			var p storagev1.Parked
			if v == nil {
				continue // it was woken meanwhile
			}
			if err := decode(ks[i], v, &p); err != nil {
				return err
			}
			found[names[i]] = &mapreduce.Parking{
				Handle: p.Handle, WakeAfter: time.Duration(p.WakeMicros) * time.Microsecond, Note: p.Note,
			}
		}
		return err
	})
	return found, err
}

// parkUnit makes u wait outside of all queues until its time has come, or a call wakes
// it. How long is told, not until when: each orchestrator times it from its own first
// sight.
func (t *changes) parkUnit(u *storagev1.Unit, p *mapreduce.Parking) {
	u.Status = uint32(mapreduce.Pending)
	u.Queue = &storagev1.Queue{Class: keys.ClassParked, Seq: keys.Seq(u.Level, u.Index), Shard: u.Queue.GetShard()}
	t.add(keys.UnitsParked, u.Level, 1)
	t.tx.Set(t.keys.Parked(t.job, mapreduce.UnitID(u.UnitId)), encode(&storagev1.Parked{
		Handle: p.Handle, WakeMicros: wakeMicros(p.WakeAfter), Note: clipText(p.Note), Attempt: u.Attempt,
	}))
}

// wakeMicros returns a time after which a unit is woken as it is stored: one that is
// too short to be stored is not never.
func wakeMicros(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return max(1, d.Microseconds())
}
