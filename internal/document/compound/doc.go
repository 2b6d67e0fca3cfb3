package compound

import (
	"context"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/richtext"
)

// DocKind is the name of the format.
const DocKind document.Kind = "doc"

// ParseDoc reads the Word document of 1997 to 2003 in a container ([MS-DOC]). Its text is that of
// newer ones: headings, paragraphs and tables, with tracked changes as if they were accepted, and
// behind them footnotes, comments and the texts of headers and boxes. Fields are read as the text
// they show. The numbers of lists are not stored and are left out.
func ParseDoc(ctx context.Context, in document.Input, c *Container) (*document.Document, error) {
	streams, err := c.Streams(ctx, mainStream, "0Table", "1Table", dataStream, Summary)
	if err != nil {
		return nil, err
	}

	f, err := readFile(streams)
	if err != nil {
		return nil, err
	}

	w := &writer{
		ctx: ctx, file: f, paragraphs: f.paragraphFormats(), unseen: f.unseen(),
		text: &richtext.Writer{MaxBytes: in.Limits.Bytes, MaxCells: in.Limits.Cells},
	}

	if err := w.writeParts(); err != nil {
		return nil, err
	}

	d, err := w.text.Document()
	if err == nil {
		d.Kind, d.Title = DocKind, Title(streams[Summary])
	}
	return d, err
}

// A writer writes the text of a document.
type writer struct {
	ctx        context.Context //nolint:containedctx // it lives as long as one call
	file       *file
	text       *richtext.Writer
	paragraphs formats[paragraph]
	unseen     formats[bool]

	number int // of the paragraph, counted from 1
	line   strings.Builder
	fields []bool // the fields around the character: whether each is in what it shows
	inside int    // how many of them are not
	cell   []string
	row    []richtext.Cell
	table  []tableRow
	seen   map[string]bool // headers, which sections repeat
}

// writeParts writes the parts of the text.
func (w *writer) writeParts() error {
	from := 0
	for part, length := range w.file.lengths {
		// A damaged header may give lengths that the text does not have.
		to := from + length
		if to < from || to > w.file.pieces[len(w.file.pieces)-1].end {
			to = w.file.pieces[len(w.file.pieces)-1].end
		}

		if err := w.writePart(part, from, to); err != nil {
			return err
		}
		from = to
	}

	return nil
}

// writePart writes the characters [from, to) of the text, which are one of its parts.
func (w *writer) writePart(part, from, to int) error {
	if part != body && from < to {
		w.text.Paragraph("", nil)
	}

	w.fields, w.inside, w.seen = nil, 0, nil
	// Headers repeat from section to section, so each of their texts is written once.
	if part == headers {
		w.seen = map[string]bool{}
	}

	w.file.characters(from, to, w.add)
	w.endParagraph(paragraph{})
	w.endTable()

	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	return w.text.Err()
}

// Characters that mean something else.
const (
	cellMark     = 0x07
	lineBreak    = 0x0b
	pageBreak    = 0x0c
	paragraphEnd = 0x0d
	columnBreak  = 0x0e
	fieldBegin   = 0x13
	fieldShows   = 0x14
	fieldEnd     = 0x15
	firmHyphen   = 0x1e
	softHyphen   = 0x1f
)

// add adds a character.
func (w *writer) add(c character) {
	if w.text.Err() != nil {
		return
	}

	switch c.r {
	case paragraphEnd, pageBreak, cellMark:
		w.end(c)
		return
	// Of a field, its instruction is left out; what it shows, behind its separator, is
	// text.
	case fieldBegin:
		w.fields = append(w.fields, false)
		w.inside++
		return
	case fieldShows:
		if n := len(w.fields); n > 0 && !w.fields[n-1] {
			w.fields[n-1] = true
			w.inside--
		}
		return
	case fieldEnd:
		if n := len(w.fields); n > 0 {
			if !w.fields[n-1] {
				w.inside--
			}
			w.fields = w.fields[:n-1]
		}
		return
	}

	if w.inside > 0 || w.unseen.at(c.at) {
		return
	}

	switch {
	case c.r == lineBreak || c.r == columnBreak:
		w.line.WriteByte('\n')
	case c.r == firmHyphen:
		w.line.WriteByte('-')
	case c.r == '\t' || c.r >= ' ' && c.r != softHyphen && (c.r < 0x7f || c.r > 0x9f):
		w.line.WriteRune(c.r)
	}
}

// end ends a paragraph, a cell or a row with its mark.
func (w *writer) end(c character) {
	p := w.paragraphs.at(c.at)

	switch {
	case c.r != cellMark:
		if w.unseen.at(c.at) && !p.inTable { // a change joins it with the next
			return
		}
		w.endParagraph(p)
	case p.endsRow:
		w.line.Reset()
		w.cell = nil
		w.table = append(w.table, tableRow{cells: w.row, edges: p.edges, goOn: p.goOn})
		w.row = nil
	case w.text.CountCells(1) != nil:
	default:
		w.number++
		w.addLine()
		w.row = append(w.row, richtext.Cell{Text: strings.Join(w.cell, " "), Place: w.place()})
		w.cell = nil
	}
}

// addLine makes the paragraph that has ended one of the cell.
func (w *writer) addLine() {
	if text := strings.Join(strings.Fields(w.line.String()), " "); text != "" {
		w.cell = append(w.cell, text)
	}
	w.line.Reset()
}

// place returns where the paragraph stands.
func (w *writer) place() *mapreduce.Location { return &mapreduce.Location{Paragraph: w.number} }

// endParagraph writes the paragraph that has ended, unless it stands in a cell.
func (w *writer) endParagraph(p paragraph) {
	w.number++
	if p.inTable {
		w.addLine()
		return
	}

	// What stands outside of cells ends the table before it.
	w.endTable()

	text := strings.TrimRight(w.line.String(), " \t\n")
	w.line.Reset()

	if w.seen != nil {
		if key := strings.TrimSpace(text); key == "" || w.seen[key] {
			return
		}
		w.seen[strings.TrimSpace(text)] = true
	}

	if p.style >= 1 && p.style <= 9 && strings.TrimSpace(text) != "" {
		w.text.Heading(p.style, strings.Join(strings.Fields(text), " "), w.place())
		return
	}

	w.text.Paragraph(text, w.place())
}
