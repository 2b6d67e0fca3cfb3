package arrange

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A grid is a table of a page: what is aligned in columns over several rows. It is written as
// a Markdown table (see internal/text/table), so that each value is known by its head.
type grid struct {
	columns []interval // from left to right; they do not overlap. Of lines, between them
	heads   int        // rows above the rule
	rows    []gridRow
	ruled   bool          // it has lines
	above   *grid         // of a page before, whose rows this one goes on with and whose heads it has; or nil
	box     mapreduce.Box // what the lines enclose, if it has some
}

// A gridRow is a row of a table: one cell for each column.
type gridRow struct {
	cells []gridCell
	box   mapreduce.Box
}

// A gridCell is the words of a cell, which may be none.
type gridCell struct {
	words  []Word
	joined bool // it belongs to the cell at its left
}

// Bounds of tables.
const (
	cellGap      = 0.9 // heights of a row that are free between cells, at least
	rowGap       = 2.6 // heights of a row that are free between rows of a table, at most
	leastColumns = 3   // fewer may be labels and their values, or a list
	wordsOfCell  = 6   // that cells of tables have on average, at most: more are columns of running text
	mostColumns  = 100
	loneRows     = 2   // rows of one cell that may follow each other in a table
	shareOfCells = 0.5 // of all cells of a table that hold something, at least
	// shareOfJoined is that of cells which belong to those at their left, at most.
	shareOfJoined = 0.25
)

// findGrids returns rows of a page, from top to bottom, with a row in place of those that are
// a table.
func findGrids(rows []Row) []Row {
	var out []Row
	for from := 0; from < len(rows); {
		if rows[from].grid != nil {
			out = append(out, rows[from])
			from++
			continue
		}

		g, to := gridAt(rows, from)
		if g == nil {
			to = max(to, from+1)
			out = append(out, rows[from:to]...)
			from = to
			continue
		}

		out = append(out, Row{box: boxOf(rows[from:to]), grid: g})
		from = to
	}

	return out
}

// gridAt returns the table that begins with a row, and the number of the row behind it. If none
// begins there, that is nil, and the number of the first row with which one may begin.
func gridAt(rows []Row, from int) (*grid, int) {
	var cells [][]Row
	to, last, lone := from, from, 0
	for ; to < len(rows) && len(cells) < maxGridRows; to++ {
		if rows[to].grid != nil || to > from && !followsRow(&rows[to-1], &rows[to]) {
			break
		}

		c := cellsOf(&rows[to])
		if len(c) < 2 {
			if lone++; to == from || lone > loneRows {
				break
			}
		} else {
			lone, last = 0, to+1
		}

		cells = append(cells, c)
	}
	// Lone rows at the end are not of the table.
	cells = cells[:min(len(cells), max(last-from, 0))]
	if len(cells) < 2 {
		return nil, from
	}

	g := newGrid(cells)
	switch {
	case !g.isTable(cells):
		return nil, from
	case g.isJustified():
		return nil, last
	}

	g.joinWrapped()
	g.heads = g.countHeads()

	for i := range g.rows {
		for _, c := range g.rows[i].cells {
			space(c.words)
		}
	}

	return g, last
}

// maxGridRows bounds the rows of a table of a page.
const maxGridRows = 2000

// followsRow reports whether b stands below a as a row of the same table does.
func followsRow(a, b *Row) bool {
	gap := b.box.Top - a.box.Bottom
	height := max(min(a.rowHeight(), b.rowHeight()), 1)
	return gap > -0.5*height && gap < rowGap*height
}

// cellsOf splits a row where a gap is wider than one between words.
func cellsOf(r *Row) []Row {
	gap := cellGap * max(medianWordHeight(r.words), 1)
	var cells []Row
	for i, w := range r.words {
		if i == 0 || partsCells(&r.words[i-1], &w, gap) {
			cells = append(cells, Row{})
		}
		cells[len(cells)-1].add(w)
	}
	return cells
}

// partsCells reports whether more is free between words beside each other than a gap.
func partsCells(a, b *Word, gap float64) bool {
	const leaders = ".…" // lead from a label to its value
	return b.Box.Left-a.Box.Right > gap && strings.Trim(b.Text, leaders) != "" && !partsWords(a, b)
}

// medianWordHeight returns how high words are mostly; 0 of none.
func medianWordHeight(words []Word) float64 {
	if len(words) == 0 {
		return 0
	}
	heights := make([]float64, len(words))
	for i, w := range words {
		heights[i] = w.Box.Bottom - w.Box.Top
	}
	slices.Sort(heights)
	return heights[len(heights)/2]
}

// newGrid returns the table of rows of cells: the columns are what cells cover that stand
// below each other. Rows of many cells come first: what covers several of their columns is a
// head of these, or a line across the table.
func newGrid(rows [][]Row) *grid {
	g := new(grid)

	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}

	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(rows[b]), len(rows[a])) })

	// What covers several columns, as a head does, does not widen them.
	for _, i := range order {
		for _, c := range rows[i] {
			if from, to := g.coveredColumns(c.box); to-from <= 1 {
				g.extend(from, to, interval{c.box.Left, c.box.Right})
			}
		}
	}
	for _, r := range rows {
		g.add(r)
	}

	return g
}

// coveredColumns returns which columns a box overlaps: those from one on to one exclusively.
func (g *grid) coveredColumns(b mapreduce.Box) (from, to int) {
	from = slices.IndexFunc(g.columns, func(c interval) bool { return c.to > b.Left })
	if from < 0 {
		return len(g.columns), len(g.columns)
	}
	to = from
	for to < len(g.columns) && g.columns[to].from < b.Right {
		to++
	}
	return from, to
}

// extend makes a column wider, or adds one.
func (g *grid) extend(from, to int, by interval) {
	if from == to {
		g.columns = slices.Insert(g.columns, from, by)
		return
	}
	c := &g.columns[from]
	c.from, c.to = min(c.from, by.from), max(c.to, by.to)
}

// add adds a row of cells.
func (g *grid) add(cells []Row) {
	r := gridRow{cells: make([]gridCell, len(g.columns)), box: boxOf(cells)}
	for _, c := range cells {
		from, to := g.coveredColumns(c.box)
		from = min(from, len(g.columns)-1)
		r.cells[from].words, r.cells[from].joined = append(r.cells[from].words, c.words...), false
		for i := from + 1; i < to; i++ {
			r.cells[i].joined = len(r.cells[i].words) == 0
		}
	}
	g.rows = append(g.rows, r)
}

// isTable reports whether the rows are a table.
func (g *grid) isTable(rows [][]Row) bool {
	if len(g.columns) < leastColumns || len(g.columns) > mostColumns {
		return false
	}

	filled, words := 0, 0
	for _, r := range g.rows {
		filled += r.cellCount()
		for _, c := range r.cells {
			words += len(c.words)
		}
	}

	all := len(g.rows) * len(g.columns)
	switch {
	case words > wordsOfCell*filled, float64(filled) < shareOfCells*float64(all), len(rows) == 2 && filled < all:
		return false
	case g.isForm(), 4*g.countLeaders() > len(rows):
		return false
	}

	return true
}

// isJustified reports whether the gaps are those of justified text: below the heads, text stands
// across many of the columns, or words of columns between others begin and end anywhere.
func (g *grid) isJustified() bool {
	joined, fields := 0, 0
	for i, r := range g.rows {
		if i < mostHeads || r.cellCount() < 2 {
			continue
		}
		fields += len(r.cells)
		for _, c := range r.cells {
			if c.joined {
				joined++
			}
		}
	}
	if float64(joined) > shareOfJoined*float64(fields) {
		return true
	}

	flushed, cells := 0, 0
	for at := 1; at < len(g.columns)-1; at++ {
		n, of := g.flushCells(at)
		flushed, cells = flushed+n, cells+of
	}
	return float64(flushed) < shareFlush*float64(cells)
}

// Bounds of columns of running text.
const (
	leastCellsOfColumn = 3    // that are judged
	shareFlush         = 0.45 // of the cells of columns that begin, end or have their middles at one place, at least
	shareOfNumbers     = 0.3  // of the cells of a column; columns with more are no running text
)

// flushCells returns how many cells of a column begin, end or have their middles at one place, and
// of how many: none if it is a column of numbers.
func (g *grid) flushCells(at int) (flush, cells int) {
	var lefts, rights, middles []float64

	numbers := 0
	for _, r := range g.rows {
		c := r.cells[at]
		if len(c.words) == 0 || c.joined || at+1 < len(r.cells) && r.cells[at+1].joined {
			continue
		}

		left, right := c.words[0].Box.Left, c.words[len(c.words)-1].Box.Right
		lefts, rights, middles = append(lefts, left), append(rights, right), append(middles, (left+right)/2)
		if strings.ContainsFunc(c.words[0].Text, unicode.IsDigit) {
			numbers++
		}
	}

	if n := len(lefts); n < leastCellsOfColumn || float64(numbers) > shareOfNumbers*float64(n) {
		return 0, 0
	}

	return max(atOnePlace(lefts), atOnePlace(rights), atOnePlace(middles)), len(lefts)
}

// atOnePlace returns how many places are the same but for what flush allows.
func atOnePlace(places []float64) (most int) {
	slices.Sort(places)
	from := 0
	for i := range places {
		for places[i]-places[from] > flush {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

// countLeaders returns how many rows have dots that lead to a number, as a table of contents has.
func (g *grid) countLeaders() (n int) {
	for _, r := range g.rows {
		if slices.ContainsFunc(r.cells, func(c gridCell) bool {
			return slices.ContainsFunc(c.words, func(w Word) bool {
				return strings.Contains(w.Text, "....") || strings.Trim(w.Text, ". …") == "" && len(w.Text) > 3
			})
		}) {
			n++
		}
	}
	return n
}

// joinWrapped makes one row of a row and the lines behind it that go on with some of its cells:
// they stand closer to it than rows stand to each other.
func (g *grid) joinWrapped() {
	var gaps []float64
	for i := 1; i < len(g.rows); i++ {
		if len(g.rows[i].cells[0].words) > 0 {
			gaps = append(gaps, g.rows[i].box.Top-g.rows[i-1].box.Bottom)
		}
	}
	if len(gaps) == 0 {
		return
	}
	slices.Sort(gaps)
	usual := gaps[len(gaps)/2]

	out := g.rows[:1]
	for i, r := range g.rows[1:] {
		last := &out[len(out)-1]
		gap := r.box.Top - g.rows[i].box.Bottom
		if len(r.cells[0].words) > 0 || gap > usual/2-1 || !last.continues(&r) {
			out = append(out, r)
			continue
		}
		for at, c := range r.cells {
			last.cells[at].words = append(last.cells[at].words, c.words...)
		}
	}
	g.rows = out
}

// continues reports whether each cell of a row goes on with one of r.
func (r *gridRow) continues(next *gridRow) bool {
	for at, c := range next.cells {
		above := &r.cells[at]
		if c.joined || len(c.words) > 0 && len(above.words) == 0 {
			return false
		}
		// A number is not wrapped: it is of a row of its own.
		if len(c.words) == 1 && len(above.words) == 1 && c.isNumber() && above.isNumber() {
			return false
		}
	}
	return true
}

// isForm reports whether labels stand at the left of their values: they end with a colon.
func (g *grid) isForm() bool {
	labels, cells := 0, 0
	for i, r := range g.rows {
		for at, c := range r.cells {
			if len(c.words) == 0 {
				continue
			}

			cells++

			// The first row may be the heads of a table, which end with colons, too.
			if strings.HasSuffix(c.words[len(c.words)-1].Text, ":") && (i > 0 || at+1 < len(r.cells) && !labelled(r)) {
				labels++
			}
		}
	}

	return labels*4 > cells
}

// labelled reports whether each cell of a row ends with a colon, as heads may.
func labelled(r gridRow) bool {
	for _, c := range r.cells {
		if len(c.words) > 0 && !strings.HasSuffix(c.words[len(c.words)-1].Text, ":") {
			return false
		}
	}
	return true
}

// mostHeads bounds the rows above the rule.
const mostHeads = 3

// countHeads returns how many rows are heads: the first, and those behind it that have no
// number, if most of the others have some.
func (g *grid) countHeads() int {
	numbers := 0
	for _, r := range g.rows {
		if r.hasNumber() {
			numbers++
		}
	}

	if 2*numbers < len(g.rows) {
		return 1
	}

	n := 1
	for n < mostHeads && n < len(g.rows)-1 && !g.rows[n].hasNumber() && !g.rows[0].hasNumber() && g.rows[n].cellCount() > 1 {
		n++
	}

	return n
}

// hasNumber reports whether a cell of the row begins with a digit, or an amount.
func (r *gridRow) hasNumber() bool {
	return slices.ContainsFunc(r.cells, func(c gridCell) bool { return c.isNumber() })
}

// cellCount returns how many cells hold something.
func (r *gridRow) cellCount() (n int) {
	for _, c := range r.cells {
		if len(c.words) > 0 {
			n++
		}
	}
	return n
}

// addGrid adds a table.
func (b *Text) addGrid(place *mapreduce.Location, g *grid) {
	if g.above != nil {
		b.addHeads(g.above)
	}

	for i := range g.rows {
		for at, c := range g.rows[i].cells {
			switch {
			case c.joined && i >= g.heads:
				b.WriteString("|")
				continue
			case c.joined: // a head stands above each column that it covers
				c.words = g.headOf(i, at)
			}

			b.WriteString("| ")
			b.addCell(place, c.words)
			b.WriteByte(' ')
		}

		b.WriteString("|\n")

		if i == g.heads-1 {
			b.WriteString(strings.Repeat("| --- ", len(g.columns)) + "|\n")
		}
	}
}

// addHeads adds the heads of a table of a page before once more. They have no place, as they do
// not stand here.
func (b *Text) addHeads(g *grid) {
	for i := range g.rows[:g.heads] {
		for at, c := range g.rows[i].cells {
			if c.joined {
				c.words = g.headOf(i, at)
			}

			var cell Text
			cell.addCell(nil, c.words)
			b.WriteString("| " + cell.String() + " ")
		}

		b.WriteString("|\n")
	}

	b.WriteString(strings.Repeat("| --- ", len(g.columns)) + "|\n")
}

// addCell adds the words of a cell, of which a hyphen at the end of a line may part two.
func (b *Text) addCell(place *mapreduce.Location, words []Word) {
	joined := false
	for i, w := range words {
		if i > 0 && !joined {
			b.WriteString(w.before)
		}

		text, hyphen := strings.CutSuffix(w.Text, "\u00ad")
		if joined = hyphen && i+1 < len(words) && continues(text, words[i+1].Text); hyphen && !joined {
			text += "-"
		}

		b.addText(place, strings.ReplaceAll(text, "|", `\|`), w.Box, w.Sure)
	}
}

// headOf returns the words of the cell to which a cell belongs.
func (g *grid) headOf(row, column int) []Word {
	for g.rows[row].cells[column].joined {
		column--
	}
	return g.rows[row].cells[column].words
}
