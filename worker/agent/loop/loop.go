// Package loop runs the units of stages with tools: a model is asked, the tools that it
// calls in one turn are called at once, their answers go back in one message, and so on,
// until it gives its final answer in the form of the stage.
//
// These always hold:
//
//  1. A tool that the stage does not list is not called, whatever a model, a page or a tool
//     says. Such a call is refused, and the trace shows it.
//  2. What a tool brings is data, stands between marks that it cannot write, and is evidence
//     of the unit before the model sees it. Nothing of an answer is kept that rests on a
//     quote which does not stand in evidence, or in what the unit was given.
//  3. A tool that fails is a result that says so, and the rest goes on.
//  4. Turns and calls are remembered in the journal of the unit. The next attempt, on any
//     worker, asks for none of them again that was stored; a call that changes something is
//     never made twice, and the model reads of one that was interrupted as an error.
//  5. The conversation stays within its limits. What tools brought is left out first, the
//     oldest before, with a line that says what and how to read it again; the task never is.
//     At the last turn, or when calls, tokens or time run out, the model is asked for its
//     answer by what there is.
//
// Package model asks the models, and toolbox calls the tools.
package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/agent/model/steps"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/step"
	"github.com/coditect/mapreduce/worker/tool/toolbox"
)

// A runner runs units by the models of one provider and the tools of this worker.
type runner struct {
	models *model.Agent
	tools  func() *toolbox.Box
}

// New returns the step of agents with tools. Tools returns those of this worker, which may
// be opened after New, and before the first unit; nil is none.
func New(models *model.Agent, tools func() *toolbox.Box) step.Runner { return &runner{models, tools} }

// Run implements step.Runner.
func (r *runner) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	if task.StageSpec == nil {
		return nil, agent.PermanentJob(errors.New("agents with tools need a stage"))
	}

	talk, err := steps.Converse(r.models, task, calls)
	if err != nil {
		return nil, err
	}
	form, err := newForm(task, talk)
	if err != nil {
		return nil, err
	}

	tools, err := r.tools().Open(ctx, talk.Tools)
	if err != nil {
		return nil, agent.PermanentJob(err)
	}
	defer tools.Close()

	c := &conversation{
		task: task, calls: calls, talk: talk, tools: tools, form: form,
		limits: limitsOf(task), began: time.Now(), dropped: make(map[place]bool),
	}
	c.begin()
	return c.run(ctx)
}

// limits are those of one unit.
type limits struct {
	turns, calls int64
	tokens       int64         // 0 is no limit
	time         time.Duration // of an attempt; 0 is no limit
}

func limitsOf(task *agent.Task) limits {
	l := limits{turns: task.StageSpec.Turns, calls: task.StageSpec.ToolCalls, tokens: task.StageSpec.Tokens}

	if l.turns == 0 {
		l.turns = agent.DefaultTurns
	}
	if l.calls == 0 {
		l.calls = agent.DefaultToolCalls
	}
	if task.Spec != nil {
		l.time = task.Spec.UnitTimeout
	}

	return l
}

// A conversation is one attempt at a unit.
type conversation struct {
	task   *agent.Task
	calls  agent.Calls
	talk   *steps.Conversation
	tools  *toolbox.Session
	form   *answerForm
	limits limits
	began  time.Time

	system  string
	offered []llm.Tool
	said    []llm.Message
	dropped map[place]bool // results that are left out of said
	turns   int64          // that the model took
	made    int64          // calls of tools
	used    int64          // tokens of all turns, those of earlier attempts too
	last    string         // why this is the last turn; empty if it is not
}

// A place names a part of a message.
type place struct{ message, part int }

// begin sets instructions, tools and the first message.
func (c *conversation) begin() {
	for _, spec := range c.tools.Specs() {
		c.offered = append(c.offered, llm.Tool{Name: spec.Name, Description: spec.Description, Schema: c.tools.Schema(spec.Name)})
	}
	c.offered = append(c.offered, rereadTool())
	c.system = c.modelInstructions()
	c.said = []llm.Message{llm.Say(llm.User, c.talk.Opening+c.form.opening)}
}

// run leads the conversation to its end.
func (c *conversation) run(ctx context.Context) (*agent.Result, error) {
	for {
		c.checkLimits()
		res, err := c.takeTurn(ctx)
		if err != nil {
			return nil, err
		}

		wanted := slices.DeleteFunc(res.Calls(), func(call *llm.ToolCall) bool { return call.Name == llm.AnswerTool })
		if len(wanted) == 0 || c.last != "" {
			return c.finish(ctx, res)
		}

		// Each call gets a result, also that of a final answer beside others.
		results, err := c.callTools(ctx, res.Calls())
		if err != nil {
			return nil, err
		}
		c.said = append(c.said, llm.Message{Role: llm.Assistant, Parts: res.Parts}, llm.Message{Role: llm.User, Parts: results})
	}
}

// timeShare is the part of the time of a unit after which its agent is asked for an answer.
const timeShare = 0.8

// checkLimits makes the next turn the last one, if a limit wants that.
func (c *conversation) checkLimits() {
	switch l := c.limits; {
	case c.turns+1 >= l.turns:
		c.last = fmt.Sprintf("limits.turns allows %d", l.turns)
	case c.made >= l.calls:
		c.last = fmt.Sprintf("limits.tool_calls allows %d, and all were made", l.calls)
	case l.tokens > 0 && c.used+2*c.talk.Worst(c.request()) > l.tokens:
		c.last = fmt.Sprintf("limits.tokens allows %d, and %d are spent", l.tokens, c.used)
	case l.time > 0 && time.Since(c.began) > time.Duration(timeShare*float64(l.time)):
		c.last = fmt.Sprintf("limits.time allows %v", l.time)
	default:
		return
	}

	c.say("This is your last turn, as " + c.last + ". Call no more tools, and give the final answer now by what you have.")
}

// say adds a text to the user's message that stands last.
func (c *conversation) say(text string) {
	m := &c.said[len(c.said)-1]
	m.Parts = append(slices.Clip(m.Parts), llm.Part{Text: text})
}

// request returns the request for the next turn.
func (c *conversation) request() *llm.Request {
	said := slices.Clone(c.said)
	end := &said[len(said)-1]
	end.Parts = slices.Clone(end.Parts)
	end.Parts[len(end.Parts)-1].Cache = llm.FiveMinutes // the next turn begins with all of this
	req := c.talk.NewRequest(c.system, said)
	req.Tools, req.Schema, req.NoCalls = c.offered, c.form.schema, c.last != ""
	req.Trace.Turn = int(c.turns + 1)
	return req
}

// takeTurn asks the model for its next turn, by less of what tools brought if all of it is
// too much.
func (c *conversation) takeTurn(ctx context.Context) (*llm.Response, error) {
	c.fit(1)
	for {
		c.progress(c.turns+1, "%s thinks", c.talk.NewRequest("", nil).Model)
		req := c.request()
		res, err := c.talk.Ask(ctx, req)

		if e, ok := errors.AsType[*llm.Error](err); ok && e.Kind == llm.TooLarge && c.dropHalf() {
			continue
		}
		if err != nil {
			return nil, err
		}

		c.turns++
		c.used += res.Asked.Total()
		return res, nil
	}
}

// progress tells people what the agent does in a turn.
func (c *conversation) progress(turn int64, format string, args ...any) {
	c.calls.Progress(fmt.Sprintf("turn %d of %d: ", turn, c.limits.turns) + fmt.Sprintf(format, args...))
}

// finish makes the final answer the output of the unit. An answer that does not do is sent
// back once.
func (c *conversation) finish(ctx context.Context, res *llm.Response) (*agent.Result, error) {
	out, faults, err := c.accept(ctx, res)
	if err != nil {
		return nil, err
	}

	if len(faults) == 0 {
		return out, nil
	}

	c.said = append(c.said, llm.Message{Role: llm.Assistant, Parts: res.Parts}, c.complaintAbout(res, faults))
	c.last = "the answer is to be mended"
	again, err := c.takeTurn(ctx)
	if err != nil {
		return nil, err
	}

	mended, left, err := c.accept(ctx, again)
	switch {
	case err != nil:
		return nil, err
	case mended == nil && out != nil: // the first did better
		mended, left = out, faults
	case mended == nil:
		return nil, c.unfitError(ctx, left)
	}

	mended.Errors = append(mended.Errors, left...)
	return mended, nil
}

// complaintAbout tells the model what is wrong with its answer. Every call of a tool gets a
// result.
func (c *conversation) complaintAbout(res *llm.Response, faults []string) llm.Message {
	text := "That cannot be taken as it is:\n- " + strings.Join(faults[:min(len(faults), maxFaults)], "\n- ") +
		"\nGive the whole answer again, with these faults mended and nothing else changed. Leave out what no quote shows."
	if n := c.refusedBefore(); n > 0 { // another answer than that attempt was given
		text += fmt.Sprintf(" Answers like it were refused %d times.", n)
	}

	m := llm.Message{Role: llm.User}
	for _, call := range res.Calls() {
		m.Parts = append(m.Parts, llm.Part{Result: &llm.ToolResult{ID: call.ID, Name: call.Name, Text: "No tool is called any more.", Error: true}})
	}
	m.Parts = append(m.Parts, llm.Part{Text: text})
	return m
}

// maxFaults bounds the faults in one message to a model.
const maxFaults = 20

// unfitKey is the key of the nth time that the last answer of a unit did not do.
func unfitKey(n int) string { return fmt.Sprintf("unfit %d", n) }

// refusedBefore returns how often attempts have failed for their answer.
func (c *conversation) refusedBefore() (n int) {
	for {
		if _, ok := c.calls.Recall(unfitKey(n)); !ok {
			return n
		}
		n++
	}
}

// unfitError returns the error of an answer that does not do. The next attempt asks for another
// one, and for nothing else again.
func (c *conversation) unfitError(ctx context.Context, faults []string) error {
	_, err := c.calls.Do(ctx, unfitKey(c.refusedBefore()), func(context.Context) ([]byte, error) { return []byte("{}"), nil })
	return errors.Join(llm.ForAgent(llm.NewError(llm.Mismatch, "the final answer does not do: %s", shorten.Line(strings.Join(faults, "; "), 600))), err)
}
