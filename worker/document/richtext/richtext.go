// Package richtext writes the text of documents that have headings, lists and tables. It
// writes Markdown: a heading begins with number signs, an item with its mark, and a table
// has its cells between bars, with the first row as header. Paragraphs stand on lines of
// their own, so that a document of short lines reads like a text file of them.
package richtext

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/document"
	"github.com/coditect/mapreduce/worker/layout"
)

// tableRepeat is the number of bytes of a table behind which its header stands again.
// Long documents are cut, and a row should not be far from the names of its columns.
const tableRepeat = 8 << 10

// DefaultMaxBytes is the default bound on the text of a document.
const DefaultMaxBytes int64 = document.DefaultMaxBytes

// maxParts bounds the layout of a document. What stands behind so many paragraphs and cells
// has no place, as places take more memory than the text.
const maxParts = 500_000

// A Writer writes one text with its layout. The zero Writer is ready.
type Writer struct {
	// MaxBytes bounds the text. Defaults to DefaultMaxBytes.
	MaxBytes int64
	// MaxCells bounds the cells that CountCells counts. Defaults to that of document.Limits.
	MaxCells int

	cells  int
	text   strings.Builder
	layout layout.Layout
	err    error
	last   block // that was written

	header    []Cell // of the table that is open
	sinceHead int    // bytes of its rows since its header stood last
}

// A block is a kind of paragraph.
type block int8

const (
	start block = iota
	plain
	item
	heading
	table
	note
)

// A Cell is one of a table.
type Cell struct {
	Text  string
	Place *mapreduce.Location // where a reader finds it; may be nil
	Times int                 // the columns in which it stands, one after the other; 0 means one
}

// Width returns the columns of a row.
func Width(row []Cell) int {
	n := 0
	for _, c := range row {
		n += max(c.Times, 1)
	}
	return n
}

// TooManyCells returns why a document is refused that has more cells than it may.
func TooManyCells(most int) error {
	return document.Refuse("more than %d cells (--document-cells)", most)
}

// CountCells counts cells of tables that are being read. A few bytes may say that a row
// has many, and that many rows follow. More than MaxCells are an error, as of Err.
func (w *Writer) CountCells(n int) error {
	most := document.Limits{Cells: w.MaxCells}.WithDefaults().Cells
	if w.cells += n; w.cells > most && w.err == nil {
		w.err = TooManyCells(most)
	}
	return w.err
}

// separate ends the last block. Empty lines stand around headings, lists and tables.
func (w *Writer) separate(next block) {
	if w.last != start && (w.last != next || next == heading) {
		w.gap()
	}
	w.last = next
}

// gap writes an empty line, if there is none.
func (w *Writer) gap() {
	if w.text.Len() > 0 && !strings.HasSuffix(w.text.String(), "\n\n") {
		w.text.WriteByte('\n')
	}
}

// Heading writes a heading of a level from 1.
func (w *Writer) Heading(level int, text string, place *mapreduce.Location) {
	if text = oneLine(text); text == "" {
		return
	}
	w.separate(heading)
	w.line(strings.Repeat("#", min(max(level, 1), 6))+" ", text, place)
}

// Paragraph writes the lines of a paragraph. An empty one is an empty line.
func (w *Writer) Paragraph(text string, place *mapreduce.Location) {
	text = strings.Trim(strings.ReplaceAll(text, "\r", ""), "\n")
	if strings.TrimSpace(text) == "" {
		w.gap()
		return
	}
	w.separate(plain)
	w.line("", strings.TrimRight(text, " \t"), place)
}

// Item writes an item of a list, at a depth from 0, behind a mark such as "-" or "2.".
// Without a mark it continues the item before.
func (w *Writer) Item(depth int, mark, text string, place *mapreduce.Location) {
	if text = oneLine(text); text == "" {
		return
	}
	w.separate(item)
	if mark == "" {
		mark = " "
	}
	w.line(strings.Repeat("  ", min(max(depth, 0), 9))+mark+" ", text, place)
}

// Note writes a note that stands behind the text, such as a footnote, with its mark.
func (w *Writer) Note(mark, text string, place *mapreduce.Location) {
	if text = oneLine(text); text == "" {
		return
	}
	w.separate(note)
	w.line(oneLine(mark)+" ", text, place)
}

// line writes one line and its part of the layout.
func (w *Writer) line(prefix, text string, place *mapreduce.Location) {
	if !w.room(len(prefix) + len(text)) {
		return
	}
	w.text.WriteString(prefix)
	w.write(text, place)
	w.text.WriteByte('\n')
}

// write writes text that is found at a place.
func (w *Writer) write(text string, place *mapreduce.Location) {
	at := w.text.Len()
	w.text.WriteString(text)
	if place == nil || text == "" || len(w.layout) == maxParts {
		return
	}
	w.layout = append(w.layout, layout.Part{Start: at, End: w.text.Len(), Location: place})
}

// room reports whether so many bytes may be written.
func (w *Writer) room(n int) bool {
	limit := w.MaxBytes
	if limit == 0 {
		limit = DefaultMaxBytes
	}
	if w.err == nil && int64(w.text.Len())+int64(n) > limit {
		w.err = document.Refuse("more than %d bytes of text (--document-bytes)", limit)
	}
	return w.err == nil
}

// BeginTable begins a table with its first row, which is its header.
func (w *Writer) BeginTable(header []Cell) {
	w.separate(table)
	w.header = header
	w.writeHeader()
}

// writeHeader writes the header and the line below it.
func (w *Writer) writeHeader() {
	w.writeRow(w.header)
	if w.err == nil {
		w.text.WriteString("|" + strings.Repeat(" --- |", max(Width(w.header), 1)) + "\n")
	}
	w.sinceHead = 0
}

// Row writes a row of the table that has begun. Rows that are shorter than the header
// are filled with empty cells.
func (w *Writer) Row(cells []Cell) {
	if w.sinceHead > tableRepeat {
		w.gap()
		w.writeHeader()
	}
	at := w.text.Len()
	w.writeRow(cells)
	w.sinceHead += w.text.Len() - at
}

func (w *Writer) writeRow(cells []Cell) {
	width, all := Width(cells), Width(w.header)
	if !w.room(4 * max(width, all)) {
		return
	}
	w.text.WriteByte('|')
	for _, c := range cells {
		if c.Text != "" {
			c.Text = strings.ReplaceAll(oneLine(c.Text), "|", `\|`)
		}
		for range max(c.Times, 1) {
			if !w.room(len(c.Text)) {
				return
			}
			w.text.WriteByte(' ')
			w.write(c.Text, c.Place)
			w.text.WriteString(" |")
		}
	}
	for range all - width {
		w.text.WriteString("  |")
	}
	w.text.WriteByte('\n')
}

// EndTable ends the table.
func (w *Writer) EndTable() {
	w.header = nil
	if w.err == nil {
		w.gap()
	}
}

// Table writes a whole table.
func (w *Writer) Table(rows [][]Cell) {
	if len(rows) == 0 {
		return
	}
	width := 0
	for _, row := range rows {
		width = max(width, Width(row))
	}
	w.BeginTable(Widen(rows[0], width))
	for _, row := range rows[1:] {
		w.Row(row)
	}
	w.EndTable()
}

// Widen returns a row with empty cells at its end, so that it has at least so many columns.
func Widen(row []Cell, width int) []Cell {
	if more := width - Width(row); more > 0 {
		return append(slices.Clip(row), Cell{Times: more})
	}
	return row
}

// Len returns the bytes of the text so far.
func (w *Writer) Len() int { return w.text.Len() }

// Full reports whether places are not kept any more.
func (w *Writer) Full() bool { return len(w.layout) == maxParts }

// Err returns the first error: a document.RefusedError if the text exceeds its bounds.
// Nothing is written after it, so a parser asks now and then.
func (w *Writer) Err() error { return w.err }

// Document returns what was written, and Err.
func (w *Writer) Document() (*document.Document, error) {
	if w.err != nil {
		return nil, w.err
	}
	text := strings.TrimRight(w.text.String(), "\n")
	if text != "" {
		text += "\n"
	}
	return &document.Document{Text: text, Layout: w.layout}, nil
}

// oneLine returns text with all white space as single spaces and none around it.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Clip returns the beginning of a name that fits a text of a location.
func Clip(name string) string {
	name = strings.ToValidUTF8(oneLine(name), "")
	if len(name) <= mapreduce.MaxLocationText {
		return name
	}
	end := mapreduce.MaxLocationText - len("…")
	for !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + "…"
}
