package infer

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/internal/text/table"
)

// A list is a table that documents have among other text: its heads and the values below
// them.
type list struct {
	columns   observations
	heads     []string
	documents int
	last      int // the last of them
	rows      int
}

// addInnerTable notes a table among other text: a list of things by its head, or the entries of
// a form.
func (p *Proposal) addInnerTable(text string, t *table.Table) {
	heads := cellsOfRow(text, t.Heads[len(t.Heads)-1])
	rows := make([][]string, len(t.Rows))
	for i, l := range t.Rows {
		rows[i] = cellsOfRow(text, l)
	}

	switch {
	case isFormRow(heads, rows):
		for i, head := range heads {
			if i < len(rows[0]) && rows[0][i] != "" {
				p.addEntry(entry{strings.TrimRight(head, " :"), rows[0][i], true})
			}
		}
	case isListHead(heads, rows):
		p.addList(heads, rows)
	default:
		for _, row := range append([][]string{heads}, rows...) {
			for _, e := range rowEntries(row) {
				p.addEntry(e)
			}
		}
	}
}

func cellsOfRow(text string, l table.Line) []string {
	var cells []string
	for _, c := range table.Cells(text, l, nil) {
		cells = append(cells, strings.TrimSpace(c.Text(text)))
	}
	return cells
}

// isFormRow reports whether a table is a row of labels above a row of values: the labels end
// with colons, or all that stands below them has the form of a value.
func isFormRow(heads []string, rows [][]string) bool {
	if len(rows) != 1 {
		return false
	}

	colons, values := true, true
	for i, h := range heads {
		if h == "" {
			continue
		}

		colons = colons && strings.HasSuffix(h, ":")
		values = values && isPlainLabel(strings.TrimRight(h, " :")) && i < len(rows[0]) && isValue(rows[0][i])
	}

	return colons || values
}

// isListHead reports whether a row names the columns of a list: two cells or more, all words
// and all different, and values are not beside but below them.
func isListHead(heads []string, rows [][]string) bool {
	seen := make(map[string]bool)
	for _, h := range heads {
		folded := format.Fold(h)
		switch {
		case h == "":
			continue
		case !startsWithLetter(h) || strings.ContainsFunc(h, unicode.IsDigit) || seen[folded] || strings.HasSuffix(h, ":"):
			return false
		}
		seen[folded] = true
	}
	if len(seen) < 2 || len(rows) == 0 {
		return false
	}

	values := 0 // rows with a number or a date behind the first cell
	for _, row := range rows {
		if slices.ContainsFunc(row[min(1, len(row)):], isValue) {
			values++
		}
	}
	return len(heads) > 2 && values > 0 || len(heads) == 2 && 2*values >= len(rows) && !isLabelled(heads, rows)
}

// isLabelled reports whether two columns are names and values: the first row is one, too.
func isLabelled(heads []string, rows [][]string) bool {
	return isValue(heads[1]) || slices.ContainsFunc(rows, func(row []string) bool { return strings.HasSuffix(row[0], ":") })
}

// addList notes the columns of a list. A row without a first cell may have a label and its
// value, such as a sum below the list.
func (p *Proposal) addList(heads []string, rows [][]string) {
	key := format.Fold(strings.Join(heads, "\x00"))
	seen := p.lists[key]
	if seen == nil {
		if p.lists == nil {
			p.lists = map[string]*list{}
		}
		seen = &list{heads: heads}
		p.lists[key] = seen
		p.listOrder = append(p.listOrder, seen)
	}

	if seen.last != p.documents {
		// A document may have several tables with this head, but counts once.
		seen.last = p.documents
		seen.documents++
	}

	for _, row := range rows {
		own := 0
		for _, cell := range row {
			if cell != "" {
				own++
			}
		}

		if len(row) > 0 && row[0] == "" && own <= 2 {
			for _, e := range rowEntries(row) {
				p.addEntry(e)
			}
			continue
		}

		seen.rows++

		for n, cell := range row {
			if n < len(heads) && heads[n] != "" && cell != "" {
				seen.columns.add(heads[n], cell, p.documents)
			}
		}
	}
}

// maxLists bounds the lists of a proposal.
const maxLists = 8

// listDefinitions returns the lists that enough documents have, as properties of an object
// whose other properties are known.
func (p *Proposal) listDefinitions(known []field) string {
	lists := slices.DeleteFunc(slices.Clone(p.listOrder), func(l *list) bool {
		return float64(l.documents) < leastShare*float64(p.documents) || len(l.columns.list) < 2
	})

	taken := make(map[string]bool, len(known))
	for _, f := range known {
		taken[f.name] = true
	}

	var b strings.Builder
	for _, l := range lists[:min(len(lists), maxLists)] {
		name := "items"
		// The name must differ from those of all other properties.
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("items_%d", n)
		}

		taken[name] = true

		fmt.Fprintf(&b, "  # a table in %d of %d documents, with %d rows\n", l.documents, p.documents, l.rows)
		fmt.Fprintf(&b, "  %s:\n    type: array\n    items:\n      type: object\n      properties:\n", name)

		var columns []field
		for _, o := range l.columns.list {
			columns = append(columns, o.field())
		}

		for _, f := range unique(columns[:min(len(columns), maxFields)]) {
			fmt.Fprintf(&b, "        %s: %s # such as %s\n", f.name, f.definition(), quote(f.sample))
		}
	}
	return b.String()
}
