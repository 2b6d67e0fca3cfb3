package jobspec

import (
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/pipeline/waiting"
)

// checkReview refuses a review that the variables of a job give wrongly, or whose values nobody could
// decide about.
func checkReview(p *pipeline.Pipeline, s *mapreduce.JobSpec) error {
	if _, own := p.Inputs[waiting.Var]; own {
		return nil // it is an input of the pipeline
	}

	r, err := waiting.Of(s.Vars)
	if err != nil || !r.IsSet() {
		return err
	}
	if !p.Stages[0].Review.IsSet() {
		return errs.Field("vars."+waiting.Var, "values of the pipeline %s cannot wait for a person: its first stage does not find records in documents, with each: document or chunk", p.Name)
	}
	return nil
}
