package prose

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// IsUnderlined reports whether the line [at, end) of a text is a title with a line of marks below it, as
// reStructuredText and Markdown have them. A line of marks that is shorter than the title belongs to
// something else, such as the end of metadata.
func IsUnderlined(text string, at, end int) bool {
	line := strings.TrimSpace(text[at:end])
	if line == "" || isRuleLine(line) || end >= len(text) {
		return false
	}

	below, _, _ := strings.Cut(text[end+1:], "\n")
	below = strings.TrimSpace(below)
	return isRuleLine(below) && utf8.RuneCountInString(below) >= utf8.RuneCountInString(line)
}

// roleMark matches a role of reStructuredText, or a reference of it.
var roleMark = regexp.MustCompile(":[a-z][a-z:+-]*:`|`_{1,2}(?:[^A-Za-z0-9_]|$)|\\|[A-Za-z-]+\\|")

// IsMarked reports whether a line is code, or has marks that readers of the text do not see: a call or an
// assignment, tags, a picture, a directive or a role of reStructuredText.
func IsMarked(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, ".. ") || codeMark.MatchString(line) || markup.MatchString(line) || roleMark.MatchString(line)
}

// markerLength returns how long the mark of a directive with prose is with which a line begins, such as
// ".. note::"; 0 if it begins with none.
func markerLength(line string) int {
	at := directive.FindStringSubmatchIndex(line)
	if at == nil || !isProseDirective(line[at[2]:at[3]]) {
		return 0
	}
	return at[1]
}
