package rtf

import (
	"github.com/coditect/mapreduce/internal/document/richtext"
)

// A cellShape is what the definition of a row says of one of its cells.
type cellShape struct {
	right  int  // its right edge, in twentieths of a point
	below  bool // it is one with the cell above
	joined bool // it is one with the cell before
}

// A tableRow is a row with the shapes of its cells. There are none, or others than cells, where
// the file does not say them.
type tableRow struct {
	cells  []richtext.Cell
	shapes []cellShape
	head   bool // it stands again on each page
}

// isShaped reports whether the shapes are those of the cells.
func (r *tableRow) isShaped() bool { return len(r.cells) == len(r.shapes) }

// defineRow takes a word of the definition of a row, and reports whether it is one.
func (r *reader) defineRow(word string, number int, on bool) bool {
	switch word {
	case "trowd":
		r.shapes, r.shape, r.isHead = nil, cellShape{}, false
	case "trhdr":
		r.isHead = on
	case "clvmrg":
		r.shape.below = true
	case "clmrg":
		r.shape.joined = true
	case "cellx":
		r.shape.right = number
		if len(r.shapes) <= maxColumns {
			r.shapes = append(r.shapes, r.shape)
		}
		r.shape = cellShape{}
	default:
		return false
	}

	return true
}

// mergeCells returns the rows of a table in which each cell stands in its columns, and in each row
// that it covers. The row with most cells has the columns; edges of others are at the nearest of
// its edges, as rows of a table are seldom cut alike to the point.
func mergeCells(rows []tableRow) (merged [][]richtext.Cell, heads int) {
	var columns []cellShape
	for i := range rows {
		if r := &rows[i]; r.isShaped() && len(r.shapes) > len(columns) {
			columns = r.shapes
		}
	}

	above, repeated := map[int]string{}, 0

	for i := range rows {
		r := &rows[i]
		if r.head && heads == i {
			heads++
		}

		// A row that does not say the shapes of its cells has them one column each.
		spans := r.spans(columns)

		var row []richtext.Cell
		now, column := map[int]string{}, 0

		for n, c := range r.cells {
			shape := cellShape{}
			if r.isShaped() {
				shape = r.shapes[n]
			}

			if shape.joined && len(row) > 0 && c.Text == "" {
				last := &row[len(row)-1]
				last.Span = max(last.Span, 1) + max(spans[n], 1)
				column += max(spans[n], 1)
				continue
			}

			if text, known := above[column]; known && shape.below && c.Text == "" {
				c.Tall = true
				if repeated += len(text); repeated <= maxRepeated {
					c.Text = text
				}
			}

			if spans[n] > 1 {
				c.Span = spans[n]
			}

			now[column] = c.Text
			column += max(spans[n], 1)
			row = append(row, c)
		}

		above = now
		merged = append(merged, row)
	}

	return merged, heads
}

// maxRepeated bounds the bytes of cells that stand in several rows.
const maxRepeated = 4 << 20

// spans returns how many of the columns each cell of a row covers: one, where the row has as many
// cells as there are columns, or edges that fit none.
func (r *tableRow) spans(columns []cellShape) []int {
	spans := make([]int, len(r.cells))
	if !r.isShaped() || len(r.cells) >= len(columns) {
		return spans
	}

	from := 0
	for i, s := range r.shapes {
		to := nearest(columns, s.right) + 1
		if to <= from || to > len(columns)-(len(r.cells)-1-i) {
			return make([]int, len(r.cells))
		}
		spans[i], from = to-from, to
	}

	return spans
}

// nearest returns the column whose right edge is nearest to one.
func nearest(columns []cellShape, right int) int {
	best := 0
	for i := range columns {
		if distance(columns[i].right, right) < distance(columns[best].right, right) {
			best = i
		}
	}
	return best
}

func distance(a, b int) int { return max(a-b, b-a) }
