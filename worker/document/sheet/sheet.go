// Package sheet writes the sheets of workbooks as tables. It tells titles above a table
// from its header, and values as they are shown from those that are stored.
package sheet

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/document"
	"github.com/coditect/mapreduce/worker/document/richtext"
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
	alone  []row // rows of a single value since the last empty row
	open   bool  // a table is
}

// A row is one that has values.
type row struct {
	number int // counted from 1
	cells  []string
}

// Begin begins a sheet.
func (w *Writer) Begin(name string) {
	w.sheet = richtext.Clip(name)
	w.Text.Heading(2, name, &mapreduce.Location{Sheet: w.sheet})
}

// Row writes a row with a number from 1. An empty row ends a table.
func (w *Writer) Row(number int, cells []string) error {
	if len(cells) > MaxColumns {
		return document.Refuse("more than %d cells in row %d", MaxColumns, number)
	}
	if w.cells += len(cells) + 1; w.cells > w.Limits.WithDefaults().Cells {
		return TooManyCells(w.Limits)
	}
	for len(cells) > 0 && strings.TrimSpace(cells[len(cells)-1]) == "" {
		cells = cells[:len(cells)-1]
	}
	r := row{number, cells}
	switch {
	case len(cells) == 0:
		w.endTable()
	case w.open:
		w.Text.Row(w.located(r))
	case r.values() == 1 && len(w.alone) < maxTitles:
		w.alone = append(w.alone, row{number, slices.Clone(cells)})
	default:
		w.beginTable(r)
	}
	return w.Text.Err()
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
		w.Text.BeginTable(w.located(w.alone[0]))
		for _, r := range w.alone[1:] {
			w.Text.Row(w.located(r))
		}
		w.alone = nil
		w.Text.Row(w.located(header))
		return
	}
	w.writeLines()
	w.Text.BeginTable(w.located(row{header.number, slices.Clone(header.cells)}))
}

// endTable ends a table, if there is one, and writes what stands alone.
func (w *Writer) endTable() {
	if len(w.alone) > 2 && w.oneColumn() {
		rows := make([][]richtext.Cell, len(w.alone))
		for i, r := range w.alone {
			rows[i] = w.located(r)
		}
		w.Text.Table(rows)
		w.alone = nil
	}
	w.writeLines()
	if w.open {
		w.Text.EndTable()
	}
	w.open = false
}

// End ends the sheet.
func (w *Writer) End() { w.endTable() }

// oneColumn reports whether the values that stand alone are in one column.
func (w *Writer) oneColumn() bool {
	return len(w.alone) > 0 && !slices.ContainsFunc(w.alone, func(r row) bool { return len(r.cells) != len(w.alone[0].cells) })
}

func (w *Writer) writeLines() {
	for _, r := range w.alone {
		last := len(r.cells) - 1
		w.Text.Paragraph(strings.Join(strings.Fields(r.cells[last]), " "), w.place(r.number, last))
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

// located returns the cells of a row with their places.
func (w *Writer) located(r row) []richtext.Cell {
	cells := make([]richtext.Cell, len(r.cells))
	for i, text := range r.cells {
		if cells[i].Text = text; text != "" && !w.Text.Full() {
			cells[i].Place = w.place(r.number, i)
		}
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

// Number returns a number as it is shown, and behind it in brackets as it is stored, if
// that says more.
func Number(shown string, stored float64) string {
	exact := strconv.FormatFloat(stored, 'g', 15, 64)
	if exact == shown || math.IsNaN(stored) || math.IsInf(stored, 0) {
		return shown
	}
	if strings.TrimSpace(shown) == "" || strings.Trim(shown, "#") == "" { // hidden, or its column is too narrow
		return exact
	}
	value, digits := readNumber(shown)
	if digits && math.Abs(value-stored) <= 1e-9*math.Abs(stored) {
		return shown
	}
	return fmt.Sprintf("%s (%s)", shown, exact)
}

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

// Date returns a date as it is shown, and behind it in brackets as it is stored, in ISO
// 8601, if it is not shown so.
func Date(shown, stored string) string {
	stored = strings.TrimSuffix(stored, "T00:00:00")
	switch {
	case strings.TrimSpace(shown) == "" || strings.Trim(shown, "#") == "":
		return stored
	case stored == "" || strings.HasPrefix(shown, stored), strings.HasPrefix(strings.Replace(shown, " ", "T", 1), stored):
		return shown
	}
	return fmt.Sprintf("%s (%s)", shown, stored)
}
