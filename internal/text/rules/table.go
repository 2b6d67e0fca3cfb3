package rules

import (
	"slices"
	"strings"

	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/table"
)

// cellsIn returns the cells of tables in r that stand in a column with one of the
// headings and in a row that begins with one of the names, if these are given.
func (d *document) cellsIn(r form.Span, columns, rows []string) []form.Span {
	if len(columns) == 0 {
		return d.rowCells(r, rows)
	}

	var found []form.Span
	for i := d.lineAt(r.Start); i < len(d.lines) && d.lines[i].Start < r.End; i++ {
		line := d.clipLine(i, r)
		style := form.StyleOf(d.text[line.Start:line.End])
		if style == form.None {
			continue
		}

		// Any line may be the head of a table, so each is tried.
		cells := form.Split(d.text, line, style)
		n := slices.IndexFunc(cells, func(c form.Span) bool { return isPhrase(d.text[c.Start:c.End], columns) })
		if n >= 0 {
			found = append(found, d.columnCells(i, n, cells[n], style, r, columns, rows)...)
		}
	}

	return found
}

// isPhrase reports whether s is one of the phrases, perhaps with the mark of a note.
func isPhrase(s string, phrases []string) bool {
	folded, bare := foldStrictly(s), foldStrictly(withoutMarks(s))
	return slices.ContainsFunc(phrases, func(p string) bool {
		f := foldStrictly(p)
		return f == folded || f == bare
	})
}

// rowCells returns the cells of rows that begin with one of the names.
func (d *document) rowCells(r form.Span, rows []string) []form.Span {
	var found []form.Span
	for i := d.lineAt(r.Start); i < len(d.lines) && d.lines[i].Start < r.End; i++ {
		line := d.clipLine(i, r)
		style := form.StyleOf(d.text[line.Start:line.End])
		if style == form.None {
			continue
		}

		cells := form.Split(d.text, line, style)
		if isPhrase(d.text[cells[0].Start:cells[0].End], rows) {
			found = append(found, cells[1:]...)
		}
	}

	return found
}

// columnCells returns the cells below a heading, up to the next such heading: those
// with the same number, or with gaps between cells those that stand under it.
func (d *document) columnCells(head, n int, title form.Span, style form.Style, r form.Span, columns, rows []string) []form.Span {
	var found []form.Span
	from := title.Start - d.lines[head].Start
	under := form.NewSpan(from, from+title.End-title.Start)

	for i := head + 1; i < len(d.lines) && d.lines[i].Start < r.End; i++ {
		text := d.lineText(i)
		switch {
		case form.IsRule(strings.TrimSpace(text)):
			continue
		case strings.TrimSpace(text) == "":
			return found
		}

		// Cells between gaps have no number to go by, as empty ones leave no trace.
		cells := form.Split(d.text, d.lines[i], style)
		at := n
		if style == form.Gaps {
			at = slices.IndexFunc(cells, func(c form.Span) bool {
				return c.Start-d.lines[i].Start < under.End && c.End-d.lines[i].Start > under.Start
			})
		}

		if at < 0 || at >= len(cells) || cells[at].Start >= cells[at].End {
			continue
		}

		if isPhrase(d.text[cells[at].Start:cells[at].End], columns) {
			return found
		}

		if len(rows) == 0 || isPhrase(d.text[cells[0].Start:cells[0].End], rows) {
			found = append(found, cells[at])
		}
	}

	return found
}

// headCells returns the cells below a label that is the head of a column, in a table that
// stands among other text. sure says that these are its values, and not what stands beside
// it: a table of names and values has a first row, too, which looks like its head.
func (s *search) headCells(m mark) (cells []table.Cell, sure bool) {
	t, head := s.headAt(m.Start)
	if t == nil {
		return nil, false
	}

	// The row of the head that holds the label need not be the last one.
	heads := table.Cells(s.text, head, nil)
	n := slices.IndexFunc(heads, func(c table.Cell) bool { return s.isLabelCell(form.NewSpan(c.Start, c.End), m) })
	if n < 0 {
		return nil, false
	}

	var row []table.Cell
	for _, l := range t.Rows {
		if l.Start < s.area.Start || l.End > s.area.End {
			continue
		}

		if row = table.Cells(s.text, l, row[:0]); n < len(row) && !row[n].Empty() {
			cells = append(cells, row[n])
		}
	}

	return cells, s.isHead(t, heads)
}

// headAt returns the table between bars in whose head byte at stands, and the row of that.
func (s *search) headAt(at int) (*textTable, table.Line) {
	tables := s.reading.tablesOf(s.document)
	// Tables are in order and do not overlap: the first that ends behind the byte may hold
	// it.
	i, _ := slices.BinarySearchFunc(tables, at, func(t textTable, at int) int {
		if t.End <= at {
			return -1
		}
		return 1
	})

	if i == len(tables) || tables[i].style != form.None {
		return nil, table.Line{}
	}

	for _, l := range tables[i].Heads {
		if l.Start <= at && at < l.End {
			return &tables[i], l
		}
	}

	return nil, table.Line{}
}

// isHead reports whether the first row of a table names its columns: most of its cells are
// labels of fields; or one is, the other cells are words, and either they are too many to be
// names and values in turn, or all that stands below one of them is a number or a date.
func (s *search) isHead(t *textTable, heads []table.Cell) bool {
	labels, named, words := 0, 0, true
	for i, c := range heads {
		// A cell that reaches across several columns stands in each of them.
		if c.Empty() || i > 0 && s.text[c.Start:c.End] == s.text[heads[i-1].Start:heads[i-1].End] {
			continue
		}
		named++
		if s.isLabel(c) {
			labels++
		}
		words = words && !strings.ContainsAny(s.text[c.Start:c.End], "0123456789")
	}

	if 2*labels > named {
		return true
	}
	if !words || len(t.Rows) == 0 {
		return false
	}

	var row []table.Cell
	numbers := make([]int, len(heads)) // of cells below each head; -1 if there are others
	for _, l := range t.Rows[:min(len(t.Rows), sampleRows)] {
		row = table.Cells(s.text, l, row[:0])
		if len(row) > 0 && s.isLabel(row[0]) {
			return false
		}
		for n, c := range row[:min(len(row), len(heads))] {
			switch {
			case c.Empty() || numbers[n] < 0:
			case strings.IndexByte("0123456789+-.", s.text[c.Start]) >= 0:
				numbers[n]++
			default:
				numbers[n] = -1
			}
		}
	}

	return named > 2 || slices.Max(numbers) > 0
}

// isLabel reports whether a cell is a label of a field.
func (s *search) isLabel(c table.Cell) bool {
	return slices.ContainsFunc(marksBetween(s.allLabels, c.Start, c.Start+1), func(l mark) bool { return s.isLabelCell(form.NewSpan(c.Start, c.End), l) })
}

// addFromCells adds the values of cells, and reports whether there are any.
func (s *search) addFromCells(cells []table.Cell) bool {
	before := len(s.candidates)
	for _, c := range cells {
		s.addCell(c)
	}
	return len(s.candidates) > before
}

// addCell adds the values of a cell below the name of its column.
func (s *search) addCell(c table.Cell) {
	text := c.Text(s.text)
	if noValue(text) != "" {
		return
	}

	// A cell that is a value as a whole needs no search within it.
	cell := candidate{Span: form.NewSpan(c.Start, c.End), matchStart: c.Start, score: scoreEntry, value: -1, cell: true}
	if len(s.patterns)+len(s.values) == 0 {
		if _, shown, err := s.cellValue(text, s.document); err == nil {
			if shown {
				form, _ := table.Forms(s.text[c.Start:c.End])
				cell.End = c.Start + len(form)
			}
			cell.whole = form.NewSpan(c.Start, c.End)
			s.candidates = append(s.candidates, cell)
			return
		}
	}

	for _, one := range s.candidatesIn(cell.Span) {
		one.score = scoreEntry
		s.candidates = append(s.candidates, one)
	}
}

// sampleRows are the lines whose cells are counted to tell a grid from other text.
const sampleRows = 50

// isBlankOrHeading reports whether a line may stand above a table that is otherwise all
// of a text, such as the name of a sheet.
func isBlankOrHeading(line string) bool {
	return strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#")
}

// hasRows reports whether nearly all of the first lines below the head have as many
// cells.
func (t *linedText) hasRows(head, cells int, style form.Style) bool {
	rows, even := 0, 0
	for i := head + 1; i < len(t.lines) && rows < sampleRows; i++ {
		if !t.isRow(i) {
			continue
		}

		rows++
		if len(form.Split(t.text, t.lines[i], style)) == cells {
			even++
		}
	}

	return rows > 0 && even*10 >= rows*9
}

// isRow reports whether line i is neither blank nor a rule, as stands below the head of a
// table.
func (t *linedText) isRow(i int) bool {
	line := strings.TrimSpace(t.lineText(i))
	return line != "" && !form.IsRule(line)
}

// isTables reports whether nothing stands in the text but tables and headings.
func (d *document) isTables() bool {
	tables := d.reading.tablesOf(d)
	if len(tables) == 0 {
		return false
	}

	for i := range d.lines {
		if len(tables) > 0 && d.lines[i].Start >= tables[0].End {
			tables = tables[1:]
		}

		inTable := len(tables) > 0 && d.lines[i].Start >= tables[0].Start
		if !inTable && !isBlankOrHeading(d.lineText(i)) {
			return false
		}
	}

	return true
}

// addFromTables adds the cells of the field's columns in a text that is tables, and reports
// whether it has any.
func (s *search) addFromTables() bool {
	if !s.ofTables {
		return false
	}

	has := false
	for _, f := range s.fits {
		column := f.columns[s.index]
		if column.n < 0 {
			continue
		}

		has, s.labelSeen = true, true

		for _, l := range f.Rows[min(f.first, len(f.Rows)):] {
			if l.Start < s.area.Start || l.End > s.area.End {
				continue
			}

			// The slice of cells is used again for each row.
			s.reading.cells = f.cells(s.text, l, s.reading.cells[:0])
			if column.n < len(s.reading.cells) && !s.reading.cells[column.n].Empty() {
				s.addCell(s.reading.cells[column.n])
			}
		}
	}

	return has
}
