package rules

import (
	"slices"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/table"
)

// Bounds on labels with values below them.
const (
	stackedRows  = 50   // lines of values
	stackedLine  = 1000 // bytes of a line of labels or values
	stackedNames = 50   // of a line whose rows have fewer cells
)

// A stack is a line of labels with rows of values below it, set apart by tabs or gaps: what
// forms in PDF files and on web pages become.
type stack struct {
	style form.Style
	names []form.Span
	n     int // of the label that is asked for
	rows  [][]form.Span
}

// stackAt returns the stack at whose head a label stands; ok is false if it is none, or if no
// values stand below it.
func (s *search) stackAt(m mark) (t stack, ok bool) {
	head := s.lineAt(m.Start)
	if len(s.lineText(head)) > stackedLine {
		return t, false
	}

	t.style = form.StyleOf(s.lineText(head))
	if t.style != form.Tabs && t.style != form.Gaps {
		return t, false
	}

	t.names = form.Split(s.text, s.lines[head], t.style)
	t.n = slices.IndexFunc(t.names, func(c form.Span) bool { return c.Start <= m.Start && s.isLabelCell(c, m) })
	if t.n < 0 || !s.headsOf(t.names) {
		return t, false
	}

	t.rows = s.stackedRows(&t, head+1)
	return t, len(t.rows) > 0
}

// stackedRows returns the rows of values from a line on. One blank line may stand in front of
// the first, and one in front of the last, which holds the totals.
func (s *search) stackedRows(t *stack, from int) (rows [][]form.Span) {
	if s.isBlank(from) {
		from++
	}

	for i := from; i < from+stackedRows; i++ {
		total := len(rows) > 0 && s.isBlank(i)
		if total {
			i++
		}

		row, ok := s.valuesAt(i, t)
		// A row of totals has a cell for each name, or as many cells as the row before.
		if !ok || total && len(row) != len(t.names) && len(row) != len(rows[len(rows)-1]) {
			break
		}

		rows = append(rows, row)
		if total {
			break
		}
	}

	return rows
}

// valuesAt returns the cells of line i, if they are values below the names of a stack.
func (s *search) valuesAt(i int, t *stack) (row []form.Span, ok bool) {
	if i >= len(s.lines) || s.lines[i].Start >= s.area.End || len(s.lineText(i)) > stackedLine || form.StyleOf(s.lineText(i)) != t.style {
		return nil, false
	}
	row = form.Split(s.text, s.clipLine(i, s.area.Span), t.style)
	return row, s.areValues(row, t.names, t.style)
}

// column returns the cells below the label that is asked for. A row of fewer cells between tabs
// than there are labels does not tell which are missing: those in front, or those behind. If
// neither the types of the fields nor a sum tells, placed is false.
func (s *search) column(t *stack) (cells []table.Cell, placed bool) {
	if !slices.ContainsFunc(t.rows, t.isShort) {
		return s.cellsAt(t, t.n, false), true
	}

	behind, front := s.cellsAt(t, t.n, false), s.cellsAt(t, t.n, true)
	if len(t.names) > stackedNames {
		return behind, false // it would take too long
	}

	switch fitsBehind, fitsFront := s.fitsTypes(t, false), s.fitsTypes(t, true); {
	case fitsBehind && !fitsFront:
		return behind, true
	case fitsFront && !fitsBehind:
		return front, true
	case !fitsBehind:
		return behind, false
	}

	// Both may be, so a sum decides.
	addsBehind, addsFront := s.cellsAddUp(behind), s.cellsAddUp(front)
	if addsFront && !addsBehind {
		return front, true
	}
	return behind, addsBehind && !addsFront
}

// isShort reports whether a row has no cell for some name, and does not show for which.
func (t *stack) isShort(row []form.Span) bool {
	return t.style == form.Tabs && len(row) < len(t.names)
}

// cellsAt returns the cells of the rows below name n that are not empty. In rows of fewer cells
// than names, the missing ones stand in front or behind.
func (s *search) cellsAt(t *stack, n int, front bool) (cells []table.Cell) {
	for _, row := range t.rows {
		if at := s.placeIn(t, n, row, front); at >= 0 && row[at].Start < row[at].End {
			cells = append(cells, table.Cell{Start: row[at].Start, End: row[at].End})
		}
	}
	return cells
}

// placeIn returns the index of the cell of a row below name n, -1 if there is none.
func (s *search) placeIn(t *stack, n int, row []form.Span, front bool) int {
	if front {
		return max(n-(len(t.names)-len(row)), -1)
	}
	return s.under(t.names[n], n, row, t.style)
}

// fitsTypes reports whether what stands below labels in short rows are values of the types of
// their fields.
func (s *search) fitsTypes(t *stack, front bool) bool {
	for n, name := range t.names {
		for _, l := range marksBetween(s.allLabels, name.Start, name.End) {
			if !s.isLabelCell(name, l) {
				continue
			}

			f := &s.fields[l.field]
			for _, row := range t.rows {
				at := s.placeIn(t, n, row, front)
				if t.isShort(row) && at >= 0 && row[at].Start < row[at].End && !f.mayHold(s.text, row[at], s.style) {
					return false
				}
			}
		}
	}
	return true
}

// mayHold reports whether a cell has the form of a value of the field.
func (f *field) mayHold(text string, cell form.Span, style format.NumberStyle) bool {
	switch {
	case f.scan != nil:
		return len(f.scan(text, cell.Start, cell.End, style)) > 0
	case f.identifier:
		return codeOf(cell.Of(text)) != ""
	default:
		return true
	}
}

// cellsAddUp reports whether the last of some cells is the sum of the others.
func (s *search) cellsAddUp(cells []table.Cell) bool {
	column := search{document: s.document, field: s.field}
	column.addFromCells(cells)
	return len(column.candidates) == len(cells) && column.addsUp(column.candidates)
}

// isLabelCell reports whether a cell holds a label and nothing but what belongs to it.
func (s *search) isLabelCell(c form.Span, m mark) bool {
	if m.Start < c.Start || m.End > c.End || strings.TrimFunc(s.text[c.Start:m.Start], notWord) != "" {
		return false
	}
	rest := strings.ToLower(strings.TrimFunc(s.text[m.End:c.End], notWord))
	return rest == "" || slices.Contains(numberWords, rest)
}

// headsOf reports whether the cells of a line look like labels: two of them are labels of
// fields, or one of three or more, none holds a digit, and all end with a colon or none does.
func (s *search) headsOf(names []form.Span) bool {
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
func (s *search) areValues(row, names []form.Span, style form.Style) bool {
	digits := false
	for _, c := range row {
		if len(marksBetween(s.allLabels, c.Start, c.Start+1)) > 0 {
			return false
		}

		digits = digits || strings.ContainsFunc(c.Of(s.text), unicode.IsDigit)
	}

	if style == form.Tabs && len(row) > len(names) {
		return false
	}

	return digits && len(row) > 1
}

// under returns the index of the cell below a name; -1 if there is none.
func (s *search) under(name form.Span, n int, row []form.Span, style form.Style) int {
	if style == form.Tabs {
		if n >= len(row) {
			return -1
		}
		return n
	}
	from, to := s.columnOf(name.Start), s.columnOf(name.End)
	return slices.IndexFunc(row, func(c form.Span) bool { return s.columnOf(c.Start) < to && s.columnOf(c.End) > from })
}

// cellBelow returns the part of line i that stands below a label. If the label shares its line
// with other cells and the line holds several, that is the cell in its place; ok is false if
// there is none.
func (s *search) cellBelow(m mark, i int) (below form.Span, ok bool) {
	below = s.clipLine(i, s.area.Span)
	head := s.lineAt(m.Start)
	if len(s.lineText(head)) > stackedLine || len(s.lineText(i)) > stackedLine {
		return below, true
	}

	style := form.StyleOf(s.lineText(i))
	if style != form.Tabs && style != form.Gaps || form.StyleOf(s.lineText(head)) != style {
		return below, true
	}

	// A label that shares its line has the cell in its place; else all of the line is below
	// it.
	names, row := form.Split(s.text, s.lines[head], style), form.Split(s.text, below, style)
	n := slices.IndexFunc(names, func(c form.Span) bool { return c.Start <= m.Start && m.End <= c.End })
	if n < 0 || len(names) < 2 || len(row) < 2 {
		return below, true
	}

	at := s.under(names[n], n, row, style)
	if at < 0 || style == form.Tabs && len(row) != len(names) {
		return below, false
	}

	return row[at], true
}
