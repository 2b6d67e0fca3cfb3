// Package render shows the DAG of a job: as text for people, as the JSON of
// dag.json, as Mermaid, DOT and SVG for pictures. Whatever units and agents are
// named, a name stays a name: each format escapes in its own way.
// A Trace shows which of its units ran when, and at what cost: as the document trace.json and
// as sums by level. A Tally adds units one by one, so that a job of any size can be traced
// while its units are read.
//
// It is pure and imports the vocabulary, internal/plan and internal/text/pack.
package render

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/plan"
)

// Formats are the names that As knows.
func Formats() []string { return []string{"text", "json", "mermaid", "dot", "svg"} }

// As returns d in the named format.
func As(format string, d *plan.DAG) (string, error) {
	if format == "json" {
		return JSON(d)
	}
	s, err := Of(d)
	if err != nil {
		return "", err
	}
	return s.As(format)
}

// As returns the sketch in the named format, which is any but JSON: that shows
// all units.
func (s *Sketch) As(format string) (string, error) {
	switch format {
	case "text":
		return s.Text(), nil
	case "mermaid":
		return s.Mermaid(), nil
	case "dot":
		return s.DOT(), nil
	case "svg":
		return s.SVG(), nil
	}
	return "", errs.Field("format", "must be one of %s", strings.Join(Formats(), ", "))
}

// MaxShown is the most nodes of a level that a picture shows one by one; a
// larger level is one node with its count.
const MaxShown = 24

// Badge returns what a picture calls a unit of that kind and level, or "".
func Badge(kind mapreduce.UnitKind, level int) string {
	switch kind {
	case mapreduce.KindMap:
		return "MAP"
	case mapreduce.KindReduce:
		return fmt.Sprintf("REDUCE L%d", level)
	case mapreduce.KindFinal:
		return "AGGREGATE"
	case mapreduce.KindDirect:
		return "DIRECT"
	case mapreduce.KindParse:
		return "PARSE"
	}
	return ""
}

// countOf returns "1 call", "2 calls".
func countOf(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return groupDigits(n) + " " + what + "s"
}

// groupDigits returns n with commas between thousands.
func groupDigits(n int64) string {
	s := fmt.Sprint(n)
	// The first group has what the others leave, and the sign.
	head := len(s) % 3
	if n < 0 {
		head = (len(s)-1)%3 + 1
	}

	var b strings.Builder
	b.WriteString(s[:head])
	for i := head; i < len(s); i += 3 {
		if i > 0 && s[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteString(s[i : i+3])
	}
	return b.String()
}

// formatDollars returns millionths of a US dollar in dollars.
func formatDollars(micros int64) string {
	if micros%10_000 == 0 || micros >= 100_000_000 {
		return fmt.Sprintf("$%.2f", float64(micros)/1e6)
	}
	return fmt.Sprintf("$%.4f", float64(micros)/1e6)
}

// visibleText returns s on one line, without what is not seen or turns around what
// is: control characters, marks of direction, bytes that are no text.
func visibleText(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029', r == 0xfffe, r == 0xffff:
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
}

// clipCells returns s, or as much of both its ends as fits so many cells, with an
// ellipsis between. Characters of East Asia take two.
func clipCells(s string, cells int) string {
	runes := []rune(s)
	if cellWidth(runes) <= cells {
		return s
	}

	head, tail, room := 0, len(runes), cells-1
	for cellWidth(runes[:head+1]) <= room-room/2 {
		head++
	}
	for tail-1 > head && cellWidth(runes[tail-1:]) <= room/2 {
		tail--
	}
	return string(runes[:head]) + "…" + string(runes[tail:])
}

func cellWidth(runes []rune) int {
	n := 0
	for _, r := range runes {
		if n++; r >= 0x1100 {
			n++
		}
	}
	return n
}
