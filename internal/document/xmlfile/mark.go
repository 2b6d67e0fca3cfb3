package xmlfile

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// raiseMarks makes superscripts of the numbers of references among nodes that stand beside each
// other. Print raises them: on the line they would be read as part of the word before them.
func raiseMarks(nodes []*node) {
	raised := false // whether the last element was such a number
	for i, n := range nodes {
		if n.name == "" {
			continue
		}
		raised = i > 0 && isMark(n, nodes[i-1], raised)
		if raised {
			n.name = "sup"
		}
	}
}

// isMark reports whether an element is the number of a reference right behind a word, or behind
// another such number.
func isMark(n, before *node, raised bool) bool {
	if n.name != "xref" || n.attributeOf("ref-type") != "bibr" || before.name != "" || len(n.children) != 1 {
		return false
	}
	if number := n.children[0].text; number == "" || strings.Trim(number, "0123456789") != "" {
		return false
	}

	last, _ := utf8.DecodeLastRuneInString(before.text)
	return unicode.IsLetter(last) || strings.ContainsRune(".)”\"'", last) || raised && strings.Trim(before.text, ",–-") == ""
}
