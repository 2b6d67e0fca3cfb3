package jobspec

import (
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/parameters"
)

// setDeadline has a job end by when its pipeline says, unless the job says so itself, or nothing could be chosen: it asks
// no model, or in a tier that it names.
func (r *Rules) setDeadline(d *draft) {
	s := &d.spec
	if d.err != nil || !s.Deadline.IsZero() || s.Replay != "" || s.Vars[string(parameters.Tier)] != "" || !r.AsksModels(s) {
		return
	}
	s.Deadline = d.pipeline.Due(time.Now())
}

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
