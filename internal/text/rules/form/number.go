package form

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema/format"
)

// scanNumbers finds numbers that stand for themselves, see format.Numerals.
func scanNumbers(text string, start, end int, style format.NumberStyle) []Span {
	var found []Span
	for from, to := range format.Numerals(text[start:end], style) {
		found = append(found, NewSpan(start+from, start+to))
	}
	return found
}

// withPercent finds numbers, each with the percent sign behind it: it tells what they are.
func withPercent(text string, start, end int, style format.NumberStyle) []Span {
	found := scanNumbers(text, start, end, style)
	for i, n := range found {
		rest := strings.TrimLeft(text[n.End:end], " \u00a0\u202f")
		if strings.HasPrefix(rest, "%") {
			found[i].End = end - len(rest) + 1
		}
	}
	return found
}

// Amounts finds numbers that are not percentages.
func Amounts(text string, start, end int, style format.NumberStyle) []Span {
	return slices.DeleteFunc(scanNumbers(text, start, end, style), func(n Span) bool {
		return strings.HasPrefix(strings.TrimLeft(text[n.End:end], " \u00a0\u202f"), "%") || n.Start > start && text[n.Start-1] == '%'
	})
}

// IsDigit reports whether c is an ASCII digit.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }

// IsLetter reports whether c is an ASCII letter.
func IsLetter(c byte) bool { return (c|0x20) >= 'a' && (c|0x20) <= 'z' }

// IsWordByte reports whether c is a letter or a digit. Every byte beyond ASCII
// counts as a letter.
func IsWordByte(c byte) bool { return IsDigit(c) || IsLetter(c) || c >= utf8.RuneSelf }
