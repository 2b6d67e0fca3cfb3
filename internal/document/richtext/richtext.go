// Package richtext writes the text of documents that have headings, lists and tables. It
// writes Markdown: a heading begins with number signs, an item with its mark, and a table
// stands as package internal/text/table reads it. Paragraphs stand on lines of their own, so that a
// document of short lines reads like a text file of them.
//
// Runs writes the text of a paragraph out of runs of characters. Characters that stand raised or
// lowered have a meaning there that letters on the line do not: 10 with a raised 6 is not 106.
package richtext

import (
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/text/layout"
	"github.com/coditect/mapreduce/internal/text/table"
)

// tableRepeat is the number of bytes of a table behind which its head stands again. Long
// documents are cut, and a row should not be far from the names of its columns.
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

	heads     [][]Cell // rows of the head of the table that is open
	columns   int      // that they have
	headBytes int      // of that
	sinceHead int      // bytes of its rows since its head stood last
}

// A block is a kind of paragraph.
type block int8

const (
	start block = iota
	plain
	item
	heading
	tableBlock
	note
)

// A Cell is one of a table. A parser repeats a cell that stands in several rows in each of
// them.
type Cell struct {
	Text  string
	Place *mapreduce.Location // where a reader finds it; may be nil
	Times int                 // as many cells say the same, one after the other; 0 means one
	Span  int                 // the columns in which it stands as one; 0 means one
	Tall  bool                // it is the cell of the row above, which covers both rows
}

// width returns the columns of a cell.
func (c Cell) width() int { return max(c.Times, c.Span, 1) }

// Width returns the columns of a row.
func Width(row []Cell) int {
	n := 0
	for _, c := range row {
		n += c.width()
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
		w.writeGap()
	}
	w.last = next
}

// writeGap writes an empty line, if there is none.
func (w *Writer) writeGap() {
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
		w.writeGap()
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

// BeginTable begins a table with the rows of its head. Of a table whose head is not known it
// is the first row.
func (w *Writer) BeginTable(heads ...[]Cell) {
	w.separate(tableBlock)

	w.heads, w.columns = heads, 0
	for _, row := range heads {
		w.columns = max(w.columns, Width(row))
	}

	w.writeHead()
}

// writeHead writes the head and the rule below it.
func (w *Writer) writeHead() {
	at := w.text.Len()

	for _, row := range w.heads {
		w.writeRow(row, true)
	}

	if w.err == nil {
		w.text.WriteString(table.Rule(w.columns) + "\n")
	}

	w.sinceHead, w.headBytes = 0, w.text.Len()-at
}

// Row writes a row of the table that has begun. Rows that are shorter than its head are
// filled with empty cells.
func (w *Writer) Row(cells []Cell) {
	if w.sinceHead > tableRepeat && w.headBytes < tableRepeat {
		w.writeGap()
		w.writeHead()
	}
	at := w.text.Len()
	w.writeRow(cells, false)
	w.sinceHead += w.text.Len() - at
}

// writeRow writes a row. A cell of a head that stands in several columns names each of
// them; in other rows it stands once, as what adds up or explains is no value of each.
func (w *Writer) writeRow(cells []Cell, head bool) {
	width := Width(cells)

	// An empty cell takes four bytes at most, so columns are bounded before they are
	// written.
	if !w.room(4 * max(width, w.columns)) {
		return
	}

	w.text.WriteByte('|')
	for _, c := range cells {
		text := table.Escape(c.Text)

		times, joined := c.width(), 0
		if c.Span > 1 && !head && text != "" {
			times, joined = 1, c.width()-1
		}
		for range times {
			if !w.room(len(text)) {
				return
			}
			w.text.WriteByte(' ')
			w.write(text, c.Place)
			w.text.WriteString(" |")
		}
		w.text.WriteString(strings.Repeat(table.Join, joined))
	}

	w.text.WriteString(strings.Repeat("  |", max(w.columns-width, 0)))
	w.text.WriteByte('\n')
}

// EndTable ends the table.
func (w *Writer) EndTable() {
	w.heads = nil
	if w.err == nil {
		w.writeGap()
	}
}

// A Table is one that is written as a whole.
type Table struct {
	Caption string              // written above it; may be empty
	Place   *mapreduce.Location // of the caption
	Heads   int                 // rows of the head, which come first; 0 means that they are not known
	Rows    [][]Cell
}

// Table writes a whole table whose head is not known.
func (w *Writer) Table(rows [][]Cell) { w.WriteTable(Table{Rows: rows}) }

// WriteTable writes a whole table.
func (w *Writer) WriteTable(t Table) {
	if t.Caption != "" {
		w.Paragraph(oneLine(t.Caption), t.Place)
	}
	if len(t.Rows) == 0 {
		return
	}

	width := 0
	for _, row := range t.Rows {
		width = max(width, Width(row))
	}

	// The rule below the head has the columns of its rows, and has to have all.
	heads := t.heads()
	t.Rows[0] = Widen(t.Rows[0], width)
	w.BeginTable(t.Rows[:heads]...)

	for _, row := range t.Rows[heads:] {
		w.Row(row)
	}

	w.EndTable()
}

// heads returns how many rows are written as the head.
func (t *Table) heads() int {
	said := min(max(t.Heads, 1), table.MaxHeads, len(t.Rows))

	heads := said
	for heads < min(table.MaxHeads, len(t.Rows)) && HeadGoesOn(t.Rows[heads-1], t.Rows[heads], slices.Values(t.Rows[heads+1:]), t.Heads > 0) {
		heads++
	}

	if heads == len(t.Rows) { // a head of nothing, so its tall cells say something else
		return said
	}
	return heads
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
	return shorten.MarkedBytes(strings.ToValidUTF8(oneLine(name), ""), mapreduce.MaxLocationText)
}
