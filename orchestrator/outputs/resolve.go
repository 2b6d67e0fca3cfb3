package outputs

import (
	"context"
	"errors"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// EachLeaf visits the units of level 0 with an output that a reduce of records stands
// for. A tree passes on only the names of records that it did not merge.
func EachLeaf(ctx context.Context, s jobs.Reader, id mapreduce.JobID, u *records.Unit, visit func(leaf *records.Unit) error) error {
	in := u.Takes()
	for from := in.MapFirst; from < in.MapEnd; {
		page, err := s.UnitsFrom(ctx, id, 0, from, 256)
		if err != nil || len(page) == 0 {
			return err
		}

		for _, leaf := range page {
			if from = leaf.Index + 1; leaf.State != mapreduce.UnitComplete || leaf.Index >= in.MapEnd {
				continue
			}
			if err := visit(leaf); err != nil {
				return err
			}
		}
	}
	return nil
}

// Resolve returns the output of a reduce with all records that it stands for.
func Resolve(ctx context.Context, s jobs.Reader, id mapreduce.JobID, u *records.Unit, out *output.Output) (*output.Output, error) {
	var parts []*output.Output
	err := EachLeaf(ctx, s, id, u, func(leaf *records.Unit) error {
		part, err := Of(ctx, s, id, leaf)
		if err != nil {
			return err
		}
		parts = append(parts, part)
		return nil
	})
	return out.Complete(parts), err
}

// NamesRecordsOnly reports whether an output only names some of its records.
func NamesRecordsOnly(o *output.Output) bool { return len(o.Open) > 0 || len(o.Entries) > 0 }

// SomeReferred visits the outputs with records that inputs name, with their
// encoding, as many of them as a unit is sent.
func SomeReferred(ctx context.Context, s jobs.Reader, id mapreduce.JobID, wanted []output.Open, visit func(*records.Unit, *output.Output, []byte) error) error {
	more := 0 // bytes
	err := EachReferred(ctx, s, id, wanted, func(u *records.Unit, out *output.Output) error {
		data, err := out.Encode()
		if err == nil {
			err = visit(u, out, data)
		}

		if more += len(data); err == nil && more >= referredBytes {
			return errEnough
		}
		return err
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// errEnough ends the reading of records that inputs name. Those that are not sent
// go on as names, and are merged when the result is read.
var errEnough = errors.New("enough was read")

// referredBytes bounds the records that the inputs of a unit only name, as it is sent them.
const referredBytes = 32 << 20
