package html

import (
	"strings"
	"unicode/utf8"

	xhtml "golang.org/x/net/html"

	"github.com/coditect/mapreduce/internal/document/richtext"
)

// A script is raised or lowered text that is being read. It is looked through before it is
// read, as all of it decides how it is written.
type script struct {
	at     richtext.Position // if it is written in raised or lowered characters
	end    int               // of its text, in the page
	closes bool              // a parenthesis closes it
}

// maxScript bounds a script, in bytes of the page. What is longer stands for no number.
const maxScript = 300

// startScript begins the text of an element, sup or sub, at pos of the page. It is written
// as richtext.Runs has it. A link in it leads to a note, or is a text of its own.
func (p *htmlParser) startScript(element string, pos int) {
	p.endScript(pos)

	text, size, ok := scriptText(p.page[pos:], element)
	if !ok {
		return
	}

	at := richtext.Raised
	if element == "sub" {
		at = richtext.Lowered
	}

	core := strings.TrimSpace(text)
	if _, ok := richtext.Form(core, at); ok {
		p.script = script{at: at, end: pos + size}
		return
	}

	// A sign is needed only where the script would lengthen a number or a word.
	if p.breaks+p.tabs+p.space > 0 || !strings.HasPrefix(text, core) || !richtext.Lengthens(p.out.String(), core) {
		return
	}

	marked, bracketed := richtext.Marked(core, at)
	sign, _, _ := strings.Cut(marked, core)
	p.insertText(sign, pos)
	p.script = script{end: pos + size, closes: bracketed}
}

// endScript ends the script before pos, if there is one.
func (p *htmlParser) endScript(pos int) {
	if p.script.closes {
		if p.space > 0 { // which follows
			pos = p.spacePos
		}
		p.insertText(")", pos)
	}
	p.script = script{}
}

// insertText writes characters of which the page has none at pos.
func (p *htmlParser) insertText(s string, pos int) {
	p.out.WriteString(s)
	for range len(s) {
		p.back.Step(1, pos, 0)
	}
}

// scriptText returns the text of an element at the front of a page, and its size there. It
// is not ok if the element is long or never ends, or has a link, a line or another script in
// it.
func scriptText(page, element string) (text string, size int, ok bool) {
	page = page[:min(len(page), maxScript)]
	z := xhtml.NewTokenizer(strings.NewReader(page))

	var b strings.Builder
	for {
		switch z.Next() {
		case xhtml.ErrorToken:
			return "", 0, false
		case xhtml.TextToken:
			b.Write(z.Text())
		case xhtml.StartTagToken, xhtml.SelfClosingTagToken:
			tag, _ := z.TagName()
			switch name := string(tag); {
			case name == "a", name == "br", name == "sup", name == "sub", layoutOf(name) != inline:
				return "", 0, false
			}
		case xhtml.EndTagToken:
			if tag, _ := z.TagName(); string(tag) == element {
				return b.String(), size, true
			}
		}

		// The end tag itself is no part of the script.
		size += len(z.Raw())
	}
}

// writeScript writes the character at the front of s, which is at pos of the page, as one
// that is raised or lowered, and returns its length.
func (p *htmlParser) writeScript(s string, pos int) int {
	c, size := utf8.DecodeRuneInString(s)
	form, ok := richtext.FormOf(c, p.script.at)
	if !ok {
		form = c
	}
	p.flushHeld(pos)
	p.out.WriteRune(form)
	p.back.Step(utf8.RuneLen(form), pos, size)
	return size
}
