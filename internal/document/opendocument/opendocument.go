// Package opendocument is the format of OpenDocument files: texts (ODT), spreadsheets (ODS)
// and presentations (ODP), as LibreOffice writes them. Changes that are tracked read as
// accepted.
package opendocument

import (
	"context"
	"encoding/xml"
	"iter"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/document/xmlread"
	"github.com/coditect/mapreduce/internal/document/zipfile"
	"github.com/coditect/mapreduce/internal/text/table"
)

// Kind is the name of the format.
const Kind document.Kind = "opendocument"

// mediaTypes are those of texts, spreadsheets, presentations and their templates.
var mediaTypes = []string{
	"application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text-template",
	"application/vnd.oasis.opendocument.text-master",
	"application/vnd.oasis.opendocument.spreadsheet", "application/vnd.oasis.opendocument.spreadsheet-template",
	"application/vnd.oasis.opendocument.presentation", "application/vnd.oasis.opendocument.presentation-template",
}

// Format returns the format.
func Format() document.Format {
	return document.Format{
		Kind: Kind, Parse: parse,
		Sniff:      func(begin []byte) document.Match { return zipfile.SniffMimetype(begin, mediaTypes...) },
		Extensions: []string{".odt", ".ott", ".ods", ".ots", ".odp", ".otp"},
		MediaTypes: slices.Clone(mediaTypes),
	}
}

// parse implements the Parse of document.Format.
func parse(ctx context.Context, in document.Input) (*document.Document, error) {
	z, err := zipfile.Open(ctx, in)
	if err != nil {
		return nil, err
	}

	if err := checkEncryption(z); err != nil {
		return nil, err
	}

	r := &reader{
		zip: z, writer: &richtext.Writer{MaxBytes: in.Limits.Bytes, MaxCells: in.Limits.Cells},
		fonts: map[string]font{}, ofBlocks: map[string]font{}, lists: map[string]*listStyle{}, continued: map[string]*listStyle{}, formulas: map[string]string{},
	}

	// Styles are read before the text, which refers to them by name.
	if err := r.readStyles("styles.xml"); err != nil {
		return nil, err
	}
	if err := r.readStyles("content.xml"); err != nil {
		return nil, err
	}

	if err := r.readBody(); err != nil {
		return nil, err
	}

	r.writeNotes()

	d, err := r.writer.Document()
	if err == nil {
		d.Title = xmlread.CoreTitle(z, xmlread.OpenDocument)
	}

	return d, err
}

// checkEncryption refuses a file whose text is encrypted.
func checkEncryption(z *zipfile.Reader) error {
	const manifest = "META-INF/manifest.xml"

	if !z.Has(manifest) {
		return nil
	}

	e, err := z.Open(manifest)
	if err != nil {
		return err
	}
	defer e.Close()

	// The manifest lists each entry, with how it is encrypted.
	encrypted := false
	d := xmlread.New(manifest, e, z.Limits())
	err = d.Document(func(xml.StartElement) error {
		return d.Each(func(xml.StartElement) error {
			return d.Each(func(e xml.StartElement) error {
				encrypted = encrypted || e.Name.Local == "encryption-data"
				return d.Skip()
			}, nil)
		}, nil)
	})

	if err == nil && encrypted {
		return document.Refuse("encrypted with a password; of encrypted files only PDF files are read: save it without a password")
	}
	return err
}

// A reader reads one document.
type reader struct {
	zip       *zipfile.Reader
	writer    *richtext.Writer
	fonts     map[string]font // of styles of characters, by name
	ofBlocks  map[string]font // likewise, of styles of paragraphs
	lists     map[string]*listStyle
	outline   *listStyle
	continued map[string]*listStyle // the style of lists by their id, for those that go on
	notes     []note
	comments  []note

	headers, footers [][]line          // of pages
	paragraphs       int               // of the text so far
	tables           int               // within each other
	repeated         int               // bytes of the lines that flatten has repeated
	formulas         map[string]string // that have been read, by their entries
	formulaBytes     int64             // of their texts, as often as they are written
}

// A note stands behind the text.
type note struct {
	mark, text string
	place      *mapreduce.Location
}

// A line is one of a paragraph, a heading or an item, or a table.
type line struct {
	text    string
	heading int // level from 1
	listed  bool
	depth   int    // in a list
	mark    string // of the item
	number  int    // of the paragraph, from 1
	table   []row
}

// A row is one of a table of a text.
type row struct {
	cells []richtext.Cell
	head  bool // it is in the head of the table
	times int  // how often it stands there, one after the other
}

// open calls root within the outermost element of an entry.
func (r *reader) open(name string, root func(*xmlread.Decoder) error) error {
	return r.openRoot(name, func(d *xmlread.Decoder, _ xml.StartElement) error { return root(d) })
}

// openRoot calls root with the outermost element of an entry.
func (r *reader) openRoot(name string, root func(*xmlread.Decoder, xml.StartElement) error) error {
	e, err := r.zip.Open(name)
	if err != nil {
		return err
	}
	defer e.Close()

	d := xmlread.New(name, e, r.zip.Limits())
	return d.Document(func(e xml.StartElement) error { return root(d, e) })
}

// readBody reads the text, the sheets or the slides.
func (r *reader) readBody() error {
	return r.open("content.xml", func(d *xmlread.Decoder) error {
		return d.Each(func(e xml.StartElement) error {
			if e.Name.Local != "body" {
				return d.Skip()
			}
			return d.Each(func(e xml.StartElement) error {
				p := &parser{reader: r, xml: d}
				switch e.Name.Local {
				case "spreadsheet":
					return p.readSheets()
				case "presentation", "drawing":
					return p.readSlides()
				}

				r.writeMargins("header") // those of sheets and slides are for print: the sheet's name, a page's number
				if err := p.readBlocks(0, r.writeLine); err != nil {
					return err
				}
				r.writeMargins("footer")
				return nil
			}, nil)
		}, nil)
	})
}

// writeLine writes a line of the text.
func (r *reader) writeLine(l line) error {
	where := &mapreduce.Location{Paragraph: min(l.number, mapreduce.MaxPage)}
	if l.number == 0 {
		where = nil
	}
	r.writeAt(l, where)
	return r.writer.Err()
}

// writeAt writes a line that is found at a place.
func (r *reader) writeAt(l line, where *mapreduce.Location) {
	switch {
	case l.table != nil:
		r.writeTable(l.table)
	case l.heading > 0:
		r.writer.Heading(l.heading, strings.TrimSpace(l.mark+" "+l.text), where)
	case l.listed:
		r.writer.Item(l.depth, l.mark, l.text, where)
	default:
		r.writer.Paragraph(l.text, where)
	}
}

// writeTable writes a table.
func (r *reader) writeTable(rows []row) {
	width := 0
	for _, t := range rows {
		width = max(width, richtext.Width(t.cells))
	}

	heads := [][]richtext.Cell{richtext.Widen(rows[0].cells, width)}

	// The first row is the head, and may repeat as a row below it.
	count := headsOf(rows)
	rows[0].times--
	for i := 1; i < count; i++ {
		rows[i].times = 0
		heads = append(heads, rows[i].cells)
	}

	r.writer.BeginTable(heads...)
	for _, t := range rows {
		for range t.times {
			if r.writer.Row(t.cells); r.writer.Err() != nil {
				return
			}
		}
	}

	r.writer.EndTable()
}

// headsOf returns how many rows are the head: those that are said to be, and those that cells of
// them cover.
func headsOf(rows []row) int {
	said := 1
	heads := func(n int, goesOn func(i int) bool) int {
		for n < min(len(rows), table.MaxHeads) && rows[n].times == 1 && goesOn(n) {
			n++
		}
		return n
	}

	if rows[0].head {
		said = heads(said, func(i int) bool { return rows[i].head })
	}

	// Heads of all rows would be those of nothing.
	all := heads(said, func(i int) bool {
		return richtext.HeadGoesOn(rows[i-1].cells, rows[i].cells, cellsOf(rows[i+1:]), rows[0].head)
	})
	if all == len(rows) {
		return said
	}
	return all
}

// cellsOf goes through the cells of rows, of each that repeats once.
func cellsOf(rows []row) iter.Seq[[]richtext.Cell] {
	return func(yield func([]richtext.Cell) bool) {
		for _, r := range rows {
			if !yield(r.cells) {
				return
			}
		}
	}
}

// writeMargins writes the headers or footers of pages, each text once.
func (r *reader) writeMargins(kind string) {
	margins := r.headers
	if kind == "footer" {
		margins = r.footers
	}

	where := &mapreduce.Location{Place: "the margin of pages"}

	seen := map[string]bool{}
	for _, lines := range margins {
		for _, l := range lines {
			if strings.Trim(l.text, " \n0123456789") != "" && !seen[l.text] { // numbers of pages
				seen[l.text] = true
				r.writer.Paragraph(l.text, where)
			}
		}
	}
}

// writeNotes writes the notes and comments behind the text.
func (r *reader) writeNotes() {
	for _, n := range slices.Concat(r.notes, r.comments) {
		r.writer.Note(n.mark, n.text, n.place)
	}
}
