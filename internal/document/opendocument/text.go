package opendocument

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/document/xmlread"
)

// A parser reads one entry.
type parser struct {
	*reader
	paragraph
	xml  *xmlread.Decoder
	list *listStyle // of the list that is open
}

// A paragraph is the one that is read.
type paragraph struct {
	shown  *richtext.Runs
	text   *richtext.Runs    // what is written to: shown, or others for what is hidden
	at     richtext.Position // of the characters that are read
	space  bool              // the text ends with white space, which counts once
	hides  bool              // it has characters that nobody sees
	boxed  []line            // of text boxes in it
	beside bool              // what is read stands beside the whole paragraph, not among its characters
	placed bool              // a text box stands among those that are seen
}

// readBlocks calls take for the paragraphs and tables within the element that began. They
// are in so many lists.
func (p *parser) readBlocks(depth int, take func(line) error) error {
	var child func(xml.StartElement) error
	child = func(e xml.StartElement) error {
		switch e.Name.Local {
		case "p", "h":
			return p.readParagraph(e, line{}, take)
		case "list":
			return p.readList(e, depth, take)
		case "table":
			t, err := p.readTable()
			if err != nil || len(t) == 0 {
				return err
			}
			if len(t) == 1 && t[0].times == 1 && richtext.Width(t[0].cells) == 1 { // a frame around its text
				return take(line{text: t[0].cells[0].Text, number: p.paragraphs})
			}
			return take(line{table: t})
		case "object":
			text, err := p.readObject(e)
			if err != nil || text == "" {
				return err
			}
			return take(line{text: text, number: p.paragraphs})
		case "tracked-changes", "forms", "variable-decls", "sequence-decls", "user-field-decls", "table-columns", "desc", "title",
			"table-of-content-source", "alphabetical-index-source", "illustration-index-source", "annotation", "object-ole", "binary-data":
			return p.xml.Skip()
		}

		return p.xml.Each(child, nil) // of what only holds others
	}

	return p.xml.Each(child, nil)
}

// readList reads a list. One that goes on has the style and the counters of the one it
// continues.
func (p *parser) readList(e xml.StartElement, depth int, take func(line) error) error {
	outer := p.list
	defer func() { p.list = outer }()

	name := xmlread.Attr(e, "style-name")
	switch {
	case p.continued[xmlread.Attr(e, "continue-list")] != nil:
		p.list = p.continued[xmlread.Attr(e, "continue-list")]
	case name != "" && p.lists[name] != nil:
		if p.list = p.lists[name]; depth == 0 && xmlread.Attr(e, "continue-numbering") != "true" {
			p.list.counter = richtext.ListCounter{}
		}
	}

	// A list that goes on names the one that it continues by its id.
	if id := xmlread.Attr(e, "id"); id != "" {
		p.continued[id] = p.list
	}

	return p.xml.Each(func(item xml.StartElement) error {
		if item.Name.Local != "list-item" && item.Name.Local != "list-header" {
			return p.xml.Skip()
		}
		return p.readItem(item, depth, take)
	}, nil)
}

// readItem reads an item of a list. Its first paragraph has the mark.
func (p *parser) readItem(item xml.StartElement, depth int, take func(line) error) error {
	if start, err := strconv.Atoi(xmlread.Attr(item, "start-value")); err == nil && p.list != nil {
		p.list.counter.Restart(depth, start)
	}

	marked := item.Name.Local == "list-header"

	// Only the first paragraph of an item has its mark.
	return p.xml.Each(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "p", "h":
			l := line{listed: true, depth: depth}
			if !marked {
				marked = true
				l.mark = p.nextMark(depth)
			}
			return p.readParagraph(e, l, take)
		case "list":
			return p.readList(e, depth+1, take)
		case "number":
			return p.xml.Skip()
		}
		return p.readBlocks(depth, take)
	}, nil)
}

func (p *parser) nextMark(depth int) string {
	if p.list == nil {
		return richtext.BulletMark
	}
	return strings.TrimSpace(p.list.counter.Next(p.list.levels[:], depth))
}

// readParagraph calls take with a paragraph or heading, and behind it with the lines of
// its text boxes.
func (p *parser) readParagraph(e xml.StartElement, l line, take func(line) error) error {
	outer, notes := p.paragraph, len(p.notes)
	p.paragraph = paragraph{shown: new(richtext.Runs), at: richtext.OnLine, space: true}
	p.hides, _ = isHidden(p.ofBlocks, xmlread.Attr(e, "style-name"))
	p.show(!p.hides)

	p.markHeading(e, &l)
	err := p.readInline()
	l.text = strings.TrimRight(p.shown.String(), " ")

	// Text boxes stand within the paragraph, and are written behind it.
	boxes := p.boxed
	if l.text == "" && p.hides {
		l = line{}
		if !p.placed { // nobody sees any of it, nor what stands beside it
			boxes, p.notes = nil, p.notes[:notes]
		}
	}
	p.paragraph = outer

	if err != nil {
		return err
	}

	p.paragraphs++
	l.number = p.paragraphs
	for _, l := range append([]line{l}, boxes...) {
		if err := take(l); err != nil {
			return err
		}
	}
	return nil
}

// markHeading gives a heading its level, and its number if that is one of the outline.
func (p *parser) markHeading(e xml.StartElement, l *line) {
	if e.Name.Local != "h" {
		return
	}

	l.heading = max(1, parseCount(xmlread.Attr(e, "outline-level")))
	if !l.listed && p.outline != nil && xmlread.Attr(e, "is-list-header") != "true" {
		l.mark = strings.TrimSpace(p.outline.counter.Next(p.outline.levels[:], l.heading-1))
	}
	if l.mark == richtext.BulletMark {
		l.mark = ""
	}
}

func parseCount(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// maxSpaces bounds white space that is written as a number.
const maxSpaces = 200

// readInline reads what is within a paragraph.
func (p *parser) readInline() error {
	return p.xml.Each(func(e xml.StartElement) error {
		if p.hidesAside(e.Name.Local) {
			return p.xml.Skip()
		}

		switch e.Name.Local {
		case "s":
			p.text.WriteString(strings.Repeat(" ", min(max(1, parseCount(xmlread.Attr(e, "c"))), maxSpaces)))
		case "tab":
			p.text.WriteRune('\t')
			p.space = true
		case "line-break":
			p.text.WriteRune('\n')
			p.space = true
		case "span":
			return p.readSpan(e)
		case "note":
			return p.readNote(e)
		case "annotation":
			return p.readComment()
		case "text-box", "table":
			if e.Name.Local == "text-box" {
				return p.readBlocks(0, p.addBoxed)
			}

			t, err := p.readTable()
			if len(t) > 0 {
				_ = p.addBoxed(line{table: t})
			}
			return err
		case "p", "h": // of a shape
			return p.readParagraph(e, line{}, p.addBoxed)
		case "object":
			text, err := p.readObject(e)
			p.text.Equation(text)
			p.space = p.space && text == ""
			return err
		case "title":
			// The title of the document may stand in its text. That of a drawing describes it.
			if !strings.Contains(e.Name.Space, "svg") {
				return p.readInline()
			}
		case "ruby-text", "hidden-text", "tracked-changes", "desc", "forms", "binary-data", "event-listeners", "bookmark-start":
		default:
			return p.readWithin(e)
		}
		return p.xml.Skip()
	}, p.writeText)
}

// readWithin reads an element that only holds others. What stands at a paragraph is not among its characters,
// nor is what stands at one of these: programs write that between the spans that could hide it.
func (p *parser) readWithin(e xml.StartElement) error {
	beside := p.beside
	if at := xmlread.Attr(e, "anchor-type"); at == "paragraph" || at == "char" {
		p.beside = true
	}

	err := p.readInline()
	p.beside = beside
	return err
}

// hidesAside reports whether an element is a box, a note or a comment that stands among hidden characters,
// and is hidden with them.
func (p *parser) hidesAside(name string) bool {
	switch name {
	case "text-box", "table", "p", "h", "note", "annotation":
		return p.text != p.shown && !p.beside
	}
	return false
}

// addBoxed adds a line of a text box in the paragraph.
func (p *parser) addBoxed(l line) error {
	p.boxed = append(p.boxed, l)
	p.placed = p.placed || !p.beside
	return nil
}

// show has what follows written to the paragraph, or to what nobody reads.
func (p *parser) show(yes bool) {
	if p.text = p.shown; !yes {
		p.text = new(richtext.Runs)
	}
}

// readSpan reads characters of a style, which may hide them, or show them where the paragraph is hidden.
func (p *parser) readSpan(e xml.StartElement) error {
	style := xmlread.Attr(e, "style-name")
	at, text, space := p.at, p.text, p.space
	if hidden, said := isHidden(p.fonts, style); said {
		p.show(!hidden)
	}
	if position, said := p.positionOf(style); said {
		p.at = position
	}

	p.text.At(p.at)
	err := p.readInline()

	p.hides = p.hides || p.text != p.shown && p.text.Len() > 0
	if p.text != text { // whether white space came last is another matter there
		p.space = space
	}
	p.at, p.text = at, text
	p.text.At(at)
	return err
}

// writeText writes characters. White space of the XML counts as one space.
func (p *parser) writeText(s string) {
	for _, r := range s {
		if r == ' ' || r == '\n' || r == '\t' || r == '\r' {
			if !p.space {
				p.text.WriteRune(' ')
			}
			p.space = true
			continue
		}

		p.space = false
		p.text.WriteRune(r)
	}
}

// readNote reads a footnote or endnote, and writes its number.
func (p *parser) readNote(e xml.StartElement) error {
	kind := xmlread.Attr(e, "note-class")
	if kind != "endnote" {
		kind = "footnote"
	}

	// The number is taken before the note is read, as there may be others in it.
	i := len(p.notes)
	p.notes = append(p.notes, note{})
	p.text.Insert(fmt.Sprintf("[^%d]", i+1))
	p.space = false

	var lines []string
	err := p.xml.Each(func(e xml.StartElement) error {
		if e.Name.Local != "note-body" {
			return p.xml.Skip()
		}
		return p.readAside(&lines)
	}, nil)

	p.notes[i] = note{
		mark: fmt.Sprintf("[^%d]:", i+1), text: strings.Join(lines, " "),
		place: &mapreduce.Location{Place: fmt.Sprintf("%s %d", kind, i+1)},
	}
	return err
}

// readAside reads paragraphs that do not count among those of the text.
func (p *parser) readAside(lines *[]string) error {
	before := p.paragraphs
	defer func() { p.paragraphs = before }()

	var read []line
	err := p.readBlocks(0, p.flattenTo(&read))
	for _, l := range read {
		*lines = append(*lines, l.text)
	}
	return err
}

// readComment reads what somebody wrote in the margin.
func (p *parser) readComment() error {
	var author, date string
	var lines []string
	err := p.xml.Each(func(e xml.StartElement) (err error) {
		switch e.Name.Local {
		case "creator":
			author, err = p.xml.Text()
		case "date":
			date, err = p.xml.Text()
		case "p", "h":
			// Paragraphs of comments do not count among those of the text.
			before := p.paragraphs
			err = p.readParagraph(e, line{}, func(l line) error { lines = append(lines, l.text); return nil })
			p.paragraphs = before
		case "list":
			err = p.readAside(&lines)
		default:
			err = p.xml.Skip()
		}
		return err
	}, nil)

	date, _, _ = strings.Cut(date, "T")
	p.comments = append(p.comments, note{
		mark: "Comment" + strings.TrimRight(" by "+author+", "+date, ", ") + ":", text: strings.Join(lines, " "),
		place: &mapreduce.Location{Place: fmt.Sprintf("comment %d", len(p.comments)+1)},
	})
	return err
}
