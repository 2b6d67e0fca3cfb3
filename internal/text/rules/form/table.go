package form

import (
	"strings"
)

// A Style is how the cells of a line are set apart.
type Style byte

// The ways in which cells are set apart.
const (
	None       Style = 0
	Bars       Style = '|'
	Tabs       Style = '\t'
	Commas     Style = ','
	Semicolons Style = ';'
	Gaps       Style = ' ' // by two spaces or more
)

// StyleOf returns how the cells of a line are set apart, None if it has no two of
// them.
func StyleOf(line string) Style {
	trimmed := strings.TrimSpace(line)

	switch {
	case strings.Contains(strings.Trim(trimmed, "|"), "|"):
		return Bars
	case strings.Contains(trimmed, "\t"):
		return Tabs
	case strings.Contains(trimmed, "  "):
		return Gaps
	case strings.Contains(trimmed, ";"):
		return Semicolons
	case strings.Contains(trimmed, ","):
		return Commas
	default:
		return None
	}
}

// maxCells bounds the cells of a line.
const maxCells = 1000

// Split returns the cells of a line, without white space and quotation marks
// around them. Empty cells count, but not where gaps set cells apart.
func Split(text string, line Span, style Style) []Span {
	// A tab at either end sets an empty cell apart, so it is no white space to be trimmed.
	if style == Tabs {
		line.End = line.Start + len(strings.TrimRight(text[line.Start:line.End], "\r"))
	} else {
		line = Trim(text, line)
	}

	if style == Bars {
		inner := strings.TrimPrefix(text[line.Start:line.End], "|")
		line.Start = line.End - len(inner)
		line.End = line.Start + len(strings.TrimSuffix(inner, "|"))
	}

	var cells []Span
	for at := line.Start; len(cells) < maxCells; {
		end, next := cellEnd(text[:line.End], at, style)
		cells = append(cells, trimCell(text, NewSpan(at, end)))

		if next < 0 {
			break
		}
		at = next
	}

	return cells
}

// cellEnd returns where the cell that begins at at ends, and where the next begins; -1
// if there is none.
func cellEnd(text string, at int, style Style) (end, next int) {
	quoted := false
	for i := at; i < len(text); i++ {
		switch c := text[i]; {
		// A quotation mark opens a quoted cell only at its beginning; within one, no
		// separator counts.
		case c == '"' && (style == Commas || style == Semicolons || style == Tabs) && (quoted || strings.TrimSpace(text[at:i]) == ""):
			quoted = !quoted
		case quoted:
		case style == Gaps && c == ' ' && strings.HasPrefix(text[i:], "  "):
			return i, i + len(text[i:]) - len(strings.TrimLeft(text[i:], " "))
		case c == byte(style) && style != Gaps:
			return i, i + 1
		}
	}

	return len(text), -1
}

func trimCell(text string, cell Span) Span {
	cell = Trim(text, cell)
	if s := text[cell.Start:cell.End]; len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		cell = Trim(text, NewSpan(cell.Start+1, cell.End-1))
	}
	return cell
}

// IsRule reports whether a line only separates the head of a table from the rest.
func IsRule(line string) bool { return line != "" && strings.Trim(line, "|-:=+ \t\r") == "" }
