package plain

import (
	"context"
	stdcsv "encoding/csv"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/charset"
	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/document/sheet"
)

// CSVKind is the name of the format.
const CSVKind document.Kind = "csv"

// CSVFormat returns the format of tables as text: one row a line, with commas, semicolons, tabs or
// bars between the cells. Their text is a table whose first row is the header.
func CSVFormat() document.Format {
	return document.Format{
		Kind: CSVKind, Parse: parseCSV,
		Extensions: []string{".csv", ".tsv", ".tab"},
		MediaTypes: []string{"text/csv", "text/tab-separated-values", "application/csv"},
	}
}

// parseCSV implements the Parse of document.Format.
func parseCSV(ctx context.Context, in document.Input) (*document.Document, error) {
	declared := DeclaredCharset(in.MediaType)
	content, _, name, err := charset.Read(in.Content, declared)
	if err != nil {
		return nil, err
	}

	content = lineEnds(content)
	separator := Separator(in.Name, in.MediaType, content)

	above := 0
	if line, rest, _ := strings.Cut(content, "\n"); strings.HasPrefix(line, "sep=") { // what Excel writes above
		content, above = rest, 1
	}

	content, opened := quoteLiterally(content, separator)

	for line := range strings.Lines(content) { // the library reads a line whole, and a cell takes far more memory than its comma
		if strings.Count(line, string(separator)) > 2*sheet.MaxColumns {
			return nil, document.Refuse("a line of more than %d cells", 2*sheet.MaxColumns)
		}
	}

	writer := &richtext.Writer{MaxBytes: in.Limits.Bytes}
	if err := writeRows(ctx, writer, content, separator, above); err != nil {
		return nil, err
	}

	d, err := writer.Document()
	if err != nil {
		return nil, err
	}

	if d.Charset = name; declared == "" && !strings.HasPrefix(name, "utf-") {
		d.Notes = append(d.Notes, "it says no charset, and was read as "+name)
	}
	if opened > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("a quote that opens in line %d does not close, and was read as a character", opened+above))
	}
	return d, nil
}

// lineEnds returns a text whose lines end in one way if some of them end with a carriage return alone, as
// those of old Macs do. The library would take such lines to be one.
func lineEnds(content string) string {
	if strings.Count(content, "\r") == strings.Count(content, "\r\n") {
		return content
	}
	return strings.NewReplacer("\r\r\n", "\n", "\r\n", "\n", "\r", "\n").Replace(content)
}

// writeRows writes the rows of a table below some lines.
func writeRows(ctx context.Context, writer *richtext.Writer, content string, separator rune, above int) error {
	rows := stdcsv.NewReader(strings.NewReader(content))
	rows.Comma, rows.LazyQuotes, rows.FieldsPerRecord, rows.ReuseRecord = separator, true, -1, true

	table := rowWriter{text: writer}

	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}

		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return document.Refuse("not a table: %v", err)
		}

		line, _ := rows.FieldPos(0)
		if err := table.write(line+above, row); err != nil {
			return err
		}
	}

	writer.EndTable()
	return nil
}

// A rowWriter writes the rows of one table.
type rowWriter struct {
	text  *richtext.Writer
	begun bool
}

// write writes the row on a line of the file.
func (w *rowWriter) write(line int, row []string) error {
	if len(row) > sheet.MaxColumns {
		return document.Refuse("more than %d cells in line %d", sheet.MaxColumns, line)
	}

	cells := make([]richtext.Cell, len(row))
	blank := true
	for i, s := range row {
		// An empty cell needs no place.
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		cells[i] = richtext.Cell{Text: s, Place: cellPlace(line, i)}
		blank = false
	}

	switch {
	case blank:
	case !w.begun:
		w.begun = true
		w.text.BeginTable(cells)
	default:
		w.text.Row(cells)
	}

	return w.text.Err()
}

// separatorSample is how much of a text tells its separator.
const separatorSample = 16 << 10

// Separator returns the character between the cells of a text: by its name or media type
// a tab, by a first line "sep=;" that one, else the one that parts the most lines into the same
// number of cells.
func Separator(name, mediaType, content string) rune {
	switch strings.ToLower(path.Ext(name)) {
	case ".tsv", ".tab":
		return '\t'
	}

	if strings.HasPrefix(mediaType, "text/tab-separated-values") {
		return '\t'
	}

	sample := content[:min(len(content), separatorSample)]
	if first, _, _ := strings.Cut(sample, "\n"); strings.HasPrefix(first, "sep=") && len(strings.TrimSpace(first)) == len("sep=;") {
		return rune(first[len("sep=")])
	}

	// Nothing says it, so the lines tell: those from the first on with which most of the others agree, and
	// more than stand above. A title above a table may have commas of its own, or no separators at all.
	lines, parted := sample, 0
	for above := range maxTitles {
		lines = strings.TrimLeft(lines, "\r\n")
		found, agree, parts := likely(lines)
		if agree > parted && (above == 0 || agree > 1) {
			return found
		}

		if parts {
			parted++
		}
		_, lines, _ = strings.Cut(lines, "\n")
	}

	found, _, _ := likely(sample)
	return found
}

const (
	maxTitles   = 20 // lines above a table
	sampleLines = 50 // lines that tell the separator
)

// likely returns the separator that makes the most cells in lines that have as many cells as the first, and
// how many lines these are; 0 if they are fewer than half of the lines. parts is whether any separator parts
// the first line.
func likely(lines string) (found rune, agree int, parts bool) {
	decimals := hasDecimalCommas(lines)

	found, most := ',', 0
	for _, separator := range ",;\t|" {
		width, same, all := alike(lines, separator)
		parts = parts || width > 1

		// What else parts the lines as often parts numbers such as 1,5.
		if separator == ',' && decimals {
			width = 1
		}
		if width*same <= most {
			continue
		}

		found, most, agree = separator, width*same, same
		if 2*same < all {
			agree = 0
		}
	}

	return found, agree, parts
}

// hasDecimalCommas reports whether all commas stand between digits.
func hasDecimalCommas(lines string) bool {
	isDigit := func(i int) bool { return 0 <= i && i < len(lines) && '0' <= lines[i] && lines[i] <= '9' }
	for i := range len(lines) {
		if lines[i] == ',' && !(isDigit(i-1) && isDigit(i+1)) {
			return false
		}
	}
	return true
}

// alike returns how many cells a separator makes of the first line, in how many lines it makes as many, and
// how many lines there are; none are alike if it makes one cell of each. Lines of another width, such as a
// title above the table, say nothing.
func alike(lines string, separator rune) (width, same, all int) {
	r := stdcsv.NewReader(strings.NewReader(lines))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = separator, true, -1

	for ; all < sampleLines; all++ {
		row, err := r.Read()
		if err != nil {
			break
		}

		if width == 0 {
			width = len(row)
		}
		if width > 1 && len(row) == width {
			same++
		}
	}

	return width, same, all
}
