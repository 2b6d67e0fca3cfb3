package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/jsonvalue"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/agent/model/found"
	"github.com/coditect/mapreduce/worker/agent/model/prompt"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/agent/unit"
	"github.com/coditect/mapreduce/worker/llm"
)

// A writeRun is a unit that writes a value.
type writeRun struct {
	*attempt
	form             *jsonvalue.Form
	inputs, referred []*output.Output
	passages         []output.Passage // of a stage that reads them, in place of inputs
	issued           *output.Issued
}

func (s *attempt) newWriting() (*writeRun, error) {
	w := &writeRun{attempt: s}
	var err error
	if w.form, err = unit.Form(s.Task); err != nil {
		return nil, err
	}
	return w, w.readInputs()
}

// readInputs reads what the unit was given beside documents.
func (w *writeRun) readInputs() (err error) {
	switch task := w.Task; {
	case task.StageSpec.Passages:
		w.referred, w.passages, err = unit.Given(task)
	case !task.StageSpec.Documents:
		w.inputs, w.referred, err = unit.Inputs(task)
	}
	w.issued = output.IssueAll(w.allInputs())
	return err
}

// allInputs are all outputs whose citations the unit may pass on.
func (w *writeRun) allInputs() []*output.Output { return slices.Concat(w.inputs, w.referred) }

// writeValue runs a unit that reads and writes: one call makes its value.
func (s *attempt) writeValue(ctx context.Context) (*agent.Result, error) {
	w, err := s.newWriting()
	if err != nil {
		return nil, err
	}

	req, err := w.valueRequest()
	if err != nil {
		return nil, err
	}

	out, size, err := w.askValue(ctx, req)
	if err != nil {
		return nil, err
	}

	if s.Task.StageSpec.Check {
		if err := w.judgeClaims(ctx, out); err != nil {
			return nil, err
		}
	}
	return w.resultOf(out, size)
}

func (w *writeRun) resultOf(out *output.Output, size int64) (*agent.Result, error) {
	res, err := unit.Valued(out)
	if err != nil {
		return nil, err
	}
	res.Size, res.Errors = size, w.Notes
	return res, nil
}

// askValue asks the model and makes its answer the output. If the answer is too large, or
// does not fit its schema after invented references were removed, askValue sends it back
// to the model once.
func (w *writeRun) askValue(ctx context.Context, req *llm.Request) (*output.Output, int64, error) {
	for repaired := false; ; repaired = true {
		res, err := w.CompleteRequest(ctx, req)
		if err != nil {
			return nil, 0, err
		}

		out, err := output.NewValue(string(w.Task.Unit), res.Answer, w.form, w.issued, w.allInputs())
		switch {
		case err == nil:
			return out, writtenOf(res), nil
		case !errors.Is(err, jsonvalue.ErrForm) || repaired:
			return nil, 0, agent.Permanent(err)
		}

		req = model.FollowUp(req, res.Answer, "This cannot be kept: "+found.Line(err.Error())+again)
	}
}

// valueRequest asks for the value of the unit by all that it reads.
func (w *writeRun) valueRequest() (*llm.Request, error) {
	var data []model.Section
	var about []pipeline.Document // what the stage's texts may name
	var err error
	switch {
	case w.Task.StageSpec.Documents:
		data, about, err = w.documentSections()
	case w.Task.StageSpec.Passages:
		data, about = w.passageSections()
	default:
		data, about, err = w.outputSections()
	}
	if err != nil {
		return nil, err
	}

	if list := w.referenceList(); list != "" {
		data = append([]model.Section{{Name: "references", Text: list}}, data...)
	}

	told, err := w.OwnPrompt(w.Mapping, about)
	if err != nil {
		return nil, err
	}

	item := w.Task.Item
	if w.Mapping.Each == pipeline.EachAgent || w.passages != nil { // which it names, and is told above
		item = nil
	}

	return w.WriteRequest(told, w.issued.Show(string(item)), data), nil
}

// documentSections are the texts of documents: the unit's own, or all that it has.
func (w *writeRun) documentSections() (data []model.Section, about []pipeline.Document, err error) {
	if t := w.Task.Text; t != nil {
		content := string(t.Content)
		return []model.Section{
			{Name: "context-before", Text: content[:t.CoreStart]}, {Name: "document", Text: content[t.CoreStart:t.CoreEnd]}, {Name: "context-after", Text: content[t.CoreEnd:]},
		}, model.DocumentOf(t), nil
	}

	all, err := unit.NewDirect(w.Task, nil)
	if err != nil {
		return nil, nil, err
	}

	for _, doc := range all.Documents() {
		data = append(data, model.Section{Name: "document", Text: "named " + prompt.QuoteName(doc.Document) + "\n" + string(doc.Text)})
	}

	return data, describeDocuments(all.Documents()), nil
}

// passageSections are passages, each behind its reference, cut as the stage wants them.
func (w *writeRun) passageSections() (data []model.Section, about []pipeline.Document) {
	for _, p := range w.passages {
		text := p.Quote[:w.Mapping.Kept([]byte(p.Quote))]
		// The cut is shown, so that the model does not take it for the end.
		if len(text) < len(p.Quote) {
			text += "…"
		}

		if p.Summary != "" {
			text = "Summary: " + p.Summary + "\n" + text
		}

		data = append(data, model.Section{Name: "passage", Text: "[" + w.issued.Name(p.Key()) + "] " + p.Label + "\n" + text})
		about = append(about, pipeline.Document{ID: p.Document})
	}

	return data, about
}

// referenceList lists the references that the unit may use, each with who wrote it, its
// title and its year, as far as they are known; "" if nothing is known of any.
func (w *writeRun) referenceList() string {
	labels := make(map[string]string)
	for _, in := range w.allInputs() {
		for id, c := range in.Citations {
			if c.Label != "" && w.issued.Name(id) != "" {
				labels[w.issued.Name(id)] = c.Label
			}
		}
	}

	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&b, "[%s] %s\n", name, labels[name])
	}
	return b.String()
}

// outputSections returns the outputs that the unit reads, as sections of the prompt.
func (w *writeRun) outputSections() (data []model.Section, about []pipeline.Document, err error) {
	values, err := unit.Read(w.Task, w.inputs, w.referred)
	if err != nil {
		return nil, nil, err
	}

	if by, ok := w.Mapping.Ordering(); ok {
		sortValues(values, by)
	}

	for _, v := range values {
		text := w.issued.Show(string(v))
		data = append(data, model.Section{Name: "input", Text: text[:w.Mapping.Kept([]byte(text))]})
		if w.Mapping.Each == pipeline.EachBatch {
			about = append(about, model.ItemOf(v)...)
		}
	}

	if len(w.Task.Item) > 0 {
		about = model.ItemOf([]byte(w.issued.Show(string(w.Task.Item))))
	}

	return data, about, nil
}

// sortValues sorts values by a field, those without it last.
func sortValues(values [][]byte, by pipeline.Order) {
	fieldOf := func(v []byte) (string, bool) { return model.ItemOf(v)[0].Value(by.Field) }

	slices.SortStableFunc(values, func(a, b []byte) int {
		x, xOK := fieldOf(a)
		y, yOK := fieldOf(b)

		// Values without the field keep their order behind the others.
		switch {
		case xOK && yOK:
			return by.Compare(x, y)
		case xOK:
			return -1
		case yOK:
			return 1
		}
		return 0
	})
}

// mergeValues merges values of one form: as the form decides, by the model, or by
// the model where the form leaves conflicts.
func (s *attempt) mergeValues(ctx context.Context) (*agent.Result, error) {
	w, err := s.newWriting()
	if err != nil {
		return nil, err
	}

	if s.Merge == settings.MergeModel && len(w.inputs) > 1 {
		return s.writeValue(ctx)
	}

	typed, err := unit.MergedValue(s.Task, w.inputs)
	if err != nil {
		return nil, err
	}

	// Only conflicts that this merge met are open: those of the inputs were settled before.
	open := slices.DeleteFunc(slices.Clone(typed.Decided), func(d output.Decided) bool { return d.Unit != string(s.Task.Unit) })
	if s.Merge != settings.MergeBoth || len(open) == 0 {
		return w.resultOf(typed, token.Unknown)
	}

	out, size, err := w.askValue(ctx, w.settleRequest(typed, open))
	if err != nil {
		if !s.InVain(ctx, err) {
			return nil, err
		}
		s.NoteError("what differs was left as it was found first", err)
		return w.resultOf(typed, token.Unknown)
	}

	if err := out.Settle(typed, string(s.Task.Unit), "a model chose"); err != nil {
		return nil, agent.Permanent(err)
	}

	return w.resultOf(out, size)
}

// settleRequest asks for a value in which conflicts are settled that a typed merge
// has left.
func (w *writeRun) settleRequest(typed *output.Output, open []output.Decided) *llm.Request {
	data := []model.Section{{Name: "merged", Text: w.issued.Show(string(typed.Value))}}

	for _, d := range open {
		var b strings.Builder
		fmt.Fprintf(&b, "at %s there are different values:\n", quoteShort(d.Field, maxQuote))

		for _, c := range d.Candidates {
			raw, err := json.Marshal(c.Value)
			if err == nil { // it came as JSON
				fmt.Fprintf(&b, "- %s (found %d times)\n", w.issued.Show(string(raw)), c.Count)
			}
		}

		data = append(data, model.Section{Name: "conflict", Text: b.String()})
	}

	return w.WriteRequest("The inputs were merged by rules; in the merged value the first of several values stands wherever they differ. "+
		"Give the merged value again, with each conflict settled as what you are given supports best, and nothing else changed.\n", "", data)
}
