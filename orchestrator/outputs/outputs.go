// Package outputs reads what units of a job were given and what they came to, in
// the forms that results are assembled from and outputs are checked against. It
// imports the records of store/jobs, and of the workers' side only pure packages.
package outputs

import (
	"context"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Of returns the decoded output of a unit; errs.DataLoss if it cannot be decoded.
func Of(ctx context.Context, s jobs.Reader, id mapreduce.JobID, u *records.Unit) (*output.Output, error) {
	data, err := s.Output(ctx, id, u)
	if err != nil {
		return nil, err
	}
	out, err := output.Decode(data)
	if err != nil {
		return nil, errs.New(errs.DataLoss, "job %s: output of unit %s: %v", id, u.ID, err)
	}
	return out, nil
}

// EachReferred visits the map units that have certain records, which come in
// order, with outputs of just these. It returns errs.DataLoss if one is not there.
func EachReferred(ctx context.Context, s jobs.Reader, id mapreduce.JobID, wanted []output.Open, visit func(*records.Unit, *output.Output) error) error {
	for len(wanted) > 0 {
		// The records of one unit come in one output.
		n := 1
		for n < len(wanted) && wanted[n].Unit == wanted[0].Unit {
			n++
		}

		at := wanted[0].Unit
		units, err := s.UnitsFrom(ctx, id, 0, at, 1)
		if err != nil {
			return err
		}
		if len(units) == 0 || units[0].Index != at {
			return errs.New(errs.DataLoss, "map unit %d is not there, and a reduce names it", at)
		}

		data, err := s.Output(ctx, id, units[0])
		if err != nil {
			return err
		}

		out, err := output.Decode(data)
		if err != nil {
			return errs.New(errs.DataLoss, "output of map unit %d, which a reduce names: %v", at, err)
		}

		if err := visit(units[0], out.Only(wanted[:n])); err != nil {
			return err
		}

		wanted = wanted[n:]
	}
	return nil
}

// IsBundle reports whether a unit works on several documents together: a batch of them,
// or all. They are its one input. A nil unit works on none.
func IsBundle(u *records.Unit) bool { return u != nil && u.Reads().Documents > 0 }

// Documents returns the documents of a unit that works on several; none of a nil one.
func Documents(ctx context.Context, s jobs.Reader, id mapreduce.JobID, u *records.Unit) ([]payload.Document, error) {
	if u == nil {
		return nil, nil
	}

	data, err := s.Text(ctx, id, u.Source.SHA256, u.Source.Start, u.Source.End)
	if err != nil {
		return nil, err
	}

	docs, err := payload.DecodeDocuments(data)
	if err != nil {
		return nil, errs.New(errs.DataLoss, "documents of unit %s: %v", u.ID, err)
	}
	return docs, nil
}

// CitedText returns the text of a map unit as its citations are checked against it.
func CitedText(u *records.Unit, text []byte) check.Text {
	return check.Text{
		Document: string(u.Document), Unit: string(u.ID), Index: u.Index, Hash: output.HashDocument(string(u.Document), u.Source.SHA256),
		Content: text, Length: u.Source.End - u.Source.Start, ByteOffset: u.Source.Start, CharOffset: u.Source.CharOffset,
		Metadata: u.Source.Metadata,
	}
}
