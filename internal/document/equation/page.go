package equation

import (
	"strings"

	"golang.org/x/net/html"
)

// A Page is an equation of a web page, which takes the tokens of the page. It ends with
// its element, or where no equation goes on: as in browsers, many an element of HTML ends one.
type Page struct {
	math    mathML
	foreign int  // elements that are none of MathML and have begun within it
	nested  int  // equations within the equation
	block   bool // it stands on a line of its own
	ended   bool
}

// OnPage begins the equation of the tag, called name, whose attributes z is to read next if
// there are more. It returns nil if the tag begins none.
func OnPage(name string, z *html.Tokenizer, more bool) *Page {
	if localName(name) != "math" {
		return nil
	}
	p := &Page{}
	attributes := p.equationAttributes(z, more)
	p.math.start("math", attributes)
	return p
}

// localName returns the name of an element without its prefix, which pages in XHTML have.
func localName(name string) string { return name[strings.LastIndexByte(name, ':')+1:] }

// equationAttributes returns those of a tag that say how an equation is written.
func (p *Page) equationAttributes(z *html.Tokenizer, more bool) map[string]string {
	var values map[string]string
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch name := string(key); {
		case isAttribute(name):
			if values == nil {
				values = map[string]string{}
			}
			values[name] = string(value)
		case len(p.math.open) == 0 && (name == "display" || name == "mode"): // of the equation
			p.block = p.block || strings.EqualFold(string(value), "block") || strings.EqualFold(string(value), "display")
		}
	}

	return values
}

// Read takes the token at which z is. Name is that of a tag, whose attributes z is to read
// next if there are more. It returns false if the equation ended in front of the token.
func (p *Page) Read(kind html.TokenType, name string, z *html.Tokenizer, more bool) bool {
	name = localName(name)
	switch kind {
	case html.TextToken:
		p.math.addText(string(z.Text()))
	case html.StartTagToken, html.SelfClosingTagToken:
		return p.start(name, z, more, kind == html.SelfClosingTagToken)
	case html.EndTagToken:
		return p.end(name)
	}
	return true
}

// start takes the start of an element.
func (p *Page) start(name string, z *html.Tokenizer, more, closed bool) bool {
	_, known := elementKinds[name]

	switch {
	case name == "math":
		if !closed {
			p.nested++
		}
	case known:
		if !p.math.start(name, p.equationAttributes(z, more)) {
			break
		}

		// Its end tag also ends the elements of HTML that begin within it.
		p.math.last().outer = p.foreign
		if closed {
			p.math.end(name)
		}
	case isCode(name), isPage(name) && p.math.last().kind.shape != token && p.math.names["annotation-xml"] == 0:
		p.ended = true
		return false
	case !closed && !isVoid(name):
		p.foreign++
	}
	return true
}

// end takes the end of an element. That of one that began in front of the equation ends it.
func (p *Page) end(name string) bool {
	_, known := elementKinds[name]
	switch {
	case name == "math" && p.nested > 0:
		p.nested--
	case name == "math":
		p.ended = true
	case known:
		if e := p.math.end(name); e != nil {
			p.foreign = e.outer
		}
	case p.foreign == 0:
		p.ended = true
		return false
	default:
		p.foreign--
	}
	return true
}

// Ended reports whether the equation ended with or before the last token.
func (p *Page) Ended() bool { return p.ended }

// Block reports whether the equation stands on a line of its own.
func (p *Page) Block() bool { return p.block }

// Text returns the text of the equation, which has ended.
func (p *Page) Text() string { return p.math.text() }

// isCode reports whether elements called name hold what is no text, or all that follows up
// to their end.
func isCode(name string) bool {
	switch name {
	case "script", "style", "template", "noscript", "iframe", "noembed", "noframes", "svg", "title", "textarea", "xmp", "plaintext":
		return true
	}
	return false
}

// isVoid reports whether elements called name have no end.
func isVoid(name string) bool {
	switch name {
	case "br", "col", "embed", "hr", "img", "input", "link", "meta", "wbr":
		return true
	}
	return false
}

// isPage reports whether elements called name end an equation in which they are, unless they
// are in a text of it (HTML, 13.2.6.5).
func isPage(name string) bool {
	switch name {
	case "b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em", "embed", "h1", "h2", "h3", "h4", "h5",
		"h6", "head", "hr", "i", "img", "li", "listing", "menu", "meta", "nobr", "ol", "p", "pre", "ruby", "s", "small", "span", "strong",
		"strike", "sub", "sup", "table", "tt", "u", "ul", "var",
		"article", "aside", "figure", "footer", "form", "header", "html", "ins", "main", "nav", "section", "td", "th", "tr":
		return true
	}
	return false
}
