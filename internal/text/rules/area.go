package rules

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/pattern"
	"github.com/coditect/mapreduce/internal/text/rules/form"
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

// compileAnchor returns a pattern that finds one of some texts, in any case, with
// any white space, quotation marks and hyphens.
func compileAnchor(texts []string) (*pattern.Pattern, error) {
	if len(texts) == 0 {
		return nil, nil
	}

	var b strings.Builder
	b.WriteString("(?i)(?:")
	for i, text := range texts {
		if i > 0 {
			b.WriteByte('|')
		}
		writeAnchor(&b, strings.TrimSpace(text))
	}

	b.WriteByte(')')

	return pattern.Compile(b.String())
}

// looseForms are the classes of characters that are written in several ways.
var looseForms = map[rune]string{
	'"': `["“”„«»]`, '“': `["“”„«»]`, '”': `["“”„«»]`,
	'\'': `['’‘]`, '’': `['’‘]`, '-': `[-–—‑]`, '–': `[-–—‑]`, '—': `[-–—‑]`,
}

func writeAnchor(b *strings.Builder, text string) {
	first, _ := utf8.DecodeRuneInString(text)
	last, _ := utf8.DecodeLastRuneInString(text)
	if first < utf8.RuneSelf && isWord(first) {
		b.WriteString(`\b`)
	}

	gap := false
	for _, c := range text {
		// White space of any length matches any other.
		if unicode.IsSpace(c) {
			gap = true
			continue
		}
		if gap {
			b.WriteString(`\s+`)
			gap = false
		}
		if form, ok := looseForms[c]; ok {
			b.WriteString(form)
			continue
		}
		b.WriteString(quoteMeta(c))
	}

	if last < utf8.RuneSelf && isWord(last) {
		b.WriteString(`\b`)
	}
}

func quoteMeta(c rune) string {
	if strings.ContainsRune(`\.+*?()|[]{}^$`, c) {
		return `\` + string(c)
	}
	return string(c)
}

// areas returns the parts of w in which the hints allow the field to be looked for,
// or why there are none.
func (f *field) areas(d *document, w window) ([]area, string) {
	base, reason := f.hintedArea(d, w)
	if reason != "" {
		return nil, reason
	}

	areas := []area{{Span: base}}
	if within := f.property.Hints.Within; within != nil {
		if areas, reason = f.withinAreas(d, within, areas, w); reason != "" {
			return nil, reason
		}
	}

	if f.after != nil || f.before != nil {
		areas, reason = f.anchoredAreas(d, areas)
	}
	return areas, reason
}

// withinAreas narrows areas to what the hint within allows.
func (f *field) withinAreas(d *document, within *schema.Within, areas []area, w window) ([]area, string) {
	if within.Chars != nil {
		part, reason := d.charRange(within.Chars, w)
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
			cells = append(cells, d.cellsIn(a.Span, within.Columns, within.Rows)...)
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
func (d *document) charRange(r *schema.Lines, w window) (form.Span, string) {
	if r.From < 0 && !w.last || r.From >= 0 && !w.first || r.To < 0 && !w.last {
		return form.Span{}, "the characters to look at are not in this piece of the document"
	}

	text := d.text[w.Start:w.End]
	// at returns the byte of a character of the text, counted from its end if n is
	// negative.
	at := func(n int) int {
		switch {
		case n == schema.End:
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
func (f *field) anchoredAreas(d *document, areas []area) ([]area, string) {
	var parts []area
	reason := ""
	for _, a := range areas {
		var found []area
		switch {
		case f.before == nil:
			found = d.behind(f.after, a.Span)
		case f.after == nil:
			found = d.inFront(f.before, a.Span)
		default:
			found = d.between(f.after, f.before, a.Span)
		}
		parts = append(parts, found...)
	}

	if len(parts) == 0 {
		reason = "the text that stands before or behind the value does not occur"
	}
	return parts, reason
}

// occurrences returns where p matches in r.
func (d *document) occurrences(p *pattern.Pattern, r form.Span) []form.Span {
	var all []form.Span
	d.findAll(p, r, func(place []int) { all = append(all, form.NewSpan(place[0], place[1])) })
	return all
}

// behind returns what follows each occurrence of p in r, up to the next.
func (d *document) behind(p *pattern.Pattern, r form.Span) []area {
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
func (d *document) inFront(p *pattern.Pattern, r form.Span) []area {
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
func (d *document) between(first, second *pattern.Pattern, r form.Span) []area {
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

		if end := ends[i].Start; end-o.End <= valueBytes {
			parts = append(parts, area{form.NewSpan(o.End, end), betweenArea})
			past = ends[i].Start
		}
	}
	return parts
}

// separators may stand at the ends of a text between anchors.
const separators = ",;:="

// addArea adds the candidates of the current area that stand without a label.
func (s *search) addArea() {
	if s.isText() {
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
		case s.mayGuess():
			c.score, c.byForm = scoreLine, true
		default:
			continue // it is too far from the text that the schema names
		}
		s.candidates = append(s.candidates, c)
	}
}

// nearPart returns the part of an area beside its anchor: the line and the next that
// is not blank; all of it between two anchors and in a cell.
func (s *search) nearPart(a area) form.Span {
	near := a.Span
	switch a.kind {
	case afterArea:
		near.End = min(near.End, s.endOfNextLine(near.Start))
	case beforeArea:
		line := s.lineAt(near.End)
		for line > 0 && s.lines[line].Start > near.Start && strings.TrimSpace(s.text[s.lines[line].Start:min(near.End, s.lines[line].End)]) == "" {
			line--
		}
		near.Start = max(near.Start, s.lines[line].Start)
	}
	return near
}

// endOfNextLine returns where the line after that of byte i ends, blank ones not
// counted.
func (t *linedText) endOfNextLine(i int) int {
	if len(t.lines) == 0 {
		return i
	}

	line := t.lineAt(i)
	for line+1 < len(t.lines) {
		line++
		if strings.TrimSpace(t.text[t.lines[line].Start:t.lines[line].End]) != "" {
			break
		}
	}
	return t.lines[line].End
}

// addTextOf adds the text of an area as a candidate: all of it between two anchors,
// in a cell or a section; the rest of the line beside one anchor, or the line below
// it or above.
func (s *search) addTextOf(a area) {
	v, score := a.Span, scorePattern
	switch a.kind {
	case afterArea:
		if rest := form.Trim(s.text, form.NewSpan(v.Start, min(v.End, s.lines[s.lineAt(v.Start)].End))); rest.Start < rest.End && !s.onlySeparators(rest) {
			v = rest
		} else {
			v.End = min(v.End, s.endOfNextLine(v.Start))
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
		v = s.trimSeparators(v)
	}

	v = form.Trim(s.text, form.NewSpan(v.Start, clampRune(s.text, v, s.most)))
	if v.Start < v.End {
		s.candidates = append(s.candidates, candidate{Span: v, matchStart: v.Start, score: score, value: -1})
	}
}

func (s *search) onlySeparators(v form.Span) bool {
	return strings.Trim(s.text[v.Start:v.End], separators+" \t") == ""
}

// trimSeparators narrows v to what stands between separators and white space.
func (s *search) trimSeparators(v form.Span) form.Span {
	set := separators + " \t\r\n"
	v.End = v.Start + len(strings.TrimRight(s.text[v.Start:v.End], set))
	v.Start = v.End - len(strings.TrimLeft(s.text[v.Start:v.End], set))
	return v
}
