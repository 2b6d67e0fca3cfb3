// Package parse is the step that turns the bytes of a document into text. It needs
// no provider: every worker that knows the document's format does it alike.
package parse

import (
	"bytes"
	"context"
	"errors"

	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/document"
	"github.com/coditect/mapreduce/worker/step"
)

// A Runner parses documents.
type Runner struct {
	Formats *document.Registry // that the worker knows. Needed.
}

var _ step.Runner = Runner{}

// Run implements step.Runner. A document that has no text gives an empty output,
// by which it is skipped.
func (r Runner) Run(ctx context.Context, task *agent.Task, _ agent.Calls) (*agent.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if task.Text == nil {
		return nil, agent.Permanent(errors.New("a parse unit has a document"))
	}
	d, err := r.Formats.Parse(ctx, document.Input{
		Name: string(task.Text.Document), MediaType: task.Text.MediaType, Content: bytes.NewReader(task.Text.Content),
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if errors.Is(err, document.ErrNoText) {
		return &agent.Result{Confidence: 1}, nil
	}
	if err != nil {
		return nil, agent.Permanent(err)
	}
	return &agent.Result{Output: []byte(d.Text), Confidence: 1}, nil // it is counted where it is cut
}
