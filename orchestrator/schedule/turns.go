package schedule

import (
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/turns"
)

// Turns enter on the scheduler what became of its turns: that a turn was carried out, or
// failed, and when its job is to have the next. The scheduler's mu guards them.
type Turns struct {
	sched *Scheduler

	full map[mapreduce.TenantID]time.Time // until when no units of a tenant are claimed, as many run as may
}

// Undo takes back what a turn that failed had set aside.
func (e *Turns) Undo(t *Task) {
	e.sched.mu.Lock()
	defer e.sched.mu.Unlock()

	r := t.Job
	r.turns--
	r.reports = append(t.Sent, r.reports...)
	r.release = append(r.release, t.release...)

	// The turn that takes these reports next releases their claims.
	for _, c := range t.last {
		c.released = false
	}
	for _, p := range t.Sent {
		if h := p.Session.held[unitKey{p.Report.Job, p.Report.Unit}]; h != nil {
			h.taken = false
		}
	}

	t.releaseSlots()
	if c := t.Turn.Claim; c != nil {
		e.sched.addHeldUnits(r, -len(c.Candidates))
		r.returnCandidates(c.Candidates)
		r.putBack(c.Candidates)
		r.noteWaiting(e.sched.now())
		if c.Bounded {
			e.sched.Grants.endClaim(r, t.tokens)
		}
	}

	e.sched.dropJob(r)
}

// A Split says what becomes of a turn that can never commit as it is.
type Split uint8

// The ways in which a turn is split.
const (
	// Halved: its members are tried again in smaller turns, until the one is alone for
	// which it failed.
	Halved Split = iota
	// Replaced: the only report is tried again as one of a failure of its unit, for what
	// the worker said cannot be stored.
	Replaced
	// Alone: nothing of it can be stored. Its job cannot go on.
	Alone
)

// Split takes back what a turn had set aside that failed for one of its members, and
// says how its members are tried again. Why is what the turn failed with.
func (e *Turns) Split(t *Task, why error) Split {
	// Undo takes the lock itself.
	e.Undo(t)

	e.sched.mu.Lock()
	defer e.sched.mu.Unlock()

	r, members := t.Job, len(t.Sent)
	if c := t.Turn.Claim; c != nil {
		members += len(c.Candidates)
	}

	switch {
	case members > 1:
		r.batch = min(r.turnSize(), max(1, members/2))
		e.sched.activateJob(r)
		return Halved
	case len(t.Sent) == 0 || t.Sent[0].spoilt:
		return Alone
	}

	// Undo has put the report back.
	for i := range r.reports {
		if p := &r.reports[i]; p.Report == t.Sent[0].Report {
			p.Report, p.spoilt = unstorable(p.Report, why), true
			break
		}
	}

	e.sched.activateJob(r)
	return Replaced
}

// unstorable returns what is said instead of a report that cannot be stored.
func unstorable(rep *mapreduce.Report, why error) *mapreduce.Report {
	return &mapreduce.Report{
		Job: rep.Job, Unit: rep.Unit, Attempt: rep.Attempt, Outcome: mapreduce.Errored, Class: mapreduce.PermanentUnit,
		Errors: []string{"what its worker reported cannot be stored: " + why.Error()},
	}
}

// DropReports forgets the reports of a turn that can never be stored, now that their job
// does not run. Their workers get the verdict that the units have moved on.
func (e *Turns) DropReports(t *Task) {
	e.sched.mu.Lock()
	defer e.sched.mu.Unlock()

	r := t.Job
	for _, p := range t.Sent {
		r.reports = slices.DeleteFunc(r.reports, func(q pendingReport) bool { return q.Report.Unit == p.Report.Unit && q.spoilt })
		e.applyVerdict(r, p, turns.Settled{Verdict: mapreduce.Stale})
		p.Session.Peer.Send(&mapreduce.ToWorker{Verdicts: []mapreduce.VerdictOn{{
			Held:    mapreduce.Held{Job: p.Report.Job, Unit: p.Report.Unit, Attempt: p.Report.Attempt},
			Verdict: mapreduce.Stale,
		}}})
	}

	e.sched.dropJob(r)
}

// DelayRetry lets a job rest whose turn failed, twice as long each time, and returns until
// when.
func (e *Turns) DelayRetry(r *Job, first, longest time.Duration) time.Time {
	e.sched.mu.Lock()
	defer e.sched.mu.Unlock()
	r.retryAt = e.sched.now().Add(min(longest, first<<min(r.retries, 10)))
	r.retries++
	return r.retryAt
}

// Revisit makes r be visited again.
func (e *Turns) Revisit(r *Job) {
	e.sched.mu.Lock()
	defer e.sched.mu.Unlock()
	r.retryAt = time.Time{}
	e.sched.activateJob(r)
}

// Apply enters what a turn came to, and reports whether the job has nothing under way any
// more.
func (e *Turns) Apply(t *Task, res *turns.Result) (idle bool) {
	e.sched.mu.Lock()
	defer e.sched.mu.Unlock()

	r := t.Job
	r.turns--
	r.retries = 0

	// After a turn that was carried out, turns may be larger again.
	if r.batch *= 2; r.batch >= records.MaxBatch {
		r.batch = 0
	}

	for i, p := range t.Sent {
		e.applyVerdict(r, p, res.Verdicts[i])
	}

	if c := t.Turn.Claim; c != nil {
		t.releaseSlots()
		e.applyClaims(r, t, res)
		for i, s := range t.seats {
			if !res.Seated[i] { // another orchestrator has it, and its stream here is dead
				s.gone = true
				s.Peer.Stop(ErrSuperseded)
			}
		}
	}

	switch {
	case res.Full:
		e.full[r.tenant] = e.sched.now().Add(FullPause)
	case len(t.Sent) > 0:
		e.reopenTenant(r.tenant) // there may be room again
	}

	if !res.State.Running() {
		e.sched.stopJob(r)
	}
	if res.JobError != "" {
		r.failing = max(r.failing, res.Epoch)
	}
	r.noteWaiting(e.sched.now())

	idle = r.turns == 0 && len(r.reports) == 0 && r.held == 0
	if r.running || len(r.reports) > 0 || len(r.release) > 0 {
		e.sched.fairQueue.add(r)
	}

	e.sched.dropJob(r)
	e.sched.wake.Signal()
	return idle
}

// FullPause is after how long it is tried again to claim units of a tenant of which as many
// run as may. It is tried at once when units of it end that this node holds.
const FullPause = 500 * time.Millisecond

// ReopenFor lets units of the tenant of a job be claimed again.
func (e *Turns) ReopenFor(r *Job) {
	e.sched.mu.Lock()
	defer e.sched.mu.Unlock()
	e.reopenTenant(r.tenant)
}

// reopenTenant lets units of a tenant be claimed again. The caller holds the scheduler's
// mu.
func (e *Turns) reopenTenant(t mapreduce.TenantID) {
	if _, full := e.full[t]; !full {
		return
	}
	delete(e.full, t)
	for _, r := range e.sched.runs {
		if r.tenant == t && r.running {
			e.sched.fairQueue.add(r)
		}
	}
	e.sched.wake.Broadcast()
}

// applyVerdict enters the verdict on a report.
func (e *Turns) applyVerdict(r *Job, p pendingReport, s turns.Settled) {
	if s.Verdict == mapreduce.VerdictUnknown {
		return
	}

	if h := p.Session.forgetAttempt(p.Report.Job, p.Report.Unit, p.Report.Attempt); h != nil {
		e.sched.forgetHeldUnit(r, h)
		// The part of the reservation that was not spent is free again.
		if h.granted {
			r.tokens += h.Reserved - p.Report.Charged(h.Reserved)
		}
		h.claim.endUnit(r)
	}

	if s.Requeued != nil && r.running {
		r.putBack([]records.Candidate{*s.Requeued})
	}
}

// applyClaims enters the units that a turn claimed.
func (e *Turns) applyClaims(r *Job, t *Task, res *turns.Result) {
	c := t.Turn.Claim

	// All candidates have counted as held since the turn took them.
	e.sched.addHeldUnits(r, len(res.Claimed)-len(c.Candidates))
	r.noteCrowding(len(c.Candidates), len(c.Candidates)-len(res.Claimed)-len(res.Left))
	r.returnCandidates(c.Candidates)
	r.putBack(res.Left)

	claims := make(map[mapreduce.SessionID]*claimOf, len(t.seats))
	for _, got := range res.Claimed {
		s := e.sched.Sessions.seated(t, got.Session)
		if c.Bounded {
			t.tokens -= got.Unit.Reserved
		}
		if s == nil {
			e.sched.addHeldUnits(r, -1) // its session has gone, or came back meanwhile: either gives the unit back
			continue
		}

		of := claims[got.Session]
		if of == nil {
			of = &claimOf{id: turns.HeldID{Session: got.Session, Claim: c.ID}}
			claims[got.Session] = of
		}

		of.left++
		s.holdUnit(r.ID, got.Unit, of, c.Bounded)
	}

	if c.Bounded {
		if r.neededTokens = res.Need; res.Overdrawn {
			r.granted, t.tokens = false, 0
		}
		e.sched.Grants.endClaim(r, t.tokens)
	}

	// Others have taken slots or calls that this node thought to have.
	if res.Short {
		r.slots, r.revocations = min(r.slots, res.Slots.Slots), res.Slots.Taken // with less it asks for more
		if c.Calls.Slots > 0 {
			e.sched.Grants.callSlots, e.sched.Grants.callsTaken, e.sched.Grants.callsDue = min(e.sched.Grants.callSlots, res.Calls.Slots), res.Calls.Taken, true
		}
	}
}

// releaseSlots gives back the slots that a turn had set aside.
func (t *Task) releaseSlots() {
	for i, s := range t.seats {
		s.promised -= t.Turn.Claim.Seats[i].Slots
	}
}

// CutOff ends the streams of all sessions that the task is about.
func (t *Task) CutOff(why error) {
	for _, s := range t.seats {
		s.Peer.Stop(why)
	}
	for _, p := range t.Sent {
		p.Session.Peer.Stop(why)
	}
}
