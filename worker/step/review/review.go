// Package review has the units of a stage wait whose values a person is to decide about: a runner
// around those that find records in documents. It keeps what was found in the journal of the unit, and
// parks the unit. The call that wakes it says what was decided, and the output has it before it is
// reported.
//
// What always holds:
//
//  1. A unit with a value that waits is not reported as done before somebody has decided about each such
//     value. The orchestrator sees to that as well, and believes no worker.
//  2. What was found is asked for once: an attempt after a decision, or after a death while the unit waits,
//     takes it from the journal.
//
// Which values wait, and what decisions come to, package gate says. The package imports no runner.
package review

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline/waiting"
	"github.com/coditect/mapreduce/api/plural"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/gate"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/step"
)

// Add puts reviews before the steps of all providers of a registry that find records in documents: a
// unit whose stage has none is run as before.
func Add(all *step.Registry) {
	for _, name := range all.Names() {
		for _, kind := range []step.Kind{step.Extract, step.Agent} {
			if run, ok := all.Lookup(kind, name); ok {
				all.Register(step.Step{Kind: kind, Provider: name}, New(run))
			}
		}
	}
}

// New returns a runner that has the units of another one wait where their stage says so.
func New(of step.Runner) step.Runner { return &runner{of} }

// A runner has the units of another one wait.
type runner struct{ of step.Runner }

// Run implements step.Runner.
func (r *runner) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	if task.StageSpec == nil || !task.StageSpec.Review.IsSet() || task.Kind != mapreduce.KindMap {
		return r.of.Run(ctx, task, calls)
	}

	s, err := schema.Shared(task.RecordSchema())
	if err != nil {
		return nil, agent.PermanentJob(err)
	}
	u := &unit{task: task, calls: calls, schema: s}

	if woken := task.WakeCall; woken != nil && gate.IsHandle(woken.Handle) {
		if kept, ok := calls.Recall(woken.Handle); ok {
			return u.decided(kept)
		}
		// What the call was about is gone, and so are its decisions.
		own := *task
		own.WakeCall = nil
		task = &own
	}

	res, err := r.of.Run(ctx, task, calls)
	if err != nil {
		return nil, err
	}
	return u.found(ctx, res)
}

// A unit is one attempt at a unit that may wait.
type unit struct {
	task   *agent.Task
	calls  agent.Calls
	schema *schema.Schema
}

// asks returns the values of an output that wait for a person.
func (u *unit) asks(out *output.Output) []mapreduce.WaitingValue {
	seed := gate.Seed(u.task.Job, u.task.Spec.Replay)
	return gate.Asks(u.schema, u.task.StageSpec.Review.Reasons(), seed, out)
}

// found ends the unit with what was found if none of it waits; else it keeps that, and the unit waits.
func (u *unit) found(ctx context.Context, res *agent.Result) (*agent.Result, error) {
	out, err := output.Decode(res.Output)
	if err != nil {
		return nil, agent.Permanent(err)
	}
	asks := u.asks(out)
	if len(asks) == 0 {
		return res, nil
	}

	h := gate.Held{Output: res.Output, Errors: res.Errors, Confidence: res.Confidence}
	kept, err := h.Encode()
	if err != nil {
		return nil, agent.Permanent(err)
	}
	handle := gate.Handle(res.Output)
	if _, err := u.calls.Do(ctx, handle, func(context.Context) ([]byte, error) { return kept, nil }); err != nil {
		return nil, err
	}

	// What does not fit into the journal would be found, and paid for, again.
	if _, ok := u.calls.Recall(handle); !ok {
		return nil, agent.Permanent(fmt.Errorf("%s to be decided by a person, and the output of %d bytes is too large to be kept meanwhile: make units smaller with --unit-tokens, or review the result when the job is complete",
			plural.Count(len(asks), "value"), len(res.Output)))
	}
	return nil, u.wait(handle, asks)
}

// wait is the error with which the unit waits for decisions about some values.
func (u *unit) wait(handle string, asks []mapreduce.WaitingValue) error {
	var fields []string
	for _, a := range asks {
		if !slices.Contains(fields, a.Field) {
			fields = append(fields, a.Field)
		}
	}

	review := u.task.StageSpec.Review
	end := ""
	switch review.Then {
	case waiting.Accept:
		end = " within " + review.Within + ", or as found"
	case waiting.Fail:
		end = " within " + review.Within + ", or the unit fails"
	}

	return agent.Park(handle, review.Time(), fmt.Sprintf("%s to be decided by a person (%s)%s: %s",
		plural.Count(len(asks), "value"), review.Role(), end, strings.Join(fields, ", ")))
}

// overdue is the error of a unit about whose values nobody has decided in time.
func (u *unit) overdue(open []mapreduce.WaitingValue) error {
	return agent.Permanent(fmt.Errorf("nobody has decided about %s, the first of them %s of record %s, within %s (--review-within): resume the job to have the unit wait again",
		plural.Count(len(open), "value"), open[0].Field, open[0].Record, u.task.StageSpec.Review.Within))
}

// decided ends the unit with what was found as people have decided about it. Where an answer leaves a
// value open, the unit waits again; if the time for that is over, its stage says what becomes of the value.
func (u *unit) decided(kept []byte) (*agent.Result, error) {
	h, err := gate.DecodeHeld(kept)
	if err != nil {
		return nil, agent.Permanent(err)
	}
	out, err := output.Decode(h.Output)
	if err != nil {
		return nil, agent.Permanent(err)
	}

	answer, err := gate.DecodeAnswer(u.task.WakeCall.Answer)
	if err != nil {
		answer = new(gate.Answer) // of somebody who has decided nothing
	}
	open := gate.Open(u.asks(out), answer.Decided)
	switch then := u.task.StageSpec.Review.Then; {
	case len(open) == 0 || answer.Over && then == waiting.Accept:
	case answer.Over && then == waiting.Fail:
		return nil, u.overdue(open)
	default:
		return nil, u.wait(u.task.WakeCall.Handle, open)
	}

	if out, err = gate.Apply(u.schema, out, answer.Decided); err != nil {
		return nil, agent.Permanent(err)
	}
	encoded, err := out.Encode()
	if err != nil {
		return nil, agent.Permanent(err)
	}
	return &agent.Result{Output: encoded, Size: token.Unknown, Text: out.Text(), Confidence: h.Confidence, Errors: h.Errors}, nil
}
