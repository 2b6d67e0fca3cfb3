package arrange

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A Lattice is lines that cross: they part what they enclose into rows and columns. Where a
// line between two fields is missing, the fields are one cell. (What camelot, tabula and
// pdfplumber call a table with lines, or a spreadsheet.)
type Lattice struct {
	xs, ys []float64 // of its upright and level lines, from left to right and from top to bottom
	// cells has the number of the cell of each field, row by row. The fields of a cell are a
	// rectangle.
	cells []int
	spans []span // of the cells by their numbers
	walls []bool // whether a line is at the right of each field
}

// A span is the fields of a cell: rows [top, bottom) and columns [left, right).
type span struct{ top, bottom, left, right int }

// Tolerances of lines, in points, and bounds.
const (
	snap      = 2.0 // lines that are not farther from each other are one
	reach     = 3.0 // lines that end this near to each other, or to one that they meet, touch
	Shortest  = 4.0 // line
	maxLines  = 4000
	maxFields = 100_000 // of a lattice
)

// Lattices returns the lattices of a page, the smallest first, which may stand in a cell of
// another: those of its lines, and beside these those of its lines and of the sides of what has a
// colour.
func (r *Rulings) Lattices() []*Lattice {
	all := latticesOf(r.Level, r.Upright)
	if len(r.LevelSides) > 0 {
		lines := len(all)
		// Sides of colours count only where lines alone give no table of more than three
		// cells.
		for _, l := range latticesOf(slices.Concat(r.Level, r.LevelSides), slices.Concat(r.Upright, r.UprightSides)) {
			if !slices.ContainsFunc(all[:lines], func(o *Lattice) bool { return len(o.spans) > 3 && overlap(o.box(), l.box()) }) {
				all = append(all, l)
			}
		}
	}

	slices.SortStableFunc(all, func(a, b *Lattice) int { return cmp.Compare(a.coveredArea(), b.coveredArea()) })
	return all
}

// coveredArea returns how much of the page the lattice covers, in square points.
func (l *Lattice) coveredArea() float64 {
	b := l.box()
	return (b.Right - b.Left) * (b.Bottom - b.Top)
}

func overlap(a, b mapreduce.Box) bool {
	return a.Left < b.Right && b.Left < a.Right && a.Top < b.Bottom && b.Top < a.Bottom
}

// latticesOf returns the lattices of lines.
func latticesOf(level, upright []Ruling) (all []*Lattice) {
	level, upright = join(level), join(upright)
	if len(level) < 2 || len(upright) == 0 {
		return nil
	}

	for _, part := range connectedGroups(level, upright) {
		part.close()
		if l := newLattice(part.Level, part.Upright); l != nil {
			all = append(all, l)
		}
	}

	return all
}

// join makes one line of lines on each other, or in one line that touch, and leaves out short
// ones.
func join(lines []Ruling) []Ruling {
	lines = slices.Clone(lines)
	slices.SortFunc(lines, func(a, b Ruling) int { return cmp.Compare(a.At, b.At) })

	var out []Ruling
	for from := 0; from < len(lines); {
		// Lines at nearly one place are one line, at their middle.
		to, sum := from, 0.0
		for to < len(lines) && lines[to].At-lines[from].At <= snap {
			sum += lines[to].At
			to++
		}

		group := lines[from:to]
		at := sum / float64(len(group))

		slices.SortFunc(group, func(a, b Ruling) int { return cmp.Compare(a.From, b.From) })

		first := len(out)
		for _, l := range group {
			if last := len(out) - 1; last >= first && l.From <= out[last].To+reach {
				out[last].To = max(out[last].To, l.To)
				continue
			}
			out = append(out, Ruling{at, l.From, l.To})
		}

		from = to
	}

	out = slices.DeleteFunc(out, func(l Ruling) bool { return l.To-l.From < Shortest })
	return out[:min(len(out), maxLines)]
}

// connectedGroups returns the groups of lines that are connected by crossings.
func connectedGroups(level, upright []Ruling) []Rulings {
	group := make([]int, len(level)+len(upright)) // a line of the same group; its own number if it is the first
	for i := range group {
		group[i] = i
	}

	root := func(i int) int {
		for group[i] != i {
			group[i] = group[group[i]]
			i = group[i]
		}
		return i
	}

	// Only the level lines at the height of an upright one can cross it; these are in
	// order.
	for i, u := range upright {
		first := sort.Search(len(level), func(k int) bool { return level[k].At >= u.From-reach })
		for k := first; k < len(level) && level[k].At <= u.To+reach; k++ {
			if l := level[k]; l.From-reach <= u.At && u.At <= l.To+reach {
				group[root(len(level)+i)] = root(k)
			}
		}
	}

	number := make(map[int]int)
	var parts []Rulings
	for i := range group {
		at, ok := number[root(i)]
		if !ok {
			at = len(parts)
			number[root(i)] = at
			parts = append(parts, Rulings{})
		}

		if i < len(level) {
			parts[at].Level = append(parts[at].Level, level[i])
		} else {
			parts[at].Upright = append(parts[at].Upright, upright[i-len(level)])
		}
	}

	return parts
}

// close adds the sides of a table that are not drawn: where most lines end that run to it.
func (r *Rulings) close() {
	if len(r.Upright) > 0 && len(r.Level) > 2 {
		r.Upright = append(r.Upright, missingSides(r.Level, r.Upright)...)
	}
	if len(r.Level) > 0 && len(r.Upright) > 2 {
		r.Level = append(r.Level, missingSides(r.Upright, r.Level)...)
	}
}

// missingSides returns the sides across lines that run to it, of which the others are no sides.
func missingSides(lines, others []Ruling) (sides []Ruling) {
	first, last := lines[0].From, lines[0].To
	top, bottom := lines[0].At, lines[0].At
	for _, l := range lines {
		first, last, top, bottom = min(first, l.From), max(last, l.To), min(top, l.At), max(bottom, l.At)
	}

	for _, at := range []float64{first, last} {
		ends := 0
		for _, l := range lines {
			if near(l.From, at) || near(l.To, at) {
				ends++
			}
		}

		drawn := slices.ContainsFunc(others, func(o Ruling) bool { return near(o.At, at) })
		// A side is missing if at least half of the lines end at one place, and none is
		// drawn there.
		if !drawn && ends > 2 && 2*ends >= len(lines) {
			sides = append(sides, Ruling{at, top, bottom})
		}
	}

	return sides
}

func near(a, b float64) bool { return a-b <= reach && b-a <= reach }

// newLattice returns the lattice of lines; nil if they enclose no two fields.
func newLattice(level, upright []Ruling) *Lattice {
	l := &Lattice{xs: positions(upright), ys: positions(level)}
	if l.countColumns() < 1 || l.rows() < 1 || l.countColumns()*l.rows() < 2 || l.countColumns()*l.rows() > maxFields {
		return nil
	}

	l.walls = make([]bool, l.rows()*l.countColumns())
	floors := make([]bool, l.rows()*l.countColumns()) // whether a line is below each field

	for _, u := range upright {
		if c := index(l.xs, u.At) - 1; c >= 0 {
			for r := range l.rows() {
				l.walls[r*l.countColumns()+c] = l.walls[r*l.countColumns()+c] || coversSide(u, l.ys[r], l.ys[r+1])
			}
		}
	}

	for _, v := range level {
		if r := index(l.ys, v.At) - 1; r >= 0 {
			for c := range l.countColumns() {
				floors[r*l.countColumns()+c] = floors[r*l.countColumns()+c] || coversSide(v, l.xs[c], l.xs[c+1])
			}
		}
	}

	l.findCells(floors)
	return l
}

func (l *Lattice) countColumns() int { return len(l.xs) - 1 }
func (l *Lattice) rows() int         { return len(l.ys) - 1 }

// positions returns where lines are, sorted, each place once.
func positions(lines []Ruling) []float64 {
	at := make([]float64, len(lines))
	for i, l := range lines {
		at[i] = l.At
	}
	slices.Sort(at)
	return slices.CompactFunc(at, func(a, b float64) bool { return math.Abs(b-a) <= snap })
}

// index returns the number of that of sorted places which is nearest to x.
func index(places []float64, x float64) int {
	i := sort.SearchFloat64s(places, x)
	if i > 0 && (i == len(places) || x-places[i-1] < places[i]-x) {
		i--
	}
	return i
}

// coversSide reports whether a line is the side of a field: it goes from one end to the other. What
// is below the words of a field alone underlines them.
func coversSide(l Ruling, from, to float64) bool {
	most := min(reach, (to-from)/3)
	return l.From <= from+most && l.To >= to-most
}

// findCells makes cells of the fields between which there are no lines.
func (l *Lattice) findCells(floors []bool) {
	columns, rows := l.countColumns(), l.rows()
	area := make([]int, rows*columns) // the number of the open area of a field; 0 of none yet
	for i := range area {
		if area[i] == 0 {
			l.fill(area, i, i+1, floors)
		}
	}

	l.cells = make([]int, len(area))
	for i := range l.cells {
		l.cells[i] = -1
	}
	for r := range rows {
		for c := range columns {
			if l.cells[r*columns+c] < 0 {
				l.addCell(area, r, c)
			}
		}
	}
}

// fill gives a number to a field and all that are open to it.
func (l *Lattice) fill(area []int, field, number int, floors []bool) {
	columns := l.countColumns()

	area[field] = number
	open := []int{field}

	for len(open) > 0 {
		at := open[len(open)-1]
		open = open[:len(open)-1]

		visit := func(to int, walled bool) {
			if !walled && area[to] == 0 {
				area[to] = number
				open = append(open, to)
			}
		}

		if c := at % columns; c > 0 {
			visit(at-1, l.walls[at-1])
		}
		if c := at % columns; c < columns-1 {
			visit(at+1, l.walls[at])
		}
		if at >= columns {
			visit(at-columns, floors[at-columns])
		}
		if at+columns < len(area) {
			visit(at+columns, floors[at])
		}
	}
}

// addCell adds the cell that begins with a field: as far to the right as the area goes, and as
// far down as it goes so wide. An area that is no rectangle becomes several cells.
func (l *Lattice) addCell(area []int, r, c int) {
	columns := l.countColumns()
	number := area[r*columns+c]

	s := span{top: r, left: c, right: c + 1, bottom: r + 1}
	belongs := func(r, c int) bool { return area[r*columns+c] == number && l.cells[r*columns+c] < 0 }
	for s.right < columns && belongs(r, s.right) {
		s.right++
	}

down:

	// It grows down only while all of the row below it is of the area.
	for s.bottom < l.rows() {
		for i := s.left; i < s.right; i++ {
			if !belongs(s.bottom, i) {
				break down
			}
		}
		s.bottom++
	}

	for i := s.top; i < s.bottom; i++ {
		for k := s.left; k < s.right; k++ {
			l.cells[i*columns+k] = len(l.spans)
		}
	}

	l.spans = append(l.spans, s)
}

// box returns what the lattice covers.
func (l *Lattice) box() mapreduce.Box {
	return mapreduce.Box{Left: l.xs[0], Top: l.ys[0], Right: l.xs[l.countColumns()], Bottom: l.ys[l.rows()]}
}

// field returns the row and the column in which a point is.
func (l *Lattice) field(x, y float64) (row, column int, ok bool) {
	column = sort.Search(len(l.xs), func(i int) bool { return l.xs[i] > x }) - 1
	row = sort.Search(len(l.ys), func(i int) bool { return l.ys[i] > y }) - 1
	return row, column, column >= 0 && column < l.countColumns() && row >= 0 && row < l.rows()
}

// WallIn returns the first upright line within a box, if there is one.
func (l *Lattice) WallIn(b mapreduce.Box) (x float64, ok bool) {
	r, c, ok := l.field(b.Left+1, (b.Top+b.Bottom)/2)
	if !ok {
		return 0, false
	}
	for ; c < l.countColumns() && l.xs[c+1] < b.Right-1; c++ {
		if l.walls[r*l.countColumns()+c] {
			return l.xs[c+1], true
		}
	}
	return 0, false
}
