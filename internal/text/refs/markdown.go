package refs

import (
	"regexp"
	"strings"
)

// A span is the bytes [start, end) of a text.
type span struct{ start, end int }

var (
	fencePattern = regexp.MustCompile("^ {0,3}(?:>[ ]?)*(?:[-*+] +|[0-9]+[.)] +)?(`{3,}|~{3,})")
	urlPattern   = regexp.MustCompile(`(?i)(?:\b[a-z][a-z0-9+.-]{1,30}://|\bwww\.|\bmailto:)[^\s<>"]*`)
	linkTarget   = regexp.MustCompile(`\]\([^\s()]*[/.:#][^\s()]*`)
)

// proseOf returns the prose of a Markdown text: everything but code, in fences or
// between backticks, and addresses. The ends of lines belong to the prose.
func proseOf(text string) []span {
	var prose []span
	block := 0 // where the current block outside fences begins

	open := "" // the fence that is open
	for at := 0; at < len(text); {
		end := len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}

		line := text[at:end]

		// A block of prose ends where a fence opens.
		switch m := fencePattern.FindStringSubmatchIndex(line); {
		case open != "":
			if closesFence(line, open) {
				open, block = "", end
			}
		case m != nil && !strings.Contains(line[m[3]:], "`"):
			prose = append(prose, proseInBlock(text, span{block, at})...)
			open = line[m[2]:m[3]]
		}

		at = end
	}

	// A fence that is never closed goes to the end of the text.
	if open == "" {
		prose = append(prose, proseInBlock(text, span{block, len(text)})...)
	}

	return prose
}

// closesFence reports whether a line closes the fence open.
func closesFence(line, open string) bool {
	line = strings.TrimLeft(strings.TrimSpace(line), "> ")
	return len(line) >= len(open) && strings.Trim(line, open[:1]) == ""
}

// proseInBlock returns a block without code between backticks and addresses.
func proseInBlock(text string, block span) []span {
	var prose []span
	from := block.start
	for _, code := range codeSpans(text, block) {
		prose = append(prose, withoutAddresses(text, span{from, code.start})...)
		from = code.end
	}
	return append(prose, withoutAddresses(text, span{from, block.end})...)
}

// codeSpans returns the code between two runs of backticks of the same length in
// one paragraph.
func codeSpans(text string, block span) []span {
	ticks := backtickRuns(text, block)
	partner := make([]int, len(ticks)) // the next run of the same length; 0 for none

	// Runs are paired from the end on, so that each finds the next of its length.
	next := make(map[int]int)
	for i := len(ticks) - 1; i >= 0; i-- {
		n := ticks[i].end - ticks[i].start
		partner[i], next[n] = next[n], i
	}

	var code []span
	blank := -1 // where the first empty line behind the run is
	for i := 0; i < len(ticks); i++ {
		// A paragraph is searched for its end once, however many runs it has.
		if blank < ticks[i].end {
			blank = block.end
			if k := strings.Index(text[ticks[i].end:block.end], "\n\n"); k >= 0 {
				blank = ticks[i].end + k
			}
		}

		if j := partner[i]; j > 0 && ticks[j].start <= blank {
			code = append(code, span{ticks[i].start, ticks[j].end})
			i = j
		}
	}

	return code
}

// backtickRuns returns the runs of backticks.
func backtickRuns(text string, block span) []span {
	var runs []span
	for at := block.start; at < block.end; at++ {
		if text[at] != '`' {
			continue
		}

		start := at
		for at < block.end && text[at] == '`' {
			at++
		}
		runs = append(runs, span{start, at})
	}
	return runs
}

// withoutAddresses returns s without absolute addresses and the targets of links.
func withoutAddresses(text string, s span) []span {
	var prose []span

	urls, links := newFinder(urlPattern, text, s), newFinder(linkTarget, text, s)
	from := s.start
	for {
		u, l := urls.next(from), links.next(from)

		switch {
		case l.end > 0 && (u.end == 0 || l.start < u.start):
			l.start += len("](")
		case u.end > 0:
			l = span{u.start, u.start + balancedLength(text[u.start:u.end])}
		default:
			return append(prose, span{from, s.end})
		}

		prose = append(prose, span{from, l.start})
		// At least one byte is passed, as an address may have no length up to its bracket.
		from = max(l.end, l.start+1)
	}
}

// balancedLength returns the length of an address up to a closing bracket that was
// not opened in it: such a bracket belongs to the text around the address.
func balancedLength(u string) int {
	var open [2]int
	for i := range len(u) {
		switch u[i] {
		case '(':
			open[0]++
		case '[':
			open[1]++
		case ')':
			open[0]--
		case ']':
			open[1]--
		}

		// The bracket closes one that was opened in front of the address.
		if open[0] < 0 || open[1] < 0 {
			return i
		}
	}
	return len(u)
}
