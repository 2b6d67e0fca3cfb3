package compound

import (
	"slices"

	"github.com/coditect/mapreduce/internal/document/richtext"
)

// A tableRow is a row of a table with the places of its cells.
type tableRow struct {
	cells []richtext.Cell
	edges []int  // in twentieths of a point: of cell i those at i and i+1; none if they are not known
	goOn  []bool // whether each cell goes on with that of the row above
}

// sameEdge is how far edges of cells may be from each other to be one, in twentieths of a point.
const sameEdge = 60

// endTable writes the table that has ended, if there is one: cells in their columns, those that
// cover several rows in each of these.
func (w *writer) endTable() {
	if len(w.cell) > 0 || len(w.row) > 0 { // the end of the row is missing
		w.row = append(w.row, richtext.Cell{Text: joined(w.cell), Place: w.place()})
		w.table = append(w.table, tableRow{cells: w.row})
		w.cell, w.row = nil, nil
	}

	rows := w.table
	if w.table = nil; len(rows) == 0 {
		return
	}

	edges := edgesOf(rows)
	out := make([][]richtext.Cell, len(rows))
	for i, r := range rows {
		out[i] = r.spreadCells(edges)
		// Columns that cells cover count, too: few cells may cover very many.
		if err := w.text.CountCells(richtext.Width(out[i]) - len(r.cells)); err != nil {
			return
		}

		if i > 0 {
			r.goOnFrom(out[i-1], out[i])
		}
	}

	w.text.Table(out)
}

func joined(lines []string) (text string) {
	for i, line := range lines {
		if i > 0 {
			text += " "
		}
		text += line
	}
	return text
}

// edgesOf returns the edges of the columns of a table, from left to right; none if a row does not
// say where its cells are.
func edgesOf(rows []tableRow) []int {
	var all []int
	for _, r := range rows {
		if len(r.edges) != len(r.cells)+1 || !slices.IsSorted(r.edges) {
			return nil
		}
		all = append(all, r.edges...)
	}

	slices.Sort(all)

	var edges []int
	// Edges that nearly touch are one, and have the place of the first.
	for _, e := range all {
		if n := len(edges); n == 0 || e-edges[n-1] > sameEdge {
			edges = append(edges, e)
		}
	}
	return edges
}

// spreadCells returns the cells of a row with the columns that each covers. Where its first cell
// begins behind the first column, an empty cell stands in front of it.
func (r *tableRow) spreadCells(edges []int) []richtext.Cell {
	if edges == nil {
		return r.cells
	}

	column := func(edge int) int {
		i, found := slices.BinarySearch(edges, edge)
		if !found && i > 0 {
			i-- // edges that are one have the place of the first
		}
		return i
	}

	out := make([]richtext.Cell, 0, len(r.cells)+1)
	if before := column(r.edges[0]); before > 0 {
		out = append(out, richtext.Cell{Times: before})
	}

	for i, c := range r.cells {
		c.Span = max(column(r.edges[i+1])-column(r.edges[i]), 1)
		out = append(out, c)
	}
	return out
}

// goOnFrom repeats in a row what cells say that cover the row above, too.
func (r *tableRow) goOnFrom(above, row []richtext.Cell) {
	if len(r.goOn) != len(r.cells) {
		return
	}

	shift, column := len(row)-len(r.cells), 0
	for i := range row {
		// Only an empty cell takes over what stands above: one with a text has its own.
		if k := i - shift; k >= 0 && r.goOn[k] && row[i].Text == "" {
			at := 0
			for _, c := range above {
				if at == column {
					row[i].Text, row[i].Place, row[i].Tall = c.Text, c.Place, true
				}
				at += max(c.Span, c.Times, 1)
			}
		}

		column += max(row[i].Span, row[i].Times, 1)
	}
}
