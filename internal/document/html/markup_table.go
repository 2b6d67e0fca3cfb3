package html

import (
	"slices"
	"strings"

	"github.com/coditect/mapreduce/internal/document/richtext"
)

// Bounds of tables.
const (
	maxColumns        = 1000
	maxRows           = 200_000
	maxTables         = 20      // within each other
	maxMarkupRepeated = 4 << 20 // bytes of cells that stand in several rows of a table
)

// An openTable is one that is being read.
type openTable struct {
	rows     [][]richtext.Cell
	heads    []bool           // by row: it has heads alone
	inHead   bool             // the part for heads is open
	width    int              // columns of the last row
	cell     *strings.Builder // that is open; nil outside of cells
	cover    int              // columns that the open cell covers
	down     int              // rows that it does
	hanging  map[int]hanging  // by column: cells that stand in rows to come, too
	repeated int              // bytes that those said again
	inner    []richtext.Table // tables of values within its cells
}

// A hanging cell stands in some rows more.
type hanging struct {
	cell richtext.Cell
	rows int
}

// table returns the innermost table that is open; nil if none is.
func (r *reader) table() *openTable {
	if n := len(r.tables); n > 0 && r.deeper == 0 {
		return r.tables[n-1]
	}
	return nil
}

// cell returns the cell to which text belongs; nil outside of tables.
func (r *reader) cell() *strings.Builder {
	for _, table := range slices.Backward(r.tables) {
		if table.cell != nil {
			return table.cell
		}
	}
	return nil
}

// startTable begins a table or a part of one.
func (r *reader) startTable(name string, attributes map[string]string) bool {
	switch name {
	case "table":
		r.endParagraph()
		// Tables within too many others are only counted, so that their ends are known.
		if r.deeper > 0 || len(r.tables) == maxTables {
			r.deeper++
			return true
		}
		r.tables = append(r.tables, &openTable{})
	case "caption":
		r.endParagraph()
	case "thead", "tbody", "tfoot", "tr", "td", "th":
		t := r.table()
		if t == nil { // no part of a table
			r.endParagraph()
			return true
		}
		r.startPart(t, name, attributes)
	default:
		return false
	}

	return true
}

// startPart begins a part of a table.
func (r *reader) startPart(t *openTable, name string, attributes map[string]string) {
	r.endCell(t)

	switch name {
	case "thead", "tbody", "tfoot":
		t.inHead = name == "thead"
		clear(t.hanging) // cells end with their part of the table
	case "tr":
		if len(t.rows) < maxRows {
			r.addRow(t)
			r.fill(t)
		}
	default:
		if len(t.rows) == 0 {
			r.addRow(t)
		}
		t.cell = new(strings.Builder)
		t.cover = min(max(1, number(attributes["colspan"], 1)), maxColumns)
		t.down = min(max(1, number(attributes["rowspan"], 1)), maxRows)
		// A row is one of heads as long as each of its cells is.
		if name == "td" && !t.inHead {
			t.heads[len(t.heads)-1] = false
		}
	}
}

// addRow begins a row.
func (r *reader) addRow(t *openTable) {
	t.rows, t.heads = append(t.rows, nil), append(t.heads, true)
	t.width = 0
	_ = r.writer.CountCells(1) // Write asks for the error
}

// addCell adds a cell at the end of the last row.
func (r *reader) addCell(t *openTable, c richtext.Cell) {
	last := &t.rows[len(t.rows)-1]
	*last = append(*last, c)
	t.width += max(c.Span, 1)
	_ = r.writer.CountCells(max(c.Span, 1)) // Write asks for the error
}

// fill adds the cells at the end of the last row that stand in rows above it, too.
func (r *reader) fill(t *openTable) {
	for t.width < maxColumns {
		h, ok := t.hanging[t.width]
		if !ok || h.rows == 0 {
			return
		}

		h.rows--
		t.hanging[t.width] = h

		if t.repeated += len(h.cell.Text); t.repeated > maxMarkupRepeated {
			h.cell.Text = ""
		}
		h.cell.Tall = true
		r.addCell(t, h.cell)
	}
}

// endCell ends the cell that is open.
func (r *reader) endCell(t *openTable) {
	if t.cell == nil {
		return
	}

	r.endParagraph()
	text := t.cell.String()
	t.cell = nil

	cover := min(t.cover, maxColumns-t.width)
	if cover <= 0 {
		return
	}

	// The cell stands in the rows below, too, which are filled as they are read.
	c := richtext.Cell{Text: strings.TrimSuffix(text, "\n"), Place: r.options.Place()}
	if cover > 1 {
		c.Span = cover
	}

	if t.down > 1 {
		if t.hanging == nil {
			t.hanging = map[int]hanging{}
		}
		t.hanging[t.width] = hanging{c, t.down - 1}
	}

	r.addCell(t, c)
	r.fill(t)
}

// endTablePart ends a table or a part of one.
func (r *reader) endTablePart(name string) {
	t := r.table()
	switch {
	case name == "table" && r.deeper > 0:
		r.endParagraph()
		r.deeper--
	case t == nil:
		r.endParagraph()
	case name == "table":
		r.endTable()
	case name == "thead", name == "tbody", name == "tfoot":
		r.endCell(t)
		t.inHead = false
		clear(t.hanging)
	default:
		r.endCell(t)
	}
}

// endTable ends the innermost table. One of values within a cell stands behind the table of that,
// and any other there is text of the cell. A table of a single cell is a frame around its text.
func (r *reader) endTable() {
	last := len(r.tables) - 1
	t := r.tables[last]
	r.endCell(t)
	r.endParagraph()
	r.tables = r.tables[:last]

	one := t.finish()
	// A table that lays the page out within a cell is text of the cell.
	if outer := r.cell(); outer != nil {
		within := r.tables[last-1]
		if one.isOfValues() {
			within.inner = append(within.inner, one.Table)
		} else {
			for _, row := range one.Rows {
				for _, c := range row {
					outer.WriteString(c.Text + "\n")
				}
			}
		}
		within.inner = append(within.inner, t.inner...)
		return
	}

	if len(one.Rows) == 1 && richtext.Width(one.Rows[0]) == 1 {
		r.writer.Paragraph(one.Rows[0][0].Text, one.Rows[0][0].Place)
	} else {
		r.writer.WriteTable(one.Table)
	}

	for _, inner := range t.inner {
		r.writer.WriteTable(inner)
	}
}

// A finished table is one that has been read.
type finished struct{ richtext.Table }

// finish returns the rows of a table that have cells, and how many of the first are heads.
func (t *openTable) finish() finished {
	one := finished{}
	for i, row := range t.rows {
		if len(row) == 0 {
			continue
		}

		if t.heads[i] && one.Heads == len(one.Rows) {
			one.Heads++
		}
		one.Rows = append(one.Rows, row)
	}

	if one.Heads == len(one.Rows) {
		one.Heads = 0 // all of them are, which says nothing
	}

	return one
}

// isOfValues reports whether two rows or more have two values or more: other tables within cells
// lay a page out.
func (f finished) isOfValues() bool {
	full := 0
	for _, row := range f.Rows {
		values := 0
		for _, c := range row {
			if strings.TrimSpace(c.Text) != "" {
				values++
			}
		}

		if values > 1 {
			full++
		}
	}
	return full > 1
}
