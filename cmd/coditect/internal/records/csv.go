package records

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// sourcesColumn is the column of the documents that a record comes from.
const sourcesColumn = "_sources"

// seenColumn is the last column of a table, of values that a model saw in pictures and nobody found, as JSON.
const seenColumn = "_seen"

// valueColumn is the only column of records without a schema.
const valueColumn = "value"

// The columns of citations, behind the name of the field.
var citationColumns = []string{"_quote", "_document", "_start", "_end", "_grade", "_confidence"}

// The columns of derived values, behind the name of the field.
var derivedColumns = []string{"_formula", "_quotes", "_confidence"}

// columnsAbout returns the columns that say what the value of a column rests on.
func columnsAbout(c column) []string {
	if c.property.Hints.Derived {
		return derivedColumns
	}
	return citationColumns
}

// separator stands between the elements of a list in a cell.
const separator = "; "

// A csvWriter writes a row for each record, below a row with the names of columns.
type csvWriter struct {
	out     *csv.Writer
	config  Config
	columns []column
}

func newCSV(out io.Writer, c Config) (*csvWriter, error) {
	w := &csvWriter{out: csv.NewWriter(out), config: c, columns: columnsOf(c.Schema)}

	header := []string{sourcesColumn}
	if len(w.columns) == 0 {
		header = append(header, valueColumn)
	}
	for _, col := range w.columns {
		header = append(header, col.name)
		if c.Citations {
			for _, name := range columnsAbout(col) {
				header = append(header, col.name+"."+name)
			}
		}
	}

	if c.Seen {
		header = append(header, seenColumn)
	}
	return w, w.out.Write(header)
}

// WriteRecord implements Writer.
func (w *csvWriter) WriteRecord(r *Record) error {
	f, err := flatten(r)
	if err != nil {
		return err
	}

	row := []string{SafeCell(strings.Join(f.sources, separator))}

	// Without a schema, a record is one cell.
	if len(w.columns) == 0 {
		cell, err := cellOf(textOf(r.JSON))
		if err != nil {
			return err
		}
		row = append(row, cell)
	}

	for _, col := range w.columns {
		cell, err := cellOf(f.valueOf(col))
		if err != nil {
			return fmt.Errorf("%s: %w", col.name, err)
		}
		row = append(row, cell)
		if w.config.Citations {
			row = append(row, citationCells(f, col)...)
		}
	}

	if w.config.Seen {
		seen, err := f.seenJSON()
		if err != nil {
			return err
		}
		row = append(row, SafeCell(string(seen)))
	}

	return w.out.Write(row)
}

// textOf returns the text that JSON holds, or the JSON of anything else.
func textOf(data json.RawMessage) any {
	var s string
	if json.Unmarshal(data, &s) == nil {
		return s
	}
	return data
}

// citationCells returns the cells of the citation of a column.
func citationCells(f *flat, col column) []string {
	if col.property.Hints.Derived {
		return derivedCells(f, col)
	}

	c := f.citationOf(col)
	if c == nil {
		return make([]string, len(citationColumns))
	}

	return []string{
		SafeCell(c.Quote), SafeCell(string(c.Document)), strconv.FormatInt(c.Start, 10), strconv.FormatInt(c.End, 10), c.Grade,
		strconv.FormatFloat(f.confidence[col.name], 'g', -1, 64),
	}
}

// derivedCells returns the cells of what a derived column follows from.
func derivedCells(f *flat, col column) []string {
	if _, ok := f.derived[col.name]; !ok {
		return make([]string, len(derivedColumns))
	}
	formula, quotes := f.derivation(col)
	return []string{SafeCell(formula), SafeCell(quotes), strconv.FormatFloat(f.confidence[col.name], 'g', -1, 64)}
}

// cellOf returns a value as the text of a cell: a list of single values with separators,
// other lists and objects as JSON.
func cellOf(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return SafeCell(v), nil
	case json.Number:
		return v.String(), nil
	case bool:
		return strconv.FormatBool(v), nil
	case []any:
		if texts, ok := textsOf(v); ok {
			return SafeCell(strings.Join(texts, separator)), nil
		}
	}

	data, err := encode(v)
	return SafeCell(string(data)), err
}

// textsOf returns the elements of a list as texts, if none is a list or an object.
func textsOf(list []any) ([]string, bool) {
	texts := make([]string, 0, len(list))
	for _, v := range list {
		switch v := v.(type) {
		case string:
			texts = append(texts, v)
		case json.Number:
			texts = append(texts, v.String())
		case bool:
			texts = append(texts, strconv.FormatBool(v))
		default:
			return nil, false
		}
	}

	return texts, true
}

// SafeCell returns a text that no spreadsheet takes for a formula: one that begins like
// a formula gets an apostrophe before it. Documents are not to be trusted, and a formula
// can send the content of other cells away. Spreadsheets take full-width signs for others, and
// pass over what does not show. Numbers and phone numbers stay as they are.
func SafeCell(s string) string {
	shown := strings.TrimLeftFunc(s, isUnseen)
	first, size := utf8.DecodeRuneInString(shown)

	switch first {
	case '=', '@', '＝', '＠', '﹦', '﹫', '\t', '\r', '\n':
		return "'" + s
	case '+', '-', '＋', '－', '﹢', '﹣', '−':
		if len(shown) < len(s) || strings.Trim(shown[size:], "0123456789 ()./-") != "" {
			return "'" + s
		}
	}
	return s
}

// isUnseen reports whether a character shows as nothing: blanks of no width, and those that
// turn the direction of a text.
func isUnseen(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Zs, unicode.Mn) || unicode.Is(unicode.Cc, r) && r != '\t' && r != '\r' && r != '\n'
}

// Close implements Writer.
func (w *csvWriter) Close() error {
	w.out.Flush()
	return w.out.Error()
}
