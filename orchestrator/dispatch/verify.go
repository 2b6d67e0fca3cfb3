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
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A Checker checks outputs against what their units were given and the schema of their
// job, whoever made them. Its methods are safe for concurrent use.
type Checker struct {
	jobs       *jobs.Jobs
	specs      *jobspec.Finder
	supervisor *cluster.Supervisor
	texts      outputs.TextCache
	slots      chan struct{} // full while as many outputs are checked as there are processors
}

// NewChecker returns a checker of outputs of jobs in a store.
func NewChecker(j *jobs.Jobs, specs *jobspec.Finder, s *cluster.Supervisor) *Checker {
	return &Checker{jobs: j, specs: specs, supervisor: s, slots: make(chan struct{}, max(2, runtime.GOMAXPROCS(0)))}
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
	s, err := c.subjectOf(ctx, id, u, workers.Given{})
	if err != nil {
		return nil, err
	}
	return s.verify(ctx, data, nil)
}

// A subject is a unit whose output is checked, with what its job says of it.
type subject struct {
	*Checker
	reader jobs.Reader
	job    mapreduce.JobID
	unit   *records.Unit
	given  workers.Given

	// Of a unit that parses a document these are nil.
	spec   *jobspec.Compiled
	stage  *pipeline.Stage
	schema *schema.Schema // of the records that it makes, if it makes any

	evidence output.EvidenceFinder // nil if its stage has no tools
	unread   error                 // that came up where evidence was looked for
}

// subjectOf returns a unit as a subject, for who has something of what it was given at hand.
func (c *Checker) subjectOf(ctx context.Context, id mapreduce.JobID, u *records.Unit, g workers.Given) (*subject, error) {
	s := &subject{Checker: c, reader: c.jobs.Reader(), job: id, unit: u, given: g}
	if u.Kind == mapreduce.KindParse || u.Level < 0 {
		return s, nil
	}

	var err error
	if s.spec, err = c.specs.Job(ctx, id); err != nil {
		return nil, err
	}
	if s.stage, s.schema, err = s.spec.StageOf(u); err != nil {
		return nil, err
	}

	if len(s.stage.Tools) > 0 {
		s.evidence = outputs.FindEvidence(ctx, s.reader, id, u, &s.unread)
	}
	return s, nil
}

// verify says why an output of the unit is refused; nil if it is not. The confidence of the
// unit that its worker states, if any, is lowered to that of the best of its records' values as
// they are computed here.
func (s *subject) verify(ctx context.Context, data []byte, said *float64) (why, err error) {
	if s.unit.Kind == mapreduce.KindParse {
		return payload.CheckParsed(data), nil
	}

	out, why := output.Decode(data)
	switch {
	case why != nil:
		return why, nil
	case s.stage != nil && s.stage.Output.Kind != pipeline.OutputRecords:
		why, err = s.verifyValue(ctx, out)
	case len(out.Value) > 0:
		return errNoRecords, nil
	default:
		why, err = s.verifyRecords(ctx, out)
	}

	// An output is not refused for evidence that could not be read at the moment.
	if err = cmp.Or(s.unread, err); why != nil || err != nil {
		return why, err
	}

	if said != nil && s.schema != nil && len(out.Entries) > 0 {
		*said = min(*said, out.MostConfidence(s.schema))
	}
	return nil, nil
}

// errNoRecords is what the output of a unit is refused with that should make records.
var errNoRecords = errs.New(errs.Invalid, "a unit that makes records reports another value")

// verifyRecords checks records against what the unit was given, and then against their schema.
func (s *subject) verifyRecords(ctx context.Context, out *output.Output) (why, err error) {
	if s.stage == nil || !s.stage.Review.IsSet() {
		if why := unreviewed(s.unit, out); why != nil {
			return why, nil
		}
	}

	switch u := s.unit; {
	case outputs.IsBundle(u):
		why, err = s.verifyDirect(ctx, out)
	case u.Kind == mapreduce.KindMap && u.Source != nil:
		why, err = s.verifyMap(ctx, out)
	case u.Kind == mapreduce.KindReduce, u.Kind == mapreduce.KindFinal:
		why, err = s.verifyReduce(ctx, out)
	default:
		err = errs.New(errs.DataLoss, "unit %s is of the kind %d, which no unit is", u.ID, u.Kind)
	}

	if why != nil || err != nil || s.unread != nil {
		return why, err
	}
	return s.verifyValues(out), nil
}

// verifyMap checks the records of a map unit against its text.
func (s *subject) verifyMap(ctx context.Context, out *output.Output) (why, err error) {
	t := outputs.CitedText(s.unit, s.given.Text)
	if len(out.Citations) > 0 { // else there is nothing to look for in its text
		if t, err = s.text(ctx); err != nil {
			return nil, err
		}
	}

	if out.CitesOutside() {
		if t.Whole, err = s.texts.WholeText(ctx, s.jobs, s.job, s.unit.Source); err != nil {
			return nil, err
		}
	}
	return check.Map(t, s.evidence, out), nil
}

// text returns the text that a map unit reads.
func (s *subject) text(ctx context.Context) (t check.Text, err error) {
	src, text := s.unit.Source, s.given.Text
	if text == nil && src.End > src.Start {
		text, err = s.jobs.Content.Text(ctx, s.job, src.SHA256, src.Start, src.End)
	}
	return outputs.CitedText(s.unit, text), err
}

// documents returns the documents of a unit that works on several.
func (s *subject) documents(ctx context.Context) ([]payload.Document, error) {
	return outputs.Documents(ctx, s.reader, s.job, s.unit)
}

// verifyDirect checks the records of a unit over several documents against these.
func (s *subject) verifyDirect(ctx context.Context, out *output.Output) (why, err error) {
	docs, err := s.documents(ctx)
	if err != nil {
		return nil, err
	}
	return check.Direct(string(s.unit.ID), s.unit.Index, docs, s.evidence, out), nil
}

// verifyReduce checks the records of a reduce against what it was given: the outputs that it
// takes, and the records that these only name.
func (s *subject) verifyReduce(ctx context.Context, out *output.Output) (why, err error) {
	var given, reduced []*output.Output
	err = s.eachInput(ctx, func(in *records.Unit, one *output.Output) error {
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
		// These are the records that the reduce was sent: more of them it does not know.
		wanted := output.Wanted(s.schema, reduced, s.unit.Kind == mapreduce.KindFinal)
		err = outputs.SomeReferred(ctx, s.reader, s.job, wanted, func(_ *records.Unit, one *output.Output, _ []byte) error {
			given = append(given, one)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}

	return check.Reduce(given, out), nil
}

// eachInput visits the units that the unit takes and that have an output, with these
// outputs, in order. They are read unless they are at hand.
func (s *subject) eachInput(ctx context.Context, visit func(*records.Unit, *output.Output) error) error {
	visitInput := func(in *records.Unit) error {
		if in.State != mapreduce.UnitComplete {
			return nil
		}
		one, err := outputs.Of(ctx, s.reader, s.job, in)
		if err != nil {
			return err
		}
		return visit(in, one)
	}

	if s.given.Inputs == nil {
		return outputs.EachInput(ctx, s.reader, s.job, s.unit, visitInput)
	}

	for _, in := range s.given.Inputs {
		if err := visitInput(in); err != nil {
			return err
		}
	}
	return nil
}

// verifyValues says why records do not fit the schema, or returns nil.
func (s *subject) verifyValues(out *output.Output) error {
	u := s.unit
	if len(out.Entries) == 0 {
		return nil
	}
	if why := check.Values(s.schema, out); why != nil || u.Kind != mapreduce.KindMap || outputs.IsBundle(u) {
		return why
	}
	if why := check.Entities(s.schema, out); why != nil || u.Source == nil {
		return why
	}

	if s.spec == nil || !s.spec.Spec.StrictSchema || check.Unreviewed(string(u.ID), out) != nil {
		return nil // what people have decided stands, whatever the record lacks then
	}
	return check.Strict(s.schema, u.Source.Chunks, out)
}
