package pipeline

import (
	"slices"

	"github.com/coditect/mapreduce/api/pipeline/cascading"
)

// setCascade gives the stage a cascade, and the model that its units then ask as a rule: the
// oracle. What has no model yet is asked of that one.
func (s *Stage) setCascade(c cascading.Cascade) {
	s.Cascade = c.WithDefaults()
	if s.Cascade.IsSet() && s.Model == "" && s.Cascade.Oracle() != cascading.Rules {
		s.Model = s.Cascade.Oracle()
	}
}

// bindCascade returns the stages with the cascade that the variables of a run give to those
// that may have one and have none. A variable that the pipeline has as an input of its own
// gives none, and what is wrong with it cascading.Of says.
func (p *Pipeline) bindCascade(vars map[string]string) Stages {
	if _, own := p.Inputs[cascading.VarCascade]; own {
		return p.Stages
	}
	c, err := cascading.Of(vars)
	if err != nil || !c.IsSet() {
		return p.Stages
	}

	stages := slices.Clone(p.Stages)
	for i, s := range stages {
		if s.takesCascade() && !s.Cascade.IsSet() && s.Model == "" {
			one := *s
			one.setCascade(c)
			stages[i] = &one
		}
	}
	return stages
}

// checkCascade refuses a cascade that makes no sense, or where nothing can be told of answers.
func (c *checker) checkCascade() error {
	if key, rule := c.Cascade.Fault(); key != "" {
		return c.keyError(key, "%s", rule)
	}
	if !c.Cascade.IsSet() {
		return nil
	}

	switch {
	case !c.takesCascade():
		return c.keyError("cascade", "is for stages that find records in documents, with each: document or chunk and no tools")
	case c.Model != "" && c.Model != c.Cascade.Oracle():
		return c.keyError("model", "is %s, and the last member of the cascade %s: leave out model, or name the same", c.Model, c.Cascade.Oracle())
	}
	return nil
}

// takesCascade reports whether a cascade may do the units of the stage.
func (s *Stage) takesCascade() bool {
	return s.From == Documents && (s.Each == EachDocument || s.Each == EachChunk) && s.Output.Kind == OutputRecords && len(s.Tools) == 0
}
