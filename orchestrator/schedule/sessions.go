package schedule

import (
	"slices"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Sessions are the sessions of workers: how their streams begin and end, what they are given
// and what they say.
type Sessions struct {
	sched   *Scheduler
	workers *workers.Table // the scheduler's
}

// Supersede ends an older stream of a session on this node.
func (s *Sessions) Supersede(id mapreduce.SessionID, epoch int64) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	if session := s.workers.Bound(id); session != nil && session.Epoch < epoch {
		displace(s, session)
	}
}

// displace ends the stream of a session that another has taken up. The caller holds
// the scheduler's mu.
func displace(s *Sessions, session *workers.Session) {
	s.suspend(session)
	session.Peer.Stop(ErrSuperseded)
}

// ErrSuperseded ends the stream of a session that another has taken up.
var ErrSuperseded = errs.New(errs.Aborted, "the session was taken up by another stream")

// suspend takes a session off the scheduler whose stream has ended. Until its worker
// is known to be gone, or elsewhere, what it holds may be running, and takes up
// slots of its jobs. The caller holds the scheduler's mu.
func (s *Sessions) suspend(session *workers.Session) {
	if earlier := s.workers.Suspend(session); earlier != nil {
		letGo(s, earlier)
	}
	s.sched.wake.Broadcast()
}

// letGo forgets what a session held. The caller holds the scheduler's mu.
func letGo(s *Sessions, session *workers.Session) {
	for _, h := range s.workers.LetGo(session) {
		if j := s.sched.jobs.find(h.Job); j != nil {
			s.sched.jobs.forgetHeld(j, h)
			s.sched.fairQueue.Add(j)
			s.sched.dropJob(j)
		}
	}

	s.sched.wake.Broadcast()
}

// Expect counts what a session may hold whose binding is about to be stored: slots come with it, and what
// is read of the grants from then on has these. It counts until a stream of the session enters, or until its
// binding has been given up, which may have been stored unseen. Expect returns which slots of the jobs are idle
// beside that, and which of the calls of models, of which the fleet may make so many at once: with these the
// session may go on with what it had lost.
func (s *Sessions) Expect(session *workers.Session, named []protocol.Held, limit int64) map[mapreduce.JobID]queue.Idle {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	// A worker holds back no tenant but its own, whatever it names.
	own := slices.DeleteFunc(slices.Clone(named), func(h protocol.Held) bool {
		j := s.sched.jobs.find(h.Job)
		return session.Tenant != "" && j != nil && j.spec != nil && j.tenant != session.Tenant
	})

	idle, calls := make(map[mapreduce.JobID]queue.Idle), s.sched.Grants.idleCalls(limit)
	s.workers.Expect(session, own)
	for h := range session.Attempts() {
		j := s.sched.jobs.getOrAdd(h.Job)
		if _, known := idle[h.Job]; !known {
			slots := j.grant.Slots()
			of := queue.Idle{Slots: max(0, slots-int64(j.held)), Of: j.grant.Share(slots)}
			if j.usesFleetCalls() {
				of.Calls = calls
			}
			idle[h.Job] = of
		}
		s.sched.jobs.addHeld(j, 1)
	}
	return idle
}

// Enter puts a session with what it holds on the scheduler. It returns false if a later
// stream of it came first.
func (s *Sessions) Enter(session *workers.Session, kept []queue.Held) bool {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	if s.workers.HasLater(session) {
		session.EndsAs(ErrSuperseded) // two streams of one session came in the wrong order
		return false
	}

	if other := s.workers.Bound(session.ID); other != nil {
		displace(s, other)
	}
	if before := s.workers.Bind(session, kept, s.sched.node, s.sched.now()); before != nil {
		letGo(s, before)
	}

	for _, h := range kept {
		j := s.sched.jobs.getOrAdd(h.Job)
		s.sched.jobs.addHeld(j, 1)
		j.grant.MarkUnsure() // slots may have come with it
	}
	for _, expected := range s.workers.ExpectedAs(session.ID, session.Epoch) {
		letGo(s, expected) // what it holds is known now
	}

	s.sched.Models.welcome(session, session.Seen())
	s.activateFor(session)
	return true
}

// activateFor makes the fair queue visit the jobs that a session can run, or has units of.
// The caller holds the scheduler's mu.
func (s *Sessions) activateFor(session *workers.Session) {
	for _, j := range s.sched.jobs.byID {
		if !j.running {
			continue
		}
		if session.CanRun(&j.wants, session.Seen()) {
			s.sched.fairQueue.Add(j)
		}
	}

	for h := range session.Attempts() {
		if j := s.sched.jobs.find(h.Job); j != nil {
			s.sched.fairQueue.Add(j)
		}
	}

	s.sched.wake.Broadcast()
}

// Statuses returns what is known of each worker of this node, in no order.
func (s *Sessions) Statuses() []mapreduce.WorkerStatus {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	return s.workers.Statuses(s.sched.now())
}

// CountWaiting returns how many units of a job wait at workers of this node for a slot
// there: those that a worker holds beyond its slots.
func (s *Sessions) CountWaiting(id mapreduce.JobID) (waiting int64) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	for session := range s.workers.All() {
		waiting += session.CountWaiting(id)
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
func (s *Sessions) Leave(session *workers.Session) (running map[protocol.Held]bool, done, ok bool) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	if !s.workers.Has(session) {
		return nil, false, false
	}

	running = session.Running()
	s.suspend(session)
	return running, session.IsDrained(), true
}

// Forget forgets what a session held that was given up, or has gone elsewhere.
func (s *Sessions) Forget(session *workers.Session) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	letGo(s, session)
}

// All returns the sessions whose streams are here.
func (s *Sessions) All() []*workers.Session {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	return s.workers.Rotate()
}

// Count returns how many workers have a stream here.
func (s *Sessions) Count() int {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	return s.workers.Len()
}

// Bound returns a session whose stream is here, or nil.
func (s *Sessions) Bound(id mapreduce.SessionID) *workers.Session {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	return s.workers.Open(id)
}

// Away returns a session whose stream here has ended, if it was not here since, and those of its
// name that were expected until then, with the jobs of which they held units.
func (s *Sessions) Away(ref nodes.SessionRef) (away []*workers.Session, held map[mapreduce.JobID]bool) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	away = s.workers.ExpectedAs(ref.Session, ref.Epoch)
	if session := s.workers.AwaySince(ref); session != nil {
		away = append(away, session)
	}

	held = make(map[mapreduce.JobID]bool)
	for _, session := range away {
		for h := range session.Attempts() {
			held[h.Job] = true
		}
	}
	return away, held
}

// SlotsFor counts the slots of the sessions that can run units of a job that is
// new.
func (s *Sessions) SlotsFor(spec *mapreduce.JobSpec) int64 {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	wants := jobWants("", spec.Tenant, spec, spec.ModelNames(), jobspec.Requirements(spec, nil))
	return s.workers.Capacity(&wants, s.sched.now())
}

// KeepClaimed returns the session that was given a claimed unit and still has it. It
// keeps what the unit is given. epoch is that of the job as the unit was claimed.
func (s *Sessions) KeepClaimed(of *Task, epoch int64, c queue.Claimed, text []byte) *workers.Session {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	session := of.sessionHere(s.workers, c.Session)
	if session == nil {
		return nil
	}

	h := session.Attempt(protocol.Held{Job: of.Job.ID, Unit: c.Unit.ID, Attempt: int(c.Unit.Attempt)})
	if h == nil {
		return nil
	}

	if stage := of.Stages.StageAt(c.Unit.Level); stage == nil || len(stage.Tools) == 0 {
		session.KeepInput(h, c.Unit, epoch, text) // else its evidence is read with it, and that grows
	}
	return session
}

// KeepInputs keeps the units that an attempt was given the outputs of, with these outputs,
// if its unit is kept.
func (s *Sessions) KeepInputs(session *workers.Session, held protocol.Held, taken []*records.Unit) {
	if len(taken) == 0 {
		return
	}
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	if h := session.Attempt(held); h != nil {
		session.KeepTaken(h, taken)
	}
}

// Introduce sends session what it has to know of the job before it gets units of it, unless it
// was sent that before. Two committers may have units for session: the lock makes the sending and
// the note of it one act.
func (s *Sessions) Introduce(session *workers.Session, j *Job) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	if session.Learns(j.ID, j.epoch) {
		session.Peer.Send(&protocol.ToWorker{Jobs: []protocol.JobInfo{{Job: j.ID, Stage: j.stages.StageName(j.stages.Level), Spec: *j.spec}}})
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

	for session := range s.workers.All() {
		var stop []protocol.Held
		for _, h := range session.Drop(id) {
			stop = append(stop, h.Held)
			j.endUnit(h.Claim)
			s.sched.jobs.addHeld(j, -1)
		}

		if len(stop) > 0 {
			session.Peer.Send(&protocol.ToWorker{Cancel: stop})
		}
	}

	s.sched.fairQueue.Add(j)
	s.sched.wake.Broadcast()
}
