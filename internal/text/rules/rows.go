package rules

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/plural"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/internal/text/rules/form"
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
			quotes = append(quotes, strconv.Quote(clip(text[r.Start:r.End])))
		}

		summary[i] = fmt.Sprintf("%s of tables left out: they %s: %s", plural.Count(len(byWhy[why]), "row"), why, strings.Join(quotes, ", "))
		if more := len(byWhy[why]) - len(quotes); more > 0 {
			summary[i] += fmt.Sprintf(" and %d more", more)
		}
	}

	return summary
}

// tableRecords returns a window for each row of the tables that is a record.
func (p *Program) tableRecords(d *document, w window) []window {
	var windows []window
	for _, f := range d.fits {
		if f.End < w.Start || f.Start >= w.End {
			continue
		}

		sorter := rowSorter{program: p, document: d, fit: f, sums: make(map[int]*sum)}
		before := len(windows)
		for _, l := range f.Rows[min(f.first, len(f.Rows)):] {
			// Extract returns the error of a reading that was stopped, and no row.
			if d.reading.stopped() {
				return nil
			}

			if l.Start < w.Start || l.Start >= w.End {
				continue
			}

			if why := sorter.sort(l); why != "" {
				d.reading.leaveOut(d, l, why)
				continue
			}

			windows = append(windows, window{Span: form.NewSpan(l.Start, l.End), first: true, last: true, table: f})
		}

		d.reading.tookTable(p, f, len(windows)-before)
	}

	return windows
}

// leaveOut notes a row that is no record, if it has anything and is the unit's own.
func (r *reading) leaveOut(d *document, l table.Line, why string) {
	if why != leftBlank && d.inCore(l.Start) {
		r.leftOut = append(r.leftOut, LeftOut{Start: l.Start, End: l.End, Why: why})
	}
}

// leftBlank is why empty rows are left out. These are not reported.
const leftBlank = "are empty"

// tookTable notes which table was taken for records, and by what.
func (r *reading) tookTable(p *Program, f *fit, rows int) {
	t := Table{Start: f.Start, End: f.End, Rows: rows}
	for i, c := range f.columns {
		if c.n >= 0 {
			t.Columns = append(t.Columns, p.fields[i].path+": "+f.names[c.n])
		}
	}
	r.tables = append(r.tables, t)
}

// A rowSorter tells the rows of a table that are records from others.
type rowSorter struct {
	program  *Program
	document *document
	fit      *fit
	cells    []table.Cell
	sums     map[int]*sum // by column
}

// A sum is what the numbers of a column add up to.
type sum struct {
	all, group float64 // of all rows, and of those since the last one that adds up
	numbers    int
}

// sort returns why a row is no record; "" of one that is.
func (s *rowSorter) sort(l table.Line) string {
	text := s.document.text
	s.cells = s.fit.cells(text, l, s.cells[:0])

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
	case own == 1 && len(s.fit.names) > 1 && (spans || !s.hasRequired()):
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
		if i >= len(s.fit.heads) || foldStrictly(c.Text(s.document.text)) != s.fit.heads[i] {
			return false
		}
	}
	return true
}

// cellOf returns the cell of a field; one that is empty if the row has none.
func (s *rowSorter) cellOf(field int) table.Cell {
	if n := s.fit.columns[field].n; n >= 0 && n < len(s.cells) {
		return s.cells[n]
	}
	return table.Cell{}
}

// hasRequired reports whether the row has a cell for each field that is required and has a
// column.
func (s *rowSorter) hasRequired() bool {
	for i := range s.program.fields {
		if s.program.fields[i].property.Required && s.fit.columns[i].n >= 0 && s.cellOf(i).Empty() {
			return false
		}
	}
	return true
}

// hasAny reports whether the row has a cell for any field.
func (s *rowSorter) hasAny() bool {
	for i := range s.fit.columns {
		if !s.cellOf(i).Empty() {
			return true
		}
	}
	return false
}

// isShifted reports whether the row has more cells than the head, and one that is no value
// of its column: a separator in a cell may have shifted it.
func (s *rowSorter) isShifted() bool {
	if len(s.cells) <= len(s.fit.names) {
		return false
	}
	// Empty cells at the end of a line are common and shift nothing.
	if !slices.ContainsFunc(s.cells[len(s.fit.names):], func(c table.Cell) bool { return !c.Empty() }) {
		return false
	}

	for i := range s.fit.columns {
		f := &s.program.fields[i]
		c := s.cellOf(i)

		if c.Empty() || f.scan == nil || len(f.patterns) > 0 {
			continue
		}

		text := c.Text(s.document.text)
		if _, _, err := f.cellValue(text, s.document); err != nil || f.element.Numeric() && strings.ContainsFunc(text, unicode.IsLetter) {
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
		n := s.fit.columns[i].n
		if column := s.sums[n]; column != nil && column.numbers > 0 {
			if v, ok := s.numberOf(i); ok && (near(v, column.all) || near(v, column.group)) {
				summed = true
			}
		}
	}

	if !summed && !(exactly && own < len(s.fit.names)) {
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
	if !f.element.Numeric() || len(f.patterns) > 0 {
		return 0, false
	}

	c := s.cellOf(field)
	if c.Empty() {
		return 0, false
	}

	value, _, err := f.cellValue(c.Text(s.document.text), s.document)
	if err != nil {
		return 0, false
	}

	return asFloat(value)
}

func asFloat(value any) (float64, bool) {
	number, ok := value.(json.Number)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(number), 64)
	return v, err == nil
}

// add adds the numbers of a record to the sums of their columns.
func (s *rowSorter) add() {
	for i := range s.program.fields {
		v, ok := s.numberOf(i)
		if !ok {
			continue
		}

		n := s.fit.columns[i].n
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
		words[foldStrictly(word)] = true
	}
	return words
}()

// saysTotal reports whether a text says of its row that it adds up others, and whether it
// says no more. A text that begins so may also be a name.
func saysTotal(text string) (says, exactly bool) {
	if totalWords[foldStrictly(text)] {
		return true, true
	}
	words := strings.Fields(text)
	for n := 1; n < min(len(words), 4); n++ {
		if totalWords[foldStrictly(strings.Join(words[:n], " "))] || totalWords[foldStrictly(strings.Join(words[len(words)-n:], " "))] {
			return true, false
		}
	}
	return false, false
}

// rowRecord makes a record of a row of a table.
func (p *Program) rowRecord(d *document, w window) Record {
	f := w.table
	cells := f.cells(d.text, table.Line(w.Span), d.reading.cells[:0])
	d.reading.cells = cells

	r := Record{Start: w.Start}
	for i := range p.fields {
		found, reason := p.fields[i].fromRow(d, i, w, cells)
		if len(found) == 0 {
			r.Missing = append(r.Missing, Missing{Field: p.fields[i].path, Reason: reason})
		}
		r.Found = append(r.Found, found...)
	}

	return p.withoutDerived(r)
}

// fromRow returns the values of a field in a row of a table, or why there are none.
func (f *field) fromRow(d *document, index int, w window, cells []table.Cell) ([]Found, string) {
	column := w.table.columns[index]
	switch {
	case f.rowProgram != nil || f.element.Type == schema.Array:
		return nil, "a row of a table holds no list of objects or lists"
	// Patterns may look through the whole row if no column is of the field.
	case len(f.patterns) > 0 && column.n < 0:
		inRow := w
		inRow.table = nil
		return f.extractValues(d, index, inRow)
	case column.n < 0 && column.why != "":
		return nil, column.why
	case column.n < 0:
		return nil, "no column of the table is called so"
	case column.n >= len(cells):
		return nil, fmt.Sprintf("the row has no cell in the column %q", w.table.names[column.n])
	case cells[column.n].Empty():
		return nil, fmt.Sprintf("the cell in the column %q is empty", w.table.names[column.n])
	}

	found, reason := f.fromCell(d, index, cells[column.n])
	for i := range found {
		found[i].Basis = ByColumn
		switch {
		case column.guess:
			found[i].Basis = ByType
		case f.labelsGiven:
			found[i].Basis = ByHint
		}
	}

	return found, reason
}

// fromCell returns the values of a field in a cell, or why there are none.
func (f *field) fromCell(d *document, index int, c table.Cell) ([]Found, string) {
	if n := c.End - c.Start; n > f.most {
		return nil, fmt.Sprintf("the cell has %d bytes; a value has at most %d", n, f.most)
	}

	text := c.Text(d.text)
	if reason := noValue(text); reason != "" {
		return nil, reason
	}

	if len(f.patterns) > 0 || len(f.values) > 0 {
		return f.searchCell(d, index, c)
	}

	value, shown, err := f.cellValue(text, d)
	// A cell that is not a value as a whole may still hold one.
	if err != nil {
		if f.scan == nil {
			return nil, err.Error()
		}
		return f.searchCell(d, index, c)
	}

	one := Found{Field: f.path, Value: value, Start: c.Start, End: c.End, Confidence: sureCell}
	if shown {
		form, _ := table.Forms(d.text[c.Start:c.End])
		one.End = c.Start + len(form)
	}
	one.Quote = d.text[one.Start:one.End]

	if f.isExcluded(one.Quote, value) {
		return nil, fmt.Sprintf("%q %v", clip(one.Quote), errExcluded)
	}

	return []Found{one}, ""
}

// sureCell is the confidence in the value of a cell below the name of its column.
const sureCell = 0.95

// noValue returns why a cell says nothing that could be a value.
func noValue(cell string) string {
	switch {
	case table.IsError(cell):
		return fmt.Sprintf("the cell shows the error %s", cell)
	case table.IsFormula(cell):
		return fmt.Sprintf("the cell has the formula %s, whose result is not stored", clip(cell))
	}
	return ""
}

// storedStyle is how the numbers are written that spreadsheets store.
var storedStyle = format.NumberStyle{Decimal: '.', Blanks: format.No}

// cellValue returns the value of a cell. Of one with two forms, the stored one is the value,
// and all of the cell its quote: the shown one alone may be read in other ways. For texts the
// shown one is both, and shown says so.
func (f *field) cellValue(cell string, d *document) (value any, shown bool, err error) {
	form, stored := table.Forms(cell)
	switch {
	case stored == "":
		value, err = f.readText(cell, d.style, d.reading)
		return value, false, err
	case f.isText():
		value, err = f.readText(form, d.style, d.reading)
		return value, true, err
	}

	value, err = f.readText(stored, storedStyle, d.reading)
	return value, false, err
}

// searchCell finds the values of a field within a cell: one, or of a list any number.
func (f *field) searchCell(d *document, index int, c table.Cell) ([]Found, string) {
	s := search{document: d.withoutCore(), field: f, index: index, labelSeen: true}
	s.candidates = s.candidatesIn(form.NewSpan(c.Start, c.End))
	for i := range s.candidates {
		s.candidates[i].score = scoreEntry
	}
	if len(s.candidates) == 0 {
		s.refused = clip(c.Text(d.text))
	}

	found, reason := s.chooseValues()
	if f.property.Type != schema.Array && f.property.Hints.Pick == "" && len(found) > 0 && found[0].Rivals > 0 {
		return nil, fmt.Sprintf("the cell holds several values: %q", clip(c.Text(d.text)))
	}

	return found, reason
}

// isExcluded reports whether the schema says that a value, or its quote, is none.
func (f *field) isExcluded(quote string, value any) bool {
	return len(f.excluded) > 0 && (f.excluded["quote "+format.Fold(quote)] || f.excluded["value "+f.element.Identity(value)])
}
