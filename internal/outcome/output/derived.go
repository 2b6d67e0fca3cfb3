package output

import (
	"slices"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/text/confidence"
	"github.com/coditect/mapreduce/internal/text/derive"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/internal/text/refs"
)

// Derived returns what is known of an entity with what its derived values come to by their
// formulas and quotes: those that do not follow are refused when the entity is resolved.
// Citations are those of the output. Whoever resolves an entity calls it, Believed or
// habits.Habits.Settle before.
func Derived(s *schema.Schema, a merge.Accumulator, citations map[merge.Citation]Citation) merge.Accumulator {
	return DeriveBy(s, a, func(p *schema.Property, value any, m *merge.Mention) derive.Derivation {
		return derive.Of(p, value, m.Formula, QuotesOf(m, citations, nil), false)
	})
}

// DeriveBy returns an entity whose mentions of derived values have what came of them.
func DeriveBy(s *schema.Schema, a merge.Accumulator, judge func(*schema.Property, any, *merge.Mention) derive.Derivation) merge.Accumulator {
	if !s.HasDerived() || !slices.ContainsFunc(a.Fields, func(f merge.Field) bool { return isDerived(s, f.Path) }) {
		return a
	}

	// What a mention comes to is written into a copy: the entity may be an input's.
	a = copyMentions(a)

	for i := range a.Fields {
		p := s.Field(a.Fields[i].Path)
		if !isDerived(s, a.Fields[i].Path) {
			continue
		}
		for j := range a.Fields[i].Candidates {
			c := &a.Fields[i].Candidates[j]
			for k := range c.Mentions {
				if m := &c.Mentions[k]; len(m.Citations) > 0 {
					d := judge(p, c.Value, m)
					m.Derived = &d
				}
			}
		}
	}

	return a
}

func isDerived(s *schema.Schema, path string) bool {
	p := s.Field(path)
	return p != nil && p.Hints.Derived
}

// QuotesOf returns the quotes that a mention rests on. style, if any, adds what is known of the
// document of one.
func QuotesOf(m *merge.Mention, citations map[merge.Citation]Citation, style func(q *derive.Quote, document string)) []derive.Quote {
	quotes := make([]derive.Quote, 0, len(m.Citations))
	for _, id := range m.Citations {
		cite := citations[id]
		q := derive.Quote{Text: cite.Quote}
		if style != nil {
			style(&q, cite.Document)
		}
		quotes = append(quotes, q)
	}
	return quotes
}

// mostOfDerived returns the most confidence that a mention of a derived value can have.
func mostOfDerived(p *schema.Property, c *merge.Candidate, m *merge.Mention, citations map[merge.Citation]Citation) int64 {
	if len(m.Citations) == 0 {
		return 0
	}

	worst := 1.0
	for _, id := range m.Citations {
		worst = min(worst, confidence.OfGrade(ground.Grade(citations[id].Grade)))
	}

	d := derive.Of(p, c.Value, m.Formula, QuotesOf(m, citations, nil), false)
	return merge.NewMention(nil, d.Confidence(worst), 0).Confidence
}

// A DerivedValue is an entry of _derived: how the value of a derived field of a record follows
// from what it cites.
type DerivedValue struct {
	Formula   *string  `json:"formula"`  // null if there is none
	Computed  *string  `json:"computed"` // what it comes to; null if nothing was computed
	Citations []string `json:"citations"`
}

// CitedOf returns what the values of a record rest on, by field: those that stand in their
// quotes, and, apart, those that follow from them. spell names citations.
func CitedOf(s *schema.Schema, r *merge.Result, spell func(refs.ID) string) (cited map[string][]string, derived map[string]DerivedValue) {
	cited = make(map[string][]string, len(r.Citations))
	for field, ids := range r.Citations {
		names := make([]string, len(ids))
		for i, id := range ids {
			names[i] = spell(refs.ID([]byte(id)))
		}

		if !isDerived(s, field) {
			cited[field] = names
			continue
		}

		if derived == nil {
			derived = make(map[string]DerivedValue)
		}

		// Without a computation the formula says nothing, and both are null.
		one, d := DerivedValue{Citations: names}, r.Derived[field]
		if d.Computed != "" {
			one.Formula, one.Computed = &d.Formula, &d.Computed
		}
		derived[field] = one
	}
	return cited, derived
}
