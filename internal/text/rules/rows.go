package rules

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/plural"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/text/rules/field"
	"github.com/coditect/mapreduce/internal/text/rules/find"
	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/rules/phrase"
	"github.com/coditect/mapreduce/internal/text/table"
)

// A LeftOut is a row of a table that is no record, and why.
type LeftOut struct {
	Start, End int // bytes of Text
	Why        string
}

// Reasons why rows are left out.
const (
	leftHead   = "repeat the head of their table"
	leftTotal  = "add up other rows"
	leftNote   = "are headings or notes within a table"
	leftShift  = "have more cells than the head of their table, and not the values that it names"
	leftNoCell = "have no cell in the columns that are looked for"
)

// A Table says by what a table of the text was taken for records.
type Table struct {
	Start, End int      // bytes of Text
	Rows       int      // records
	Columns    []string // "field: name of the column", in the order of the fields
}

// maxQuoted bounds the rows that Summary quotes of one kind.
const maxQuoted = 3

// Summary says which rows were left out and why, one text for each reason.
func Summary(text string, rows []LeftOut) []string {
	byWhy := make(map[string][]LeftOut)
	var order []string
	for _, r := range rows {
		if byWhy[r.Why] == nil {
			order = append(order, r.Why)
		}
		byWhy[r.Why] = append(byWhy[r.Why], r)
	}

	summary := make([]string, len(order))

	// The reasons stand in the order of the rows that they were first given for.
	for i, why := range order {
		var quotes []string
		for _, r := range byWhy[why][:min(maxQuoted, len(byWhy[why]))] {
			quotes = append(quotes, strconv.Quote(field.Clip(text[r.Start:r.End])))
		}

		summary[i] = fmt.Sprintf("%s of tables left out: they %s: %s", plural.Count(len(byWhy[why]), "row"), why, strings.Join(quotes, ", "))
		if more := len(byWhy[why]) - len(quotes); more > 0 {
			summary[i] += fmt.Sprintf(" and %d more", more)
		}
	}

	return summary
}

// tableRecords returns a window for each row of the tables that is a record.
func (p *Program) tableRecords(t *unitText, w find.Window) []find.Window {
	var windows []find.Window
	for _, f := range t.Fits {
		if f.End < w.Start || f.Start >= w.End {
			continue
		}

		sorter := rowSorter{program: p, text: t, fit: f, sums: make(map[int]*sum)}
		before := len(windows)
		for _, l := range f.Rows[min(f.First, len(f.Rows)):] {
			// Extract returns the error of a reading that was stopped, and no row.
			if t.Reading.Stopped() {
				return nil
			}

			if l.Start < w.Start || l.Start >= w.End {
				continue
			}

			if why := sorter.sort(l); why != "" {
				t.leaveOut(l, why)
				continue
			}

			windows = append(windows, find.Window{Span: form.NewSpan(l.Start, l.End), First: true, Last: true, Table: f})
		}

		t.notes.tookTable(p, f, len(windows)-before)
	}

	return windows
}

// leaveOut notes a row that is no record, if it has anything and is the unit's own.
func (t *unitText) leaveOut(l table.Line, why string) {
	if why != leftBlank && t.InCore(l.Start) {
		t.notes.leftOut = append(t.notes.leftOut, LeftOut{Start: l.Start, End: l.End, Why: why})
	}
}

// leftBlank is why empty rows are left out. These are not reported.
const leftBlank = "are empty"

// tookTable notes which table was taken for records, and by what.
func (n *notes) tookTable(p *Program, f *find.Fit, rows int) {
	t := Table{Start: f.Start, End: f.End, Rows: rows}
	for i, c := range f.Columns {
		if c.N >= 0 {
			t.Columns = append(t.Columns, p.fields[i].Path+": "+f.Names[c.N])
		}
	}
	n.tables = append(n.tables, t)
}

// A rowSorter tells the rows of a table that are records from others.
type rowSorter struct {
	program *Program
	text    *unitText
	fit     *find.Fit
	cells   []table.Cell
	sums    map[int]*sum // by column
}

// A sum is what the numbers of a column add up to.
type sum struct {
	all, group float64 // of all rows, and of those since the last one that adds up
	numbers    int
}

// sort returns why a row is no record; "" of one that is.
func (s *rowSorter) sort(l table.Line) string {
	text := s.text.Text
	s.cells = s.fit.Cells(text, l, s.cells[:0])

	own, spans := 0, false
	first := -1
	for i, c := range s.cells {
		spans = spans || c.Joined
		if c.Empty() {
			continue
		}
		if own++; first < 0 {
			first = i
		}
	}

	// The order matters: what is checked first gives the reason.
	switch {
	case own == 0:
		return leftBlank
	case s.repeatsHead():
		return leftHead
	case s.addsUp(s.cells[first].Text(text), own):
		return leftTotal
	case own == 1 && len(s.fit.Names) > 1 && (spans || !s.hasRequired()):
		return leftNote
	case s.isShifted():
		return leftShift
	case !s.hasAny():
		return leftNoCell
	}

	s.add()
	return ""
}

// repeatsHead reports whether all cells of the row say what the head says above them.
func (s *rowSorter) repeatsHead() bool {
	for i, c := range s.cells {
		if c.Empty() {
			continue
		}
		if i >= len(s.fit.Heads) || phrase.Fold(c.Text(s.text.Text)) != s.fit.Heads[i] {
			return false
		}
	}
	return true
}

// cellOf returns the cell of a field; one that is empty if the row has none.
func (s *rowSorter) cellOf(field int) table.Cell {
	if n := s.fit.Columns[field].N; n >= 0 && n < len(s.cells) {
		return s.cells[n]
	}
	return table.Cell{}
}

// hasRequired reports whether the row has a cell for each field that is required and has a
// column.
func (s *rowSorter) hasRequired() bool {
	for i := range s.program.fields {
		if s.program.fields[i].Property.Required && s.fit.Columns[i].N >= 0 && s.cellOf(i).Empty() {
			return false
		}
	}
	return true
}

// hasAny reports whether the row has a cell for any field.
func (s *rowSorter) hasAny() bool {
	for i := range s.fit.Columns {
		if !s.cellOf(i).Empty() {
			return true
		}
	}
	return false
}

// isShifted reports whether the row has more cells than the head, and one that is no value
// of its column: a separator in a cell may have shifted it.
func (s *rowSorter) isShifted() bool {
	if len(s.cells) <= len(s.fit.Names) {
		return false
	}
	// Empty cells at the end of a line are common and shift nothing.
	if !slices.ContainsFunc(s.cells[len(s.fit.Names):], func(c table.Cell) bool { return !c.Empty() }) {
		return false
	}

	for i := range s.fit.Columns {
		f := &s.program.fields[i]
		c := s.cellOf(i)

		if c.Empty() || f.Scan == nil || len(f.Patterns) > 0 {
			continue
		}

		text := c.Text(s.text.Text)
		if _, _, err := f.CellValue(text, s.text.Style, s.text.Reading.Stop); err != nil || f.Element.Numeric() && strings.ContainsFunc(text, unicode.IsLetter) {
			return true
		}
	}

	return false
}

// addsUp reports whether the row adds up others: it says so, and lacks cells or has the sum
// of a column. A row that merely begins with such a word has to have the sum.
func (s *rowSorter) addsUp(first string, own int) bool {
	says, exactly := saysTotal(first)
	if !says {
		return false
	}

	summed := false
	for i := range s.program.fields {
		n := s.fit.Columns[i].N
		if column := s.sums[n]; column != nil && column.numbers > 0 {
			if v, ok := s.numberOf(i); ok && (near(v, column.all) || near(v, column.group)) {
				summed = true
			}
		}
	}

	if !summed && !(exactly && own < len(s.fit.Names)) {
		return false
	}

	for _, column := range s.sums {
		// The next group begins behind its own sum; the sum of all goes on.
		column.group = 0
	}

	return true
}

// near reports whether a number is a sum, but for what was rounded.
func near(v, sum float64) bool { return math.Abs(v-sum) <= 0.011+1e-9*math.Abs(sum) }

// numberOf returns the number in the cell of a field.
func (s *rowSorter) numberOf(field int) (float64, bool) {
	f := &s.program.fields[field]
	if !f.Element.Numeric() || len(f.Patterns) > 0 {
		return 0, false
	}

	c := s.cellOf(field)
	if c.Empty() {
		return 0, false
	}

	value, _, err := f.CellValue(c.Text(s.text.Text), s.text.Style, s.text.Reading.Stop)
	if err != nil {
		return 0, false
	}

	return find.AsFloat(value)
}

// add adds the numbers of a record to the sums of their columns.
func (s *rowSorter) add() {
	for i := range s.program.fields {
		v, ok := s.numberOf(i)
		if !ok {
			continue
		}

		n := s.fit.Columns[i].N
		if s.sums[n] == nil {
			s.sums[n] = new(sum)
		}

		s.sums[n].all += v
		s.sums[n].group += v
		s.sums[n].numbers++
	}
}

// totalWords are what the first cell of a row says that adds up others, folded.
var totalWords = func() map[string]bool {
	words := make(map[string]bool)
	for word := range strings.SplitSeq("total,totals,sub total,subtotals,grand total,overall total,sum,sum total,net total,gross total,total net,total gross,"+
		"total amount,total due,amount due,balance due,"+
		"summe,gesamt,gesamtsumme,zwischensumme,insgesamt,gesamtbetrag,endsumme,total général,sous-total,totaux,somme,total ht,total ttc,"+
		"totale,subtotale,totale generale,somma,suma,total general,suma total,totaal,subtotaal,eindtotaal,totalt,delsumma,summa,i alt,yhteensä,"+
		"razem,suma razem,ogółem,celkem,mezisoučet,összesen,toplam,ara toplam,genel toplam,итого,всего,подытог,σύνολο,合计,合計,小计,小計,总计,總計,総計,計,합계,총계,소계", ",") {
		words[phrase.Fold(word)] = true
	}
	return words
}()

// saysTotal reports whether a text says of its row that it adds up others, and whether it
// says no more. A text that begins so may also be a name.
func saysTotal(text string) (says, exactly bool) {
	if totalWords[phrase.Fold(text)] {
		return true, true
	}
	words := strings.Fields(text)
	for n := 1; n < min(len(words), 4); n++ {
		if totalWords[phrase.Fold(strings.Join(words[:n], " "))] || totalWords[phrase.Fold(strings.Join(words[len(words)-n:], " "))] {
			return true, false
		}
	}
	return false, false
}

// rowRecord makes a record of a row of a table.
func (p *Program) rowRecord(t *unitText, w find.Window) Record {
	f := w.Table
	cells := f.Cells(t.Text, table.Line(w.Span), t.Reading.Cells[:0])
	t.Reading.Cells = cells

	r := Record{Start: w.Start}
	for i := range p.fields {
		found, reason := p.fromRow(t, i, w, cells)
		if len(found) == 0 {
			r.Missing = append(r.Missing, Missing{Field: p.fields[i].Path, Reason: reason})
		}
		r.Found = append(r.Found, found...)
	}

	return p.withoutDerived(r)
}

// fromRow returns the values of a field in a row of a table, or why there are none.
func (p *Program) fromRow(t *unitText, index int, w find.Window, cells []table.Cell) ([]find.Found, string) {
	f := &p.fields[index]
	column := w.Table.Columns[index]
	switch {
	case f.HoldsObjects() || f.Element.Type == schema.Array:
		return nil, "a row of a table holds no list of objects or lists"
	// Patterns may look through the whole row if no column is of the field.
	case len(f.Patterns) > 0 && column.N < 0:
		inRow := w
		inRow.Table = nil
		return p.extractValues(t, index, inRow)
	case column.N < 0 && column.Why != "":
		return nil, column.Why
	case column.N < 0:
		return nil, "no column of the table is called so"
	case column.N >= len(cells):
		return nil, fmt.Sprintf("the row has no cell in the column %q", w.Table.Names[column.N])
	case cells[column.N].Empty():
		return nil, fmt.Sprintf("the cell in the column %q is empty", w.Table.Names[column.N])
	}

	found, reason := find.InCell(t.Document, index, cells[column.N])
	for i := range found {
		found[i].Basis = find.ByColumn
		switch {
		case column.Guess:
			found[i].Basis = find.ByType
		case f.LabelsGiven:
			found[i].Basis = find.ByHint
		}
	}

	return found, reason
}
