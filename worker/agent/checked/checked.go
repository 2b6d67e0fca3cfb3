// Package checked is an agent around another that believes nothing it made: an
// output whose quotes are not the text, or that cites what its inputs did not,
// or loses without a word what they did, fails its unit.
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
	"github.com/coditect/mapreduce/worker/ground"
	"github.com/coditect/mapreduce/worker/output"
)

// An Agent runs another one and checks its outputs. It is as safe for concurrent
// use as that one.
type Agent struct {
	agent agent.Agent
}

var _ agent.Agent = (*Agent)(nil)

// New returns an agent that checks what a makes.
func New(a agent.Agent) *Agent { return &Agent{a} }

// Run implements agent.Agent. A breach is permanent for the unit: whoever made
// it would make it again.
func (a *Agent) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	res, err := a.agent.Run(ctx, task, calls)
	if err != nil || res == nil {
		return res, err
	}
	err = check(ctx, task, res.Output)
	if errors.Is(err, errUnread) {
		return nil, err // another attempt may read it
	}
	if err != nil {
		return nil, agent.Permanent(fmt.Errorf("the output of %s was refused: %w", task.Unit, err))
	}
	return res, nil
}

func check(ctx context.Context, task *agent.Task, data []byte) error {
	switch task.Kind {
	case mapreduce.KindMap:
		return checkMap(ctx, task, data)
	case mapreduce.KindDirect:
		return checkDirect(task, data)
	case mapreduce.KindReduce, mapreduce.KindFinal:
		return checkReduce(task.Inputs, data)
	default:
		return nil // parsing cites nothing
	}
}

func checkMap(ctx context.Context, task *agent.Task, data []byte) error {
	out, err := output.Decode(data)
	if err != nil {
		return err
	}
	t := task.Text
	text := output.Text{
		Document: string(t.Document), Unit: string(task.Unit), Index: task.Index, Hash: output.HashDocument(string(t.Document), t.SHA256),
		Content: t.Content, ByteOffset: t.ByteOffset, CharOffset: t.CharOffset,
	}
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
