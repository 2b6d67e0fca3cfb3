// Package ooxml is the formats of Office files since 2007, which are zip files of XML: Word
// documents, PowerPoint presentations and Excel workbooks. Nothing is computed or fetched, and no
// macro is run.
package ooxml

import (
	"context"
	"encoding/xml"
	"path"
	"strings"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/document/xmlread"
	"github.com/coditect/mapreduce/internal/document/zipfile"
)

// DocxKind is the name of the format.
const DocxKind document.Kind = "docx"

// DocxFormat returns the format of Word documents. Their text has headings, lists with their
// numbers, tables, headers and footers, text boxes, the text of pictures that p reads, footnotes and
// comments. Changes that are tracked read as accepted: what is inserted is text, what is deleted is not.
func DocxFormat(p Pictures) document.Format {
	return document.Format{
		Kind: DocxKind, Parse: func(ctx context.Context, in document.Input) (*document.Document, error) { return parseDocx(ctx, p, in) },
		Sniff:      func(begin []byte) document.Match { return zipfile.SniffFolder(begin, "word/") },
		Extensions: []string{".docx", ".docm", ".dotx", ".dotm"},
		MediaTypes: []string{
			"application/vnd.openxmlformats-officedocument.wordprocessingml.document",
			"application/vnd.openxmlformats-officedocument.wordprocessingml.template",
			"application/vnd.ms-word.document.macroenabled.12", "application/vnd.ms-word.template.macroenabled.12",
		},
	}
}

// parseDocx implements the Parse of document.Format.
func parseDocx(ctx context.Context, p Pictures, in document.Input) (*document.Document, error) {
	z, err := zipfile.Open(ctx, in)
	if err != nil {
		return nil, err
	}

	main, err := mainPart(z, "word/document.xml")
	if err != nil {
		return nil, err
	}

	r := &docxReader{
		zip: z, folder: path.Dir(main), writer: &richtext.Writer{MaxBytes: in.Limits.Bytes, MaxCells: in.Limits.Cells},
		shelf: newShelf(ctx, p, in, z),
	}

	if err := r.readStyles(); err != nil {
		return nil, err
	}
	if err := r.readNumbering(); err != nil {
		return nil, err
	}
	if err := r.readNotes(); err != nil {
		return nil, err
	}

	// Headers stand in front of the text, as readers see them first.
	r.writeMargins("header*.xml")
	if err := r.readPart(main, r.writeBlock); err != nil {
		return nil, err
	}
	r.writeMargins("footer*.xml")
	r.writeNotes()

	if ctx.Err() != nil { // a margin may have been left out for that
		return nil, context.Cause(ctx)
	}
	d, err := r.writer.Document()
	if err == nil {
		d.Title = xmlread.CoreTitle(z, xmlread.OfficeCore)
		r.shelf.note(d)
	}
	return d, err
}

// A reader reads one document.
type docxReader struct {
	zip       *zipfile.Reader
	folder    string // of the entries
	writer    *richtext.Writer
	shelf     *pictureShelf
	styles    map[string]style
	numbering numbering
	notes     map[string][]string // paragraphs of footnotes and endnotes, by kind and id
	comments  map[string]docxComment
	noted     []string // keys of notes, in the order in which the text refers to them
	commented []string // ids of comments, likewise

	paragraphs int // of the text so far
	nested     int // tables within each other
}

// readOptional calls root within the outermost element of an entry, if there is one.
func (r *docxReader) readOptional(name string, root func(*xmlread.Decoder) error) error {
	name = path.Join(r.folder, name)

	if !r.zip.Has(name) {
		return nil
	}

	e, err := r.zip.Open(name)
	if err != nil {
		return err
	}
	defer e.Close()

	d := xmlread.New(name, e, r.zip.Limits())
	return d.Document(func(xml.StartElement) error { return root(d) })
}

// readPart calls take for the blocks of an entry.
func (r *docxReader) readPart(name string, take func(block) error) error {
	e, err := r.zip.Open(name)
	if err != nil {
		return err
	}
	defer e.Close()

	d := xmlread.New(name, e, r.zip.Limits())
	p := &docxParser{docxReader: r, xml: d, entry: name}
	return d.Document(func(xml.StartElement) error { return p.readBlocks(take) })
}

// writeMargins writes the headers or footers of pages, each text once. A damaged one is
// left out, as the text does not depend on it.
func (r *docxReader) writeMargins(pattern string) {
	defer func(n int) { r.paragraphs = n }(r.paragraphs) // only those of the text count

	seen := map[string]bool{}
	for _, name := range r.zip.Match(path.Join(r.folder, pattern)) {
		var blocks []block
		if err := r.readPart(name, func(b block) error { blocks = append(blocks, b); return nil }); err != nil {
			continue
		}

		text := plainText(blocks)
		if strings.Trim(text, " \n0123456789") == "" || seen[text] { // numbers of pages
			continue
		}

		seen[text] = true

		for _, b := range blocks {
			if b.paragraph.text != "" || b.table != nil {
				r.writeMargin(b)
			}
		}
	}
}

// style is what counts of a style of paragraphs or of characters.
type style struct {
	base    string // the style that it is based on
	heading int    // from 1; 0 if it is none, -1 if not said
	list    listRef
	font    font
}

// readStyles reads which styles are headings and lists.
func (r *docxReader) readStyles() error {
	r.styles = map[string]style{}
	return r.readOptional("styles.xml", func(d *xmlread.Decoder) error {
		return d.Each(func(e xml.StartElement) error {
			if e.Name.Local != "style" {
				return d.Skip()
			}

			id := xmlread.Attr(e, "styleId")
			s := style{heading: -1}

			err := d.Each(func(e xml.StartElement) (err error) {
				switch e.Name.Local {
				case "basedOn":
					s.base = xmlread.Attr(e, "val")
				case "name":
					// The title of a document is a style without an outline level.
					if n := strings.ToLower(xmlread.Attr(e, "val")); n == "title" {
						s.heading = 1
					}
				case "pPr":
					p, err := readProperties(d)
					if p.outline >= 0 {
						s.heading = p.outline
					}
					s.list = p.list
					return err
				case "rPr":
					s.font, err = readFont(d)
					return err
				}
				return d.Skip()
			}, nil)

			r.styles[id] = s
			return err
		}, nil)
	})
}

// maxDocxStyles bounds the styles that are based on each other.
const maxDocxStyles = 20

// styleOf returns the style of an id with what it has from those it is based on.
func (r *docxReader) styleOf(id string) style {
	s := style{heading: -1}

	for range maxDocxStyles {
		next, ok := r.styles[id]
		if !ok {
			break
		}
		// What a style says itself goes before what the one says that it is based on.
		if s.heading < 0 {
			s.heading = next.heading
		}
		if s.list.id == "" {
			s.list.id = next.list.id
		}
		if s.list.level == "" {
			s.list.level = next.list.level
		}
		if !s.font.placed {
			s.font = next.font
		}
		id = next.base
	}

	return s
}
