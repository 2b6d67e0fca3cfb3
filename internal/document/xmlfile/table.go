package xmlfile

import (
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/document/sheet"
)

// maxRepeated bounds the bytes of cells that stand in several rows.
const maxRepeated = 4 << 20

// A gridReader reads the rows of a table: those of HTML, or of CALS.
type gridReader struct {
	w        *writer
	rows     [][]richtext.Cell
	heads    int
	names    map[string]int // columns of CALS, by name
	below    []hanging      // cells that stand in rows to come, by column
	repeated int
	apart    []*node // tables within cells
}

// A hanging cell stands in some rows more.
type hanging struct {
	cell richtext.Cell
	rows int
}

// writeTable writes a table below its caption, and behind it those within its cells.
func (w *writer) writeTable(n *node, caption string) {
	r := &gridReader{w: w, names: map[string]int{}}

	if caption == "" {
		caption = plainText(n.child("caption", "title"))
	}

	r.read(n, false)

	if len(r.rows) > 0 && !w.stopped() {
		w.text.WriteTable(richtext.Table{Caption: caption, Place: w.place, Heads: r.heads, Rows: r.rows})
	} else {
		w.writeParagraph(caption)
	}

	for _, inner := range r.apart {
		w.writeTable(inner, "")
	}
}

// read reads the rows within an element.
func (r *gridReader) read(n *node, head bool) {
	for _, c := range n.elementsIn() {
		if r.w.stopped() {
			return
		}
		switch c.name {
		case "colspec":
			// A column without a number is the one behind those named so far.
			column := len(r.names)
			if number, err := strconv.Atoi(c.attributeOf("colnum")); err == nil && number > 0 {
				column = number - 1
			}
			r.names[c.attributeOf("colname")] = column
		case "thead":
			r.read(c, true)
		case "tbody", "tfoot", "tgroup", "table":
			r.read(c, false)
		case "tr", "row":
			r.readRow(c, head)
		}
	}
}

// readRow reads a row.
func (r *gridReader) readRow(n *node, head bool) {
	var row []richtext.Cell

	allHeads, width := true, 0
	for _, c := range n.elementsIn() {
		if c.name != "td" && c.name != "th" && c.name != "entry" {
			continue
		}

		allHeads = allHeads && c.name == "th"

		// Cells that hang down from rows above come before this one in the columns.
		row, width = r.addHanging(row, width, false)
		cell := richtext.Cell{Text: r.textOf(c), Place: r.w.place, Span: r.spanOf(c)}

		if rows := rowsOf(c); rows > 1 {
			for len(r.below) <= width {
				r.below = append(r.below, hanging{})
			}
			r.below[width] = hanging{cell, rows}
		}

		row, width = append(row, cell), width+max(cell.Span, 1)
		if width > sheet.MaxColumns || r.w.text.CountCells(max(cell.Span, 1)) != nil {
			return
		}
	}

	row, _ = r.addHanging(row, width, true)

	for i := range r.below {
		r.below[i].rows--
	}

	if len(row) == 0 {
		return
	}

	// Rows of heads alone are heads, too, but only above all others.
	if (head || allHeads) && r.heads == len(r.rows) {
		r.heads++
	}

	r.rows = append(r.rows, row)
}

// addHanging adds the cells of rows above that stand in the next columns of a row, or in all that
// follow.
func (r *gridReader) addHanging(row []richtext.Cell, width int, rest bool) ([]richtext.Cell, int) {
	for width < len(r.below) {
		h := &r.below[width]
		if h.rows <= 0 {
			// Behind the last cell, gaps in front of cells that still hang down become
			// empty cells.
			if !rest || !r.hangsBehind(width) {
				return row, width
			}
			row, width = append(row, richtext.Cell{}), width+1
			continue
		}

		cell := h.cell

		// What is repeated is bounded in bytes: the cells stay, without their text.
		if r.repeated += len(cell.Text); r.repeated > maxRepeated {
			cell.Text = ""
		}

		row, width = append(row, cell), width+max(cell.Span, 1)
	}
	return row, width
}

// hangsBehind reports whether a cell of a row above stands behind a column.
func (r *gridReader) hangsBehind(column int) bool {
	for _, h := range r.below[column+1:] {
		if h.rows > 0 {
			return true
		}
	}
	return false
}

// rowsOf returns how many rows a cell stands in.
func rowsOf(c *node) int {
	if n, err := strconv.Atoi(c.attributeOf("rowspan")); err == nil {
		return min(max(n, 1), 65534)
	}
	if n, err := strconv.Atoi(c.attributeOf("morerows")); err == nil {
		return min(max(n, 0), 65533) + 1
	}
	return 1
}

// spanOf returns how many columns a cell covers.
func (r *gridReader) spanOf(c *node) int {
	if n, err := strconv.Atoi(c.attributeOf("colspan")); err == nil && n > 1 {
		return min(n, 1000)
	}
	first, known := r.names[c.attributeOf("namest")]
	last, ends := r.names[c.attributeOf("nameend")]
	if known && ends && last > first {
		return min(last-first+1, 1000)
	}
	return 0
}

// textOf returns the text of a cell. Tables within it are kept for later.
func (r *gridReader) textOf(c *node) string {
	if t := find(c, "table", "tgroup"); t != nil {
		r.apart = append(r.apart, t)
		c = without(c, "table", "tgroup", "table-wrap")
	}
	return strings.TrimSpace(plainText(c))
}
