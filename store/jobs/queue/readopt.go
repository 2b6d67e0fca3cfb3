package queue

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// A readoption gives a session units again that went back when it was declared dead: its worker
// lives, and runs them. Each takes a slot of its job, as one that is claimed does.
type readoption struct {
	*sweep
	nodes nodes.Records
	most  int64                         // units that the worker runs at once
	idle  map[mapreduce.JobID]Idle      // slots of this node
	slots map[mapreduce.JobID]*slotRoom // of the jobs that were asked for

	counts map[mapreduce.JobID]int64 // units that stay, or were taken back
}

// A slotRoom is the slots of a job that are there for what is taken back.
type slotRoom struct {
	idle  int64 // this node has them, and does not use them
	free  int64 // no node has them
	taken int64 // of those that were free
}

// readoptUnits gives a returning worker the units that it still runs, if they were
// declared lost and not claimed since, as far as there is room. So their work is not paid for again.
func (r *readoption) readoptUnits(ctx context.Context, holding []mapreduce.Held, claim string) error {
	s := r.sweep
	r.counts, r.slots = make(map[mapreduce.JobID]int64), make(map[mapreduce.JobID]*slotRoom)
	seen := make(map[mapreduce.Held]bool, len(holding)) // what stays, or was named before
	for _, h := range s.stay {
		seen[h.Held] = true
		r.counts[h.Job]++
	}

	// As many to a record as to a claim: more may be too large for a value.
	name := func(i int) string { return fmt.Sprintf("%s-%d", claim, i/records.MaxBatch) }

	var taken []*storagev1.HeldUnit
	var missed []mapreduce.Held
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
		changes.ReadoptUnit(u, id)
		taken = append(taken, &storagev1.HeldUnit{Job: string(h.Job), Unit: u.UnitId, Attempt: u.Attempt})
		s.stay = append(s.stay, Held{h, id, mapreduce.NodeID(u.Node), u.Reserved})
		r.counts[h.Job]++
	}

	for i := 0; i < len(taken); i += records.MaxBatch {
		held := &storagev1.Held{Units: taken[i:min(i+records.MaxBatch, len(taken))]}
		s.tx.Set(s.Keys.Nodes().Held(s.session, name(i)), records.Encode(held))
	}

	return r.takeSlots(ctx)
}

// fits reports whether one more unit of a job may be taken back, and takes its slot if so. One that
// waits at the worker, behind as many as it runs at once, needs none.
func (r *readoption) fits(ctx context.Context, id mapreduce.JobID, changes *Changes) (bool, error) {
	if room, err := r.roomToRun(ctx, changes); err != nil || room <= 0 {
		return false, err
	}
	if r.counts[id] >= r.most {
		return true, nil
	}

	slots, err := r.slotsOf(ctx, id)
	switch {
	case err != nil:
		return false, err
	case slots.idle > 0:
		slots.idle--
	case slots.free > 0:
		slots.free--
		slots.taken++
	default:
		return false, nil
	}
	return true, nil
}

// slotsOf returns the slots of a job that are there. Which are idle this node knows; others may have
// taken some of them.
func (r *readoption) slotsOf(ctx context.Context, id mapreduce.JobID) (*slotRoom, error) {
	if known := r.slots[id]; known != nil {
		return known, nil
	}

	var job storagev1.Job
	_, err := records.Read(ctx, r.tx.Snapshot(), r.Keys.Job(id).Record(), &job)
	if err != nil && !errors.Is(err, store.ErrCorrupt) { // a damaged record keeps no worker away
		return nil, err
	}
	own, granted, err := r.nodes.ReadSlots(ctx, r.tx, id)
	if err != nil {
		return nil, err
	}

	room := new(slotRoom)
	if p := job.Config.GetParallelism(); p > granted {
		room.free = p - granted
	}
	if idle := r.idle[id]; idle.Of.stillHeld(own) {
		room.idle = idle.Slots
	}
	r.slots[id] = room
	return room, nil
}

// takeSlots has this node have the slots that were free.
func (r *readoption) takeSlots(ctx context.Context) error {
	for id, slots := range r.slots {
		if err := r.nodes.AddSlots(ctx, r.tx, id, slots.taken); err != nil {
			return err
		}
	}
	return nil
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
