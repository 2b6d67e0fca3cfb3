package rules

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/internal/text/rules/span"
	delimited "github.com/coditect/mapreduce/internal/text/rules/table"
	"github.com/coditect/mapreduce/internal/text/table"
)

// Bounds on labels with values below them.
const (
	stackedRows = 50   // lines of values
	stackedLine = 1000 // bytes of a line of labels or values
)

// stackedCells returns the cells that stand under a label, if it is one of several on its
// line with values below them, set apart by tabs or gaps: what forms in PDF files and on
// web pages become. isHead says that they are, even where the place below is empty.
func (s *search) stackedCells(m mark) (cells []table.Cell, isHead bool) {
	head := s.lineAt(m.Start)
	if len(s.lineText(head)) > stackedLine {
		return nil, false
	}

	style := delimited.StyleOf(s.lineText(head))
	if style != delimited.Tabs && style != delimited.Gaps {
		return nil, false
	}

	names := delimited.Split(s.text, s.lines[head], style)
	n := slices.IndexFunc(names, func(c span.Span) bool { return c.Start <= m.Start && s.isLabelCell(c, m) })
	if n < 0 || !s.headsOf(names) {
		return nil, false
	}

	// One blank line may stand between labels and values.
	below := head + 1
	if below < len(s.lines) && strings.TrimSpace(s.lineText(below)) == "" {
		below++
	}

	for i := below; i < min(len(s.lines), below+stackedRows) && s.lines[i].Start < s.area.End; i++ {
		if len(s.lineText(i)) > stackedLine {
			break
		}

		row := delimited.Split(s.text, s.clipLine(i, s.area.Span), style)
		if delimited.StyleOf(s.lineText(i)) != style || !s.areValues(row, names, style) {
			break
		}

		isHead = true
		if at := s.under(names[n], n, row, style); at >= 0 && row[at].Start < row[at].End {
			cells = append(cells, table.Cell{Start: row[at].Start, End: row[at].End})
		}
	}

	return cells, isHead
}

// isLabelCell reports whether a cell holds a label and nothing but what belongs to it.
func (s *search) isLabelCell(c span.Span, m mark) bool {
	if m.Start < c.Start || m.End > c.End || strings.TrimFunc(s.text[c.Start:m.Start], notWord) != "" {
		return false
	}
	rest := strings.ToLower(strings.TrimFunc(s.text[m.End:c.End], notWord))
	return rest == "" || slices.Contains(numberWords, rest)
}

// headsOf reports whether the cells of a line look like labels: two of them are labels of
// fields, or one of three or more, none holds a digit, and all end with a colon or none does.
func (s *search) headsOf(names []span.Span) bool {
	labels, colons := 0, 0
	for _, c := range names {
		text := c.Of(s.text)
		if strings.ContainsFunc(text, unicode.IsDigit) {
			return false
		}

		if strings.HasSuffix(text, ":") {
			colons++
		}

		if slices.ContainsFunc(marksBetween(s.allLabels, c.Start, c.End), func(l mark) bool { return s.isLabelCell(c, l) }) {
			labels++
		}
	}

	return (colons == 0 || colons == len(names)) && (labels >= 2 || labels == 1 && len(names) > 2)
}

// areValues reports whether a row holds the values below the names: none of it is a label,
// a cell holds a digit, and with tabs there are as many cells as names.
func (s *search) areValues(row, names []span.Span, style delimited.Style) bool {
	digits := false
	for _, c := range row {
		if len(marksBetween(s.allLabels, c.Start, c.Start+1)) > 0 {
			return false
		}

		digits = digits || strings.ContainsFunc(c.Of(s.text), unicode.IsDigit)
	}

	if style == delimited.Tabs && len(row) > len(names) {
		return false
	}

	return digits && len(row) > 1
}

// under returns the index of the cell below a name; -1 if there is none.
func (s *search) under(name span.Span, n int, row []span.Span, style delimited.Style) int {
	if style == delimited.Tabs {
		if n >= len(row) {
			return -1
		}
		return n
	}
	from, to := s.columnOf(name.Start), s.columnOf(name.End)
	return slices.IndexFunc(row, func(c span.Span) bool { return s.columnOf(c.Start) < to && s.columnOf(c.End) > from })
}

// columnOf returns the column of a byte on its line, in characters.
func (d *document) columnOf(at int) int {
	return utf8.RuneCountInString(d.text[d.lines[d.lineAt(max(at-1, 0))].Start:at])
}

// cellBelow returns the part of line i that stands below a label. If the label shares its line
// with other cells and the line holds several, that is the cell in its place; ok is false if
// there is none.
func (s *search) cellBelow(m mark, i int) (below span.Span, ok bool) {
	below = s.clipLine(i, s.area.Span)
	head := s.lineAt(m.Start)
	if len(s.lineText(head)) > stackedLine || len(s.lineText(i)) > stackedLine {
		return below, true
	}

	style := delimited.StyleOf(s.lineText(i))
	if style != delimited.Tabs && style != delimited.Gaps || delimited.StyleOf(s.lineText(head)) != style {
		return below, true
	}

	// A label that shares its line has the cell in its place; else all of the line is below
	// it.
	names, row := delimited.Split(s.text, s.lines[head], style), delimited.Split(s.text, below, style)
	n := slices.IndexFunc(names, func(c span.Span) bool { return c.Start <= m.Start && m.End <= c.End })
	if n < 0 || len(names) < 2 || len(row) < 2 {
		return below, true
	}

	at := s.under(names[n], n, row, style)
	if at < 0 || style == delimited.Tabs && len(row) != len(names) {
		return below, false
	}

	return row[at], true
}
