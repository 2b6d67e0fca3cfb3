package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/apart"
	"github.com/coditect/mapreduce/worker/observe"
	"github.com/coditect/mapreduce/worker/report"
	"github.com/coditect/mapreduce/worker/step"
)

// An attempt is the work on one attempt at a unit: it gets what the unit needs, runs the agent,
// and makes the report. It belongs to the goroutine of its slot, which alone uses it once it
// runs; session fills it in before, under its lock. What others may ask of it while it runs
// stands in its entry and in its calls.
type attempt struct {
	session *session
	entry   *entry
	calls   *calls // which the agent is given
	reports report.Reporter

	held   mapreduce.Held
	job    *job        // as it was introduced before the assignment; nil if it was not
	runner step.Runner // nil if this worker has none; misfit says why
	misfit error
	task   *agent.Task

	ctx      context.Context // the attempt's own: made and ended with it
	traced   context.Context // ctx with the span of the attempt, if that is traced; set when it runs
	memory   int64           // bytes set aside for what was fetched
	evidence []byte          // the list of it, as it was fetched; nil once the shelf has it
}

// newAttempt returns the attempt of an entry that is being made. The session's lock is held.
func newAttempt(s *session, e *entry, a *mapreduce.Assignment) *attempt {
	c := e.calls
	t := &attempt{
		session: s, entry: e, calls: c, reports: e.reports, held: e.held, job: c.job, ctx: c.ctx,
		task: &agent.Task{Assignment: *a, Whole: c.wholeText(a.Text), Pictures: c.picturesOf(a.Text)},
	}
	if t.job != nil {
		t.task.Spec = t.job.spec
		t.runner, t.misfit = t.chooseRunner(s.cfg.Steps)
	}
	return t
}

// chooseRunner returns the runner of the unit, or an error if this worker has none. It sets
// what the stage of the unit says of it.
func (t *attempt) chooseRunner(steps *step.Registry) (step.Runner, error) {
	if t.task.Kind != mapreduce.KindParse {
		of := t.job.stageOf(t.task.Stage)
		if of.unclear != nil {
			return nil, of.unclear
		}
		if t.task.StageSpec = of.spec; of.spec != nil {
			t.calls.Most, t.calls.talks = of.spec.Tokens, len(of.spec.Tools) > 0
		}
	}

	// Calls of agents with tools are captured whatever the job says, see report.CaptureOf.
	t.calls.Capture = report.CaptureOf(t.job.spec.Capture, t.calls.talks)
	kind, err := steps.KindOf(t.task.Kind, t.task.StageSpec)
	if err != nil {
		return nil, err
	}
	provider := t.job.spec.Provider
	runner, ok := steps.Lookup(kind, provider)
	if ok {
		return runner, nil
	}
	if names := steps.Names(); !slices.Contains(names, provider) {
		return nil, fmt.Errorf("this worker has no provider named %q (has: %s)", provider, strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("the provider %s has no %s step (has: %v)", provider, kind, steps.Kinds(provider))
}

// errGoexit is what an attempt fails with whose agent ended its goroutine.
var errGoexit = errors.New("agent ended its goroutine instead of returning")

// execute runs the attempt and returns its report.
func (t *attempt) execute() *mapreduce.Report {
	t.entry.announced.await(t.ctx)
	start := time.Now()
	t.calls.Begin(start)

	// The memory is what fetchLarge has set aside meanwhile, so it is read at the end.
	defer func() { t.session.memory.Release(t.memory) }()

	var end func(*mapreduce.Report)
	t.traced, end = observe.BeginSpan(t.ctx, t.session.cfg.Tracer, t.session.cfg.Session, t.task)
	run := t.runHere
	if t.entry.apart {
		run = t.runApart
	}

	r := run()
	r.Elapsed = time.Since(start)

	if end != nil {
		end(r)
	}
	return r
}

// refuseRun returns the report of an attempt that cannot begin, or nil.
func (t *attempt) refuseRun() *mapreduce.Report {
	if err := t.reports.InterruptCause(); err != nil {
		return t.reports.Failed(err)
	}
	if t.runner == nil {
		return t.reports.Failed(agent.PermanentJob(t.misfit))
	}
	if err := t.checkBreakers(); err != nil {
		return t.reports.Failed(err)
	}
	return nil
}

// checkBreakers returns an error while the breakers of all models of the job are open: that of the one
// that is tried again first.
func (t *attempt) checkBreakers() error {
	err := t.job.breaker.CheckOpen()
	if err == nil || len(t.job.spec.Fallbacks) == 0 {
		return err
	}

	// One model that may be called is enough: the call then goes to it.
	for _, name := range t.job.spec.Fallbacks {
		next := t.session.breakers.Of(t.job.spec, name).CheckOpen()
		if next == nil {
			return nil
		}
		if openFor(next) < openFor(err) {
			err = next
		}
	}
	return err
}

// openFor returns how long the breaker of an error is open.
func openFor(err error) time.Duration {
	e, ok := errors.AsType[*agent.BreakerError](err)
	if !ok {
		return 0
	}
	return e.OpenFor
}

// runHere runs the attempt in this process.
func (t *attempt) runHere() *mapreduce.Report {
	if r := t.refuseRun(); r != nil {
		return r
	}
	fetched, err := t.fetchLarge()
	if err != nil {
		return t.unfetchedReport(err)
	}

	// The agent has the whole time, however long the wait for memory and blobs was.
	if fetched {
		t.entry.restartTime()
	}

	if err := t.openJournal(); err != nil {
		return t.reports.Failed(fmt.Errorf("journal of the unit: %w", err))
	}
	if err := t.openEvidence(); err != nil {
		return t.unfetchedReport(fmt.Errorf("evidence of the unit: %w", err))
	}

	res, err := t.runProtected()
	if err == nil && t.task.Kind != mapreduce.KindParse { // whose output is a text
		res.Output, err = t.calls.AppendCalls(res.Output)
	}

	if err != nil {
		return t.reports.Failed(err)
	}
	return t.reports.Done(res)
}

// runApart runs the attempt in a process of its own.
func (t *attempt) runApart() *mapreduce.Report {
	if r := t.refuseRun(); r != nil {
		return r
	}

	s, e := t.session, t.entry
	return s.relays.Run(s.cfg.StartApart, &apart.Unit{
		Assignment: t.task.Assignment, Spec: t.job.spec, Reports: t.reports,
		Grace: s.cfg.Grace, Blobs: s.transfers, Manners: s.cfg.Manners, Log: s.cfg.Logger.With(e.logged()...),
		Began: func() { e.extendTime(s.cfg.Grace) },
		Ask:   func() { s.out.queueQuestion(e) },
		Say:   t.calls.Progress,
	})
}

// runProtected runs the agent and makes a panic an error.
func (t *attempt) runProtected() (res *agent.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("agent panicked: %v", p)
			t.session.countPanic()
			t.session.cfg.Logger.ErrorContext(t.traced, "agent panicked", t.entry.logged("panic", p, "stack", string(debug.Stack()))...)
		}
	}()

	res, err = t.runner.Run(t.traced, t.task, t.calls)
	if res == nil && err == nil {
		err = errors.New("agent returned neither a result nor an error")
	}
	return res, err
}
