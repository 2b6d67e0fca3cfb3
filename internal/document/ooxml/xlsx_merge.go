package ooxml

import (
	"bytes"
	"io"
	"regexp"
	"strconv"

	"github.com/coditect/mapreduce/internal/document/sheet"
)

// Bounds of merged cells. What is beyond them is read as it is stored: in the first cell.
const (
	maxMerges      = 100_000
	maxMergedSheet = 64 << 20 // bytes of a sheet that is looked through for them
)

// mergeRef is how a sheet says which cells are merged, behind all of its cells.
var mergeRef = regexp.MustCompile(`<(?:\w+:)?mergeCell\s[^>]*?ref="([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})"`)

// readMerges returns the merged cells of a sheet. They stand behind the cells that
// they are about, so the sheet is looked through for them before it is read.
func (r *xlsxReader) readMerges(name string) (*sheet.Merges, error) {
	e, err := r.zip.Open(name)
	if err != nil {
		return nil, err
	}
	defer e.Close()

	data, err := io.ReadAll(io.LimitReader(e, maxMergedSheet))
	if err != nil {
		return nil, err
	}
	// What looks like such an element within the text of a cell is none, so the search
	// begins behind the cells.
	at := bytes.Index(data, []byte("</sheetData>"))
	if at < 0 {
		at = bytes.Index(data, []byte(":sheetData>"))
	}

	var all []sheet.Merge
	for _, found := range mergeRef.FindAllSubmatch(data[max(at, 0):], maxMerges) {
		m := sheet.Merge{Left: columnOf(string(found[1])), Right: columnOf(string(found[3]))}
		m.Top, _ = strconv.Atoi(string(found[2]))
		m.Bottom, _ = strconv.Atoi(string(found[4]))
		if m.Left <= m.Right && m.Right < sheet.MaxColumns && m.Top <= m.Bottom {
			all = append(all, m)
		}
	}

	return sheet.NewMerges(all), nil
}
