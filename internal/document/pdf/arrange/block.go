package arrange

import "math"

// Labels and their values may stand closer than cells of other tables do. What is a gap between
// cells is decided once for a block of rows: a gap that stands in all of its rows at the same
// place, behind which the words begin or end at one place, parts cells in all of them. In a single
// row the same gap may be one between words.

// Bounds of blocks.
const (
	leastRows = 3   // of a block
	blockGap  = 0.8 // heights of a row that are free in each row, at least
	flush     = 1.5 // points by which ends at one place may differ
)

// partBlocks parts cells by tabs in blocks of rows.
func partBlocks(rows []Row) {
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && rows[to].grid == nil && rows[from].grid == nil && inBlock(&rows[to-1], &rows[to]) {
			to++
		}
		if to-from >= leastRows {
			partBlock(rows[from:to])
		}
		from = to
	}
}

// inBlock reports whether b stands directly below a, and begins or ends with it.
func inBlock(a, b *Row) bool {
	return followsRow(a, b) && (math.Abs(a.box.Left-b.box.Left) < flush || math.Abs(a.box.Right-b.box.Right) < flush)
}

// partBlock parts the rows of a block where each has a gap at the same place.
func partBlock(rows []Row) {
	for i := 1; i < len(rows[0].words); i++ {
		gap := interval{rows[0].words[i-1].Box.Right, rows[0].words[i].Box.Left}

		at := []int{i}

		// The gap shrinks to what is free in all rows so far.
		for k := 1; k < len(rows) && gap.to > gap.from; k++ {
			n := rows[k].gapIn(&gap)
			if n == 0 {
				break
			}
			at = append(at, n)
		}

		if len(at) == len(rows) && gap.to-gap.from >= blockGap*rows[0].rowHeight() && areFlush(rows, at) && !partWords(rows, at) {
			for k, n := range at {
				rows[k].words[n].before = "\t"
			}
		}
	}
}

// gapIn returns the word of the row behind a gap, which it narrows to what is free in the row; 0
// if a word stands there.
func (r *Row) gapIn(gap *interval) int {
	for i := 1; i < len(r.words); i++ {
		from, to := max(gap.from, r.words[i-1].Box.Right), min(gap.to, r.words[i].Box.Left)
		if to > from && to-from >= blockGap*r.rowHeight()/2 {
			gap.from, gap.to = from, to
			return i
		}
	}
	return 0
}

// partWords reports whether most of the gaps are what parts words of a font of one pitch, which may
// stand below each other by chance.
func partWords(rows []Row, at []int) bool {
	blanks := 0
	for k, n := range at {
		if partsWords(&rows[k].words[n-1], &rows[k].words[n]) {
			blanks++
		}
	}
	return 2*blanks > len(rows)
}

// mostWords is how many words stand behind a gap, at most, that end at one place: running text may
// end so too.
const mostWords = 3

// areFlush reports whether what is behind the gaps begins at one place, or ends at one.
func areFlush(rows []Row, at []int) bool {
	left, right := true, true
	for k := range rows {
		left = left && math.Abs(rows[k].words[at[k]].Box.Left-rows[0].words[at[0]].Box.Left) < flush
		right = right && len(rows[k].words)-at[k] <= mostWords && math.Abs(rows[k].box.Right-rows[0].box.Right) < flush
	}
	return left || right
}
