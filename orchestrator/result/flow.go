package result

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/jsonvalue"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A job whose first stage chooses passages passes their references from unit to unit. Each
// unit rests on some of those that it was given. What became of the others is found here,
// by what the units were given and came to, and not by what anybody says of it.

// A ValueLevel is a level whose units come to values.
type ValueLevel struct {
	Name   string // of the stage
	Schema []byte // of the values
}

// A loss is where a reference was left out.
type loss struct {
	unit, reason string
}

// A flow follows references through the levels of a job.
type flow struct {
	r       *result
	used    map[refs.ID]bool // by the last unit
	lost    map[refs.ID]loss // by the last unit that was given them and left them out
	removed map[output.Removed]bool
	reports []output.Removed // in order
	failed  []*records.Unit  // behind level 0, in order
}

// followReferences finds what became of the references of a job.
func (r *result) followReferences(ctx context.Context) (*flow, error) {
	f := &flow{r: r, lost: make(map[refs.ID]loss), removed: make(map[output.Removed]bool)}

	for level := int64(1); level < r.job.levels(); level++ {
		err := r.units.VisitLevel(ctx, level, func(u *records.Unit) error { return f.visit(ctx, u) })
		if err != nil {
			return nil, err
		}
	}

	if f.used == nil { // it has no last unit yet
		f.used = make(map[refs.ID]bool)
	}

	// References of the last unit are not lost, whichever unit left them out.
	for id := range f.used {
		delete(f.lost, id)
	}

	return f, nil
}

// formOf returns the form of the values of a level; nil of passages, all of which count.
func (f *flow) formOf(level int64) (*jsonvalue.Form, error) {
	if level == 0 || len(f.r.job.Values[level].Schema) == 0 {
		return nil, nil
	}
	form, err := jsonvalue.NewForm(f.r.job.Values[level].Schema)
	if err != nil {
		return nil, errs.New(errs.DataLoss, "form of stage %s: %v", f.r.job.Values[level].Name, err)
	}
	return form, nil
}

// usesOf returns the references that a unit's output rests on.
func (f *flow) usesOf(level int64, out *output.Output) (map[refs.ID]bool, error) {
	form, err := f.formOf(level)
	if err != nil {
		return nil, err
	}

	if form == nil {
		used := make(map[refs.ID]bool, len(out.Citations))
		for id := range out.Citations {
			used[refs.ID([]byte(id))] = true
		}
		return used, nil
	}
	return form.References(out.Value)
}

// visit notes what a unit was given and left out.
func (f *flow) visit(ctx context.Context, u *records.Unit) error {
	given, err := f.givenTo(ctx, u)
	if err != nil {
		return err
	}

	if u.State != mapreduce.UnitComplete {
		reason := "the unit did not end"
		if u.State == mapreduce.UnitFailed {
			f.failed = append(f.failed, u)
			reason = "the unit failed"
			if n := len(u.Errors); n > 0 {
				reason += ": " + u.Errors[n-1]
			}
		}
		f.note(given, nil, loss{string(u.ID), reason})
		return nil
	}

	out, err := outputs.Of(ctx, f.r.source, f.r.job.ID, u)
	if err != nil {
		return err
	}

	// Outputs pass on what was removed below them, so the same may stand in several.
	for _, one := range out.Removed {
		if !f.removed[one] {
			f.removed[one] = true
			f.reports = append(f.reports, one)
		}
	}

	used, err := f.usesOf(u.Level, out)
	if err != nil {
		return err
	}

	reason := "nothing that the unit found rests on it"
	if u.ID == f.r.job.Last {
		f.used, reason = used, "the report does not use it"
	}

	f.note(given, used, loss{string(u.ID), reason})
	return nil
}

func (f *flow) note(given, used map[refs.ID]bool, where loss) {
	for id := range given {
		if !used[id] {
			f.lost[id] = where
		}
	}
}

// givenTo returns the references that the inputs of a unit rest on; of a batch those of its
// passages.
func (f *flow) givenTo(ctx context.Context, u *records.Unit) (map[refs.ID]bool, error) {
	given := make(map[refs.ID]bool)
	var batch []struct {
		Passage string `json:"passage"`
	}

	if u.Inputs == nil {
		return given, nil
	}

	// The unit's item has the passages of its batch: its inputs hold those of other batches
	// as well.
	if u.Inputs.Level == 0 && json.Unmarshal(u.Item, &batch) == nil && len(batch) > 0 {
		for _, one := range batch {
			if id, ok := refs.Parse(one.Passage); ok {
				given[id] = true
			}
		}
		return given, nil
	}

	err := outputs.EachInput(ctx, f.r.source, f.r.job.ID, u, func(in *records.Unit) error {
		if in.State != mapreduce.UnitComplete {
			return nil
		}
		out, err := outputs.Of(ctx, f.r.source, f.r.job.ID, in)
		if err != nil {
			return err
		}
		used, err := f.usesOf(in.Level, out)
		for id := range used {
			given[id] = true
		}
		return err
	})
	return given, err
}

// ids returns the references that were left out, in order.
func (f *flow) ids() []refs.ID {
	ids := make([]refs.ID, 0, len(f.lost))
	for id := range f.lost {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, refs.Compare)
	return ids
}

// writeLosses tells of the references that were left out, in the order of the passages, with
// the passages themselves; of what was removed; and of units that failed.
func (f *flow) writeLosses(ctx context.Context, texts *contexts) error {
	r := f.r

	// Passages stand in the outputs of level 0, in their order.
	err := r.units.VisitLevel(ctx, 0, func(u *records.Unit) error {
		if u.State != mapreduce.UnitComplete {
			return nil
		}

		out, err := outputs.Of(ctx, r.source, r.job.ID, u)
		if err != nil {
			return err
		}
		return f.writeLostOf(ctx, texts, out)
	})
	if err != nil {
		return err
	}

	for _, one := range f.reports {
		b, err := marshalJSON(removedReference{Name: one.Name, Field: one.Field, Unit: one.Unit, Reason: one.Reason})
		if err == nil {
			err = r.sink(&mapreduce.ResultPart{Removed: b})
		}
		if err != nil {
			return err
		}
	}

	for _, u := range f.failed {
		if err := r.sink(&mapreduce.ResultPart{Source: &mapreduce.Source{Unit: u.ID, Errors: u.Errors, Document: u.Document, Lasting: u.Lasting}}); err != nil {
			return err
		}
	}
	return nil
}

// writeLostOf tells of the passages of a unit that were left out.
func (f *flow) writeLostOf(ctx context.Context, texts *contexts, out *output.Output) error {
	passages, err := output.Passages(nil, []*output.Output{out})
	if err != nil {
		return errs.New(errs.DataLoss, "job %s: %v", f.r.job.ID, err)
	}

	for _, p := range passages {
		where, lost := f.lost[p.ID]
		if !lost {
			continue
		}

		if err := f.r.writeCitation(ctx, texts, p.Citation); err != nil {
			return err
		}
		d := droppedCitation{Ref: f.r.names.Spell(p.ID), Field: wholeReport, Unit: where.unit, Reason: where.reason}
		if err := f.r.writeDroppedCitation(d); err != nil {
			return err
		}
	}
	return nil
}

// wholeReport is the field of a reference that no part of the report has.
const wholeReport = "report"

// sourceOf returns how the document of a citation is described, whose unit was read last.
func (c *contexts) sourceOf(document string) refs.Source {
	if c.unit == nil {
		return refs.FromMetadata(document, nil)
	}
	return refs.FromMetadata(document, c.unit.Reads().Metadata)
}
