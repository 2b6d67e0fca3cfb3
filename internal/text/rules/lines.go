package rules

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/internal/text/rules/form"
)

// A linedText is a text with where its lines are. What its lines look like (a heading, a row of a
// table, a label at their beginning) does not depend on what is looked for in them.
type linedText struct {
	text  string
	lines []form.Span
}

// splitLines returns the lines of text without their ends. A newline at the end
// of the text begins no further line.
func splitLines(text string) []form.Span {
	var lines []form.Span
	start := 0
	for i := range len(text) {
		if text[i] == '\n' {
			lines = append(lines, form.NewSpan(start, i))
			start = i + 1
		}
	}

	if start < len(text) {
		lines = append(lines, form.NewSpan(start, len(text)))
	}

	return lines
}

// lineAt returns the index of the line that holds byte i.
func (t *linedText) lineAt(i int) int {
	n, _ := slices.BinarySearchFunc(t.lines, i, func(l form.Span, i int) int {
		if l.Start <= i {
			return -1
		}
		return 1
	})
	return max(n-1, 0)
}

func (t *linedText) lineText(i int) string { return t.text[t.lines[i].Start:t.lines[i].End] }

// clipLine returns the part of line i that is in r.
func (t *linedText) clipLine(i int, r form.Span) form.Span {
	line := t.lines[i]
	start := min(max(line.Start, r.Start), line.End)
	return form.NewSpan(start, max(min(line.End, r.End), start))
}

// isBlank reports whether line i is there and blank.
func (t *linedText) isBlank(i int) bool {
	return i < len(t.lines) && strings.TrimSpace(t.lineText(i)) == ""
}

// columnOf returns the column of a byte on its line, in characters.
func (t *linedText) columnOf(at int) int {
	return utf8.RuneCountInString(t.text[t.lines[t.lineAt(max(at-1, 0))].Start:at])
}
