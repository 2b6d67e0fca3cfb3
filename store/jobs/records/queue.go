package records

import (
	"context"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/keys"
)

// Enqueue makes u wait in its queue, at the place it names.
func (rec *UnitRecords) Enqueue(tx store.Tx, id mapreduce.JobID, u *storagev1.Unit, class uint32) {
	seq := keys.Seq(u.Level, u.Index)
	shard := int64(0)
	if u.Queue != nil {
		shard = u.Queue.Shard
	}
	u.Status = uint32(mapreduce.Pending)
	u.Queue = &storagev1.Queue{Class: class, Seq: seq, Shard: shard}
	tx.Set(rec.keys.Queues(id).Ready(shard, class, seq), []byte(u.UnitId))
}

// Dequeue takes u off whichever queue it waits in. The shard is kept for when
// it comes back.
func (rec *UnitRecords) Dequeue(tx store.Tx, id mapreduce.JobID, u *storagev1.Unit) {
	q := u.Queue
	if q == nil {
		return
	}

	switch q.Class {
	case keys.ClassDelayed:
		tx.Clear(rec.keys.Queues(id).Delayed(mapreduce.UnitID(u.UnitId)))
	case keys.ClassParked:
		tx.Clear(rec.keys.Queues(id).Parked(mapreduce.UnitID(u.UnitId)))
		tx.Add(rec.keys.Job(id).Counter(keys.UnitsParked, u.Level, rec.node), -1)
	default:
		tx.Clear(rec.keys.Queues(id).Ready(q.Shard, q.Class, q.Seq))
	}
}

// A Sleeper is a pending unit that may not be claimed before its time has come.
type Sleeper struct {
	Unit mapreduce.UnitID
	// Attempt is the attempt that parked the unit; 0 says that it backs off. A
	// timer that was set for an earlier wait of the unit does not end a later one.
	Attempt int64
	Handle  string // that it is parked under
}

// A SleeperRef is a sleeper, and how long it sleeps.
type SleeperRef struct {
	Sleeper
	For time.Duration
}

// OfKey returns the unit that a key names behind its job.
func (rec *UnitRecords) OfKey(key []byte) (mapreduce.UnitID, error) {
	_, rest, err := rec.keys.Last(key)
	if err != nil {
		return "", err
	}
	rest.Skip()
	return mapreduce.UnitID(rest.Text()), rest.Err()
}

// IsClaimable reports whether a unit waits in a queue from which it may be claimed.
func IsClaimable(u *storagev1.Unit) bool {
	return mapreduce.UnitState(u.Status) == mapreduce.Pending && u.Queue != nil && u.Queue.Class < keys.ClassDelayed
}

// isDelayed reports whether a unit backs off.
func isDelayed(u *storagev1.Unit) bool {
	return mapreduce.UnitState(u.GetStatus()) == mapreduce.Pending && u.GetQueue().GetClass() == keys.ClassDelayed
}

// IsParked reports whether a unit, which may be nil, is parked.
func IsParked(u *storagev1.Unit) bool {
	return mapreduce.UnitState(u.GetStatus()) == mapreduce.Pending && u.GetQueue().GetClass() == keys.ClassParked
}

// A Candidate is a unit that was seen waiting in a queue.
type Candidate struct {
	Unit  mapreduce.UnitID
	Class uint32
	Shard int64
	Seq   int64
}

// CandidateOf returns where a unit waits.
func CandidateOf(u *storagev1.Unit) *Candidate {
	return &Candidate{
		Unit: mapreduce.UnitID(u.UnitId), Class: u.Queue.Class, Shard: u.Queue.Shard, Seq: u.Queue.Seq,
	}
}

// Release puts a unit that sleeps into its queue.
func (rec *UnitRecords) Release(tx store.Tx, id mapreduce.JobID, u *storagev1.Unit) {
	rec.Dequeue(tx, id, u)
	rec.Enqueue(tx, id, u, keys.ClassRequeued)
	rec.Set(tx, id, u)
}

// IsParkedUnder reports whether a unit, which may be nil, is parked under a handle.
func (rec *UnitRecords) IsParkedUnder(ctx context.Context, r store.Reader, id mapreduce.JobID, u *storagev1.Unit, handle string) (bool, error) {
	if !IsParked(u) {
		return false, nil
	}
	var p storagev1.Parked
	_, err := Read(ctx, r, rec.keys.Queues(id).Parked(mapreduce.UnitID(u.UnitId)), &p)
	return p.Handle == handle, err
}
