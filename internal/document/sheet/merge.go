package sheet

import "slices"

// A Merge is cells of a sheet that are shown as one, with the value of the first.
type Merge struct {
	Top, Bottom int // rows, from 1, both within it
	Left, Right int // columns, from 0, both within it
}

// Bounds of merged cells. What is beyond them is read as it is stored: in the first cell.
const (
	maxRepeatedMerge = 4 << 20 // bytes that they repeat
	maxCovering      = 1000    // in one row
)

// Merges are the merged cells of one sheet, row by row.
type Merges struct {
	waiting  []Merge // of rows to come, by their first row
	covering []open  // of the row that is read
	repeated int     // bytes that were repeated
}

// An open merge is one of a row that is read, with its value.
type open struct {
	Merge
	value string
}

// NewMerges returns the merged cells of a sheet.
func NewMerges(all []Merge) *Merges {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Merge) int { return a.Top - b.Top })
	return &Merges{waiting: all}
}

// Add adds merged cells that begin in the row that comes next. One cell alone is none.
func (m *Merges) Add(one Merge) {
	if one.Left <= one.Right && one.Right < MaxColumns && (one.Left < one.Right || one.Top < one.Bottom) {
		m.waiting = append(m.waiting, one)
	}
}

// Apply returns the cells of a row with what merged cells above say in it, and the columns
// that its cells cover, as MergedRow takes them. Rows come in their order, from 1.
func (m *Merges) Apply(row int, cells []string) (merged []string, spans []int) {
	m.covering = slices.DeleteFunc(m.covering, func(o open) bool { return o.Bottom < row })

	for len(m.waiting) > 0 && m.waiting[0].Top <= row {
		// Merges wait in the order of their first rows; those that have ended are passed
		// over.
		if len(m.covering) < maxCovering && m.waiting[0].Bottom >= row {
			m.covering = append(m.covering, open{Merge: m.waiting[0]})
		}
		m.waiting = m.waiting[1:]
	}

	for i := range m.covering {
		cells, spans = m.cover(&m.covering[i], row, cells, spans)
	}

	return cells, spans
}

// cover puts what a merge says into a row.
func (m *Merges) cover(o *open, row int, cells []string, spans []int) ([]string, []int) {
	if o.Top == row && o.Left < len(cells) {
		o.value = cells[o.Left]
	}

	if o.value == "" {
		return cells, spans
	}

	for len(cells) <= o.Left {
		cells = append(cells, "")
	}

	// What is repeated is bounded in bytes: a merge may cover very many rows.
	if row > o.Top && cells[o.Left] == "" {
		if m.repeated += len(o.value); m.repeated > maxRepeatedMerge {
			return cells, spans
		}
		cells[o.Left] = o.value
	}

	for len(spans) <= o.Left {
		spans = append(spans, 0)
	}

	spans[o.Left] = o.Right - o.Left + 1
	return cells, spans
}
