// Package steps has the steps that ask models. They extract records from documents according to
// a schema, each value with quotes that are then looked for in the text; they merge outputs
// where the schema leaves open how; they write values by what they read; and a Conversation is a
// unit whose turns another package leads.
//
// Nothing that a model says is believed: its answers are checked against the schema, its quotes
// against the document, its references against those that it was given. Documents are data, and
// stand between marks that they cannot write. How a model is asked is in package model.
package steps

import (
	"context"
	"errors"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/step"
)

// A runner runs the units of one step.
type runner struct {
	agent *model.Agent
	run   func(*attempt, context.Context) (*agent.Result, error)
}

// Run implements step.Runner.
func (r *runner) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p, err := r.agent.ProgramOf(task.Spec, task.StageSpec)
	if err != nil {
		return nil, agent.PermanentJob(err)
	}
	res, err := r.run(&attempt{r.agent.BeginSession(p, task, calls)}, ctx)
	err = r.judgeMisfit(ctx, task, calls, err)
	return res, llm.ForAgent(model.AdviseError(p, err))
}

// judgeMisfit returns the error of an attempt whose answers could not be read: the unit is tried
// once more, and no more.
func (r *runner) judgeMisfit(ctx context.Context, task *agent.Task, calls agent.Calls, err error) error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Kind != llm.Mismatch || ctx.Err() != nil {
		return err
	}

	if stop := r.agent.NoteMisfit(task, e); stop != nil {
		return stop
	}

	again, noted := model.NoteMisfit(ctx, calls)
	if noted != nil {
		return errors.Join(err, noted)
	}

	if !again {
		e.Class = protocol.PermanentUnit
	}
	return err
}

// extractAny finds the records of one text, or of all documents that the unit has.
func (s *attempt) extractAny(ctx context.Context) (*agent.Result, error) {
	if s.Task.Text == nil {
		return s.runDirect(ctx)
	}
	return s.runExtract(ctx)
}

// mergeAny merges records, or values.
func (s *attempt) mergeAny(ctx context.Context) (*agent.Result, error) {
	if !s.Task.MakesRecords() {
		return s.mergeValues(ctx)
	}
	return s.runReduce(ctx)
}

// Of returns the steps of an agent's provider: extract, merge and write.
func Of(a *model.Agent) step.Table {
	return step.Table{
		step.Extract: &runner{a, (*attempt).extractAny},
		step.Merge:   &runner{a, (*attempt).mergeAny},
		step.Write:   &runner{a, (*attempt).writeValue},
	}
}

// An attempt is one at a unit, whose model its session asks.
type attempt struct {
	*model.Session
}
