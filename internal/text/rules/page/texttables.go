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
func (t *Page) ReadTables(first bool) []Table {
	var all []Table
	for _, one := range table.Read(t.Text) {
		all = append(all, Table{Table: one})
	}

	if len(all) == 0 {
		if one, ok := t.delimitedTable(); ok && first {
			all = append(all, one)
		}
		return all
	}

	if !first {
		t.prependRows(&all[0])
	}

	return all
}

// prependRows adds the rows above the first piece of a table to it.
func (t *Page) prependRows(first *Table) {
	at := t.LineAt(first.Start)

	// The rows stand two lines above the head, with a blank line between.
	if at < 2 || strings.TrimSpace(t.LineText(at-1)) != "" {
		return
	}

	var rows []table.Line
	for i := at - 2; i >= 0; i-- {
		line := table.Line(t.Lines[i])
		if !strings.HasPrefix(strings.TrimSpace(t.LineText(i)), "|") || len(table.Cells(t.Text, line, nil)) != first.Columns {
			break
		}

		rows = append(rows, line)
	}

	slices.Reverse(rows)
	first.Rows = append(rows, first.Rows...)
}

// delimitedTable returns the table that a text is as a whole, below headings, if nearly all
// of its lines have as many cells as the first.
func (t *Page) delimitedTable() (Table, bool) {
	head := slices.IndexFunc(t.Lines, func(l form.Span) bool { return !isBlankOrHeading(l.Of(t.Text)) })
	if head < 0 {
		return Table{}, false
	}

	style := form.StyleOf(t.LineText(head))
	if style != form.Tabs && style != form.Commas && style != form.Semicolons {
		return Table{}, false
	}

	all := Table{Style: style, Table: table.Table{Start: t.Lines[head].Start, Heads: []table.Line{table.Line(t.Lines[head])}}}
	all.Columns = len(all.Cells(t.Text, all.Heads[0], nil))
	if !t.hasRows(head, all.Columns, style) {
		return Table{}, false
	}

	// Blank lines and rules are no rows.
	for i := head + 1; i < len(t.Lines); i++ {
		if t.isRow(i) {
			all.Rows = append(all.Rows, table.Line(t.Lines[i]))
		}
	}

	all.End = t.Lines[len(t.Lines)-1].End
	return all, true
}

// IsTables reports whether nothing stands in the text but its tables and headings.
func (t *Page) IsTables(tables []Table) bool {
	if len(tables) == 0 {
		return false
	}

	for i := range t.Lines {
		if len(tables) > 0 && t.Lines[i].Start >= tables[0].End {
			tables = tables[1:]
		}

		inTable := len(tables) > 0 && t.Lines[i].Start >= tables[0].Start
		if !inTable && !isBlankOrHeading(t.LineText(i)) {
			return false
		}
	}

	return true
}

// SampleRows are the lines whose cells are counted to tell a grid from other text.
const SampleRows = 50

// isBlankOrHeading reports whether a line may stand above a table that is otherwise all
// of a text, such as the name of a sheet.
func isBlankOrHeading(line string) bool {
	return strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#")
}

// hasRows reports whether nearly all of the first lines below the head have as many
// cells.
func (t *Page) hasRows(head, cells int, style form.Style) bool {
	rows, even := 0, 0
	for i := head + 1; i < len(t.Lines) && rows < SampleRows; i++ {
		if !t.isRow(i) {
			continue
		}

		rows++
		if len(form.Split(t.Text, t.Lines[i], style)) == cells {
			even++
		}
	}

	return rows > 0 && even*10 >= rows*9
}

// isRow reports whether line i is neither blank nor a rule, as stands below the head of a
// table.
func (t *Page) isRow(i int) bool {
	line := strings.TrimSpace(t.LineText(i))
	return line != "" && !form.IsRule(line)
}
