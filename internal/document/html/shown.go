package html

import (
	"regexp"
	"strings"
)

// isHidden reports whether an element with these attributes, and all in it, does not show.
func isHidden(name string, attrs map[string]string) bool {
	switch name {
	case "area", "base", "body", "br", "col", "embed", "hr", "html", "img", "input", "link", "meta", "param", "source", "track", "wbr":
		return false // they have no text, or all of it
	}
	if hidden, ok := attrs["hidden"]; ok && hidden != "until-found" {
		return true
	}

	style := strings.Join(strings.Fields(attrs["style"]), "")
	for rule := range strings.SplitSeq(style, ";") {
		switch strings.TrimSuffix(rule, "!important") {
		case "display:none", "visibility:hidden":
			return true
		}
	}
	return false
}

// beginsEquation reports whether an equation begins a part of a page. Pages hide those that a
// picture shows, which says nothing here.
func beginsEquation(page string) bool {
	page = strings.TrimLeft(page[:min(len(page), 200)], " \t\r\n")
	return hasPrefixFold([]byte(page[:min(len(page), len("<math"))]), "<math")
}

// writeInput writes what an input with the tag [pos, end) holds.
func (p *htmlParser) writeInput(attrs map[string]string, pos, end int) {
	_, checked := attrs["checked"]
	value := strings.Join(strings.Fields(attrs["value"]), " ")

	switch attrs["type"] {
	case "hidden", "password", "submit", "reset", "button", "image", "file":
		return
	case "checkbox", "radio":
		if value = "[ ]"; checked {
			value = "[x]"
		}
	}

	if value == "" {
		return
	}

	// The value must not run into the word in front of it.
	if text := p.out.String(); p.breaks+p.tabs+p.space == 0 && text != "" && !isSpace(text[len(text)-1]) {
		p.insertText(" ", pos)
	}

	p.flushHeld(pos)
	p.out.WriteString(value)
	p.back.Step(len(value), pos, end-pos)
}

// maxSelect bounds how far an element with options is looked through, in bytes.
const maxSelect = 64 << 10

// selectedOption finds an option that is chosen.
var selectedOption = regexp.MustCompile(`(?i)<option\b[^>]*\sselected\b[^>]*>`)

// hasChosen reports whether an option is chosen of those that a page begins with, up to the end
// of the element with them.
func hasChosen(page string) bool {
	page = page[:min(len(page), maxSelect)]
	if end := strings.Index(strings.ToLower(page), "</select"); end >= 0 {
		page = page[:end]
	}
	return selectedOption.MatchString(page)
}
