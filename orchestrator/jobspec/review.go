package jobspec

import (
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
)

// checkReview refuses a review that the variables of a job give wrongly, or whose values nobody could
// decide about.
func checkReview(p *pipeline.Pipeline, s *mapreduce.JobSpec) error {
	if _, own := p.Inputs[pipeline.VarReview]; own {
		return nil // it is an input of the pipeline
	}

	r, err := pipeline.ReviewOf(s.Vars)
	if err != nil || !r.IsSet() {
		return err
	}
	if !p.Stages[0].Review.IsSet() {
		return errs.Field("vars."+pipeline.VarReview, "values of the pipeline %s cannot wait for a person: its first stage does not find records in documents, with each: document or chunk", p.Name)
	}
	return nil
}
