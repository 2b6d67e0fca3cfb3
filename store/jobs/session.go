package jobs

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/keys"
)

// maxKills is how many workers a unit may bring down while it runs.
const maxKills = 2

// A Binding is what a session holds once it is bound to this node.
type Binding struct {
	Epoch int64
	Kept  []Held            // attempts that go on
	Drop  []mapreduce.Held  // named by the worker, but no longer its own
	Jobs  []mapreduce.JobID // whose units went back to their queues
}

// Held is an attempt that a session holds, and the claim that gave it.
type Held struct {
	mapreduce.Held
	Claim    string
	Node     mapreduce.NodeID // whose grant holds its reservation
	Reserved int64
}

// Bind makes this node the one that a worker's session reports to, and raises the
// session's epoch, which ends the claims of whichever node had it before. The
// epoch is the caller's to choose, above the one it read, so that Bind can be
// run again.
// Of what the session holds in the store, the attempts that the worker named
// stay; the rest it never received, and they go back to their queues. The slots
// of all of them come to this node.
func (j *SessionsPart) Bind(ctx context.Context, hello *mapreduce.Hello, epoch int64) (*Binding, error) {
	id, holding := hello.Session, hello.Holding
	named := make(map[mapreduce.Held]bool, len(holding))
	for _, h := range holding {
		h.Running = false
		named[h] = true
	}
	var b *Binding
	err := j.db.update(ctx, failpoint.Bind, func(tx store.Tx) error {
		b = &Binding{Epoch: epoch}
		var sess storagev1.Session
		if _, err := read(ctx, tx, j.keys.Session(id), &sess); err != nil {
			return err
		}
		if sess.Epoch > epoch || sess.Epoch == epoch && sess.Node != string(j.node) {
			return errs.New(errs.Aborted, "session %s was taken up by another stream since", id)
		}
		tx.Set(j.keys.Session(id), encode(&storagev1.Session{
			Node: string(j.node), Epoch: epoch, Embedded: hello.Embedded,
		}))
		if err := j.nodes.endDoubt(ctx, tx); err != nil {
			return err
		}
		s := &sweep{Records: j.Records, tx: tx, session: id, kept: named}
		if err := s.sweepHeld(ctx, 0); err != nil {
			return err
		}
		if err := s.readoptUnits(ctx, holding, fmt.Sprintf("bind-%d", epoch)); err != nil {
			return err
		}
		s.recordCounts()
		most := int64(hello.Slots)
		if err := j.grants.moveSlots(ctx, tx, mapreduce.NodeID(sess.Node), s.heldSlots(most), most); err != nil {
			return err
		}
		b.Kept, b.Jobs = s.stay, s.touchedJobs()
		b.Drop = s.droppedUnits(holding)
		return nil
	})
	return b, err
}

// Epoch returns the epoch of a session, 0 if there is none, and its node.
func (j *NodesPart) Epoch(ctx context.Context, id mapreduce.SessionID) (int64, mapreduce.NodeID, error) {
	var sess storagev1.Session
	err := j.db.view(ctx, func(tx store.Tx) error {
		sess.Reset()
		_, err := read(ctx, tx, j.keys.Session(id), &sess)
		return err
	})
	return sess.Epoch, mapreduce.NodeID(sess.Node), err
}

// A Loss is what became of a session that was declared dead.
type Loss struct {
	Jobs     []mapreduce.JobID // whose units went back
	Units    int               // that went back, or were set aside
	SetAside []mapreduce.Held  // that killed too many workers
	// Told are the reduces of trees that were told of the end of a unit that was
	// set aside.
	Told map[mapreduce.JobID][]WaitRef
	Done bool // nothing is left to do
}

// Expire declares a session dead if it is still bound as seen (node, epoch),
// and puts the units it holds back, a step at a time: call it until Done.
// running are the units known to have been running when the worker was lost;
// one that loses too many workers fails.
func (j *SessionsPart) Expire(ctx context.Context, id mapreduce.SessionID, node mapreduce.NodeID, epoch int64, running map[mapreduce.Held]bool) (*Loss, error) {
	var loss *Loss
	// Once it has committed, nothing shows any more whose units the session held.
	// So this is of all runs: Unblock does not mind what did not happen.
	told := make(map[mapreduce.JobID][]WaitRef)
	tried := 0
	err := j.db.update(ctx, failpoint.Expire, func(tx store.Tx) error {
		room := shrinkLimit(stepUnits, leastPage, tried)
		tried++
		loss = &Loss{Done: true}
		var sess storagev1.Session
		found, err := read(ctx, tx, j.keys.Session(id), &sess)
		if err != nil || !found {
			return err
		}
		switch {
		case sess.Node == "" && (sess.Epoch == epoch+1 || node == "" && sess.Epoch == epoch):
			// A further step, of whoever takes it: several may have found the session so.
		case sess.Node == string(node) && sess.Epoch == epoch:
			// The first step: from here on no claim for the session commits.
			tx.Set(j.keys.Session(id), encode(&storagev1.Session{Epoch: epoch + 1}))
		default:
			return nil // it is alive elsewhere
		}
		s := &sweep{Records: j.Records, tx: tx, session: id, lost: true, running: running}
		if err := s.sweepHeld(ctx, room); err != nil {
			return err
		}
		s.recordCounts()
		for id, t := range s.jobs {
			told[id] = append(told[id], t.told...)
		}
		loss.Units, loss.SetAside, loss.Done = s.swept, s.aside, !s.more
		if loss.Done {
			tx.Clear(j.keys.Session(id))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	loss.Jobs, loss.Told = slices.Collect(maps.Keys(told)), told
	return loss, nil
}

// A SessionRef names a session as it is bound.
type SessionRef struct {
	Session mapreduce.SessionID
	Node    mapreduce.NodeID
	Epoch   int64
	// Embedded workers died with their orchestrator.
	Embedded bool
}

// Expiring reports whether a session was declared dead and still holds units. Whoever
// put them back may have died of it, so they are anybody's to put back.
func (s SessionRef) Expiring() bool { return s.Node == "" }

// Sessions returns all sessions, a page at a time, beginning after one.
func (j *NodesPart) Sessions(ctx context.Context, after mapreduce.SessionID, limit int) ([]SessionRef, bool, error) {
	var refs []SessionRef
	var more bool
	err := j.db.view(ctx, func(tx store.Tx) error {
		refs = refs[:0]
		r := j.keys.Sessions()
		if after != "" {
			r.Begin = store.Single(j.keys.Session(after)).End
		}
		pairs, m, err := tx.Snapshot().GetRange(ctx, r, store.RangeOptions{Limit: limit})
		if err != nil {
			return err
		}
		more = m
		for _, kv := range pairs {
			var sess storagev1.Session
			if err := decode(kv.Key, kv.Value, &sess); err != nil {
				return err
			}
			_, rest, err := j.keys.Last(kv.Key)
			if err != nil {
				return err
			}
			refs = append(refs, SessionRef{mapreduce.SessionID(rest.Text()), mapreduce.NodeID(sess.Node), sess.Epoch, sess.Embedded})
		}
		return nil
	})
	return refs, more, err
}

// sweep goes through what a session holds.
type sweep struct {
	*Records
	tx      store.Tx
	session mapreduce.SessionID
	lost    bool                    // the worker is gone, so its running units are suspects
	kept    map[mapreduce.Held]bool // named by the worker
	running map[mapreduce.Held]bool // known to have been running

	stay  []Held
	back  map[mapreduce.JobID]int64 // units that go back
	aside []mapreduce.Held
	jobs  map[mapreduce.JobID]*changes
	swept int
	more  bool
}

// sweepHeld visits the session's claims, at most about limit units of them (0: all).
func (s *sweep) sweepHeld(ctx context.Context, limit int) error {
	s.jobs, s.back = make(map[mapreduce.JobID]*changes), make(map[mapreduce.JobID]int64)
	pairs, more, err := s.tx.GetRange(ctx, s.keys.HeldBy(s.session), store.RangeOptions{Limit: limit})
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
		if err := decode(kv.Key, kv.Value, c); err != nil {
			return err
		}
		all, claims = append(all, c.Units...), append(claims, c)
	}
	// Ahead: what becomes of one changes no other, and no two of a claim are the same.
	units, err := s.heldUnits(ctx, s.tx, all)
	if err != nil {
		return err
	}
	for i, c := range claims {
		if err := s.visitClaim(ctx, pairs[i].Key, c.Units, units); err != nil {
			return err
		}
		units = units[len(c.Units):]
	}
	return nil
}

// heldUnits reads the units that claims name, nil for those that are not there.
func (j *Records) heldUnits(ctx context.Context, r store.Reader, held []*storagev1.HeldUnit) ([]*storagev1.Unit, error) {
	ks := make([][]byte, len(held))
	for i, h := range held {
		ks[i] = j.keys.Unit(mapreduce.JobID(h.Job), mapreduce.UnitID(h.Unit))
	}
	return readUnits(ctx, r, ks)
}

// recordCounts writes what the sweep counted, and wakes whoever can use what went
// back.
func (s *sweep) recordCounts() {
	for _, t := range s.jobs {
		t.recordTurn()
	}
	if s.swept > 0 {
		s.wakeOthers(s.tx)
	}
}

// readoptUnits takes back units that were given up for lost, that nobody has claimed
// since, and that the worker turns out to have: what it has begun is not paid
// for again.
func (s *sweep) readoptUnits(ctx context.Context, holding []mapreduce.Held, claim string) error {
	seen := make(map[mapreduce.Held]bool, len(holding)) // what stays, or was named before
	for _, h := range s.stay {
		seen[h.Held] = true
	}
	// As many to a record as to a claim: more may be too large for a value.
	name := func(i int) string { return fmt.Sprintf("%s-%d", claim, i/MaxBatch) }
	var taken []*storagev1.HeldUnit
	var missed []mapreduce.Held
	var ks [][]byte
	for _, h := range holding {
		h.Running = false
		if !seen[h] {
			seen[h] = true
			missed, ks = append(missed, h), append(ks, s.keys.Unit(h.Job, h.Unit))
		}
	}
	units, err := readUnits(ctx, s.tx, ks)
	if err != nil {
		return err
	}
	for i, h := range missed {
		u := units[i]
		if !attemptStands(u, h.Attempt) || u.Session != string(s.session) ||
			mapreduce.UnitState(u.Status) != mapreduce.Pending {
			continue
		}
		t, err := s.turnOf(ctx, h.Job)
		if err != nil {
			return err
		}
		if t == nil || mapreduce.JobState(t.ctl.State) == mapreduce.JobCancelled {
			continue
		}
		id := name(len(taken))
		t.readoptUnit(u, id)
		taken = append(taken, &storagev1.HeldUnit{Job: string(h.Job), Unit: u.UnitId, Attempt: u.Attempt})
		s.stay = append(s.stay, Held{h, id, mapreduce.NodeID(u.Node), u.Reserved})
	}
	for i := 0; i < len(taken); i += MaxBatch {
		held := &storagev1.Held{Units: taken[i:min(i+MaxBatch, len(taken))]}
		s.tx.Set(s.keys.Held(s.session, name(i)), encode(held))
	}
	return nil
}

// readoptUnit makes a unit run again that was given up for lost, under a claim.
func (t *changes) readoptUnit(u *storagev1.Unit, claim string) {
	t.dequeueUnit(t.tx, t.job, u)
	u.Status, u.Claim = uint32(mapreduce.Processing), claim
	owner := mapreduce.NodeID(u.Node)
	t.addFor(owner, keys.Charged, 0, -u.Charged)
	t.addFor(owner, keys.Reserved, 0, u.Charged)
	u.Reserved, u.Charged = u.Charged, 0
	if u.Started && u.Kills > 0 { // the worker lives after all
		u.Kills--
	}
	t.add(keys.Running, u.Level, 1)
	t.setUnit(t.tx, t.job, u)
}

// visitClaim visits the units of one claim, which units begins with. Its record goes when
// none of them stays.
func (s *sweep) visitClaim(ctx context.Context, key []byte, held []*storagev1.HeldUnit, units []*storagev1.Unit) error {
	_, rest, err := s.keys.Last(key)
	if err != nil {
		return err
	}
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
	if u == nil || u.Attempt != h.Attempt || u.Session != string(s.session) || u.Claim != claim ||
		mapreduce.UnitState(u.Status) != mapreduce.Processing {
		return false, nil
	}
	id := mapreduce.Held{Job: mapreduce.JobID(h.Job), Unit: mapreduce.UnitID(h.Unit), Attempt: int(h.Attempt)}
	if s.kept[id] {
		s.stay = append(s.stay, Held{id, claim, mapreduce.NodeID(u.Node), u.Reserved})
		return true, nil
	}
	s.swept++
	s.back[id.Job]++
	return false, s.returnUnit(ctx, id, u)
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
func (s *sweep) returnUnit(ctx context.Context, id mapreduce.Held, u *storagev1.Unit) error {
	t, err := s.turnOf(ctx, id.Job)
	if err != nil || t == nil {
		return err
	}
	t.add(keys.Running, u.Level, -1)
	if s.lost { // its calls may have been made: charge the worst case
		u.Charged += u.Reserved
		t.addFor(mapreduce.NodeID(u.Node), keys.Charged, 0, u.Reserved)
	}
	t.addFor(mapreduce.NodeID(u.Node), keys.Reserved, 0, -u.Reserved)
	u.Reserved = 0
	if u.Started = s.lost && (u.Started || s.running[id]); u.Started {
		u.Kills++ // while u waits, Started says that this attempt was blamed
	}
	switch {
	case mapreduce.JobState(t.ctl.State) == mapreduce.JobCancelled:
		u.Status, u.Queue = uint32(mapreduce.UnitCancelled), nil
	case u.Kills >= maxKills:
		u.Errors = keepErrors(u.Errors, []string{fmt.Sprintf(
			"set aside: %d workers died while they ran it", u.Kills)})
		s.aside = append(s.aside, id)
		err = t.failUnit(ctx, u)
	default:
		s.enqueueUnit(s.tx, id.Job, u, keys.ClassRequeued)
	}
	s.setUnit(s.tx, id.Job, u)
	return err
}

// turnOf returns what keeps the counters of a job within this transaction, or
// nil if the job is gone.
func (s *sweep) turnOf(ctx context.Context, id mapreduce.JobID) (*changes, error) {
	if t, ok := s.jobs[id]; ok {
		return t, nil
	}
	var ctl storagev1.Ctl
	found, err := read(ctx, s.tx, s.keys.Ctl(id), &ctl)
	if err != nil || !found {
		return nil, err
	}
	t := newChanges(s.Records, s.tx, id, &ctl)
	s.jobs[id] = t
	return t, nil
}

func (s *sweep) touchedJobs() []mapreduce.JobID {
	var ids []mapreduce.JobID
	for id := range s.jobs {
		ids = append(ids, id)
	}
	return ids
}

// droppedUnits returns what the worker named and does not hold.
func (s *sweep) droppedUnits(holding []mapreduce.Held) []mapreduce.Held {
	stays := make(map[mapreduce.Held]bool, len(s.stay))
	for _, h := range s.stay {
		stays[h.Held] = true
	}
	var drop []mapreduce.Held
	for _, h := range holding {
		h.Running = false
		if !stays[h] {
			drop = append(drop, h)
		}
	}
	return drop
}

// Started notes that units have begun to run, so that one that brings its
// worker down is known. It is kept only for units under suspicion: the rest are
// known to their orchestrator alone.
func (j *SessionsPart) Started(ctx context.Context, held []mapreduce.Held) error {
	return j.db.update(ctx, failpoint.Started, func(tx store.Tx) error {
		for _, h := range held {
			u, err := j.readUnit(ctx, tx, h.Job, h.Unit)
			if err != nil {
				return err
			}
			if attemptStands(u, h.Attempt) && !u.Started && mapreduce.UnitState(u.Status) == mapreduce.Processing {
				u.Started = true
				j.setUnit(tx, h.Job, u)
			}
		}
		return nil
	})
}

// Signs are what a sign of life sees beside itself.
type Signs struct {
	Beats map[mapreduce.NodeID]int64 // every orchestrator's count
	// Runs are the jobs that may run, so that who shows life every second needs no
	// other look at them; but if there are very many, or what is stored of them is
	// damaged, Seen is false. A node lives all the same.
	Runs []RunRef
	Seen bool
}

// seenRuns is how many jobs a sign of life looks at.
const seenRuns = 1000

// Beat shows that this node lives.
func (j *NodesPart) Beat(ctx context.Context, count int64) (*Signs, error) {
	var s *Signs
	err := j.db.update(ctx, failpoint.Beat, func(tx store.Tx) (err error) {
		s = new(Signs)
		tx.Set(j.keys.Beat(j.node), encode(&storagev1.Beat{Count: count}))
		if s.Beats, err = j.readBeats(ctx, tx); err != nil {
			return err
		}
		var more bool
		if s.Runs, more, err = j.readRuns(ctx, tx, seenRuns); store.Retryable(err) {
			return err
		}
		s.Seen = err == nil && !more
		return nil
	})
	return s, err
}

// Beats returns every orchestrator's count.
func (j *NodesPart) Beats(ctx context.Context) (beats map[mapreduce.NodeID]int64, err error) {
	err = j.db.view(ctx, func(tx store.Tx) error {
		var err error
		beats, err = j.readBeats(ctx, tx)
		return err
	})
	return beats, err
}

func (j nodeRecords) readBeats(ctx context.Context, tx store.Tx) (map[mapreduce.NodeID]int64, error) {
	beats := make(map[mapreduce.NodeID]int64)
	pairs, _, err := tx.Snapshot().GetRange(ctx, j.keys.Beats(), store.RangeOptions{})
	if err != nil {
		return nil, err
	}
	for _, kv := range pairs {
		var b storagev1.Beat
		if err := decode(kv.Key, kv.Value, &b); err != nil {
			return nil, err
		}
		_, rest, err := j.keys.Last(kv.Key)
		if err != nil {
			return nil, err
		}
		beats[mapreduce.NodeID(rest.Text())] = b.Count
	}
	return beats, nil
}
