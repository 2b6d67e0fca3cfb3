// Package sheet writes the sheets of workbooks as tables. It tells titles above a table
// from its header, and values as they are shown from those that are stored. Numbers are written as
// the formats of a sheet show them.
package sheet

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/text/table"
)

// MaxColumns bounds the cells of a row.
const MaxColumns = 16_384

// maxTitles is how many lines of a single cell may stand above a table.
const maxTitles = 8

// A Writer writes sheets.
type Writer struct {
	Text *richtext.Writer // Needed.
	// Limits are those of the document, of which Cells counts here.
	Limits document.Limits
	sheet  string
	cells  int
	alone  []row // rows of a single value, since the last empty row or the one before that
	apart  bool  // an empty row stands behind them
	far    bool  // they stand in another column than what was alone before
	open   bool  // a table is

	block    []row // rows since the last empty one, which are not written yet
	inBlock  int   // their cells
	tooLarge bool  // the block has more than are kept, and is written row by row
	heads    []row // of the table that is open, which are not written yet

	above *tableAbove // what is known of the table that is open; nil if its rows are not compared
	gap   bool        // an empty row stands below it, and the rows below that tell whether it has ended
}

// A row is one that has values.
type row struct {
	number int // counted from 1
	first  int // column of the first cell
	cells  []string
	spans  []int // columns that each cell covers, if it covers several; may be shorter
}

// Begin begins a sheet.
func (w *Writer) Begin(name string) {
	w.sheet = richtext.Clip(name)
	w.Text.Heading(2, name, &mapreduce.Location{Sheet: w.sheet})
}

// Row writes a row with a number from 1. An empty row ends a table, unless the rows below it are like
// those above.
func (w *Writer) Row(number int, cells []string) error { return w.MergedRow(number, cells, nil) }

// MergedRow is Row for a row of which cells cover several columns: spans[i] is how many
// cell i does.
func (w *Writer) MergedRow(number int, cells []string, spans []int) error {
	if len(cells) > MaxColumns {
		return document.Refuse("more than %d cells in row %d", MaxColumns, number)
	}

	if w.cells += len(cells) + 1; w.cells > w.Limits.WithDefaults().Cells {
		return TooManyCells(w.Limits)
	}

	for len(cells) > 0 && strings.TrimSpace(cells[len(cells)-1]) == "" {
		cells = cells[:len(cells)-1]
	}

	r := row{number: number, cells: cells, spans: spans}
	switch {
	case len(cells) == 0:
		w.endBlock()
		w.emptyRow()
	case w.tooLarge:
		w.write(r)
	default:
		w.block = append(w.block, r.keptCopy())
		// A block that is too large to look for tables side by side is written row by row.
		if w.inBlock += len(cells); w.inBlock > maxBlock {
			w.tooLarge = true
			// Rows that are still to come may begin in any column.
			if !w.goOn() || w.above.columns.from > 0 {
				w.endGap()
			}
			w.gap = false
			w.writeBlock(0)
		}
	}

	return w.Text.Err()
}

// maxBlock is how many cells of rows without an empty one between them are kept, to see
// whether they are several tables side by side.
const maxBlock = 100_000

// endBlock writes the rows since the last empty one: each table that stands there, from the
// left to the right.
func (w *Writer) endBlock() {
	if w.tooLarge {
		w.tooLarge = false
		return
	}

	// Columns may be empty within a table that goes on, but another may begin to the right of it.
	parts, goesOn := w.parts(), w.goOn()
	beside := goesOn && len(parts) > 1 && parts[len(parts)-1].from >= w.above.columns.to
	if goesOn && !beside {
		w.gap = false
		w.writeBlock(w.above.columns.from)
		return
	}
	if len(w.block) > 0 && !beside {
		w.endGap()
	}

	if len(parts) < 2 {
		first := 0
		if len(parts) == 1 {
			first = parts[0].from
		}
		w.writeBlock(first)
		return
	}

	block := w.block
	w.block, w.inBlock = nil, 0

	for _, p := range parts {
		w.writePart(block, p)
		w.endTable()
	}
}

// writePart writes the rows of a block in some columns. A row that is empty within these still counts as
// an empty row of the table.
func (w *Writer) writePart(block []row, p columns) {
	for _, r := range block {
		if r = r.part(p); len(r.cells) > 0 {
			w.block = append(w.block, r)
			continue
		}
		w.writeBelow()
		w.emptyRow()
	}
	w.writeBelow()
}

// writeBelow writes the rows that are kept as they are, below the table above them or as one of their own.
func (w *Writer) writeBelow() {
	if w.goOn() {
		w.gap = false
	} else if len(w.block) > 0 {
		w.endGap()
	}

	for _, r := range w.block {
		w.write(r)
	}
	w.block = nil
}

// goOn reports whether the rows that are kept go on with the table above an empty row.
func (w *Writer) goOn() bool {
	return w.gap && len(w.block) > 0 && w.above.continues(w.block)
}

// endGap ends the table above an empty row, if one waits there.
func (w *Writer) endGap() {
	if w.gap {
		w.endTable()
	}
}

// writeBlock writes the rows that are kept, from a column on.
func (w *Writer) writeBlock(first int) {
	for _, r := range w.block {
		w.write(r.part(columns{first, MaxColumns}))
	}
	w.block, w.inBlock = nil, 0
}

// columns are those of a part of a sheet: [from, to).
type columns struct{ from, to int }

// parts returns the tables of the rows that are kept, which empty columns part. A single
// column is no table of its own: people leave columns empty within a table, too.
func (w *Writer) parts() []columns {
	used := map[int]bool{}
	for _, r := range w.block {
		for i, c := range r.cells {
			if strings.TrimSpace(c) == "" {
				continue
			}
			for n := range r.spanOf(i) {
				used[i+n] = true
			}
		}
	}

	// Columns in use that follow each other are one part.
	var parts []columns
	for _, n := range slices.Sorted(maps.Keys(used)) {
		if last := len(parts) - 1; last >= 0 && parts[last].to == n {
			parts[last].to++
		} else {
			parts = append(parts, columns{n, n + 1})
		}
	}

	if slices.ContainsFunc(parts, func(p columns) bool { return p.to-p.from < 2 }) && len(parts) > 1 {
		return []columns{{parts[0].from, parts[len(parts)-1].to}}
	}

	return parts
}

// spanOf returns the columns that cell i covers.
func (r row) spanOf(i int) int {
	if i < len(r.spans) {
		return min(max(r.spans[i], 1), MaxColumns-i)
	}
	return 1
}

// part returns the cells of the row in some columns, without empty ones at its end.
func (r row) part(p columns) row {
	from, to := min(p.from, len(r.cells)), min(p.to, len(r.cells))
	one := row{number: r.number, first: r.first + from, cells: r.cells[from:to], spans: r.spans[min(from, len(r.spans)):min(to, len(r.spans))]}
	for len(one.cells) > 0 && strings.TrimSpace(one.cells[len(one.cells)-1]) == "" {
		one.cells = one.cells[:len(one.cells)-1]
	}
	return one
}

// write writes a row that has values.
func (w *Writer) write(r row) {
	if len(w.heads) > 0 && !w.isHead(r) {
		w.writeHeads()
	}

	switch {
	// Rows with one value may be titles, or stand alone: which one, the rows below tell.
	case len(w.heads) > 0:
		w.heads = append(w.heads, r.keptCopy())
	case w.open:
		if w.above != nil {
			w.above.add(r)
		}
		w.Text.Row(w.locatedCells(r))
	case r.values() == 1 && w.apart && !w.standsBelow(r):
		w.writeCells()
		w.alone = append(w.alone, r.keptCopy())
		w.far = true
	case r.values() == 1 && !w.apart && len(w.alone) < maxTitles:
		w.alone = append(w.alone, r.keptCopy())
	case r.values() == 1 && w.apart:
		w.writeLines()
		w.alone = append(w.alone, r.keptCopy())
	default:
		w.beginTable(r)
	}
}

// TooManyCells returns why a document is refused that has more cells than its limits allow.
func TooManyCells(l document.Limits) error {
	return richtext.TooManyCells(l.WithDefaults().Cells)
}

// beginTable begins a table with the row that has its header. What stands above it alone
// is its title, unless the table has but one column.
func (w *Writer) beginTable(header row) {
	w.open = true

	if header.values() == 1 && w.oneColumn() {
		w.Text.BeginTable(w.locatedCells(w.alone[0]))
		for _, r := range w.alone[1:] {
			w.Text.Row(w.locatedCells(r))
		}
		w.alone = nil
		w.Text.Row(w.locatedCells(header))
		return
	}

	w.writeLines()

	w.heads = append(w.heads, header.keptCopy())

	// A head whose cells cover several columns may have further rows of heads below it.
	if !header.hasSpans() {
		w.writeHeads()
	}
}

// keptCopy returns a row that a writer keeps.
func (r row) keptCopy() row {
	return row{r.number, r.first, slices.Clone(r.cells), slices.Clone(r.spans)}
}

// hasSpans reports whether a cell of the row covers several columns.
func (r row) hasSpans() bool { return slices.ContainsFunc(r.spans, func(n int) bool { return n > 1 }) }

// maxHeads bounds the rows of a head.
const maxHeads = 4

// isHead reports whether a row belongs to the head that waits: the row above groups columns,
// and this one has names for them, or years.
func (w *Writer) isHead(r row) bool {
	if len(w.heads) == maxHeads || len(r.cells) == 0 || !w.heads[len(w.heads)-1].hasSpans() {
		return false
	}
	return !slices.ContainsFunc(r.cells, func(c string) bool {
		c = strings.TrimSpace(c)
		return c != "" && (isDigit(c[0]) || strings.IndexByte("+-.=#", c[0]) >= 0) && !isYear(c)
	})
}

// isYear reports whether a text may be a year.
func isYear(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && len(s) == 4 && 1900 <= n && n < 2100
}

// writeHeads begins the table that is open with the head that waits.
func (w *Writer) writeHeads() {
	heads := make([][]richtext.Cell, len(w.heads))
	for i, r := range w.heads {
		heads[i] = w.locatedCells(r)
	}
	w.above = newTableAbove(w.heads)
	w.heads = nil
	w.Text.BeginTable(heads...)
}

// endTable ends a table, if there is one, and writes what stands alone.
func (w *Writer) endTable() {
	if len(w.alone) > 2 && w.oneColumn() {
		rows := make([][]richtext.Cell, len(w.alone))
		for i, r := range w.alone {
			rows[i] = w.locatedCells(r)
		}
		w.Text.Table(rows)
		w.alone = nil
	}

	// All that waits to be written is written in its order: titles, heads, then the end.
	w.writeLines()

	if len(w.heads) > 0 {
		w.writeHeads()
	}

	if w.open {
		w.Text.EndTable()
	}

	w.open, w.gap, w.above = false, false, nil
}

// emptyRow ends a table, or lets it wait for the rows below, which may go on with it. What stands alone
// waits for what comes, too.
func (w *Writer) emptyRow() {
	if w.open && w.above != nil && len(w.heads) == 0 {
		w.gap = true
		return
	}

	if w.open || len(w.alone) != 1 {
		w.endTable()
	}
	w.apart = len(w.alone) > 0
}

// standsBelow reports whether a row is below what stands alone, in its column.
func (w *Writer) standsBelow(r row) bool {
	return len(w.alone) > 0 && w.alone[len(w.alone)-1].end() == r.end()
}

// end returns the column behind the last cell of the row.
func (r row) end() int { return r.first + len(r.cells) }

// writeCells writes each row that stands alone as a table of one cell: what stands alone in
// another column, far from it, has nothing to do with it.
func (w *Writer) writeCells() {
	for _, r := range w.alone {
		last := len(r.cells) - 1
		w.Text.Table([][]richtext.Cell{{{Text: r.cells[last], Place: w.place(r.number, r.first+last)}}})
	}
	w.alone, w.apart, w.far = nil, false, false
}

// End ends the sheet.
func (w *Writer) End() {
	w.endBlock()
	w.endTable()
}

// oneColumn reports whether the values that stand alone are in one column.
func (w *Writer) oneColumn() bool {
	return len(w.alone) > 0 && !slices.ContainsFunc(w.alone, func(r row) bool { return r.end() != w.alone[0].end() })
}

func (w *Writer) writeLines() {
	if w.far {
		w.writeCells()
		return
	}
	w.apart = false
	for _, r := range w.alone {
		last := len(r.cells) - 1
		w.Text.Paragraph(strings.Join(strings.Fields(r.cells[last]), " "), w.place(r.number, r.first+last))
	}
	w.alone = nil
}

func (r row) values() int {
	n := 0
	for _, c := range r.cells {
		if strings.TrimSpace(c) != "" {
			n++
		}
	}
	return n
}

// locatedCells returns the cells of a row with their places.
func (w *Writer) locatedCells(r row) []richtext.Cell {
	cells := make([]richtext.Cell, 0, len(r.cells))
	for i := 0; i < len(r.cells); i++ {
		c := richtext.Cell{Text: r.cells[i]}
		if c.Text != "" && !w.Text.Full() {
			c.Place = w.place(r.number, r.first+i)
		}

		// A cell that covers several columns stands for all of them.
		if n := r.spanOf(i); n > 1 {
			c.Span = n
			i += n - 1
		}

		cells = append(cells, c)
	}

	return cells
}

func (w *Writer) place(row, column int) *mapreduce.Location {
	return &mapreduce.Location{Sheet: w.sheet, Cell: ColumnName(column) + strconv.Itoa(row)}
}

// ColumnName returns the name of a column from 0: A, B, …, Z, AA.
func ColumnName(column int) string {
	name := ""
	for n := column + 1; n > 0; n = (n - 1) / 26 {
		name = string(rune('A'+(n-1)%26)) + name
	}
	return name
}

// Number returns a number as it is shown, and with it as it is stored, unless any reader of
// the shown form would read that.
func Number(shown string, stored float64) string {
	exact := strconv.FormatFloat(stored, 'g', 15, 64)
	if exact == shown && !hasTwoReadings(shown) || math.IsNaN(stored) || math.IsInf(stored, 0) {
		return shown
	}

	if isHidden(shown) {
		return exact
	}

	value, digits := readNumber(shown)
	if digits && math.Abs(value-stored) <= 1e-9*math.Abs(stored) && !hasTwoReadings(shown) {
		return shown
	}

	return table.WithStored(shown, exact)
}

// isHidden reports whether a value does not show, or not in so narrow a column.
func isHidden(shown string) bool {
	return strings.TrimSpace(shown) == "" || strings.Trim(shown, "#") == ""
}

// hasTwoReadings reports whether a number is read in different ways: a share as it is and
// by the hundred, one in brackets with a sign or without, and three digits behind the only
// separator as decimals or as thousands.
func hasTwoReadings(shown string) bool {
	if strings.ContainsAny(shown, "%‰()") {
		return true
	}

	at := strings.IndexAny(shown, ".,")
	if at < 0 || strings.ContainsAny(shown[at+1:], ".,") {
		return false
	}

	before, behind := 0, 0
	for at-before > 0 && isDigit(shown[at-before-1]) {
		before++
	}
	for at+1+behind < len(shown) && isDigit(shown[at+1+behind]) {
		behind++
	}

	// A leading zero leaves only decimals, as in 0.125.
	return behind == 3 && 1 <= before && before <= 3 && shown[at-before] != '0'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// readNumber reads a number as people write them, with signs of currency and per cent. It
// takes the last point or comma for that of decimals, unless it groups thousands.
func readNumber(shown string) (value float64, ok bool) {
	negative := strings.ContainsAny(shown, "-−(")

	point := strings.LastIndexAny(shown, ".,")
	if point >= 0 {
		mark := shown[point]
		behind := strings.TrimFunc(shown[point+1:], func(r rune) bool { return r < '0' || r > '9' })
		if other := strings.IndexAny(shown, ".,"); len(behind) == 3 && (other == point && mark == ',' || other != point && shown[other] == mark) {
			point = -1 // it groups thousands
		}
	}
	var digits strings.Builder

	exponent := ""
	for i, r := range shown {
		switch {
		case '0' <= r && r <= '9':
			digits.WriteRune(r)
		case i == point:
			digits.WriteByte('.')
		case (r == 'E' || r == 'e') && digits.Len() > 0:
			exponent = shown[i:]
		}

		// The sign of the exponent is not that of the number.
		if exponent != "" {
			negative = strings.ContainsAny(shown[:i], "-−(")
			break
		}
	}

	value, err := strconv.ParseFloat(digits.String()+exponent, 64)
	if err != nil {
		return 0, false
	}

	if strings.Contains(shown, "%") {
		value /= 100
	}

	if negative {
		value = -value
	}

	return value, true
}

// Date returns a date or a time as it is shown, and with it as it is stored, in ISO 8601,
// if it is not shown so.
func Date(shown, stored string) string {
	stored = strings.TrimSuffix(stored, "T00:00:00")
	switch {
	case isHidden(shown):
		return stored
	case stored == "" || strings.HasPrefix(shown, stored), strings.HasPrefix(strings.Replace(shown, " ", "T", 1), stored):
		return shown
	}
	return table.WithStored(shown, stored)
}

// Duration returns seconds as hours, minutes and seconds in ISO 8601.
func Duration(seconds float64) string {
	if math.IsNaN(seconds) || math.Abs(seconds) >= 1e12 {
		return ""
	}

	sign, n := "", int64(math.Round(seconds))
	if n < 0 {
		sign, n = "-", -n
	}

	text := sign + "PT"
	// No time at all is written as zero seconds, as PT alone is no duration.
	for _, unit := range []struct {
		seconds int64
		name    string
	}{{3600, "H"}, {60, "M"}, {1, "S"}} {
		if n >= unit.seconds || n == 0 && unit.seconds == 1 && strings.HasSuffix(text, "T") {
			text += strconv.FormatInt(n/unit.seconds, 10) + unit.name
		}
		n %= unit.seconds
	}

	return text
}
