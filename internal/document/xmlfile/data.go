package xmlfile

import (
	"strings"

	"github.com/coditect/mapreduce/internal/document/richtext"
)

// Bounds of tables of data.
const (
	maxFields = 200 // columns
	maxInner  = 3   // elements within each other that one row takes
)

// A field is a value with its name.
type field struct{ name, value string }

// writeData writes an element that holds data: a line for each value, a table where elements
// repeat, and a heading above what stands deeper.
func (w *writer) writeData(n *node, level int) {
	w.writeFields(attributesOf(n))

	if hasText(n) { // text with elements in it is for people
		w.writeParagraph(labelled(n.name, plainText(n)))
		return
	}

	elements := n.elementsIn()
	for i := 0; i < len(elements) && !w.stopped(); {
		c := elements[i]

		// Elements of one name beside each other are one group, which may be records.
		group := i + 1
		for group < len(elements) && elements[group].name == c.name {
			group++
		}

		switch {
		case group-i > 1 && w.writeRecords(elements[i:group]):
			i = group
			continue
		case len(c.elementsIn()) > 0 && !hasText(c), len(c.attrs) > 0 && plainText(c) == "":
			w.heading(level, c.name)
			w.writeData(c, level+1)
		default:
			w.writeFields(fieldsOf(c, c.name))
		}

		i++
	}
}

// labelled returns a value behind its name.
func labelled(name, value string) string {
	if value == "" {
		return ""
	}
	return name + ": " + value
}

// writeFields writes values, one on a line.
func (w *writer) writeFields(all []field) {
	for _, f := range all {
		w.writeParagraph(labelled(f.name, f.value))
	}
}

// attributesOf returns the attributes of an element as values.
func attributesOf(n *node) (all []field) {
	for _, a := range n.attrs {
		if value := squeeze(a.Value); value != "" {
			all = append(all, field{a.Name.Local, value})
		}
	}
	return all
}

// fieldsOf returns the values of an element without elements in it: its text, by a name, and its
// attributes.
func fieldsOf(n *node, name string) (all []field) {
	if text := plainText(n); text != "" {
		all = append(all, field{name, text})
	}
	for _, a := range attributesOf(n) {
		all = append(all, field{name + " " + a.name, a.value})
	}
	return all
}

// writeRecords writes elements that repeat as a table, if each has values of its own, and none
// of them twice.
func (w *writer) writeRecords(records []*node) bool {
	columns, rows := map[string]int{}, make([][]field, 0, len(records))
	var names []string

	// A record that is no row makes all of them none.
	for _, n := range records {
		row, ok := rowOf(n, "", 0)
		if !ok {
			return false
		}

		for _, f := range row {
			if _, known := columns[f.name]; !known {
				columns[f.name] = len(names)
				names = append(names, f.name)
			}
		}

		if len(names) > maxFields {
			return false
		}

		rows = append(rows, row)
	}

	if len(names) < 2 || w.text.CountCells(len(names)*len(rows)) != nil {
		return false
	}

	heads := make([]richtext.Cell, len(names))
	for i, name := range names {
		heads[i].Text = name
	}

	w.text.BeginTable(heads)

	for _, row := range rows {
		cells := make([]richtext.Cell, len(names))
		for _, f := range row {
			cells[columns[f.name]] = richtext.Cell{Text: f.value, Place: w.place}
		}

		w.text.Row(cells)
		if w.stopped() {
			break
		}
	}

	w.text.EndTable()
	return true
}

// rowOf returns the values of an element as those of a row; ok is false if it has one of them
// twice, or elements too deep.
func rowOf(n *node, prefix string, depth int) (row []field, ok bool) {
	if depth > maxInner {
		return nil, false
	}

	seen := map[string]bool{}
	for _, a := range attributesOf(n) {
		row = append(row, field{strings.TrimSpace(prefix + " " + a.name), a.value})
		seen[a.name] = true
	}

	if hasText(n) && len(n.elementsIn()) == 0 {
		return append(row, field{strings.TrimSpace(prefix + " " + n.name), plainText(n)}), true
	}

	for _, c := range n.elementsIn() {
		name := strings.TrimSpace(prefix + " " + c.name)
		if seen[c.name] {
			return nil, false
		}
		seen[c.name] = true

		if len(c.elementsIn()) == 0 || hasText(c) {
			row = append(row, fieldsOf(c, name)...)
			continue
		}

		inner, ok := rowOf(c, name, depth+1)
		if !ok {
			return nil, false
		}

		row = append(row, inner...)
	}

	return row, true
}
