package result

import (
	"context"
	"math"

	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/text/confidence"
	"github.com/coditect/mapreduce/internal/text/ground"
)

// weighRecognition lowers the confidence in values whose quotes were recognised in pictures, by how
// sure recognition was of them. Of several quotes of a value the surest counts: a value that also
// stands in a text is no less sure for a picture of it.
func (r *result) weighRecognition(ctx context.Context, f *found) error {
	for field, ids := range f.Citations {
		sure, ok := f.Confidence[field]
		if !ok || len(ids) == 0 {
			continue
		}

		form, factor := confidence.FormOf(r.schema.Field(field)), 0.0
		for _, id := range ids {
			of, err := r.recognitionOf(ctx, f, form, id)
			if err != nil {
				return err
			}
			factor = max(factor, of)
		}
		if factor < 1 {
			f.Confidence[field] = math.Round(sure*factor*1e6) / 1e6
		}
	}
	return nil
}

// recognitionOf returns the factor of one citation of a value of a form.
func (r *result) recognitionOf(ctx context.Context, f *found, form confidence.Form, id merge.Citation) (float64, error) {
	c := f.in.Citations[id]
	if ground.Grade(c.Grade) == ground.Lookalike { // the letters of the value are those that a model saw
		return 1, nil
	}

	recognised, err := r.locations.IsRecognised(ctx, c.Document)
	if err != nil || !recognised {
		return 1, err
	}

	at, err := r.locations.Locate(ctx, c.Document, c.ByteStart, c.ByteEnd)
	if err != nil || at == nil {
		return 1, err
	}
	return confidence.OfRecognition(form, at.Recognised), nil
}
