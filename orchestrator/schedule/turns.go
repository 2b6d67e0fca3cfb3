package schedule

import (
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/schedule/view"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Turns enter on the scheduler what became of its tasks: what was read of a queue, that a
// turn was carried out, or failed, and when its job is to have the next. The scheduler's mu
// guards them.
type Turns struct {
	sched *Scheduler

	full map[mapreduce.TenantID]time.Time // until when no units of a tenant are claimed, as many run as may
}

// isFull reports whether as many units of a tenant run as may. The caller holds the
// scheduler's mu.
func (t *Turns) isFull(tenant mapreduce.TenantID) bool { return t.sched.now().Before(t.full[tenant]) }

// Undo takes back what a turn that failed had set aside.
func (t *Turns) Undo(task *Task) {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()

	j := task.Job
	j.turns.undo(task.Sent, task.release)

	// The turn that takes these reports next releases their claims.
	for _, c := range task.last {
		c.Released = false
	}
	for _, p := range task.Sent {
		p.Session.PutBackReport(p.Report.Job, p.Report.Unit)
	}

	task.releaseSlots()
	if c := task.Turn.Claim; c != nil {
		t.sched.jobs.addHeld(j, -len(c.Candidates))
		j.queue.Release(c.Candidates)
		j.queue.PutBack(c.Candidates)
		j.queue.NoteWaiting(t.sched.now())
		if c.Bounded {
			t.sched.Grants.endClaim(j, task.tokens)
		}
	}

	t.sched.dropJob(j)
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
func (t *Turns) Split(task *Task, why error) Split {
	// Undo takes the lock itself.
	t.Undo(task)

	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()

	j, members := task.Job, len(task.Sent)
	if c := task.Turn.Claim; c != nil {
		members += len(c.Candidates)
	}

	switch {
	case members > 1:
		j.turns.split(members)
		t.sched.activateJob(j)
		return Halved
	case len(task.Sent) == 0 || task.Sent[0].spoilt:
		return Alone
	}

	// Undo has put the report back.
	rep := task.Sent[0].Report
	j.turns.replace(rep, unstorable(rep, why))
	t.sched.activateJob(j)
	return Replaced
}

// unstorable returns what is said instead of a report that cannot be stored.
func unstorable(rep *protocol.Report, why error) *protocol.Report {
	return &protocol.Report{
		Job: rep.Job, Unit: rep.Unit, Attempt: rep.Attempt, Outcome: protocol.Errored, Class: protocol.PermanentUnit,
		Errors: []string{"what its worker reported cannot be stored: " + why.Error()},
	}
}

// DropReports forgets the reports of a turn that can never be stored, now that their job
// does not run. Their workers get the verdict that the units have moved on.
func (t *Turns) DropReports(task *Task) {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()

	j := task.Job
	for _, p := range task.Sent {
		j.turns.dropSpoilt(p.Report.Unit)
		t.applyVerdict(j, p, queue.Settled{Verdict: protocol.Stale})
		p.Session.Peer.Send(&protocol.ToWorker{Verdicts: []protocol.VerdictOn{{
			Held:    protocol.Held{Job: p.Report.Job, Unit: p.Report.Unit, Attempt: p.Report.Attempt},
			Verdict: protocol.Stale,
		}}})
	}

	t.sched.dropJob(j)
}

// DelayRetry lets a job rest whose turn failed, twice as long each time, and returns until
// when.
func (t *Turns) DelayRetry(j *Job, first, longest time.Duration) time.Time {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()
	j.turns.delay(t.sched.now(), first, longest)
	return j.turns.retryAt
}

// Revisit makes j be visited again.
func (t *Turns) Revisit(j *Job) {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()
	j.turns.retryAt = time.Time{}
	t.sched.activateJob(j)
}

// Apply enters what a turn came to, and reports whether the job has nothing under way any
// more.
func (t *Turns) Apply(task *Task, res *queue.Result) (idle bool) {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()

	j := task.Job
	j.turns.end()
	for i, p := range task.Sent {
		t.applyVerdict(j, p, res.Verdicts[i])
	}

	if c := task.Turn.Claim; c != nil {
		task.releaseSlots()
		t.applyClaims(j, task, res)
		task.dropLost(res)
	}

	switch {
	case res.Full:
		t.full[j.tenant] = t.sched.now().Add(FullPause)
	case len(task.Sent) > 0:
		t.reopenTenant(j.tenant) // there may be room again
	}

	if !res.State.Running() {
		t.sched.jobs.stop(j)
	}
	if res.JobError != "" {
		j.failing = max(j.failing, res.Epoch)
	}
	j.queue.NoteWaiting(t.sched.now())

	idle = j.isIdle()
	if j.running || len(j.turns.reports) > 0 || len(j.turns.ended) > 0 {
		t.sched.fairQueue.Add(j)
	}

	t.sched.dropJob(j)
	t.sched.wake.Signal()
	return idle
}

// FullPause is after how long it is tried again to claim units of a tenant of which as many
// run as may. It is tried at once when units of it end that this node holds.
const FullPause = 500 * time.Millisecond

// ReopenFor lets units of the tenant of a job be claimed again.
func (t *Turns) ReopenFor(j *Job) {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()
	t.reopenTenant(j.tenant)
}

// reopenTenant lets units of a tenant be claimed again. The caller holds the scheduler's
// mu.
func (t *Turns) reopenTenant(tenant mapreduce.TenantID) {
	if _, full := t.full[tenant]; !full {
		return
	}
	delete(t.full, tenant)
	for _, j := range t.sched.jobs.byID {
		if j.tenant == tenant && j.running {
			t.sched.fairQueue.Add(j)
		}
	}
	t.sched.wake.Broadcast()
}

// applyVerdict enters the verdict on a report.
func (t *Turns) applyVerdict(j *Job, p pendingReport, s queue.Settled) {
	if s.Verdict == protocol.VerdictUnknown {
		return
	}

	if h := p.Session.Forget(heldOf(p.Report)); h != nil {
		t.sched.jobs.forgetHeld(j, h)
		// The part of the reservation that was not spent is free again.
		if h.Granted {
			j.grant.Refund(h.Reserved - p.Report.Charged(j.currency(), h.Reserved) - s.Kept)
		}
		j.endUnit(h.Claim)
	}

	if s.Requeued != nil && j.running {
		j.queue.PutBack([]records.Candidate{*s.Requeued})
	}
}

// applyClaims enters the units that a turn claimed.
func (t *Turns) applyClaims(j *Job, task *Task, res *queue.Result) {
	c := task.Turn.Claim

	// All candidates have counted as held since the turn took them.
	t.sched.jobs.addHeld(j, len(res.Claimed)-len(c.Candidates))
	j.queue.NoteCrowding(len(c.Candidates), len(c.Candidates)-len(res.Claimed)-len(res.Left))
	j.queue.Release(c.Candidates)
	j.queue.PutBack(res.Left)

	claims := make(map[mapreduce.SessionID]*workers.Claim, len(task.sessions))
	for _, got := range res.Claimed {
		session := task.sessionOf(got.Session, t.sched.workers.Knows)
		if c.Bounded {
			task.tokens -= got.Unit.Reserved
		}
		if session == nil {
			t.sched.jobs.addHeld(j, -1) // its session was given up, or came back meanwhile: either gave the unit back
			continue
		}

		of := claims[got.Session]
		if of == nil {
			of = &workers.Claim{ID: queue.HeldID{Session: got.Session, Claim: c.ID}}
			claims[got.Session] = of
		}

		of.Left++
		session.Hold(j.ID, got.Unit, of, c.Bounded)
	}

	if c.Bounded {
		j.grant.SetNeed(res.Need)
		if res.Overdrawn {
			j.grant.MarkUnknown()
			task.tokens = 0
		}
		t.sched.Grants.endClaim(j, task.tokens)
	}

	// Others have taken slots or calls that this node thought to have.
	if res.Short {
		j.grant.Cut(res.Slots)
		if c.Calls.Slots > 0 {
			t.sched.calls.Cut(res.Calls)
		}
	}
}

// dropLost ends the streams of the sessions of a turn that another orchestrator has: here
// they are dead.
func (task *Task) dropLost(res *queue.Result) {
	for i, session := range task.sessions {
		if !res.Bound[i] {
			session.EndsAs(ErrSuperseded)
		}
	}
}

// sessionHere returns the session of a name that a turn has set slots aside at, if it is still
// the one whose stream is here.
func (task *Task) sessionHere(here *workers.Table, id mapreduce.SessionID) *workers.Session {
	return task.sessionOf(id, here.Has)
}

// sessionOf returns the session of a name that a turn has set slots aside at, if it is one of some.
func (task *Task) sessionOf(id mapreduce.SessionID, some func(*workers.Session) bool) *workers.Session {
	for _, session := range task.sessions {
		if session.ID == id && some(session) {
			return session
		}
	}
	return nil
}

// releaseSlots gives back the slots that a turn had set aside.
func (task *Task) releaseSlots() {
	for i, session := range task.sessions {
		session.Release(task.Turn.Claim.Workers[i].Slots)
	}
}

// CutOff ends the streams of all sessions that the task is about.
func (task *Task) CutOff(why error) {
	for _, session := range task.sessions {
		session.Peer.Stop(why)
	}
	for _, p := range task.Sent {
		p.Session.Peer.Stop(why)
	}
}

// ScanPosition returns how far a job's queues were read, of how many and up to which
// level, and whether another orchestrator claims where this one did.
func (t *Turns) ScanPosition(j *Job) (cursors []view.Cursor, shards, level int64, crowded bool) {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()
	return j.queue.Position()
}

// ApplyScan takes what a committer read of a job's queues. No cursors mean that it could
// not: then they are read from the beginning.
func (t *Turns) ApplyScan(j *Job, found []records.Candidate, cursors []view.Cursor) {
	t.sched.mu.Lock()
	defer t.sched.mu.Unlock()

	j.queue.ApplyScan(found, cursors)
	j.queue.NoteWaiting(t.sched.now())
	t.sched.activateJob(j)
}
