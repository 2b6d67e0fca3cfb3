// Package rtf is the format of RTF files. Their text has headings, lists with their
// numbers, tables, headers and footers, text boxes, footnotes and comments. Changes that
// are tracked read as accepted.
package rtf

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/richtext"
)

// Kind is the name of the format.
const Kind document.Kind = "rtf"

// signature begins every RTF file.
const signature = `{\rtf`

// Format returns the format.
func Format() document.Format {
	return document.Format{
		Kind: Kind, Parse: parse,
		Sniff: func(begin []byte) document.Match {
			if bytes.HasPrefix(document.TrimBegin(begin), []byte(signature)) {
				return document.Certain
			}
			return document.Excluded
		},
		Extensions: []string{".rtf"},
		MediaTypes: []string{"application/rtf", "text/rtf", "text/richtext"},
	}
}

// parse implements the Parse of document.Format.
func parse(ctx context.Context, in document.Input) (*document.Document, error) {
	data, err := io.ReadAll(io.LimitReader(in.Content, document.DefaultMaxBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("rtf: %w", err)
	case len(data) > document.DefaultMaxBytes:
		return nil, document.Refuse("too large: more than %d bytes", document.DefaultMaxBytes)
	}

	// A file that names no charset is of Windows.
	r := &reader{
		data: document.TrimBegin(data), writer: &richtext.Writer{MaxBytes: in.Limits.Bytes}, ansi: charmap.Windows1252,
		fonts: map[int]encoding.Encoding{}, outlines: map[int]int{}, state: state{skip: 1, outline: -1},
	}

	if err := r.read(ctx); err != nil {
		return nil, err
	}

	return r.finish()
}

// A reader reads one document.
type reader struct {
	data     []byte
	pos      int
	writer   *richtext.Writer
	ansi     encoding.Encoding
	fonts    map[int]encoding.Encoding
	outlines map[int]int // levels of headings from 1, by style
	state    state
	stack    []state

	pending  []byte // bytes of characters of the charset of the font
	half     rune   // of a pair of UTF-16
	fallback int    // characters to skip, as they stand for one that was read

	frames []*frame // texts beside the one that is read, such as a footnote's
	text   richtext.Runs
	mark   string // of the item of a list
	boxed  []string

	cell       []string // paragraphs of the cell that is open
	row        []richtext.Cell
	table      []tableRow
	shapes     []cellShape // of the row that is defined
	shape      cellShape   // of its next cell
	isHead     bool        // that row stands again on each page
	cellNumber int         // of the first paragraph of the cell

	paragraphs       int
	headers, footers []string
	body             []func() // writes of the text, behind those of headers, which may stand anywhere
	notes, comments  []richNote
	author           string
}

// A richNote stands behind the text.
type richNote struct{ mark, text, place string }

// A state is what a group has and what ends with it.
type state struct {
	destination destination
	skip        int // characters that stand for a \u behind it
	font        int
	hidden      bool
	at          richtext.Position // of its characters
	deleted     bool
	frame       *frame // that ends with the group; nil if none does

	// Of the paragraph.
	inTable bool
	style   int
	outline int // level of a heading from 1; -1 if it is not said
	level   int // of the list
}

// A destination is what the text of a group is.
type destination int8

const (
	body destination = iota
	skipped
	fontTable
	styleSheet
)

// A frame is a text beside the one that is read.
type frame struct {
	text richtext.Runs
	done func(text string) // takes the text at the end of the group
}

// maxGroups bounds the groups within each other.
const maxGroups = 500

// read reads the document.
func (r *reader) read(ctx context.Context) error {
	for n := 0; r.pos < len(r.data); n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}

		switch c := r.data[r.pos]; c {
		case '{':
			r.flush()
			if len(r.stack) == maxGroups {
				return document.Refuse("damaged: more than %d groups within each other", maxGroups)
			}
			r.stack = append(r.stack, r.state)
			r.state.frame = nil
			r.fallback = 0
			r.pos++
		case '}':
			r.flush()
			r.pos++
			if r.endGroup(); len(r.stack) == 0 {
				return nil // what stands behind is no text
			}
		case '\\':
			r.pos++
			r.control()
		case '\r', '\n', 0:
			r.pos++
		default:
			r.pos++
			if c < 0x80 {
				r.writeCharacter(rune(c))
			} else {
				r.codedByte(c)
			}
		}

		if err := r.writer.Err(); err != nil {
			return err
		}

		if len(r.table) > maxRows || len(r.row) > maxColumns || len(r.body) > maxParagraphs {
			return document.Refuse("damaged: a table of more than %d rows or %d columns", maxRows, maxColumns)
		}
	}

	r.flush()
	if len(r.stack) > 0 {
		return document.Refuse("damaged: it ends within a group")
	}
	return nil
}

// Bounds of documents.
const (
	maxRows       = 200_000
	maxColumns    = 1000
	maxParagraphs = 2_000_000
)

// endGroup ends a group and the text that it held beside the others.
func (r *reader) endGroup() {
	if len(r.stack) == 0 {
		return
	}

	ended := r.state
	r.state = r.stack[len(r.stack)-1]
	r.stack = r.stack[:len(r.stack)-1]
	r.fallback = 0

	// What is said of a paragraph holds until it is said anew, also behind the group.
	if ended.destination == body && ended.frame == nil && r.state.destination == body {
		r.state.inTable, r.state.style, r.state.outline, r.state.level = ended.inTable, ended.style, ended.outline, ended.level
	}

	if ended.frame != nil {
		r.frames = r.frames[:len(r.frames)-1]
		ended.frame.done(strings.TrimSpace(ended.frame.text.String()))
	}
}

// beginFrame makes the text of the group go to done.
func (r *reader) beginFrame(done func(string)) {
	f := &frame{done: done}
	r.frames = append(r.frames, f)
	r.state.frame, r.state.destination = f, body
	r.state.hidden, r.state.at = false, richtext.OnLine
}

// outWriter returns where text goes.
func (r *reader) outWriter() *richtext.Runs {
	if n := len(r.frames); n > 0 {
		return &r.frames[n-1].text
	}
	return &r.text
}

// writeCharacter writes a character, unless it stands for one that was read.
func (r *reader) writeCharacter(c rune) {
	if r.fallback > 0 {
		r.fallback--
		return
	}

	r.flush()
	r.write(c)
}

func (r *reader) write(c rune) {
	switch {
	case r.state.destination == fontTable || r.state.destination == styleSheet, r.state.destination == skipped:
	case r.state.hidden || r.state.deleted:
	default:
		r.outWriter().At(r.state.at)
		r.outWriter().WriteRune(c)
	}
}

// codedByte writes a byte of a character in the charset of the font.
func (r *reader) codedByte(c byte) {
	if r.fallback > 0 {
		r.fallback--
		return
	}
	r.pending = append(r.pending, c)
}

// flush writes the characters whose bytes are pending.
func (r *reader) flush() {
	if len(r.pending) == 0 {
		return
	}

	charset := r.fonts[r.state.font]
	if charset == nil {
		charset = r.ansi
	}

	// Bytes of several control words make one character in some charsets, so they are
	// decoded together.
	decoded, err := charset.NewDecoder().Bytes(r.pending)
	r.pending = r.pending[:0]
	if err != nil {
		return
	}

	for _, c := range string(decoded) {
		r.write(c)
	}
}

// endParagraph ends a paragraph of the text, of a cell, or of a text beside.
func (r *reader) endParagraph() {
	r.flush()

	if r.state.destination != body {
		return
	}
	if r.state.deleted { // its mark is, so the next paragraph follows on its line
		return
	}

	if len(r.frames) > 0 {
		r.outWriter().At(richtext.OnLine)
		r.outWriter().WriteRune('\n')
		return
	}

	text := r.text.String()
	r.text.Reset()
	r.paragraphs++

	if r.state.inTable {
		r.addToCell(text)
		return
	}

	r.endTable()
	r.writeParagraph(text)
}

// addToCell adds a paragraph to the cell that is open.
func (r *reader) addToCell(text string) {
	if r.cellNumber == 0 {
		r.cellNumber = r.paragraphs
	}
	r.cell = append(r.cell, strings.TrimSpace(r.mark+" "+text))
	r.cell = append(r.cell, r.boxed...)
	r.mark, r.boxed = "", nil
}

// writeParagraph writes a paragraph and the text boxes in it.
func (r *reader) writeParagraph(text string) {
	mark, level, boxed := r.mark, r.state.level, r.boxed
	r.mark, r.boxed = "", nil

	heading := r.state.outline
	if heading < 0 {
		heading = r.outlines[r.state.style]
	}

	where := &mapreduce.Location{Paragraph: min(r.paragraphs, mapreduce.MaxPage)}

	// It is written at the end, as headers of pages stand before the text wherever the file
	// has them.
	r.body = append(r.body, func() {
		switch {
		case heading > 0 && strings.TrimSpace(text) != "":
			if mark == richtext.BulletMark {
				mark = ""
			}
			r.writer.Heading(heading, strings.TrimSpace(mark+" "+text), where)
		case mark != "" && strings.TrimSpace(text) != "":
			r.writer.Item(level, mark, text, where)
		default:
			r.writer.Paragraph(text, where)
		}

		for _, box := range boxed {
			r.writer.Paragraph(box, where)
		}
	})
}

// endCell ends a cell of a row.
func (r *reader) endCell() {
	r.flush()

	if len(r.frames) > 0 || r.state.destination != body {
		r.outWriter().At(richtext.OnLine)
		r.outWriter().WriteRune('\n')
		return
	}

	text := r.text.String()
	r.text.Reset()

	// The last paragraph of a cell has no mark of its own: the end of the cell is it.
	r.paragraphs++
	r.addToCell(text)

	r.row = append(r.row, richtext.Cell{
		Text:  strings.TrimSpace(strings.Join(r.cell, "\n")),
		Place: &mapreduce.Location{Paragraph: min(r.cellNumber, mapreduce.MaxPage)},
	})

	r.cell, r.cellNumber = nil, 0
}

// endRow ends a row of a table.
func (r *reader) endRow() {
	r.flush()
	if len(r.row) > 0 {
		r.table = append(r.table, tableRow{cells: r.row, shapes: r.shapes, head: r.isHead})
	}
	r.row = nil
}

// endTable writes the table that has been read.
func (r *reader) endTable() {
	if len(r.cell) > 0 {
		r.endCell()
	}
	r.endRow()

	if len(r.table) == 0 {
		return
	}

	rows, heads := mergeCells(r.table)
	r.table = nil

	r.body = append(r.body, func() {
		if len(rows) == 1 && len(rows[0]) == 1 { // a frame around its text
			r.writer.Paragraph(rows[0][0].Text, rows[0][0].Place)
			return
		}
		r.writer.WriteTable(richtext.Table{Rows: rows, Heads: heads})
	})
}

// finish writes all that was read.
func (r *reader) finish() (*document.Document, error) {
	if strings.TrimSpace(r.text.String()) != "" || len(r.boxed) > 0 {
		// Files of some programs lack the last end of a paragraph.
		r.state = state{destination: body, outline: -1}
		r.endParagraph()
	}

	r.endTable()

	r.writeMargins(r.headers)
	for _, write := range r.body {
		if write(); r.writer.Err() != nil {
			break
		}
	}

	r.writeMargins(r.footers)

	for _, n := range append(r.notes, r.comments...) {
		r.writer.Note(n.mark, n.text, &mapreduce.Location{Place: n.place})
	}

	return r.writer.Document()
}

// writeMargins writes the headers or footers of pages, each once.
func (r *reader) writeMargins(texts []string) {
	seen := map[string]bool{}
	for _, text := range texts {
		if strings.Trim(text, " \n0123456789") == "" || seen[text] { // numbers of pages
			continue
		}
		seen[text] = true
		r.writer.Paragraph(text, &mapreduce.Location{Place: "the margin of pages"})
	}
}
