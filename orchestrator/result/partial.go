package result

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

const (
	partialBatch = 64      // outputs that a partial result merges at once
	partialRoom  = 4 << 20 // bytes of what it holds merged
)

// mergePartial makes of the map units that are complete what the last reduce would,
// as far as the schema decides it, if the job ended now. More units may end
// while the result is read, so it is noted first which ones it is of.
func (r *reading) mergePartial(ctx context.Context) error {
	p := &partialMerge{r: r, sum: &output.Output{}}
	r.taken = &outputs.Spans{}

	err := r.units.VisitLevel(ctx, 0, func(u *records.Unit) error {
		if u.State != mapreduce.UnitComplete {
			return nil
		}
		out, err := outputs.Of(ctx, r.source, r.job.ID, u)
		if err != nil {
			return err
		}

		r.taken.AddNumber(u.Index)
		return p.addOutput(ctx, out)
	})
	if err == nil {
		err = p.mergeBatch(ctx, true)
	}
	if err != nil {
		return err
	}

	r.reduceTo(p.sum)
	return nil
}

// A partialMerge merges outputs of map units batch by batch, so that it holds what was
// merged, and of all else names.
type partialMerge struct {
	r     *reading
	sum   *output.Output
	batch []*output.Output
}

func (p *partialMerge) addOutput(ctx context.Context, out *output.Output) error {
	if p.batch = append(p.batch, out); len(p.batch) < partialBatch {
		return nil
	}
	return p.mergeBatch(ctx, false)
}

func (p *partialMerge) mergeBatch(ctx context.Context, last bool) error {
	inputs := append([]*output.Output{p.sum}, p.batch...)
	var referred []*output.Output
	err := outputs.EachReferred(ctx, p.r.source, p.r.job.ID, output.Wanted(p.r.schema, inputs, last), func(_ *records.Unit, out *output.Output) error {
		referred = append(referred, out)
		return nil
	})
	if err != nil {
		return err
	}

	p.sum, err = output.Reduction{Schema: p.r.schema, Last: last, Room: partialRoom}.Of(inputs, referred)
	p.batch = nil
	return err
}
