package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// A readoption gives a session units again that went back when it was declared dead: its worker
// lives, and runs them. Each takes a slot of its job, and a call of the fleet where it may call models, as one
// that is claimed does.
type readoption struct {
	*sweep
	nodes nodes.Records
	most  int64                         // units that the worker runs at once
	idle  map[mapreduce.JobID]Idle      // slots of this node
	slots map[mapreduce.JobID]*slotRoom // of the jobs that were asked for

	counts  map[mapreduce.JobID]int64 // units that stay, or were taken back
	calls   *slotRoom                 // of the fleet; nil until it was asked for
	calling int64                     // of those units, how many may call models
}

// A slotRoom is the slots of a job, or the calls of the fleet, that are there for what is taken back.
type slotRoom struct {
	idle  int64 // this node has them, and does not use them
	free  int64 // no node has them
	taken int64 // of those that were free
}

// roomOf returns what is there of a grant, of which limit is there for all nodes together, and idle of
// what this node thinks to have. Which are idle this node knows; others may have taken some of them.
func roomOf(own *storagev1.Grant, granted, limit, idle int64, of Share) *slotRoom {
	room := &slotRoom{free: max(0, limit-granted)}
	if of.stillHeld(own) {
		room.idle = idle
	}
	return room
}

// isEmpty reports whether nothing is there.
func (r *slotRoom) isEmpty() bool { return r.idle <= 0 && r.free <= 0 }

// take takes one that is there.
func (r *slotRoom) take() {
	if r.idle > 0 {
		r.idle--
		return
	}
	r.free--
	r.taken++
}

// readoptUnits gives a returning worker the units that it still runs, if they were
// declared lost and not claimed since, as far as there is room. So their work is not paid for again.
func (r *readoption) readoptUnits(ctx context.Context, holding []protocol.Held, claim string) error {
	s := r.sweep
	r.counts, r.slots = make(map[mapreduce.JobID]int64), make(map[mapreduce.JobID]*slotRoom)
	seen := make(map[protocol.Held]bool, len(holding)) // what stays, or was named before
	for _, h := range s.stay {
		seen[h.Held] = true
		r.count(h.Job)
	}

	// As many to a record as to a claim: more may be too large for a value.
	name := func(i int) string { return fmt.Sprintf("%s-%d", claim, i/records.MaxBatch) }

	var taken []*storagev1.HeldUnit
	var missed []protocol.Held
	var ks [][]byte
	for _, h := range holding {
		h.Running = false
		if !seen[h] {
			seen[h] = true
			missed, ks = append(missed, h), append(ks, s.Keys.Job(h.Job).Unit(h.Unit))
		}
	}

	units, err := records.ReadUnits(ctx, s.tx, ks)
	if err != nil {
		return err
	}

	for i, h := range missed {
		u := units[i]
		if !records.AttemptStands(u, h.Attempt) || u.Session != string(s.session) ||
			mapreduce.UnitState(u.Status) != mapreduce.Pending {
			continue
		}

		changes, err := s.turnOf(ctx, h.Job)
		if err != nil {
			return err
		}
		if changes == nil || mapreduce.JobState(changes.Ctl.State) == mapreduce.JobCancelled || s.tenant != "" && mapreduce.TenantID(changes.Ctl.Tenant) != s.tenant {
			continue
		}

		fits, err := r.fits(ctx, h.Job, changes)
		if err != nil {
			return err
		}
		if !fits {
			continue // others run in its place
		}

		id := name(len(taken))
		changes.readopt(u, id)
		taken = append(taken, &storagev1.HeldUnit{Job: string(h.Job), Unit: u.UnitId, Attempt: u.Attempt})
		s.stay = append(s.stay, Held{h, id, mapreduce.NodeID(u.Node), u.Reserved})
		r.count(h.Job)
	}

	for i := 0; i < len(taken); i += records.MaxBatch {
		held := &storagev1.Held{Units: taken[i:min(i+records.MaxBatch, len(taken))]}
		s.tx.Set(s.Keys.Nodes().Held(s.session, name(i)), records.Encode(held))
	}

	return r.takeSlots(ctx)
}

// readopt makes a unit run again that was given up for lost, under a claim.
func (changes *Changes) readopt(u *storagev1.Unit, claim string) {
	changes.Units.Dequeue(changes.Tx, changes.Job, u)
	u.Status, u.Claim = uint32(mapreduce.Processing), claim

	// What was charged when the worker was given up is reserved again: the report settles
	// it.
	owner := mapreduce.NodeID(u.Node)
	changes.AddFor(owner, keys.Charged, 0, -u.Charged)
	changes.AddFor(owner, keys.Reserved, 0, u.Charged)
	u.Reserved, u.Charged = u.Charged, 0

	if u.Started && u.Kills > 0 { // the worker was not lost after all
		u.Kills--
	}

	changes.Add(keys.Running, u.Level, 1)
	changes.Units.Set(changes.Tx, changes.Job, u)
}

// count counts a unit that stays, or was taken back.
func (r *readoption) count(id mapreduce.JobID) {
	r.counts[id]++
	if r.idle[id].Calls != nil {
		r.calling++
	}
}

// fits reports whether one more unit of a job may be taken back, and takes its slot and its call if so.
// One that waits at the worker, behind as many as it runs at once, needs none.
func (r *readoption) fits(ctx context.Context, id mapreduce.JobID, changes *Changes) (bool, error) {
	if room, err := r.roomToRun(ctx, changes); err != nil || room <= 0 {
		return false, err
	}

	var needed []*slotRoom
	if r.counts[id] < r.most {
		slots, err := r.slotsOf(ctx, id)
		if err != nil {
			return false, err
		}
		needed = append(needed, slots)
	}
	if calls := r.idle[id].Calls; calls != nil && r.calling < r.most {
		room, err := r.callsOf(ctx, calls)
		if err != nil {
			return false, err
		}
		needed = append(needed, room)
	}

	// Nothing is taken unless all of it is there.
	if slices.ContainsFunc(needed, (*slotRoom).isEmpty) {
		return false, nil
	}
	for _, room := range needed {
		room.take()
	}
	return true, nil
}

// slotsOf returns the slots of a job that are there.
func (r *readoption) slotsOf(ctx context.Context, id mapreduce.JobID) (*slotRoom, error) {
	if known := r.slots[id]; known != nil {
		return known, nil
	}

	var job storagev1.Job
	_, err := records.Read(ctx, r.tx.Snapshot(), r.Keys.Job(id).Record(), &job)
	if err != nil && !errors.Is(err, store.ErrCorrupt) { // a damaged record keeps no worker away
		return nil, err
	}
	own, granted, err := r.nodes.ReadSlots(ctx, r.tx, mapreduce.JobScope(id))
	if err != nil {
		return nil, err
	}

	idle := r.idle[id]
	r.slots[id] = roomOf(own, granted, job.Config.GetParallelism(), idle.Slots, idle.Of)
	return r.slots[id], nil
}

// callsOf returns the calls of the fleet that are there.
func (r *readoption) callsOf(ctx context.Context, c *Calls) (*slotRoom, error) {
	if r.calls != nil {
		return r.calls, nil
	}

	own, granted, err := r.nodes.ReadSlots(ctx, r.tx, mapreduce.FleetScope())
	if err != nil {
		return nil, err
	}
	r.calls = roomOf(own, granted, c.Limit, c.Idle, c.Of)
	return r.calls, nil
}

// takeSlots has this node have the slots and calls that were free.
func (r *readoption) takeSlots(ctx context.Context) error {
	for id, slots := range r.slots {
		if err := r.nodes.AddSlots(ctx, r.tx, mapreduce.JobScope(id), slots.taken); err != nil {
			return err
		}
	}
	if r.calls == nil {
		return nil
	}
	return r.nodes.AddSlots(ctx, r.tx, mapreduce.FleetScope(), r.calls.taken)
}

// roomToRun returns how many more units of a job's tenant may run: the sweep may have taken
// back units of other jobs of it.
func (s *sweep) roomToRun(ctx context.Context, changes *Changes) (int64, error) {
	room, err := changes.RoomToRun(ctx)
	if err != nil || room == math.MaxInt64 { // no limit
		return room, err
	}
	for _, other := range s.jobs {
		if other != changes && other.Ctl != nil && other.Ctl.Tenant == changes.Ctl.Tenant {
			room -= other.Counted(keys.Running)
		}
	}
	return room, nil
}
