package queue

import (
	"context"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// claimUnits takes units for the sessions that are still as they were.
func (t *turn) claimUnits(ctx context.Context, values [][]byte) error {
	c := t.in.Claim
	if c == nil {
		return nil
	}

	// values holds the record and the claim of each session, and then what is the node's
	// own.
	t.out.Bound = make([]bool, len(c.Workers))
	again := false
	for i, s := range c.Workers {
		bound, err := t.isBound(s, values[2*i])
		if err != nil {
			return err
		}
		t.out.Bound[i] = bound
		again = again || values[2*i+1] != nil
	}

	if again { // this claim committed in an earlier run
		return t.readClaimed(ctx, values)
	}

	if t.Ctl == nil || !mapreduce.JobState(t.Ctl.State).Running() {
		return nil
	}
	if t.out.JobError != "" {
		t.out.Left = c.Candidates
		return nil
	}

	own := values[2*len(c.Workers):]
	grant, covered, err := t.readGrant(own[1:])
	if err != nil {
		return err
	}
	if !covered {
		t.out.Short, t.out.Left = true, c.Candidates
		return nil
	}

	// The node is alive, whatever others took it for.
	if own[0] != nil {
		t.Tx.Clear(t.Keys.Nodes().Doubt(t.Node))
	}

	return t.claimNew(ctx, grant)
}

// readGrant returns what this node was granted of the job, and whether its slots cover the
// claim. They may not: others take the slots of a node that they took for dead, and slots
// move with a worker that connects to another node.
func (t *turn) readGrant(values [][]byte) (*storagev1.Grant, bool, error) {
	var grants [2]storagev1.Grant // of the job, of the fleet
	for i, value := range values {
		if err := records.Decode(nil, value, &grants[i]); err != nil {
			return nil, false, err
		}
	}
	c := t.in.Claim
	t.out.Slots, t.out.Calls = Share{grants[0].Slots, grants[0].Taken}, Share{grants[1].Slots, grants[1].Taken}
	return &grants[0], c.Slots.stillHeld(&grants[0]) && c.Calls.stillHeld(&grants[1]), nil
}

func (t *turn) isBound(s WorkerSlots, value []byte) (bool, error) {
	var sess storagev1.Session
	if value == nil {
		return false, nil
	}
	if err := records.Decode(t.Keys.Nodes().Session(s.Session), value, &sess); err != nil {
		return false, err
	}
	return sess.Node == string(t.Node) && sess.Epoch == s.Epoch, nil
}

// readClaimed reads back what an earlier run of this transaction claimed.
func (t *turn) readClaimed(ctx context.Context, values [][]byte) error {
	var all []*storagev1.HeldUnit
	var by []mapreduce.SessionID
	for i, s := range t.in.Claim.Workers {
		var held storagev1.Held
		if err := records.Decode(nil, values[2*i+1], &held); err != nil {
			return err
		}
		for _, h := range held.Units {
			all, by = append(all, h), append(by, s.Session)
		}
	}

	units, err := t.Units.Held(ctx, t.Tx, all)
	if err != nil {
		return err
	}

	// A unit may have been taken from its session since, so only what this claim still
	// holds counts.
	taken := make(map[mapreduce.UnitID]bool)
	for i, h := range all {
		taken[mapreduce.UnitID(h.Unit)] = true
		if u := units[i]; u != nil && u.Attempt == h.Attempt && u.Session == string(by[i]) && u.Claim == t.in.Claim.ID {
			t.out.Claimed = append(t.out.Claimed, Claimed{by[i], records.UnitFrom(u)})
		}
	}

	for _, c := range t.in.Claim.Candidates {
		if !taken[c.Unit] {
			t.out.Left = append(t.out.Left, c)
		}
	}

	return nil
}

func (t *turn) claimNew(ctx context.Context, g *storagev1.Grant) error {
	c, ks := t.in.Claim, t.candidateKeys()
	near, err := t.readCandidates(ctx, ks)
	if err != nil {
		return err
	}
	left, err := t.affordableTokens(ctx, g)
	if err != nil {
		return err
	}
	room, err := t.RoomToRun(ctx)
	if err != nil {
		return err
	}

	slots := newSlotAssigner(c.Workers, t.out.Bound)
	chosen, err := t.chooseUnits(ks, near.Values, slots, left, room)
	if err != nil {
		return err
	}

	// Before the units are written: what was written adds no conflict.
	near.AddConflicts(t.Tx, func(i int) bool { return chosen[i].unit != nil })
	for _, one := range chosen {
		if one.unit != nil {
			t.claimUnit(one.unit, c.Workers[one.worker].Session)
		}
	}

	slots.writeHeld(t)
	if c.Bounded && len(t.out.Claimed) > 0 {
		t.nodes.AddSpendConflict(t.Tx, t.Job)
	}

	return nil
}

// chosenUnit is the unit of a candidate that is to be claimed, and which of the claim's
// sessions gets it; the unit is nil if the candidate is not claimed.
type chosenUnit struct {
	unit   *storagev1.Unit
	worker int
}

// chooseUnits decides which candidates are claimed: those that still wait, as long as there
// are slots, room and tokens left. It returns what became of each candidate, in order.
func (t *turn) chooseUnits(ks, values [][]byte, slots *slotAssigner, left, room int64) ([]chosenUnit, error) {
	c := t.in.Claim
	chosen := make([]chosenUnit, len(c.Candidates))
	taken := make(map[mapreduce.UnitID]bool, len(c.Candidates))

	for i, cand := range c.Candidates {
		if taken[cand.Unit] {
			continue // seen twice
		}
		if int64(len(taken)) >= room {
			t.out.Left = append(t.out.Left, cand)
			t.out.Full = true
			continue
		}

		u, err := t.waitingUnit(cand, ks[i], values[i])
		if err != nil {
			return nil, err
		}
		if u == nil {
			continue // claimed by another, or ended: the entry that was seen is dead
		}

		short := c.Bounded && u.Estimate > left
		worker := slots.next()
		if worker < 0 || short {
			t.out.Left = append(t.out.Left, cand)
			if short && worker >= 0 && t.out.Need == 0 {
				t.out.Need = u.Estimate
			}
			continue
		}

		taken[cand.Unit] = true
		slots.assignUnit(worker, u)
		left -= u.Estimate
		chosen[i] = chosenUnit{u, worker}
	}

	return chosen, nil
}

// candidateKeys lists the keys of the units that are candidates of the claim.
func (t *turn) candidateKeys() [][]byte {
	ks := make([][]byte, len(t.in.Claim.Candidates))
	for i, cand := range t.in.Claim.Candidates {
		ks[i] = t.Keys.Job(t.Job).Unit(cand.Unit)
	}
	return ks
}

// readCandidates reads the units that are candidates, by snapshot: those that are not
// taken are no conflict. Few of them were read before.
func (t *turn) readCandidates(ctx context.Context, ks [][]byte) (*store.Near, error) {
	if t.candidates != nil {
		return t.candidates, nil
	}
	if isDenseRange(t.in.Claim.Candidates) {
		return store.GetNear(ctx, t.Tx.Snapshot(), ks)
	}
	return store.GetApart(ctx, t.Tx.Snapshot(), ks)
}

// isDenseRange reports whether candidates are likely to lie beside each other: they
// have the order of their ids, and not many more documents lie between the first and
// the last than there are candidates.
func isDenseRange(all []records.Candidate) bool {
	byID := func(a, b records.Candidate) int { return strings.Compare(string(a.Unit), string(b.Unit)) }
	if len(all) < store.MinNear || !slices.IsSortedFunc(all, byID) {
		return false
	}
	documents := keys.Document(all[len(all)-1].Seq - all[0].Seq)
	return documents < int64(2*len(all))
}

// affordableTokens returns how many tokens the claim may reserve: what the caller
// thinks, unless the grant says less. A node that was taken for dead finds its
// grant taken back, and must not spend what others were given since.
func (t *turn) affordableTokens(ctx context.Context, g *storagev1.Grant) (int64, error) {
	c := t.in.Claim
	if !c.Bounded {
		return 0, nil
	}
	used, err := t.nodes.Used(ctx, t.Tx.Snapshot(), t.Job, records.CurrencyOf(t.Ctl), t.Node)
	if err != nil {
		return 0, err
	}
	t.out.Overdrawn = g.Tokens-used < c.Tokens
	return min(c.Tokens, g.Tokens-used), nil
}

// waitingUnit returns the candidate's unit if it still waits where it was seen.
func (t *turn) waitingUnit(c records.Candidate, key, value []byte) (*storagev1.Unit, error) {
	if value == nil {
		return nil, nil
	}

	u := new(storagev1.Unit)
	if err := records.Decode(key, value, u); err != nil {
		return nil, err
	}

	q := u.Queue
	ok := records.IsClaimable(u) && q.Class == c.Class && q.Seq == c.Seq && q.Shard == c.Shard && u.Level <= records.OpenLevel(t.Ctl)
	if !ok {
		return nil, nil
	}

	return u, nil
}

// claimUnit claims u: the attempt is raised, which fences off all earlier ones, and
// what its first call may spend is reserved.
func (t *turn) claimUnit(u *storagev1.Unit, s mapreduce.SessionID) {
	t.Units.Dequeue(t.Tx, t.Job, u)
	c := t.in.Claim

	u.Status = uint32(mapreduce.Processing)
	u.Attempt++
	u.Put = nil
	u.Session, u.Claim, u.Node, u.Reporter = string(s), c.ID, string(t.Node), ""
	u.Reserved, u.Charged, u.Started = u.Estimate, 0, false
	u.Share = c.Share / max(1, u.Source.GetChunks()) * DocumentsOf(u)

	t.Add(keys.Reserved, 0, u.Reserved)
	t.Add(keys.Running, u.Level, 1)
	t.Add(keys.Claimed, 0, 1)
	t.Units.Set(t.Tx, t.Job, u)

	t.out.Claimed = append(t.out.Claimed, Claimed{s, records.UnitFrom(u)})
}

// slotAssigner deals units to sessions in turn, so that no session gets a run of them.
type slotAssigner struct {
	free []int
	at   int
	held []storagev1.Held
}

func newSlotAssigner(workers []WorkerSlots, bound []bool) *slotAssigner {
	s := &slotAssigner{free: make([]int, len(workers)), held: make([]storagev1.Held, len(workers))}
	for i, worker := range workers {
		if bound[i] {
			s.free[i] = worker.Slots
		}
	}
	return s
}

// next returns which session has a free slot, or -1.
func (s *slotAssigner) next() int {
	for range s.free {
		i := s.at
		s.at = (s.at + 1) % len(s.free)
		if s.free[i] > 0 {
			return i
		}
	}
	return -1
}

func (s *slotAssigner) assignUnit(worker int, u *storagev1.Unit) {
	s.free[worker]--
	s.held[worker].Units = append(s.held[worker].Units, &storagev1.HeldUnit{Unit: u.UnitId, Attempt: u.Attempt + 1})
}

func (s *slotAssigner) writeHeld(t *turn) {
	for i, worker := range t.in.Claim.Workers {
		if len(s.held[i].Units) == 0 {
			continue
		}
		for _, h := range s.held[i].Units {
			h.Job = string(t.Job)
		}
		t.Tx.Set(t.Keys.Nodes().Held(worker.Session, t.in.Claim.ID), records.Encode(&s.held[i]))
	}
}
