package rules

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/pattern"
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
	span
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
	areas := []area{{span: base}}
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
		if areas = intersect(areas, []span{part}, charsArea); reason != "" || len(areas) == 0 {
			return nil, orElse(reason, "there are no such characters")
		}
	}
	if len(within.Sections) > 0 {
		if areas = intersect(areas, d.sections(within), sectionArea); len(areas) == 0 {
			return nil, "there is no section with that heading"
		}
	}
	if len(within.Columns)+len(within.Rows) > 0 {
		var cells []span
		for _, a := range areas {
			cells = append(cells, d.cellsIn(a.span, within.Columns, within.Rows)...)
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
func intersect(areas []area, spans []span, kind areaKind) []area {
	var parts []area
	for _, a := range areas {
		first, _ := slices.BinarySearchFunc(spans, a.start, func(s span, at int) int { return s.end - at })
		for _, s := range spans[first:] {
			if s.start >= a.end {
				break
			}
			if part := (span{max(a.start, s.start), min(a.end, s.end)}); part.start < part.end {
				parts = append(parts, area{part, kind})
			}
		}
	}
	return parts
}

// charRange returns the characters of w that a range allows.
func (d *document) charRange(r *schema.Lines, w window) (span, string) {
	if r.From < 0 && !w.last || r.From >= 0 && !w.first || r.To < 0 && !w.last {
		return span{}, "the characters to look at are not in this piece of the document"
	}
	text := d.text[w.start:w.end]
	at := func(n int) int {
		switch {
		case n == schema.End:
			return w.end
		case n < 0:
			i := len(text)
			for ; n < 0 && i > 0; n++ {
				_, width := utf8.DecodeLastRuneInString(text[:i])
				i -= width
			}
			return w.start + i
		}
		i := 0
		for ; n > 0 && i < len(text); n-- {
			_, width := utf8.DecodeRuneInString(text[i:])
			i += width
		}
		return w.start + i
	}
	return span{at(r.From), at(r.To)}, ""
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
			found = d.behind(f.after, a.span)
		case f.after == nil:
			found = d.inFront(f.before, a.span)
		default:
			found = d.between(f.after, f.before, a.span)
		}
		parts = append(parts, found...)
	}
	if len(parts) == 0 {
		reason = "the text that stands before or behind the value does not occur"
	}
	return parts, reason
}

// occurrences returns where p matches in r.
func (d *document) occurrences(p *pattern.Pattern, r span) []span {
	var all []span
	d.findAll(p, r, func(place []int) { all = append(all, span{place[0], place[1]}) })
	return all
}

// behind returns what follows each occurrence of p in r, up to the next.
func (d *document) behind(p *pattern.Pattern, r span) []area {
	all := d.occurrences(p, r)
	var parts []area
	for i, o := range all {
		end := r.end
		if i+1 < len(all) {
			end = all[i+1].start
		}
		parts = append(parts, area{span{o.end, end}, afterArea})
	}
	return parts
}

// inFront returns what stands in front of each occurrence of p in r, from the one
// before.
func (d *document) inFront(p *pattern.Pattern, r span) []area {
	var parts []area
	start := r.start
	for _, o := range d.occurrences(p, r) {
		parts = append(parts, area{span{start, o.start}, beforeArea})
		start = o.end
	}
	return parts
}

// between returns what stands between an occurrence of first and the next of second,
// at most valueBytes.
func (d *document) between(first, second *pattern.Pattern, r span) []area {
	ends := d.occurrences(second, r)
	var parts []area
	past := r.start
	for _, o := range d.occurrences(first, r) {
		if o.start < past {
			continue
		}
		i, _ := slices.BinarySearchFunc(ends, o.end, func(s span, at int) int { return s.start - at })
		if i == len(ends) {
			break
		}
		if end := ends[i].start; end-o.end <= valueBytes {
			parts = append(parts, area{span{o.end, end}, betweenArea})
			past = ends[i].start
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
	found := s.candidatesIn(s.area.span)
	if s.area.kind == beforeArea {
		slices.Reverse(found)
	}
	near := s.nearPart(s.area)
	for i, c := range found {
		switch {
		case s.area.kind == charsArea || s.area.kind == sectionArea:
			c.score = min(s.scoreAlone(), scorePattern)
		case c.start >= near.start && c.end <= near.end:
			c.score = scorePattern - min(i, 3)*bonusCertain
		default:
			c.score = scoreLine
		}
		s.candidates = append(s.candidates, c)
	}
}

// nearPart returns the part of an area beside its anchor: the line and the next that
// is not blank; all of it between two anchors and in a cell.
func (s *search) nearPart(a area) span {
	near := a.span
	switch a.kind {
	case afterArea:
		near.end = min(near.end, s.endOfNextLine(near.start))
	case beforeArea:
		line := s.lineAt(near.end)
		for line > 0 && s.lines[line].start > near.start && strings.TrimSpace(s.text[s.lines[line].start:min(near.end, s.lines[line].end)]) == "" {
			line--
		}
		near.start = max(near.start, s.lines[line].start)
	}
	return near
}

// endOfNextLine returns where the line after that of byte i ends, blank ones not
// counted.
func (d *document) endOfNextLine(i int) int {
	if len(d.lines) == 0 {
		return i
	}
	line := d.lineAt(i)
	for line+1 < len(d.lines) {
		line++
		if strings.TrimSpace(d.text[d.lines[line].start:d.lines[line].end]) != "" {
			break
		}
	}
	return d.lines[line].end
}

// addTextOf adds the text of an area as a candidate: all of it between two anchors,
// in a cell or a section; the rest of the line beside one anchor, or the line below
// it or above.
func (s *search) addTextOf(a area) {
	v, score := a.span, scorePattern
	switch a.kind {
	case afterArea:
		if rest := trimSpan(s.text, span{v.start, min(v.end, s.lines[s.lineAt(v.start)].end)}); rest.start < rest.end && !s.onlySeparators(rest) {
			v = rest
		} else {
			v.end = min(v.end, s.endOfNextLine(v.start))
		}
	case beforeArea:
		v = s.nearPart(a)
	case charsArea, anyArea:
		score = scoreLine
	case sectionArea:
		score = scorePhrase
	}
	if a.kind != sectionArea && a.kind != charsArea {
		v = s.trimSeparators(v)
	}
	v = trimSpan(s.text, span{v.start, clampRune(s.text, v, valueBytes)})
	if v.start < v.end {
		s.candidates = append(s.candidates, candidate{span: v, matchStart: v.start, score: score, value: -1})
	}
}

func (s *search) onlySeparators(v span) bool {
	return strings.Trim(s.text[v.start:v.end], separators+" \t") == ""
}

// trimSeparators narrows v to what stands between separators and white space.
func (s *search) trimSeparators(v span) span {
	set := separators + " \t\r\n"
	v.end = v.start + len(strings.TrimRight(s.text[v.start:v.end], set))
	v.start = v.end - len(strings.TrimLeft(s.text[v.start:v.end], set))
	return v
}
