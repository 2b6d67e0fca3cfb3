package rules

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
)

// withWords finds what scan does, and numbers in words. Where the same number stands
// in digits behind the words, in parentheses, both are one.
func withWords(scan scanner) scanner {
	return func(text string, start, end int) []span {
		digits := scan(text, start, end)
		var found []span
		for _, w := range findWords(text, start, end) {
			if len(found) > 0 && w.start < found[len(found)-1].end {
				continue
			}
			if _, to, ok := format.WordsAt(text[:end], w.start); ok && isWholeWord(text, w.start, to) {
				found = append(found, withDigits(text[:end], span{w.start, to}))
			}
		}
		words := found
		for _, d := range digits {
			for len(words) > 0 && words[0].end <= d.start {
				words = words[1:]
			}
			if len(words) == 0 || d.end <= words[0].start {
				found = append(found, d)
			}
		}
		slices.SortFunc(found, func(a, b span) int { return cmp.Compare(a.start, b.start) })
		return found
	}
}

func isWholeWord(text string, start, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:start])
	after, _ := utf8.DecodeRuneInString(text[end:])
	return (start == 0 || !unicode.IsLetter(before) && !unicode.IsDigit(before)) && (end == len(text) || !unicode.IsLetter(after) && !unicode.IsDigit(after))
}

// withDigits extends a number in words over the same in parentheses.
func withDigits(text string, words span) span {
	rest := strings.TrimLeft(text[words.end:], " \n\r\t")
	if !strings.HasPrefix(rest, "(") {
		return words
	}
	shut := strings.IndexByte(rest[:min(len(rest), 40)], ')')
	if shut < 0 {
		return words
	}
	whole := span{words.start, len(text) - len(rest) + shut + 1}
	if _, ok := format.ParseNumberWords(text[whole.start:whole.end]); !ok {
		return words
	}
	return whole
}

// maxUnitBytes bounds a unit with the white space between it and its number.
const maxUnitBytes = 40

// withUnits finds those numbers beside which one of the units of p stands, and the
// unit with them.
func withUnits(p *schema.Property, scan scanner) scanner {
	return func(text string, start, end int) []span {
		var found []span
		for _, n := range scan(text, start, end) {
			if whole, ok := beside(p, text, n, start, end); ok {
				found = append(found, whole)
			}
		}
		return found
	}
}

// beside returns a number with the unit behind or in front of it.
func beside(p *schema.Property, text string, n span, start, end int) (span, bool) {
	reach := min(end, n.end+maxUnitBytes)
	for to := reach; to > n.end; to-- {
		whole := text[n.start:to]
		if to < len(text) && (!utf8.RuneStart(text[to]) || isWordByte(text[to]) && isWordByte(text[to-1])) {
			continue
		}
		if number, unit := p.CutUnit(whole); unit != nil && len(number) <= n.end-n.start {
			return span{n.start, to}, true
		}
	}
	for from := max(start, n.start-maxUnitBytes); from < n.start; from++ {
		if !utf8.RuneStart(text[from]) || from > 0 && isWordByte(text[from]) && isWordByte(text[from-1]) {
			continue
		}
		if number, unit := p.CutUnit(text[from:n.end]); unit != nil && len(number) <= n.end-n.start {
			return span{from, n.end}, true
		}
	}
	return span{}, false
}

// scanDurations finds durations.
func scanDurations(text string, start, end int) []span {
	var found []span
	text = text[:end]
	for i := start; i < end; i++ {
		if !utf8.RuneStart(text[i]) || !format.BeginsDuration(text, i) {
			continue
		}
		if _, to, ok := format.DurationAt(text, i); ok {
			found = append(found, span{i, to})
			i = to - 1
		}
	}
	return found
}

// scanCurrencies finds the currencies that stand beside numbers.
func scanCurrencies(text string, start, end int) []span {
	var found []span
	for _, n := range scanNumbers(text, start, end) {
		if c, ok := currencyBeside(text, n, start, end); ok {
			found = append(found, c)
		}
	}
	return found
}

// currencyBeside returns the sign, code or name right in front of a number or behind
// it.
func currencyBeside(text string, n span, start, end int) (span, bool) {
	n = trimSpan(text, n)
	for n.start < n.end && !isDigit(text[n.start]) {
		_, width := utf8.DecodeRuneInString(text[n.start:])
		n.start += width
	}
	head := trimSpan(text, span{max(start, n.start-12), n.start})
	from := head.start + strings.LastIndexFunc(text[head.start:head.end], func(c rune) bool { return unicode.IsSpace(c) || c == '(' }) + 1
	if _, ok := format.ParseCurrency(text[from:head.end]); ok && from < head.end {
		return span{from, head.end}, true
	}
	tail := trimSpan(text, span{n.end, min(end, n.end+24)})
	for _, w := range strings.Fields(text[tail.start:tail.end])[:min(2, len(strings.Fields(text[tail.start:tail.end])))] {
		at := strings.Index(text[tail.start:tail.end], w) + tail.start
		w = strings.TrimRight(w, ".,;:)")
		if _, ok := format.ParseCurrency(w); ok {
			return span{at, at + len(w)}, true
		}
	}
	return span{}, false
}
