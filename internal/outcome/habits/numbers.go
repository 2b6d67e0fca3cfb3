package habits

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/table"
)

// NumberStyles is what the texts of a job tell of how their numbers are written. The zero
// value knows nothing.
type NumberStyles struct {
	corpus     format.NumberCount
	byDocument tally
	byField    map[string]format.NumberCount
	byColumn   tally // by document and field
}

// Add adds what the text of a document tells, or a piece of it. A text of several
// documents has no name.
func (n *NumberStyles) Add(document string, c format.NumberCount) {
	if c == (format.NumberCount{}) {
		return
	}
	n.corpus.Add(c)
	if document != "" {
		n.byDocument.add(tallyKey(document), c)
	}
}

// AddQuote adds what the quote of a number tells of its field: decimals that are no time
// and no date there.
func (n *NumberStyles) AddQuote(document, field, quote string) {
	c := format.CountAmount(quote)
	if c == (format.NumberCount{}) {
		return
	}
	n.byColumn.add(tallyKey(document, field), c)

	if n.byField == nil {
		n.byField = make(map[string]format.NumberCount)
	}
	all := n.byField[field]
	all.Add(c)
	n.byField[field] = all
}

// styleIn returns the style of a field's numbers in a document: as the other values of the
// field there tell, or else its document, the values of the field in all documents, all
// documents, and the schema's locale. A document in which two styles are in use leaves
// open which one is meant, whatever others have; so do documents that differ, unless
// there is a locale.
func (n *NumberStyles) styleIn(document, field string, s *schema.Schema) format.NumberStyle {
	var style format.NumberStyle
	for _, c := range []format.NumberCount{n.byColumn.of(tallyKey(document, field)), n.byDocument.of(tallyKey(document))} {
		if style = style.Or(c.Style()); style.Decimal == 0 && c.IsMixed() {
			return style
		}
	}

	// Documents that differ tell nothing, here and over all.
	for _, c := range []format.NumberCount{n.byField[field], n.corpus} {
		if c.Points == 0 || c.Commas == 0 {
			style = style.Or(c.Style())
		}
	}

	return style.Or(s.Numbers)
}

// Settle returns what is known of an entity with each number read as the documents tell.
// Where nothing tells how a number such as 1.500 is to be read, the value has all of its
// readings, and no record will have it. citations are those of the entity.
func (n *NumberStyles) Settle(s *schema.Schema, a merge.Accumulator, citations map[merge.Citation]output.Citation) merge.Accumulator {
	if !s.HasNumbers() {
		return a
	}

	a.Fields = slices.Clone(a.Fields)
	for i := range a.Fields {
		f := &a.Fields[i]
		p := s.Field(f.Path)
		if p != nil && p.Type == schema.Array {
			p = p.Items
		}
		if p == nil || p.Hints.Derived || !p.Numeric() && p.Type != schema.Object {
			continue
		}

		// The candidates may be an input's, and are changed here.
		f.Candidates = slices.Clone(f.Candidates)
		changed := false
		for j := range f.Candidates {
			if !f.Candidates[j].IsReviewed() { // what a person has decided is to be read as it stands
				changed = n.settle(s, f.Path, p, &f.Candidates[j], citations) || changed
			}
		}

		if changed {
			f.Candidates = merge.Union(f.Candidates)
		}
	}
	return a
}

// settle reads the numbers of a value in the style of the first document that it was
// found in and that shows one, and reports whether the value has changed.
func (n *NumberStyles) settle(s *schema.Schema, field string, p *schema.Property, c *merge.Candidate, citations map[merge.Citation]output.Citation) bool {
	var open []any
	written := ""
	for _, m := range c.Mentions {
		for _, cite := range evidenceOf(p, m, citations) {
			readings, sure := readingsOf(p, c.Value, cite.Quote, format.NumberStyle{})
			if sure {
				return false
			}

			if len(readings) == 0 {
				continue
			}
			if open == nil {
				open, written = readings, cite.Quote
			}

			settled, _ := readingsOf(p, c.Value, cite.Quote, n.styleIn(cite.Document, field, s))
			if len(settled) != 1 {
				continue
			}

			// The value is right as it is, or is replaced by the one reading that is left.
			key := merge.Identity(p, settled[0])
			if key == c.Key {
				return false
			}
			c.Value, c.Key = settled[0], key
			return true
		}
	}

	// Nothing tells how the number is to be read. The value is then what stands in the
	// quote.
	if open != nil {
		c.Readings, c.Value = open, writtenNumber(p, c.Value, written)
	}
	return false
}

// evidenceOf returns the citations of a mention that are known. Those of an object are one, as each
// may have another of its numbers, and all together say how it is read.
func evidenceOf(p *schema.Property, m merge.Mention, citations map[merge.Citation]output.Citation) []output.Citation {
	var all []output.Citation
	for _, id := range m.Citations {
		cite, ok := citations[id]
		switch {
		case !ok:
		case p.Type == schema.Object && len(all) > 0:
			all[0].Quote += "\n" + cite.Quote
		default:
			all = append(all, cite)
		}
	}
	return all
}

// readingsOf returns what a value may be, by the numbers of its quote that may mean it, if
// these are of a style. It is sure if one of them can mean nothing else. There are none
// if the quote has no such number.
func readingsOf(p *schema.Property, value any, quote string, style format.NumberStyle) (readings []any, sure bool) {
	if _, stored := table.Forms(quote); stored != "" && isNumber(value, stored) {
		return nil, true // as the spreadsheet stores it
	}

	switch v := value.(type) {
	case json.Number:
		found := numbersFor(p, v, quote, style)
		for _, n := range found {
			readings = append(readings, n)
		}
		return readings, len(found) == 1 && found[0] == v
	case map[string]any:
		return objectReadings(p, v, quote, style)
	}
	return nil, false
}

// numbersFor returns what a number may be, by those in the quote that may mean it.
func numbersFor(p *schema.Property, value json.Number, quote string, style format.NumberStyle) []json.Number {
	if p.Enum != nil {
		return nil
	}
	return p.ReadingsLike(value, quote, style)
}

// maxAlternatives bounds the readings of an object under each decimal sign.
const maxAlternatives = 4

// objectReadings returns what an object with numbers may be: under each decimal sign that
// its document may have, as all of its numbers have the same, and with each of the readings
// that are left then.
func objectReadings(p *schema.Property, value map[string]any, quote string, style format.NumberStyle) (readings []any, sure bool) {
	sure = true
	styles := []format.NumberStyle{style}
	if style.Decimal == 0 {
		point, comma := style, style
		point.Decimal, comma.Decimal = '.', ','
		styles = []format.NumberStyle{point, comma}
	}

	seen := make(map[string]bool)
	for _, one := range styles {
		for k := range maxAlternatives {
			read := maps.Clone(value)

			// Of each number its k-th reading: the objects of all numbers' readings are not
			// formed, as there could be very many.
			for i := range p.Properties {
				member := &p.Properties[i]
				n, isNumber := value[member.Name].(json.Number)
				if !isNumber || !member.Numeric() || len(numbersFor(member, n, quote, format.NumberStyle{})) < 2 {
					continue
				}
				settled := numbersFor(member, n, quote, one)
				if isOfAnother(p, member, value, settled) {
					continue
				}

				sure = false
				if len(settled) > 0 {
					read[member.Name] = settled[min(k, len(settled)-1)]
				}
			}

			if key := merge.Identity(p, read); !seen[key] {
				seen[key] = true
				readings = append(readings, read)
			}
		}
	}

	return readings, sure
}

// isOfAnother reports whether a number of a quote, which has readings, is that of another member
// of an object and not that of this one: (1) is the change of -1, and not the scale of 1.
func isOfAnother(p, member *schema.Property, value map[string]any, readings []json.Number) bool {
	if n, _ := value[member.Name].(json.Number); slices.Contains(readings, n) {
		return false
	}
	return slices.ContainsFunc(p.Properties, func(q schema.Property) bool {
		n, isNumber := value[q.Name].(json.Number)
		return isNumber && q.Name != member.Name && slices.Contains(readings, n)
	})
}

// writtenNumber returns a number as it stands in its quote.
func writtenNumber(p *schema.Property, value any, quote string) any {
	n, isNumber := value.(json.Number)
	if !isNumber || slices.Contains(p.Readings(quote, format.NumberStyle{}), n) {
		return strings.TrimSpace(quote)
	}

	for start, end := range format.Numerals(quote, format.NumberStyle{}) {
		if slices.Contains(p.Readings(quote[start:end], format.NumberStyle{}), n) {
			return quote[start:end]
		}
	}
	return strings.TrimSpace(quote)
}

// isNumber reports whether a value is a number in the form of JSON.
func isNumber(value any, form string) bool {
	number, ok := value.(json.Number)
	if !ok {
		return false
	}
	a, errA := number.Float64()
	b, errB := json.Number(form).Float64()
	return errA == nil && errB == nil && a == b
}
