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
	"github.com/coditect/mapreduce/api/protocol"
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

	held   protocol.Held
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
func newAttempt(s *session, e *entry, assigned *protocol.Assignment) *attempt {
	c := e.calls
	a := &attempt{
		session: s, entry: e, calls: c, reports: e.reports, held: e.held, job: c.job, ctx: c.ctx,
		task: &agent.Task{Assignment: *assigned, Whole: c.wholeText(assigned.Text), Pictures: c.picturesOf(assigned.Text)},
	}
	if a.job != nil {
		a.task.Spec = a.job.spec
		a.runner, a.misfit = a.chooseRunner(s.cfg.Steps)
	}
	return a
}

// chooseRunner returns the runner of the unit, or an error if this worker has none. It sets
// what the stage of the unit says of it.
func (a *attempt) chooseRunner(steps *step.Registry) (step.Runner, error) {
	if a.task.Kind != mapreduce.KindParse {
		of := a.job.stageOf(a.task.Stage)
		if of.unclear != nil {
			return nil, of.unclear
		}
		if a.task.StageSpec = of.spec; of.spec != nil {
			a.calls.Most, a.calls.talks = of.spec.Tokens, len(of.spec.Tools) > 0
		}
	}

	// Calls of agents with tools are captured whatever the job says, see report.CaptureOf.
	a.calls.Capture = report.CaptureOf(a.job.spec.Capture, a.calls.talks)
	kind, err := steps.KindOf(a.task.Kind, a.task.StageSpec)
	if err != nil {
		return nil, err
	}
	provider := a.job.spec.Provider
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
func (a *attempt) execute() *protocol.Report {
	a.entry.announced.await(a.ctx)
	start := time.Now()
	a.calls.Begin(start)

	// The memory is what fetchLarge has set aside meanwhile, so it is read at the end.
	defer func() { a.session.memory.Release(a.memory) }()

	var end func(*protocol.Report)
	a.traced, end = observe.BeginSpan(a.ctx, a.session.cfg.Tracer, a.session.cfg.Session, a.task)
	run := a.runHere
	if a.entry.apart {
		run = a.runApart
	}

	r := run()
	r.Elapsed = time.Since(start)

	if end != nil {
		end(r)
	}
	return r
}

// refuseRun returns the report of an attempt that cannot begin, or nil.
func (a *attempt) refuseRun() *protocol.Report {
	if err := a.reports.InterruptCause(); err != nil {
		return a.reports.Failed(err)
	}
	if a.runner == nil {
		return a.reports.Failed(agent.PermanentJob(a.misfit))
	}
	if err := a.checkBreakers(); err != nil {
		return a.reports.Failed(err)
	}
	return nil
}

// checkBreakers returns an error while the breakers of all models of the job are open: that of the one
// that is tried again first.
func (a *attempt) checkBreakers() error {
	err := a.job.breaker.CheckOpen()
	if err == nil || len(a.job.spec.Fallbacks) == 0 {
		return err
	}

	// One model that may be called is enough: the call then goes to it.
	for _, name := range a.job.spec.Fallbacks {
		next := a.session.breakers.Of(a.job.spec, name).CheckOpen()
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
func (a *attempt) runHere() *protocol.Report {
	if r := a.refuseRun(); r != nil {
		return r
	}
	fetched, err := a.fetchLarge()
	if err != nil {
		return a.unfetchedReport(err)
	}

	// The agent has the whole time, however long the wait for memory and blobs was.
	if fetched {
		a.entry.restartTime()
	}

	if err := a.openJournal(); err != nil {
		return a.reports.Failed(fmt.Errorf("journal of the unit: %w", err))
	}
	if err := a.openEvidence(); err != nil {
		return a.unfetchedReport(fmt.Errorf("evidence of the unit: %w", err))
	}

	res, err := a.runProtected()
	if err == nil && a.task.Kind != mapreduce.KindParse { // whose output is a text
		res.Output, err = a.calls.AppendCalls(res.Output)
	}

	if err != nil {
		return a.reports.Failed(err)
	}
	return a.reports.Done(res)
}

// runApart runs the attempt in a process of its own.
func (a *attempt) runApart() *protocol.Report {
	if r := a.refuseRun(); r != nil {
		return r
	}

	s, e := a.session, a.entry
	return s.relays.Run(s.cfg.StartApart, &apart.Unit{
		Assignment: a.task.Assignment, Spec: a.job.spec, Reports: a.reports,
		Grace: s.cfg.Grace, Blobs: s.transfers, Manners: s.cfg.Manners, Log: s.cfg.Logger.With(e.logged()...),
		Began: func() { e.extendTime(s.cfg.Grace) },
		Ask:   func() { s.out.queueQuestion(e) },
		Say:   a.calls.Progress,
	})
}

// runProtected runs the agent and makes a panic an error.
func (a *attempt) runProtected() (res *agent.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("agent panicked: %v", p)
			a.session.countPanic()
			a.session.cfg.Logger.ErrorContext(a.traced, "agent panicked", a.entry.logged("panic", p, "stack", string(debug.Stack()))...)
		}
	}()

	res, err = a.runner.Run(a.traced, a.task, a.calls)
	if res == nil && err == nil {
		err = errors.New("agent returned neither a result nor an error")
	}
	return res, err
}
