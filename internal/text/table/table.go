// Package table is the one model of tables, whatever document they are from. A table
// stands in a text as a Markdown table, so that it goes wherever the text goes: it is cut,
// stored and quoted with it, and there is no second copy that could differ. Read finds the
// tables of a text; Append and the other functions of write.go write them.
//
// A piece of a table is its head rows, a rule, and its rows, with empty lines around:
//
//	| Year | Year | Goods |
//	| from | to   |       |
//	| ---- | ---- | ----- |
//	| 2023 | 2024 | bolts |
//
// Every line of cells that stands directly above the rule is a head. Pieces that follow
// each other and have the same lines above their rows are one table, whose head stands
// again at the ends of pages or for readers of parts of a text. A cell in which nothing
// stands is empty. One without even a space, as in "a ||", belongs to the cell at its left,
// which stands in several columns. A cell that stands in several rows, or in several columns
// of a head, is repeated in each.
//
// The package is pure and imports nothing of the project.
package table

import (
	"slices"
	"strings"
)

// A Table is a table in a text.
type Table struct {
	Start, End int    // bytes of the text, from its first row to the end of its last
	Columns    int    // of the rule
	Heads      []Line // at least one; those that stand again are left out
	Rows       []Line
}

// A Line is a row in a text, without the end of its line: bytes [Start, End).
type Line struct{ Start, End int }

// A Cell is a cell in a text, without the white space around it: bytes [Start, End).
type Cell struct {
	Start, End int
	Joined     bool // it belongs to the cell at its left
}

// Text returns what a cell says, on one line.
func (c Cell) Text(text string) string { return unescape(text[c.Start:c.End]) }

// Empty reports whether nothing stands in the cell.
func (c Cell) Empty() bool { return c.Start == c.End }

// unescape returns what the characters of a cell stand for.
func unescape(cell string) string { return strings.ReplaceAll(cell, `\|`, "|") }

// MaxHeads bounds the rows of a head.
const MaxHeads = 16

// Read returns the tables of a text in their order. The time is linear in its length.
func Read(text string) []Table {
	var r reader
	r.text = text

	for start := 0; start < len(text); {
		end := start + strings.IndexByte(text[start:], '\n')
		if end < start {
			end = len(text)
		}
		r.line(Line{start, end})
		start = end + 1
	}

	return r.tables
}

// A reader reads the tables of a text line by line.
type reader struct {
	text   string
	tables []Table
	above  []Line // lines of cells that a rule may follow, of which the last stand directly above
	rows   bool   // the piece that is read goes on with the next line of cells
	blanks int    // empty lines since the last piece; more than one, or other text, end a table
	other  bool
}

// line takes the next line of the text.
func (r *reader) line(l Line) {
	content := strings.TrimSpace(r.text[l.Start:l.End])
	columns := ruleColumns(content)

	switch {
	// A rule begins a table with the lines right above it as heads, but not within its
	// rows.
	case columns > 0 && len(r.above) > 0 && !r.rows:
		r.begin(columns)
	case content == "":
		r.drop()
		r.rows = false
		r.blanks++
	case !strings.Contains(content, "|"):
		r.drop()
		r.rows, r.other = false, true
	case r.rows:
		t := &r.tables[len(r.tables)-1]
		t.Rows, t.End = append(t.Rows, l), l.End
	default:
		if len(r.above) == MaxHeads {
			r.above, r.other = slices.Delete(r.above, 0, 1), true
		}
		r.above = append(r.above, l)
	}
}

// drop forgets lines of cells that no rule has followed.
func (r *reader) drop() {
	r.other = r.other || len(r.above) > 0
	r.above = r.above[:0]
}

// begin begins the rows below a rule of some columns.
func (r *reader) begin(columns int) {
	heads := r.headsAbove(columns)
	r.other = r.other || len(heads) < len(r.above)
	if n := len(r.tables); n == 0 || r.other || r.blanks > 1 || !r.sameLines(r.tables[n-1].Heads, heads) {
		r.tables = append(r.tables, Table{Start: heads[0].Start, End: heads[len(heads)-1].End, Columns: columns, Heads: heads})
	}
	r.above, r.rows, r.blanks, r.other = r.above[:0], true, 0, false
}

// headsAbove returns the lines above a rule that have as many cells as it, and of others
// the one directly above it.
func (r *reader) headsAbove(columns int) []Line {
	from := len(r.above) - 1
	for from > 0 && len(Cells(r.text, r.above[from-1], nil)) == columns {
		from--
	}
	return slices.Clone(r.above[from:])
}

// sameLines reports whether lines of the text say the same.
func (r *reader) sameLines(a, b []Line) bool {
	return slices.EqualFunc(a, b, func(a, b Line) bool {
		return strings.TrimSpace(r.text[a.Start:a.End]) == strings.TrimSpace(r.text[b.Start:b.End])
	})
}

// ruleColumns returns the columns of a line that parts the heads of a table from its rows;
// 0 if it is none.
func ruleColumns(line string) int {
	if !strings.Contains(line, "|") || strings.Trim(line, "|-: \t") != "" {
		return 0
	}

	inner := strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|")
	columns := 0
	for part := range strings.SplitSeq(inner, "|") {
		part = strings.TrimSpace(part)
		dashes := strings.TrimSuffix(strings.TrimPrefix(part, ":"), ":")
		if dashes == "" || strings.Trim(dashes, "-") != "" {
			return 0
		}
		columns++
	}

	return columns
}

// IsRule reports whether a line only parts the heads of a table from its rows.
func IsRule(line string) bool { return ruleColumns(strings.TrimSpace(line)) > 0 }

// Cells returns the cells of a row: that of column i is element i. It appends to into,
// which may be nil.
func Cells(text string, l Line, into []Cell) []Cell {
	start, end := trim(text, l.Start, l.End)

	if start < end && text[start] == '|' {
		start++
	}
	// A bar at the end is of the cell's text if a backslash stands before it.
	if start < end && text[end-1] == '|' && !(end-2 >= start && text[end-2] == '\\') {
		end--
	}

	for at := start; ; {
		next := at
		for next < end && (text[next] != '|' || next > at && text[next-1] == '\\') {
			next++
		}
		from, to := trim(text, at, next)
		into = append(into, Cell{Start: from, End: to, Joined: at == next && at > l.Start && len(into) > 0})
		if next >= end {
			return into
		}
		at = next + 1
	}
}

// trim narrows bytes [start, end) of a text to what is not white space.
func trim(text string, start, end int) (int, int) {
	for start < end && isSpace(text[start]) {
		start++
	}
	for start < end && isSpace(text[end-1]) {
		end--
	}
	return start, end
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }
