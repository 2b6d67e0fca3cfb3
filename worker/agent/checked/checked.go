// Package checked is a runner around another that believes nothing it made: an
// output whose quotes are not the text, or that cites what its inputs did not, or
// loses without a word what they did, fails its unit, and so does a value that is
// not what its stage is to make.
//
// The orchestrator checks all of this again and believes no worker. An agent that is
// checked here fails its unit at once, where another attempt would come to the same.
//
// It checks the encoded output against the task, and shares nothing with what made it but
// internal/outcome/output, internal/text/ground and the reading of inputs in worker/agent/unit.
package checked

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/internal/outcome/output/jsonvalue"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/unit"
	"github.com/coditect/mapreduce/worker/step"
)

// A runner runs another one and checks its outputs. It is as safe for concurrent
// use as that one.
type runner struct{ of step.Runner }

// New returns a runner that checks what another makes.
func New(of step.Runner) step.Runner { return &runner{of} }

// Run implements step.Runner. A breach is permanent for the unit: whoever made
// it would make it again.
func (r *runner) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	res, err := r.of.Run(ctx, task, calls)
	if err != nil || res == nil {
		return res, err
	}

	c := &checker{ctx: ctx, task: task}
	if len(toolsOf(task)) > 0 {
		c.keeper = calls
	}

	// Where evidence could not be read, other faults say nothing of the output.
	if err = c.checkOutput(res.Output); c.unread != nil {
		err = c.unread
	}
	if errors.Is(err, errUnread) {
		return nil, err // another attempt may read it
	}

	if err != nil {
		return nil, agent.Permanent(fmt.Errorf("the output of %s was refused: %w", task.Unit, err))
	}
	return res, nil
}

// toolsOf returns the tools that a unit may use.
func toolsOf(task *agent.Task) []string {
	if task.StageSpec == nil {
		return nil
	}
	return task.StageSpec.Tools
}

// A checker checks the output of one attempt.
type checker struct {
	ctx    context.Context
	task   *agent.Task
	keeper agent.EvidenceKeeper // nil if the unit can have no evidence
	unread error                // why evidence was not checked; it wraps errUnread
}

// evidence finds evidence of the unit; it is nil if the unit can have none.
func (c *checker) evidence() output.EvidenceFinder {
	if c.keeper == nil {
		return nil
	}
	return func(document string) *output.Evidence {
		all := c.keeper.Evidence()
		i := slices.IndexFunc(all, func(e mapreduce.Evidence) bool { return string(e.Document) == document && !e.IsPicture() })
		if i < 0 {
			return nil
		}
		text, err := c.keeper.EvidenceText(c.ctx, all[i].Document)
		if err != nil {
			c.unread = fmt.Errorf("%w: %w", errUnread, err)
			return nil
		}
		return output.EvidenceOf(&all[i], text)
	}
}

// bundled returns the documents of a unit that works on several.
func (c *checker) bundled() ([]payload.Document, error) {
	if len(c.task.Inputs) != 1 {
		return nil, errors.New("a direct unit has its documents as its one input")
	}
	return payload.DecodeDocuments(c.task.Inputs[0].Data)
}

// texts returns the texts that the unit may cite, of what it read and of its evidence.
func (c *checker) texts() (check.Texts, error) {
	switch task := c.task; {
	case task.Text != nil:
		return check.MapTexts(textOf(task), c.evidence()), nil
	case task.StageSpec.Documents:
		docs, err := c.bundled()
		return check.BundleTexts(string(task.Unit), docs, c.evidence()), err
	}
	return check.BundleTexts(string(c.task.Unit), nil, c.evidence()), nil
}

// checkOutput checks an encoded output by the kind of the unit that made it.
func (c *checker) checkOutput(data []byte) error {
	task := c.task
	if task.Kind == mapreduce.KindParse {
		return nil // parsing cites nothing
	}
	if task.StageSpec != nil && task.StageSpec.Output == agent.PassagesChosen {
		return c.checkPassages(data)
	}
	if !task.MakesRecords() {
		return c.checkValue(data)
	}

	switch {
	case task.Text != nil:
		return c.checkMap(data)
	case task.StageSpec == nil && task.Kind == mapreduce.KindDirect, task.StageSpec != nil && task.StageSpec.Documents:
		return c.checkDirect(data)
	}
	return checkReduce(task.Inputs, data)
}

// checkValue checks a value against the schema of its stage, and its references
// against what the unit was given, be it as referred to.
func (c *checker) checkValue(data []byte) error {
	task := c.task
	out, err := output.Decode(data)
	if err != nil {
		return err
	}

	form, err := unit.Form(task)
	if err != nil {
		return err
	}

	var given []*output.Output
	if !task.StageSpec.Documents {
		if given, _, err = unit.Given(task); err != nil {
			return err
		}
	}

	// A unit with evidence may cite that beside what it was given.
	var own check.Texts
	if c.keeper != nil {
		if own, err = c.texts(); err != nil {
			return err
		}
	}

	return check.Value(given, own, form, out)
}

// checkPassages checks passages against the texts that they were chosen out of.
func (c *checker) checkPassages(data []byte) error {
	out, err := output.Decode(data)
	if err != nil {
		return err
	}

	form, err := jsonvalue.NewForm(c.task.StageSpec.Schema)
	if err != nil {
		return err
	}

	texts, err := c.texts()
	if err != nil {
		return err
	}
	return check.Passages(string(c.task.Unit), texts, form, out)
}

// textOf returns what a unit read, as citations of it are checked.
func textOf(task *agent.Task) check.Text {
	t := task.Text
	return check.Text{
		Document: string(t.Document), Unit: string(task.Unit), Index: task.Index, Hash: output.HashDocument(string(t.Document), t.SHA256),
		Content: t.Content, ByteOffset: t.ByteOffset, CharOffset: t.CharOffset, Metadata: t.Metadata,
	}
}

// checkMap checks the output of a map unit. The whole document is got only for an output
// that cites it beyond the chunk.
func (c *checker) checkMap(data []byte) error {
	task := c.task
	out, err := output.Decode(data)
	if err != nil {
		return err
	}

	text := textOf(task)
	if task.Whole == nil || !out.CitesOutside() {
		return check.Map(text, c.evidence(), out)
	}

	unread := task.Whole(c.ctx, func(document *ground.Text) {
		text.Whole = document
		err = check.Map(text, c.evidence(), out)
	})
	if unread != nil {
		return fmt.Errorf("%w: %w", errUnread, unread)
	}
	return err
}

// errUnread is why an output was not checked.
var errUnread = errors.New("the document that it cites cannot be read")

// checkDirect checks the output of a unit that works on all documents.
func (c *checker) checkDirect(data []byte) error {
	out, err := output.Decode(data)
	if err != nil {
		return err
	}
	docs, err := c.bundled()
	if err != nil {
		return err
	}
	return check.Direct(string(c.task.Unit), c.task.Index, docs, c.evidence(), out)
}

// checkReduce checks an output against those that it was merged from.
func checkReduce(inputs []protocol.Input, data []byte) error {
	out, err := output.Decode(data)
	if err != nil {
		return err
	}

	var given []*output.Output
	for _, in := range inputs {
		if in.Failed {
			continue
		}
		one, err := output.Decode(in.Data)
		if err != nil {
			return fmt.Errorf("output of %s: %w", in.Unit, err)
		}
		given = append(given, one)
	}
	return check.Reduce(given, out)
}
