package orchestrator

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs"
)

// newID draws an identifier: of claims, sessions and orchestrators.
func newID() string { return rand.Text() }

// lane carries out what the board decides, one task after the other.
func (o *Orchestrator) lane(ctx context.Context) {
	for {
		t := o.board.next()
		if t == nil {
			return
		}
		o.carryOut(ctx, t)
	}
}

// carryOut does what the board has decided. A panic is its job's failure.
func (o *Orchestrator) carryOut(ctx context.Context, t *task) {
	if !t.scan {
		o.forJob(ctx, t.run.id, "a turn", func() { o.take(ctx, t) })
		return
	}
	o.forJob(ctx, t.run.id, "reading a queue", func() {
		read := false
		defer func() {
			if !read {
				o.board.scanned(t.run, nil, nil)
			}
		}()
		o.scan(ctx, t.run)
		read = true
	})
}

// take carries out a turn, and tells everyone concerned. A panic gives back what
// was set aside; or if it comes later, has those who may not have been told connect
// again, which tells them.
func (o *Orchestrator) take(ctx context.Context, t *task) {
	applied, told := false, false
	defer func() {
		switch {
		case !applied:
			o.board.undo(t)
			o.later(t.run)
		case !told:
			t.cutOff()
		}
	}()
	res, err := o.turn(ctx, t)
	if err != nil {
		o.failed(ctx, "a turn failed; trying again", err, "job", t.run.id, "reports", len(t.sent))
		return
	}
	gave := o.board.apply(t, res)
	applied = true
	o.jobs.Around(failpoint.Answer, func() { o.answer(t, res) })
	o.jobs.Around(failpoint.Assign, func() { o.assign(ctx, t, res) })
	told = true
	o.after(t.run, res, gave)
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

// turn carries out a turn until its outcome is known. While the store is away
// it may have committed all the same: the same turn, run again, finds out, where
// another one would claim other units beside those.
func (o *Orchestrator) turn(ctx context.Context, t *task) (*jobs.TurnResult, error) {
	for pause := minQuiet; ; pause = min(2*pause, maxQuiet) {
		res, err := o.jobs.Turn(ctx, t.turn)
		if !store.MaybeCommitted(err) {
			return res, err
		}
		o.failed(ctx, "what became of a turn is not known; asking again", err, "job", t.run.id)
		if clock.Sleep(ctx, pause) != nil {
			return nil, err
		}
	}
}

// minQuiet is the first pause after a turn that failed.
const minQuiet = 50 * time.Millisecond

// maxQuiet bounds the pause after turns that failed.
const maxQuiet = 5 * time.Second

// later lets a run rest whose turn failed: the store is out of space, or away.
func (o *Orchestrator) later(r *run) {
	o.board.mu.Lock()
	defer o.board.mu.Unlock()
	r.quiet = time.Now().Add(min(maxQuiet, minQuiet<<min(r.retries, 10)))
	r.retries++
	o.notices.at(r.quiet, func(context.Context) { o.board.stirOnly(r) })
}

// undo takes back what a turn that failed had set aside.
func (b *board) undo(t *task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := t.run
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
	b.unseat(t)
	if c := t.turn.Claim; c != nil {
		b.hold(r, -len(c.Candidates))
		r.give(c.Candidates)
		r.putBack(c.Candidates)
		if c.Bounded {
			b.endClaim(r, t.tokens)
		}
	}
}

// endClaim gives back the tokens that a claim did not reserve.
func (b *board) endClaim(r *run, left int64) {
	r.tokens += left
	r.claiming = false
	b.calm.Broadcast()
}

// unseat gives back the slots that a turn had set aside.
func (b *board) unseat(t *task) {
	for i, s := range t.seats {
		s.promised -= t.turn.Claim.Seats[i].Slots
	}
}

// stirOnly makes r be visited again.
func (b *board) stirOnly(r *run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.quiet = time.Time{}
	b.activate(r)
}

// apply enters what a turn came to, and reports whether the run has nothing
// under way any more.
func (b *board) apply(t *task, res *jobs.TurnResult) (idle bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := t.run
	r.turns--
	r.retries = 0
	for i, p := range t.sent {
		b.settled(r, p, res.Verdicts[i])
	}
	if c := t.turn.Claim; c != nil {
		b.unseat(t)
		b.claimed(r, t, res)
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
		b.fair.add(r)
	}
	b.drop(r)
	b.wake.Signal()
	return idle
}

// settled enters the verdict on a report.
func (b *board) settled(r *run, p pendingReport, s jobs.Settled) {
	if s.Verdict == mapreduce.VerdictUnknown {
		return
	}
	if h := p.session.forget(p.report.Job, p.report.Unit, p.report.Attempt); h != nil {
		b.hold(r, -1)
		if h.granted {
			r.tokens += h.reserved - p.report.Tokens.Total()
		}
		h.claim.end(r)
	}
	if s.Requeued != nil && r.running {
		r.putBack([]jobs.Candidate{*s.Requeued})
	}
}

// claimed enters the units that a turn claimed.
func (b *board) claimed(r *run, t *task, res *jobs.TurnResult) {
	c := t.turn.Claim
	b.hold(r, len(res.Claimed)-len(c.Candidates))
	r.elsewhere(len(c.Candidates), len(c.Candidates)-len(res.Claimed)-len(res.Left))
	r.give(c.Candidates)
	r.putBack(res.Left)
	claims := make(map[mapreduce.SessionID]*claimOf, len(t.seats))
	for _, got := range res.Claimed {
		s := b.seated(t, got.Session)
		if c.Bounded {
			t.tokens -= got.Unit.Reserved
		}
		if s == nil {
			b.hold(r, -1) // its session has gone, or came back meanwhile: either gives the unit back
			continue
		}
		of := claims[got.Session]
		if of == nil {
			of = &claimOf{id: jobs.HeldID{Session: got.Session, Claim: c.ID}}
			claims[got.Session] = of
		}
		of.left++
		s.hold(r.id, got.Unit, of, c.Bounded)
	}
	if c.Bounded {
		if r.need = res.Need; res.Overdrawn {
			r.granted, t.tokens = false, 0
		}
		b.endClaim(r, t.tokens)
	}
	if res.Short {
		r.slots, r.usurped = min(r.slots, res.Slots.Slots), res.Slots.Taken // with less it asks for more
		if c.Calls.Slots > 0 {
			b.callSlots, b.callsTaken, b.callsDue = min(b.callSlots, res.Calls.Slots), res.Calls.Taken, true
		}
	}
}

// seated returns the session that a turn gave a seat to, if it is still the one
// on the board.
func (b *board) seated(t *task, id mapreduce.SessionID) *session {
	for _, s := range t.seats {
		if s.id == id && b.sessions[id] == s {
			return s
		}
	}
	return nil
}

// answer sends the verdicts of a turn to the sessions they are for.
func (o *Orchestrator) answer(t *task, res *jobs.TurnResult) {
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
			o.sleeps(v.Job, *ref)
		}
	}
	for s, vs := range bySession {
		s.out.put(&mapreduce.ToWorker{Verdicts: vs})
	}
}

// after does what a turn may have made due.
func (o *Orchestrator) after(r *run, res *jobs.TurnResult, idle bool) {
	failed := res.JobError != ""
	for _, v := range res.Verdicts {
		failed = failed || v.State == mapreduce.UnitFailed
	}
	if res.JobError != "" {
		o.notices.fail(r.id, failure{epoch: res.Epoch, why: res.JobError})
	}
	if len(res.Told) > 0 {
		o.notices.told(r.id, res.Told)
	}
	if idle || failed || !res.State.Running() || res.Need > 0 || res.Short || o.board.ungranted(r) {
		o.notices.due(r.id)
	}
	o.notices.changed(r.id)
}
