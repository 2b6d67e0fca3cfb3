package gather

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/internal/text/prose"
)

// headlineOf is the headline of what was found: of the title of the page and the headings above the
// finding, the one that bears most on the question, and of equal ones the one that is part of the title;
// or else the first line.
func (x *extract) headlineOf() any {
	span := x.titleSpan()
	if span.End == 0 {
		return nil
	}
	return x.cite(span.Start, span.End)
}

// titleSpan returns where the headline stands; the zero Span if there is none.
func (x *extract) titleSpan() prose.Span {
	text, title := string(x.evidence.Text), strings.TrimSpace(x.evidence.Metadata["title"])
	code := prose.CodeBlocks(text)
	best, most := prose.Span{}, -1.0

	consider := func(s prose.Span, more float64) {
		if score := x.query.Relevance(s.In(text)) + more; score > most {
			best, most = s, score
		}
	}

	for _, h := range headingsAbove(text, x.findingSpan().Start, code) {
		switch line := h.In(text); {
		case line == title:
		case strings.Contains(title, line):
			consider(h.Span, partOfTitle)
		default:
			consider(h.Span, 0)
		}
	}

	// The title of the page is worth less than a heading that is part of it.
	if at := strings.Index(text, title); title != "" && at >= 0 {
		consider(prose.Span{Start: at, End: at + len(title)}, partOfTitle/2)
	}

	if best.End == 0 {
		return firstLine(text, code)
	}
	return best
}

// A heading is a line above what it is the heading of.
type heading struct {
	prose.Span
	level int // 1 is the highest; 0 for one without a mark, of which nothing tells how far it reaches
}

// headingsAbove returns the headings before at of which at is part: a heading with a mark ends the part of those
// before it that are not above it. Where headings have marks, lines without one are none.
func headingsAbove(text string, at int, code []prose.Span) []heading {
	var all []heading
	var underlines []byte // in the order in which they come first, the highest first

	for start := 0; start < len(text) && start <= at; {
		end := endAt(text, start, "\n")
		line := headingOf(text, start, end)
		isOne := line.Start < line.End && !touches(code, start, end) && isHeading(text, start, end)

		if isOne && !contents.MatchString(line.In(text)) {
			level := levelOf(text, start, end, &underlines)
			if level > 0 {
				all = slices.DeleteFunc(all, func(h heading) bool { return h.level >= level || h.level == 0 })
			}
			if level > 0 || !slices.ContainsFunc(all, func(h heading) bool { return h.level > 0 }) {
				all = append(all, heading{line, level})
			}
		}
		start = end + 1
	}

	return all
}

// levelOf returns the level of the heading [at, end): the number of its marks, or which of the marks below headings
// it has; 0 if it has neither.
func levelOf(text string, at, end int, underlines *[]byte) int {
	line := text[at:end]
	if marks := len(line) - len(strings.TrimLeft(line, "#")); marks > 0 {
		return marks
	}
	if !prose.IsUnderlined(text, at, end) {
		return 0
	}

	mark := strings.TrimLeft(text[end+1:], " \t")[0]
	if !slices.Contains(*underlines, mark) {
		*underlines = append(*underlines, mark)
	}
	return slices.Index(*underlines, mark) + 1
}

// contents matches the heading above a table of contents, which is that of no part.
var contents = regexp.MustCompile(`^(?i:(?:table of )?contents|on this page|navigation|menu)\W*$`)

// headingOf returns the line [at, end) of a text without the marks of a heading, and without pictures, badges and
// the name of its anchor at its end; it is empty if nothing else is there.
func headingOf(text string, at, end int) prose.Span {
	line := text[at:end]
	for _, mark := range []string{"[![", "![", "<img", "<a ", " {#", " {:"} {
		line, _, _ = strings.Cut(line, mark)
	}

	bare := strings.Trim(line, "# \t\r*")
	start := at + strings.Index(line, bare)
	return prose.Span{Start: start, End: start + len(bare)}
}

// touches reports whether any of the spans, which are in order, has a byte of [start, end).
func touches(spans []prose.Span, start, end int) bool {
	i, _ := slices.BinarySearchFunc(spans, start, func(s prose.Span, at int) int { return cmp.Compare(s.End, at+1) })
	return i < len(spans) && spans[i].Start < end
}

// endAt returns where the part of a text that begins at at ends: before the next mark, or with the
// text. It copies nothing: a text may have very many lines.
func endAt(text string, at int, mark string) int {
	if n := strings.Index(text[at:], mark); n >= 0 {
		return at + n
	}
	return len(text)
}

// isHeading reports whether the line [at, end) of a text is a heading: it is marked as one, or it is
// short, stands by itself, and is no sentence.
func isHeading(text string, at, end int) bool {
	line := text[at:end]
	if strings.HasPrefix(line, "#") || prose.IsUnderlined(text, at, end) {
		return true
	}

	above, below := text[:at], text[end:]
	apart := (above == "" || strings.HasSuffix(above, "\n\n")) && (strings.HasPrefix(below, "\n\n") || strings.TrimSpace(below) == "")
	return apart && len(line) <= maxHeading && !prose.IsSentence(line) && !listed.MatchString(line) && !leadsOn(line) && !prose.IsMarked(line) && !prose.IsTags(line) && !prose.IsCaption(line)
}

// listed matches a sentence that is an element of a list, however short.
var listed = regexp.MustCompile(`^\s*(?:[-*+•]|[0-9]{1,3}[.)])\s.*[.;]\s*$`)

// leadsOn reports whether a line is the beginning of what stands below it, or a part of it.
func leadsOn(line string) bool {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(line, " \t\r*_"))
	return strings.ContainsRune(":,;", last)
}

// maxHeading bounds a heading without a mark, in bytes.
const maxHeading = 200

// partOfTitle is how much rather a heading is the headline if the title of the page has it.
const partOfTitle = 0.1

// firstLine returns the first line of a text that says something and is no code, without the marks of a
// heading; the zero Span if there is none.
func firstLine(text string, code []prose.Span) prose.Span {
	for at := 0; at < len(text); {
		end := endAt(text, at, "\n")
		if line := headingOf(text, at, end); line.Start < line.End && !touches(code, at, end) {
			return line
		}
		at = end + 1
	}
	return prose.Span{}
}
