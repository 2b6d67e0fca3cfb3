// Package parse is the step that turns the bytes of a document into text. It needs
// no provider: every worker that knows the document's format does it alike.
package parse

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/internal/text/layout"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/step"
)

// A Runner parses documents.
type Runner struct {
	Formats *document.Registry // that the worker knows. Needed.
}

var _ step.Runner = Runner{}

// Run implements step.Runner. A document that cannot be read as it is, or has no text, gives an
// empty output and the reason, by which it is skipped: no worker would read it. Every other error
// makes the unit fail, as the document should have been read.
func (r Runner) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	if task.Text == nil {
		return nil, agent.Permanent(errors.New("a parse unit has a document"))
	}

	in := document.Input{
		Name: string(task.Text.Document), MediaType: task.Text.MediaType, Content: bytes.NewReader(task.Text.Content), Wait: calls.Pause,
	}
	if task.Spec != nil {
		in.PageText, in.Limits = task.Spec.Reading.PageText, document.Limits(task.Spec.Reading.Limits)
		in.Shown = task.Spec.See() != mapreduce.SeeNever
	}

	d, err := r.Formats.Parse(ctx, in)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}

	if refused := new(document.RefusedError); errors.As(err, &refused) {
		return &agent.Result{Confidence: 1, Errors: []string{refused.Reason}}, nil
	}

	if err != nil {
		return nil, agent.Permanent(err)
	}

	out, err := encode(d)
	if err != nil {
		return nil, agent.Permanent(err)
	}
	return &agent.Result{Output: out, Confidence: cmp.Or(d.Confidence, 1)}, nil // tokens are counted where it is cut
}

// encode returns a document as the output of a unit.
func encode(d *document.Document) ([]byte, error) {
	places, err := layout.Encode(d.Layout)
	if err != nil {
		return nil, err
	}

	notes := make([]string, 0, min(len(d.Notes), payload.MaxNotes))
	for _, note := range d.Notes[:cap(notes)] {
		notes = append(notes, strings.ToValidUTF8(note[:min(len(note), payload.MaxNote)], ""))
	}

	p := &payload.Parsed{Format: string(d.Kind), Charset: d.Charset, Notes: notes, Title: d.Title, Text: []byte(d.Text), Layout: places}
	return p.Encode()
}
