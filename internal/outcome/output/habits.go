package output

import (
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/internal/outcome/merge"
)

// Habits is what the texts of a job tell of how their dates and numbers are written. The
// zero value knows nothing.
type Habits struct {
	dates   DateOrders
	numbers NumberStyles
}

// AddText adds what the text of a document tells, or a piece of it. A text of several
// documents has no name.
func (h *Habits) AddText(document string, dates format.OrderCount, numbers format.NumberCount) {
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
func (h *Habits) Add(s *schema.Schema, document string, out *Output) {
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
func (h *Habits) Settle(s *schema.Schema, a merge.Accumulator, citations map[merge.Citation]Citation) merge.Accumulator {
	return h.Derive(s, h.numbers.Settle(s, h.dates.Settle(s, a, citations), citations), citations)
}
