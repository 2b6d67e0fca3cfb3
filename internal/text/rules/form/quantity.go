package form

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
)

// withWords finds what scan does, and numbers in words. Where the same number stands
// in digits behind the words, in parentheses, both are one.
func withWords(scan Scanner) Scanner {
	return func(text string, start, end int, style format.NumberStyle) []Span {
		digits := scan(text, start, end, style)

		var found []Span
		// Several words may be one number: those inside the last are passed over.
		for _, w := range Words(text, start, end) {
			if len(found) > 0 && w.Start < found[len(found)-1].End {
				continue
			}
			if _, to, ok := format.WordsAt(text[:end], w.Start); ok && isWholeWord(text, w.Start, to) {
				found = append(found, withDigits(text[:end], NewSpan(w.Start, to)))
			}
		}

		words := found
		// Both lists are in order, so one pass finds the digits that no number in words
		// holds.
		for _, d := range digits {
			for len(words) > 0 && words[0].End <= d.Start {
				words = words[1:]
			}
			if len(words) == 0 || d.End <= words[0].Start {
				found = append(found, d)
			}
		}

		slices.SortFunc(found, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
		return found
	}
}

func isWholeWord(text string, start, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:start])
	after, _ := utf8.DecodeRuneInString(text[end:])
	return (start == 0 || !unicode.IsLetter(before) && !unicode.IsDigit(before)) && (end == len(text) || !unicode.IsLetter(after) && !unicode.IsDigit(after))
}

// withDigits extends a number in words over the same in parentheses.
func withDigits(text string, words Span) Span {
	rest := strings.TrimLeft(text[words.End:], " \n\r\t")
	if !strings.HasPrefix(rest, "(") {
		return words
	}

	shut := strings.IndexByte(rest[:min(len(rest), 40)], ')')
	if shut < 0 {
		return words
	}

	whole := NewSpan(words.Start, len(text)-len(rest)+shut+1)
	if _, ok := format.ParseNumberWords(text[whole.Start:whole.End]); !ok {
		return words
	}
	return whole
}

// maxUnitBytes bounds a unit with the white space between it and its number.
const maxUnitBytes = 40

// withUnits finds those numbers beside which one of the units of p stands, and the
// unit with them.
func withUnits(p *schema.Property, scan Scanner) Scanner {
	return func(text string, start, end int, style format.NumberStyle) []Span {
		var found []Span
		for _, n := range scan(text, start, end, style) {
			if whole, ok := beside(p, text, n, start, end); ok {
				found = append(found, whole)
			}
		}
		return found
	}
}

// beside returns a number with the unit behind or in front of it.
func beside(p *schema.Property, text string, n Span, start, end int) (Span, bool) {
	reach := min(end, n.End+maxUnitBytes)
	// The longest unit comes first, as one may begin with another.
	for to := reach; to > n.End; to-- {
		whole := text[n.Start:to]
		if to < len(text) && (!utf8.RuneStart(text[to]) || IsWordByte(text[to]) && IsWordByte(text[to-1])) {
			continue
		}
		if number, unit := p.CutUnit(whole); unit != nil && len(number) <= n.End-n.Start {
			return NewSpan(n.Start, to), true
		}
	}

	for from := max(start, n.Start-maxUnitBytes); from < n.Start; from++ {
		if !utf8.RuneStart(text[from]) || from > 0 && IsWordByte(text[from]) && IsWordByte(text[from-1]) {
			continue
		}
		if number, unit := p.CutUnit(text[from:n.End]); unit != nil && len(number) <= n.End-n.Start {
			return NewSpan(from, n.End), true
		}
	}

	return Span{}, false
}

// scanDurations finds durations.
func scanDurations(text string, start, end int) []Span {
	var found []Span
	text = text[:end]

	for i := start; i < end; i++ {
		if !utf8.RuneStart(text[i]) || !calendar.BeginsDuration(text, i) {
			continue
		}
		if _, to, ok := calendar.DurationAt(text, i); ok {
			found = append(found, NewSpan(i, to))
			i = to - 1
		}
	}

	return found
}

// scanCurrencies finds the currencies that stand beside numbers.
func scanCurrencies(text string, start, end int) []Span {
	var found []Span
	for _, n := range scanNumbers(text, start, end, format.NumberStyle{}) {
		if c, ok := currencyBeside(text, n, start, end); ok && !(c.Of(text) == "$" && isSection(text[:end], n.End)) {
			found = append(found, c)
		}
	}
	return found
}

// isSection reports whether the number that ends at end is that of a section of a law, such as
// "$4 Nr. 10a UStG": files whose letters are wrongly mapped have a dollar for the sign of one.
func isSection(text string, end int) bool {
	rest := strings.TrimLeft(text[end:], " \u00a0")
	word := rest
	if i := strings.IndexFunc(rest, func(c rune) bool { return !unicode.IsLetter(c) }); i >= 0 {
		word = rest[:i]
	}
	return slices.Contains(sectionWords, strings.ToLower(word))
}

// sectionWords stand behind the number of a section of a law: names of its parts, and of laws.
var sectionWords = strings.Fields("nr nummer abs absatz satz ziff ziffer lit buchst buchstabe ustg estg bgb hgb ao vvg versstg")

// currencyBeside returns the sign, code or name right in front of a number or behind
// it.
func currencyBeside(text string, n Span, start, end int) (Span, bool) {
	n = Trim(text, n)
	for n.Start < n.End && !IsDigit(text[n.Start]) {
		_, width := utf8.DecodeRuneInString(text[n.Start:])
		n.Start += width
	}

	front := max(start, n.Start-currencyReach)
	// The reach is in bytes and may end within a character.
	for front < n.Start && !utf8.RuneStart(text[front]) {
		front++
	}

	head := NewSpan(front, n.Start)
	head.End -= len(text[head.Start:head.End]) - len(strings.TrimRight(text[head.Start:head.End], " \t\n\u00a0)]:="))
	if i := strings.LastIndexFunc(text[head.Start:head.End], endsCurrency); i >= 0 {
		_, width := utf8.DecodeRuneInString(text[head.Start+i:])
		head.Start += i + width
	}

	if _, ok := format.ParseCurrency(text[head.Start:head.End]); ok {
		return head, true
	}

	back := min(end, n.End+2*currencyReach)
	for back > n.End && back < len(text) && !utf8.RuneStart(text[back]) {
		back--
	}

	rest := strings.TrimLeft(text[n.End:back], " \u00a0([")
	word := rest
	if i := strings.IndexFunc(rest, endsCurrency); i >= 0 {
		word = rest[:i]
	}

	at := back - len(rest)
	word = strings.TrimRight(word, ".")

	if _, ok := format.ParseCurrency(word); ok {
		return NewSpan(at, at+len(word)), true
	}

	return Span{}, false
}

// currencyReach is how many bytes in front of a number its currency may take; behind it the
// name may be twice as long.
const currencyReach = 12

// endsCurrency reports whether a character is no part of the sign, code or name of a
// currency: a space, a bracket, or a sign between the cells of a table.
func endsCurrency(c rune) bool {
	return unicode.IsSpace(c) || strings.ContainsRune("()[]{}\"',;:|=", c)
}
