package html

import (
	"slices"
	"strings"

	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/text/table"
)

// A readRow is a row of a table with each of its cells in its column.
type readRow struct {
	gridRow
	columns []textCell
	named   bool // each of its own cells is a name
}

// gridRows returns the rows of a table with each cell in its column, how many of them are
// its head, and its columns. A cell that covers several rows stands in each of them.
func (p *htmlParser) gridRows(g *grid) (rows [][]textCell, heads, columns int) {
	ordered := slices.Clone(g.rows) // heads first, feet last
	slices.SortStableFunc(ordered, func(a, b gridRow) int { return a.place() - b.place() })

	var read []readRow
	r := rowReader{page: p, covered: map[int]hangingCell{}}
	for _, row := range ordered {
		if row.hidden {
			continue
		}

		one := r.read(row)
		if p.tables.refused != nil {
			return nil, 0, 0
		}

		if slices.ContainsFunc(one.columns, func(c textCell) bool { return strings.TrimSpace(c.text) != "" }) {
			read, rows = append(read, one), append(rows, one.columns)
			columns = max(columns, len(one.columns))
		}
	}

	p.tables.count(max(0, len(rows)*columns-p.tables.cells)) // shorter rows are filled

	heads = headsOf(read)
	if heads == len(rows) && heads > 1 && !slices.ContainsFunc(ordered, func(r gridRow) bool { return r.head }) {
		heads = 1 // a table of nothing but names
	}

	return rows, max(heads, 1), columns
}

// headsOf returns how many rows are the head of their table; 0 if none is known to be.
func headsOf(rows []readRow) (heads int) {
	for i, row := range rows[:min(len(rows), table.MaxHeads)] {
		switch {
		case (row.head || row.named) && heads == i:
			heads++
		case i > 0 && i == max(heads, 1) && goesOn(rows, i, heads > 0):
			heads = i + 1
		}
	}
	return heads
}

// goesOn reports whether row i belongs to the head that the row above it ends, as cells cover both.
func goesOn(rows []readRow, i int, said bool) bool {
	above, row := rows[i-1].cellsAcross(), rows[i].cellsAcross()
	if said {
		return richtext.DividesNames(above, row)
	}

	return richtext.HeadGoesOn(above, row, func(yield func([]richtext.Cell) bool) {
		for _, r := range rows[i+1:] {
			if !yield(r.cellsAcross()) {
				return
			}
		}
	}, false)
}

// cellsAcross returns the cells of a row with the columns that each has.
func (r *readRow) cellsAcross() (cells []richtext.Cell) {
	for _, c := range r.columns {
		if c.joined && len(cells) > 0 {
			cells[len(cells)-1].Span++
		} else {
			cells = append(cells, richtext.Cell{Text: c.text, Span: 1, Tall: c.tall})
		}
	}
	return cells
}

// A hangingCell is a cell that covers rows below its own.
type hangingCell struct {
	textCell
	left int // rows that it covers yet
}

// A rowReader reads the rows of a table, one below the other.
type rowReader struct {
	page    *htmlParser
	covered map[int]hangingCell // by column
	part    int                 // of the table that the row above is in
}

// read reads a row below those that were read before. The page is refused if it has too many cells.
func (r *rowReader) read(row gridRow) readRow {
	// Browsers end cells with their part of the table, whatever they say.
	if row.part != r.part {
		r.part = row.part
		clear(r.covered)
	}

	one := readRow{gridRow: row, named: len(row.cells) > 1}
	for _, c := range row.cells {
		if c.hidden {
			continue
		}

		r.fill(&one)
		one.named = one.named && c.head
		r.add(&one, c)
		if r.page.tables.count(c.across); r.page.tables.refused != nil {
			return one
		}
	}

	r.fill(&one)
	return one
}

// fill adds the cells at the end of a row that stand in rows above it, too.
func (r *rowReader) fill(one *readRow) {
	for {
		column := len(one.columns)
		above := r.covered[column]
		if above.left == 0 {
			return
		}

		if r.page.tables.count(1); r.page.tables.refused != nil {
			return
		}

		r.repeat(&above.textCell)
		above.tall = true
		one.columns = append(one.columns, above.textCell)
		if above.left--; above.left == 0 {
			delete(r.covered, column)
		} else {
			r.covered[column] = above
		}
	}
}

// add adds a cell at the end of a row, in each of its columns.
func (r *rowReader) add(one *readRow, c gridCell) {
	cell := r.page.readApart(c.extent)
	for i := range c.across {
		cell.joined = i > 0
		if i > 0 && (c.head || one.head) { // names of columns are written again
			r.repeat(&cell)
		}

		if c.down > 1 {
			r.covered[len(one.columns)] = hangingCell{cell, c.down - 1}
		}
		one.columns = append(one.columns, cell)
	}
}

// repeat counts what a cell says again, and empties it where that is too much.
func (r *rowReader) repeat(c *textCell) {
	if r.page.tables.repeated += len(c.text); r.page.tables.repeated > maxRepeated {
		c.text = ""
	}
}

// place is where a row stands among the others: heads first, feet last.
func (r gridRow) place() int {
	switch {
	case r.head:
		return 0
	case r.foot:
		return 2
	}
	return 1
}
