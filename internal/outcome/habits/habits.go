// Package habits reads dates and numbers as the documents of a job write them: a value that can be
// read in two ways is settled by what its document shows, or its field.
//
// It is pure and imports nothing of the project but api/schema and pure packages.
package habits

import (
	"slices"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/derive"
)

// Habits is what the texts of a job tell of how their dates and numbers are written. The
// zero value knows nothing.
type Habits struct {
	dates   DateOrders
	numbers NumberStyles
}

// AddText adds what the text of a document tells, or a piece of it. A text of several
// documents has no name.
func (h *Habits) AddText(document string, dates calendar.OrderCount, numbers format.NumberCount) {
	h.dates.Add(document, dates)
	h.numbers.Add(document, numbers)
}

// AddQuote adds what the quote of a value tells of its field.
func (h *Habits) AddQuote(s *schema.Schema, document, field, quote string) {
	p := s.Field(field)

	if p != nil && p.Type == schema.Array {
		p = p.Items
	}
	if p != nil && !p.Hints.Derived && (p.Numeric() || p.Type == schema.Object) {
		h.numbers.AddQuote(document, field, quote)
	}
}

// Add adds what the output of a unit tells that read a document.
func (h *Habits) Add(s *schema.Schema, document string, out *output.Output) {
	h.AddText(document, out.Dates, out.Numbers)

	if !s.HasNumbers() {
		return
	}

	// Quotes tell how numbers are written, and count for their field as well.
	for i := range out.Entries {
		for _, f := range out.Entries[i].Accumulator.Fields {
			for _, c := range f.Candidates {
				for _, m := range c.Mentions {
					for _, id := range m.Citations {
						if cite, ok := out.Citations[id]; ok {
							h.AddQuote(s, cite.Document, f.Path, cite.Quote)
						}
					}
				}
			}
		}
	}
}

// Settle returns what is known of an entity with its dates and numbers read as the
// documents tell, see DateOrders and NumberStyles, and its derived values computed with them,
// see Derive. citations are those of the entity.
func (h *Habits) Settle(s *schema.Schema, a merge.Accumulator, citations map[merge.Citation]output.Citation) merge.Accumulator {
	return h.Derive(s, h.numbers.Settle(s, h.dates.Settle(s, a, citations), citations), citations)
}

// Derive is Derived with the dates and numbers of quotes read as the documents tell. What they
// leave open is refused then.
func (h *Habits) Derive(s *schema.Schema, a merge.Accumulator, citations map[merge.Citation]output.Citation) merge.Accumulator {
	for i := range a.Fields {
		field := a.Fields[i].Path
		style := func(q *derive.Quote, document string) {
			q.Numbers = h.numbers.styleIn(document, field, s)
			q.Dates = h.dates.orderIn(document, s)
			if p := s.Field(field); p != nil && p.Hints.DateOrder != "" {
				q.Dates = p.Hints.DateOrder
			}
		}

		// The style depends on the field, so each is derived by itself.
		one := merge.Accumulator{Fields: a.Fields[i : i+1]}
		one = output.DeriveBy(s, one, func(p *schema.Property, value any, m *merge.Mention) derive.Derivation {
			return derive.Of(p, value, m.Formula, output.QuotesOf(m, citations, style), true)
		})

		// DeriveBy returns the same fields if nothing was derived.
		if &one.Fields[0] != &a.Fields[i] {
			a.Fields = slices.Clone(a.Fields)
			a.Fields[i] = one.Fields[0]
		}
	}

	return a
}
