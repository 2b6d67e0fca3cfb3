// Package html is the formats of web pages and of e-books, and writes the HTML that is in books and
// mail. The text of a page is what a screen would show, on the lines on which it would stand.
// Navigation and advertisements beside the main text are left out, and a note says so. Nothing
// that a page refers to is fetched.
package html

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"html"
	"io"
	"mime"
	"strings"
	"unicode/utf8"

	xhtml "golang.org/x/net/html"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/charset"
	"github.com/coditect/mapreduce/internal/document/equation"
	"github.com/coditect/mapreduce/internal/document/plain"
	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/text/offset"
)

// Kind is the name of the format.
const Kind document.Kind = "html"

// Format returns the format, whose text is the main text of pages that have one, unless the
// input says otherwise.
func Format() document.Format { return format(false) }

// FullFormat returns the format, whose text is all text of pages, unless the input says
// otherwise.
func FullFormat() document.Format { return format(true) }

func format(full bool) document.Format {
	return document.Format{
		Kind: Kind, Sniff: sniff,
		Parse: func(_ context.Context, in document.Input) (*document.Document, error) {
			if in.PageText != mapreduce.PageTextDefault {
				return parse(in, in.PageText == mapreduce.PageTextFull)
			}
			return parse(in, full)
		},
		Extensions: []string{".html", ".htm", ".xhtml"},
		MediaTypes: []string{"text/html", "application/xhtml+xml"},
	}
}

func sniff(begin []byte) document.Match {
	begin = afterProlog(document.TrimBegin(begin))
	if hasPrefixFold(begin, "<!doctype html") || hasPrefixFold(begin, "<html") {
		return document.Begins
	}
	return document.Possible
}

// afterProlog returns the beginning of a page without what may stand before it where it is XML.
func afterProlog(begin []byte) []byte {
	for {
		end := ""
		switch {
		case bytes.HasPrefix(begin, []byte("<?xml")):
			end = "?>"
		case bytes.HasPrefix(begin, []byte("<!--")):
			end = "-->"
		default:
			return begin
		}

		_, rest, ok := bytes.Cut(begin, []byte(end))
		if !ok {
			return nil
		}
		begin = bytes.TrimSpace(rest)
	}
}

func hasPrefixFold(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && strings.EqualFold(string(b[:len(prefix)]), prefix)
}

// maxReferences bounds the character references of a page. The map from its text to its
// bytes has an entry for each.
const maxReferences = 2_000_000

// parse returns the main text of a page, or all of its text if full is set. A charset that
// the media type declares takes precedence over the page's own.
func parse(in document.Input, full bool) (*document.Document, error) {
	data, err := io.ReadAll(in.Content)
	if err != nil {
		return nil, fmt.Errorf("document: %w", err)
	}

	declared := cmp.Or(plain.DeclaredCharset(in.MediaType), DeclaredCharset(data))

	if n := bytes.Count(data, []byte("&")); n > maxReferences {
		return nil, document.Refuse("a page of more than %d character references", maxReferences)
	}

	page, back, name, err := charset.Decode(data, declared)
	if err != nil {
		return nil, err
	}

	d := &document.Document{Charset: name, Title: titleOf(page)}

	var leftOut []part
	if d.Text, d.Source, leftOut, err = htmlText(page, back, full, in.Limits.WithDefaults().Cells); err != nil {
		return nil, err
	}

	if len(leftOut) > 0 {
		d.Notes = append(d.Notes, noteOf(leftOut))
	}
	return d, nil
}

// DeclaredCharset returns the charset that meta elements at the beginning of a page declare; "" if none
// does. It ignores UTF-16: a declaration that is readable as ASCII cannot be in UTF-16.
func DeclaredCharset(page []byte) string {
	z := xhtml.NewTokenizer(bytes.NewReader(page[:min(len(page), document.SniffBytes)]))
	for {
		switch z.Next() {
		case xhtml.ErrorToken:
			return ""
		case xhtml.StartTagToken, xhtml.SelfClosingTagToken:
			t := z.Token()
			if t.Data != "meta" {
				continue
			}

			if c := metaElement(t.Attr); c != "" && !strings.HasPrefix(strings.ToLower(c), "utf-16") {
				return c
			}
		}
	}
}

// maxTitleAt bounds where a page may have its title, in bytes.
const maxTitleAt = 256 << 10

// titleOf returns the title of a page; "" if it has none.
func titleOf(page string) string {
	z := xhtml.NewTokenizer(strings.NewReader(page[:min(len(page), maxTitleAt)]))
	for {
		switch z.Next() {
		case xhtml.ErrorToken:
			return ""
		case xhtml.StartTagToken:
			switch name, _ := z.TagName(); string(name) {
			case "title":
				if z.Next() == xhtml.TextToken {
					return string(z.Text())
				}
			case "body", "svg": // whose titles are of pictures
				return ""
			}
		}
	}
}

// metaElement returns the charset that one meta element declares.
func metaElement(attrs []xhtml.Attribute) string {
	values := map[string]string{}
	for _, a := range attrs {
		values[a.Key] = a.Val
	}

	if c := strings.TrimSpace(values["charset"]); c != "" {
		return c
	}

	// The older form has it within the type of the content.
	if !strings.EqualFold(values["http-equiv"], "content-type") {
		return ""
	}

	_, params, err := mime.ParseMediaType(values["content"])
	if err != nil {
		return ""
	}

	return params["charset"]
}

// A layout is the effect of an element on the text around it.
type layout int8

const (
	inline    layout = iota
	line             // stands on lines of its own
	paragraph        // and has empty lines around it
	cell             // has a tab between it and the cell before
	dropped          // is not text
)

// layoutOf returns the layout of the element called name.
func layoutOf(name string) layout {
	switch name {
	case "address", "article", "aside", "body", "caption", "center", "dd", "details", "dialog", "dir", "div", "dt",
		"fieldset", "figcaption", "footer", "form", "head", "header", "hgroup", "html", "legend", "li", "main", "menu",
		"nav", "optgroup", "option", "search", "section", "select", "summary", "tbody", "textarea", "tfoot", "thead", "tr":
		return line
	case "blockquote", "dl", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "listing", "ol", "p", "plaintext",
		"pre", "table", "title", "ul", "xmp":
		return paragraph
	case "td", "th":
		return cell
	case "iframe", "noembed", "noframes", "noscript", "script", "style", "svg", "template":
		return dropped
	}
	return inline
}

// htmlText returns the readable text of a page, the map from it through back to the
// bytes of the file, and the parts of the page that were left out, of which there are none
// if full is set. Elements that begin a line on a screen begin one in the text, white space
// that a screen would not show is left out, character references are decoded, and tables of
// values stand as internal/text/table reads them. The time is linear in the length of the page. A
// page with more cells than it may have is refused.
func htmlText(page string, back *offset.Map, full bool, cells int) (string, *offset.Map, []part, error) {
	visible := map[string]bool{}
	for {
		tables := &pageTables{most: cells}
		p := &htmlParser{page: page, visible: visible, parts: new(partFinder), tables: tables}
		if open := p.parse(); open != "" && tables.refused == nil {
			visible[open] = true // the element never ends, and must not hide the rest of the page
			continue
		}

		var leftOut []part
		if !full {
			leftOut = p.parts.leftOut()
		}

		// The parts were found in the first reading; a second one leaves them out.
		if len(leftOut) > 0 && tables.refused == nil {
			p = &htmlParser{page: page, visible: visible, leftOut: leftOut, allLeftOut: leftOut, parts: new(partFinder), tables: &pageTables{most: cells}}
			p.parse() // ends like the first time: what dropped elements the parts hold, end in them
		}

		return p.out.String(), back.Then(p.back.Map()), leftOut, tables.refused
	}
}

// An htmlParser turns a page into text. It holds back breaks and white space until
// text follows.
type htmlParser struct {
	page    string
	at      int             // byte of the page from which it is read
	visible map[string]bool // unclosed elements whose text is kept after all
	leftOut []part          // of the page, from where it is read
	parts   *partFinder     // what else could be left out
	tables  *pageTables     // of the page
	chosen  bool            // an option of the select element that is read is selected
	inCell  bool            // a cell of a table is read: tables of values in it stand elsewhere
	next    int             // byte at which the page goes on behind a table

	allLeftOut []part // of the page
	out        strings.Builder
	back       offset.Builder

	dropping string // the element that is being dropped
	nested   int    // how many elements of that name are open
	pre      int    // how many open elements keep white space
	preStart bool   // nothing has been read since a pre element began
	rawText  bool   // the next text has no character references

	breaks   int // line breaks held back
	tabs     int // tabs held back
	space    int // bytes of white space held back
	spacePos int // where the white space held back begins
	row      tableRow
	links    int // open links
	raised   int // open elements of raised text
	script   script

	equation    *equation.Page // that is being read; nil if none is
	equationPos int            // where it begins in the page
	equationEnd int            // where the last one ends in the text
}

// A tableRow is the row of a table that is being read, as far as it is. The blocks in a
// cell of a table of values, which has one paragraph at most, break no lines.
type tableRow struct {
	begun  bool // a row has begun, and no cell of it
	text   bool // it has text
	fresh  bool // its cell has begun, and has no text
	broken bool // its cell has text of several lines, as those have that lay a page out
}

// parse reads the page. If the page ends within a dropped element, parse returns
// the element's name, unless its text can only be code.
func (p *htmlParser) parse() (open string) {
	pos := p.at
	z := xhtml.NewTokenizer(strings.NewReader(p.page[pos:]))

	for p.tables.refused == nil {
		kind := z.Next()
		if kind == xhtml.ErrorToken {
			break
		}
		size := len(z.Raw())

		if !p.isLeftOut(pos) {
			p.readToken(z, kind, pos, pos+size)
		}

		// A table was written whole, so the page is read on behind it.
		if pos += size; p.next > pos {
			pos = p.next
			z = xhtml.NewTokenizer(strings.NewReader(p.page[pos:]))
		}
	}

	// The texts of scripts and styles are code even if they never end.
	p.endEquation(pos)
	switch p.dropping {
	case "script", "style":
		return ""
	}
	return p.dropping
}

// isLeftOut reports whether the token at pos is left out. Positions rise from call to call.
func (p *htmlParser) isLeftOut(pos int) bool {
	for len(p.leftOut) > 0 && pos >= p.leftOut[0].to {
		p.leftOut = p.leftOut[1:]
	}

	if len(p.leftOut) == 0 || pos < p.leftOut[0].from {
		return false
	}

	p.breaks = max(p.breaks, 1) // the texts before and behind it are not one
	return true
}

// readToken reads the token [pos, end) of the page, at which z is.
func (p *htmlParser) readToken(z *xhtml.Tokenizer, kind xhtml.TokenType, pos, end int) {
	if pos >= p.script.end {
		p.endScript(pos)
	}

	var name string
	var more bool
	if kind != xhtml.TextToken {
		var tag []byte
		tag, more = z.TagName()
		name = string(tag)
	}

	// An option without an end tag ends where the next one begins, or its list does.
	if p.equation != nil && p.readEquation(z, kind, name, more, pos, end) {
		return
	}

	if p.dropping == "option" && endsOption(kind, name) {
		p.dropping, p.nested = "", 0
	}

	switch kind {
	case xhtml.TextToken:
		if p.dropping == "" {
			before := p.out.Len()
			p.writeText(pos, end)
			p.parts.text(p.out.Len() - before)
		}
		p.rawText = false
	case xhtml.StartTagToken, xhtml.SelfClosingTagToken:
		if p.dropping == "" && p.startTag(z, kind, name, more, pos, end) {
			return
		}
		p.startElement(name, kind == xhtml.SelfClosingTagToken)
		if p.dropping == "" && p.links == 0 && (name == "sup" || name == "sub") {
			p.startScript(name, end)
		}
	case xhtml.EndTagToken:
		if p.dropping == "" {
			p.parts.end(name, pos)
		}
		p.endElement(name)
	}
}

// endsOption reports whether a tag ends an option that has no end tag of its own.
func endsOption(kind xhtml.TokenType, name string) bool {
	if kind == xhtml.EndTagToken {
		return name == "select" || name == "optgroup"
	}
	return kind == xhtml.StartTagToken && (name == "option" || name == "optgroup")
}

// startTag takes the start tag of an element that is shown, and reports whether the element
// needs nothing more: it is an equation, a table or an input, or it is left out.
func (p *htmlParser) startTag(z *xhtml.Tokenizer, kind xhtml.TokenType, name string, more bool, pos, end int) bool {
	if kind == xhtml.StartTagToken && p.startEquation(name, z, more, pos) {
		return true
	}

	attrs := tagAttributes(z, more)
	if name == "input" {
		p.writeInput(attrs, pos, end)
		return true
	}

	if kind != xhtml.StartTagToken {
		return false
	}

	if isHidden(name, attrs) && !p.visible[name] && !beginsEquation(p.page[end:]) {
		p.dropping, p.nested = name, 1
		return true
	}

	p.parts.begin(name, attrs, end)
	if name == "table" && !p.isLeftOut(end) && p.readTable(pos) {
		p.parts.end(name, p.next)
		return true
	}

	if name == "select" {
		p.chosen = hasChosen(p.page[end:])
	}

	if _, selected := attrs["selected"]; name == "option" && p.chosen && !selected && !p.visible[name] {
		p.dropping, p.nested = name, 1 // it could have been chosen, and was not
		return true
	}

	if showsEquation(p, name, attrs) {
		p.dropping, p.nested = name, 1
		return true
	}
	return false
}

// startElement begins the element called name.
func (p *htmlParser) startElement(name string, closed bool) {
	if p.dropping != "" {
		if name == p.dropping && !closed {
			p.nested++
		}
		return
	}

	p.preStart = false
	p.rawText = name == "xmp" || name == "plaintext"

	switch layoutOf(name) {
	case dropped:
		if !p.visible[name] && !(name == "svg" && closed) {
			p.dropping, p.nested = name, 1
		}
		return
	case cell:
		p.startCell()
		return
	}

	// Rows and links count, whatever lines their elements make.
	switch name {
	case "tr":
		p.row, p.tabs = tableRow{begun: true}, 0
	case "a":
		p.links++
	case "sup":
		p.raised++
	}

	if name == "br" {
		p.breaks = min(p.breaks+1, 2)
		return
	}

	p.holdBreaks(name)
	if name == "pre" || name == "textarea" {
		p.pre++
		p.preStart = true
	}
}

// endElement ends the element called name.
func (p *htmlParser) endElement(name string) {
	if p.dropping != "" {
		if name == p.dropping {
			p.nested--
		}
		if p.nested == 0 {
			p.dropping = ""
		}
		return
	}

	p.preStart, p.rawText = false, false

	switch name {
	case "td", "th":
		if !p.row.fresh && !p.row.broken {
			p.breaks = 0
		}
		p.row.fresh = false
	case "tr":
		p.row.fresh = false
	case "table":
		p.row = tableRow{text: true, broken: true} // the cell that it stands in, if it does
	case "a":
		p.links = max(p.links-1, 0)
	case "sup":
		p.raised = max(p.raised-1, 0)
	}

	if name == "pre" || name == "textarea" {
		p.pre = max(p.pre-1, 0)
	}
	p.holdBreaks(name)
}

// startCell begins a cell. A tab parts it from the one before, also from an empty one, so
// that cells of one column have as many tabs before them.
func (p *htmlParser) startCell() {
	switch {
	case p.row.begun:
	case p.row.broken:
		p.breaks, p.tabs = max(p.breaks, 1), 0
	default:
		p.tabs++
		if p.row.text {
			p.breaks = 0
		}
	}

	p.row.begun, p.row.fresh, p.row.broken = false, true, false
}

// holdBreaks holds back the line breaks around a block.
func (p *htmlParser) holdBreaks(name string) {
	if p.row.fresh {
		return
	}
	switch layoutOf(name) {
	case line:
		p.breaks = max(p.breaks, 1)
	case paragraph:
		p.breaks = 2
	}
}

// writeText writes the text [pos, end) of the page.
func (p *htmlParser) writeText(pos, end int) {
	if p.preStart {
		p.preStart = false
		if strings.HasPrefix(p.page[pos:end], "\r") {
			pos++
		}
		if strings.HasPrefix(p.page[pos:end], "\n") {
			pos++
		}
	}

	for pos < end {
		s := p.page[pos:end]
		size := 1
		switch {
		case s[0] == '&' && !p.rawText:
			size = p.writeReference(s, pos)
		case s[0] == 0: // not a character of any page
		case isSpace(s[0]):
			size = p.writeSpace(s, pos)
		case strings.HasPrefix(s, noBreakSpace):
			size = len(noBreakSpace)
			p.holdSpace(pos, size) // written as a space, which rules match
		case p.script.at != richtext.OnLine:
			size = p.writeScript(s, pos)
		default:
			size = plainRun(s)
			p.flushHeld(pos)
			p.out.WriteString(s[:size])
			p.back.Copy(pos, size)
		}
		pos += size
	}
}

const noBreakSpace = "\u00a0"

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

// plainRun returns how many bytes at the front of s need no decoding; at least
// one.
func plainRun(s string) int {
	i := 1
	for i < len(s) && s[i] != '&' && s[i] != 0 && !isSpace(s[i]) && s[i] != noBreakSpace[0] {
		i++
	}
	for i > 1 && i < len(s) && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}

// writeSpace consumes the white space at the front of s, which is at pos of the
// page, and returns its length.
func (p *htmlParser) writeSpace(s string, pos int) int {
	if p.pre == 0 {
		n := 1
		for n < len(s) && isSpace(s[n]) {
			n++
		}
		p.holdSpace(pos, n)
		return n
	}

	// Within pre white space is text, and an end of a line is one line feed.
	n, c := 1, s[:1]
	if strings.HasPrefix(s, "\r\n") {
		n = 2
	}
	if c == "\r" {
		c = "\n"
	}

	p.flushHeld(pos)
	p.out.WriteString(c)
	p.back.Step(1, pos, n)
	return n
}

// holdSpace holds back n bytes of white space at pos.
func (p *htmlParser) holdSpace(pos, n int) {
	if p.space == 0 {
		p.spacePos = pos
	}
	p.space = pos + n - p.spacePos
}

// maxReference is more than the bytes of any character reference.
const maxReference = 40

// writeReference consumes the character reference at the front of s, which is at
// pos of the page, and returns its length. An ampersand without a reference is
// text.
func (p *htmlParser) writeReference(s string, pos int) int {
	// Without a semicolon the reference may be shorter than its letters: see
	// decodeReference.
	n := 1
	for n < min(len(s), maxReference) && (s[n] == '#' && n == 1 || isAlphanumeric(s[n])) {
		n++
	}
	if n < len(s) && s[n] == ';' {
		n++
	}

	// A space that may not break is written as a space, which rules match.
	decoded, n := decodeReference(s[:n])
	if decoded == noBreakSpace {
		decoded = " "
	}

	if p.pre == 0 && len(decoded) == 1 && isSpace(decoded[0]) {
		p.holdSpace(pos, n)
		return n
	}

	p.flushHeld(pos)
	if form, ok := richtext.Form(decoded, p.script.at); ok {
		decoded = form
	}
	p.out.WriteString(decoded)
	p.back.Step(len(decoded), pos, n)
	return n
}

// decodeReference decodes a possible character reference, and returns the
// characters and how many bytes of s they stand for. Old references need no
// semicolon, so letters of other text may follow.
func decodeReference(s string) (string, int) {
	decoded := html.UnescapeString(s)
	if decoded == s {
		return "&", 1
	}

	_, size := utf8.DecodeRuneInString(decoded)
	if rest := decoded[size:]; rest != "" && strings.HasSuffix(s, rest) {
		return decoded[:size], len(s) - len(rest)
	}
	return decoded, len(s)
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// flushHeld writes the breaks, tabs and white space held back before the text at pos.
func (p *htmlParser) flushHeld(pos int) {
	breaks, tabs, space := p.breaks, p.tabs, p.space
	p.breaks, p.tabs, p.space = 0, 0, 0
	p.row.broken = p.row.broken || breaks > 0 && !p.row.fresh
	p.row.text, p.row.fresh = true, false

	// At the beginning of the text nothing is written that was held back.
	switch {
	case p.out.Len() == 0:
	case breaks+tabs > 0:
		for _, c := range "\n\n"[:breaks] + strings.Repeat("\t", tabs) {
			p.out.WriteRune(c)
			p.back.Step(1, pos, 0)
		}
	case space > 0:
		p.out.WriteByte(' ')
		p.back.Step(1, p.spacePos, space)
	case p.raised > 0 && p.links > 0: // the number of a note belongs to no word
		p.out.WriteByte(' ')
		p.back.Step(1, pos, 0)
		p.raised = 0 // for the rest of it
	}
}
