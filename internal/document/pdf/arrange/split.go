package arrange

import "slices"

// splitRows splits rows of a table whose lines part its columns but not all of its rows. It leaves
// some heads as they are.
func (g *grid) splitRows(heads int) {
	var out []gridRow
	for i := range g.rows {
		rows := records(g.rows[i].lines())
		if i < heads && len(g.rows) > 1 || rows == nil {
			out = append(out, g.rows[i])
			continue
		}
		out = append(out, rows...)
	}
	g.rows = out
}

// lines returns the lines of text of a row, each as a row.
func (r *gridRow) lines() []gridRow {
	var rows []gridRow
	for at, c := range r.cells {
		for _, w := range c.words {
			i := slices.IndexFunc(rows, func(o gridRow) bool { return beside(o.box, w.Box) })
			if i < 0 {
				i = len(rows)
				rows = append(rows, gridRow{cells: make([]gridCell, len(r.cells)), box: w.Box})
				for k := range r.cells {
					rows[i].cells[k].joined = r.cells[k].joined
				}
			}

			cell := &rows[i].cells[at]
			cell.words = append(cell.words, w)
		}
	}

	slices.SortStableFunc(rows, func(a, b gridRow) int {
		if a.box.Top+a.box.Bottom < b.box.Top+b.box.Bottom {
			return -1
		}
		return 1
	})

	return rows
}

// leastLines is how many lines of text a row has, at least, that is split.
const leastLines = 3

// records returns rows of which each has the lines of text from one that begins with the first
// column to the next; nil if they are no rows of their own: there are too few, or they stand in
// few of the columns. A line in which only the first column goes on begins none.
func records(lines []gridRow) []gridRow {
	if len(lines) < leastLines || len(lines[0].cells[0].words) == 0 {
		return nil
	}

	var rows []gridRow

	full := 0
	for i, l := range lines {
		first := len(l.cells[0].words) > 0
		alone := l.cellCount() == 1 && i > 0 && len(lines[i-1].cells[0].words) > 0

		if first && !alone {
			rows = append(rows, l)
			if l.cellCount() > 1 {
				full++
			}
			continue
		}

		// What begins no record goes on with the cells of the last one.
		last := &rows[len(rows)-1]
		for at, c := range l.cells {
			last.cells[at].words = append(last.cells[at].words, c.words...)
		}
	}

	if len(rows) < leastLines || 3*full < 2*len(rows) {
		return nil
	}

	return rows
}
