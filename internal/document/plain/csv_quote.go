package plain

import "strings"

// quoteLiterally returns a table whose cells that begin with a quote which does not close have a space
// before it, so that the library reads it as a character, and the line of the first of them; 0 if there
// is none. The library would take what follows to be the same cell. The space is trimmed with others.
// Blanks between the quotes of a cell and its beginning or end are left out, as the library would not see
// that it is quoted, or that it ends.
func quoteLiterally(content string, separator rune) (string, int) {
	var out strings.Builder
	copied := 0

	q := quotes{content: content, separator: separator, first: -1, closing: -1, opening: -1, odd: -1}
	q.each(func(open int) {
		out.WriteString(content[copied:open])
		out.WriteByte(' ')
		copied = open
	}, func(from, to int) {
		out.WriteString(content[copied:from])
		copied = to
	})

	line := 0
	if q.first >= 0 {
		line = strings.Count(content[:q.first], "\n") + 1
	}
	if copied == 0 && line == 0 {
		return content, 0
	}
	out.WriteString(content[copied:])
	return out.String(), line
}

// quotes are those of a table. As the library does, they count two within a cell for one, and one closes
// the cell only if it ends there. So an odd number of them in a row closes what is open, and an even one
// is a cell of its own or nothing.
type quotes struct {
	content   string
	separator rune
	width     int // cells of the first row; 0 before it is read
	first     int // the first that does not close; -1 if all do

	// Where the next quotes stand that close a cell, those that begin one, and those of an odd number: the last
	// that were found, as no search begins before another; len(content) if there are none.
	closing, opening, odd int
}

// each calls visit for each quote that begins a cell and does not close, and blank for the blanks
// before those that begin one and behind those that close one.
func (q *quotes) each(visit func(open int), blank func(from, to int)) {
	for at := 0; at < len(q.content); {
		row, cells := at, 0
		lineEnd, fits := q.lineAt(at)

		for ended := false; !ended; cells++ {
			at = cellEnd(q.content, q.readQuotes(at, lineEnd, fits, visit, blank), q.separator)
			ended = at == len(q.content) || q.content[at-1] == '\n'
		}

		if q.width == 0 && strings.TrimSpace(q.content[row:at]) != "" {
			q.width = cells
		}
	}
}

// readQuotes returns where the quotes end that a cell begins with; where the cell begins, if it has none, or
// such as do not close. lineEnd and fits are those of the line that its row begins with.
func (q *quotes) readQuotes(at, lineEnd int, fits bool, visit func(open int), blank func(from, to int)) int {
	if open := at + blanksBefore(q.content[at:], q.separator); open > at && q.quotesCell(open) {
		blank(at, open)
		at = open
	}
	if q.content[at] != '"' {
		return at
	}

	// What closes it may be a quote of a later row, which begins a cell before.
	end := q.closeOf(at)
	if end < 0 || at < lineEnd && lineEnd < end && fits && q.opensBetween(lineEnd, end) {
		if q.first < 0 {
			q.first = at
		}
		visit(at)
		return at
	}

	if n := blanksBefore(q.content[end:], q.separator); n > 0 {
		blank(end, end+n)
	}
	return end
}

// lineAt returns where the line ends that begins at a place, and whether it has as many separators as the
// first row: then a quote in it which has to go on in the next line for its end probably has none.
func (q *quotes) lineAt(at int) (end int, fits bool) {
	end = len(q.content)
	if i := strings.IndexByte(q.content[at:], '\n'); i >= 0 {
		end = at + i
	}
	return end, strings.Count(q.content[at:end], string(q.separator))+1 == q.width
}

// closeOf returns the end of the quotes that close the cell which those at a place open; -1 if none do.
func (q *quotes) closeOf(open int) int {
	end := open + runOf(q.content[open:])
	if (end-open)%2 == 0 && endsCell(q.content[end:], q.separator) {
		return end
	}

	if q.closing < end {
		q.closing = q.oddFrom(end, func(_, end int) bool { return endsCell(q.content[end:], q.separator) })
	}
	if q.closing == len(q.content) {
		return -1
	}
	return q.closing + runOf(q.content[q.closing:])
}

// quotesCell reports whether quotes at a place, behind blanks, are those of a cell: the next ones close it, in
// the same line. Others are characters, as in 5, "x" or "y".
func (q *quotes) quotesCell(open int) bool {
	run := runOf(q.content[open:])
	end := open + run
	if run%2 == 0 {
		return run > 0 && endsCell(q.content[end:], q.separator)
	}

	if q.odd < end {
		q.odd = q.oddFrom(end, func(int, int) bool { return true })
	}
	if q.odd == len(q.content) || !endsCell(q.content[q.odd+runOf(q.content[q.odd:]):], q.separator) {
		return false
	}
	return !strings.Contains(q.content[end:q.odd], "\n")
}

// opensBetween reports whether quotes between two places begin a cell. Within a cell that is quoted as it
// should be, each would be two.
func (q *quotes) opensBetween(from, to int) bool {
	if q.opening < from {
		q.opening = q.oddFrom(from, func(begin, end int) bool {
			return !endsCell(q.content[end:], q.separator) && (q.content[begin-1] == '\n' || strings.HasSuffix(q.content[:begin], string(q.separator)))
		})
	}
	return q.opening < to
}

// oddFrom returns where the next quotes begin whose number is odd and that fit; the length of the table
// if none do.
func (q *quotes) oddFrom(from int, fit func(begin, end int) bool) int {
	for {
		i := strings.IndexByte(q.content[from:], '"')
		if i < 0 {
			return len(q.content)
		}
		begin := from + i
		from = begin + runOf(q.content[begin:])
		if (from-begin)%2 == 1 && fit(begin, from) {
			return begin
		}
	}
}

// runOf returns how many quotes a text begins with.
func runOf(text string) int { return len(text) - len(strings.TrimLeft(text, `"`)) }

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

// endsCell reports whether a cell ends before a text, or before the blanks that it begins with.
func endsCell(rest string, separator rune) bool {
	rest = rest[blanksBefore(rest, separator):]
	return rest == "" || rest == "\r" || rest[0] == '\n' || strings.HasPrefix(rest, "\r\n") || strings.HasPrefix(rest, string(separator))
}
