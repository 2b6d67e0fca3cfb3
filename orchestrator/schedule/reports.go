package schedule

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Apply enters a message on the scheduler. It returns the units that have begun to
// run and are suspected of having brought a worker down before.
func (s *Sessions) Apply(session *Session, m *mapreduce.FromWorker) (suspects []mapreduce.Held) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	urgent := false
	session.seen = s.sched.now()

	capped, heard := session.trusted() < session.Slots+session.prefetch, session.heard
	for _, h := range m.Started {
		if held := session.held[unitKey{h.Job, h.Unit}]; held != nil && held.attempt == h.Attempt {
			// Each unit that begins lets the worker be given more.
			if !held.running {
				session.heard++
			}
			held.running = true
			if held.suspect {
				suspects = append(suspects, h)
			}
		}
	}

	if capped && session.heard > heard { // it may be given more
		s.activateFor(session)
	}

	for i := range m.Reports {
		urgent = s.enterReport(session, &m.Reports[i]) || urgent
	}

	urgent = s.sched.Models.hearLimits(m.Limits, session.seen) || urgent
	if s.sched.Models.hearManners(session, m.Manners) {
		s.sched.Models.Changed.Wake()
	}

	if hb := m.Heartbeat; hb != nil {
		for _, br := range hb.Breakers {
			if s.sched.Models.knownModel(br.Name) != nil {
				session.breakers[br.Name] = session.seen.Add(br.OpenFor)
			}
		}
		urgent = s.sched.Models.hearBreakers(hb.Breakers, session.seen) || urgent
	}

	if m.Drain {
		session.draining = true
	}

	if urgent {
		s.sched.Models.dealAll(session.seen) // what is known here already
		s.sched.Models.Changed.Wake()
	}

	s.sched.wake.Broadcast()
	return suspects
}

// noteMetBreaker keeps the units of a model from session, which has handed one back because a breaker
// is open. That is not for longer than a lease: the worker tells of the breaker in its
// heartbeats, or knows of it by this node, which may have told it meanwhile that it has closed.
func (s *Sessions) noteMetBreaker(session *Session, rep *mapreduce.Report) {
	until := session.seen.Add(min(rep.RetryAfter, s.sched.Models.lease))
	if s.sched.Models.knownModel(rep.Breaker) != nil && until.After(session.breakers[rep.Breaker]) {
		session.breakers[rep.Breaker] = until
	}
}

// enterReport enters a report on the scheduler. It returns whether the fleet has to know
// what it says of the provider. A report of an attempt that the session does not hold
// says nothing of that: the store says what becomes of it.
func (s *Sessions) enterReport(session *Session, rep *mapreduce.Report) (urgent bool) {
	j := s.sched.getOrAddJob(rep.Job)
	if held, first := session.noteReported(rep); held {
		if first {
			s.sched.addReportedUnits(j, 1)
		}
		if first && rep.Outcome == mapreduce.Returned && rep.Breaker != "" {
			s.noteMetBreaker(session, rep)
		}
		urgent = s.sched.Models.noteProbeOutcome(j, rep, session.seen)
		s.sched.Models.notePace(j, rep)
		s.sched.Priming.noteReport(j, rep)
	}

	j.reports = append(j.reports, pendingReport{Report: rep, Session: session, jitter: s.sched.jitter()})
	s.sched.fairQueue.add(j)
	return urgent
}

// EnterReportFor enters a report in a worker's name, of a unit that it was not given, or
// of one that broke its stream.
func (s *Sessions) EnterReportFor(session *Session, report *mapreduce.Report, broke bool) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	if s.bound[session.ID] != session {
		return
	}
	s.enterReport(session, report)
	if j := s.sched.getOrAddJob(report.Job); broke {
		j.reports[len(j.reports)-1].broke = true
	}
	s.sched.wake.Signal()
}

// EnterChecked enters a report whose output was checked beside the stream.
func (s *Sessions) EnterChecked(session *Session, rep *mapreduce.Report) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	if s.enterReport(session, rep) {
		s.sched.Models.Changed.Wake()
	}
	s.sched.wake.Broadcast()
}

// HoldsAttempt reports whether session was given an attempt and has not lost it.
func (s *Sessions) HoldsAttempt(session *Session, h mapreduce.Held) bool {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	held := session.held[unitKey{h.Job, h.Unit}]
	return held != nil && held.attempt == h.Attempt
}

// FindUnit returns the unit of an attempt that session was given and has not lost, and its
// job; or nil.
func (s *Sessions) FindUnit(session *Session, h mapreduce.Held) (*HeldUnit, *Job) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	held, j := session.held[unitKey{h.Job, h.Unit}], s.sched.runs[h.Job]
	if held == nil || held.attempt != h.Attempt || j == nil {
		return nil, nil
	}
	return held, j
}

// An assignedInput is what a unit was given, as far as it is kept: nil is not.
type assignedInput struct {
	Unit   *records.Unit
	Text   []byte
	Inputs []*records.Unit
}

// AssignedInputs returns what the units of reports were given.
func (s *Sessions) AssignedInputs(session *Session, reports []mapreduce.Report) []assignedInput {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	all := make([]assignedInput, len(reports))
	for i, rep := range reports {
		if h := session.held[unitKey{rep.Job, rep.Unit}]; h != nil && h.attempt == rep.Attempt {
			all[i] = h.givenInput(s.sched.runs[rep.Job])
		}
	}
	return all
}

// NoteArrived notes that attempts have ended on their worker, so that what ends it now
// is not blamed on them. Their slots are free once their outputs were checked: then
// one turn takes the reports and fills the slots.
func (s *Sessions) NoteArrived(session *Session, reports []mapreduce.Report) {
	if len(reports) == 0 {
		return
	}
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	for _, rep := range reports {
		if h := session.held[unitKey{rep.Job, rep.Unit}]; h != nil && h.attempt == rep.Attempt {
			h.checking = true
		}
	}
}

// Strays counts the reports of attempts that session does not hold, and returns which of their
// jobs the scheduler does not know.
func (s *Sessions) Strays(session *Session, reports []mapreduce.Report) (strays int, unknown map[mapreduce.JobID]bool) {
	if len(reports) == 0 {
		return 0, nil
	}

	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()

	for i := range reports {
		rep := &reports[i]
		if h := session.held[unitKey{rep.Job, rep.Unit}]; h != nil && h.attempt == rep.Attempt {
			continue
		}

		strays++
		if s.sched.runs[rep.Job] == nil {
			if unknown == nil {
				unknown = make(map[mapreduce.JobID]bool)
			}
			unknown[rep.Job] = true
		}
	}

	return strays, unknown
}

// CountRefused counts an output that was refused, and returns how many were of session.
func (s *Sessions) CountRefused(session *Session) int {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	session.refused++
	return session.refused
}
