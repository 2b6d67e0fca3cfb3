// Package page is a text with its lines and what these look like, whatever is looked for in
// them: headings, rows and cells of tables, the header of a mail, and where a value beside a
// label begins and ends.
//
// It is pure, and knows of no schema but the hints that name parts of a text.
package page

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/rules/phrase"
)

// A Page is a text with where its lines are. What its lines look like (a heading, a row of a
// table, a label at their beginning) does not depend on what is looked for in them.
type Page struct {
	Text  string
	Lines []form.Span
}

// SplitLines returns the lines of text without their ends. A newline at the end
// of the text begins no further line.
func SplitLines(text string) []form.Span {
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

// LineAt returns the index of the line that holds byte i.
func (p *Page) LineAt(i int) int {
	n, _ := slices.BinarySearchFunc(p.Lines, i, func(l form.Span, i int) int {
		if l.Start <= i {
			return -1
		}
		return 1
	})
	return max(n-1, 0)
}

// LineText returns line i.
func (p *Page) LineText(i int) string { return p.Text[p.Lines[i].Start:p.Lines[i].End] }

// ClipLine returns the part of line i that is in r.
func (p *Page) ClipLine(i int, r form.Span) form.Span {
	line := p.Lines[i]
	start := min(max(line.Start, r.Start), line.End)
	return form.NewSpan(start, max(min(line.End, r.End), start))
}

// IsBlank reports whether line i is there and blank.
func (p *Page) IsBlank(i int) bool {
	return i < len(p.Lines) && strings.TrimSpace(p.LineText(i)) == ""
}

// columnOf returns the column of a byte on its line, in characters.
func (p *Page) columnOf(at int) int {
	return utf8.RuneCountInString(p.Text[p.Lines[p.LineAt(max(at-1, 0))].Start:at])
}

// EndOfNextLine returns where the line after that of byte i ends, blank ones not
// counted.
func (p *Page) EndOfNextLine(i int) int {
	if len(p.Lines) == 0 {
		return i
	}

	line := p.LineAt(i)
	for line+1 < len(p.Lines) {
		line++
		if strings.TrimSpace(p.Text[p.Lines[line].Start:p.Lines[line].End]) != "" {
			break
		}
	}
	return p.Lines[line].End
}

// WithinCell returns the part of r up to the end of the cell in which it begins, if its line
// is a row of a table that begins with a bar.
func (p *Page) WithinCell(r form.Span) form.Span {
	if strings.HasPrefix(strings.TrimSpace(p.LineText(p.LineAt(r.Start))), "|") {
		if end := strings.IndexByte(p.Text[r.Start:r.End], '|'); end >= 0 {
			r.End = r.Start + end
		}
	}
	return r
}

// InBars reports whether a label stands in a row of a table between bars.
func (p *Page) InBars(m phrase.Mark) bool {
	return strings.HasPrefix(strings.TrimSpace(p.LineText(p.LineAt(m.Start))), "|")
}

// BeginOfCell returns where the cell begins that byte at stands in: behind a tab, a bar, a
// gap or the beginning of the line.
func (p *Page) BeginOfCell(at int) int {
	line := p.Lines[p.LineAt(at)]
	start := max(line.Start, at-NearBytes)
	before := p.Text[start:at]
	cut := max(strings.LastIndexAny(before, "\t|"), strings.LastIndex(before, "  ")+1)
	return start + max(cut, 0)
}

// IsEntry reports whether a label begins its line and a colon follows, as in a
// list of names and values.
func (p *Page) IsEntry(m phrase.Mark) bool { return p.BeginsLine(m) && p.LabelDelimiter(m) == ':' }

// BeginsLine reports whether nothing stands in front of a label on its line.
func (p *Page) BeginsLine(m phrase.Mark) bool {
	before := p.Text[p.Lines[p.LineAt(m.Start)].Start:m.Start]
	return len(before) <= NearBytes && strings.TrimSpace(before) == ""
}

// LabelDelimiter returns the sign that sets a label off from its value: a colon
// or the like, a tab or several spaces, the end of the line; 0 if there is none.
func (p *Page) LabelDelimiter(m phrase.Mark) byte {
	line := p.Lines[p.LineAt(m.Start)]
	r := form.NewSpan(m.End, min(max(m.End, line.End), m.End+NearBytes))
	rest := p.Text[r.Start:r.End]
	after := p.Text[r.Start:SkipSeparators(p.Text, r).Start]

	switch {
	case strings.TrimSpace(rest) == "":
		return '\n'
	case strings.ContainsAny(after, ":=|"+WideColon):
		return ':'
	case strings.ContainsAny(after, "\t-") || strings.HasPrefix(rest, "  "):
		return '\t'
	default:
		return 0
	}
}

// FollowsWord reports whether a plain word stands right before a label, so that
// the two may mean something else together: TAX INCLUDED IN TOTAL.
func (p *Page) FollowsWord(m phrase.Mark) bool {
	line := p.Lines[p.LineAt(m.Start)]
	before := p.Text[line.Start:m.Start]
	word := strings.TrimRight(before, " ")
	if len(before)-len(word) != 1 || word == "" {
		return false
	}
	word = strings.TrimLeft(word[strings.LastIndexAny(word, " \t|")+1:], "*_")
	return word != "" && !strings.ContainsFunc(word, func(c rune) bool { return !unicode.IsLetter(c) })
}

// IsSplit reports whether v is a cell of a row in which a cell with nothing but a colon stands
// in front of it, and more cells with words behind it: then v is but a part of the value.
func (p *Page) IsSplit(v form.Span) bool {
	line := p.Lines[p.LineAt(v.Start)]
	if !strings.HasPrefix(strings.TrimSpace(line.Of(p.Text)), "|") {
		return false
	}
	before := strings.TrimRight(p.Text[line.Start:v.Start], " ")
	rest := p.Text[v.End:line.End]
	colon := strings.HasSuffix(strings.TrimRight(strings.TrimSuffix(before, "|"), " "), "| :")
	return colon && strings.ContainsFunc(rest, func(c rune) bool { return !NotWord(c) })
}

// OnlySeparators reports whether a part of the text holds nothing but separators.
func (p *Page) OnlySeparators(v form.Span) bool {
	return strings.Trim(p.Text[v.Start:v.End], separators+" \t") == ""
}

// TrimSeparators narrows v to what stands between separators and white space.
func (p *Page) TrimSeparators(v form.Span) form.Span {
	set := separators + " \t\r\n"
	v.End = v.Start + len(strings.TrimRight(p.Text[v.Start:v.End], set))
	v.Start = v.End - len(strings.TrimLeft(p.Text[v.Start:v.End], set))
	return v
}

// separators may stand at the ends of a text between anchors.
const separators = ",;:="

// ParagraphStarts returns where paragraphs begin: at lines that are not blank
// and have none but blank lines right before them.
func (p *Page) ParagraphStarts(w form.Span) []int {
	var starts []int
	blank := true
	for i := p.LineAt(w.Start); i < len(p.Lines) && p.Lines[i].Start < w.End; i++ {
		start := max(p.Lines[i].Start, w.Start)
		if strings.TrimSpace(p.Text[start:p.Lines[i].End]) == "" {
			blank = true
			continue
		}

		if blank {
			starts = append(starts, start)
		}

		blank = false
	}

	return starts
}

// LineStarts returns where the lines of anchors begin, or the anchors themselves
// where one follows another on a line.
func (p *Page) LineStarts(anchors []int, w form.Span) []int {
	starts := make([]int, 0, len(anchors))
	last := -1

	for _, at := range anchors {
		line := p.LineAt(at)
		if line != last {
			at = max(p.Lines[line].Start, w.Start)
		}

		last = line
		starts = append(starts, at)
	}

	return starts
}

// NearBytes bounds what is looked at of a line beside a label, for values with a form.
const NearBytes = 200

// Under returns the index of the cell below a name; -1 if there is none.
func (p *Page) Under(name form.Span, n int, row []form.Span, style form.Style) int {
	if style == form.Tabs {
		if n >= len(row) {
			return -1
		}
		return n
	}
	from, to := p.columnOf(name.Start), p.columnOf(name.End)
	return slices.IndexFunc(row, func(c form.Span) bool { return p.columnOf(c.Start) < to && p.columnOf(c.End) > from })
}
