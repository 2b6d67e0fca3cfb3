package orchestrator

import (
	"context"
	"crypto/rand"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/notify"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/orchestrator/supervise"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/turns"
)

// newID draws an identifier: of claims, sessions and orchestrators.
func newID() string { return rand.Text() }

// committerLoop carries out what the scheduler decides, one task after the other.
func (o *Orchestrator) committerLoop(ctx context.Context) {
	for {
		t := o.scheduler.NextTask()
		if t == nil {
			return
		}
		o.carryOut(ctx, t)
	}
}

// carryOut does what the scheduler has decided. A panic is its job's failure.
func (o *Orchestrator) carryOut(ctx context.Context, t *schedule.Task) {
	if !t.Scan {
		o.supervisor.ForJob(ctx, t.Job.ID, "a turn", func() { o.commitTask(ctx, t) })
		return
	}
	o.supervisor.ForJob(ctx, t.Job.ID, "reading a queue", func() {
		read := false
		defer func() {
			if !read {
				o.scheduler.ApplyScan(t.Job, nil, nil)
			}
		}()
		o.scanQueues(ctx, t.Job)
		read = true
	})
}

// commitTask carries out a turn, and tells everyone concerned. A panic gives back what
// was set aside; or if it comes later, has those who may not have been told connect
// again, which tells them.
func (o *Orchestrator) commitTask(ctx context.Context, t *schedule.Task) {
	applied, told := false, false
	defer func() {
		switch {
		case !applied:
			o.scheduler.UndoTask(t)
			o.delayRetry(t.Job)
		case !told:
			t.CutOff(errUntold)
		}
	}()
	res, err := o.finishAndClaim(ctx, t)
	if err != nil {
		o.supervisor.LogFailure(ctx, "a turn failed; trying again", err, "job", t.Job.ID, "reports", len(t.Sent))
		return
	}
	gave := o.scheduler.ApplyResult(t, res)
	applied = true
	o.jobs.Around(failpoint.Answer, func() { o.sendVerdicts(t, res) })
	o.jobs.Around(failpoint.Assign, func() { o.dispatchUnits(ctx, t, res) })
	told = true
	o.handleResult(t.Job, res, gave)
}

// errUntold ends streams whose worker may have missed something.
var errUntold = errs.New(errs.Unavailable, "something was not sent: connect again")

// finishAndClaim carries out a turn until its outcome is known. While the store is away
// it may have committed all the same: the same turn, run again, finds out, where
// another one would claim other units beside those.
func (o *Orchestrator) finishAndClaim(ctx context.Context, t *schedule.Task) (*turns.Result, error) {
	for pause := supervise.FirstPause; ; pause = min(2*pause, supervise.LongestPause) {
		res, err := o.jobs.Turns.FinishAndClaim(ctx, t.Turn)
		if !store.MaybeCommitted(err) {
			return res, err
		}
		o.supervisor.LogFailure(ctx, "what became of a turn is not known; asking again", err, "job", t.Job.ID)
		if clock.Sleep(ctx, pause) != nil {
			return nil, err
		}
	}
}

// DelayRetry lets a run rest whose turn failed: the store is out of space, or away.
func (o *Orchestrator) delayRetry(r *schedule.Job) {
	at := o.scheduler.DelayRetry(r, supervise.FirstPause, supervise.LongestPause)
	o.signals.CallAt(at, func(context.Context) { o.scheduler.Revisit(r) })
}

// sendVerdicts sends the verdicts of a turn to the sessions they are for.
func (o *Orchestrator) sendVerdicts(t *schedule.Task, res *turns.Result) {
	bySession := make(map[*schedule.Session][]mapreduce.VerdictOn)
	for i, p := range t.Sent {
		v := mapreduce.VerdictOn{
			Held:    mapreduce.Held{Job: p.Report.Job, Unit: p.Report.Unit, Attempt: p.Report.Attempt},
			Verdict: res.Verdicts[i].Verdict,
		}
		bySession[p.Session] = append(bySession[p.Session], v)
		if v.Verdict == mapreduce.Stale {
			o.log.Warn("report of a superseded attempt refused",
				"job", v.Job, "unit", v.Unit, "attempt", v.Attempt, "session", p.Session.ID)
		}
		if ref := res.Verdicts[i].Sleeps; ref != nil {
			o.life.ScheduleWakeUp(v.Job, *ref)
		}
	}
	for s, vs := range bySession {
		s.Peer.Send(&mapreduce.ToWorker{Verdicts: vs})
	}
}

// handleResult does what a turn may have made due.
func (o *Orchestrator) handleResult(r *schedule.Job, res *turns.Result, idle bool) {
	failed := res.JobError != ""
	for _, v := range res.Verdicts {
		failed = failed || v.State == mapreduce.UnitFailed
	}
	if res.JobError != "" {
		o.signals.RequestFailure(r.ID, notify.Failure{Epoch: res.Epoch, Why: res.JobError})
	}
	if len(res.Told) > 0 {
		o.signals.NoteEndedInputs(r.ID, res.Told)
	}
	if idle || failed || !res.State.Running() || res.Need > 0 || res.Short || o.scheduler.Grants.IsUnknown(r) {
		o.signals.MarkDue(r.ID)
	}
	o.signals.NotifyWatchers(r.ID)
}
