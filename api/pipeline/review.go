package pipeline

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/api/pipeline/internal/filetree"
	"github.com/coditect/mapreduce/api/pipeline/waiting"
)

// readReview reads the review of a stage. Reasons may be a list, or one text with commas between them.
func (r reader) readReview(n *filetree.Node, at string, to *waiting.Rule) {
	r.ReadMapping(n, at, map[string]filetree.Entry{
		"by": r.ReadText(&to.By), "within": r.ReadText(&to.Within), "then": r.ReadText(&to.Then),
		"when": func(n *filetree.Node, at string) {
			if n.Kind == yaml.SequenceNode {
				r.ReadTexts(&to.When)(n, at)
				return
			}
			var text string
			r.ReadText(&text)(n, at)
			to.When = waiting.SplitReasons(text)
		},
	})
	if to.IsZero() {
		r.RecordFault(at, n.Line, "needs when, which says which values wait: %s", waiting.ReasonsKnown)
	}
}

// checkReview refuses a review that makes no sense, or where nobody could decide about values.
func (c *checker) checkReview() error {
	if key, rule := c.Review.Fault(); key != "" {
		return c.keyError("review."+key, "%s", rule)
	}
	if c.Review.IsSet() && (c.i > 0 || !c.takesReview()) {
		return c.keyError("review", "is for a first stage that finds records in documents, with each: document or chunk; the values of a whole result are reviewed when its job is complete")
	}

	if c.Review.Reasons().Compared && !c.Cascade.IsSet() {
		return c.keyError("review.when", "has compared, which is for units that a cascade draws, and the stage has none")
	}
	if c.Review.Reasons().Compared && c.Review.Then == waiting.Accept {
		return c.keyError("review.then", "is accept, and a value about which nobody has decided is no person's answer to compare with: say fail")
	}
	if c.Review.Reasons().Compared && c.Kind != "" {
		return c.keyError("kind", "is for cascades whose last member compares, and by review a person does: leave it out, or the reason compared")
	}
	return nil
}

// takesReview reports whether values of the stage, if it is the first, can wait for a person: each has to
// be of one record of one document.
func (s *Stage) takesReview() bool {
	return s.From == Documents && (s.Each == EachDocument || s.Each == EachChunk) && s.Output.Kind == OutputRecords
}

// bindReview returns the stages with the review that the variables of a run give to the first, if it can
// have one and has none. An input of the pipeline of the same name gives none.
func (p *Pipeline) bindReview(vars map[string]string) Stages {
	if _, own := p.Inputs[waiting.Var]; own {
		return p.Stages
	}
	r, err := waiting.Of(vars)
	if err != nil || !r.IsSet() {
		return p.Stages
	}

	stages := slices.Clone(p.Stages)
	if s := stages[0]; s.takesReview() && !s.Review.IsSet() {
		one := *s
		one.Review = r
		stages[0] = &one
	}
	return stages
}

// Reviews reports whether values of a job may wait for a person, given its variables and the definition of
// its own pipeline, if it has one.
func Reviews(vars map[string]string, definition []byte) bool {
	if r, err := waiting.Of(vars); err == nil && r.IsSet() {
		return true
	}
	if len(definition) == 0 {
		return false
	}
	p, err := Parse("pipeline", definition)
	return err == nil && p.Stages[0].Review.IsSet()
}
