package page

import (
	"slices"
	"strings"

	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/table"
)

// A sheet is a text that may be one table as a whole, below headings: its lines have tabs,
// commas or semicolons between their cells.
type sheet struct {
	page  *Page
	head  int // the line with the names of its columns
	style form.Style
}

// sheetOf returns the sheet that a text may be, by its first line that is no heading.
func sheetOf(t *Page) (sheet, bool) {
	head := slices.IndexFunc(t.Lines, func(l form.Span) bool { return !isBlankOrHeading(l.Of(t.Text)) })
	if head < 0 {
		return sheet{}, false
	}
	style := form.StyleOf(t.LineText(head))
	return sheet{t, head, style}, style == form.Tabs || style == form.Commas || style == form.Semicolons
}

// appendSheet adds the table that a text is as a whole, if nearly all of its lines have as many
// cells as the first.
func appendSheet(into []Table, t *Page) []Table {
	s, ok := sheetOf(t)
	if !ok {
		return into
	}

	all := Table{Style: s.style, Table: table.Table{Start: t.Lines[s.head].Start, Heads: []table.Line{table.Line(t.Lines[s.head])}}}
	all.Columns = len(all.Cells(t.Text, all.Heads[0], nil))
	if !s.isEven(all.Columns) {
		return into
	}

	// Blank lines and rules are no rows.
	for i := s.head + 1; i < len(t.Lines); i++ {
		if s.isRow(i) {
			all.Rows = append(all.Rows, table.Line(t.Lines[i]))
		}
	}

	all.End = t.Lines[len(t.Lines)-1].End
	return append(into, all)
}

// SampleRows are the lines whose cells are counted to tell a grid from other text.
const SampleRows = 50

// isEven reports whether nearly all of the first lines below the head have so many cells.
func (s sheet) isEven(cells int) bool {
	rows, even := 0, 0
	for i := s.head + 1; i < len(s.page.Lines) && rows < SampleRows; i++ {
		if !s.isRow(i) {
			continue
		}

		rows++
		if len(form.Split(s.page.Text, s.page.Lines[i], s.style)) == cells {
			even++
		}
	}

	return rows > 0 && even*10 >= rows*9
}

// isRow reports whether line i is neither blank nor a rule, as stands below the head of a
// table.
func (s sheet) isRow(i int) bool {
	line := strings.TrimSpace(s.page.LineText(i))
	return line != "" && !form.IsRule(line)
}
