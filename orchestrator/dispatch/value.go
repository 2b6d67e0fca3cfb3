package dispatch

import (
	"context"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/internal/outcome/output/jsonvalue"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// verifyValue checks what a stage makes that makes no records against the form of the stage
// and what the unit was given: it may refer to nothing else.
func (s *subject) verifyValue(ctx context.Context, out *output.Output) (why, err error) {
	form, err := jsonvalue.NewForm(s.stage.Output.Form())
	if err != nil {
		return nil, errs.New(errs.DataLoss, "form of stage %s: %v", s.stage.Name, err)
	}

	passages := s.stage.Output.Kind == pipeline.OutputPassages
	var own check.Texts // of units with tools: of others a value cites no document
	if s.evidence != nil || passages {
		if own, err = s.ownTexts(ctx); err != nil {
			return nil, err
		}
	}
	if passages {
		return check.Passages(string(s.unit.ID), own, form, out), nil
	}

	var given []*output.Output
	if s.unit.Inputs == nil {
		form, err = s.withDocuments(ctx, form)
	} else {
		given, why, err = s.inputs(ctx)
	}
	if why != nil || err != nil {
		return why, err
	}

	if s.unit.Inputs != nil && form.NeedsGiven() {
		form = form.With(output.GivenOf(s.unit.Index, s.unit.Item, given))
	}
	return check.Value(given, own, form, out), nil
}

// ownTexts returns the texts that the unit may cite: what it read, and the evidence that it
// found.
func (s *subject) ownTexts(ctx context.Context) (check.Texts, error) {
	switch {
	case s.unit.Source == nil:
		return check.BundleTexts(string(s.unit.ID), nil, s.evidence), nil
	case outputs.IsBundle(s.unit):
		docs, err := s.documents(ctx)
		return check.BundleTexts(string(s.unit.ID), docs, s.evidence), err
	}

	text, err := s.text(ctx)
	return check.MapTexts(text, s.evidence), err
}

// withDocuments returns the form of the values of a unit that reads documents, with what is
// given in it.
func (s *subject) withDocuments(ctx context.Context, form *jsonvalue.Form) (*jsonvalue.Form, error) {
	if !form.NeedsGiven() {
		return form, nil
	}
	if !outputs.IsBundle(s.unit) {
		return form.With(output.GivenOfDocuments(s.unit.Index, nil, 0)), nil
	}

	docs, err := s.documents(ctx)
	if err != nil {
		return nil, err
	}
	return form.With(output.GivenOfDocuments(s.unit.Index, docs, s.stage.Size)), nil
}

// inputs returns what the unit was given by other units: their outputs whole, or the passages
// in them if its stage reads these. Why says that they are not what such a unit is given.
func (s *subject) inputs(ctx context.Context) (given []*output.Output, why, err error) {
	err = s.eachInput(ctx, func(in *records.Unit, one *output.Output) (err error) {
		if in.Level > 0 && outputs.NamesRecordsOnly(one) {
			if one, err = outputs.Resolve(ctx, s.reader, s.job, in, one); err != nil {
				return err
			}
		}
		given = append(given, one)
		return nil
	})
	if err != nil || !s.spec.Graph.Pipeline().ReadsPassages(s.stage) {
		return given, nil, err
	}

	var batch []byte
	if s.stage.Each == pipeline.EachBatch {
		batch = s.unit.Item
	}
	read, why := output.Passages(batch, given)
	if why != nil {
		return nil, why, nil
	}
	return []*output.Output{output.OfPassages(read)}, nil, nil
}
