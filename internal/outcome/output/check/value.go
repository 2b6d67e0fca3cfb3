package check

import (
	"slices"

	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/jsonvalue"
	"github.com/coditect/mapreduce/internal/text/claims"
)

// Bounds of what is kept of judgements.
const (
	maxJudged      = 10_000
	maxJudgedBytes = 4 << 10 // of the texts of one
)

// checkJudged refuses judgements of references that the value does not have, or too many.
func checkJudged(o *output.Output) error {
	if len(o.Judged) > maxJudged {
		return breachError("there are %d judgements; at most %d are kept", len(o.Judged), maxJudged)
	}

	for _, j := range o.Judged {
		if _, ok := o.Citations[merge.Citation(j.Citation[:])]; !ok || len(j.Claim)+len(j.Reason) > maxJudgedBytes || !slices.Contains(claims.Grades(), claims.Grade(j.Grade)) {
			return breachError("a judgement %.20q of %.80q is none of a reference of the value", j.Grade, j.Claim)
		}
	}
	return nil
}

// Value checks the output of a unit that read others' outputs and came to a
// value: that it is canonical and fits the form, and that it cites only what these
// cite, all that it refers to and no more. A unit with tools may cite texts of its own as
// well; of any other own is nil.
func Value(inputs []*output.Output, own Texts, f *jsonvalue.Form, o *output.Output) error {
	if len(o.Entries)+len(o.Open)+len(o.Dropped) > 0 {
		return breachError("a unit that comes to a value reports records")
	}

	if err := f.CheckValue(o.Value); err != nil {
		return err
	}
	if err := checkJudged(o); err != nil {
		return err
	}

	used := o.UsedCitations()
	for id := range o.Citations {
		if !used[id] {
			return breachError("the value carries the citation of %.80q without referring to it", o.Citations[id].Quote)
		}
	}

	c := &reduceCheck{given: make(map[merge.Citation][]output.Citation)}
	for _, in := range inputs {
		for id, cite := range in.Citations {
			c.given[id] = append(c.given[id], cite)
		}
	}

	if own == nil {
		if err := c.checkCitations(o); err != nil {
			return err
		}
		return checkQuoted(o, f)
	}

	// What no input cites has to be the unit's own finding, and stand in its own texts.
	found, rest := c.ownCitations(o)
	if err := checkCited("the unit", own, found); err != nil {
		return err
	}

	if err := c.checkGiven(o, rest); err != nil {
		return err
	}

	return checkQuoted(o, f)
}

// checkQuoted checks that what has to stand in a quote does, by the output's citations.
func checkQuoted(o *output.Output, f *jsonvalue.Form) error {
	if !f.HasQuoted() {
		return nil
	}
	v, err := jsonvalue.Decode(o.Value)
	if err != nil {
		return err
	}
	return f.CheckQuoted(v, o.QuoteOf)
}
