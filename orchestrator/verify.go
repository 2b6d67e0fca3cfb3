package orchestrator

import (
	"context"
	"crypto/sha256"
	"fmt"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/worker/output"
)

// verifyOutput checks an output against what its unit was given and the schema of its
// job, whoever made it. It says why the output is refused, or returns an error if
// what it has to be checked against cannot be read. It implements jobs.Verify.
func (o *Orchestrator) verifyOutput(ctx context.Context, id mapreduce.JobID, u *storagev1.Unit, data []byte) (why, err error) {
	return o.verifyText(ctx, id, u, nil, data)
}

// verifyText is verify for who has the text of a unit at hand, or nil.
func (o *Orchestrator) verifyText(ctx context.Context, id mapreduce.JobID, u *storagev1.Unit, text, data []byte) (why, err error) {
	if mapreduce.UnitKind(u.Kind) == mapreduce.KindParse {
		if !utf8.Valid(data) {
			return errNoText, nil
		}
		return nil, nil
	}
	out, why := output.Decode(data)
	if why != nil {
		return why, nil
	}
	stage, schema, err := o.specs.StageOf(ctx, id, u)
	switch {
	case err != nil:
		return nil, err
	case stage != nil && stage.Output.Kind != pipeline.OutputRecords:
		return o.verifyValue(ctx, id, u, stage, out)
	case len(out.Value) > 0:
		return errNoRecords, nil
	}
	switch mapreduce.UnitKind(u.Kind) {
	case mapreduce.KindMap:
		why, err = o.verifyMap(ctx, id, u, text, out)
	case mapreduce.KindDirect:
		why, err = o.verifyDirect(ctx, id, u, out)
	case mapreduce.KindReduce, mapreduce.KindFinal:
		why, err = o.verifyReduce(ctx, id, u, out)
	default:
		err = errNoKind(u)
	}
	if why != nil || err != nil {
		return why, err
	}
	return o.verifyValues(schema, u, out), nil
}

// errNoRecords is what the output of a unit is refused with that should make records.
var errNoRecords = errs.New(errs.Invalid, "a unit that makes records reports another value")

// verifyValue checks the output of a unit whose stage makes no records against the
// form of the stage and what the unit was given: it may refer to nothing else.
func (o *Orchestrator) verifyValue(ctx context.Context, id mapreduce.JobID, u *storagev1.Unit, stage *pipeline.Stage, out *output.Output) (why, err error) {
	form, err := output.NewForm(stage.Output.Form())
	if err != nil {
		return nil, errs.New(errs.DataLoss, "form of stage %s: %v", stage.Name, err)
	}
	var given []*output.Output
	if u.Inputs == nil { // it was given documents, which a value does not cite
		return output.CheckValue(given, form, out), nil
	}
	err = o.eachInput(ctx, id, u, func(in *storagev1.Unit) error {
		if mapreduce.UnitState(in.Status) != mapreduce.UnitComplete {
			return nil
		}
		one, err := o.outputOf(ctx, id, in)
		if err != nil {
			return err
		}
		if in.Level > 0 && namesRecordsOnly(one) {
			if one, err = o.resolveRecords(ctx, id, in, one); err != nil {
				return err
			}
		}
		given = append(given, one)
		return nil
	})
	return output.CheckValue(given, form, out), err
}

// errNoKind is what a unit is that no unit can be.
func errNoKind(u *storagev1.Unit) error {
	return errs.New(errs.DataLoss, "unit %s is of the kind %d, which no unit is", u.UnitId, u.Kind)
}

// verifyValues says why the records of an output do not fit the schema, or returns
// nil.
func (o *Orchestrator) verifyValues(s *schema.Schema, u *storagev1.Unit, out *output.Output) (why error) {
	if len(out.Entries) == 0 {
		return nil
	}
	if why := output.CheckValues(s, out); why != nil || mapreduce.UnitKind(u.Kind) != mapreduce.KindMap {
		return why
	}
	return output.CheckEntities(s, out)
}

// errNoText is what the output of a parse unit is refused with.
var errNoText = errs.New(errs.Invalid, "what a document was parsed into is not UTF-8")

// verifyMap checks the output of a map unit against its text.
func (o *Orchestrator) verifyMap(ctx context.Context, id mapreduce.JobID, u *storagev1.Unit, text []byte, out *output.Output) (why, err error) {
	src := u.Source
	if text == nil && src.End > src.Start && len(out.Citations) > 0 { // else there is nothing to look for in it
		if text, err = o.jobs.Text(ctx, id, src.Sha256, src.Start, src.End); err != nil {
			return nil, err
		}
	}
	t := outputs.CitedText(u, text)
	if out.CitesOutside() {
		if t.Whole, err = o.textCache.wholeText(ctx, o.jobs, id, src); err != nil {
			return nil, err
		}
	}
	return output.CheckMap(t, out), nil
}

// verifyDirect checks the output of the direct unit against its documents.
func (o *Orchestrator) verifyDirect(ctx context.Context, id mapreduce.JobID, u *storagev1.Unit, out *output.Output) (why, err error) {
	docs, err := o.directDocuments(ctx, id, u)
	if err != nil {
		return nil, err
	}
	return output.CheckDirect(u.UnitId, u.Index, docs, out), nil
}

// verifyReduce checks the output of a reduce against what it was given: the outputs
// that it takes, and the records that these only name.
func (o *Orchestrator) verifyReduce(ctx context.Context, id mapreduce.JobID, u *storagev1.Unit, out *output.Output) (why, err error) {
	var given, reduced []*output.Output
	err = o.eachInput(ctx, id, u, func(in *storagev1.Unit) error {
		if mapreduce.UnitState(in.Status) != mapreduce.UnitComplete {
			return nil
		}
		one, err := o.outputOf(ctx, id, in)
		if err != nil {
			return err
		}
		given = append(given, one)
		if in.Level > 0 && namesRecordsOnly(one) {
			reduced = append(reduced, one)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(reduced) > 0 {
		_, s, err := o.specs.StageOf(ctx, id, u)
		if err != nil {
			return nil, err
		}
		wanted := output.Wanted(s, reduced, mapreduce.UnitKind(u.Kind) == mapreduce.KindFinal)
		err = o.someReferred(ctx, id, wanted, func(_ *storagev1.Unit, one *output.Output, _ []byte) error {
			given = append(given, one)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return output.CheckReduce(given, out), nil
}

// Bounds of what a report counts: what is beyond them nobody spent, and sums of
// them would not fit their counters.
const (
	maxReportTokens = 1 << 40
	maxReportMicros = 1 << 50
)

// checkReport says why what a report tells of an output, and of what it cost, cannot
// be so.
func checkReport(r *mapreduce.Report) error {
	inline := r.Length == 0 && len(r.SHA256) == 0 && len(r.Output) <= mapreduce.MaxInline
	put := len(r.Output) == 0 && r.Length > 0 && r.Length <= mapreduce.MaxOutput && len(r.SHA256) == sha256.Size
	switch {
	case r.Outcome == mapreduce.Done && !inline && !put:
		return fmt.Errorf("an output of %d bytes that was put, with a hash of %d bytes and %d bytes beside it", r.Length, len(r.SHA256), len(r.Output))
	case r.Size < 0 || r.Size > maxReportTokens:
		return fmt.Errorf("an output of %d tokens", r.Size)
	case !(r.Confidence >= 0 && r.Confidence <= 1):
		return fmt.Errorf("a confidence of %v", r.Confidence)
	case !countsTokens(r.Tokens.In) || !countsTokens(r.Tokens.Out) || r.CostMicros < 0 || r.CostMicros > maxReportMicros:
		return fmt.Errorf("%d and %d tokens, and a cost of %d", r.Tokens.In, r.Tokens.Out, r.CostMicros)
	}
	return nil
}

func countsTokens(tokens int64) bool { return tokens >= 0 && tokens <= maxReportTokens }
