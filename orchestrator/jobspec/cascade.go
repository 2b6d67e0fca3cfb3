package jobspec

import (
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/pipeline/cascading"
	"github.com/coditect/mapreduce/api/pipeline/waiting"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/ascent"
)

// checkCascade refuses a cascade that the variables of a job give wrongly, or that no stage takes.
func checkCascade(p *pipeline.Pipeline, s *mapreduce.JobSpec) error {
	if _, own := p.Inputs[cascading.VarCascade]; own {
		return nil // it is an input of the pipeline
	}

	c, err := cascading.Of(s.Vars)
	if err != nil || !c.IsSet() {
		return err
	}
	if !slices.ContainsFunc(p.Stages, func(stage *pipeline.Stage) bool { return stage.Cascade.IsSet() }) {
		return errs.Field("vars."+cascading.VarCascade, "no stage of the pipeline %s takes a cascade: one does that finds records in documents, with each: document or chunk, no tools, and no model of its own", p.Name)
	}
	return nil
}

// checkMembers refuses members of the cascade of a stage that cannot do its units, or cannot be
// compared. The key of an error is that of the stage.
func (r *Rules) checkMembers(stage *pipeline.Stage, s *mapreduce.JobSpec) (key string, err error) {
	judged := stage.Review.Reasons().Compared
	switch {
	case judged && !stage.Cascade.IsSet():
		return "review", errs.New(errs.Invalid, "has compared, which is for units that a cascade draws, and the stage has none: give it one with --cascade")
	case !stage.Cascade.IsSet():
		return "", nil
	case judged && stage.Review.Then == waiting.Accept:
		return "review", errs.New(errs.Invalid, "has compared, and accepts values about which nobody has decided, which are no person's answers to compare with: let it fail (then: fail)")
	case judged && stage.Kind != "":
		return "kind", errs.New(errs.Invalid, "is for cascades whose last member compares, and by review a person does: leave it out, or the reason compared")
	}

	var known []string
	for i, member := range stage.Members {
		name := mapreduce.DefaultProvider
		if member != cascading.Rules {
			names, err := s.StageModels(member)
			switch {
			case err != nil:
				return "cascade", err
			case len(names) > 1 && i < len(stage.Members)-1:
				return "cascade", errs.New(errs.Invalid, "member %s is %d models; only the last member may be several, of which each is asked while those before it are away", member, len(names))
			}
			name = names[0]
		}

		if slices.Contains(known, name) {
			return "cascade", errs.New(errs.Invalid, "two members are %s: the answers of a member cannot be judged by its own", name)
		}
		known = append(known, name)

		provider, _, _ := strings.Cut(name, "/")
		if r.Provider(provider).Lacks("extract") {
			return "cascade", errs.New(errs.Invalid, "member %s: the provider %s finds no records in documents", member, provider)
		}
	}

	text := s.Schema
	if stage.Output.Schema != nil {
		text = stage.Output.Schema
	}
	parsed, err := schema.Shared(text)
	if err != nil {
		return "", nil // others say so
	}
	_, err = ascent.New(parsed, stage.Per)
	return "per", err
}
