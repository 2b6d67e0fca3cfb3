package xmlfile

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/document/sheet"
)

// maxSheetRows is more than the rows of any sheet.
const maxSheetRows = 1 << 24

// maxParents bounds the styles that a style follows from.
const maxParents = 8

// isWorkbook reports whether a file is a workbook as Excel 2003 writes them in XML.
func isWorkbook(root *node) bool {
	return root.name == "Workbook" && root.child("Worksheet") != nil
}

// A workbook is one that is written. Its text is that of other workbooks: a table for each
// sheet, with dates and numbers as they are shown, and as they are stored where that says more.
type workbook struct {
	w        *writer
	sheets   *sheet.Writer
	styles   map[string]*node // by id
	numbers  sheet.Formatter
	comments []cellComment
	unknown  int // formulas without a stored result
}

// A cellComment is one on a cell.
type cellComment struct {
	text  string
	place *mapreduce.Location
}

// writeWorkbook writes the sheets of a workbook, and behind them the comments on cells.
func (w *writer) writeWorkbook(root *node) {
	b := &workbook{w: w, sheets: &sheet.Writer{Text: w.text, Limits: w.limits}, styles: map[string]*node{}}
	w.title = plainText(root.child("DocumentProperties").child("Title"))

	if styles := root.child("Styles"); styles != nil {
		for _, s := range styles.elementsIn() {
			b.styles[s.attributeOf("ID")] = s
		}
	}

	for _, s := range root.elementsIn() {
		if s.name == "Worksheet" && w.err == nil {
			w.err = b.writeSheet(s)
		}
	}

	for _, c := range b.comments {
		w.text.Note("Comment on "+c.place.Sheet+"!"+c.place.Cell+":", c.text, c.place)
	}

	if b.unknown > 0 {
		w.notes = append(w.notes, fmt.Sprintf("formulas without a stored result, which have no value here: %d; open the file in a spreadsheet program and save it", b.unknown))
	}
}

// writeSheet writes a sheet.
func (b *workbook) writeSheet(s *node) error {
	name := s.attributeOf("Name")
	b.sheets.Begin(name)
	table, merges := s.child("Table"), sheet.NewMerges(nil)
	columns := columnStyles(table)

	last := 0
	for _, r := range table.childrenNamed("Row") {
		if b.w.stopped() {
			return b.w.err
		}

		// A row without an index follows the last one. Those that are left out are empty.
		number := last + 1
		if i := attrNumber(r, "Index"); i > number {
			number = i
			if err := b.sheets.Row(last+1, nil); err != nil {
				return err
			}
		}

		last = number + attrNumber(r, "Span")

		cells, err := b.readRow(r, number, columns, name, merges)
		if err != nil {
			return err
		}

		merged, spans := merges.Apply(number, cells)
		if err := b.sheets.MergedRow(number, merged, spans); err != nil {
			return err
		}
	}

	b.sheets.End()
	return nil
}

// readRow returns the cells of a row with a number from 1.
func (b *workbook) readRow(r *node, number int, columns map[int]string, name string, merges *sheet.Merges) ([]string, error) {
	var cells []string
	next := 0

	for _, c := range r.childrenNamed("Cell") {
		column := max(next, attrNumber(c, "Index")-1)
		if column >= sheet.MaxColumns {
			return nil, document.Refuse("more than %d columns", sheet.MaxColumns)
		}

		right := column + attrNumber(c, "MergeAcross")
		merges.Add(sheet.Merge{Top: number, Bottom: number + attrNumber(c, "MergeDown"), Left: column, Right: right})
		next = right + 1

		place := &mapreduce.Location{Sheet: richtext.Clip(name), Cell: sheet.ColumnName(column) + strconv.Itoa(number)}
		if text := strings.TrimSpace(rawText(c.child("Comment").child("Data"))); text != "" {
			b.comments = append(b.comments, cellComment{text, place})
		}

		style := cmp.Or(c.attributeOf("StyleID"), r.attributeOf("StyleID"), columns[column], "Default")
		value := b.value(c, b.format(style))
		if value == "" {
			continue
		}

		for len(cells) <= column {
			cells = append(cells, "")
		}
		cells[column] = value
	}

	return cells, nil
}

// value returns the value of a cell as a format shows it, and as it is stored if that says more.
func (b *workbook) value(c *node, format string) string {
	data := c.child("Data")
	if data == nil {
		formula := c.attributeOf("Formula")
		if formula != "" {
			b.unknown++
		}
		return formula
	}

	text := rawText(data)
	switch data.attributeOf("Type") {
	case "Number":
		if n, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) {
			return b.numbers.Value(n, format, false)
		}
	case "DateTime":
		return b.date(strings.TrimSpace(text), format)
	case "Boolean":
		return cmp.Or(map[string]string{"1": "TRUE", "0": "FALSE"}[strings.TrimSpace(text)], text)
	}

	return text
}

// date returns a date or a time as a format shows it, and as it is stored if that says more.
func (b *workbook) date(stored, format string) string {
	t, err := time.Parse("2006-01-02T15:04:05", stored)
	if err != nil {
		return stored
	}

	// Excel counts days from the last of 1899, and believes that 1900 had a 29th of February.
	const day, leap = 24 * 3600, 60
	begin := time.Date(1899, time.December, 31, 0, 0, 0, 0, time.UTC)
	number := float64(t.Unix()-begin.Unix())/day + float64(t.Nanosecond())/1e9/day
	if number >= leap {
		number++
	}

	if sheet.IsDateFormat(format) {
		return b.numbers.Value(number, format, false)
	}
	if number >= 0 && number < 1 {
		return t.Format(time.TimeOnly)
	}
	return sheet.Date("", t.Format("2006-01-02T15:04:05"))
}

// format returns the format of numbers of a style, which it may have from another one; "" if
// there is none.
func (b *workbook) format(style string) string {
	for range maxParents {
		s := b.styles[style]
		if s == nil {
			return ""
		}
		if f := s.child("NumberFormat"); f != nil {
			return formatNamed(f.attributeOf("Format"))
		}
		style = s.attributeOf("Parent")
	}
	return ""
}

// formatNamed returns the format that a name stands for; name itself if it is a format.
func formatNamed(name string) string {
	switch name {
	case "General Number":
		return ""
	case "General Date":
		return sheet.BuiltinFormat("22")
	case "Long Date":
		return "dddd, mmmm dd, yyyy"
	case "Medium Date":
		return sheet.BuiltinFormat("15")
	case "Short Date":
		return sheet.BuiltinFormat("14")
	case "Long Time":
		return sheet.BuiltinFormat("19")
	case "Medium Time":
		return sheet.BuiltinFormat("18")
	case "Short Time":
		return sheet.BuiltinFormat("20")
	case "Fixed":
		return sheet.BuiltinFormat("2")
	case "Standard", "Currency": // the currency is that of the computer on which it is shown
		return sheet.BuiltinFormat("4")
	case "Euro Currency":
		return `"€"#,##0.00`
	case "Percent":
		return sheet.BuiltinFormat("10")
	case "Scientific":
		return sheet.BuiltinFormat("11")
	case "Yes/No":
		return `"Yes";"Yes";"No"`
	case "True/False":
		return `"True";"True";"False"`
	case "On/Off":
		return `"On";"On";"Off"`
	}
	return name
}

// columnStyles returns the styles of the columns of a table, by their numbers from 0.
func columnStyles(table *node) map[int]string {
	styles := map[int]string{}
	next := 0

	for _, c := range table.childrenNamed("Column") {
		first := max(next, attrNumber(c, "Index")-1)
		next = first + attrNumber(c, "Span") + 1
		for i := first; i < min(next, sheet.MaxColumns) && c.attributeOf("StyleID") != ""; i++ {
			styles[i] = c.attributeOf("StyleID")
		}
	}

	return styles
}

// childrenNamed returns the elements in n that have a name.
func (n *node) childrenNamed(name string) []*node {
	if n == nil {
		return nil
	}

	var all []*node
	for _, c := range n.children {
		if c.name == name {
			all = append(all, c)
		}
	}

	return all
}

// attrNumber returns an attribute that counts rows or columns; 0 if there is none.
func attrNumber(n *node, name string) int {
	count, err := strconv.Atoi(strings.TrimSpace(n.attributeOf(name)))
	if err != nil {
		return 0
	}
	return min(max(count, 0), maxSheetRows)
}
