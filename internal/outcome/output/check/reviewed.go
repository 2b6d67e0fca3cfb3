package check

import (
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
)

// Unreviewed checks that an output says of no value that a person has decided about it: that of a unit
// whose stage has none wait.
func Unreviewed(unit string, o *output.Output) error {
	for i := range o.Entries {
		for path, m := range o.Entries[i].Mentions() {
			if m.Reviewed {
				return breachError("%s says that a person has decided about %s, and nobody was asked", unit, path)
			}
		}
	}
	return nil
}

// checkReviewed checks that a reduce says of no value that a person has decided about it but of what its
// inputs do.
func (c *reduceCheck) checkReviewed(o *output.Output) error {
	type value struct{ field, key string }
	given := make(map[value]bool)
	each := func(e *output.Entry, visit func(field string, one *merge.Candidate)) {
		for i := range e.Fields {
			for j := range e.Fields[i].Candidates {
				if one := &e.Fields[i].Candidates[j]; one.IsReviewed() {
					visit(e.Fields[i].Path, one)
				}
			}
		}
	}
	for _, e := range c.inputs {
		each(e, func(field string, one *merge.Candidate) { given[value{field, one.Key}] = true })
	}

	var err error
	for i := range o.Entries {
		each(&o.Entries[i], func(field string, one *merge.Candidate) {
			if !given[value{field, one.Key}] && err == nil {
				err = breachError("a reduce says that a person has decided for %.80q of %s, which none of its inputs says", output.Show(one.Value), field)
			}
		})
	}
	return err
}
