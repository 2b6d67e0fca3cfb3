package steps

import (
	"context"

	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/llm"
)

// A Conversation is a unit of a stage with tools and its model. Another package leads it,
// turn by turn; the calls of the model are paid, watched over, repeated and remembered here.
type Conversation struct {
	s *model.Session

	Role    string           // instructions of the agent and its task, the same for all units of the stage
	Opening string           // what the unit is to do, and what it is given, between marks
	Given   []*output.Output // what the unit read, whose citations it may pass on
	Issued  *output.Issued   // names of these citations, as the Opening has them
	Tools   []string         // names of the tools that the unit may use: its agent's own, or the stage's
}

// Converse returns the conversation of a unit.
func Converse(a *model.Agent, task *agent.Task, calls agent.Calls) (*Conversation, error) {
	p, err := a.ProgramOf(task.Spec, task.StageSpec)
	if err != nil {
		return nil, agent.PermanentJob(err)
	}

	own, err := ownAgentOf(a, p, task)
	if err != nil {
		return nil, agent.PermanentJob(err)
	}

	w := &writeRun{attempt: &attempt{a.BeginSession(own.program, task, calls)}}
	if err := w.readInputs(); err != nil {
		return nil, err
	}

	req, err := w.valueRequest()
	if err != nil {
		return nil, err
	}

	return &Conversation{s: w.Session, Role: p.Role, Opening: req.Messages[0].Parts[0].Text, Given: w.allInputs(), Issued: w.issued, Tools: own.tools}, nil
}

// An ownAgent is what a unit is given of its agent's own.
type ownAgent struct {
	program *model.Program // which asks the agent's model
	tools   []string
}

// ownAgentOf returns what the agent of a unit has of its own, in a stage with several agents.
func ownAgentOf(a *model.Agent, p *model.Program, task *agent.Task) (ownAgent, error) {
	own := ownAgent{p, task.StageSpec.Tools}
	if p.Mapping.Each != pipeline.EachAgent {
		return own, nil
	}

	by := p.Pipeline.Agents[model.ItemOf(task.Item)[0].Metadata["agent"]]
	if by == nil {
		return own, nil // which is an error elsewhere
	}

	if len(by.Tools) > 0 {
		own.tools = by.Tools
	}

	names, err := task.Spec.StageModels(by.Model)
	if err != nil || len(names) == 0 {
		return own, err
	}

	// The agent's models make a program of their own, without changing the spec of the job.
	spec := *task.Spec
	if err := spec.SetModels(names); err != nil {
		return own, err
	}

	own.program, err = a.ProgramOf(&spec, task.StageSpec)
	return own, err
}

// NewRequest returns a request for the next turn, of instructions and messages.
func (c *Conversation) NewRequest(system string, said []llm.Message) *llm.Request {
	return &llm.Request{Model: c.s.Model, System: system, Messages: said, MaxTokens: c.s.MaxAnswer, Cache: llm.FiveMinutes}
}

// Ask asks for a turn. It returns a response that is whole; what the model says in it, and
// which tools it calls how, is not checked. An error is as agents report it.
func (c *Conversation) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	res, err := c.s.CompleteRequest(ctx, req)
	return res, llm.ForAgent(model.AdviseError(c.s.Program, err))
}

// Fill returns how full the context is with a request: 1 is as full as the stage, or the
// window of the model, allows.
func (c *Conversation) Fill(req *llm.Request) float64 {
	req = c.s.Agent.WithForm(c.s.Program, req)
	fill := 0.0
	if most := c.s.MostContext(); most > 0 {
		fill = float64(model.RequestBytes(req)) / float64(most)
	}
	if c.s.Narrowest > 0 {
		fill = max(fill, float64(req.Prompt+c.s.Bound)/float64(c.s.Narrowest))
	}
	return fill
}

// Worst returns the most tokens that a request may take, in and out, whichever model answers.
func (c *Conversation) Worst(req *llm.Request) int64 {
	return c.s.Agent.Sizes.Worst(c.s.Agent.WithForm(c.s.Program, req)) + c.s.Most
}

// Dialect returns the dialect of the schemas that the provider takes.
func (c *Conversation) Dialect() llm.Dialect { return c.s.Vendor.Can().Dialect }
