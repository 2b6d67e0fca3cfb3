package output

import (
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/text/confidence"
	"github.com/coditect/mapreduce/internal/text/ground"
)

// Believed returns what is known of an entity with confidences that its quotes, its values
// and the schema allow: those that whoever made the output states may be lower, as only they
// know what else was found, and never higher. Citations are those of the output.
func Believed(s *schema.Schema, a merge.Accumulator, citations map[merge.Citation]Citation) merge.Accumulator {
	copied := false
	for i := range a.Fields {
		p := s.Field(a.Fields[i].Path)
		for j := range a.Fields[i].Candidates {
			c := &a.Fields[i].Candidates[j]
			for k := range c.Mentions {
				if c.Mentions[k].Reviewed { // whoever took the output has checked who decided what
					continue
				}
				most := mostOf(p, c, &c.Mentions[k], citations)

				if c.Mentions[k].Confidence <= most {
					continue
				}

				// The accumulator may be an input's, which others read at the same time: it
				// is copied before its first change.
				if !copied {
					a, copied = copyMentions(a), true
					c = &a.Fields[i].Candidates[j]
				}
				c.Mentions[k].Confidence = most
			}
		}
	}

	return Derived(s, a, citations)
}

// MostConfidence returns the highest confidence of a value of the output that its quotes, its
// values and the schema allow; 0 if there is none.
func (o *Output) MostConfidence(s *schema.Schema) float64 {
	most := int64(0)
	for i := range o.Entries {
		for _, f := range o.Entries[i].Fields {
			p := s.Field(f.Path)
			for j := range f.Candidates {
				for k := range f.Candidates[j].Mentions {
					if f.Candidates[j].Mentions[k].Reviewed {
						return 1
					}
					most = max(most, mostOf(p, &f.Candidates[j], &f.Candidates[j].Mentions[k], o.Citations))
				}
			}
		}
	}

	return float64(most) / 1e6
}

// copyMentions returns an entity that has its fields, candidates and mentions for itself: those
// of an output may be read elsewhere.
func copyMentions(a merge.Accumulator) merge.Accumulator {
	a.Fields = slices.Clone(a.Fields)
	for i := range a.Fields {
		f := &a.Fields[i]
		f.Candidates = slices.Clone(f.Candidates)
		for j := range f.Candidates {
			f.Candidates[j].Mentions = slices.Clone(f.Candidates[j].Mentions)
		}
	}
	return a
}

// mostOf returns the most confidence that a mention can have, in millionths: that of its best
// citation, or of all that it cites together.
func mostOf(p *schema.Property, c *merge.Candidate, m *merge.Mention, citations map[merge.Citation]Citation) int64 {
	if p != nil && p.Hints.Derived {
		return mostOfDerived(p, c, m, citations)
	}

	most, grade := 0.0, ground.Grade("")
	quotes := make([]string, 0, len(m.Citations))
	value := withoutIDs(c.Value)

	for _, id := range m.Citations {
		cite := citations[id]
		e := confidence.Evidence{Property: p, Value: value, Quote: cite.Quote, Grade: ground.Grade(cite.Grade)}
		most = max(most, confidence.Most(e))
		quotes = append(quotes, cite.Quote)
		if gradeRank(cite.Grade) > gradeRank(string(grade)) {
			grade = ground.Grade(cite.Grade)
		}
	}

	// Several quotes may support a value together that none of them supports alone.
	if len(quotes) > 1 {
		most = max(most, confidence.Most(confidence.Evidence{Property: p, Value: value, Quote: strings.Join(quotes, "\n"), Grade: grade}))
	}

	return merge.NewMention(nil, most, 0).Confidence
}
