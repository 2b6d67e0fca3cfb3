package html

import (
	"context"
	"io"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document/equation"
	"github.com/coditect/mapreduce/internal/document/richtext"
)

// Options configure Write.
type Options struct {
	// Place returns where what comes next is found. Defaults to nowhere.
	Place func() *mapreduce.Location
	// Heading is called with each heading before it is written. Defaults to nothing.
	Heading func(level int, text string)
	// Title is that of the page, if it is known. A paragraph at its beginning that says the
	// same is a heading, as some programs write none.
	Title string
}

// maxToken bounds a tag or a run of text, in bytes.
const maxToken = 8 << 20

// Write writes a page, in UTF-8, as rich text: headings, lists and tables stand as in other
// documents. Books and mail rest on it. It reads tags as they come, in time linear in their number,
// and takes none for an order.
func Write(ctx context.Context, w *richtext.Writer, page io.Reader, o Options) error {
	if o.Place == nil {
		o.Place = func() *mapreduce.Location { return nil }
	}
	if o.Heading == nil {
		o.Heading = func(int, string) {}
	}

	r := &reader{writer: w, options: o, z: html.NewTokenizer(page)}
	r.z.SetMaxBuf(maxToken)

	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}

		kind := r.z.Next()
		// A page ends wherever it breaks off, and what is open is written all the same.
		if kind == html.ErrorToken {
			if err := r.z.Err(); err != io.EOF { //nolint:errorlint // the tokenizer returns it bare
				return err
			}
			r.endEquation()
			r.endParagraph()
			for len(r.tables) > 0 {
				r.endTable()
			}
			return w.Err()
		}

		r.read(kind)
		if err := w.Err(); err != nil {
			return err
		}
	}
}

// read reads a token.
func (r *reader) read(kind html.TokenType) {
	var name string
	var more bool
	if kind != html.TextToken {
		var tag []byte
		tag, more = r.z.TagName()
		name = string(tag)
	}

	// A token may end the equation without being a part of it.
	if r.equation != nil && r.readEquation(kind, name, more) {
		return
	}

	switch kind {
	case html.TextToken:
		if r.dropping == "" {
			r.addText(string(r.z.Text()))
		}
	case html.StartTagToken:
		r.start(name, more, false)
	case html.SelfClosingTagToken:
		r.start(name, more, true)
	case html.EndTagToken:
		r.end(name)
	}
}

// readEquation reads a token as one of the equation that is open. It is not one if the
// equation ended in front of it.
func (r *reader) readEquation(kind html.TokenType, name string, more bool) bool {
	taken := r.equation.Read(kind, name, r.z, more)
	if r.equation.Ended() {
		r.endEquation()
	}
	return taken
}

// endEquation writes the equation that is open, if one is. One that is raised or lowered
// belongs to the characters there.
func (r *reader) endEquation() {
	if r.equation == nil {
		return
	}

	text, block := r.equation.Text(), r.equation.Block()
	r.equation = nil

	switch {
	case text == "":
		return
	case block:
		r.text.Line()
		r.text.Equation(text)
		r.text.Line()
	case r.raised+r.lowered > 0:
		r.text.WriteString(text)
	default:
		r.text.Equation(text)
	}

	// What shows the equation again right behind it is left out, see start.
	r.shown = r.text.Len()
}

// A reader reads one page.
type reader struct {
	writer  *richtext.Writer
	options Options
	z       *html.Tokenizer

	text     richtext.Runs  // of the paragraph that is open
	equation *equation.Page // that is open; nil if none is
	shown    int            // where the text of the last equation ends; 0 if there is none
	begun    bool           // a paragraph has been written
	raised   int            // raised characters within each other
	lowered  int            // lowered characters within each other
	note     bool           // a link to a note is open
	heading  int            // level of the heading that is open; 0 if none is
	pre      int            // elements that keep white space
	dropping string         // the element whose text is left out
	dropped  int            // elements of that name within each other

	lists []list
	mark  string // of the item that begins

	tables []*openTable // within each other
	deeper int          // tables that are too deep within others, and are text
}

// A list is one that is open.
type list struct {
	ordered bool
	next    int
}

// maxLists bounds lists within each other.
const maxLists = 50

// start begins an element, whose attributes are to be read if there are more.
func (r *reader) start(name string, more, closed bool) {
	if r.dropping != "" {
		if name == r.dropping && !closed {
			r.dropped++
		}
		return
	}

	if !closed {
		if r.equation = equation.OnPage(name, r.z, more); r.equation != nil {
			return
		}
	}

	attributes := map[string]string{}
	for more {
		var key, value []byte
		key, value, more = r.z.TagAttr()
		switch string(key) {
		case "start", "value", "colspan", "rowspan", "epub:type", "aria-hidden":
			attributes[string(key)] = string(value)
		}
	}

	if name == "span" && attributes["aria-hidden"] == "true" && r.shown > 0 && r.shown == r.text.Len() && !closed {
		r.dropping, r.dropped = name, 1 // it shows the equation again, as those of KaTeX do
		return
	}

	switch name {
	case "script", "style", "template", "head", "svg", "noscript", "iframe", "rt", "rp":
		if !closed {
			r.dropping, r.dropped = name, 1
		}
	case "br":
		r.text.WriteRune('\n')
	case "hr":
		r.endParagraph()
	case "sup":
		r.raised++
		r.place()
	case "sub":
		r.lowered++
		r.place()
	case "a":
		r.startLink(attributes["epub:type"] == "noteref" || r.raised > 0)
	case "pre":
		r.endParagraph()
		r.pre++
	case "h1", "h2", "h3", "h4", "h5", "h6":
		r.endParagraph()
		r.heading = int(name[1] - '0')
	default:
		if !r.startList(name, attributes) && !r.startTable(name, attributes) && isBlock(name) {
			r.endParagraph()
		}
	}
}

// place says where the text stands that comes next: that of a note is none of the
// paragraph's, and what is raised within something lowered has no characters.
func (r *reader) place() {
	switch {
	case r.raised > 0 && r.lowered == 0 && !r.note:
		r.text.At(richtext.Raised)
	case r.lowered > 0 && r.raised == 0 && !r.note:
		r.text.At(richtext.Lowered)
	default:
		r.text.At(richtext.OnLine)
	}
}

// startLink begins a link, which may be the number of a note.
func (r *reader) startLink(toNote bool) {
	r.note = toNote
	if r.place(); toNote {
		r.text.WriteString("[^")
	}
}

// endLink ends a link. In front of the text of a note stands its number, too.
func (r *reader) endLink() {
	if !r.note {
		return
	}

	text := strings.TrimRight(r.text.String(), " \n")
	r.text.Reset()
	defer r.place()
	r.note = false

	begins := strings.LastIndex(text, "[^") == len(text)-len(strings.TrimLeft(text, " \n"))
	// A link without a text, or with brackets of its own, is no number of a note.
	if text = strings.TrimSuffix(text, "[^"); strings.HasSuffix(text, "]") || !strings.Contains(text, "[^") {
		r.text.WriteString(text)
		return
	}

	r.text.WriteString(text + "]")
	if begins {
		r.text.WriteRune(' ')
	}
}

// startList begins a list or an item.
func (r *reader) startList(name string, attributes map[string]string) bool {
	switch name {
	case "ul", "ol", "menu":
		r.endParagraph()
		if len(r.lists) < maxLists {
			r.lists = append(r.lists, list{ordered: name == "ol", next: number(attributes["start"], 1)})
		}
	case "li":
		r.endParagraph()
		r.mark = richtext.BulletMark
		if n := len(r.lists); n > 0 && r.lists[n-1].ordered {
			l := &r.lists[n-1]
			l.next = number(attributes["value"], l.next)
			r.mark = strconv.Itoa(l.next) + "."
			l.next++
		}
	default:
		return false
	}

	return true
}

func number(s string, otherwise int) int {
	if n, err := strconv.Atoi(s); err == nil && n >= 0 && n < 1e9 {
		return n
	}
	return otherwise
}

// end ends an element.
func (r *reader) end(name string) {
	if r.dropping != "" {
		if name == r.dropping {
			if r.dropped--; r.dropped == 0 {
				r.dropping = ""
			}
		}
		return
	}

	// The end of an element that never began must not take counts below zero.
	switch name {
	case "ul", "ol", "menu":
		r.endParagraph()
		r.lists = r.lists[:max(0, len(r.lists)-1)]
	case "td", "th", "table", "thead", "tbody", "tfoot":
		r.endTablePart(name)
	case "sup":
		r.raised = max(0, r.raised-1)
		r.place()
	case "sub":
		r.lowered = max(0, r.lowered-1)
		r.place()
	case "a":
		r.endLink()
	case "pre":
		r.endParagraph()
		r.pre = max(0, r.pre-1)
	default:
		if isBlock(name) || name == "li" || name == "tr" || name == "caption" {
			r.endParagraph()
		}
	}
}

// addText adds text to the paragraph that is open.
func (r *reader) addText(s string) {
	if r.pre > 0 {
		r.text.WriteString(s)
		return
	}

	for _, c := range s {
		if c == '\n' || c == '\t' || c == '\r' || c == '\f' || c == '\u00a0' {
			c = ' '
		}
		r.text.WriteRune(c)
	}
}

// endParagraph writes the paragraph that is open.
func (r *reader) endParagraph() {
	text := r.text.String()
	r.text.Reset()
	r.shown = 0
	r.raised, r.lowered = 0, 0 // of elements that never end
	r.place()

	heading := r.heading
	r.heading = 0
	if r.pre == 0 {
		text = squeeze(text)
	}

	if strings.TrimSpace(text) == "" {
		return
	}

	if !r.begun && heading == 0 && r.cell() == nil && strings.TrimSpace(text) == r.options.Title {
		heading = 1
	}

	r.begun = true

	switch {
	case r.cell() != nil:
		r.cell().WriteString(strings.TrimSpace(r.mark+" "+text) + "\n")
	case heading > 0:
		r.options.Heading(heading, text)
		r.writer.Heading(heading, text, r.options.Place())
	case len(r.lists) > 0 || r.mark != "":
		r.writer.Item(max(0, len(r.lists)-1), r.mark, text, r.options.Place())
	default:
		r.writer.Paragraph(text, r.options.Place())
	}

	r.mark = ""
}

// squeeze makes one space of several, and leaves none at the ends of lines.
func squeeze(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.Join(strings.Fields(l), " ")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// isBlock reports whether an element stands on lines of its own.
func isBlock(name string) bool {
	switch name {
	case "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "div", "dl", "dt", "fieldset",
		"figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "html", "legend", "main",
		"nav", "option", "p", "section", "select", "summary", "tbody", "textarea", "tfoot", "thead", "title":
		return true
	}
	return false
}
