package dispatch

import (
	"context"
	"log/slog"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/batches"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/observe"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/orchestrator/transfer"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/queue"
)

// CommitterParts are the parts of an orchestrator that a Committer works with. All must be set,
// unless they say otherwise.
type CommitterParts struct {
	Jobs       *jobs.Jobs
	Scheduler  *schedule.Scheduler
	Members    *cluster.Membership
	Transfers  *transfer.Transfers // of what is too large for messages
	Batches    *batches.Batches    // which calls go by batch
	Signals    *cluster.Signals
	Supervisor *cluster.Supervisor
	Logger     *slog.Logger
	Metrics    *observe.Metrics // may be nil
	Tracing    *observe.Tracer  // may be nil
}

// A Committer carries out what the scheduler decides. Its methods are safe for
// concurrent use.
type Committer struct {
	jobs       *jobs.Jobs
	scheduler  *schedule.Scheduler
	members    *cluster.Membership
	dispatcher *dispatcher
	signals    *cluster.Signals
	supervisor *cluster.Supervisor
	log        *slog.Logger
	metrics    *observe.Metrics
	tracing    *observe.Tracer
	troubles   cluster.Troubles // of jobs whose turns fail
}

// NewCommitter returns a committer.
func NewCommitter(p CommitterParts) *Committer {
	return &Committer{
		dispatcher: &dispatcher{
			jobs: p.Jobs, scheduler: p.Scheduler, transfers: p.Transfers, batches: p.Batches, signals: p.Signals, supervisor: p.Supervisor, tracing: p.Tracing,
		},
		jobs: p.Jobs, scheduler: p.Scheduler, members: p.Members,
		signals: p.Signals, supervisor: p.Supervisor, log: p.Logger, metrics: p.Metrics, tracing: p.Tracing,
	}
}

// Loop carries out what the scheduler decides, one task after the other.
func (c *Committer) Loop(ctx context.Context) {
	for {
		task := c.scheduler.NextTask()
		if task == nil {
			return
		}
		c.carryOut(ctx, task)
	}
}

// carryOut does what the scheduler has decided. A panic is its job's failure.
func (c *Committer) carryOut(ctx context.Context, task *schedule.Task) {
	if !task.Scan {
		c.supervisor.ForJob(ctx, task.Job.ID, "a turn", func() { c.commitTask(ctx, task) })
		return
	}

	c.supervisor.ForJob(ctx, task.Job.ID, "reading a queue", func() {
		read := false
		// After a panic the queue must not count as being read for ever.
		defer func() {
			if !read {
				c.scheduler.Turns.ApplyScan(task.Job, nil, nil)
			}
		}()
		c.scanQueues(ctx, task.Job)
		read = true
	})
}

// commitTask carries out a turn, and tells everyone concerned. A panic gives back what
// was set aside; or if it comes later, has those who may not have been told connect
// again, which tells them.
func (c *Committer) commitTask(ctx context.Context, task *schedule.Task) {
	undone, applied, told := false, false, false
	defer func() {
		switch {
		case undone:
		case !applied:
			c.scheduler.Turns.Undo(task)
			c.delayRetry(task.Job)
		case !told:
			task.CutOff(errUntold)
		}
	}()

	ctx, end := c.beginTurn(ctx, task)
	texts := &textsAhead{dispatcher: c.dispatcher, job: task.Job.ID}
	defer texts.end()
	task.Turn.Claiming = func(units []queue.Claimed) { texts.begin(ctx, units) }

	res, err := c.finishAndClaim(ctx, task)
	end(res, err)

	if err != nil {
		c.supervisor.LogFailure(ctx, "a turn failed; trying again", err, "job", task.Job.ID, "reports", len(task.Sent))
		undone = ctx.Err() == nil && c.splitTurn(ctx, task, err)
		return
	}

	c.troubles.End(task.Job.ID)
	gave := c.scheduler.Turns.Apply(task, res)
	applied = true
	if res.JobError != "" { // first of all: nothing of the job is claimed until it has failed
		c.signals.RequestFailure(task.Job.ID, cluster.Failure{Epoch: res.Epoch, Why: res.JobError})
	}

	c.jobs.Around(failpoint.Answer, func() { c.sendVerdicts(task, res) })
	c.jobs.Around(failpoint.Assign, func() { c.dispatcher.dispatchUnits(ctx, task, res, texts) })
	told = true

	c.handleResult(task.Job, res, gave)
}

// beginTurn notes that a turn begins, and returns what notes that it has ended. Without
// metrics and tracing it does nothing.
func (c *Committer) beginTurn(ctx context.Context, task *schedule.Task) (context.Context, func(*queue.Result, error)) {
	if c.metrics == nil && c.tracing == nil {
		return ctx, func(*queue.Result, error) {}
	}

	begun := time.Now()
	held := func(yield func(protocol.Held) bool) {
		for _, r := range task.Turn.Reports {
			if !yield(protocol.Held{Job: r.Job, Unit: r.Unit, Attempt: r.Attempt}) {
				return
			}
		}
	}

	ctx, endSpan := c.tracing.BeginTurn(ctx, task.Job.ID, task.Spec, held, len(task.Turn.Reports))
	return ctx, func(res *queue.Result, err error) {
		claimed := 0
		if err == nil {
			claimed = len(res.Claimed)
			c.tracing.Ended(held)
			c.countAttempts(ctx, task, res)
		}
		c.metrics.Turn(ctx, time.Since(begun), claimed, err)
		endSpan(claimed, err)
	}
}

// countAttempts counts the attempts that a turn has finished.
func (c *Committer) countAttempts(ctx context.Context, task *schedule.Task, res *queue.Result) {
	if c.metrics == nil || len(res.Verdicts) == 0 {
		return
	}

	var ended observe.Attempts
	for i, v := range res.Verdicts {
		ended.Add(task.Turn.Reports[i].Report, v.Verdict, v.State, v.Alone || task.Turn.Reports[i].Broke)
	}

	model := ""
	if task.Spec != nil && task.Spec.Model != "" {
		model = task.Spec.Provider + "/" + task.Spec.Model
	}
	c.metrics.Attempts(ctx, &ended)
	c.metrics.Charges(ctx, res.Tenant, model, res.Charges)
}

// splitTurn deals with a turn that failed for one of its members, so that this one alone
// bears it, and reports whether it did: a member is tried again alone, then a report as
// that of a failure, and in the end the job fails that has what cannot be stored. An error
// of the moment is no member's.
func (c *Committer) splitTurn(ctx context.Context, task *schedule.Task, err error) bool {
	if !c.supervisor.MustFail(&c.troubles, task.Job.ID, err) {
		return false
	}

	if c.scheduler.Turns.Split(task, err) == schedule.Alone {
		if c.supervisor.FailJob(ctx, task.Job.ID, err) {
			c.scheduler.Turns.DropReports(task)
		}
		c.delayRetry(task.Job) // of the others
	}
	return true
}

// errUntold ends streams whose worker may have missed something.
var errUntold = errs.New(errs.Unavailable, "something was not sent: connect again")

// finishAndClaim carries out a turn until its outcome is known. While the store is away
// it may have committed all the same: the same turn, run again, finds out, where
// another one would claim other units beside those.
func (c *Committer) finishAndClaim(ctx context.Context, task *schedule.Task) (*queue.Result, error) {
	for pause := cluster.FirstPause; ; pause = min(2*pause, cluster.LongestPause) {
		res, err := c.jobs.Turns.FinishAndClaim(ctx, task.Turn)
		if !store.MaybeCommitted(err) {
			return res, err
		}
		c.supervisor.LogFailure(ctx, "what became of a turn is not known; asking again", err, "job", task.Job.ID)
		if clock.Sleep(ctx, pause) != nil {
			return nil, err
		}
	}
}

// delayRetry lets a job rest whose turn failed: the store is out of space, or away.
func (c *Committer) delayRetry(j *schedule.Job) {
	at := c.scheduler.Turns.DelayRetry(j, cluster.FirstPause, cluster.LongestPause)
	c.signals.CallAt(at, func(context.Context) { c.scheduler.Turns.Revisit(j) })
}

// sendVerdicts sends the verdicts of a turn to the sessions they are for.
func (c *Committer) sendVerdicts(task *schedule.Task, res *queue.Result) {
	bySession := make(map[*workers.Session][]protocol.VerdictOn)
	for i, p := range task.Sent {
		v := protocol.VerdictOn{
			Held:    protocol.Held{Job: p.Report.Job, Unit: p.Report.Unit, Attempt: p.Report.Attempt},
			Verdict: res.Verdicts[i].Verdict,
		}
		bySession[p.Session] = append(bySession[p.Session], v)

		if v.Verdict == protocol.Stale {
			c.log.Warn("report of a superseded attempt refused",
				"job", v.Job, "unit", v.Unit, "attempt", v.Attempt, "session", p.Session.ID)
		}
		if ref := res.Verdicts[i].Sleeps; ref != nil {
			c.signals.WakeLater(v.Job, *ref)
		}
	}

	for session, vs := range bySession {
		session.Peer.Send(&protocol.ToWorker{Verdicts: vs})
	}
}

// handleResult does what a turn may have made due.
func (c *Committer) handleResult(j *schedule.Job, res *queue.Result, idle bool) {
	failed := res.JobError != ""
	for _, v := range res.Verdicts {
		failed = failed || v.State == mapreduce.UnitFailed
	}

	if res.Full {
		c.signals.CallAt(time.Now().Add(schedule.FullPause), func(context.Context) { c.scheduler.Turns.ReopenFor(j) })
	}

	if len(res.Told) > 0 {
		c.signals.NoteEndedInputs(j.ID, res.Told)
	}

	parsed := res.MapEarly && len(res.Verdicts) > 0 // what of it is text may be mapped
	if idle || failed || parsed || !res.State.Running() || res.Need > 0 || res.Short || c.scheduler.Grants.IsUnknown(j) {
		c.signals.MarkDue(j.ID)
	}

	c.signals.NotifyWatchers(j.ID)
}
