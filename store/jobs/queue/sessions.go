package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// Sessions binds sessions of workers to orchestrators, and takes back what lost sessions held.
type Sessions struct {
	db *records.DB
	*records.Records
	nodes nodes.Records
}

// NewSessions returns the operations on the records of db.
func NewSessions(db *records.DB) *Sessions {
	return &Sessions{db, db.Records(), nodes.Records{Records: db.Records()}}
}

// A Binding is what a session holds once it is bound to this node.
type Binding struct {
	Epoch int64
	Kept  []Held            // attempts that go on
	Drop  []protocol.Held   // named by the worker, but no longer its own
	Jobs  []mapreduce.JobID // whose units went back to their queues
}

// An Idle is the slots of a job that a node does not use, nor will until it has bound a session.
type Idle struct {
	Slots int64
	Of    Share  // of all that it has of the job
	Calls *Calls // of the fleet, if units of the job may call models; all jobs have the same
}

// Calls are how many units of the fleet may call models at the same time.
type Calls struct {
	Idle  int64 // of those that the node was granted, which it does not use
	Of    Share // of all that it was granted
	Limit int64 // of all nodes together
}

// Held is an attempt that a session holds, and the claim that gave it.
type Held struct {
	protocol.Held
	Claim    string
	Node     mapreduce.NodeID // whose grant holds its reservation
	Reserved int64
}

// Bind makes this node the one that a worker's session reports to, and raises the
// session's epoch, which ends the claims of whichever node had it before. The
// epoch is the caller's to choose, above the one it read, so that Bind can be
// run again.
// The session keeps those attempts that the worker named. The worker never received
// the rest of what the session holds in the store; it goes back to the queues. The slots
// of all attempts come to this node. What it had lost and nobody has claimed since it goes on with
// as well, as far as there are slots, and calls where units call models: of those that this node has idle, by job,
// and of those that no node has.
// A worker that is bound to a tenant keeps no unit of another; tenant is empty for one that is not.
func (st *Sessions) Bind(ctx context.Context, hello *protocol.Hello, tenant mapreduce.TenantID, epoch int64, idle map[mapreduce.JobID]Idle) (*Binding, error) {
	id, holding := hello.Session, hello.Holding
	// The store does not say which attempts run, so they are compared without that.
	named, running := make(map[protocol.Held]bool, len(holding)), make(map[protocol.Held]bool)
	for _, h := range holding {
		runs := h.Running
		h.Running = false
		named[h], running[h] = true, runs
	}

	var b *Binding
	err := st.db.Update(ctx, failpoint.Bind, func(tx store.Tx) error {
		b = &Binding{Epoch: epoch}
		var sess storagev1.Session
		if _, err := records.Read(ctx, tx, st.Keys.Nodes().Session(id), &sess); err != nil {
			return err
		}

		if sess.Epoch > epoch || sess.Epoch == epoch && sess.Node != string(st.Node) {
			return errs.New(errs.Aborted, "session %s was taken up by another stream since", id)
		}

		tx.Set(st.Keys.Nodes().Session(id), records.Encode(&storagev1.Session{
			Node: string(st.Node), Epoch: epoch, Embedded: hello.Embedded,
		}))
		if err := st.nodes.EndDoubt(ctx, tx); err != nil {
			return err
		}

		s := &sweep{Records: st.Records, tx: tx, session: id, tenant: tenant, kept: named}
		if err := s.sweepHeld(ctx, 0); err != nil {
			return err
		}

		// The slots of what it has lost are not where it comes from any more.
		most := int64(hello.Slots)
		moves := s.heldSlots(most)
		r := &readoption{sweep: s, nodes: st.nodes, most: most, idle: idle}
		if err := r.readoptUnits(ctx, holding, fmt.Sprintf("bind-%d", epoch)); err != nil {
			return err
		}
		if err := s.recordChanges(ctx); err != nil {
			return err
		}
		if err := st.nodes.MoveSlots(ctx, tx, mapreduce.NodeID(sess.Node), moves, most); err != nil {
			return err
		}

		b.Kept, b.Jobs = s.stay, s.touchedJobs()
		b.Drop = s.droppedUnits(holding)
		for i := range b.Kept {
			b.Kept[i].Running = running[b.Kept[i].Held]
		}

		return nil
	})
	return b, err
}

// A Loss is what became of a session that was declared dead.
type Loss struct {
	Jobs  []mapreduce.JobID // whose units went back
	Units int               // that went back
	Done  bool              // nothing is left to do
}

// Expire declares a session dead if it is still bound as seen (node, epoch),
// and puts the units it holds back, a step at a time: call it until Done.
// running are the units known to have been running when the worker was lost; nil says
// that nobody knows which were. That its worker was lost is held against no unit, however
// often it happens: it is only counted, and from records.LostBeforeAlone times on the
// unit runs in a process of its own, which shows whether the unit ends it.
func (st *Sessions) Expire(ctx context.Context, id mapreduce.SessionID, node mapreduce.NodeID, epoch int64, running map[protocol.Held]bool) (*Loss, error) {
	var loss *Loss
	// Once it has committed, nothing shows any more whose units the session held.
	// So this is of all runs.
	touched := make(map[mapreduce.JobID]bool)
	tried := 0
	err := st.db.Update(ctx, failpoint.Expire, func(tx store.Tx) error {
		room := records.ShrinkLimit(records.StepUnits, records.LeastPage, tried)
		tried++
		loss = &Loss{Done: true}

		var sess storagev1.Session
		found, err := records.Read(ctx, tx, st.Keys.Nodes().Session(id), &sess)
		if err != nil || !found {
			return err
		}

		switch {
		case sess.Node == "" && (sess.Epoch == epoch+1 || node == "" && sess.Epoch == epoch):
			// A further step, of whoever takes it: several may have found the session so.
		case sess.Node == string(node) && sess.Epoch == epoch:
			// The first step: from here on no claim for the session commits.
			tx.Set(st.Keys.Nodes().Session(id), records.Encode(&storagev1.Session{Epoch: epoch + 1}))
		default:
			return nil // it is alive elsewhere
		}

		s := &sweep{Records: st.Records, tx: tx, session: id, lost: true, running: running}
		if err := s.sweepHeld(ctx, room); err != nil {
			return err
		}
		if err := s.recordChanges(ctx); err != nil {
			return err
		}

		for id := range s.jobs {
			touched[id] = true
		}

		loss.Units, loss.Done = s.swept, !s.more
		if loss.Done {
			tx.Clear(st.Keys.Nodes().Session(id))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}

	loss.Jobs = slices.Collect(maps.Keys(touched))
	return loss, nil
}

// sweep goes through what a session holds.
type sweep struct {
	*records.Records
	tx      store.Tx
	session mapreduce.SessionID
	tenant  mapreduce.TenantID     // whose units alone it may hold; empty for all
	lost    bool                   // the worker is gone
	kept    map[protocol.Held]bool // named by the worker
	running map[protocol.Held]bool // known to have been running; nil if nobody knows which were

	stay   []Held
	back   map[mapreduce.JobID]int64 // units that go back
	jobs   map[mapreduce.JobID]*Changes
	failed map[mapreduce.JobID]bool // with the sweep
	swept  int
	more   bool
}

// sweepHeld visits the session's claims, at most about limit units of them (0: all).
func (s *sweep) sweepHeld(ctx context.Context, limit int) error {
	s.jobs, s.back, s.failed = make(map[mapreduce.JobID]*Changes), make(map[mapreduce.JobID]int64), make(map[mapreduce.JobID]bool)
	pairs, more, err := s.tx.GetRange(ctx, s.Keys.Nodes().HeldBy(s.session), store.RangeOptions{Limit: limit})
	if err != nil {
		return err
	}
	s.more = more

	var all []*storagev1.HeldUnit
	var claims []*storagev1.Held
	for _, kv := range pairs {
		if limit > 0 && len(all) >= limit {
			s.more = true
			break
		}
		c := new(storagev1.Held)
		if err := records.Decode(kv.Key, kv.Value, c); err != nil {
			return err
		}
		all, claims = append(all, c.Units...), append(claims, c)
	}

	// Ahead: what becomes of one changes no other, and no two of a claim are the same.
	units, damaged, err := s.Units.Sound(ctx, s.tx, all)
	if err != nil {
		return err
	}

	for i, why := range damaged {
		if why == nil {
			continue
		}
		if err := s.failDamaged(ctx, all[i], why); err != nil {
			return err
		}
	}

	fit := len(units)
	if limit > 0 {
		fit = records.UnitsThatFit(units)
	}

	for i, c := range claims {
		// A claim is taken whole, and at least one is.
		if fit -= len(c.Units); fit < 0 && i > 0 {
			s.more = true
			break
		}
		if err := s.visitClaim(ctx, pairs[i].Key, c.Units, units); err != nil {
			return err
		}
		units = units[len(c.Units):]
	}

	return nil
}

// failDamaged ends a job one of whose units cannot be given back, for its record is
// damaged: nothing else would ever say so. The other jobs that the session works for do
// not suffer from it.
func (s *sweep) failDamaged(ctx context.Context, h *storagev1.HeldUnit, why error) error {
	changes, err := s.turnOf(ctx, mapreduce.JobID(h.Job))
	if err != nil || changes == nil || !mapreduce.JobState(changes.Ctl.State).Running() {
		return err
	}
	changes.Ctl.State, changes.Ctl.Error = uint32(mapreduce.JobFailed), records.ClipText(why.Error())
	s.failed[changes.Job] = true
	return nil
}

// recordChanges writes what the sweep has changed of jobs, and wakes the orchestrators
// that can claim the units which were handed back.
func (s *sweep) recordChanges(ctx context.Context) error {
	for _, changes := range s.jobs {
		if !s.failed[changes.Job] {
			changes.Record()
		} else if err := changes.RecordFailure(ctx); err != nil {
			return err
		}
	}

	if s.swept > 0 {
		s.Jobs.WakeOthers(s.tx)
	}
	return nil
}

// visitClaim visits the units of one claim, which units begins with. Its record goes when
// none of them stays.
func (s *sweep) visitClaim(ctx context.Context, key []byte, held []*storagev1.HeldUnit, units []*storagev1.Unit) error {
	_, rest, err := s.Keys.Last(key)
	if err != nil {
		return err
	}

	// The session stands before the claim.
	rest.Skip()
	claim := rest.Text()

	stays := false
	for i, h := range held {
		kept, err := s.visitUnit(ctx, claim, h, units[i])
		if err != nil {
			return err
		}
		stays = stays || kept
	}

	if !stays {
		s.tx.Clear(key)
	}
	return nil
}

func (s *sweep) visitUnit(ctx context.Context, claim string, h *storagev1.HeldUnit, u *storagev1.Unit) (stays bool, err error) {
	// The claim may name an attempt that is no longer its own.
	if u == nil || u.Attempt != h.Attempt || u.Session != string(s.session) || u.Claim != claim ||
		mapreduce.UnitState(u.Status) != mapreduce.Processing {
		return false, nil
	}

	id := protocol.Held{Job: mapreduce.JobID(h.Job), Unit: mapreduce.UnitID(h.Unit), Attempt: int(h.Attempt)}
	stays, err = s.mayKeep(ctx, id)
	if err != nil {
		return false, err
	}

	if stays {
		s.stay = append(s.stay, Held{id, claim, mapreduce.NodeID(u.Node), u.Reserved})
		return true, nil
	}

	s.swept++
	s.back[id.Job]++
	return false, s.returnUnit(ctx, id, u)
}

// mayHaveRun reports whether a unit may have been running when its worker was lost.
func (s *sweep) mayHaveRun(id protocol.Held, u *storagev1.Unit) bool {
	return u.Started || s.running[id] || s.running == nil
}

// mayKeep reports whether the session goes on with a unit that it holds: the worker has
// named it, and may run units of its tenant.
func (s *sweep) mayKeep(ctx context.Context, id protocol.Held) (bool, error) {
	if !s.kept[id] || s.tenant == "" {
		return s.kept[id], nil
	}
	changes, err := s.turnOf(ctx, id.Job)
	return changes != nil && mapreduce.TenantID(changes.Ctl.Tenant) == s.tenant, err
}

// heldSlots counts by job the units that the session held, and holds, as far as it
// can run them at once: as many slots go with it to its next orchestrator.
func (s *sweep) heldSlots(most int64) map[mapreduce.JobID]int64 {
	count := maps.Clone(s.back)
	for _, h := range s.stay {
		count[h.Job]++
	}
	for id, n := range count {
		count[id] = min(n, most)
	}
	return count
}

// returnUnit returns u to its queue. Its attempt still stands: should its worker
// finish it after all, before it is claimed again, the finish is accepted.
func (s *sweep) returnUnit(ctx context.Context, id protocol.Held, u *storagev1.Unit) error {
	changes, err := s.turnOf(ctx, id.Job)
	if err != nil || changes == nil {
		return err
	}

	changes.Add(keys.Running, u.Level, -1)
	if s.lost { // its calls may have been made: charge the worst case
		u.Charged += u.Reserved
		changes.AddFor(mapreduce.NodeID(u.Node), keys.Charged, 0, u.Reserved)
	}
	changes.AddFor(mapreduce.NodeID(u.Node), keys.Reserved, 0, -u.Reserved)
	u.Reserved = 0

	if u.Started = s.lost && s.mayHaveRun(id, u); u.Started {
		u.Kills++ // while u waits, Started says that this attempt was counted
	}

	if mapreduce.JobState(changes.Ctl.State) == mapreduce.JobCancelled {
		u.Queue = nil
		changes.CancelUnit(u)
	} else {
		s.Units.Enqueue(s.tx, id.Job, u, keys.ClassRequeued)
	}

	s.Units.Set(s.tx, id.Job, u)
	return nil
}

// turnOf returns what keeps the counters of a job within this transaction, or nil if the
// job is gone. One whose switch is damaged is as good as gone: other jobs go on.
func (s *sweep) turnOf(ctx context.Context, id mapreduce.JobID) (*Changes, error) {
	if changes, ok := s.jobs[id]; ok {
		return changes, nil
	}

	var ctl storagev1.Ctl
	found, err := records.Read(ctx, s.tx, s.Keys.Job(id).Ctl(), &ctl)
	if errors.Is(err, store.ErrCorrupt) {
		return nil, nil
	}
	if err != nil || !found {
		return nil, err
	}

	changes := NewChanges(s.Records, s.tx, id, &ctl)
	s.jobs[id] = changes
	return changes, nil
}

func (s *sweep) touchedJobs() []mapreduce.JobID {
	var ids []mapreduce.JobID
	for id := range s.jobs {
		ids = append(ids, id)
	}
	return ids
}

// droppedUnits returns what the worker named and does not hold.
func (s *sweep) droppedUnits(holding []protocol.Held) []protocol.Held {
	stays := make(map[protocol.Held]bool, len(s.stay))
	for _, h := range s.stay {
		stays[h.Held] = true
	}

	var drop []protocol.Held
	for _, h := range holding {
		h.Running = false
		if !stays[h] {
			drop = append(drop, h)
		}
	}
	return drop
}

// Started notes that units have begun to run, so that those are known which ran when
// their worker was lost, also if its orchestrator was lost with it. It is kept only for
// units that were claimed before: the rest are known to their orchestrator alone.
func (st *Sessions) Started(ctx context.Context, held []protocol.Held) error {
	return st.db.Update(ctx, failpoint.Started, func(tx store.Tx) error {
		for _, h := range held {
			u, err := st.Units.Read(ctx, tx, h.Job, h.Unit)
			if err != nil {
				return err
			}

			if records.AttemptStands(u, h.Attempt) && !u.Started && mapreduce.UnitState(u.Status) == mapreduce.Processing {
				u.Started = true
				st.Units.Set(tx, h.Job, u)
			}
		}
		return nil
	})
}
