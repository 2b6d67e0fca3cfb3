package orchestrator

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/notify"
	"github.com/coditect/mapreduce/orchestrator/supervise"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/turns"
)

// newID draws an identifier: of claims, sessions and orchestrators.
func newID() string { return rand.Text() }

// committerLoop carries out what the scheduler decides, one task after the other.
func (o *Orchestrator) committerLoop(ctx context.Context) {
	for {
		t := o.scheduler.nextTask()
		if t == nil {
			return
		}
		o.carryOut(ctx, t)
	}
}

// carryOut does what the scheduler has decided. A panic is its job's failure.
func (o *Orchestrator) carryOut(ctx context.Context, t *task) {
	if !t.scan {
		o.supervisor.ForJob(ctx, t.job.id, "a turn", func() { o.commitTask(ctx, t) })
		return
	}
	o.supervisor.ForJob(ctx, t.job.id, "reading a queue", func() {
		read := false
		defer func() {
			if !read {
				o.scheduler.applyScan(t.job, nil, nil)
			}
		}()
		o.scanQueues(ctx, t.job)
		read = true
	})
}

// commitTask carries out a turn, and tells everyone concerned. A panic gives back what
// was set aside; or if it comes later, has those who may not have been told connect
// again, which tells them.
func (o *Orchestrator) commitTask(ctx context.Context, t *task) {
	applied, told := false, false
	defer func() {
		switch {
		case !applied:
			o.scheduler.undoTask(t)
			o.delayRetry(t.job)
		case !told:
			t.cutOff()
		}
	}()
	res, err := o.finishAndClaim(ctx, t)
	if err != nil {
		o.supervisor.LogFailure(ctx, "a turn failed; trying again", err, "job", t.job.id, "reports", len(t.sent))
		return
	}
	gave := o.scheduler.applyResult(t, res)
	applied = true
	o.jobs.Around(failpoint.Answer, func() { o.sendVerdicts(t, res) })
	o.jobs.Around(failpoint.Assign, func() { o.dispatchUnits(ctx, t, res) })
	told = true
	o.handleResult(t.job, res, gave)
}

// cutOff ends the streams of all sessions that the task is about.
func (t *task) cutOff() {
	for _, s := range t.seats {
		s.stop(errUntold)
	}
	for _, p := range t.sent {
		p.session.stop(errUntold)
	}
}

// errUntold ends streams whose worker may have missed something.
var errUntold = errs.New(errs.Unavailable, "something was not sent: connect again")

// finishAndClaim carries out a turn until its outcome is known. While the store is away
// it may have committed all the same: the same turn, run again, finds out, where
// another one would claim other units beside those.
func (o *Orchestrator) finishAndClaim(ctx context.Context, t *task) (*turns.Result, error) {
	for pause := supervise.FirstPause; ; pause = min(2*pause, supervise.LongestPause) {
		res, err := o.jobs.Turns.FinishAndClaim(ctx, t.turn)
		if !store.MaybeCommitted(err) {
			return res, err
		}
		o.supervisor.LogFailure(ctx, "what became of a turn is not known; asking again", err, "job", t.job.id)
		if clock.Sleep(ctx, pause) != nil {
			return nil, err
		}
	}
}

// delayRetry lets a run rest whose turn failed: the store is out of space, or away.
func (o *Orchestrator) delayRetry(r *scheduledJob) {
	o.scheduler.mu.Lock()
	defer o.scheduler.mu.Unlock()
	r.retryAt = time.Now().Add(min(supervise.LongestPause, supervise.FirstPause<<min(r.retries, 10)))
	r.retries++
	o.signals.CallAt(r.retryAt, func(context.Context) { o.scheduler.stirOnly(r) })
}

// undoTask takes back what a turn that failed had set aside.
func (b *scheduler) undoTask(t *task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := t.job
	r.turns--
	r.reports = append(t.sent, r.reports...)
	r.release = append(r.release, t.release...)
	for _, c := range t.last {
		c.released = false
	}
	for _, p := range t.sent {
		if h := p.session.held[unitKey{p.report.Job, p.report.Unit}]; h != nil {
			h.taken = false
		}
	}
	b.releaseTaskSlots(t)
	if c := t.turn.Claim; c != nil {
		b.addHeldUnits(r, -len(c.Candidates))
		r.returnCandidates(c.Candidates)
		r.putBack(c.Candidates)
		if c.Bounded {
			b.endClaim(r, t.tokens)
		}
	}
}

// endClaim gives back the tokens that a claim did not reserve.
func (b *scheduler) endClaim(r *scheduledJob, left int64) {
	r.tokens += left
	r.claiming = false
	b.claimEnded.Broadcast()
}

// releaseTaskSlots gives back the slots that a turn had set aside.
func (b *scheduler) releaseTaskSlots(t *task) {
	for i, s := range t.seats {
		s.promised -= t.turn.Claim.Seats[i].Slots
	}
}

// stirOnly makes r be visited again.
func (b *scheduler) stirOnly(r *scheduledJob) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.retryAt = time.Time{}
	b.activateJob(r)
}

// applyResult enters what a turn came to, and reports whether the run has nothing
// under way any more.
func (b *scheduler) applyResult(t *task, res *turns.Result) (idle bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := t.job
	r.turns--
	r.retries = 0
	for i, p := range t.sent {
		b.applyVerdict(r, p, res.Verdicts[i])
	}
	if c := t.turn.Claim; c != nil {
		b.releaseTaskSlots(t)
		b.applyClaims(r, t, res)
		for i, s := range t.seats {
			if !res.Seated[i] { // another orchestrator has it, and its stream here is dead
				s.gone = true
				s.stop(errSuperseded)
			}
		}
	}
	if !res.State.Running() && r.running {
		r.running, r.queue = false, nil
	}
	idle = r.turns == 0 && len(r.reports) == 0 && r.held == 0
	if r.running || len(r.reports) > 0 {
		b.fairQueue.add(r)
	}
	b.dropJob(r)
	b.wake.Signal()
	return idle
}

// applyVerdict enters the verdict on a report.
func (b *scheduler) applyVerdict(r *scheduledJob, p pendingReport, s turns.Settled) {
	if s.Verdict == mapreduce.VerdictUnknown {
		return
	}
	if h := p.session.forgetAttempt(p.report.Job, p.report.Unit, p.report.Attempt); h != nil {
		b.addHeldUnits(r, -1)
		if h.granted {
			r.tokens += h.reserved - p.report.Tokens.Total()
		}
		h.claim.endUnit(r)
	}
	if s.Requeued != nil && r.running {
		r.putBack([]records.Candidate{*s.Requeued})
	}
}

// applyClaims enters the units that a turn claimed.
func (b *scheduler) applyClaims(r *scheduledJob, t *task, res *turns.Result) {
	c := t.turn.Claim
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
		s.holdUnit(r.id, got.Unit, of, c.Bounded)
	}
	if c.Bounded {
		if r.neededTokens = res.Need; res.Overdrawn {
			r.granted, t.tokens = false, 0
		}
		b.endClaim(r, t.tokens)
	}
	if res.Short {
		r.slots, r.revocations = min(r.slots, res.Slots.Slots), res.Slots.Taken // with less it asks for more
		if c.Calls.Slots > 0 {
			b.callSlots, b.callsTaken, b.callsDue = min(b.callSlots, res.Calls.Slots), res.Calls.Taken, true
		}
	}
}

// seatedSession returns the session that a turn gave a seat to, if it is still the one
// on the scheduler.
func (b *scheduler) seatedSession(t *task, id mapreduce.SessionID) *session {
	for _, s := range t.seats {
		if s.id == id && b.sessions[id] == s {
			return s
		}
	}
	return nil
}

// sendVerdicts sends the verdicts of a turn to the sessions they are for.
func (o *Orchestrator) sendVerdicts(t *task, res *turns.Result) {
	bySession := make(map[*session][]mapreduce.VerdictOn)
	for i, p := range t.sent {
		v := mapreduce.VerdictOn{
			Held:    mapreduce.Held{Job: p.report.Job, Unit: p.report.Unit, Attempt: p.report.Attempt},
			Verdict: res.Verdicts[i].Verdict,
		}
		bySession[p.session] = append(bySession[p.session], v)
		if v.Verdict == mapreduce.Stale {
			o.log.Warn("report of a superseded attempt refused",
				"job", v.Job, "unit", v.Unit, "attempt", v.Attempt, "session", p.session.id)
		}
		if ref := res.Verdicts[i].Sleeps; ref != nil {
			o.life.ScheduleWakeUp(v.Job, *ref)
		}
	}
	for s, vs := range bySession {
		s.out.put(&mapreduce.ToWorker{Verdicts: vs})
	}
}

// handleResult does what a turn may have made due.
func (o *Orchestrator) handleResult(r *scheduledJob, res *turns.Result, idle bool) {
	failed := res.JobError != ""
	for _, v := range res.Verdicts {
		failed = failed || v.State == mapreduce.UnitFailed
	}
	if res.JobError != "" {
		o.signals.RequestFailure(r.id, notify.Failure{Epoch: res.Epoch, Why: res.JobError})
	}
	if len(res.Told) > 0 {
		o.signals.NoteEndedInputs(r.id, res.Told)
	}
	if idle || failed || !res.State.Running() || res.Need > 0 || res.Short || o.scheduler.isGrantUnknown(r) {
		o.signals.MarkDue(r.id)
	}
	o.signals.NotifyWatchers(r.id)
}
