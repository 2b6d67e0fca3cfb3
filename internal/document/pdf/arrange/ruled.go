package arrange

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// Bounds of tables with lines.
const (
	leastFilled   = 0.1 // of all cells that hold something: a chart or a frame has fewer
	leastCells    = 3   // that hold something
	wordsOfTitle  = 30  // of a row that is one cell, at most: a longer one is running text
	rowsBySight   = 3   // rows of a table, at most, whose lines may stand for many rows
	leastGaps     = 3   // one below the other that part columns
	shareOfGaps   = 0.4 // of the lines of a column that have them
	wordsRepeated = 60  // of a cell of several rows, at most, that stand in each of them
)

// takeTables takes the words of tables with lines out of the words of a page, and puts a word in
// place of each table that stands for it.
func takeTables(words []Word, lattices []*Lattice, page Direction) []Word {
	tables := make(map[int]*grid) // by the first word of each
	taken := make([]bool, len(words))
	for _, l := range lattices {
		for _, t := range l.tablesOf(words, taken) {
			g := t.asGrid(words, page)
			if g == nil {
				continue
			}
			tables[slices.Min(t.all)] = g
			for _, i := range t.all {
				taken[i] = true
			}
		}
	}

	if len(tables) == 0 {
		return words
	}

	out := make([]Word, 0, len(words))
	for i, w := range words {
		if g := tables[i]; g != nil {
			out = append(out, Word{Box: g.box, Line: -1 - i, grid: g})
		}

		if !taken[i] {
			out = append(out, w)
		}
	}
	return out
}

// A ruledTable is some rows of a lattice with the words that stand in them.
type ruledTable struct {
	lattice *Lattice
	from    int     // the first row
	to      int     // the row behind the last
	words   [][]int // by cells of the lattice, the numbers of its words
	all     []int   // the numbers of all words
}

// tablesOf returns the tables of a lattice: what stands between rows of running text. taken says
// which words another table has.
func (l *Lattice) tablesOf(words []Word, taken []bool) []*ruledTable {
	in := make([][]int, len(l.spans))
	for i, w := range words {
		if r, c, ok := l.field((w.Box.Left+w.Box.Right)/2, (w.Box.Top+w.Box.Bottom)/2); ok && !taken[i] {
			n := l.cells[r*l.countColumns()+c]
			in[n] = append(in[n], i)
		}
	}
	in = l.complete(words, in)

	var all []*ruledTable
	for from := 0; from < l.rows(); {
		to := from
		for to < l.rows() && !l.isText(to, in) {
			to++
		}
		if t := l.table(from, to, in); t != nil {
			all = append(all, t)
		}
		from = to + 1
	}
	return all
}

// isText reports whether a row is running text: one cell of many words.
func (l *Lattice) isText(row int, in [][]int) bool {
	n := l.cells[row*l.countColumns()]
	s := l.spans[n]
	return s.right-s.left == l.countColumns() && len(in[n]) > wordsOfTitle
}

// table returns rows [from, to) as a table, without those at the begin and the end that are one
// cell, as a title is; nil if nothing is left.
func (l *Lattice) table(from, to int, in [][]int) *ruledTable {
	oneCell := func(row int) bool {
		s := l.spans[l.cells[row*l.countColumns()]]
		return s.right-s.left == l.countColumns()
	}

	for from < to && oneCell(from) {
		from++
	}
	for from < to && oneCell(to-1) {
		to--
	}

	if from == to {
		return nil
	}

	t := &ruledTable{lattice: l, from: from, to: to, words: in}
	for n, s := range l.spans {
		if s.top < to && s.bottom > from {
			t.all = append(t.all, in[n]...)
		}
	}

	return t
}

// asGrid returns the table; nil if it is none.
func (t *ruledTable) asGrid(words []Word, page Direction) *grid {
	rows, columns := t.filled()
	if len(columns) < 2 || len(columns) > mostColumns || len(rows) > maxGridRows || !t.isDense(len(rows), len(columns)) {
		return nil
	}

	heads := t.countHeads(rows, columns)
	if page == RightToLeft {
		slices.Reverse(columns)
	}

	g := &grid{columns: make([]interval, len(columns)), ruled: true}
	for i, c := range columns {
		g.columns[i] = interval{t.lattice.xs[c], t.lattice.xs[c+1]}
	}

	for _, r := range rows {
		g.rows = append(g.rows, t.row(r, columns, words, page))
	}

	if len(rows) <= rowsBySight {
		g.splitRows(heads)
	}

	// Splitting rows may have made of it what is no table.
	if len(g.rows) < 2 || g.isForm() || g.isCoarse() {
		return nil
	}

	g.heads = max(heads, g.countHeads())

	b := t.lattice.box()
	g.box = mapreduce.Box{
		Page: words[t.all[0]].Box.Page, Left: Within(b.Left), Right: Within(b.Right),
		Top: Within(t.lattice.ys[t.from]), Bottom: Within(t.lattice.ys[t.to]),
	}
	return g
}

// filled returns the rows and the columns in which something stands. A cell that covers several
// of them needs one of its own only if nothing else stands there: what else lines part is the
// space between double lines, or is empty.
func (t *ruledTable) filled() (rows, columns []int) {
	l := t.lattice
	var across, down []interval
	for n, s := range l.spans {
		if len(t.words[n]) > 0 && s.top < t.to && s.bottom > t.from {
			down = append(down, interval{float64(max(s.top, t.from)), float64(min(s.bottom, t.to))})
			across = append(across, interval{float64(s.left), float64(s.right)})
		}
	}
	return needed(down), needed(across)
}

// needed returns the least places, sorted, of which each interval has one: first those of
// intervals of one place.
func needed(all []interval) []int {
	places := make(map[int]bool)

	slices.SortFunc(all, func(a, b interval) int {
		return cmp.Or(cmp.Compare(a.to-a.from, b.to-b.from), cmp.Compare(a.from, b.from))
	})

	for _, i := range all {
		// The shortest interval has the least choice: the place that it takes may serve
		// longer ones.
		has := false
		for at := int(i.from); at < int(i.to) && !has; at++ {
			has = places[at]
		}

		if !has {
			places[int(i.from)] = true
		}
	}

	return slices.Sorted(maps.Keys(places))
}

// isDense reports whether enough cells hold something.
func (t *ruledTable) isDense(rows, columns int) bool {
	cells := 0
	for n, s := range t.lattice.spans {
		if len(t.words[n]) > 0 && s.top < t.to && s.bottom > t.from {
			cells++
		}
	}
	inside := (t.to - t.from) * len(t.lattice.spans) / t.lattice.rows() // cells, about
	return cells >= leastCells && float64(cells) >= leastFilled*float64(max(rows*columns, inside))
}

// row returns a row of the table.
func (t *ruledTable) row(r int, columns []int, words []Word, page Direction) gridRow {
	l := t.lattice
	row := gridRow{cells: make([]gridCell, len(columns)), box: mapreduce.Box{Top: l.ys[r], Bottom: l.ys[r+1]}}

	before := -1
	for i, c := range columns {
		n := l.cells[r*l.countColumns()+c]
		s := l.spans[n]

		switch {
		case n == before:
			row.cells[i].joined = true
		case max(s.top, t.from) < r && len(t.words[n]) > wordsRepeated && t.standsAbove(n, r): // it is said once
		default:
			row.cells[i].words = arrangeCell(words, t.words[n], page)
		}

		before = n
	}

	return row
}

// countHeads returns how many rows are heads as far as the lines say so: rows of cells that
// cover several columns, and those that the cells of the first row cover too.
func (t *ruledTable) countHeads(rows, columns []int) int {
	heads := 1
	for n := 0; n < heads; n++ {
		for _, c := range columns {
			at := t.lattice.cells[rows[n]*t.lattice.countColumns()+c]
			s, words := t.lattice.spans[at], len(t.words[at])

			last, _ := slices.BinarySearch(rows, s.bottom)

			first, _ := slices.BinarySearch(columns, s.left)
			behind, _ := slices.BinarySearch(columns, s.right)

			if behind-first > 1 && words > 0 {
				last++ // what it parts into stands below it
			}

			if last <= mostHeads && last < len(rows) {
				heads = max(heads, last)
			}
		}
	}

	return heads
}

// arrangeCell returns some of the words of a page as they are read in a cell.
func arrangeCell(words []Word, which []int, page Direction) []Word {
	in := make([]Word, len(which))
	upright := 0
	for i, n := range which {
		in[i] = words[n]
		if b := in[i].Box; b.Bottom-b.Top > 2*(b.Right-b.Left) && len(in[i].Text) > 2 {
			upright++
		}
	}

	if 2*upright > len(in) { // they are turned: the file has them in order
		space(in)
		return in
	}

	var out []Word
	for _, r := range joinBeside(sortDownwards(linesOf(in))) {
		if tallyOf(r.words).rightToLeft > 0 {
			sortWords(r.words)
		}
		r.read(page, medianWordHeight(in))
		out = append(out, r.words...)
	}

	for i := range out {
		if out[i].before == "\t" || i > 0 && out[i].Line != out[i-1].Line {
			out[i].before = " "
		}
	}
	return out
}

// standsAbove reports whether a cell stands in a row of the table above another.
func (t *ruledTable) standsAbove(cell, r int) bool {
	rows, _ := t.filled()
	return slices.ContainsFunc(rows, func(at int) bool { return at < r && at >= t.lattice.spans[cell].top })
}

// linesOf splits the words of a cell, in the order of the file, where a line ends. A comma stands
// in the line of the words before it, though it is lower than they are.
func linesOf(words []Word) []Row {
	var rows []Row
	for i, w := range words {
		if i > 0 {
			a, b := words[i-1].Box, w.Box
			height := max(a.Bottom-a.Top, b.Bottom-b.Top)

			// Within a line of the file, a word at the left, or one above or below by a
			// quarter of its height, begins another line of the cell.
			if w.Line == words[i-1].Line && b.Left >= a.Left && max(a.Top, b.Top)-min(a.Bottom, b.Bottom) < height/4 {
				rows[len(rows)-1].add(w)
				continue
			}
		}

		rows = append(rows, Row{})
		rows[len(rows)-1].add(w)
	}

	return rows
}

// isCoarse reports whether the cells of a column have gaps one below the other as there are
// between cells. Then the lines part not all that is to be parted: groups of columns, or every
// second row.
func (g *grid) isCoarse() bool {
	for at := range g.columns {
		var gaps []interval

		lines := 0
		for i := range g.rows {
			c := g.rows[i].cells[at]
			for k := range c.words {
				if k == 0 || !beside(c.words[k-1].Box, c.words[k].Box) {
					lines++
				}
			}

			gaps = append(gaps, c.gaps()...)
		}

		if n := deepest(gaps); n >= leastGaps && float64(n) > shareOfGaps*float64(lines) {
			return true
		}
	}
	return false
}

// gaps returns the gaps in a cell that are as wide as those between cells.
func (c *gridCell) gaps() (all []interval) {
	if len(c.words) < 2 {
		return nil
	}
	least := cellGap * max(medianWordHeight(c.words), 1)
	for i := 1; i < len(c.words); i++ {
		if a, b := c.words[i-1].Box, c.words[i].Box; beside(a, b) && b.Left-a.Right > least && !isBullet(c.words[i-1].Text) {
			all = append(all, interval{a.Right, b.Left})
		}
	}
	return all
}

// isBullet reports whether a text is a sign before an entry of a list.
func isBullet(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }) < 0
}

// deepest returns how many intervals have a place in common.
func deepest(all []interval) (most int) {
	var ends []float64
	slices.SortFunc(all, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	for _, i := range all {
		ends = slices.DeleteFunc(ends, func(end float64) bool { return end <= i.from })
		ends = append(ends, i.to)
		most = max(most, len(ends))
	}
	return most
}
