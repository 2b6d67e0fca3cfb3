package habits

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/table"
)

// DateOrders is what the texts of a job tell of the order of day and month in their
// dates. The zero value knows nothing.
type DateOrders struct {
	corpus     calendar.OrderCount
	byDocument map[string]calendar.OrderCount
}

// Add adds what the text of a document tells, or a piece of it. A text of several
// documents has no name.
func (d *DateOrders) Add(document string, c calendar.OrderCount) {
	if c == (calendar.OrderCount{}) {
		return
	}

	d.corpus.Add(c)
	if document == "" {
		return
	}

	if d.byDocument == nil {
		d.byDocument = make(map[string]calendar.OrderCount)
	}
	all := d.byDocument[document]
	all.Add(c)
	d.byDocument[document] = all
}

// orderIn returns the order of a document's dates: as the document tells, or else as all
// documents together do, or else as the schema's locale has it; "" if nothing tells.
func (d *DateOrders) orderIn(document string, s *schema.Schema) calendar.DateOrder {
	return cmp.Or(d.byDocument[document].Order(), d.corpus.Order(), s.Locale)
}

// Settle returns what is known of an entity with each date of three numbers, such as
// 4/5/2001, read in the order that its property states or that the documents tell. Where
// nothing tells the order, the value has both readings, and no record will have it.
// citations are those of the entity.
func (d *DateOrders) Settle(s *schema.Schema, a merge.Accumulator, citations map[merge.Citation]output.Citation) merge.Accumulator {
	if !s.HasDates() {
		return a
	}

	a.Fields = slices.Clone(a.Fields)
	for i := range a.Fields {
		f := &a.Fields[i]
		p := s.Field(f.Path)
		element := p
		if p != nil && p.Type == schema.Array {
			element = p.Items
		}
		if p == nil || p.Hints.Derived || !element.HasDates() {
			continue
		}

		f.Candidates = slices.Clone(f.Candidates)
		changed := false
		for j := range f.Candidates {
			if !f.Candidates[j].IsReviewed() { // what a person has decided is to be read as it stands
				changed = d.settleDate(s, element, &f.Candidates[j], citations) || changed
			}
		}

		// Values that were different may be one now.
		if changed {
			f.Candidates = merge.Union(f.Candidates)
		}
	}
	return a
}

// settleDate reads a date in the order that its quote, its documents or the schema tell,
// and reports whether the value has changed.
func (d *DateOrders) settleDate(s *schema.Schema, p *schema.Property, c *merge.Candidate, citations map[merge.Citation]output.Citation) bool {
	value, ok := c.Value.(string)
	if !ok || len(value) < len(isoForm) {
		return false
	}

	date, rest := value[:len(isoForm)], value[len(isoForm):]
	order, read, written := p.Hints.DateOrder, []string(nil), ""

	for _, m := range c.Mentions {
		for _, id := range m.Citations {
			cite, ok := citations[id]
			if !ok {
				continue
			}

			// One quote that can be read in one way alone, and as this value, settles it.
			found, sure := ambiguousDate(cite.Quote, date)
			if sure {
				return false
			}

			if found == nil {
				continue
			}
			if read == nil {
				read, written = []string{found.DayFirst + rest, found.MonthFirst + rest}, cite.Quote[found.Start:found.End]
			}

			order = cmp.Or(order, d.orderIn(cite.Document, s))
			if settled := found.In(order); settled != "" {
				if settled == date {
					return false
				}
				c.Value = settled + rest
				c.Key = merge.Identity(p, c.Value)
				return true
			}
		}
	}

	// Nothing tells the order. The value is then the date as it stands in the quote, which
	// no record takes, with both readings.
	for _, r := range read {
		c.Readings = append(c.Readings, r)
		c.Value = written // it is none of them
	}
	return false
}

// isoForm is the form of dates that the schema gives.
const isoForm = "2006-01-02"

// ambiguousDate returns the date of three numbers in a quote that can be read as a date in
// one of several orders. It is sure if the quote has the date in a form that can be read
// in one way alone.
func ambiguousDate(quote, date string) (found *calendar.NumericDate, sure bool) {
	if _, stored := table.Forms(quote); strings.HasPrefix(stored, date) {
		return nil, true // as the spreadsheet stores it
	}

	for d := range calendar.NumericDates(quote) {
		if date != d.DayFirst && date != d.MonthFirst && date != d.YearFirst {
			continue
		}
		if !d.IsAmbiguous() && (d.YearFirst == "" || d.YearFirst == date) {
			return nil, true
		}
		if found == nil && d.IsAmbiguous() {
			found = &d
		}
	}
	return found, false
}
