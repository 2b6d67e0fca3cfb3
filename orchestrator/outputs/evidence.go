package outputs

import (
	"context"
	"slices"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// EvidenceOf returns evidence of a unit with its text, by its document; nil if the unit has
// none of that id.
func EvidenceOf(ctx context.Context, s jobs.Reader, id mapreduce.JobID, u *records.Unit, document mapreduce.DocumentID) (*mapreduce.Evidence, []byte, error) {
	if !document.IsEvidence() {
		return nil, nil, nil
	}

	all, err := s.Evidence(ctx, id, u)
	if err != nil {
		return nil, nil, err
	}

	n := slices.IndexFunc(all, func(e mapreduce.Evidence) bool { return e.Document == document })
	if n < 0 {
		return nil, nil, nil
	}

	text := make([]byte, 0, all[n].Bytes)
	err = s.EvidenceText(ctx, id, u.ID, n, &all[n], func(part []byte) error {
		text = append(text, part...)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return &all[n], text, nil
}

// FindEvidence returns what finds evidence of a unit that can be cited. What cannot be read
// is as if it were not there, and the error is left in failed: whoever checks an output
// looks there first.
func FindEvidence(ctx context.Context, s jobs.Reader, id mapreduce.JobID, u *records.Unit, failed *error) output.EvidenceFinder {
	return func(document string) *output.Evidence {
		e, text, err := EvidenceOf(ctx, s, id, u, mapreduce.DocumentID(document))
		if err != nil {
			*failed = err
		}
		if err != nil || e == nil || e.IsPicture() {
			return nil
		}
		return output.EvidenceOf(e, text)
	}
}

// WithoutEvidence returns the error for a citation of evidence that its unit does not have.
func WithoutEvidence(unit mapreduce.UnitID, document mapreduce.DocumentID) error {
	return errs.New(errs.NotFound, "unit %q has no evidence %s", unit, document)
}
