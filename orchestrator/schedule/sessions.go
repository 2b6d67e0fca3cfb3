package schedule

import (
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Sessions are the sessions of workers: how their streams begin and end, what they are given
// and what they say.
type Sessions struct {
	sched   *Scheduler
	workers *workerTable // the scheduler's
}

// Supersede ends an older stream of a session on this node.
func (s *Sessions) Supersede(id mapreduce.SessionID, epoch int64) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	if session := s.workers.bound[id]; session != nil && session.Epoch < epoch {
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
	if earlier := s.workers.suspend(session); earlier != nil {
		s.letGo(earlier)
	}
	s.sched.wake.Broadcast()
}

// letGo forgets what a session held. The caller holds the scheduler's mu.
func (s *Sessions) letGo(session *Session) {
	s.workers.removeAway(session)

	for key, h := range session.held {
		session.dropInput(h)
		if j := s.sched.jobs.find(key.job); j != nil {
			s.sched.jobs.forgetHeld(j, h)
			s.sched.fairQueue.add(j)
			s.sched.dropJob(j)
		}
	}

	session.held = nil
	s.sched.wake.Broadcast()
}

// Enter puts a session with what it holds on the scheduler. It returns false if a later
// stream of it came first.
func (s *Sessions) Enter(session *Session, kept []queue.Held) bool {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	session.texts, session.seen = &s.workers.texts, s.sched.now()
	if s.workers.hasLater(session) {
		session.gone = true // two streams of one session came in the wrong order
		session.Peer.Stop(ErrSuperseded)
		return false
	}

	if other := s.workers.bound[session.ID]; other != nil {
		s.displace(other)
	}

	var clocks map[unitKey]attemptClock
	if old := s.workers.away[session.ID]; old != nil {
		clocks = old.clocksOf(kept)
		s.letGo(old)
	}

	session.takeUp(kept, clocks, s.sched.node)
	for _, h := range kept {
		j := s.sched.jobs.getOrAdd(h.Job)
		s.sched.jobs.addHeld(j, 1)
		j.grant.unsure = true // slots may have come with it
	}

	s.workers.bound[session.ID] = session
	s.sched.Models.welcome(session, session.seen)
	s.activateFor(session)
	return true
}

// activateFor makes the fair queue visit the jobs that a session can run, or has units of.
// The caller holds the scheduler's mu.
func (s *Sessions) activateFor(session *Session) {
	for _, j := range s.sched.jobs.byID {
		if j.running && session.canRun(j, session.seen) {
			s.sched.fairQueue.add(j)
		}
	}

	for key := range session.held {
		if j := s.sched.jobs.find(key.job); j != nil {
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

	for _, session := range s.workers.bound {
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

	if s.workers.bound[session.ID] != session {
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
	return s.workers.rotate()
}

// Count returns how many workers have a stream here.
func (s *Sessions) Count() int {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	return len(s.workers.bound)
}

// Bound returns a session whose stream is here, or nil.
func (s *Sessions) Bound(id mapreduce.SessionID) *Session {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	if session := s.workers.bound[id]; session != nil && !session.gone {
		return session
	}
	return nil
}

// Away returns a session whose stream here has ended, if it was not here since,
// and the jobs of which it held units.
func (s *Sessions) Away(ref nodes.SessionRef) (*Session, map[mapreduce.JobID]bool) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	session := s.workers.awaySince(ref)
	if session == nil {
		return nil, nil
	}

	held := make(map[mapreduce.JobID]bool)
	for key := range session.held {
		held[key.job] = true
	}
	return session, held
}

// SlotsFor counts the slots of the sessions that can run units of a job that is
// new.
func (s *Sessions) SlotsFor(spec *mapreduce.JobSpec) int64 {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	return s.workers.capacity(
		&Job{spec: spec, model: breakerOf(spec), models: spec.ModelNames(), tenant: spec.Tenant, needs: jobspec.Requirements(spec, nil)},
		s.sched.now())
}

// KeepClaimed returns the session that was given a claimed unit and still has it. It
// keeps what the unit is given. epoch is that of the job as the unit was claimed.
func (s *Sessions) KeepClaimed(of *Task, epoch int64, c queue.Claimed, text []byte) *Session {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	session := s.workers.stillHere(of, c.Session)
	if session == nil {
		return nil
	}

	h := session.heldAttempt(of.Job.ID, c.Unit.ID, int(c.Unit.Attempt))
	if h == nil {
		return nil
	}

	if stage := of.Stages.StageAt(c.Unit.Level); stage == nil || len(stage.Tools) == 0 {
		session.keepInput(h, c.Unit, epoch, text) // else its evidence is read with it, and that grows
	}
	return session
}

// KeepInputs keeps the units that an attempt was given the outputs of, with these outputs,
// if its unit is kept.
func (s *Sessions) KeepInputs(session *Session, held mapreduce.Held, taken []*records.Unit) {
	if len(taken) == 0 {
		return
	}
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	if h := session.heldAttempt(held.Job, held.Unit, held.Attempt); h != nil && h.unit != nil && h.inputs == nil {
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

// DropUnits stops what workers of this node run of a job. A worker that has
// spent something by then reports it, and gets the verdict of any late report.
func (s *Sessions) DropUnits(id mapreduce.JobID) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	j := s.sched.jobs.find(id)
	if j == nil {
		return
	}

	for _, session := range s.workers.bound {
		var stop []mapreduce.Held
		for key, h := range session.held {
			// A unit that was reported has ended, and waits for its verdict.
			if key.job != id || h.reported {
				continue
			}

			stop = append(stop, mapreduce.Held{Job: id, Unit: key.unit, Attempt: h.attempt})
			session.forgetAttempt(id, key.unit, h.attempt)
			h.claim.endUnit(j)
			s.sched.jobs.addHeld(j, -1)
		}

		if len(stop) > 0 {
			session.Peer.Send(&mapreduce.ToWorker{Cancel: stop})
		}
	}

	s.sched.fairQueue.add(j)
	s.sched.wake.Broadcast()
}
