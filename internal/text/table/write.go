package table

import "strings"

// Escape returns the text of a cell as it stands in a table: on one line, and with its bars
// marked as text.
func Escape(cell string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(cell), " "), "|", `\|`)
}

// Rule returns the line between the heads and the rows of a table of some columns.
func Rule(columns int) string { return "|" + strings.Repeat(" --- |", max(columns, 1)) }

// Join is what stands behind a cell, and its bar, for each further column that it covers.
const Join = "|"
