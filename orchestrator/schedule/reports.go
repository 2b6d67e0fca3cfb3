package schedule

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Apply enters a message on the scheduler. It returns the units that have begun to
// run and are suspected of having brought a worker down before.
func (t *Sessions) Apply(s *Session, m *mapreduce.FromWorker) (suspects []mapreduce.Held) {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()

	urgent := false
	s.seen = t.sched.now()

	capped, heard := s.trusted() < s.Slots+s.prefetch, s.heard
	for _, h := range m.Started {
		if held := s.held[unitKey{h.Job, h.Unit}]; held != nil && held.attempt == h.Attempt {
			// Each unit that begins lets the worker be given more.
			if !held.running {
				s.heard++
			}
			held.running = true
			if held.suspect {
				suspects = append(suspects, h)
			}
		}
	}

	if capped && s.heard > heard { // it may be given more
		t.activateFor(s)
	}

	for i := range m.Reports {
		urgent = t.enterReport(s, &m.Reports[i]) || urgent
	}

	urgent = t.sched.Models.hearLimits(m.Limits, s.seen) || urgent
	if t.sched.Models.hearManners(s, m.Manners) {
		t.sched.Models.Changed.Wake()
	}

	if hb := m.Heartbeat; hb != nil {
		for _, br := range hb.Breakers {
			if t.sched.Models.knownModel(br.Name) != nil {
				s.breakers[br.Name] = s.seen.Add(br.OpenFor)
			}
		}
		urgent = t.sched.Models.hearBreakers(hb.Breakers, s.seen) || urgent
	}

	if m.Drain {
		s.draining = true
	}

	if urgent {
		t.sched.Models.dealAll(s.seen) // what is known here already
		t.sched.Models.Changed.Wake()
	}

	t.sched.wake.Broadcast()
	return suspects
}

// noteMetBreaker keeps the units of a model from s, which has handed one back because a breaker
// is open. That is not for longer than a lease: the worker tells of the breaker in its
// heartbeats, or knows of it by this node, which may have told it meanwhile that it has closed.
func (t *Sessions) noteMetBreaker(s *Session, rep *mapreduce.Report) {
	until := s.seen.Add(min(rep.RetryAfter, t.sched.Models.lease))
	if t.sched.Models.knownModel(rep.Breaker) != nil && until.After(s.breakers[rep.Breaker]) {
		s.breakers[rep.Breaker] = until
	}
}

// enterReport enters a report on the scheduler. It returns whether the fleet has to know
// what it says of the provider. A report of an attempt that the session does not hold
// says nothing of that: the store says what becomes of it.
func (t *Sessions) enterReport(s *Session, rep *mapreduce.Report) (urgent bool) {
	r := t.sched.getOrAddJob(rep.Job)
	if held, first := s.noteReported(rep); held {
		if first {
			t.sched.addReportedUnits(r, 1)
		}
		if first && rep.Outcome == mapreduce.Returned && rep.Breaker != "" {
			t.noteMetBreaker(s, rep)
		}
		urgent = t.sched.Models.noteProbeOutcome(r, rep, s.seen)
		t.sched.Models.notePace(r, rep)
		t.sched.Priming.noteReport(r, rep)
	}

	r.reports = append(r.reports, pendingReport{Report: rep, Session: s, jitter: t.sched.jitter()})
	t.sched.fairQueue.add(r)
	return urgent
}

// EnterReportFor enters a report in a worker's name, of a unit that it was not given, or
// of one that broke its stream.
func (t *Sessions) EnterReportFor(s *Session, report *mapreduce.Report, broke bool) {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()
	if t.bound[s.ID] != s {
		return
	}
	t.enterReport(s, report)
	if r := t.sched.getOrAddJob(report.Job); broke {
		r.reports[len(r.reports)-1].broke = true
	}
	t.sched.wake.Signal()
}

// EnterChecked enters a report whose output was checked beside the stream.
func (t *Sessions) EnterChecked(s *Session, rep *mapreduce.Report) {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()
	if t.enterReport(s, rep) {
		t.sched.Models.Changed.Wake()
	}
	t.sched.wake.Broadcast()
}

// HoldsAttempt reports whether s was given an attempt and has not lost it.
func (t *Sessions) HoldsAttempt(s *Session, h mapreduce.Held) bool {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()
	held := s.held[unitKey{h.Job, h.Unit}]
	return held != nil && held.attempt == h.Attempt
}

// FindUnit returns the unit of an attempt that s was given and has not lost, and its
// job; or nil.
func (t *Sessions) FindUnit(s *Session, h mapreduce.Held) (*HeldUnit, *Job) {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()
	held, r := s.held[unitKey{h.Job, h.Unit}], t.sched.runs[h.Job]
	if held == nil || held.attempt != h.Attempt || r == nil {
		return nil, nil
	}
	return held, r
}

// An assignedInput is what a unit was given, as far as it is kept: nil is not.
type assignedInput struct {
	Unit   *records.Unit
	Text   []byte
	Inputs []*records.Unit
}

// AssignedInputs returns what the units of reports were given.
func (t *Sessions) AssignedInputs(s *Session, reports []mapreduce.Report) []assignedInput {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()
	all := make([]assignedInput, len(reports))
	for i, rep := range reports {
		if h := s.held[unitKey{rep.Job, rep.Unit}]; h != nil && h.attempt == rep.Attempt {
			all[i] = h.givenInput(t.sched.runs[rep.Job])
		}
	}
	return all
}

// NoteArrived notes that attempts have ended on their worker, so that what ends it now
// is not blamed on them. Their slots are free once their outputs were checked: then
// one turn takes the reports and fills the slots.
func (t *Sessions) NoteArrived(s *Session, reports []mapreduce.Report) {
	if len(reports) == 0 {
		return
	}
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()
	for _, rep := range reports {
		if h := s.held[unitKey{rep.Job, rep.Unit}]; h != nil && h.attempt == rep.Attempt {
			h.checking = true
		}
	}
}

// Strays counts the reports of attempts that s does not hold, and returns which of their
// jobs the scheduler does not know.
func (t *Sessions) Strays(s *Session, reports []mapreduce.Report) (strays int, unknown map[mapreduce.JobID]bool) {
	if len(reports) == 0 {
		return 0, nil
	}

	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()

	for i := range reports {
		rep := &reports[i]
		if h := s.held[unitKey{rep.Job, rep.Unit}]; h != nil && h.attempt == rep.Attempt {
			continue
		}

		strays++
		if t.sched.runs[rep.Job] == nil {
			if unknown == nil {
				unknown = make(map[mapreduce.JobID]bool)
			}
			unknown[rep.Job] = true
		}
	}

	return strays, unknown
}

// CountRefused counts an output that was refused, and returns how many were of s.
func (t *Sessions) CountRefused(s *Session) int {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()
	s.refused++
	return s.refused
}
