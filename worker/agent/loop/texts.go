package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/model/form"
	"github.com/coditect/mapreduce/worker/agent/model/found"
	"github.com/coditect/mapreduce/worker/agent/unit"
)

// texts are those that a final answer may quote: evidence of the unit, and what it was
// given to read.
type texts struct {
	task   *agent.Task
	keeper agent.EvidenceKeeper
	docs   *unit.Direct // of a unit that works on several documents; else nil
	notes  []string
}

func newTexts(task *agent.Task, keeper agent.EvidenceKeeper) *texts {
	t := &texts{task: task, keeper: keeper}
	if task.Text == nil && task.StageSpec.Documents && len(task.Inputs) == 1 {
		t.docs, _ = unit.NewDirect(task, nil) // the opening has shown them
	}
	return t
}

// find returns the places of quotes, each in the text that it names. The place of one that
// does not stand there is not verified, and a fault says what stands there instead.
func (t *texts) find(ctx context.Context, quotes []form.Quote) (places []unit.Place, faults []string, err error) {
	places = make([]unit.Place, len(quotes))
	of := make(map[string][]int) // quotes by their texts
	var names []string

	for i, q := range quotes {
		if len(of[q.Document]) == 0 {
			names = append(names, q.Document)
		}
		of[q.Document] = append(of[q.Document], i)
	}

	for _, name := range names { // one text at a time: preparing one takes many times its size
		wanted := make([]string, len(of[name]))
		for k, i := range of[name] {
			wanted[k] = quotes[i].Quote
		}

		found, err := t.findIn(ctx, name, wanted)
		switch {
		case errors.Is(err, errs.NotFound):
			faults = append(faults, fmt.Sprintf("there is no text with the id %.80q", name))
			continue
		case err != nil:
			return nil, nil, err
		}

		for k, i := range of[name] {
			places[i] = found[k]
			if !found[k].Verified() {
				faults = append(faults, quoteAbsent(name, wanted[k], found[k]))
			}
		}
	}
	return places, faults, nil
}

// quoteAbsent says that a quote is not in its text, and what stands there instead.
func quoteAbsent(name, quote string, at unit.Place) string {
	text := fmt.Sprintf("the quote %.160q is not in %s", quote, name)
	if at.Found() {
		text += fmt.Sprintf(", in which these words stand: %.240q", at.Quote)
	}
	return text
}

// findIn returns the places of quotes in one text. It returns errs.NotFound if the unit has
// no such text.
func (t *texts) findIn(ctx context.Context, name string, quotes []string) ([]unit.Place, error) {
	if own := t.task.Text; own != nil && (name == string(own.Document) || name == "") {
		return t.findInOwn(ctx, quotes)
	}

	e := t.bundled(name)
	// It is none of the documents that the unit was given, so a tool must have brought it.
	if e == nil {
		var err error
		if e, err = unit.Evidence(ctx, t.keeper, mapreduce.DocumentID(name)); err != nil {
			return nil, err
		}
	}

	aligner := e.Aligner()
	places := make([]unit.Place, len(quotes))
	for i, s := range aligner.FindAll(quotes) {
		if s.Verified() || s.Grade == ground.Near {
			places[i] = unit.InEvidence(e, aligner, s)
		}
	}
	return places, nil
}

// findInOwn looks for quotes in the unit's own document: for values of records in all of it,
// else in what the unit was given.
func (t *texts) findInOwn(ctx context.Context, quotes []string) ([]unit.Place, error) {
	task := t.task
	if !task.MakesRecords() {
		one := *task
		one.Whole, task = nil, &one
	}
	places, note, err := unit.Find(ctx, task, unit.Aligner(task.Text, 0, len(task.Text.Content)), quotes)
	if note != "" && !slices.Contains(t.notes, note) {
		t.notes = append(t.notes, note)
	}
	return places, err
}

// bundled returns one of the documents of a unit that works on several, as outputs cite it;
// nil if it was not given that document.
func (t *texts) bundled(name string) *output.Evidence {
	if t.docs == nil {
		return nil
	}
	for i, doc := range t.docs.Documents() {
		if doc.Document == name {
			own := t.docs.Task(i).Text
			return &output.Evidence{Document: doc.Document, SHA256: own.SHA256, Metadata: own.Metadata, Text: own.Content}
		}
	}
	return nil
}

// cite returns the citation of a place that was found.
func (t *texts) cite(at unit.Place) output.Citation {
	c := unit.Cite(t.task, at)
	if own := t.task.Text; at.Evidence == nil {
		source := refs.FromMetadata(string(own.Document), own.Metadata)
		c.Label = source.Label()
	}
	return c
}

// taskOf returns the unit as one that works on the text in which the first quote of a record
// stands; on its first document if none of its quotes does.
func (t *texts) taskOf(rec found.Record) *agent.Task {
	for _, v := range rec.Values {
		for _, at := range v.Places {
			if at.Evidence != nil {
				return unit.OnEvidence(t.task, at.Evidence)
			}
		}
	}
	return t.docs.Task(0)
}
