package page

import (
	"iter"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/rules/phrase"
)

// CellsIn returns the cells of tables in r that stand in a column with one of the
// headings and in a row that begins with one of the names, if these are given.
func (p *Page) CellsIn(r form.Span, columns, rows []string) []form.Span {
	if len(columns) == 0 {
		return p.rowCells(r, rows)
	}

	var found []form.Span
	for row := range p.tableRows(r) {
		// Any line may be the head of a table, so each is tried.
		cells := row.cells
		n := slices.IndexFunc(cells, func(c form.Span) bool { return isPhrase(p.Text[c.Start:c.End], columns) })
		if n >= 0 {
			found = append(found, p.columnCells(row.line, n, cells[n], row.style, r, columns, rows)...)
		}
	}

	return found
}

// A tableRow is a line that may be a row of a table.
type tableRow struct {
	line  int
	style form.Style // how its cells are apart
	cells []form.Span
}

// tableRows returns the lines in r that may be rows of tables.
func (p *Page) tableRows(r form.Span) iter.Seq[tableRow] {
	return func(yield func(tableRow) bool) {
		for i := p.LineAt(r.Start); i < len(p.Lines) && p.Lines[i].Start < r.End; i++ {
			line := p.ClipLine(i, r)
			style := form.StyleOf(p.Text[line.Start:line.End])
			if style != form.None && !yield(tableRow{i, style, form.Split(p.Text, line, style)}) {
				return
			}
		}
	}
}

// isPhrase reports whether s is one of the phrases, perhaps with the mark of a note.
func isPhrase(s string, phrases []string) bool {
	folded, bare := phrase.Fold(s), phrase.Fold(phrase.WithoutNotes(s))
	return slices.ContainsFunc(phrases, func(p string) bool {
		f := phrase.Fold(p)
		return f == folded || f == bare
	})
}

// rowCells returns the cells of rows that begin with one of the names.
func (p *Page) rowCells(r form.Span, rows []string) []form.Span {
	var found []form.Span
	for row := range p.tableRows(r) {
		if first := row.cells[0]; isPhrase(p.Text[first.Start:first.End], rows) {
			found = append(found, row.cells[1:]...)
		}
	}

	return found
}

// columnCells returns the cells below a heading, up to the next such heading: those
// with the same number, or with gaps between cells those that stand under it.
func (p *Page) columnCells(head, n int, title form.Span, style form.Style, r form.Span, columns, rows []string) []form.Span {
	var found []form.Span
	from := title.Start - p.Lines[head].Start
	under := form.NewSpan(from, from+title.End-title.Start)

	for i := head + 1; i < len(p.Lines) && p.Lines[i].Start < r.End; i++ {
		text := p.LineText(i)
		switch {
		case form.IsRule(strings.TrimSpace(text)):
			continue
		case strings.TrimSpace(text) == "":
			return found
		}

		// Cells between gaps have no number to go by, as empty ones leave no trace.
		cells := form.Split(p.Text, p.Lines[i], style)
		at := n
		if style == form.Gaps {
			at = slices.IndexFunc(cells, func(c form.Span) bool {
				return c.Start-p.Lines[i].Start < under.End && c.End-p.Lines[i].Start > under.Start
			})
		}

		if at < 0 || at >= len(cells) || cells[at].Start >= cells[at].End {
			continue
		}

		if isPhrase(p.Text[cells[at].Start:cells[at].End], columns) {
			return found
		}

		if len(rows) == 0 || isPhrase(p.Text[cells[0].Start:cells[0].End], rows) {
			found = append(found, cells[at])
		}
	}

	return found
}
