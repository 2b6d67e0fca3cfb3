package xlsx

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strconv"

	"github.com/coditect/mapreduce/worker/document/sheet"
)

// A merge is cells that are shown as one, with the value of the first.
type merge struct {
	top, bottom int // rows, from 1
	left, right int // columns, from 0
	value       string
}

// Bounds of merged cells. What is beyond them is read as it is stored: in the first cell.
const (
	maxMerges        = 100_000
	maxMergedSheet   = 64 << 20 // bytes of a sheet that is looked through for them
	maxRepeatedMerge = 4 << 20  // bytes that they say again
	maxCovering      = 1000     // in one row
)

// mergeRef is how a sheet says which cells are merged, behind all of its cells.
var mergeRef = regexp.MustCompile(`<(?:\w+:)?mergeCell\s[^>]*?ref="([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})"`)

// readMerges returns the merged cells of a sheet, by row. They stand behind the cells that
// they are about, so the sheet is looked through for them before it is read.
func (r *reader) readMerges(name string) ([]merge, error) {
	e, err := r.zip.Open(name)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	data, err := io.ReadAll(io.LimitReader(e, maxMergedSheet))
	if err != nil {
		return nil, err
	}
	at := bytes.Index(data, []byte("</sheetData>"))
	if at < 0 {
		at = bytes.Index(data, []byte(":sheetData>"))
	}
	var all []merge
	for _, found := range mergeRef.FindAllSubmatch(data[max(at, 0):], maxMerges) {
		m := merge{left: columnOf(string(found[1])), right: columnOf(string(found[3]))}
		m.top, _ = strconv.Atoi(string(found[2]))
		m.bottom, _ = strconv.Atoi(string(found[4]))
		if m.left <= m.right && m.right < sheet.MaxColumns && m.top <= m.bottom {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b merge) int { return a.top - b.top })
	return all, nil
}

// merge returns the cells of a row with what merged cells above say in it, and the columns
// that its cells cover.
func (r *reader) merge(row int, cells []string) (merged []string, spans []int) {
	r.covering = slices.DeleteFunc(r.covering, func(m merge) bool { return m.bottom < row })
	for len(r.merged) > 0 && r.merged[0].top <= row {
		if len(r.covering) < maxCovering {
			r.covering = append(r.covering, r.merged[0])
		}
		r.merged = r.merged[1:]
	}
	for i := range r.covering {
		m := &r.covering[i]
		if m.top == row && m.left < len(cells) {
			m.value = cells[m.left]
		}
		if m.value == "" {
			continue
		}
		for len(cells) <= m.left {
			cells = append(cells, "")
		}
		if row > m.top && cells[m.left] == "" {
			if r.repeated += len(m.value); r.repeated > maxRepeatedMerge {
				continue
			}
			cells[m.left] = m.value
		}
		for len(spans) <= m.left {
			spans = append(spans, 0)
		}
		spans[m.left] = m.right - m.left + 1
	}
	return cells, spans
}
