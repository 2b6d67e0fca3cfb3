package find

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/internal/text/rules/field"
	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/rules/page"
	"github.com/coditect/mapreduce/internal/text/rules/phrase"
	"github.com/coditect/mapreduce/internal/text/table"
)

// A Fit is a table whose heads are those of a program's fields.
type Fit struct {
	*page.Table
	Columns []column // by field
	Names   []string // of the columns, for people
	Heads   []string // folded: what the cells of a head that stands again say
	First   int      // element of Rows with which its records begin
	matched int      // fields that have columns by name
}

// A column says which column of a table has a field's values.
type column struct {
	N     int    // -1: none has
	Guess bool   // it is the only one whose cells have the form of the values
	Why   string // none has
}

// maxSkipped is how many rows below the rule may belong to the head: a title above it, or a
// second row of names.
const maxSkipped = 10

// fitTables returns the tables whose heads fit the fields, in order.
func (d *Document) fitTables() []*Fit {
	var fits []*Fit
	tables := d.Reading.tablesOf(d)
	for i := range tables {
		if f := d.fitTable(&tables[i]); f != nil {
			fits = append(fits, f)
		}
	}
	return fits
}

// fitTable returns how a table fits the fields; nil if it does not. Its head is the row, or
// the rows, above the rule; or a row below it that fits more fields.
func (d *Document) fitTable(t *page.Table) *Fit {
	var best *Fit

	// Rows above the right head, such as a title, join the names of its columns.
	rows := slices.Clone(t.Heads)
	for skipped := 0; skipped <= min(maxSkipped, len(t.Rows)); skipped++ {
		if skipped > 0 {
			rows = append(rows, t.Rows[skipped-1])
		}

		f := d.fitHead(newHead(d.Text, t, rows))
		if best == nil || f.matched > best.matched {
			f.Table, f.First = t, skipped
			best = f
		}
	}

	if !d.fitsFields(best) || d.keysIn(t) > best.matched {
		return nil
	}

	d.guessColumns(best)
	return best
}

// fitsFields reports whether enough fields have columns: two of them, or all, and one that is
// required, if any is.
func (d *Document) fitsFields(f *Fit) bool {
	named, required, fitting := 0, 0, 0
	for i := range d.fields {
		if len(d.fields[i].ColumnNames()) > 0 {
			named++
		}

		if d.fields[i].Property.Required {
			required++
			if f.Columns[i].N >= 0 {
				fitting++
			}
		}
	}

	return f.matched > 0 && f.matched >= min(2, named) && (required == 0 || fitting > 0)
}

// keysIn counts the fields that the first column of a table names: if these are more than
// those that its head names, a row is a name with its value.
func (d *Document) keysIn(t *page.Table) int {
	keys := make(map[string]bool)
	var cells []table.Cell

	for _, l := range append(slices.Clone(t.Heads), t.Rows[:min(len(t.Rows), page.SampleRows)]...) {
		if cells = t.Cells(d.Text, l, cells[:0]); len(cells) > 0 {
			keys[foldHead(cells[0].Text(d.Text))] = true
		}
	}

	n := 0
	for i := range d.fields {
		if slices.ContainsFunc(d.fields[i].ColumnNames(), func(name string) bool { return keys[phrase.Fold(name)] }) {
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

func newHead(text string, t *page.Table, rows []table.Line) head {
	h := head{full: make([]string, t.Columns), last: make([]string, t.Columns)}
	var cells []table.Cell
	for r, l := range rows {
		cells = t.Cells(text, l, cells[:0])
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
	name = strings.TrimRight(phrase.WithoutNotes(strings.TrimSpace(name)), "*†‡ ")
	if at := strings.LastIndexAny(name, "(["); at > 0 && strings.HasSuffix(name, ")") || at > 0 && strings.HasSuffix(name, "]") {
		name = name[:at]
	}
	return phrase.Fold(name)
}

// fitHead finds the columns that the fields name: by the labels of the schema, in their
// order, then by the names and titles of properties.
func (d *Document) fitHead(h head) *Fit {
	f := &Fit{Columns: make([]column, len(d.fields)), Names: h.full, Heads: make([]string, len(h.last))}
	for i := range f.Columns {
		f.Columns[i].N = -1
	}

	levels := make([]map[string][]int, 0, 4)
	// Full names come before their last rows, and whole names before those without notes
	// and brackets.
	for _, names := range [][]string{h.full, h.last} {
		for _, fold := range []func(string) string{phrase.Fold, foldHead} {
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
		f.Heads[n] = phrase.Fold(name)
	}

	// Labels that the schema gives take their columns first, for all fields, before own
	// names do.
	taken := make(map[int]bool)
	for _, names := range []func(*field.Field) []string{(*field.Field).GivenNames, (*field.Field).OwnNames} {
		for i := range d.fields {
			c := &f.Columns[i]
			if c.N >= 0 || d.fields[i].HoldsObjects() {
				continue
			}

			if c.find(names(&d.fields[i]), levels, taken); c.N >= 0 {
				taken[c.N] = true
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
		folded := phrase.Fold(name)
		for _, level := range levels {
			switch free := slices.DeleteFunc(slices.Clone(level[folded]), func(n int) bool { return taken[n] }); len(free) {
			case 0:
			case 1:
				c.N, c.Why = free[0], ""
				return
			default:
				c.Why = fmt.Sprintf("%d columns of the table are called %q", len(free), name)
			}
		}
	}
}

// guessColumns gives fields without a column the only one that no field has and whose cells
// have the form of their values, such as a date.
func (d *Document) guessColumns(f *Fit) {
	taken := make(map[int]bool)
	for _, c := range f.Columns {
		taken[c.N] = c.N >= 0
	}

	for i := range d.fields {
		one := &d.fields[i]
		if f.Columns[i].N >= 0 || f.Columns[i].Why != "" || one.LabelsGiven || len(one.Patterns) > 0 || !form.RecognisedAnywhere(one.Element) {
			continue
		}

		// A column that fits alone is certain enough; of two, neither is.
		var of []int
		for n := range f.Names {
			if !taken[n] && d.columnFits(f, n, one) {
				of = append(of, n)
			}
		}

		if len(of) == 1 {
			f.Columns[i] = column{N: of[0], Guess: true}
			taken[of[0]] = true
		}
	}
}

// columnFits reports whether the first cells of a column are values of a field.
func (d *Document) columnFits(f *Fit, n int, of *field.Field) bool {
	var cells []table.Cell
	values := 0
	for _, l := range f.Rows[f.First:min(len(f.Rows), f.First+page.SampleRows)] {
		cells = f.Cells(d.Text, l, cells[:0])
		if n >= len(cells) || cells[n].Empty() {
			continue
		}

		if _, err := of.Element.Normalize(cells[n].Text(d.Text)); err != nil {
			return false
		}
		values++
	}

	return values > 0
}
