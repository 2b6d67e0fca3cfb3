package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/journal"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/evidence"
	"github.com/coditect/mapreduce/worker/step"
)

// A phase is the state of an attempt within the session.
type phase uint8

const (
	waiting  phase = iota // for a slot
	running               // its agent runs
	reported              // its report waits for a verdict
	dropped               // nobody waits for it; its agent may run yet
)

// A unit is one attempt at a unit, from its assignment to its verdict. It is
// the agent.Calls of its agent.
type unit struct {
	session *session
	id      unitKey
	attempt int
	job     *job        // as it was introduced before the assignment
	runner  step.Runner // nil if this worker has none; misfit says why
	misfit  error

	announced *announcement // that it runs; nil if it need not be announced

	// Set before the agent runs. The goroutine of the slot clears task.
	task   *agent.Task
	ctx    context.Context // the attempt's own: made and ended with it
	cancel context.CancelCauseFunc
	limit  time.Duration   // from its start
	traced context.Context // ctx with the span of the attempt; nil if that is not traced. Of the slot's goroutine
	talks  bool            // its stage has tools: what it says of itself is told soon, not with signs of life alone
	memory int64           // bytes set aside for what was fetched; used by the slot's goroutine

	account  // of tokens, calls and notes
	recorder // of calls, for the trace

	*evidence.Shelf        // set before the agent runs
	evidenceList    []byte // as it was fetched, until the shelf has it

	// Guarded by session.mu.
	phase       phase
	weight      int  // slots it takes
	apart       bool // it runs in a process of its own
	timer       *time.Timer
	interrupted bool              // ctx has ended before the agent returned
	paused      bool              // its time stands still: it waits for its turn at the processor
	abandoned   bool              // the agent did not return in time; its slots are given away
	report      *mapreduce.Report // nil until the attempt has ended
	number      uint64            // orders reports
	puts        int               // under way, which the report waits for
	putting     context.Context
	stopPuts    context.CancelCauseFunc // ends putting; nil if nothing was put
	journal     *journal.Journal        // nil before its agent is started; set by the slot's goroutine
	sending     bool                    // entries of the journal are being put
	sendUpTo    int                     // entries that are to be
}

var _ agent.Calls = (*unit)(nil)

func (u *unit) heldState() mapreduce.Held {
	return mapreduce.Held{Job: u.id.job, Unit: u.id.unit, Attempt: u.attempt, Running: u.phase >= running}
}

// attemptHeld names the attempt. It needs no lock.
func (u *unit) attemptHeld() mapreduce.Held {
	return mapreduce.Held{Job: u.id.job, Unit: u.id.unit, Attempt: u.attempt}
}

func compareHeld(a, b mapreduce.Held) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Attempt, b.Attempt))
}

// chooseRunner returns the runner of the unit, or an error if this worker has none. It sets
// what the stage of the unit says of it. The session's mu is held.
func (u *unit) chooseRunner(steps *step.Registry) (step.Runner, error) {
	if u.task.Kind != mapreduce.KindParse {
		of := u.job.stageOf(u.task.Stage)
		if of.unclear != nil {
			return nil, of.unclear
		}
		if u.task.StageSpec = of.spec; of.spec != nil {
			u.most, u.talks = of.spec.Tokens, len(of.spec.Tools) > 0
		}
	}

	// Calls of agents with tools are captured whatever the job says, see captureOf.
	u.captures = captureOf(u.job.spec.Capture, u.talks)
	kind, err := steps.KindOf(u.task.Kind, u.task.StageSpec)
	if err != nil {
		return nil, err
	}
	provider := u.job.spec.Provider
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

// A deadlineError is why the context of an attempt ends that takes too long.
type deadlineError struct{ after time.Duration }

func (e *deadlineError) Error() string { return fmt.Sprintf("deadline exceeded after %v", e.after) }

// Is makes a deadlineError a context.DeadlineExceeded, for agents that look at
// the cause.
func (e *deadlineError) Is(target error) bool { return target == context.DeadlineExceeded }

// executeAttempt runs the attempt and returns its report.
func (u *unit) executeAttempt() *mapreduce.Report {
	u.announced.await(u.ctx)
	start := time.Now()
	u.begin(start)

	// The memory is what fetchLarge has set aside meanwhile, so it is read at the end.
	defer func() { u.session.memory.Release(u.memory) }()

	end := u.beginSpan()
	run := u.runAttempt
	if u.apart {
		run = u.runApart
	}

	r := run()
	r.Elapsed = time.Since(start)

	if end != nil {
		end(r)
	}
	return r
}

// refuseRun returns the report of an attempt that cannot begin, or nil.
func (u *unit) refuseRun() *mapreduce.Report {
	if err := u.interruptCause(); err != nil {
		return u.failedReport(err)
	}
	if u.runner == nil {
		return u.failedReport(agent.PermanentJob(u.misfit))
	}
	if err := u.checkBreakers(); err != nil {
		return u.failedReport(err)
	}
	return nil
}

// checkBreakers returns an error while the breakers of all models of the job are open: that of the one
// that is tried again first.
func (u *unit) checkBreakers() error {
	err := u.job.breaker.CheckOpen()
	if err == nil || len(u.job.spec.Fallbacks) == 0 {
		return err
	}

	// One model that may be called is enough: the call then goes to it.
	for _, name := range u.job.spec.Fallbacks {
		next := u.session.breakers.Of(u.job.spec, name).CheckOpen()
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

func (u *unit) runAttempt() *mapreduce.Report {
	if r := u.refuseRun(); r != nil {
		return r
	}
	fetched, err := u.fetchLarge()
	if err != nil {
		return u.unfetchedReport(err)
	}

	// The agent has the whole time, however long the wait for memory and blobs was.
	if fetched {
		u.session.restartTimeout(u)
	}

	if err := u.openJournal(); err != nil {
		return u.failedReport(fmt.Errorf("journal of the unit: %w", err))
	}
	if err := u.openEvidence(); err != nil {
		return u.unfetchedReport(fmt.Errorf("evidence of the unit: %w", err))
	}

	kind := u.task.Kind
	res, err := u.runProtected()
	if err == nil && kind != mapreduce.KindParse { // whose output is a text
		res.Output, err = u.appendCalls(res.Output)
	}

	if err != nil {
		return u.failedReport(err)
	}
	return u.doneReport(res)
}

// runProtected runs the agent and makes a panic an error.
func (u *unit) runProtected() (res *agent.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("agent panicked: %v", p)
			u.session.countPanic()
			u.session.cfg.Logger.ErrorContext(u.runContext(), "agent panicked", "job", u.id.job, "unit", u.id.unit,
				"attempt", u.attempt, "panic", p, "stack", string(debug.Stack()))
		}
	}()

	res, err = u.runner.Run(u.runContext(), u.task, u)
	if res == nil && err == nil {
		err = errors.New("agent returned neither a result nor an error")
	}
	return res, err
}

// withDefaults returns spec with the defaults of the fields that a worker uses.
func withDefaults(spec mapreduce.JobSpec) mapreduce.JobSpec {
	spec.Provider = cmp.Or(spec.Provider, mapreduce.DefaultProvider)
	spec.UnitTimeout = cmp.Or(spec.UnitTimeout, mapreduce.DefaultUnitTimeout)
	spec.BreakerThreshold = cmp.Or(spec.BreakerThreshold, mapreduce.DefaultBreakerThreshold)
	spec.BreakerTimeout = cmp.Or(spec.BreakerTimeout, mapreduce.DefaultBreakerTimeout)
	return spec
}
