package rules

import (
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/text/rules/form"
)

// Records of a schema of many are kept apart by their anchor: the first required
// field that occurs in the text at its label, or by pattern, phrase or form; if
// no required field does, the first field at all.
//
// If no paragraph (text between blank lines) holds the anchor twice, a paragraph
// is a record. One that holds no field belongs to the record before it, and one
// that holds fields but not the anchor is a record of its own. Otherwise a
// record begins at the line on which the anchor occurs, or at the anchor itself
// where a line holds several, and reaches to the next.

// findRecords returns the records in w, or why there are none.
func (p *Program) findRecords(d *document, w window) ([]window, string) {
	if len(d.fits) > 0 {
		return p.tableRecords(d, w), "no record was found: the table has no rows"
	}

	anchors := p.findAnchors(d.withoutCore(), w)
	if len(anchors) == 0 {
		return nil, "no record was found: none of the fields occurs"
	}

	starts := d.paragraphStarts(w)
	// Where each paragraph has one anchor, paragraphs are the records; else each anchor
	// begins one.
	if oneAnchorEach(anchors, starts) {
		starts = p.occupiedParagraphs(d.withoutCore(), starts, w)
	} else {
		starts = d.lineStarts(anchors, w)
	}

	return d.cutWindows(starts, w), ""
}

// cutWindows makes windows that begin at starts and end before the white space in
// front of the next. Each stands for a whole record, so lines count from its own
// ends.
func (d *document) cutWindows(starts []int, w window) []window {
	windows := make([]window, len(starts))
	for i, start := range starts {
		end := w.End
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		end = form.Trim(d.text, form.NewSpan(start, end)).End
		windows[i] = window{Span: form.NewSpan(start, end), first: true, last: true}
	}
	return windows
}

// findAnchors returns where the anchor field occurs, in order.
func (p *Program) findAnchors(d *document, w window) []int {
	order := make([]int, 0, len(p.fields))
	for i := range p.fields {
		// A required field is in every record, so it tells better where records begin.
		if p.fields[i].property.Required {
			order = append(order, i)
		}
	}
	for i := range p.fields {
		if !p.fields[i].property.Required {
			order = append(order, i)
		}
	}

	for _, i := range order {
		if d.reading.stopped() {
			break
		}

		if at := p.findOccurrences(d, i, form.NewSpan(w.Start, w.End)); len(at) > 0 {
			return at
		}
	}

	return nil
}

// findOccurrences returns where field i is found with some certainty. Lines and
// parts of a document count from the ends of a record, so a field with such a hint
// tells nothing before records are known.
func (p *Program) findOccurrences(d *document, i int, r form.Span) []int {
	f := &p.fields[i]
	if f.rowProgram != nil || f.element.Type == schema.Array || f.property.Hints.Lines != nil || f.property.Hints.Within != nil {
		return nil
	}

	areas, reason := f.areas(d, window{Span: form.NewSpan(r.Start, r.End)})
	if reason != "" {
		return nil
	}

	s := search{document: d, field: f, index: i, areas: areas}
	s.collectCandidates()

	best := s.bestClass()
	if best < 1 {
		return nil
	}

	// Only the surest candidates mark a record: others may be other things.
	var at []int
	for _, c := range s.candidates {
		if classOf(c.score) == best {
			at = append(at, c.matchStart)
		}
	}

	slices.Sort(at)
	return slices.Compact(at)
}

// paragraphStarts returns where paragraphs begin: at lines that are not blank
// and have none but blank lines right before them.
func (t *linedText) paragraphStarts(w window) []int {
	var starts []int
	blank := true
	for i := t.lineAt(w.Start); i < len(t.lines) && t.lines[i].Start < w.End; i++ {
		start := max(t.lines[i].Start, w.Start)
		if strings.TrimSpace(t.text[start:t.lines[i].End]) == "" {
			blank = true
			continue
		}

		if blank {
			starts = append(starts, start)
		}

		blank = false
	}

	return starts
}

// oneAnchorEach reports whether no paragraph holds two anchors.
func oneAnchorEach(anchors, starts []int) bool {
	for i := 1; i < len(anchors); i++ {
		before, _ := slices.BinarySearch(starts, anchors[i-1]+1)
		here, _ := slices.BinarySearch(starts, anchors[i]+1)
		if before == here {
			return false
		}
	}
	return true
}

// occupiedParagraphs returns the paragraphs that hold a field.
func (p *Program) occupiedParagraphs(d *document, starts []int, w window) []int {
	var marked []int
	for i := range p.fields {
		marked = append(marked, p.findOccurrences(d, i, form.NewSpan(w.Start, w.End))...)
	}

	slices.Sort(marked)

	// Both lists are in order, so the first occurrence in the paragraph tells.
	var kept []int
	for i, start := range starts {
		end := w.End
		if i+1 < len(starts) {
			end = starts[i+1]
		}

		first, _ := slices.BinarySearch(marked, start)
		if first < len(marked) && marked[first] < end {
			kept = append(kept, start)
		}
	}

	return kept
}

// lineStarts returns where the lines of anchors begin, or the anchors themselves
// where one follows another on a line.
func (t *linedText) lineStarts(anchors []int, w window) []int {
	starts := make([]int, 0, len(anchors))
	last := -1

	for _, at := range anchors {
		line := t.lineAt(at)
		if line != last {
			at = max(t.lines[line].Start, w.Start)
		}

		last = line
		starts = append(starts, at)
	}

	return starts
}
