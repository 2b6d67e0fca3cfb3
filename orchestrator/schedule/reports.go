package schedule

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
)

// A Received is what a scheduler says of a message when it comes.
type Received struct {
	Suspects []protocol.Held     // that have begun, and may have brought a worker down before
	Notes    []protocol.Progress // that those who watch jobs are to hear
	Reports  []Reported          // one for each report of the message, in their order
}

// A Reported is what a scheduler knows of the attempt that a report is of.
type Reported struct {
	Job   JobStanding
	Held  bool          // the session was given the attempt and has not lost it
	Given workers.Given // what its output is checked against
}

// A JobStanding is what a scheduler knows of a job that a worker names.
type JobStanding uint8

// The standings of jobs.
const (
	// KnownJob: it is on the scheduler, or was when the worker was given the unit.
	KnownJob JobStanding = iota
	// ForeignJob: it is of a tenant whose units the worker must not have.
	ForeignJob
	// UnknownJob: whether there is such a job, and whose it is, only the store knows.
	UnknownJob
)

// Receive takes a message as it comes. It enters all of a message without reports. Reports
// have to be checked first, which takes time and may read the store, so it cannot be done
// under the scheduler's lock: of a message with reports, Receive says what they are checked
// against, and EnterChecked enters them, and what stands behind them in the message, once
// they were. Feed returns the number of a job's feed, or 0 if nobody watches the job.
func (s *Sessions) Receive(session *workers.Session, m *protocol.FromWorker, feed func(mapreduce.JobID) int64) (got Received) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	now := s.sched.now()
	session.NoteSeen(now)
	if m.Heartbeat != nil { // before its reports: what an attempt said last is still its own
		got.Notes = session.HearNotes(m.Heartbeat.Progress, feed, now)
	}

	suspects, more := session.NoteStarted(m.Started)
	if got.Suspects = suspects; more {
		s.activateFor(session)
	}

	if len(m.Reports) == 0 {
		s.enterMessage(session, m)
		return got
	}

	got.Reports = make([]Reported, len(m.Reports))
	for i := range m.Reports {
		got.Reports[i] = inspect(session, &m.Reports[i], s.sched.jobs.find(m.Reports[i].Job))

		// One that the worker may not report is refused, and would count as ended for ever.
		if got.Reports[i].Job == KnownJob {
			session.NoteArrived(heldOf(&m.Reports[i]))
		}
	}
	return got
}

// Inspect says again what Receive says of reports, of which the store has told meanwhile
// that their jobs are there, or which have waited to be checked: the job may have gone to
// another epoch since, and what its units were given must not be that of units of before.
func (s *Sessions) Inspect(session *workers.Session, reports []protocol.Report) []Reported {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	all := make([]Reported, len(reports))
	for i := range reports {
		all[i] = inspect(session, &reports[i], s.sched.jobs.find(reports[i].Job))
		session.NoteArrived(heldOf(&reports[i]))
	}
	return all
}

// inspect returns what is known of the attempt of a report; j is its job, nil if that is not
// on the scheduler. The caller holds the scheduler's mu.
func inspect(session *workers.Session, rep *protocol.Report, j *Job) (of Reported) {
	if h := session.Attempt(heldOf(rep)); h != nil {
		epoch := int64(-1)
		if j != nil {
			epoch = j.epoch
		}
		of.Held, of.Given = true, h.Given(epoch)
	}

	switch {
	case session.Tenant != "" && (j == nil || !j.running): // else its tenant is known
		of.Job = UnknownJob
	case session.Tenant != "" && session.Tenant != j.tenant:
		of.Job = ForeignJob
	case j == nil && !of.Held:
		of.Job = UnknownJob
	}
	return of
}

// EnterChecked enters a message whose reports were checked: those that are still in it, and
// what it says of models and of the worker.
func (s *Sessions) EnterChecked(session *workers.Session, m *protocol.FromWorker) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	s.enterMessage(session, m)
}

// enterMessage enters a message but for the units that it says have begun. The caller holds
// the scheduler's mu.
func (s *Sessions) enterMessage(session *workers.Session, m *protocol.FromWorker) {
	urgent := false
	for i := range m.Reports {
		urgent = s.enterReport(session, &m.Reports[i]) || urgent
	}

	urgent = s.sched.Models.hearLimits(m.Limits, session.Seen()) || urgent
	if s.sched.Models.hearManners(session, m.Manners) {
		s.sched.Models.Changed.Wake()
	}

	if hb := m.Heartbeat; hb != nil {
		urgent = s.sched.Models.hearBreakers(session, hb.Breakers) || urgent
	}

	if m.Drain {
		session.Drain()
	}

	if urgent {
		s.sched.Models.dealAll(session.Seen()) // what is known here already
		s.sched.Models.Changed.Wake()
	}

	s.sched.wake.Broadcast()
}

// heldOf returns the attempt that a report is of.
func heldOf(rep *protocol.Report) protocol.Held {
	return protocol.Held{Job: rep.Job, Unit: rep.Unit, Attempt: rep.Attempt}
}

// enterReport enters a report on the scheduler. It returns whether the fleet has to know
// what it says of the provider. A report of an attempt that the session does not hold
// says nothing of that: the store says what becomes of it.
func (s *Sessions) enterReport(session *workers.Session, rep *protocol.Report) (urgent bool) {
	j := s.sched.jobs.getOrAdd(rep.Job)
	if held, first := session.NoteReported(heldOf(rep)); held {
		if first {
			s.sched.jobs.addReported(j, 1)
		}
		if first && rep.Outcome == protocol.Returned && rep.Breaker != "" {
			s.sched.Models.noteMetBreaker(session, rep)
		}
		urgent = s.sched.Models.noteProbeOutcome(j, rep, session.Seen())
		s.sched.Models.notePace(j, rep)
		if j.priming.noteReport(rep) {
			s.sched.activateJob(j)
		}
	}

	j.turns.addReport(rep, session, s.sched.jitter())
	s.sched.fairQueue.Add(j)
	return urgent
}

// EnterReportFor enters a report in a worker's name, of a unit that it was not given, or
// of one that broke its stream.
func (s *Sessions) EnterReportFor(session *workers.Session, report *protocol.Report, broke bool) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	if !s.sched.workers.Has(session) {
		return
	}
	s.enterReport(session, report)
	if broke {
		s.sched.jobs.getOrAdd(report.Job).turns.lastReport().broke = true
	}
	s.sched.wake.Signal()
}

// HoldsAttempt reports whether session was given an attempt and has not lost it.
func (s *Sessions) HoldsAttempt(session *workers.Session, h protocol.Held) bool {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	return session.Attempt(h) != nil
}

// FindUnit returns the unit of an attempt that session was given and has not lost, and its
// job; or nil.
func (s *Sessions) FindUnit(session *workers.Session, h protocol.Held) (*workers.Attempt, *Job) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	held, j := session.Attempt(h), s.sched.jobs.find(h.Job)
	if held == nil || j == nil {
		return nil, nil
	}
	return held, j
}

// CountRefused counts an output that was refused, and returns how many were of session.
func (s *Sessions) CountRefused(session *workers.Session) int {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	return session.CountRefused()
}
