package dispatch

import (
	"cmp"
	"context"
	"runtime"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/internal/outcome/output/jsonvalue"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A Checker checks outputs against what their units were given and the schema of their
// job, whoever made them. Its methods are safe for concurrent use.
type Checker struct {
	jobs       *jobs.Jobs
	stages     *jobspec.Finder
	supervisor *cluster.Supervisor
	texts      outputs.TextCache
	slots      chan struct{} // full while as many outputs are checked as there are processors
}

// NewChecker returns a checker of outputs of jobs in a store.
func NewChecker(j *jobs.Jobs, stages *jobspec.Finder, s *cluster.Supervisor) *Checker {
	return &Checker{jobs: j, stages: stages, supervisor: s, slots: make(chan struct{}, max(2, runtime.GOMAXPROCS(0)))}
}

// WaitTurn waits until another output may be checked that is not checked quickly. Whoever
// has checked it calls leave.
func (c *Checker) WaitTurn(ctx context.Context) (leave func(), err error) {
	select {
	case c.slots <- struct{}{}:
		return func() { <-c.slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// VerifyOutput checks an output against the inputs of its unit and the schema of its job.
// It returns the reason to refuse the output, or an error if it cannot read the data to
// check against. It is a check.Verify of store/jobs.
func (c *Checker) VerifyOutput(ctx context.Context, id mapreduce.JobID, u *records.Unit, data []byte) (why, err error) {
	return c.verifyGiven(ctx, id, u, Given{}, data, nil)
}

// verifyGiven is VerifyOutput for who has something of what a unit was given at hand. The
// confidence of the unit that its worker states, if any, is lowered to that of the best of its
// records' values as they are computed here.
func (c *Checker) verifyGiven(ctx context.Context, id mapreduce.JobID, u *records.Unit, g Given, data []byte, said *float64) (why, err error) {
	if u.Kind == mapreduce.KindParse {
		return payload.CheckParsed(data), nil
	}

	out, why := output.Decode(data)
	if why != nil {
		return why, nil
	}

	stage, schema, err := c.stages.StageOf(ctx, id, u)
	switch {
	case err != nil:
		return nil, err
	case stage != nil && stage.Output.Kind != pipeline.OutputRecords:
		return c.verifyValue(ctx, id, u, stage, g, out)
	case len(out.Value) > 0:
		return errNoRecords, nil
	}

	if stage == nil || !stage.Review.IsSet() {
		if why := unreviewed(u, out); why != nil {
			return why, nil
		}
	}

	var unread error
	find := c.evidenceOf(ctx, id, u, stage, &unread)
	switch {
	case outputs.IsBundle(u):
		why, err = c.verifyDirect(ctx, id, u, find, out)
	case u.Kind == mapreduce.KindMap && u.Source != nil:
		why, err = c.verifyMap(ctx, id, u, g.Text, find, out)
	case u.Kind == mapreduce.KindReduce, u.Kind == mapreduce.KindFinal:
		why, err = c.verifyReduce(ctx, id, u, g, out)
	default:
		err = errNoKind(u)
	}

	// An output is not refused for evidence that could not be read at the moment.
	if err = cmp.Or(unread, err); why != nil || err != nil {
		return why, err
	}

	why, err = c.verifyValues(ctx, id, schema, u, out)
	if said != nil && why == nil && err == nil && len(out.Entries) > 0 {
		*said = min(*said, out.MostConfidence(schema))
	}
	return why, err
}

// evidenceOf returns what finds evidence of a unit; nil if its stage has no tools. What goes
// wrong is left in unread.
func (c *Checker) evidenceOf(ctx context.Context, id mapreduce.JobID, u *records.Unit, stage *pipeline.Stage, unread *error) output.EvidenceFinder {
	if stage == nil || len(stage.Tools) == 0 {
		return nil
	}
	return outputs.FindEvidence(ctx, c.jobs.Reader(), id, u, unread)
}

// textsOf returns the texts that a unit may cite: what it read, of which the text may be at
// hand, and the evidence that find finds.
func (c *Checker) textsOf(ctx context.Context, id mapreduce.JobID, u *records.Unit, text []byte, find output.EvidenceFinder) (check.Texts, error) {
	src := u.Source
	switch {
	case src == nil:
		return check.BundleTexts(string(u.ID), nil, find), nil
	case outputs.IsBundle(u):
		docs, err := outputs.Documents(ctx, c.jobs.Reader(), id, u)
		return check.BundleTexts(string(u.ID), docs, find), err
	case text == nil && src.End > src.Start:
		var err error
		if text, err = c.jobs.Content.Text(ctx, id, src.SHA256, src.Start, src.End); err != nil {
			return nil, err
		}
	}
	return check.MapTexts(outputs.CitedText(u, text), find), nil
}

// errNoRecords is what the output of a unit is refused with that should make records.
var errNoRecords = errs.New(errs.Invalid, "a unit that makes records reports another value")

// verifyValue checks the output of a unit whose stage makes no records against the
// form of the stage and what the unit was given: it may refer to nothing else.
func (c *Checker) verifyValue(ctx context.Context, id mapreduce.JobID, u *records.Unit, stage *pipeline.Stage, g Given, out *output.Output) (why, err error) {
	form, err := jsonvalue.NewForm(stage.Output.Form())
	if err != nil {
		return nil, errs.New(errs.DataLoss, "form of stage %s: %v", stage.Name, err)
	}

	var unread error
	find := c.evidenceOf(ctx, id, u, stage, &unread)
	var own check.Texts // of units with tools: of others a value cites no document
	if find != nil || stage.Output.Kind == pipeline.OutputPassages {
		if own, err = c.textsOf(ctx, id, u, g.Text, find); err != nil {
			return nil, err
		}
	}

	if stage.Output.Kind == pipeline.OutputPassages {
		why = check.Passages(string(u.ID), own, form, out)
		return why, unread
	}

	var given []*output.Output
	if u.Inputs == nil {
		if form, err = c.withDocuments(ctx, id, u, stage, form); err != nil {
			return nil, err
		}
		why = check.Value(given, own, form, out)
		return why, unread
	}

	err = c.eachOutput(ctx, id, u, g, func(in *records.Unit, one *output.Output) error {
		if in.Level > 0 && outputs.NamesRecordsOnly(one) {
			var err error
			if one, err = outputs.Resolve(ctx, c.jobs.Reader(), id, in, one); err != nil {
				return err
			}
		}
		given = append(given, one)
		return nil
	})
	if err != nil {
		return nil, err
	}

	if passages, err := c.readsPassages(ctx, id, stage); err != nil {
		return nil, err
	} else if passages {
		var batch []byte
		if stage.Each == pipeline.EachBatch {
			batch = u.Item
		}
		read, why := output.Passages(batch, given)
		if why != nil {
			return why, nil
		}
		given = []*output.Output{output.OfPassages(read)}
	}

	if form.NeedsGiven() {
		form = form.With(output.GivenOf(u.Index, u.Item, given))
	}

	why = check.Value(given, own, form, out)
	return why, unread
}

// eachOutput visits the units that a unit takes and that have an output, with these
// outputs, in order. They are read unless they are at hand.
func (c *Checker) eachOutput(ctx context.Context, id mapreduce.JobID, u *records.Unit, g Given, visit func(*records.Unit, *output.Output) error) error {
	visitInput := func(in *records.Unit) error {
		if in.State != mapreduce.UnitComplete {
			return nil
		}
		one, err := outputs.Of(ctx, c.jobs.Reader(), id, in)
		if err != nil {
			return err
		}
		return visit(in, one)
	}

	if g.Inputs == nil {
		return outputs.EachInput(ctx, c.jobs.Reader(), id, u, visitInput)
	}

	for _, in := range g.Inputs {
		if err := visitInput(in); err != nil {
			return err
		}
	}
	return nil
}

// withDocuments returns the form of the values of a unit that reads documents, with what is
// given in it.
func (c *Checker) withDocuments(ctx context.Context, id mapreduce.JobID, u *records.Unit, stage *pipeline.Stage, form *jsonvalue.Form) (*jsonvalue.Form, error) {
	if !form.NeedsGiven() {
		return form, nil
	}
	if !outputs.IsBundle(u) {
		return form.With(output.GivenOfDocuments(u.Index, nil, 0)), nil
	}

	docs, err := outputs.Documents(ctx, c.jobs.Reader(), id, u)
	if err != nil {
		return nil, err
	}
	return form.With(output.GivenOfDocuments(u.Index, docs, stage.Size)), nil
}

// readsPassages reports whether the units of a stage read passages.
func (c *Checker) readsPassages(ctx context.Context, id mapreduce.JobID, stage *pipeline.Stage) (bool, error) {
	p, err := c.stages.PipelineOf(ctx, id)
	if err != nil {
		return false, err
	}
	return p.ReadsPassages(stage), nil
}

// errNoKind is what a unit is that no unit can be.
func errNoKind(u *records.Unit) error {
	return errs.New(errs.DataLoss, "unit %s is of the kind %d, which no unit is", u.ID, u.Kind)
}

// verifyValues says why the records of an output do not fit the schema, or returns
// nil.
func (c *Checker) verifyValues(ctx context.Context, id mapreduce.JobID, s *schema.Schema, u *records.Unit, out *output.Output) (why, err error) {
	if len(out.Entries) == 0 {
		return nil, nil
	}
	if why := check.Values(s, out); why != nil || u.Kind != mapreduce.KindMap || outputs.IsBundle(u) {
		return why, nil
	}
	if why := check.Entities(s, out); why != nil || u.Source == nil {
		return why, nil
	}

	strict, err := c.stages.IsStrict(ctx, id)
	if err != nil || !strict || check.Unreviewed(string(u.ID), out) != nil {
		return nil, err // what people have decided stands, whatever the record lacks then
	}
	return check.Strict(s, u.Source.Chunks, out), nil
}

// verifyMap checks the output of a map unit against its text.
func (c *Checker) verifyMap(ctx context.Context, id mapreduce.JobID, u *records.Unit, text []byte, find output.EvidenceFinder, out *output.Output) (why, err error) {
	src := u.Source
	if text == nil && src.End > src.Start && len(out.Citations) > 0 { // else there is nothing to look for in it
		if text, err = c.jobs.Content.Text(ctx, id, src.SHA256, src.Start, src.End); err != nil {
			return nil, err
		}
	}

	t := outputs.CitedText(u, text)
	if out.CitesOutside() {
		if t.Whole, err = c.texts.WholeText(ctx, c.jobs, id, src); err != nil {
			return nil, err
		}
	}
	return check.Map(t, find, out), nil
}

// verifyDirect checks the output of a unit over several documents against these.
func (c *Checker) verifyDirect(ctx context.Context, id mapreduce.JobID, u *records.Unit, find output.EvidenceFinder, out *output.Output) (why, err error) {
	docs, err := outputs.Documents(ctx, c.jobs.Reader(), id, u)
	if err != nil {
		return nil, err
	}
	return check.Direct(string(u.ID), u.Index, docs, find, out), nil
}

// verifyReduce checks the output of a reduce against what it was given: the outputs
// that it takes, and the records that these only name.
func (c *Checker) verifyReduce(ctx context.Context, id mapreduce.JobID, u *records.Unit, g Given, out *output.Output) (why, err error) {
	var given, reduced []*output.Output
	err = c.eachOutput(ctx, id, u, g, func(in *records.Unit, one *output.Output) error {
		given = append(given, one)
		if in.Level > 0 && outputs.NamesRecordsOnly(one) {
			reduced = append(reduced, one)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}

	if len(reduced) > 0 {
		_, s, err := c.stages.StageOf(ctx, id, u)
		if err != nil {
			return nil, err
		}

		// These are the records that the reduce was sent: more of them it does not know.
		wanted := output.Wanted(s, reduced, u.Kind == mapreduce.KindFinal)
		err = outputs.SomeReferred(ctx, c.jobs.Reader(), id, wanted, func(_ *records.Unit, one *output.Output, _ []byte) error {
			given = append(given, one)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}

	return check.Reduce(given, out), nil
}
