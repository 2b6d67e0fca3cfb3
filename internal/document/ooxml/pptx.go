package ooxml

import (
	"context"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/equation"
	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/document/xmlread"
	"github.com/coditect/mapreduce/internal/document/zipfile"
)

// PptxKind is the name of the format.
const PptxKind document.Kind = "pptx"

// PptxFormat returns the format of presentations. Their text is that of the slides in their order:
// the title as a heading, paragraphs, tables, diagrams, the text of pictures that p reads, and the notes
// of the speaker.
func PptxFormat(p Pictures) document.Format {
	return document.Format{
		Kind: PptxKind, Parse: func(ctx context.Context, in document.Input) (*document.Document, error) { return parsePptx(ctx, p, in) },
		Sniff:      func(begin []byte) document.Match { return zipfile.SniffFolder(begin, "ppt/") },
		Extensions: []string{".pptx", ".pptm", ".ppsx", ".ppsm", ".potx", ".potm"},
		MediaTypes: []string{
			"application/vnd.openxmlformats-officedocument.presentationml.presentation",
			"application/vnd.openxmlformats-officedocument.presentationml.slideshow",
			"application/vnd.openxmlformats-officedocument.presentationml.template",
			"application/vnd.ms-powerpoint.presentation.macroenabled.12", "application/vnd.ms-powerpoint.slideshow.macroenabled.12",
		},
	}
}

// parsePptx implements the Parse of document.Format.
func parsePptx(ctx context.Context, p Pictures, in document.Input) (*document.Document, error) {
	z, err := zipfile.Open(ctx, in)
	if err != nil {
		return nil, err
	}

	r := &pptxReader{zip: z, writer: &richtext.Writer{MaxBytes: in.Limits.Bytes}, shelf: newShelf(ctx, p, in, z)}

	slides, err := r.readOrder()
	if err != nil {
		return nil, err
	}

	seen := map[string]bool{}
	for i, name := range slides {
		// A slide that is listed twice is shown once; its number is that of its first
		// place.
		if seen[name] || !z.Has(name) {
			continue
		}
		seen[name] = true
		if err := r.readSlide(i+1, name); err != nil {
			return nil, err
		}
	}

	d, err := r.writer.Document()
	if err == nil {
		d.Title = xmlread.CoreTitle(z, xmlread.OfficeCore)
		r.shelf.note(d)
	}

	return d, err
}

// A reader reads one presentation.
type pptxReader struct {
	zip    *zipfile.Reader
	writer *richtext.Writer
	shelf  *pictureShelf
}

// open calls root within the outermost element of an entry.
func (r *pptxReader) open(name string, root func(*xmlread.Decoder) error) error {
	e, err := r.zip.Open(name)
	if err != nil {
		return err
	}
	defer e.Close()
	d := xmlread.New(name, e, r.zip.Limits())
	return d.Document(func(xml.StartElement) error { return root(d) })
}

// readOrder returns the entries of the slides in the order in which they are shown.
func (r *pptxReader) readOrder() ([]string, error) {
	main, err := mainPart(r.zip, "ppt/presentation.xml")
	if err != nil {
		return nil, err
	}

	relations, err := relationsOf(r.zip, main)
	if err != nil {
		return nil, err
	}

	var slides []string
	err = r.open(main, func(d *xmlread.Decoder) error {
		var child func(xml.StartElement) error
		child = func(e xml.StartElement) error {
			if area := areaOf(e); e.Name.Local == "sldSz" && area > 0 {
				r.shelf.page = area
			}
			if e.Name.Local != "sldId" {
				return d.Each(child, nil)
			}
			for _, a := range e.Attr { // the other id is a number
				if a.Name.Local == "id" && a.Name.Space != "" {
					slides = append(slides, relations[a.Value].target)
				}
			}
			return d.Skip()
		}
		return d.Each(child, nil)
	})

	return slides, err
}

// A shape is a thing on a slide that has text.
type shape struct {
	role       string // title, body and others, as the layout of the slide has it
	paragraphs []pptxParagraph
	table      *richtext.Table
	picture    *document.Recognised
}

// A paragraph is a line of a shape.
type pptxParagraph struct {
	level int
	text  string
}

// readSlide reads a slide and its notes.
func (r *pptxReader) readSlide(number int, name string) error {
	relations, err := relationsOf(r.zip, name)
	if err != nil {
		return err
	}

	shapes, err := r.readShapes(name, relations)
	if err != nil {
		return err
	}

	var notes []shape

	// A slide has its notes in one entry, if it has any, so the order does not matter.
	for _, rel := range relations {
		if rel.kind == "notesSlide" && r.zip.Has(rel.target) {
			if notes, err = r.readShapes(rel.target, nil); err != nil {
				return err
			}
		}
	}

	r.writeSlide(&mapreduce.Location{Slide: number}, shapes, notes)
	return r.writer.Err()
}

// writeSlide writes a slide: first its title, then what else it has, then its notes.
func (r *pptxReader) writeSlide(where *mapreduce.Location, shapes, notes []shape) {
	title := fmt.Sprintf("Slide %d", where.Slide)

	var rest []shape
	named := false
	for _, s := range shapes {
		if !named && (s.role == "title" || s.role == "ctrTitle") && s.text() != "" {
			title, named = s.text(), true
			continue
		}
		rest = append(rest, s)
	}

	// The title stands first, wherever its shape is in the file.
	r.writer.Heading(2, title, where)
	for _, s := range rest {
		r.writeShape(s, where)
	}

	spoken := &mapreduce.Location{Slide: where.Slide, Part: "notes"}
	for _, s := range notes {
		if s.role == "body" {
			for _, p := range s.paragraphs {
				r.writer.Note("Notes:", p.text, spoken)
			}
		}
	}
}

// text returns the paragraphs on one line.
func (s shape) text() string {
	var lines []string
	for _, p := range s.paragraphs {
		lines = append(lines, p.text)
	}
	return strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
}

func (r *pptxReader) writeShape(s shape, where *mapreduce.Location) {
	if s.picture != nil {
		for _, line := range s.picture.Lines {
			r.writer.Paragraph(line.Text, &mapreduce.Location{Slide: where.Slide, Part: partOfPicture, Recognised: line.Sure})
		}
		return
	}
	if s.table != nil {
		for _, row := range s.table.Rows {
			for i := range row {
				row[i].Place = where
			}
		}
		r.writer.WriteTable(*s.table)
		return
	}

	// The body of a slide is a list, unless it is one line.
	outline := s.role == "body" || s.role == "content"
	for _, p := range s.paragraphs {
		switch {
		case strings.TrimSpace(p.text) == "":
		case outline && len(s.paragraphs) > 1 || p.level > 0:
			r.writer.Item(p.level, richtext.BulletMark, p.text, where)
		default:
			r.writer.Paragraph(p.text, where)
		}
	}
}

// readShapes returns the shapes of a slide or of its notes, in the order of the file.
func (r *pptxReader) readShapes(name string, relations map[string]relation) ([]shape, error) {
	var shapes []shape
	err := r.open(name, func(d *xmlread.Decoder) error {
		p := &pptxParser{xml: d, add: func(s shape) { shapes = append(shapes, s) }}
		p.diagram = func(id string) error {
			// The text of a diagram stands in an entry of its own.
			if target := relations[id].target; r.zip.Has(target) {
				return r.open(target, func(d *xmlread.Decoder) error {
					s, err := (&pptxParser{xml: d}).readText()
					shapes = append(shapes, s)
					return err
				})
			}
			return nil
		}
		p.picture = func(ref pictureRef) error {
			if relations == nil { // of notes, which show their slide
				return nil
			}
			text, err := r.shelf.textOf(name, ref)
			if text != nil {
				shapes = append(shapes, shape{picture: text})
			}
			return err
		}
		return d.Each(p.child, nil)
	})

	return shapes, err
}

// partOfPicture is the part of a place that a picture is.
const partOfPicture = "picture"

// A parser reads one entry.
type pptxParser struct {
	xml     *xmlread.Decoder
	add     func(shape)
	diagram func(id string) error  // reads the text of a diagram
	picture func(pictureRef) error // reads that of a picture
	text    *richtext.Runs         // of the paragraph that is read
}

// child reads an element that may have shapes in it.
func (p *pptxParser) child(e xml.StartElement) error {
	switch e.Name.Local {
	case "sp":
		s, err := p.readShape()

		switch s.role {
		case "sldNum", "dt", "ftr", "hdr", "sldImg": // what the layout puts on every slide
		default:
			p.add(s)
		}
		return err
	case "tbl":
		t, err := p.readTable()
		p.add(shape{table: t})
		return err
	case "relIds":
		for _, a := range e.Attr {
			if a.Name.Local == "dm" {
				if err := p.diagram(a.Value); err != nil {
					return err
				}
			}
		}
		return p.xml.Skip()
	case "pic", "bg":
		return p.readPicture()
	case "Fallback", "extLst", "timing", "transition":
		return p.xml.Skip()
	}
	return p.xml.Each(p.child, nil)
}

// readPicture reads a picture on a slide, or behind it.
func (p *pptxParser) readPicture() error {
	var ref pictureRef
	var child func(xml.StartElement) error
	child = func(e xml.StartElement) error {
		switch e.Name.Local {
		case "blip":
			ref.id = xmlread.Attr(e, "embed")
		case "ext":
			if area := areaOf(e); area > 0 {
				ref.area = area
			}
		case "extLst", "Fallback":
			return p.xml.Skip()
		}
		return p.xml.Each(child, nil)
	}

	if err := p.xml.Each(child, nil); err != nil {
		return err
	}
	return p.picture(ref)
}

// readShape reads a shape with its role.
func (p *pptxParser) readShape() (shape, error) {
	var s shape
	var child func(xml.StartElement) error
	child = func(e xml.StartElement) error {
		switch e.Name.Local {
		case "ph":
			// A placeholder without a type is one for content.
			if s.role = xmlread.Attr(e, "type"); s.role == "" {
				s.role = "content"
			}
			return p.xml.Skip()
		case "txBody":
			body, err := p.readText()
			s.paragraphs = body.paragraphs
			return err
		}
		return p.xml.Each(child, nil)
	}

	return s, p.xml.Each(child, nil)
}

// readText reads all the paragraphs within the element that began.
func (p *pptxParser) readText() (shape, error) {
	var s shape
	var child func(xml.StartElement) error
	child = func(e xml.StartElement) error {
		if e.Name.Local != "p" {
			return p.xml.Each(child, nil)
		}
		line, err := p.readParagraph()
		s.paragraphs = append(s.paragraphs, line)
		return err
	}

	return s, p.xml.Each(child, nil)
}

// readParagraph reads a line of a shape.
func (p *pptxParser) readParagraph() (pptxParagraph, error) {
	var line pptxParagraph
	p.text = new(richtext.Runs)
	err := p.xml.Each(func(e xml.StartElement) error {
		if e.Name.Local != "pPr" {
			return p.readInline(e)
		}
		if n, err := strconv.Atoi(xmlread.Attr(e, "lvl")); err == nil {
			line.level = n
		}
		return p.xml.Skip()
	}, nil)

	line.text = p.text.String()
	return line, err
}

// readInline reads an element within a paragraph.
func (p *pptxParser) readInline(e xml.StartElement) error {
	switch e.Name.Local {
	case "r", "fld":
		p.text.At(richtext.OnLine)
	case "rPr":
		p.text.At(position(e))
		return p.xml.Skip()
	case "t":
		s, err := p.xml.Text()
		p.text.WriteString(s)
		return err
	case "br":
		p.text.WriteRune('\n')
		return p.xml.Skip()
	case "oMath", "oMathPara":
		return equation.Write(&p.text, p.xml, e, p.readInline)
	case "pPr", "Fallback":
		return p.xml.Skip()
	}
	return p.xml.Each(p.readInline, nil)
}

// position returns where characters stand. How far that is above the line is said as a
// percentage, or in thousandths of one.
func position(e xml.StartElement) richtext.Position {
	rise, err := strconv.ParseFloat(strings.TrimSuffix(xmlread.Attr(e, "baseline"), "%"), 64)
	if err != nil {
		return richtext.OnLine
	}
	return richtext.PositionAt(rise)
}

// readTable reads a table.
func (p *pptxParser) readTable() (*richtext.Table, error) {
	t := new(richtext.Table)
	above := map[int]richtext.Cell{} // by column: the cell that those below may continue
	covered := 0                     // cells of the row that belong to the last one
	var child func(xml.StartElement) error

	child = func(e xml.StartElement) error {
		switch e.Name.Local {
		case "tblPr":
			if isTrue(xmlread.Attr(e, "firstRow")) {
				t.Heads = 1
			}
		case "tr":
			t.Rows = append(t.Rows, nil)
			covered = 0
		case "tc":
			continues, joined := isTrue(xmlread.Attr(e, "vMerge")), isTrue(xmlread.Attr(e, "hMerge"))
			span, _ := strconv.Atoi(xmlread.Attr(e, "gridSpan"))
			s, err := p.readText()

			if len(t.Rows) == 0 || err != nil {
				return err
			}

			// A cell that another one covers has an element of its own.
			if covered > 0 && joined {
				covered--
				return nil
			}

			row := &t.Rows[len(t.Rows)-1]
			column := richtext.Width(*row)
			c := richtext.Cell{Text: s.text(), Span: min(max(span, 1), maxSpan)}

			if joined {
				c.Text = ""
			} else if continues {
				c = above[column]
				c.Tall = true
			}

			covered = max(c.Span-1, 0)
			above[column] = c
			*row = append(*row, c)

			return nil
		}
		return p.xml.Each(child, nil)
	}

	return t, p.xml.Each(child, nil)
}

// maxSpan bounds the columns that a cell covers.
const maxSpan = 1000

func isTrue(s string) bool { return s == "1" || s == "true" }
