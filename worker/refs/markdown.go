package refs

import (
	"regexp"
	"strings"
)

// A span is the bytes [start, end) of a text.
type span struct{ start, end int }

var (
	fence = regexp.MustCompile("^ {0,3}(?:>[ ]?)*(?:[-*+] +|[0-9]+[.)] +)?(`{3,}|~{3,})")
	url   = regexp.MustCompile(`(?i)(?:\b[a-z][a-z0-9+.-]{1,30}://|\bwww\.|\bmailto:)[^\s<>"]*`)
	dest  = regexp.MustCompile(`\]\([^\s()]*[/.:#][^\s()]*`)
)

// proseOf returns what of a Markdown text is prose: neither code, in fences or
// between backticks, nor an address. The ends of lines belong to it.
func proseOf(text string) []span {
	var prose []span
	block := 0 // where the block of lines without fences began
	open := "" // the fence that is open
	for at := 0; at < len(text); {
		end := len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		line := text[at:end]
		switch m := fence.FindStringSubmatchIndex(line); {
		case open != "":
			if closes(line, open) {
				open, block = "", end
			}
		case m != nil && !strings.Contains(line[m[3]:], "`"):
			prose = append(prose, inline(text, span{block, at})...)
			open = line[m[2]:m[3]]
		}
		at = end
	}
	if open == "" {
		prose = append(prose, inline(text, span{block, len(text)})...)
	}
	return prose
}

// closes reports whether a line ends the code that a fence began.
func closes(line, open string) bool {
	line = strings.TrimLeft(strings.TrimSpace(line), "> ")
	return len(line) >= len(open) && strings.Trim(line, open[:1]) == ""
}

// inline leaves out of a block what stands between backticks, and addresses.
func inline(text string, block span) []span {
	var prose []span
	from := block.start
	for _, code := range codeSpans(text, block) {
		prose = append(prose, apart(text, span{from, code.start})...)
		from = code.end
	}
	return append(prose, apart(text, span{from, block.end})...)
}

// codeSpans returns what stands between runs of backticks of the same length
// within a paragraph.
func codeSpans(text string, block span) []span {
	ticks := backticks(text, block)
	partner := make([]int, len(ticks)) // the next run of the same length; 0 for none
	next := make(map[int]int)
	for i := len(ticks) - 1; i >= 0; i-- {
		n := ticks[i].end - ticks[i].start
		partner[i], next[n] = next[n], i
	}
	var code []span
	blank := -1 // where the first empty line behind the run is
	for i := 0; i < len(ticks); i++ {
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

// backticks returns the runs of backticks.
func backticks(text string, block span) []span {
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

// apart leaves out addresses: absolute ones, and where links lead.
func apart(text string, s span) []span {
	var prose []span
	urls, links := newFinder(url, text, s), newFinder(dest, text, s)
	from := s.start
	for {
		u, l := urls.next(from), links.next(from)
		switch {
		case l.end > 0 && (u.end == 0 || l.start < u.start):
			l.start += len("](")
		case u.end > 0:
			l = span{u.start, u.start + balanced(text[u.start:u.end])}
		default:
			return append(prose, span{from, s.end})
		}
		prose = append(prose, span{from, l.start})
		from = max(l.end, l.start+1)
	}
}

// balanced returns how much of an address comes before a bracket that was not
// opened in it: that one belongs to the text around it.
func balanced(u string) int {
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
		if open[0] < 0 || open[1] < 0 {
			return i
		}
	}
	return len(u)
}
