package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/table"
)

// A textTable is a table of a text: one between bars, or the whole of a text whose lines
// have tabs, commas or semicolons between their cells.
type textTable struct {
	table.Table
	style form.Style // None of one between bars
}

// cells returns the cells of a row. It appends to into.
func (t *textTable) cells(text string, l table.Line, into []table.Cell) []table.Cell {
	if t.style == form.None {
		return table.Cells(text, l, into)
	}
	for _, c := range form.Split(text, form.Span(l), t.style) {
		into = append(into, table.Cell{Start: c.Start, End: max(c.Start, c.End)})
	}
	return into
}

// readTables returns the tables of a text. Of a text that does not begin where its document
// does, rows stand above the first head, which was cut off: they are rows of that table.
func readTables(d *document) []textTable {
	var all []textTable
	for _, t := range table.Read(d.text) {
		all = append(all, textTable{Table: t})
	}

	if len(all) == 0 {
		if t, ok := d.delimitedTable(); ok && d.first {
			all = append(all, t)
		}
		return all
	}

	if !d.first {
		d.prependRows(&all[0])
	}

	return all
}

// prependRows adds the rows above the first piece of a table to it.
func (d *document) prependRows(t *textTable) {
	at := d.lineAt(t.Start)

	// The rows stand two lines above the head, with a blank line between.
	if at < 2 || strings.TrimSpace(d.lineText(at-1)) != "" {
		return
	}

	var rows []table.Line
	for i := at - 2; i >= 0; i-- {
		line := table.Line(d.lines[i])
		if !strings.HasPrefix(strings.TrimSpace(d.lineText(i)), "|") || len(table.Cells(d.text, line, nil)) != t.Columns {
			break
		}

		rows = append(rows, line)
	}

	slices.Reverse(rows)
	t.Rows = append(rows, t.Rows...)
}

// delimitedTable returns the table that a text is as a whole, below headings, if nearly all
// of its lines have as many cells as the first.
func (d *document) delimitedTable() (textTable, bool) {
	head := slices.IndexFunc(d.lines, func(l form.Span) bool { return !isBlankOrHeading(l.Of(d.text)) })
	if head < 0 {
		return textTable{}, false
	}

	style := form.StyleOf(d.lineText(head))
	if style != form.Tabs && style != form.Commas && style != form.Semicolons {
		return textTable{}, false
	}

	t := textTable{style: style, Table: table.Table{Start: d.lines[head].Start, Heads: []table.Line{table.Line(d.lines[head])}}}
	t.Columns = len(t.cells(d.text, t.Heads[0], nil))
	if !d.hasRows(head, t.Columns, style) {
		return textTable{}, false
	}

	// Blank lines and rules are no rows.
	for i := head + 1; i < len(d.lines); i++ {
		if d.isRow(i) {
			t.Rows = append(t.Rows, table.Line(d.lines[i]))
		}
	}

	t.End = d.lines[len(d.lines)-1].End
	return t, true
}

// A fit is a table whose heads are those of a program's fields.
type fit struct {
	*textTable
	columns []column // by field
	names   []string // of the columns, for people
	heads   []string // folded: what the cells of a head that stands again say
	first   int      // element of Rows with which its records begin
	matched int      // fields that have columns by name
}

// A column says which column of a table has a field's values.
type column struct {
	n     int    // -1: none has
	guess bool   // it is the only one whose cells have the form of the values
	why   string // none has
}

// maxSkipped is how many rows below the rule may belong to the head: a title above it, or a
// second row of names.
const maxSkipped = 10

// fitTables returns the tables whose heads fit the fields, in order.
func (p *Program) fitTables(d *document) []*fit {
	var fits []*fit
	tables := d.reading.tablesOf(d)
	for i := range tables {
		if f := p.fitTable(d, &tables[i]); f != nil {
			fits = append(fits, f)
		}
	}
	return fits
}

// fitTable returns how a table fits the fields; nil if it does not. Its head is the row, or
// the rows, above the rule; or a row below it that fits more fields.
func (p *Program) fitTable(d *document, t *textTable) *fit {
	var best *fit

	// Rows above the right head, such as a title, join the names of its columns.
	rows := slices.Clone(t.Heads)
	for skipped := 0; skipped <= min(maxSkipped, len(t.Rows)); skipped++ {
		if skipped > 0 {
			rows = append(rows, t.Rows[skipped-1])
		}

		f := p.fitHead(newHead(d.text, t, rows))
		if best == nil || f.matched > best.matched {
			f.textTable, f.first = t, skipped
			best = f
		}
	}

	if !p.fits(best) || p.keysIn(d, t) > best.matched {
		return nil
	}

	p.guessColumns(d, best)
	return best
}

// fits reports whether enough fields have columns: two of them, or all, and one that is
// required, if any is.
func (p *Program) fits(f *fit) bool {
	named, required, fitting := 0, 0, 0
	for i := range p.fields {
		if len(p.fields[i].columnNames()) > 0 {
			named++
		}

		if p.fields[i].property.Required {
			required++
			if f.columns[i].n >= 0 {
				fitting++
			}
		}
	}

	return f.matched > 0 && f.matched >= min(2, named) && (required == 0 || fitting > 0)
}

// keysIn counts the fields that the first column of a table names: if these are more than
// those that its head names, a row is a name with its value.
func (p *Program) keysIn(d *document, t *textTable) int {
	keys := make(map[string]bool)
	var cells []table.Cell

	for _, l := range append(slices.Clone(t.Heads), t.Rows[:min(len(t.Rows), sampleRows)]...) {
		if cells = t.cells(d.text, l, cells[:0]); len(cells) > 0 {
			keys[foldHead(cells[0].Text(d.text))] = true
		}
	}

	n := 0
	for i := range p.fields {
		if slices.ContainsFunc(p.fields[i].columnNames(), func(name string) bool { return keys[foldStrictly(name)] }) {
			n++
		}
	}

	return n
}

// A head is the names of the columns of a table.
type head struct {
	full []string // with those of the groups above
	last []string // the lowest row
}

func newHead(text string, t *textTable, rows []table.Line) head {
	h := head{full: make([]string, t.Columns), last: make([]string, t.Columns)}
	var cells []table.Cell
	for r, l := range rows {
		cells = t.cells(text, l, cells[:0])
		// Only the last row of the head may add columns, for which the others have no name.
		for len(h.full) < len(cells) && r == len(rows)-1 {
			h.full, h.last = append(h.full, ""), append(h.last, "")
		}

		for n, c := range cells[:min(len(cells), len(h.full))] {
			name := c.Text(text)
			if name != "" && name != h.last[n] {
				h.full[n] = strings.TrimSpace(h.full[n] + " " + name)
			}
			// An empty cell of a row above leaves the name that stands further up.
			if name != "" || r == len(rows)-1 {
				h.last[n] = name
			}
		}
	}

	return h
}

// foldHead folds the name of a column without marks of notes and what stands in brackets
// behind it, such as its unit.
func foldHead(name string) string {
	name = strings.TrimRight(withoutMarks(strings.TrimSpace(name)), "*†‡ ")
	if at := strings.LastIndexAny(name, "(["); at > 0 && strings.HasSuffix(name, ")") || at > 0 && strings.HasSuffix(name, "]") {
		name = name[:at]
	}
	return foldStrictly(name)
}

// fitHead finds the columns that the fields name: by the labels of the schema, in their
// order, then by the names and titles of properties.
func (p *Program) fitHead(h head) *fit {
	f := &fit{columns: make([]column, len(p.fields)), names: h.full, heads: make([]string, len(h.last))}
	for i := range f.columns {
		f.columns[i].n = -1
	}

	levels := make([]map[string][]int, 0, 4)
	// Full names come before their last rows, and whole names before those without notes
	// and brackets.
	for _, names := range [][]string{h.full, h.last} {
		for _, fold := range []func(string) string{foldStrictly, foldHead} {
			level := make(map[string][]int, len(names))
			for n, name := range names {
				if folded := fold(name); folded != "" {
					level[folded] = append(level[folded], n)
				}
			}
			levels = append(levels, level)
		}
	}

	for n, name := range h.last {
		f.heads[n] = foldStrictly(name)
	}

	// Labels that the schema gives take their columns first, for all fields, before own
	// names do.
	taken := make(map[int]bool)
	for _, names := range []func(*field) []string{(*field).givenNames, (*field).ownNames} {
		for i := range p.fields {
			c := &f.columns[i]
			if c.n >= 0 || p.fields[i].rowProgram != nil {
				continue
			}

			if c.find(names(&p.fields[i]), levels, taken); c.n >= 0 {
				taken[c.n] = true
				f.matched++
			}
		}
	}

	return f
}

// find sets the column that has one of the names, and that no other field has. Of two
// columns with one name neither is taken, since it is unclear which is meant.
func (c *column) find(names []string, levels []map[string][]int, taken map[int]bool) {
	for _, name := range names {
		folded := foldStrictly(name)
		for _, level := range levels {
			switch free := slices.DeleteFunc(slices.Clone(level[folded]), func(n int) bool { return taken[n] }); len(free) {
			case 0:
			case 1:
				c.n, c.why = free[0], ""
				return
			default:
				c.why = fmt.Sprintf("%d columns of the table are called %q", len(free), name)
			}
		}
	}
}

// givenNames are the names of columns that the schema gives for the field.
func (f *field) givenNames() []string {
	var names []string
	if f.labelsGiven {
		names = slices.Clone(f.labels)
	}
	if within := f.property.Hints.Within; within != nil {
		names = append(names, within.Columns...)
	}
	return names
}

// ownNames are the names of columns that the field's own name and title stand for.
func (f *field) ownNames() []string {
	name := f.path[strings.LastIndexByte(f.path, '.')+1:]
	return []string{identifierWords(name), name, f.property.Title}
}

// columnNames are the headings that a column with the field's values may have.
func (f *field) columnNames() []string {
	if f.rowProgram != nil {
		return nil
	}
	return append(f.givenNames(), f.ownNames()...)
}

// guessColumns gives fields without a column the only one that no field has and whose cells
// have the form of their values, such as a date.
func (p *Program) guessColumns(d *document, f *fit) {
	taken := make(map[int]bool)
	for _, c := range f.columns {
		taken[c.n] = c.n >= 0
	}

	for i := range p.fields {
		one := &p.fields[i]
		if f.columns[i].n >= 0 || f.columns[i].why != "" || one.labelsGiven || len(one.patterns) > 0 || !form.RecognisedAnywhere(one.element) {
			continue
		}

		// A column that fits alone is certain enough; of two, neither is.
		var of []int
		for n := range f.names {
			if !taken[n] && d.columnFits(f, n, one) {
				of = append(of, n)
			}
		}

		if len(of) == 1 {
			f.columns[i] = column{n: of[0], guess: true}
			taken[of[0]] = true
		}
	}
}

// columnFits reports whether the first cells of a column are values of a field.
func (d *document) columnFits(f *fit, n int, of *field) bool {
	var cells []table.Cell
	values := 0
	for _, l := range f.Rows[f.first:min(len(f.Rows), f.first+sampleRows)] {
		cells = f.cells(d.text, l, cells[:0])
		if n >= len(cells) || cells[n].Empty() {
			continue
		}

		if _, err := of.element.Normalize(cells[n].Text(d.text)); err != nil {
			return false
		}
		values++
	}

	return values > 0
}
