package plain

import "strings"

// quoteLiterally returns a table whose cells that begin with a quote which does not close have a space
// before it, so that the library reads it as a character, and the line of the first of them; 0 if there
// is none. The library would take lines that follow to be in the cell. The space is trimmed with others.
// Blanks between the quotes of a cell and its end are left out, as the library would not see that it ends.
func quoteLiterally(content string, separator rune) (string, int) {
	var out strings.Builder
	written, line := 0, 0

	for at := 0; at < len(content); at = cellEnd(content, at, separator) {
		if content[at] != '"' {
			continue
		}

		closed := closedAt(content, at, separator)
		if closed < 0 {
			if line == 0 {
				line = strings.Count(content[:at], "\n") + 1
			}
			out.WriteString(content[written:at])
			out.WriteByte(' ')
			written = at
			continue
		}

		at = closed
		if blanks := blanksBefore(content[at:], separator); blanks > 0 {
			out.WriteString(content[written:at])
			at += blanks
			written = at
		}
	}

	if written == 0 && line == 0 {
		return content, 0
	}
	out.WriteString(content[written:])
	return out.String(), line
}

// closedAt returns the place behind the quote that closes a cell, which begins with one at a place; -1 if
// none does. As the library does, it takes two quotes within a cell for one, and one to close the cell only
// if the cell ends there. But a cell with other quotes in it, such as the title "Heroes"_(song), does not go
// on over the end of its line, unless a backslash stands before each of them.
func closedAt(content string, open int, separator rune) int {
	hasLines, hasQuotes := false, false

	for at := open + 1; ; {
		i := strings.IndexByte(content[at:], '"')
		if i < 0 {
			return -1
		}

		hasLines = hasLines || strings.Contains(content[at:at+i], "\n")
		at += i + 1

		rest := content[at:]
		ends := endsCell(rest[blanksBefore(rest, separator):], separator)
		if strings.HasPrefix(rest, `"`) {
			at++
		} else {
			hasQuotes = hasQuotes || !ends && content[at-2] != '\\'
		}

		switch {
		case hasLines && hasQuotes:
			return -1
		case ends:
			return at
		}
	}
}

// cellEnd returns where the cell behind the next separator or line end begins, from a place that is in
// no quotes.
func cellEnd(content string, at int, separator rune) int {
	i := strings.IndexAny(content[at:], string(separator)+"\n")
	if i < 0 {
		return len(content)
	}
	if content[at+i] == '\n' {
		return at + i + 1
	}
	return at + i + len(string(separator))
}

// blanksBefore returns how many blanks a text begins with that are no separators.
func blanksBefore(text string, separator rune) int {
	return len(text) - len(strings.TrimLeftFunc(text, func(r rune) bool { return (r == ' ' || r == '\t') && r != separator }))
}

// endsCell reports whether a cell ends before a text.
func endsCell(rest string, separator rune) bool {
	return rest == "" || rest == "\r" || rest[0] == '\n' || strings.HasPrefix(rest, "\r\n") || strings.HasPrefix(rest, string(separator))
}
