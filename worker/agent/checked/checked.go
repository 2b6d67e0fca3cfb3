// Package checked is a runner around another that believes nothing it made: an
// output whose quotes are not the text, or that cites what its inputs did not, or
// loses without a word what they did, fails its unit, and so does a value that is
// not what its stage is to make.
//
// The orchestrator checks all of this again and believes no worker. An agent that is
// checked here fails its unit at once, where another attempt would come to the same.
//
// It checks the encoded output against the task, and shares nothing with what
// made it but worker/output, worker/refs and worker/ground.
package checked

import (
	"context"
	"errors"
	"fmt"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/unit"
	"github.com/coditect/mapreduce/worker/bibliography"
	"github.com/coditect/mapreduce/worker/ground"
	"github.com/coditect/mapreduce/worker/output"
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
	err = checkOutput(ctx, task, res.Output)
	if errors.Is(err, errUnread) {
		return nil, err // another attempt may read it
	}
	if err != nil {
		return nil, agent.Permanent(fmt.Errorf("the output of %s was refused: %w", task.Unit, err))
	}
	return res, nil
}

func checkOutput(ctx context.Context, task *agent.Task, data []byte) error {
	if task.Kind == mapreduce.KindParse {
		return nil // parsing cites nothing
	}
	if task.StageSpec != nil && task.StageSpec.Output == agent.PassagesChosen {
		return checkPassages(task, data)
	}
	if !task.MakesRecords() {
		return checkValue(task, data)
	}
	switch kind, err := step.Of(task); {
	case err != nil:
		return err
	case kind == step.Merge:
		return checkReduce(task.Inputs, data)
	case task.Text != nil:
		return checkMap(ctx, task, data)
	default:
		return checkDirect(task, data)
	}
}

// checkValue checks a value against the schema of its stage, and its references
// against what the unit was given, be it as referred to.
func checkValue(task *agent.Task, data []byte) error {
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
	return output.CheckValue(given, form, out)
}

// checkPassages checks passages against the text that they were chosen out of.
func checkPassages(task *agent.Task, data []byte) error {
	out, err := output.Decode(data)
	if err != nil {
		return err
	}
	form, err := output.NewForm(task.StageSpec.Schema)
	if err != nil {
		return err
	}
	return output.CheckPassages(textOf(task), labelOf(task.Text), form, out)
}

// textOf returns what a unit read, as citations of it are checked.
func textOf(task *agent.Task) output.Text {
	t := task.Text
	return output.Text{
		Document: string(t.Document), Unit: string(task.Unit), Index: task.Index, Hash: output.HashDocument(string(t.Document), t.SHA256),
		Content: t.Content, ByteOffset: t.ByteOffset, CharOffset: t.CharOffset,
	}
}

// labelOf returns how the document of a text is described.
func labelOf(t *mapreduce.Text) string {
	source := bibliography.FromMetadata(string(t.Document), t.Metadata)
	return source.Label()
}

func checkMap(ctx context.Context, task *agent.Task, data []byte) error {
	out, err := output.Decode(data)
	if err != nil {
		return err
	}
	text := textOf(task)
	if task.Whole == nil || !out.CitesOutside() {
		return output.CheckMap(text, out)
	}
	unread := task.Whole(ctx, func(document *ground.Text) {
		text.Whole = document
		err = output.CheckMap(text, out)
	})
	if unread != nil {
		return fmt.Errorf("%w: %w", errUnread, unread)
	}
	return err
}

// errUnread is why an output was not checked.
var errUnread = errors.New("the document that it cites cannot be read")

func checkDirect(task *agent.Task, data []byte) error {
	out, err := output.Decode(data)
	if err != nil {
		return err
	}
	if len(task.Inputs) != 1 {
		return errors.New("a direct unit has its documents as its one input")
	}
	docs, err := output.DecodeBundle(task.Inputs[0].Data)
	if err != nil {
		return err
	}
	return output.CheckDirect(string(task.Unit), task.Index, docs, out)
}

func checkReduce(inputs []mapreduce.Input, data []byte) error {
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
	return output.CheckReduce(given, out)
}
