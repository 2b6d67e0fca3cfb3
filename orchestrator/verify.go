package orchestrator

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/worker/output"
)

// verify checks an output against what its unit was given and the schema of its
// job, whoever made it. It says why the output is refused, or returns an error if
// what it has to be checked against cannot be read. It implements jobs.Verify.
func (o *Orchestrator) verify(ctx context.Context, id mapreduce.JobID, u *storagev1.Unit, data []byte) (why, err error) {
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
	return o.verifyValues(ctx, id, u, out)
}

// errNoKind is what a unit is that no unit can be.
func errNoKind(u *storagev1.Unit) error {
	return errs.New(errs.DataLoss, "unit %s is of the kind %d, which no unit is", u.UnitId, u.Kind)
}

// verifyValues checks what an output says against the schema.
func (o *Orchestrator) verifyValues(ctx context.Context, id mapreduce.JobID, u *storagev1.Unit, out *output.Output) (why, err error) {
	if len(out.Entries) == 0 {
		return nil, nil
	}
	s, err := o.schemaOf(ctx, id)
	if err != nil {
		return nil, err
	}
	if why := output.CheckValues(s, out); why != nil || mapreduce.UnitKind(u.Kind) != mapreduce.KindMap {
		return why, nil
	}
	return output.CheckEntities(s, out), nil
}

// errNoText is what the output of a parse unit is refused with.
var errNoText = errs.New(errs.Invalid, "what a document was parsed into is not UTF-8")

// verifyMap checks the output of a map unit against its text.
func (o *Orchestrator) verifyMap(ctx context.Context, id mapreduce.JobID, u *storagev1.Unit, text []byte, out *output.Output) (why, err error) {
	src := u.Source
	if text == nil && src.End > src.Start {
		if text, err = o.jobs.Text(ctx, id, src.Sha256, src.Start, src.End); err != nil {
			return nil, err
		}
	}
	t := citedText(u, text)
	if out.CitesOutside() {
		if t.Whole, err = o.library.whole(ctx, o.jobs, id, src); err != nil {
			return nil, err
		}
	}
	return output.CheckMap(t, out), nil
}

// citedText is the text of a map unit as its citations are checked against it.
func citedText(u *storagev1.Unit, text []byte) output.Text {
	return output.Text{
		Document: u.DocumentId, Unit: u.UnitId, Index: u.Index, Hash: output.HashDocument(u.DocumentId, u.Source.Sha256),
		Content: text, ByteOffset: u.Source.Start, CharOffset: u.Source.CharOffset,
	}
}

// verifyDirect checks the output of the direct unit against its documents.
func (o *Orchestrator) verifyDirect(ctx context.Context, id mapreduce.JobID, u *storagev1.Unit, out *output.Output) (why, err error) {
	docs, err := o.bundled(ctx, id, u)
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
		if in.Level > 0 && named(one) {
			reduced = append(reduced, one)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(reduced) > 0 {
		s, err := o.schemaOf(ctx, id)
		if err != nil {
			return nil, err
		}
		wanted := output.Wanted(s, reduced, mapreduce.UnitKind(u.Kind) == mapreduce.KindFinal)
		err = o.someReferred(ctx, id, wanted, func(_ *storagev1.Unit, one *output.Output, _ []byte) { given = append(given, one) })
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
	whole := r.Chunks == 0 && len(r.Output) <= mapreduce.ChunkBytes || len(r.Output) == 0 && mapreduce.FitsChunks(r.Chunks, r.Length)
	switch {
	case r.Outcome == mapreduce.Done && !whole:
		return fmt.Errorf("an output of %d bytes in %d chunks, with %d bytes beside them", r.Length, r.Chunks, len(r.Output))
	case r.Size < 0 || r.Size > maxReportTokens:
		return fmt.Errorf("an output of %d tokens", r.Size)
	case !(r.Confidence >= 0 && r.Confidence <= 1):
		return fmt.Errorf("a confidence of %v", r.Confidence)
	case !counts(r.Tokens.In) || !counts(r.Tokens.Out) || r.CostMicros < 0 || r.CostMicros > maxReportMicros:
		return fmt.Errorf("%d and %d tokens, and a cost of %d", r.Tokens.In, r.Tokens.Out, r.CostMicros)
	}
	return nil
}

func counts(tokens int64) bool { return tokens >= 0 && tokens <= maxReportTokens }
