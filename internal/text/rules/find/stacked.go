package find

import (
	"slices"

	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/rules/phrase"
	"github.com/coditect/mapreduce/internal/text/table"
)

// Bounds on labels with values below them.
const (
	stackedRows  = 50   // lines of values
	stackedLine  = 1000 // bytes of a line of labels or values
	stackedNames = 50   // of a line whose rows have fewer cells
)

// stackAt returns the stack at whose head a label stands; ok is false if it is none, or if no
// values stand below it.
func (s *scope) stackAt(m phrase.Mark) (t stack, ok bool) {
	t.scope = s
	head := s.LineAt(m.Start)
	if len(s.LineText(head)) > stackedLine {
		return t, false
	}

	t.style = form.StyleOf(s.LineText(head))
	if t.style != form.Tabs && t.style != form.Gaps {
		return t, false
	}

	t.names = form.Split(s.Text, s.Lines[head], t.style)
	t.n = slices.IndexFunc(t.names, func(c form.Span) bool { return c.Start <= m.Start && s.isLabelCell(c, m) })
	if t.n < 0 || !s.headsOf(t.names) {
		return t, false
	}

	t.readRows(head + 1)
	return t, len(t.rows) > 0
}

// readRows reads the rows of values from a line on. One blank line may stand in front of
// the first, and one in front of the last, which holds the totals.
func (t *stack) readRows(from int) {
	if t.scope.IsBlank(from) {
		from++
	}

	for i := from; i < from+stackedRows; i++ {
		total := len(t.rows) > 0 && t.scope.IsBlank(i)
		if total {
			i++
		}

		row, ok := t.valuesAt(i)
		// A row of totals has a cell for each name, or as many cells as the row before.
		if !ok || total && len(row) != len(t.names) && len(row) != len(t.rows[len(t.rows)-1]) {
			break
		}

		t.rows = append(t.rows, row)
		if total {
			break
		}
	}
}

// valuesAt returns the cells of line i, if they are values below the names.
func (t *stack) valuesAt(i int) (row []form.Span, ok bool) {
	s := t.scope
	if i >= len(s.Lines) || s.Lines[i].Start >= s.area.End || len(s.LineText(i)) > stackedLine || form.StyleOf(s.LineText(i)) != t.style {
		return nil, false
	}
	row = form.Split(s.Text, s.ClipLine(i, s.area.Span), t.style)
	return row, s.areValues(row, t.names, t.style)
}

// column returns the cells below the label that is asked for. A row of fewer cells between tabs
// than there are labels does not tell which are missing: those in front, or those behind. If
// neither the types of the fields nor a sum tells, placed is false.
func (t *stack) column() (cells []table.Cell, placed bool) {
	if !slices.ContainsFunc(t.rows, t.isShort) {
		return t.cellsAt(t.n, false), true
	}

	behind, front := t.cellsAt(t.n, false), t.cellsAt(t.n, true)
	if len(t.names) > stackedNames {
		return behind, false // it would take too long
	}

	switch fitsBehind, fitsFront := t.fitsTypes(false), t.fitsTypes(true); {
	case fitsBehind && !fitsFront:
		return behind, true
	case fitsFront && !fitsBehind:
		return front, true
	case !fitsBehind:
		return behind, false
	}

	// Both may be, so a sum decides.
	addsBehind, addsFront := t.cellsAddUp(behind), t.cellsAddUp(front)
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
func (t *stack) cellsAt(n int, front bool) (cells []table.Cell) {
	for _, row := range t.rows {
		if at := t.placeIn(n, row, front); at >= 0 && row[at].Start < row[at].End {
			cells = append(cells, table.Cell{Start: row[at].Start, End: row[at].End})
		}
	}
	return cells
}

// placeIn returns the index of the cell of a row below name n, -1 if there is none.
func (t *stack) placeIn(n int, row []form.Span, front bool) int {
	if front {
		return max(n-(len(t.names)-len(row)), -1)
	}
	return t.scope.Under(t.names[n], n, row, t.style)
}

// fitsTypes reports whether what stands below labels in short rows are values of the types of
// their fields.
func (t *stack) fitsTypes(front bool) bool {
	s := t.scope
	for n, name := range t.names {
		for _, l := range phrase.Between(s.allLabels, name.Start, name.End) {
			if !s.isLabelCell(name, l) {
				continue
			}

			f := &s.fields[l.Field]
			for _, row := range t.rows {
				at := t.placeIn(n, row, front)
				if t.isShort(row) && at >= 0 && row[at].Start < row[at].End && !f.MayHold(s.Text, row[at], s.Style) {
					return false
				}
			}
		}
	}
	return true
}

// cellsAddUp reports whether the last of some cells is the sum of the others.
func (t *stack) cellsAddUp(cells []table.Cell) bool {
	column := search{scope: scope{Document: t.scope.Document, Field: t.scope.Field}}
	column.addFromCells(cells)
	return len(column.candidates) == len(cells) && column.addsUp(column.candidates)
}

// cellBelow returns the part of line i that stands below a label. If the label shares its line
// with other cells and the line holds several, that is the cell in its place; ok is false if
// there is none.
func (s *scope) cellBelow(m phrase.Mark, i int) (below form.Span, ok bool) {
	below = s.ClipLine(i, s.area.Span)
	head := s.LineAt(m.Start)
	if len(s.LineText(head)) > stackedLine || len(s.LineText(i)) > stackedLine {
		return below, true
	}

	style := form.StyleOf(s.LineText(i))
	if style != form.Tabs && style != form.Gaps || form.StyleOf(s.LineText(head)) != style {
		return below, true
	}

	// A label that shares its line has the cell in its place; else all of the line is below
	// it.
	names, row := form.Split(s.Text, s.Lines[head], style), form.Split(s.Text, below, style)
	n := slices.IndexFunc(names, func(c form.Span) bool { return c.Start <= m.Start && m.End <= c.End })
	if n < 0 || len(names) < 2 || len(row) < 2 {
		return below, true
	}

	at := s.Under(names[n], n, row, style)
	if at < 0 || style == form.Tabs && len(row) != len(names) {
		return below, false
	}

	return row[at], true
}

// A stack is a line of labels with rows of values below it, set apart by tabs or gaps: what
// forms in PDF files and on web pages become.
type stack struct {
	scope *scope // that asks
	style form.Style
	names []form.Span
	n     int // of the label that is asked for
	rows  [][]form.Span
}
