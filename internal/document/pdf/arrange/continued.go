package arrange

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of tables that go on over the end of a page.
const (
	rowsAside   = 3   // of a page that may stand behind the table at its end, or before that at its begin
	sameEdge    = 3.0 // points by which the edges of columns may differ
	leastTyped  = 2   // cells with numbers that make a column one of numbers
	shareTyped  = 0.8 // of its cells
	lowestYear  = 1900
	highestYear = 2099
)

// GoOn has the first table of a page go on with the last one of the page before, if it has no
// head of its own: its columns have the same edges, and its first row has numbers where that
// table has some below words. A table whose columns have no numbers keeps its first row as its
// head, as nothing tells a head from a row.
func GoOn(before, rows []Row) {
	a, b := lastGrid(before), firstGrid(rows)
	if a == nil || b == nil || !sameColumns(a, b) || !a.typesFit(b) {
		return
	}
	b.above, b.heads = a, 0
	if a.above != nil {
		b.above = a.above
	}
}

// lastGrid returns the table at the end of a page; nil if there is none.
func lastGrid(rows []Row) *grid {
	for i := len(rows) - 1; i >= max(0, len(rows)-1-rowsAside); i-- {
		if rows[i].grid != nil {
			return rows[i].grid
		}
	}
	return nil
}

// firstGrid returns the table at the begin of a page; nil if there is none.
func firstGrid(rows []Row) *grid {
	for i := range rows[:min(len(rows), 1+rowsAside)] {
		if rows[i].grid != nil {
			return rows[i].grid
		}
	}
	return nil
}

// sameColumns reports whether the columns of two tables stand one below the other: those of
// lines have the same edges, those of aligned texts begin, end or have their middles at one
// place.
func sameColumns(a, b *grid) bool {
	if len(a.columns) != len(b.columns) || a.ruled != b.ruled {
		return false
	}

	same := func(x, y float64) bool { return math.Abs(x-y) <= sameEdge }
	for i, c := range a.columns {
		d := b.columns[i]
		left, right := same(c.from, d.from), same(c.to, d.to)
		if aligned := left || right || same(c.from+c.to, d.from+d.to); !aligned || a.ruled && !(left && right) {
			return false
		}
	}
	return true
}

// typesFit reports whether the rows of a table may be rows below the head of this one: in its
// columns of numbers, which words are the heads of, they have numbers from the first row on.
func (g *grid) typesFit(of *grid) bool {
	head, heads := g, g.heads
	if g.above != nil {
		head, heads = g.above, g.above.heads
	}

	found := false
	for at := range g.columns {
		if !isTyped(g.rows[g.heads:], at) || hasNumberAt(head.rows[:heads], at) {
			continue
		}

		first := of.rows[0].cells[at]
		switch {
		case first.joined || len(first.words) == 0:
			continue
		case !first.isNumber() || !isTyped(of.rows, at) && len(of.rows) > 1, first.isYear() && !g.rows[len(g.rows)-1].cells[at].isYear():
			return false
		}

		found = true
	}

	return found
}

// isTyped reports whether nearly all cells of a column are numbers.
func isTyped(rows []gridRow, at int) bool {
	cells, numbers := 0, 0
	for _, r := range rows {
		if c := r.cells[at]; len(c.words) > 0 {
			cells++
			if c.isNumber() {
				numbers++
			}
		}
	}
	return numbers >= min(leastTyped, len(rows)) && numbers > 0 && float64(numbers) >= shareTyped*float64(cells)
}

// hasNumberAt reports whether a cell of a column is a number.
func hasNumberAt(rows []gridRow, at int) bool {
	for _, r := range rows {
		if r.cells[at].isNumber() {
			return true
		}
	}
	return false
}

// isNumber reports whether the cell begins with a number, or an amount.
func (c *gridCell) isNumber() bool {
	if len(c.words) == 0 {
		return false
	}
	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(c.words[0].Text, "-+(−$€£¥"))
	return unicode.IsDigit(first)
}

// isYear reports whether the cell is a year, as heads of numbers may be.
func (c *gridCell) isYear() bool {
	if len(c.words) != 1 || len(c.words[0].Text) != 4 {
		return false
	}

	year := 0
	for _, digit := range c.words[0].Text {
		if digit < '0' || digit > '9' {
			return false
		}
		year = 10*year + int(digit-'0')
	}

	return year >= lowestYear && year <= highestYear
}
