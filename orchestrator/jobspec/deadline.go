package jobspec

import (
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/parameters"
)

// checkDeadline refuses a deadline by which nothing could be chosen.
func (r *Rules) checkDeadline(d *draft) error {
	s := &d.spec
	if s.Deadline.IsZero() || s.Replay != "" {
		return nil
	}

	if !r.AsksModels(s) {
		return errs.Field("deadline", "chooses the tier in which models are asked, and no model is: name a provider that asks one, or leave this out")
	}
	name := string(parameters.Tier)
	if _, own := d.pipeline.Inputs[name]; !own && s.Vars[name] != "" {
		return errs.Field("vars."+name, "is %s, and the deadline chooses the tier: leave out one of them", s.Vars[name])
	}
	return nil
}
