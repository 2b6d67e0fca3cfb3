package find

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema/hint"
	"github.com/coditect/mapreduce/api/schema/pattern"
	"github.com/coditect/mapreduce/internal/text/rules/field"
	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/rules/page"
)

// An areaKind says how a part of a text was chosen, and so what counts in it.
type areaKind int

const (
	anyArea     areaKind = iota // by lines, or not at all
	charsArea                   // by numbers of characters
	sectionArea                 // below a heading
	cellArea                    // one cell of a table
	afterArea                   // behind an anchor: the nearest counts
	beforeArea                  // in front of an anchor: the nearest counts
	betweenArea                 // between two anchors
)

// An area is a part of a text in which a field is looked for.
type area struct {
	form.Span
	kind areaKind
}

// areasOf returns the parts of w in which the hints allow a field to be looked for,
// or why there are none.
func areasOf(f *field.Field, d *Document, w Window) ([]area, string) {
	base, reason := hintedArea(f, d, w)
	if reason != "" {
		return nil, reason
	}

	areas := []area{{Span: base}}
	if within := f.Property.Hints.Within; within != nil {
		if areas, reason = withinAreas(d, within, areas, w); reason != "" {
			return nil, reason
		}
	}

	if f.After != nil || f.Before != nil {
		areas, reason = anchoredAreas(f, d, areas)
	}
	return areas, reason
}

// withinAreas narrows areas to what the hint within allows.
func withinAreas(d *Document, within *hint.Within, areas []area, w Window) ([]area, string) {
	if within.Chars != nil {
		part, reason := charRange(d, within.Chars, w)
		if areas = intersect(areas, []form.Span{part}, charsArea); reason != "" || len(areas) == 0 {
			return nil, orElse(reason, "the characters to look at do not exist")
		}
	}

	if len(within.Sections) > 0 {
		if areas = intersect(areas, d.sections(within), sectionArea); len(areas) == 0 {
			return nil, "there is no section with that heading"
		}
	}

	// Cells are looked for only within what characters and sections have left.
	if len(within.Columns)+len(within.Rows) > 0 {
		var cells []form.Span
		for _, a := range areas {
			cells = append(cells, d.CellsIn(a.Span, within.Columns, within.Rows)...)
		}
		if areas = intersect(areas, cells, cellArea); len(areas) == 0 {
			return nil, "there is no table with that column or row"
		}
	}

	return areas, ""
}

func orElse(reason, other string) string {
	if reason != "" {
		return reason
	}
	return other
}

// intersect returns the parts of areas that are in one of spans, which are in order
// and do not overlap.
func intersect(areas []area, spans []form.Span, kind areaKind) []area {
	var parts []area

	for _, a := range areas {
		// The spans are in order, so all in front of this one end before the area begins.
		first, _ := slices.BinarySearchFunc(spans, a.Start, func(s form.Span, at int) int { return s.End - at })
		for _, s := range spans[first:] {
			if s.Start >= a.End {
				break
			}
			if part := form.NewSpan(max(a.Start, s.Start), min(a.End, s.End)); part.Start < part.End {
				parts = append(parts, area{part, kind})
			}
		}
	}
	return parts
}

// charRange returns the characters of w that a range allows.
func charRange(d *Document, r *hint.Lines, w Window) (form.Span, string) {
	if r.From < 0 && !w.Last || r.From >= 0 && !w.First || r.To < 0 && !w.Last {
		return form.Span{}, "the characters to look at are not in this piece of the document"
	}

	text := d.Text[w.Start:w.End]
	// at returns the byte of a character of the text, counted from its end if n is
	// negative.
	at := func(n int) int {
		switch {
		case n == hint.End:
			return w.End
		case n < 0:
			i := len(text)
			for ; n < 0 && i > 0; n++ {
				_, width := utf8.DecodeLastRuneInString(text[:i])
				i -= width
			}
			return w.Start + i
		}

		i := 0
		for ; n > 0 && i < len(text); n-- {
			_, width := utf8.DecodeRuneInString(text[i:])
			i += width
		}
		return w.Start + i
	}

	return form.NewSpan(at(r.From), at(r.To)), ""
}

// anchoredAreas returns the parts of areas behind one anchor, in front of another, or
// between the two.
func anchoredAreas(f *field.Field, d *Document, areas []area) ([]area, string) {
	var parts []area
	reason := ""
	for _, a := range areas {
		var found []area
		switch {
		case f.Before == nil:
			found = d.behind(f.After, a.Span)
		case f.After == nil:
			found = d.inFront(f.Before, a.Span)
		default:
			found = d.between(f.After, f.Before, a.Span)
		}
		parts = append(parts, found...)
	}

	if len(parts) == 0 {
		reason = "the text that stands before or behind the value does not occur"
	}
	return parts, reason
}

// occurrences returns where p matches in r.
func (d *Document) occurrences(p *pattern.Pattern, r form.Span) []form.Span {
	var all []form.Span
	d.findAll(p, r, func(place []int) { all = append(all, form.NewSpan(place[0], place[1])) })
	return all
}

// behind returns what follows each occurrence of p in r, up to the next.
func (d *Document) behind(p *pattern.Pattern, r form.Span) []area {
	all := d.occurrences(p, r)
	var parts []area
	for i, o := range all {
		end := r.End
		if i+1 < len(all) {
			end = all[i+1].Start
		}
		parts = append(parts, area{form.NewSpan(o.End, end), afterArea})
	}
	return parts
}

// inFront returns what stands in front of each occurrence of p in r, from the one
// before.
func (d *Document) inFront(p *pattern.Pattern, r form.Span) []area {
	var parts []area
	start := r.Start
	for _, o := range d.occurrences(p, r) {
		parts = append(parts, area{form.NewSpan(start, o.Start), beforeArea})
		start = o.End
	}
	return parts
}

// between returns what stands between an occurrence of first and the next of second,
// at most valueBytes.
func (d *Document) between(first, second *pattern.Pattern, r form.Span) []area {
	ends := d.occurrences(second, r)
	var parts []area
	// What ends a part begins no second one: parts do not overlap.
	past := r.Start
	for _, o := range d.occurrences(first, r) {
		if o.Start < past {
			continue
		}

		i, _ := slices.BinarySearchFunc(ends, o.End, func(s form.Span, at int) int { return s.Start - at })
		if i == len(ends) {
			break
		}

		if end := ends[i].Start; end-o.End <= field.ValueBytes {
			parts = append(parts, area{form.NewSpan(o.End, end), betweenArea})
			past = ends[i].Start
		}
	}
	return parts
}

// addArea adds the candidates of the current area that stand without a label.
func (s *search) addArea() {
	if s.IsText() {
		s.addTextOf(s.area)
		return
	}

	found := s.candidatesIn(s.area.Span)
	// In front of an anchor, the nearest candidate is the last.
	if s.area.kind == beforeArea {
		slices.Reverse(found)
	}

	near := s.nearPart(s.area)
	for i, c := range found {
		switch {
		case s.area.kind == charsArea || s.area.kind == sectionArea:
			c.score = min(s.scoreAlone(), scorePattern)
		case c.Start >= near.Start && c.End <= near.End:
			c.score = scorePattern - min(i, 3)*bonusCertain
		case s.MayGuess():
			c.score, c.byForm = scoreLine, true
		default:
			continue // it is too far from the text that the schema names
		}
		s.candidates = append(s.candidates, c)
	}
}

// nearPart returns the part of an area beside its anchor: the line and the next that
// is not blank; all of it between two anchors and in a cell.
func (s *scope) nearPart(a area) form.Span {
	near := a.Span
	switch a.kind {
	case afterArea:
		near.End = min(near.End, s.EndOfNextLine(near.Start))
	case beforeArea:
		line := s.LineAt(near.End)
		for line > 0 && s.Lines[line].Start > near.Start && strings.TrimSpace(s.Text[s.Lines[line].Start:min(near.End, s.Lines[line].End)]) == "" {
			line--
		}
		near.Start = max(near.Start, s.Lines[line].Start)
	}
	return near
}

// addTextOf adds the text of an area as a candidate: all of it between two anchors,
// in a cell or a section; the rest of the line beside one anchor, or the line below
// it or above.
func (s *search) addTextOf(a area) {
	v, score := a.Span, scorePattern
	switch a.kind {
	case afterArea:
		if rest := form.Trim(s.Text, form.NewSpan(v.Start, min(v.End, s.Lines[s.LineAt(v.Start)].End))); rest.Start < rest.End && !s.OnlySeparators(rest) {
			v = rest
		} else {
			v.End = min(v.End, s.EndOfNextLine(v.Start))
		}
	case beforeArea:
		v = s.nearPart(a)
	case charsArea, anyArea:
		score = scoreLine
	case sectionArea:
		score = scorePhrase
	}

	if a.kind != sectionArea && a.kind != charsArea {
		// A section and a range of characters are taken as they stand; elsewhere a colon
		// may lead to the text.
		v = s.TrimSeparators(v)
	}

	v = form.Trim(s.Text, form.NewSpan(v.Start, page.ClampRune(s.Text, v, s.Most)))
	if v.Start < v.End {
		s.candidates = append(s.candidates, candidate{Span: v, matchStart: v.Start, score: score, value: -1})
	}
}

// hintedArea returns the part of w that the lines hint allows, or why there is none.
func hintedArea(f *field.Field, d *Document, w Window) (area form.Span, reason string) {
	area = form.NewSpan(w.Start, w.End)
	l := f.Property.Hints.Lines
	if l == nil {
		return area, ""
	}

	if l.From < 0 && !w.Last || l.From >= 0 && l.To >= 0 && l.To != hint.End && !w.First {
		// Lines count from the ends of the document, which other pieces of it have.
		return form.Span{}, "the lines to look at are not in this piece of the document"
	}

	if w.Start >= w.End {
		return form.Span{}, noSuchLines
	}

	first, end := d.LineAt(w.Start), d.LineAt(w.End-1)+1
	from, to := first, end
	// An end of the range that another piece has leaves this side of the piece open.
	if l.From < 0 {
		from = end + l.From
	} else if w.First {
		from = first + l.From
	}

	if l.To < 0 && w.Last {
		to = end + l.To
	} else if l.To >= 0 && l.To < end-first && w.First {
		to = first + l.To
	}

	from = max(from, first)
	if from >= to {
		return form.Span{}, noSuchLines
	}

	return form.NewSpan(max(d.Lines[from].Start, w.Start), min(d.Lines[to-1].End, w.End)), ""
}

const noSuchLines = "the lines to look at do not exist"
