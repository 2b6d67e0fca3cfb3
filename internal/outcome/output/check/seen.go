package check

import (
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
)

// eachSighting calls visit with each mention of an entry that a model saw.
func eachSighting(e *output.Entry, visit func(*merge.Mention) error) error {
	for i := range e.Fields {
		for j := range e.Fields[i].Candidates {
			mentions := e.Fields[i].Candidates[j].Mentions
			for k := range mentions {
				if mentions[k].Seen == nil {
					continue
				}
				if err := visit(&mentions[k]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// sightings checks that what a model saw in pictures is said of a page of a document that the unit
// read, and of nothing that is cited.
func sightings(unit string, read func(document string) bool, e *output.Entry) error {
	return eachSighting(e, func(m *merge.Mention) error {
		s := m.Seen
		switch {
		case len(m.Citations) > 0 || m.Confidence != 0:
			return breachError("%s says that a model saw what it cites, on page %d of %s", unit, s.Page, s.Document)
		case !read(s.Document):
			return breachError("%s says that a model saw a page of %s, which it did not read", unit, s.Document)
		case s.Page < 1 || s.Page > mapreduce.MaxPage:
			return breachError("%s says that a model saw page %d of %s", unit, s.Page, s.Document)
		}
		for _, text := range []string{s.Quote, s.Read} {
			if len(text) > merge.MaxSighting+len("…") || !utf8.ValidString(text) {
				return breachError("%s says that a model saw a text of %d bytes", unit, len(text))
			}
		}
		return nil
	})
}

// checkSightings checks that a reduce says of nothing that a model saw it but of what its inputs do.
func (c *reduceCheck) checkSightings(o *output.Output) error {
	given := make(map[merge.Sighting]bool)
	for _, e := range c.inputs {
		_ = eachSighting(e, func(m *merge.Mention) error { // which returns none
			given[*m.Seen] = true
			return nil
		})
	}

	for i := range o.Entries {
		err := eachSighting(&o.Entries[i], func(m *merge.Mention) error {
			if !given[*m.Seen] || len(m.Citations) > 0 {
				return breachError("a reduce says that a model saw %.80q on page %d of %s, which none of its inputs says", m.Seen.Quote, m.Seen.Page, m.Seen.Document)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
