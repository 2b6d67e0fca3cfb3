package steps

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/agent/model/form"
	"github.com/coditect/mapreduce/worker/agent/model/found"
	"github.com/coditect/mapreduce/worker/agent/unit"
	"github.com/coditect/mapreduce/worker/llm"
)

// A directRun is a direct unit under way.
type directRun struct {
	*attempt
	unit *unit.Direct
}

// runDirect runs a direct unit: one call takes all documents of the job. If it is
// too large for the model after all, halves of them are taken.
func (s *attempt) runDirect(ctx context.Context) (*agent.Result, error) {
	if s.DirectSystem == "" {
		return nil, agent.PermanentJob(errors.New("the pipeline of the job has no direct step"))
	}

	u, err := unit.NewDirect(s.Task, s.Schema)
	if err != nil {
		return nil, err
	}

	d := &directRun{attempt: s, unit: u}
	if err := d.readRange(ctx, 0, len(u.Documents())); err != nil {
		return nil, err
	}

	res, err := u.Result()
	if err != nil {
		return nil, err
	}
	res.Errors = s.Notes
	return res, nil
}

// readRange has the documents [from,to) read.
func (d *directRun) readRange(ctx context.Context, from, to int) error {
	req, err := d.rangeRequest(from, to)
	if err != nil {
		return err
	}

	// Halves are read by further calls, down to single documents, which are then read in
	// parts.
	res, err := d.CompleteRequest(ctx, req)
	switch {
	case model.IsTooLarge(err) && to-from > 1:
		half := (from + to) / 2
		d.NoteError(fmt.Sprintf("%d documents were too many for one call, and taken in two", to-from), nil)
		if err := d.readRange(ctx, from, half); err != nil {
			return err
		}
		return d.readRange(ctx, half, to)
	case model.IsTooLarge(err):
		return d.readAlone(ctx, from)
	case err != nil:
		return err
	}

	return d.takeAnswer(ctx, from, to, res.Answer)
}

// readAlone has one document read in parts, as a map unit would.
func (d *directRun) readAlone(ctx context.Context, i int) error {
	one := *d.Session
	one.Task = d.unit.Task(i)
	x := &extraction{attempt: &attempt{&one}, mapper: d.unit.Mapper(one.Task), system: d.System}

	var err error
	if x.told, err = one.OwnPrompt(d.Mapping, model.DocumentOf(one.Task.Text)); err != nil {
		return err
	}

	if err := x.readAll(ctx); err != nil {
		return err
	}

	d.Notes = one.Notes
	d.unit.Take(x.mapper, x.reason)
	return nil
}

// rangeRequest asks for what documents hold.
func (d *directRun) rangeRequest(from, to int) (*llm.Request, error) {
	docs := d.unit.Documents()[from:to]
	told, err := d.OwnPrompt(d.Stages.Direct, describeDocuments(docs))
	if err != nil {
		return nil, err
	}
	return d.DirectRequest(told, docs), nil
}

// describeDocuments is what templates may say of documents.
func describeDocuments(docs []payload.Document) []pipeline.Document {
	all := make([]pipeline.Document, len(docs))
	for i, doc := range docs {
		all[i] = pipeline.Document{ID: doc.Document, Metadata: doc.Metadata}
	}
	return all
}

// takeAnswer takes an answer about the documents [from,to).
func (d *directRun) takeAnswer(ctx context.Context, from, to int, raw []byte) error {
	of, none, err := form.ReadDirect(raw)
	if err != nil {
		return err
	}

	for _, n := range slices.Sorted(maps.Keys(of)) {
		// Numbers count from 1, within the documents of this call.
		if n < 1 || n > to-from {
			d.NoteError(fmt.Sprintf("records of a document %d were left out: there are %d", n, to-from), nil)
		}
	}

	for i := from; i < to; i++ {
		if err := d.takeDocument(ctx, i, of[i-from+1], found.Line(none)); err != nil {
			return err
		}
	}
	return nil
}

// takeDocument adds the records of an answer for one document. Every quote must stand
// in that document.
func (d *directRun) takeDocument(ctx context.Context, i int, answers []form.Record, none string) error {
	task := d.unit.Task(i)
	found.Look(d.Form, answers, string(task.Text.Content))
	places, _, err := unit.Find(ctx, task, unit.Aligner(task.Text, 0, len(task.Text.Content)), found.Quotes(d.Form, answers))
	if err != nil {
		return err
	}

	records, _ := found.Records(d.Form, answers, places)
	m := d.unit.Mapper(task)

	if d.Schema.Kind == schema.KindRecords {
		for n, rec := range records {
			m.Add(int64(n), m.Accumulate(int64(n), rec.Values, rec.Missing))
		}
		d.unit.Take(m, none)
		return nil
	}

	if len(records) == 0 { // which the model has passed over
		records = []found.Record{found.Nothing(d.Form)}
	}

	// Here each document is one record: what the answer has as several is merged into it.
	var one *merge.Accumulator
	for _, rec := range records {
		a := m.Accumulate(0, rec.Values, rec.Missing)
		if one != nil {
			a = merge.Merge(*one, a)
		}
		one = &a
	}

	m.Add(0, *one)
	d.unit.Take(m, none)
	return nil
}
