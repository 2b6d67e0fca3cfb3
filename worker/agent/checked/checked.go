// Package checked is an agent around another that believes nothing it made: an
// output whose quotes are not the text, or that cites what its inputs did not,
// or loses without a word what they did, fails its unit.
//
// It checks the encoded output against the task, and shares nothing with what
// made it but worker/output, worker/refs and worker/ground.
package checked

import (
	"context"
	"fmt"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
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
	if err := check(task, res.Output); err != nil {
		return nil, agent.Permanent(fmt.Errorf("the output of %s was refused: %w", task.Unit, err))
	}
	return res, nil
}

func check(task *agent.Task, data []byte) error {
	switch task.Kind {
	case mapreduce.KindMap:
		return checkMap(task.Text, task.Unit, data)
	case mapreduce.KindReduce, mapreduce.KindFinal:
		return checkReduce(task.Inputs, data)
	default:
		return nil // parsing cites nothing
	}
}

func checkMap(t *mapreduce.Text, unit mapreduce.UnitID, data []byte) error {
	out, err := output.Decode(data)
	if err != nil {
		return err
	}
	return output.CheckMap(output.Text{
		Document: string(t.Document), Unit: string(unit), Hash: output.HashDocument(string(t.Document), t.SHA256),
		Content: t.Content, ByteOffset: t.ByteOffset, CharOffset: t.CharOffset,
	}, out)
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
