package rules

import (
	"slices"

	"github.com/coditect/mapreduce/internal/text/rules/find"
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
func (p *Program) findRecords(t *unitText, w find.Window) ([]find.Window, string) {
	if len(t.Fits) > 0 {
		return p.tableRecords(t, w), "no record was found: the table has no rows"
	}

	anchors := p.findAnchors(t.whole(), w)
	if len(anchors) == 0 {
		return nil, "no record was found: none of the fields occurs"
	}

	starts := t.ParagraphStarts(w.Span)
	// Where each paragraph has one anchor, paragraphs are the records; else each anchor
	// begins one.
	if oneAnchorEach(anchors, starts) {
		starts = p.occupiedParagraphs(t.whole(), starts, w)
	} else {
		starts = t.LineStarts(anchors, w.Span)
	}

	return cutWindows(t.Text, starts, w), ""
}

// cutWindows makes windows that begin at starts and end before the white space in
// front of the next. Each stands for a whole record, so lines count from its own
// ends.
func cutWindows(text string, starts []int, w find.Window) []find.Window {
	windows := make([]find.Window, len(starts))
	for i, start := range starts {
		end := w.End
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		end = form.Trim(text, form.NewSpan(start, end)).End
		windows[i] = find.Window{Span: form.NewSpan(start, end), First: true, Last: true}
	}
	return windows
}

// findAnchors returns where the anchor field occurs, in order.
func (p *Program) findAnchors(t *unitText, w find.Window) []int {
	order := make([]int, 0, len(p.fields))
	for i := range p.fields {
		// A required field is in every record, so it tells better where records begin.
		if p.fields[i].Property.Required {
			order = append(order, i)
		}
	}
	for i := range p.fields {
		if !p.fields[i].Property.Required {
			order = append(order, i)
		}
	}

	for _, i := range order {
		if t.Reading.Stopped() {
			break
		}

		if at := find.Occurrences(t.Document, i, form.NewSpan(w.Start, w.End)); len(at) > 0 {
			return at
		}
	}

	return nil
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
func (p *Program) occupiedParagraphs(t *unitText, starts []int, w find.Window) []int {
	var marked []int
	for i := range p.fields {
		marked = append(marked, find.Occurrences(t.Document, i, form.NewSpan(w.Start, w.End))...)
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
