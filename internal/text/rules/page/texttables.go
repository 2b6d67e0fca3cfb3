package page

import (
	"slices"
	"strings"

	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/table"
)

// A Table is a table of a text: one between bars, or the whole of a text whose lines
// have tabs, commas or semicolons between their cells.
type Table struct {
	table.Table
	Style form.Style // None of one between bars
}

// Cells returns the cells of a row. It appends to into.
func (t *Table) Cells(text string, l table.Line, into []table.Cell) []table.Cell {
	if t.Style == form.None {
		return table.Cells(text, l, into)
	}
	for _, c := range form.Split(text, form.Span(l), t.Style) {
		into = append(into, table.Cell{Start: c.Start, End: max(c.Start, c.End)})
	}
	return into
}

// ReadTables returns the tables of a text; first says that it begins where its document does. Of a text that does not begin where its document
// does, rows stand above the first head, which was cut off: they are rows of that table.
func (p *Page) ReadTables(first bool) []Table {
	var all []Table
	for _, one := range table.Read(p.Text) {
		all = append(all, Table{Table: one})
	}

	if len(all) == 0 {
		if first {
			all = appendSheet(all, p)
		}
		return all
	}

	if !first {
		p.prependRows(&all[0])
	}

	return all
}

// prependRows adds the rows above the first piece of a table to it.
func (p *Page) prependRows(first *Table) {
	at := p.LineAt(first.Start)

	// The rows stand two lines above the head, with a blank line between.
	if at < 2 || strings.TrimSpace(p.LineText(at-1)) != "" {
		return
	}

	var rows []table.Line
	for i := at - 2; i >= 0; i-- {
		line := table.Line(p.Lines[i])
		if !strings.HasPrefix(strings.TrimSpace(p.LineText(i)), "|") || len(table.Cells(p.Text, line, nil)) != first.Columns {
			break
		}

		rows = append(rows, line)
	}

	slices.Reverse(rows)
	first.Rows = append(rows, first.Rows...)
}

// IsTables reports whether nothing stands in the text but its tables and headings.
func (p *Page) IsTables(tables []Table) bool {
	if len(tables) == 0 {
		return false
	}

	for i := range p.Lines {
		if len(tables) > 0 && p.Lines[i].Start >= tables[0].End {
			tables = tables[1:]
		}

		inTable := len(tables) > 0 && p.Lines[i].Start >= tables[0].Start
		if !inTable && !isBlankOrHeading(p.LineText(i)) {
			return false
		}
	}

	return true
}

// isBlankOrHeading reports whether a line may stand above a table that is otherwise all
// of a text, such as the name of a sheet.
func isBlankOrHeading(line string) bool {
	return strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#")
}
