package find

import (
	"slices"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/internal/text/rules/field"
	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/rules/page"
	"github.com/coditect/mapreduce/internal/text/rules/phrase"
	"github.com/coditect/mapreduce/internal/text/table"
)

// isRepeated reports whether the cell of a label stands once more beside it: what reaches across
// several columns of a table is written in each of them.
func (d *Document) isRepeated(m phrase.Mark) bool {
	if !d.InBars(m) {
		return false
	}

	begin, end := d.BeginOfCell(m.Start), d.Lines[d.LineAt(m.Start)].End
	begin = end - len(strings.TrimLeft(d.Text[begin:end], "| "))
	cell, rest, _ := strings.Cut(d.Text[begin:end], "|")
	cell = strings.TrimRight(cell, " ")
	next, _, _ := strings.Cut(rest, "|")
	return strings.TrimSpace(next) == cell && d.isLabelCell(form.NewSpan(begin, begin+len(cell)), m)
}

// isLabelCell reports whether a cell holds a label and nothing but what belongs to it.
func (d *Document) isLabelCell(c form.Span, m phrase.Mark) bool {
	if m.Start < c.Start || m.End > c.End || strings.TrimFunc(d.Text[c.Start:m.Start], page.NotWord) != "" {
		return false
	}
	rest := strings.ToLower(strings.TrimFunc(d.Text[m.End:c.End], page.NotWord))
	return rest == "" || slices.Contains(page.NumberWords, rest)
}

// headsOf reports whether the cells of a line look like labels: two of them are labels of
// fields, or one of three or more, none holds a digit, and all end with a colon or none does.
func (d *Document) headsOf(names []form.Span) bool {
	labels, colons := 0, 0
	for _, c := range names {
		text := c.Of(d.Text)
		if strings.ContainsFunc(text, unicode.IsDigit) {
			return false
		}

		if strings.HasSuffix(text, ":") {
			colons++
		}

		if slices.ContainsFunc(phrase.Between(d.allLabels, c.Start, c.End), func(l phrase.Mark) bool { return d.isLabelCell(c, l) }) {
			labels++
		}
	}

	return (colons == 0 || colons == len(names)) && (labels >= 2 || labels == 1 && len(names) > 2)
}

// isLabel reports whether a cell is a label of a field.
func (d *Document) isLabel(c table.Cell) bool {
	return slices.ContainsFunc(phrase.Between(d.allLabels, c.Start, c.Start+1), func(l phrase.Mark) bool { return d.isLabelCell(form.NewSpan(c.Start, c.End), l) })
}

// isHead reports whether the first row of a table names its columns: most of its cells are
// labels of fields; or one is, the other cells are words, and either they are too many to be
// names and values in turn, or all that stands below one of them is a number or a date.
func (d *Document) isHead(t *page.Table, heads []table.Cell) bool {
	labels, named, words := 0, 0, true
	for i, c := range heads {
		// A cell that reaches across several columns stands in each of them.
		if c.Empty() || i > 0 && d.Text[c.Start:c.End] == d.Text[heads[i-1].Start:heads[i-1].End] {
			continue
		}
		named++
		if d.isLabel(c) {
			labels++
		}
		words = words && !strings.ContainsAny(d.Text[c.Start:c.End], "0123456789")
	}

	if 2*labels > named {
		return true
	}
	if !words || len(t.Rows) == 0 {
		return false
	}

	var row []table.Cell
	numbers := make([]int, len(heads)) // of cells below each head; -1 if there are others
	for _, l := range t.Rows[:min(len(t.Rows), page.SampleRows)] {
		row = table.Cells(d.Text, l, row[:0])
		if len(row) > 0 && d.isLabel(row[0]) {
			return false
		}
		for n, c := range row[:min(len(row), len(heads))] {
			switch {
			case c.Empty() || numbers[n] < 0:
			case strings.IndexByte("0123456789+-.", d.Text[c.Start]) >= 0:
				numbers[n]++
			default:
				numbers[n] = -1
			}
		}
	}

	return named > 2 || slices.Max(numbers) > 0
}

// headAt returns the table between bars in whose head byte at stands, and the row of that.
func (d *Document) headAt(at int) (*page.Table, table.Line) {
	tables := d.Reading.tablesOf(d)
	// Tables are in order and do not overlap: the first that ends behind the byte may hold
	// it.
	i, _ := slices.BinarySearchFunc(tables, at, func(t page.Table, at int) int {
		if t.End <= at {
			return -1
		}
		return 1
	})

	if i == len(tables) || tables[i].Style != form.None {
		return nil, table.Line{}
	}

	for _, l := range tables[i].Heads {
		if l.Start <= at && at < l.End {
			return &tables[i], l
		}
	}

	return nil, table.Line{}
}

// hasLabels reports whether labels of two fields stand on the line of m.
func (d *Document) hasLabels(m phrase.Mark) bool {
	line := d.Lines[d.LineAt(m.Start)]
	labels := phrase.Between(d.allLabels, line.Start, line.End)
	return slices.ContainsFunc(labels[:min(len(labels), maxHeadLabels)], func(l phrase.Mark) bool { return l.Field != m.Field })
}

// areValues reports whether a row holds the values below the names: none of it is a label,
// a cell holds a digit, and with tabs there are as many cells as names.
func (d *Document) areValues(row, names []form.Span, style form.Style) bool {
	digits := false
	for _, c := range row {
		if len(phrase.Between(d.allLabels, c.Start, c.Start+1)) > 0 {
			return false
		}

		digits = digits || strings.ContainsFunc(c.Of(d.Text), unicode.IsDigit)
	}

	if style == form.Tabs && len(row) > len(names) {
		return false
	}

	return digits && len(row) > 1
}

// textAt returns what stands behind a label on its line, or else on the next.
func (d *Document) textAt(m phrase.Mark) string {
	line := d.LineAt(m.Start)
	for ; line < min(len(d.Lines), d.LineAt(m.Start)+2); line++ {
		v := form.NewSpan(max(d.Lines[line].Start, m.End), d.Lines[line].End)
		v.End = page.ClampRune(d.Text, v, page.NearBytes)
		if v = form.Trim(d.Text, page.SkipSeparators(d.Text, v)); v.Start < v.End {
			return field.Clip(v.Of(d.Text))
		}
	}
	return ""
}

// maxHeadLabels bounds the labels of a line that are looked at.
const maxHeadLabels = 100
