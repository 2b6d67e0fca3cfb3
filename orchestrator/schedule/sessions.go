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
func (s *Sessions) Supersede(id mapreduce.SessionID, epoch int64) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	if session := s.bound[id]; session != nil && session.Epoch < epoch {
		s.displace(session)
	}
}

// displace ends the stream of a session that another has taken up. The caller holds
// the scheduler's mu.
func (s *Sessions) displace(session *Session) {
	s.suspend(session)
	session.Peer.Stop(ErrSuperseded)
}

// ErrSuperseded ends the stream of a session that another has taken up.
var ErrSuperseded = errs.New(errs.Aborted, "the session was taken up by another stream")

// suspend takes a session off the scheduler whose stream has ended. Until its worker
// is known to be gone, or elsewhere, what it holds may be running, and takes up
// slots of its jobs. The caller holds the scheduler's mu.
func (s *Sessions) suspend(session *Session) {
	session.gone = true
	delete(s.bound, session.ID)
	if old := s.away[session.ID]; old != nil {
		s.letGo(old)
	}
	s.away[session.ID] = session
	s.sched.wake.Broadcast()
}

// letGo forgets what a session held. The caller holds the scheduler's mu.
func (s *Sessions) letGo(session *Session) {
	if s.away[session.ID] == session {
		delete(s.away, session.ID)
	}

	for key, h := range session.held {
		session.dropInput(h)
		if j := s.sched.runs[key.job]; j != nil {
			s.sched.forgetHeldUnit(j, h)
			s.sched.fairQueue.add(j)
			s.sched.dropJob(j)
		}
	}

	session.held = nil
	s.sched.wake.Broadcast()
}

// Enter puts a session with what it holds on the scheduler. It returns false if a later
// stream of it came first.
func (s *Sessions) Enter(session *Session, kept []sessions.Held) bool {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	session.texts, session.seen = &s.texts, s.sched.now()
	other, old := s.bound[session.ID], s.away[session.ID]
	if other != nil && other.Epoch > session.Epoch || old != nil && old.Epoch > session.Epoch {
		session.gone = true // two streams of one session came in the wrong order
		session.Peer.Stop(ErrSuperseded)
		return false
	}

	if other != nil {
		s.displace(other)
	}

	clocks := make(map[unitKey]HeldUnit) // a stream that begins anew gives no attempt more time
	if old := s.away[session.ID]; old != nil {
		for key, h := range old.held {
			clocks[key] = HeldUnit{attempt: h.attempt, clock: h.clock}
		}
		s.letGo(old)
	}

	claims := make(map[string]*claimOf)
	for _, h := range kept {
		c := claims[h.Claim]
		if c == nil {
			c = &claimOf{id: turns.HeldID{Session: session.ID, Claim: h.Claim}}
			claims[h.Claim] = c
		}

		c.left++
		session.busy++
		session.heard++
		session.held[unitKey{h.Job, h.Unit}] = &HeldUnit{
			attempt: h.Attempt, claim: c, Reserved: h.Reserved, granted: h.Node == s.sched.node, running: h.Running,
			suspect: h.Attempt > 1,
		}

		if before := clocks[unitKey{h.Job, h.Unit}]; before.attempt == h.Attempt {
			session.held[unitKey{h.Job, h.Unit}].clock = before.clock
		}

		j := s.sched.getOrAddJob(h.Job)
		s.sched.addHeldUnits(j, 1)
		j.grantUnsure = true // slots may have come with it
	}

	s.bound[session.ID] = session
	s.sched.Models.welcome(session, session.seen)
	s.activateFor(session)
	return true
}

// activateFor makes the fair queue visit the jobs that a session can run, or has units of.
// The caller holds the scheduler's mu.
func (s *Sessions) activateFor(session *Session) {
	for _, j := range s.sched.runs {
		if j.running && session.canRun(j, session.seen) {
			s.sched.fairQueue.add(j)
		}
	}

	for key := range session.held {
		if j := s.sched.runs[key.job]; j != nil {
			s.sched.fairQueue.add(j)
		}
	}

	s.sched.wake.Broadcast()
}

// CountWaiting returns how many units of a job wait at workers of this node for a slot
// there: those that a worker holds beyond its slots.
func (s *Sessions) CountWaiting(id mapreduce.JobID) (waiting int64) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	for _, session := range s.bound {
		held := 0
		for key, h := range session.held {
			if key.job == id && !h.reported && !h.checking {
				held++
			}
		}
		waiting += int64(max(0, held-session.Slots))
	}
	return waiting
}

// OfferAgain offers units again to sessions that could be given none for a while.
func (s *Sessions) OfferAgain() {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	s.sched.activateAll()
}

// Leave takes a session off the scheduler whose stream has ended. It returns the
// attempts that the worker was running, and whether it has nothing left to do; or false
// if another stream has taken the session up already.
func (s *Sessions) Leave(session *Session) (running map[mapreduce.Held]bool, done, ok bool) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	if s.bound[session.ID] != session {
		return nil, false, false
	}

	running = make(map[mapreduce.Held]bool)
	for key, h := range session.held {
		if h.running && !h.reported && !h.checking {
			running[mapreduce.Held{Job: key.job, Unit: key.unit, Attempt: h.attempt}] = true
		}
	}

	s.suspend(session)
	return running, len(session.held) == 0 && session.draining, true
}

// Forget forgets what a session held that was given up, or has gone elsewhere.
func (s *Sessions) Forget(session *Session) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	s.letGo(session)
}

// All returns the sessions whose streams are here.
func (s *Sessions) All() []*Session {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	return s.rotate()
}

// rotate returns the sessions, beginning with another one each time.
func (s *Sessions) rotate() []*Session {
	all := make([]*Session, 0, len(s.bound))
	for _, session := range s.bound {
		all = append(all, session)
	}
	if len(all) > 1 {
		s.rotationOffset = (s.rotationOffset + 1) % len(all)
		all = append(all[s.rotationOffset:], all[:s.rotationOffset]...)
	}
	return all
}

// Bound returns a session whose stream is here, or nil.
func (s *Sessions) Bound(id mapreduce.SessionID) *Session {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	if session := s.bound[id]; session != nil && !session.gone {
		return session
	}
	return nil
}

// Away returns a session whose stream here has ended, if it was not here since,
// and the jobs of which it held units.
func (s *Sessions) Away(ref nodes.SessionRef) (*Session, map[mapreduce.JobID]bool) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	session := s.away[ref.Session]
	if session == nil || session.Epoch > ref.Epoch {
		return nil, nil
	}

	held := make(map[mapreduce.JobID]bool)
	for key := range session.held {
		held[key.job] = true
	}
	return session, held
}

// slotCapacity counts the slots of the sessions that can run units of j.
func (s *Sessions) slotCapacity(j *Job) (n int64) {
	for _, session := range s.bound {
		if session.canRun(j, s.sched.now()) {
			n += int64(session.Slots)
		}
	}
	return n
}

// countUsableSessions counts the sessions that can run units of j, now or once a slot is free.
func (s *Sessions) countUsableSessions(j *Job) (n int) {
	for _, session := range s.bound {
		if session.canRun(j, s.sched.now()) {
			n++
		}
	}
	return n
}

// reachableSlots returns how many more units of j the workers of this node can be given,
// and how many of j, and of all jobs, they can run at once: those that may come back as
// well.
func (s *Sessions) reachableSlots(j *Job) (free, slots, all int) {
	now := s.sched.now()
	for _, session := range s.bound {
		all += session.Slots
		if session.canRun(j, now) {
			free += max(0, session.freeUnits()) // one that came back may hold more than it may be given
			slots += session.Slots
		} else {
			slots += session.countHeld(j)
		}
	}

	// These are given nothing, but what they hold may still run.
	for _, session := range s.away {
		all += session.Slots
		slots += session.countHeld(j)
	}

	return free, slots, all
}

// SlotsFor counts the slots of the sessions that can run units of a job that is
// new.
func (s *Sessions) SlotsFor(spec *mapreduce.JobSpec) int64 {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	return s.slotCapacity(&Job{spec: spec, model: breakerOf(spec), models: spec.ModelNames(), tenant: spec.Tenant, needs: jobspec.Requirements(spec, nil)})
}

// providerSlots counts the slots of workers that have a provider.
func (s *Sessions) providerSlots(provider string) (n int64) {
	for _, session := range s.bound {
		if slices.Contains(session.offer.Providers, provider) {
			n += int64(session.Slots)
		}
	}
	return n
}

// holdsOf counts what a session holds of the jobs of a model.
func (s *Sessions) holdsOf(session *Session, name string) (n int64) {
	for key := range session.held {
		if j := s.sched.runs[key.job]; j != nil && slices.Contains(j.models, name) {
			n++
		}
	}
	return n
}

// KeepClaimed returns the session that was given a claimed unit and still has it. It
// keeps what the unit is given. epoch is that of the job as the unit was claimed.
func (s *Sessions) KeepClaimed(of *Task, epoch int64, c turns.Claimed, text []byte) *Session {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	session := s.seated(of, c.Session)
	if session == nil {
		return nil
	}

	h := session.held[unitKey{of.Job.ID, c.Unit.ID}]
	if h == nil || h.attempt != int(c.Unit.Attempt) {
		return nil
	}

	if stage := of.Stages.StageAt(c.Unit.Level); stage == nil || len(stage.Tools) == 0 {
		session.keepInput(h, c.Unit, epoch, text) // else its evidence is read with it, and that grows
	}
	return session
}

// seated returns the session that a turn has set slots aside at, if it is still the one on
// the scheduler. The caller holds the scheduler's mu.
func (s *Sessions) seated(of *Task, id mapreduce.SessionID) *Session {
	for _, session := range of.seats {
		if session.ID == id && s.bound[id] == session {
			return session
		}
	}
	return nil
}

// KeepInputs keeps the units that an attempt was given the outputs of, with these outputs,
// if its unit is kept.
func (s *Sessions) KeepInputs(session *Session, held mapreduce.Held, taken []*records.Unit) {
	if len(taken) == 0 {
		return
	}
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	if h := session.held[unitKey{held.Job, held.Unit}]; h != nil && h.attempt == held.Attempt && h.unit != nil && h.inputs == nil {
		session.keepTaken(h, taken)
	}
}

// Introduce sends session what it has to know of the job before it gets units of it, unless it
// was sent that before. Two committers may have units for session: the lock makes the sending and
// the note of it one act.
func (s *Sessions) Introduce(session *Session, j *Job) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	if session.knows[j.ID] != j.epoch {
		session.knows[j.ID] = j.epoch
		session.Peer.Send(&mapreduce.ToWorker{Jobs: []mapreduce.JobInfo{{Job: j.ID, Stage: j.stages.StageName(j.stages.Level), Spec: *j.spec}}})
	}
}

// releaseJobOnWorkers has the workers that know of a job forget it. The caller holds the
// scheduler's mu.
func (s *Sessions) releaseJobOnWorkers(id mapreduce.JobID) {
	for _, session := range s.bound {
		if _, known := session.knows[id]; known {
			delete(session.knows, id)
			session.Peer.Send(&mapreduce.ToWorker{Forget: []mapreduce.JobID{id}})
		}
	}
}

// DropUnits stops what workers of this node run of a job. A worker that has
// spent something by then reports it, and gets the verdict of any late report.
func (s *Sessions) DropUnits(id mapreduce.JobID) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	j := s.sched.runs[id]
	if j == nil {
		return
	}

	for _, session := range s.bound {
		var stop []mapreduce.Held
		for key, h := range session.held {
			// A unit that was reported has ended, and waits for its verdict.
			if key.job != id || h.reported {
				continue
			}

			stop = append(stop, mapreduce.Held{Job: id, Unit: key.unit, Attempt: h.attempt})
			session.forgetAttempt(id, key.unit, h.attempt)
			h.claim.endUnit(j)
			s.sched.addHeldUnits(j, -1)
		}

		if len(stop) > 0 {
			session.Peer.Send(&mapreduce.ToWorker{Cancel: stop})
		}
	}

	s.sched.fairQueue.add(j)
	s.sched.wake.Broadcast()
}
