package sheet

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/text/table"
)

// A tableAbove is what is known of the table that is open, to tell whether the rows below an empty one
// belong to it, or begin a table of their own.
type tableAbove struct {
	names   map[int]string // those of the head, by column
	columns columns        // those of the head
	rows    int
	least   int // values of the row below the head that has the fewest
	filled  map[int]*columnAbove
}

// A columnAbove is what is known of the cells of a column below the head.
type columnAbove struct {
	values  int
	numbers int
	days    int             // of the numbers, those that may be days or years
	texts   map[string]bool // at most maxTexts
}

// Bounds of what is kept of a table.
const (
	maxRowsAbove = 1000 // that are counted
	maxTexts     = 1000
	maxTextBytes = 80
)

// newTableAbove returns what a head tells of its table.
func newTableAbove(heads []row) *tableAbove {
	t := &tableAbove{names: heads[len(heads)-1].names(), columns: columns{heads[0].first, 0}, filled: map[int]*columnAbove{}}
	for _, r := range heads {
		t.columns.to = max(t.columns.to, r.first+richtext.Width(cellsOf(r)))
	}
	return t
}

// cellsOf returns the cells of a row with the columns that they cover.
func cellsOf(r row) []richtext.Cell {
	cells := make([]richtext.Cell, 0, len(r.cells))
	for i := 0; i < len(r.cells); i += r.spanOf(i) {
		cells = append(cells, richtext.Cell{Text: r.cells[i], Span: r.spanOf(i)})
	}
	return cells
}

// add counts a row of the table.
func (t *tableAbove) add(r row) {
	if t.rows == maxRowsAbove {
		return
	}
	if n := r.values(); t.rows == 0 || n < t.least {
		t.least = n
	}
	t.rows++

	for i, text := range r.cells {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}

		c := t.filled[r.first+i]
		if c == nil {
			c = &columnAbove{texts: map[string]bool{}}
			t.filled[r.first+i] = c
		}

		c.values++
		if isNumber(text) {
			c.numbers++
			if isDayOrYear(text) {
				c.days++
			}
		} else if len(c.texts) < maxTexts && len(text) <= maxTextBytes {
			c.texts[strings.Clone(text)] = true
		}
	}
}

// continues reports whether rows that stand below the table and an empty row belong to it: the first one
// stands in its columns, has as many values as its rows, and is no head. It has a number below a head of
// text and numbers, or texts that stand above, too. If its numbers may be days or years, where none stand
// above, it is a head of rows below it, if there are any. A round number alone, such as 2000, is seldom a year.
func (t *tableAbove) continues(rows []row) bool {
	first := rows[0]
	if t.rows == 0 || first.values() < max(2, t.least) || first.first+len(first.cells) > t.columns.to {
		return false
	}
	if slices.ContainsFunc(rows, func(r row) bool { return r.begin() < t.columns.from }) {
		return false
	}

	numbers, days, round, known, strange := 0, 0, 0, 0, 0
	for i, text := range first.cells {
		text = strings.TrimSpace(text)
		head, above := t.names[first.first+i], t.filled[first.first+i]

		switch number := isNumber(text); {
		case text == "" || above == nil:
		case text == head || isYear(text) && (isYear(head) || above.numbers == 0), strings.HasSuffix(text, ":"):
			return false // a head, which may have years, or a label beside its value
		case number && 2*above.numbers >= above.values && (!isNumber(head) || isYear(head)):
			numbers++
			if isDayOrYear(text) && above.days == 0 {
				days++
			}
			if strings.HasSuffix(text, "00") || strings.HasSuffix(text, "50") {
				round++
			}
		case !number && above.texts[text]:
			known++
		case !number && above.numbers == above.values:
			strange++
		}
	}

	if numbers > 0 {
		return numbers > days || numbers == 1 && round == 1 || len(rows) == 1
	}
	return known > strange
}

// names returns the texts of the row by column. A cell that covers several columns is the name of each.
func (r row) names() map[int]string {
	names := map[int]string{}
	for i := 0; i < len(r.cells); i += r.spanOf(i) {
		text := strings.TrimSpace(r.cells[i])
		for n := range r.spanOf(i) {
			if text != "" {
				names[r.first+i+n] = text
			}
		}
	}
	return names
}

// begin returns the column of the first value of the row.
func (r row) begin() int {
	return r.first + slices.IndexFunc(r.cells, func(c string) bool { return strings.TrimSpace(c) != "" })
}

// isNumber reports whether the text of a cell is a number, a date or a time, or stands for one.
func isNumber(text string) bool {
	shown, stored := table.Forms(text)
	if stored != "" {
		return true
	}

	digits := strings.TrimLeft(shown, "+-−($€£¥ ")
	if digits == "" || !isDigit(digits[0]) {
		return false
	}

	// Words behind a digit are a text, such as "3 days late".
	letters := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return -1
	}, digits)
	return len(letters) <= 3
}

// isDayOrYear reports whether a number may be a day or a year, as heads have them.
func isDayOrYear(text string) bool {
	shown, stored := table.Forms(text)
	day := cmp.Or(stored, shown)
	_, err := time.Parse(time.DateOnly, day[:min(len(day), len(time.DateOnly))])
	return err == nil || isYear(shown)
}
