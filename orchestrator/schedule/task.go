package schedule

import (
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/turns"
)

// UndoTask takes back what a turn that failed had set aside.
func (b *Scheduler) UndoTask(t *Task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := t.Job
	r.turns--
	r.reports = append(t.Sent, r.reports...)
	r.release = append(r.release, t.release...)
	for _, c := range t.last {
		c.released = false
	}
	for _, p := range t.Sent {
		if h := p.Session.held[unitKey{p.Report.Job, p.Report.Unit}]; h != nil {
			h.taken = false
		}
	}
	b.releaseTaskSlots(t)
	if c := t.Turn.Claim; c != nil {
		b.addHeldUnits(r, -len(c.Candidates))
		r.returnCandidates(c.Candidates)
		r.putBack(c.Candidates)
		r.noteWaiting(b.now())
		if c.Bounded {
			b.Grants.endClaim(r, t.tokens)
		}
	}
}

// A Split says what becomes of a turn that can never commit as it is.
type Split uint8

// What may become of it.
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

// SplitTask takes back what a turn had set aside that failed for one of its members, and
// says how its members are tried again. Why is what the turn failed with.
func (b *Scheduler) SplitTask(t *Task, why error) Split {
	b.UndoTask(t)
	b.mu.Lock()
	defer b.mu.Unlock()
	r, members := t.Job, len(t.Sent)
	if c := t.Turn.Claim; c != nil {
		members += len(c.Candidates)
	}
	switch {
	case members > 1:
		r.batch = min(r.turnSize(), max(1, members/2))
		b.activateJob(r)
		return Halved
	case len(t.Sent) == 0 || t.Sent[0].spoilt:
		return Alone
	}
	for i := range r.reports {
		if p := &r.reports[i]; p.Report == t.Sent[0].Report {
			p.Report, p.spoilt = unstorable(p.Report, why), true
			break
		}
	}
	b.activateJob(r)
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
// does not run. Their workers are told that the units have moved on.
func (b *Scheduler) DropReports(t *Task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := t.Job
	for _, p := range t.Sent {
		r.reports = slices.DeleteFunc(r.reports, func(q pendingReport) bool { return q.Report.Unit == p.Report.Unit && q.spoilt })
		b.applyVerdict(r, p, turns.Settled{Verdict: mapreduce.Stale})
		p.Session.Peer.Send(&mapreduce.ToWorker{Verdicts: []mapreduce.VerdictOn{{
			Held:    mapreduce.Held{Job: p.Report.Job, Unit: p.Report.Unit, Attempt: p.Report.Attempt},
			Verdict: mapreduce.Stale,
		}}})
	}
	b.dropJob(r)
}

// DelayRetry lets a run rest whose turn failed, twice as long each time, and returns
// until when.
func (b *Scheduler) DelayRetry(r *Job, first, longest time.Duration) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.retryAt = b.now().Add(min(longest, first<<min(r.retries, 10)))
	r.retries++
	return r.retryAt
}

// Revisit makes r be visited again.
func (b *Scheduler) Revisit(r *Job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.retryAt = time.Time{}
	b.activateJob(r)
}

// releaseTaskSlots gives back the slots that a turn had set aside.
func (b *Scheduler) releaseTaskSlots(t *Task) {
	for i, s := range t.seats {
		s.promised -= t.Turn.Claim.Seats[i].Slots
	}
}

// ApplyResult enters what a turn came to, and reports whether the run has nothing
// under way any more.
func (b *Scheduler) ApplyResult(t *Task, res *turns.Result) (idle bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := t.Job
	r.turns--
	r.retries = 0
	if r.batch *= 2; r.batch >= records.MaxBatch {
		r.batch = 0
	}
	for i, p := range t.Sent {
		b.applyVerdict(r, p, res.Verdicts[i])
	}
	if c := t.Turn.Claim; c != nil {
		b.releaseTaskSlots(t)
		b.applyClaims(r, t, res)
		for i, s := range t.seats {
			if !res.Seated[i] { // another orchestrator has it, and its stream here is dead
				s.gone = true
				s.Peer.Stop(ErrSuperseded)
			}
		}
	}
	switch {
	case res.Full:
		b.full[r.tenant] = b.now().Add(FullPause)
	case len(t.Sent) > 0:
		b.reopenTenant(r.tenant) // there may be room again
	}
	if !res.State.Running() && r.running {
		r.running, r.queue = false, nil
	}
	r.noteWaiting(b.now())
	idle = r.turns == 0 && len(r.reports) == 0 && r.held == 0
	if r.running || len(r.reports) > 0 {
		b.fairQueue.add(r)
	}
	b.dropJob(r)
	b.wake.Signal()
	return idle
}

// FullPause is after how long it is tried again to claim units of a tenant of which as many
// run as may. It is tried at once when units of it end that this node holds.
const FullPause = 500 * time.Millisecond

// ReopenFor has units of the tenant of a job claimed again.
func (b *Scheduler) ReopenFor(r *Job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reopenTenant(r.tenant)
}

// reopenTenant has units of a tenant claimed again. The caller holds b.mu.
func (b *Scheduler) reopenTenant(t mapreduce.TenantID) {
	if _, full := b.full[t]; !full {
		return
	}
	delete(b.full, t)
	for _, r := range b.runs {
		if r.tenant == t && r.running {
			b.fairQueue.add(r)
		}
	}
	b.wake.Broadcast()
}

// applyVerdict enters the verdict on a report.
func (b *Scheduler) applyVerdict(r *Job, p pendingReport, s turns.Settled) {
	if s.Verdict == mapreduce.VerdictUnknown {
		return
	}
	if h := p.Session.forgetAttempt(p.Report.Job, p.Report.Unit, p.Report.Attempt); h != nil {
		b.addHeldUnits(r, -1)
		if h.granted {
			r.tokens += h.Reserved - p.Report.Tokens.Total()
		}
		h.claim.endUnit(r)
	}
	if s.Requeued != nil && r.running {
		r.putBack([]records.Candidate{*s.Requeued})
	}
}

// applyClaims enters the units that a turn claimed.
func (b *Scheduler) applyClaims(r *Job, t *Task, res *turns.Result) {
	c := t.Turn.Claim
	b.addHeldUnits(r, len(res.Claimed)-len(c.Candidates))
	r.noteCrowding(len(c.Candidates), len(c.Candidates)-len(res.Claimed)-len(res.Left))
	r.returnCandidates(c.Candidates)
	r.putBack(res.Left)
	claims := make(map[mapreduce.SessionID]*claimOf, len(t.seats))
	for _, got := range res.Claimed {
		s := b.seatedSession(t, got.Session)
		if c.Bounded {
			t.tokens -= got.Unit.Reserved
		}
		if s == nil {
			b.addHeldUnits(r, -1) // its session has gone, or came back meanwhile: either gives the unit back
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
		b.Grants.endClaim(r, t.tokens)
	}
	if res.Short {
		r.slots, r.revocations = min(r.slots, res.Slots.Slots), res.Slots.Taken // with less it asks for more
		if c.Calls.Slots > 0 {
			b.Grants.callSlots, b.Grants.callsTaken, b.Grants.callsDue = min(b.Grants.callSlots, res.Calls.Slots), res.Calls.Taken, true
		}
	}
}

// seatedSession returns the session that a turn gave a seat to, if it is still the one
// on the scheduler.
func (b *Scheduler) seatedSession(t *Task, id mapreduce.SessionID) *Session {
	for _, s := range t.seats {
		if s.ID == id && b.Sessions.bound[id] == s {
			return s
		}
	}
	return nil
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
