package plain

import (
	"strconv"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document/sheet"
)

// cellPlace returns the location of a cell as a spreadsheet names it. Its row is the line
// of the file on which it begins.
func cellPlace(line, column int) *mapreduce.Location {
	return &mapreduce.Location{Cell: sheet.ColumnName(column) + strconv.Itoa(line)}
}
