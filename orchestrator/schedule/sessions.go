package schedule

import (
	"slices"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/sessions"
	"github.com/coditect/mapreduce/store/jobs/turns"
)

// Sessions are the workers, as far as this node sees them. The scheduler's mu guards
// them.
type Sessions struct {
	sched *Scheduler

	bound          map[mapreduce.SessionID]*Session
	away           map[mapreduce.SessionID]*Session // whose streams have ended, and who may come back
	rotationOffset int                              // rotates the session that is offered a unit first
	texts          int64                            // bytes that units which run keep of what they were given
}

// Supersede ends an older stream of a session on this node.
func (t *Sessions) Supersede(id mapreduce.SessionID, epoch int64) {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()
	if s := t.bound[id]; s != nil && s.Epoch < epoch {
		t.displace(s)
	}
}

// displace ends the stream of a session that another has taken up. The caller holds
// the scheduler's mu.
func (t *Sessions) displace(s *Session) {
	t.suspend(s)
	s.Peer.Stop(ErrSuperseded)
}

// ErrSuperseded ends the stream of a session that another has taken up.
var ErrSuperseded = errs.New(errs.Aborted, "the session was taken up by another stream")

// suspend takes a session off the scheduler whose stream has ended. Until its worker
// is known to be gone, or elsewhere, what it holds may be running, and takes up
// slots of its jobs. The caller holds the scheduler's mu.
func (t *Sessions) suspend(s *Session) {
	s.gone = true
	delete(t.bound, s.ID)
	if old := t.away[s.ID]; old != nil {
		t.letGo(old)
	}
	t.away[s.ID] = s
	t.sched.wake.Broadcast()
}

// letGo forgets what a session held. The caller holds the scheduler's mu.
func (t *Sessions) letGo(s *Session) {
	if t.away[s.ID] == s {
		delete(t.away, s.ID)
	}

	for key, h := range s.held {
		s.dropInput(h)
		if r := t.sched.runs[key.job]; r != nil {
			t.sched.forgetHeldUnit(r, h)
			t.sched.fairQueue.add(r)
			t.sched.dropJob(r)
		}
	}

	s.held = nil
	t.sched.wake.Broadcast()
}

// Enter puts a session with what it holds on the scheduler. It returns false if a later
// stream of it came first.
func (t *Sessions) Enter(s *Session, kept []sessions.Held) bool {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()

	s.texts, s.seen = &t.texts, t.sched.now()
	other, old := t.bound[s.ID], t.away[s.ID]
	if other != nil && other.Epoch > s.Epoch || old != nil && old.Epoch > s.Epoch {
		s.gone = true // two streams of one session came in the wrong order
		s.Peer.Stop(ErrSuperseded)
		return false
	}

	if other != nil {
		t.displace(other)
	}

	clocks := make(map[unitKey]HeldUnit) // a stream that begins anew gives no attempt more time
	if old := t.away[s.ID]; old != nil {
		for key, h := range old.held {
			clocks[key] = HeldUnit{attempt: h.attempt, clock: h.clock}
		}
		t.letGo(old)
	}

	claims := make(map[string]*claimOf)
	for _, h := range kept {
		c := claims[h.Claim]
		if c == nil {
			c = &claimOf{id: turns.HeldID{Session: s.ID, Claim: h.Claim}}
			claims[h.Claim] = c
		}

		c.left++
		s.busy++
		s.heard++
		s.held[unitKey{h.Job, h.Unit}] = &HeldUnit{
			attempt: h.Attempt, claim: c, Reserved: h.Reserved, granted: h.Node == t.sched.node, running: h.Running,
			suspect: h.Attempt > 1,
		}

		if before := clocks[unitKey{h.Job, h.Unit}]; before.attempt == h.Attempt {
			s.held[unitKey{h.Job, h.Unit}].clock = before.clock
		}

		r := t.sched.getOrAddJob(h.Job)
		t.sched.addHeldUnits(r, 1)
		r.grantUnsure = true // slots may have come with it
	}

	t.bound[s.ID] = s
	t.sched.Models.welcome(s, s.seen)
	t.activateFor(s)
	return true
}

// activateFor makes the fair queue visit the jobs that a session can run, or has units of.
// The caller holds the scheduler's mu.
func (t *Sessions) activateFor(s *Session) {
	for _, r := range t.sched.runs {
		if r.running && s.canRun(r, s.seen) {
			t.sched.fairQueue.add(r)
		}
	}

	for key := range s.held {
		if r := t.sched.runs[key.job]; r != nil {
			t.sched.fairQueue.add(r)
		}
	}

	t.sched.wake.Broadcast()
}

// CountWaiting returns how many units of a job wait at workers of this node for a slot
// there: those that a worker holds beyond its slots.
func (t *Sessions) CountWaiting(id mapreduce.JobID) (waiting int64) {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()

	for _, s := range t.bound {
		held := 0
		for key, h := range s.held {
			if key.job == id && !h.reported && !h.checking {
				held++
			}
		}
		waiting += int64(max(0, held-s.Slots))
	}
	return waiting
}

// OfferAgain offers units again to sessions that could be given none for a while.
func (t *Sessions) OfferAgain() {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()
	t.sched.activateAll()
}

// Leave takes a session off the scheduler whose stream has ended. It returns the
// attempts that the worker was running, and whether it has nothing left to do; or false
// if another stream has taken the session up already.
func (t *Sessions) Leave(s *Session) (running map[mapreduce.Held]bool, done, ok bool) {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()

	if t.bound[s.ID] != s {
		return nil, false, false
	}

	running = make(map[mapreduce.Held]bool)
	for key, h := range s.held {
		if h.running && !h.reported && !h.checking {
			running[mapreduce.Held{Job: key.job, Unit: key.unit, Attempt: h.attempt}] = true
		}
	}

	t.suspend(s)
	return running, len(s.held) == 0 && s.draining, true
}

// Forget forgets what a session held that was given up, or has gone elsewhere.
func (t *Sessions) Forget(s *Session) {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()
	t.letGo(s)
}

// All returns the sessions whose streams are here.
func (t *Sessions) All() []*Session {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()
	return t.rotate()
}

// rotate returns the sessions, beginning with another one each time.
func (t *Sessions) rotate() []*Session {
	all := make([]*Session, 0, len(t.bound))
	for _, s := range t.bound {
		all = append(all, s)
	}
	if len(all) > 1 {
		t.rotationOffset = (t.rotationOffset + 1) % len(all)
		all = append(all[t.rotationOffset:], all[:t.rotationOffset]...)
	}
	return all
}

// Bound returns a session whose stream is here, or nil.
func (t *Sessions) Bound(id mapreduce.SessionID) *Session {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()
	if s := t.bound[id]; s != nil && !s.gone {
		return s
	}
	return nil
}

// Away returns a session whose stream here has ended, if it was not here since,
// and the jobs of which it held units.
func (t *Sessions) Away(ref nodes.SessionRef) (*Session, map[mapreduce.JobID]bool) {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()

	s := t.away[ref.Session]
	if s == nil || s.Epoch > ref.Epoch {
		return nil, nil
	}

	held := make(map[mapreduce.JobID]bool)
	for key := range s.held {
		held[key.job] = true
	}
	return s, held
}

// slotCapacity counts the slots of the sessions that can run units of r.
func (t *Sessions) slotCapacity(r *Job) (n int64) {
	for _, s := range t.bound {
		if s.canRun(r, t.sched.now()) {
			n += int64(s.Slots)
		}
	}
	return n
}

// countUsableSessions counts the sessions that can run units of r, now or once a slot is free.
func (t *Sessions) countUsableSessions(r *Job) (n int) {
	for _, s := range t.bound {
		if s.canRun(r, t.sched.now()) {
			n++
		}
	}
	return n
}

// reachableSlots returns how many more units of r the workers of this node can be given,
// and how many of r, and of all jobs, they can run at once: those that may come back as
// well.
func (t *Sessions) reachableSlots(r *Job) (free, slots, all int) {
	now := t.sched.now()
	for _, s := range t.bound {
		all += s.Slots
		if s.canRun(r, now) {
			free += max(0, s.freeUnits()) // one that came back may hold more than it may be given
			slots += s.Slots
		} else {
			slots += s.countHeld(r)
		}
	}

	// These are given nothing, but what they hold may still run.
	for _, s := range t.away {
		all += s.Slots
		slots += s.countHeld(r)
	}

	return free, slots, all
}

// SlotsFor counts the slots of the sessions that can run units of a job that is
// new.
func (t *Sessions) SlotsFor(spec *mapreduce.JobSpec) int64 {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()
	return t.slotCapacity(&Job{spec: spec, model: breakerOf(spec), models: spec.ModelNames(), tenant: spec.Tenant, needs: jobspec.Requirements(spec, nil)})
}

// providerSlots counts the slots of workers that have a provider.
func (t *Sessions) providerSlots(provider string) (n int64) {
	for _, s := range t.bound {
		if slices.Contains(s.offer.Providers, provider) {
			n += int64(s.Slots)
		}
	}
	return n
}

// holdsOf counts what a session holds of the jobs of a model.
func (t *Sessions) holdsOf(s *Session, name string) (n int64) {
	for key := range s.held {
		if r := t.sched.runs[key.job]; r != nil && slices.Contains(r.models, name) {
			n++
		}
	}
	return n
}

// KeepClaimed returns the session that was given a claimed unit and still has it. It
// keeps what the unit is given. epoch is that of the job as the unit was claimed.
func (t *Sessions) KeepClaimed(of *Task, epoch int64, c turns.Claimed, text []byte) *Session {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()

	s := t.seated(of, c.Session)
	if s == nil {
		return nil
	}

	h := s.held[unitKey{of.Job.ID, c.Unit.ID}]
	if h == nil || h.attempt != int(c.Unit.Attempt) {
		return nil
	}

	if stage := of.Stages.StageAt(c.Unit.Level); stage == nil || len(stage.Tools) == 0 {
		s.keepInput(h, c.Unit, epoch, text) // else its evidence is read with it, and that grows
	}
	return s
}

// seated returns the session that a turn has set slots aside at, if it is still the one on
// the scheduler. The caller holds the scheduler's mu.
func (t *Sessions) seated(of *Task, id mapreduce.SessionID) *Session {
	for _, s := range of.seats {
		if s.ID == id && t.bound[id] == s {
			return s
		}
	}
	return nil
}

// KeepInputs keeps the units that an attempt was given the outputs of, with these outputs,
// if its unit is kept.
func (t *Sessions) KeepInputs(s *Session, held mapreduce.Held, taken []*records.Unit) {
	if len(taken) == 0 {
		return
	}
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()
	if h := s.held[unitKey{held.Job, held.Unit}]; h != nil && h.attempt == held.Attempt && h.unit != nil && h.inputs == nil {
		s.keepTaken(h, taken)
	}
}

// Introduce sends s what it has to know of the job before it gets units of it, unless it
// was sent that before. Two committers may have units for s: the lock makes the sending and
// the note of it one act.
func (t *Sessions) Introduce(s *Session, r *Job) {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()
	if s.knows[r.ID] != r.epoch {
		s.knows[r.ID] = r.epoch
		s.Peer.Send(&mapreduce.ToWorker{Jobs: []mapreduce.JobInfo{{Job: r.ID, Stage: r.stages.StageName(r.stages.Level), Spec: *r.spec}}})
	}
}

// releaseJobOnWorkers has the workers that know of a job forget it. The caller holds the
// scheduler's mu.
func (t *Sessions) releaseJobOnWorkers(id mapreduce.JobID) {
	for _, s := range t.bound {
		if _, known := s.knows[id]; known {
			delete(s.knows, id)
			s.Peer.Send(&mapreduce.ToWorker{Forget: []mapreduce.JobID{id}})
		}
	}
}

// DropUnits stops what workers of this node run of a job. A worker that has
// spent something by then reports it, and gets the verdict of any late report.
func (t *Sessions) DropUnits(id mapreduce.JobID) {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()

	r := t.sched.runs[id]
	if r == nil {
		return
	}

	for _, s := range t.bound {
		var stop []mapreduce.Held
		for key, h := range s.held {
			// A unit that was reported has ended, and waits for its verdict.
			if key.job != id || h.reported {
				continue
			}

			stop = append(stop, mapreduce.Held{Job: id, Unit: key.unit, Attempt: h.attempt})
			s.forgetAttempt(id, key.unit, h.attempt)
			h.claim.endUnit(r)
			t.sched.addHeldUnits(r, -1)
		}

		if len(stop) > 0 {
			s.Peer.Send(&mapreduce.ToWorker{Cancel: stop})
		}
	}

	t.sched.fairQueue.add(r)
	t.sched.wake.Broadcast()
}
