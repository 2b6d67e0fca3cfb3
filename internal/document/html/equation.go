package html

import (
	"strings"
	"unicode"
	"unicode/utf8"

	xhtml "golang.org/x/net/html"

	"github.com/coditect/mapreduce/internal/document/equation"
	"github.com/coditect/mapreduce/internal/document/richtext"
)

// startEquation begins the equation of the tag at pos of the page, if it is the tag of one.
// The pictures of equations that many pages have beside them are left out as all are.
func (p *htmlParser) startEquation(name string, z *xhtml.Tokenizer, more bool, pos int) bool {
	p.equation, p.equationPos = equation.OnPage(name, z, more), pos
	return p.equation != nil
}

// readEquation reads the token [pos, end) of the page, at which z is, as one of the equation
// that is open. It is not one if the equation ended in front of it.
func (p *htmlParser) readEquation(z *xhtml.Tokenizer, kind xhtml.TokenType, name string, more bool, pos, end int) bool {
	taken := p.equation.Read(kind, name, z, more)
	switch {
	case !p.equation.Ended():
	case taken:
		p.endEquation(end)
	default:
		p.endEquation(pos)
	}
	return taken
}

// endEquation writes the equation that ends at end of the page, if one is open. All of its
// text comes from all of its element, as no letter of it says where it came from.
func (p *htmlParser) endEquation(end int) {
	if p.equation == nil {
		return
	}

	text, block := p.equation.Text(), p.equation.Block()
	p.equation = nil
	if text == "" {
		return
	}

	if block && !p.row.fresh {
		p.breaks = max(p.breaks, 1)
	}

	before := p.out.Len()
	p.flushHeld(p.equationPos)

	text = richtext.Written(p.out.String(), text, p.script.at)
	last, _ := utf8.DecodeLastRuneInString(p.out.String())
	first, _ := utf8.DecodeRuneInString(text)
	if p.script.at == richtext.OnLine && unicode.IsDigit(last) && unicode.IsDigit(first) {
		p.insertText(" ", p.equationPos) // they are not one number
	}

	p.out.WriteString(text)
	p.back.Step(len(text), p.equationPos, end-p.equationPos)
	p.parts.text(p.out.Len() - before)
	p.row.broken = p.row.broken || strings.Contains(text, "\n")

	if block {
		p.breaks = 1
	}

	p.equationEnd = p.out.Len()
}

// showsEquation reports whether an element, which is hidden from those who listen to the
// page, shows the equation in front of it again, as those of KaTeX do. Only one name is
// asked for, as the page is read again for each that never ends.
func showsEquation(p *htmlParser, name string, attrs map[string]string) bool {
	return name == "span" && attrs["aria-hidden"] == "true" && p.equationEnd > 0 && p.equationEnd == p.out.Len() && p.space == 0 && !p.visible[name]
}
