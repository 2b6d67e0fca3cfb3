package arrange

// complete parts cells that cover several columns, if their words stand in these as those of
// other rows do: lines part not every row of a table, as where every second row is a coloured bar.
// in is the numbers of the words of each cell, which it returns as the cells are then.
func (l *Lattice) complete(words []Word, in [][]int) [][]int {
	for n := range in {
		s := l.spans[n]
		if s.right-s.left < 2 || len(in[n]) < 2 || len(in[n]) > wordsRepeated {
			continue
		}
		if cuts := l.cutColumns(s, words, in[n]); len(cuts) > 0 {
			in = l.cut(n, cuts, words, in)
		}
	}
	return in
}

// cutColumns returns the columns with which parts of a cell begin: those that other rows have, where no
// word stands across. None if nowhere the gap is as wide as between cells.
func (l *Lattice) cutColumns(s span, words []Word, in []int) (cuts []int) {
	wide := false
	for c := s.left + 1; c < s.right; c++ {
		least, beside, crossed := l.gapAt(l.xs[c], words, in)
		switch {
		case crossed || !l.hasWall(c):
		case !beside:
			cuts = append(cuts, c)
		case least > cellGap:
			cuts, wide = append(cuts, c), true
		}
	}

	if !wide {
		return nil
	}
	return cuts
}

// hasWall reports whether a row has a line at the left of a column.
func (l *Lattice) hasWall(column int) bool {
	for r := range l.rows() {
		if l.walls[r*l.countColumns()+column-1] {
			return true
		}
	}
	return false
}

// gapAt returns the least gap, in heights of words, between words beside each other at both sides
// of a place, whether there are such, and whether a word stands across it.
func (l *Lattice) gapAt(x float64, words []Word, in []int) (least float64, pairs, crossed bool) {
	for _, i := range in {
		a := words[i].Box

		// A word may reach a point beyond the place without standing across it.
		if a.Left < x-1 && a.Right > x+1 {
			return 0, false, true
		}

		if a.Right > x+1 {
			continue
		}

		for _, k := range in {
			if b := words[k].Box; b.Left >= x-1 && beside(a, b) {
				gap := (b.Left - a.Right) / max(min(a.Bottom-a.Top, b.Bottom-b.Top), 1)
				if partsWords(&words[i], &words[k]) {
					gap = 0
				}
				if !pairs || gap < least {
					least, pairs = gap, true
				}
			}
		}
	}

	return least, pairs, false
}

// cut makes several cells of one.
func (l *Lattice) cut(n int, cuts []int, words []Word, in [][]int) [][]int {
	s := l.spans[n]
	all := in[n]
	in[n] = nil
	l.spans[n].right = cuts[0]

	for i, c := range cuts {
		part := span{top: s.top, bottom: s.bottom, left: c, right: s.right}
		if i+1 < len(cuts) {
			part.right = cuts[i+1]
		}

		for r := part.top; r < part.bottom; r++ {
			for k := part.left; k < part.right; k++ {
				l.cells[r*l.countColumns()+k] = len(l.spans)
			}
		}
		l.spans, in = append(l.spans, part), append(in, nil)
	}

	for _, i := range all {
		middle := (words[i].Box.Left + words[i].Box.Right) / 2
		r, c, ok := l.field(middle, (words[i].Box.Top+words[i].Box.Bottom)/2)
		if ok {
			at := l.cells[r*l.countColumns()+c]
			in[at] = append(in[at], i)
		}
	}

	return in
}
