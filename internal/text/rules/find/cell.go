package find

import (
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/text/rules/field"
	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/rules/phrase"
	"github.com/coditect/mapreduce/internal/text/table"
)

// InCell returns the values of a field in a cell, or why there are none.
func InCell(d *Document, index int, c table.Cell) ([]Found, string) {
	f := &d.fields[index]
	if n := c.End - c.Start; n > f.Most {
		return nil, fmt.Sprintf("the cell has %d bytes; a value has at most %d", n, f.Most)
	}

	text := c.Text(d.Text)
	if reason := field.NoValue(text); reason != "" {
		return nil, reason
	}

	if len(f.Patterns) > 0 || len(f.Values) > 0 {
		return searchCell(d, index, c)
	}

	value, shown, err := f.CellValue(text, d.Style, d.Reading.Stop)
	// A cell that is not a value as a whole may still hold one.
	if err != nil {
		if f.Scan == nil {
			return nil, err.Error()
		}
		return searchCell(d, index, c)
	}

	one := Found{Field: f.Path, Value: value, Start: c.Start, End: c.End, Confidence: sureCell}
	if shown {
		form, _ := table.Forms(d.Text[c.Start:c.End])
		one.End = c.Start + len(form)
	}
	one.Quote = d.Text[one.Start:one.End]

	if f.IsExcluded(one.Quote, value) {
		return nil, fmt.Sprintf("%q %v", field.Clip(one.Quote), field.ErrExcluded)
	}

	return []Found{one}, ""
}

// sureCell is the confidence in the value of a cell below the name of its column.
const sureCell = 0.95

// searchCell finds the values of a field within a cell: one, or of a list any number.
func searchCell(d *Document, index int, c table.Cell) ([]Found, string) {
	s := search{scope: newScope(d.WithoutCore(), index), labelSeen: true}
	s.candidates = s.candidatesIn(form.NewSpan(c.Start, c.End))
	for i := range s.candidates {
		s.candidates[i].score = scoreEntry
	}
	if len(s.candidates) == 0 {
		s.refused = field.Clip(c.Text(d.Text))
	}

	found, reason := s.chooseValues()
	if f := s.Field; f.Property.Type != schema.Array && f.Property.Hints.Pick == "" && len(found) > 0 && found[0].Rivals > 0 {
		return nil, fmt.Sprintf("the cell holds several values: %q", field.Clip(c.Text(d.Text)))
	}

	return found, reason
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
	text := c.Text(s.Text)
	if field.NoValue(text) != "" {
		return
	}

	// A cell that is a value as a whole needs no search within it.
	cell := candidate{Span: form.NewSpan(c.Start, c.End), matchStart: c.Start, score: scoreEntry, value: -1, cell: true}
	if len(s.Patterns)+len(s.Values) == 0 {
		if _, shown, err := s.CellValue(text, s.Style, s.Reading.Stop); err == nil {
			if shown {
				form, _ := table.Forms(s.Text[c.Start:c.End])
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

// addFromTables adds the cells of the field's columns in a text that is tables, and reports
// whether it has any.
func (s *search) addFromTables() bool {
	if !s.ofTables {
		return false
	}

	has := false
	for _, f := range s.Fits {
		column := f.Columns[s.index]
		if column.N < 0 {
			continue
		}

		has, s.labelSeen = true, true

		for _, l := range f.Rows[min(f.First, len(f.Rows)):] {
			if l.Start < s.area.Start || l.End > s.area.End {
				continue
			}

			// The slice of cells is used again for each row.
			s.Reading.Cells = f.Cells(s.Text, l, s.Reading.Cells[:0])
			if column.N < len(s.Reading.Cells) && !s.Reading.Cells[column.N].Empty() {
				s.addCell(s.Reading.Cells[column.N])
			}
		}
	}

	return has
}

// headCells returns the cells below a label that is the head of a column, in a table that
// stands among other text. sure says that these are its values, and not what stands beside
// it: a table of names and values has a first row, too, which looks like its head.
func (s *scope) headCells(m phrase.Mark) (cells []table.Cell, sure bool) {
	t, head := s.headAt(m.Start)
	if t == nil {
		return nil, false
	}

	// The row of the head that holds the label need not be the last one.
	heads := table.Cells(s.Text, head, nil)
	n := slices.IndexFunc(heads, func(c table.Cell) bool { return s.isLabelCell(form.NewSpan(c.Start, c.End), m) })
	if n < 0 {
		return nil, false
	}

	var row []table.Cell
	for _, l := range t.Rows {
		if l.Start < s.area.Start || l.End > s.area.End {
			continue
		}

		if row = table.Cells(s.Text, l, row[:0]); n < len(row) && !row[n].Empty() {
			cells = append(cells, row[n])
		}
	}

	return cells, s.isHead(t, heads)
}
