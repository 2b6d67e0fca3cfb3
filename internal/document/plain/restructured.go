package plain

import (
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

// isRestructured reports whether a name is that of a file of reStructuredText.
func isRestructured(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".rst", ".rest":
		return true
	}
	return false
}

// restructuredTitle returns the title of a text in reStructuredText: a line with marks below it, which are at least as
// long, before all other text. Directives, targets, comments and fields are no text.
func restructuredTitle(text string) string {
	lines := strings.Split(strings.ReplaceAll(text[:min(len(text), maxHead)], "\r\n", "\n"), "\n")
	apart := false // the lines are of a directive, which those belong to that are indented
	for i, line := range lines {
		bare := strings.TrimSpace(line)
		indented := bare != "" && line[0] == ' ' || strings.HasPrefix(line, "\t")

		switch {
		case bare == "" || apart && indented || isMarks(bare):
			continue
		case strings.HasPrefix(bare, "..") || field.MatchString(bare):
			apart = true
			continue
		}

		// The first line of text is the title, or there is none.
		if i+1 < len(lines) && isMarks(strings.TrimSpace(lines[i+1])) && len(strings.TrimSpace(lines[i+1])) >= utf8.RuneCountInString(bare) {
			return plainTitle(bare)
		}
		return ""
	}
	return ""
}

// field matches a field, such as :orphan:.
var field = regexp.MustCompile(`^:[A-Za-z][^:]*:(?:\s|$)`)

// isMarks reports whether a line consists of one mark of titles, twice or more.
func isMarks(line string) bool {
	return len(line) > 1 && strings.ContainsRune("=-~^\"'#*+_.:<>`", rune(line[0])) && strings.Trim(line, line[:1]) == "" && line != ".." && line != "::"
}

// role finds texts that are marked with a role; its first group is the text.
var role = regexp.MustCompile(":[a-z][a-z:+-]*:`([^`<]*?)\\s*(?:<[^`]*>)?`")

// plainTitle returns a title without roles and marks of emphasis and code.
func plainTitle(title string) string {
	return strings.TrimSpace(strings.NewReplacer("``", "", "**", "", "`", "").Replace(role.ReplaceAllString(title, "$1")))
}
