package rules

import (
	"github.com/coditect/mapreduce/internal/text/rules/field"
	"github.com/coditect/mapreduce/internal/text/rules/find"
)

// extractValues returns the values of a field in w, or why there are none.
func (p *Program) extractValues(t *unitText, index int, w find.Window) ([]find.Found, string) {
	if p.lists[index] != nil {
		return p.extractList(t, index, w)
	}
	return find.Values(t.Document, index, w)
}

// extractList returns the elements of a list of objects.
func (p *Program) extractList(t *unitText, index int, w find.Window) ([]find.Found, string) {
	list, inner := p.lists[index], t.lists[index]
	if inner == nil {
		inner = list.readText(Unit{Text: t.Text, CoreStart: t.CoreStart, CoreEnd: t.CoreEnd, First: true, Style: &t.Style}, t.Reading, t.notes)
		t.lists[index] = inner
	}

	windows, reason := list.findRecords(inner, w)
	var found []find.Found
	for _, w := range windows {
		// A row that begins in the overlap is of the unit beside this one.
		if !t.InCore(w.Start) {
			continue
		}
		if element, ok := list.elementOf(&p.fields[index], list.extractRecord(inner.whole(), w), t.Text); ok {
			found = append(found, element)
		}
	}

	return found, reason
}

// elementOf makes one element of a list from a record. The quote of the
// element spans all of its values.
func (p *Program) elementOf(f *field.Field, r Record, text string) (find.Found, bool) {
	if len(r.Found) == 0 {
		return find.Found{}, false
	}

	one := find.Found{Field: f.Path, Start: r.Found[0].Start, End: r.Found[0].End, Confidence: 1}
	for _, part := range r.Found {
		one.Start, one.End = min(one.Start, part.Start), max(one.End, part.End)
		one.Confidence = min(one.Confidence, part.Confidence)
	}

	one.Quote = text[one.Start:one.End]

	value, err := f.Element.Normalize(f.Element.Nest(p.Values(&r)))
	one.Value = value
	return one, err == nil
}
