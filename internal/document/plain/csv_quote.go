package plain

import "strings"

// quoteLiterally returns a table whose cells that begin with a quote which does not close have a space
// before it, so that the library reads it as a character, and the line of the first of them; 0 if there
// is none. The library would take all that follows to be one cell. The space is trimmed with others.
func quoteLiterally(content string, separator rune) (string, int) {
	open := openQuote(content, separator)
	if open < 0 {
		return content, 0
	}

	var out strings.Builder
	out.WriteString(content[:open])

	// No quote behind the first that does not close closes another, so cells end at the next
	// separator or line, except those that are quotes alone.
	for at := open; at < len(content); {
		if content[at] == '"' && !isQuotes(content[at:], separator) {
			out.WriteByte(' ')
		}
		end := cellEnd(content, at, separator)
		out.WriteString(content[at:end])
		at = end
	}

	return out.String(), strings.Count(content[:open], "\n") + 1
}

// openQuote returns where a cell begins with a quote that does not close before the end; -1 if none
// does. As the library does, it takes two quotes within a cell for one, and one to close the cell only
// if the cell ends there.
func openQuote(content string, separator rune) int {
	for at := 0; at < len(content); {
		if content[at] != '"' {
			at = cellEnd(content, at, separator)
			continue
		}

		open := at
		for at++; ; {
			i := strings.IndexByte(content[at:], '"')
			if i < 0 {
				return open
			}

			at += i + 1
			if strings.HasPrefix(content[at:], `"`) {
				at++
			} else if endsCell(content[at:], separator) {
				break
			}
		}

		at = cellEnd(content, at, separator)
	}

	return -1
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

// endsCell reports whether a cell ends before a text.
func endsCell(rest string, separator rune) bool {
	return rest == "" || rest == "\r" || rest[0] == '\n' || strings.HasPrefix(rest, "\r\n") || strings.HasPrefix(rest, string(separator))
}

// isQuotes reports whether a text begins with a cell that is quotes alone, which close each other.
func isQuotes(text string, separator rune) bool {
	rest := strings.TrimLeft(text, `"`)
	return (len(text)-len(rest))%2 == 0 && endsCell(rest, separator)
}
