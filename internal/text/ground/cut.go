package ground

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cutsWord reports whether the bytes [start, end) of the text begin or end within
// a word or a number, or leave off something that may reverse their meaning: the
// sign of a number, a "non-", the first half of a word that is hyphenated at the
// end of a line. At an end of a chunk it reports true if the chunk cannot tell.
// Invisible characters separate nothing.
func (t *Text) cutsWord(start, end int) bool {
	a, b := t.borderAt(start), t.borderAt(end)
	return a.isUndecidable() || b.isUndecidable() || a.isInsideWord() || b.isInsideWord() || cutsBefore(a.before, a.behind) ||
		cutsBehind(b.before, b.behind, t.continuesBehind) ||
		t.continuesBefore && mayContinueWord(a.before, a.behind) || t.continuesBehind && trimInvisibleLeft(b.behind) == "" && endsInWord(b.before) ||
		(t.continuesBefore || t.continuesBehind) && trimInvisibleLeft(t.text[start:end]) == "" ||
		t.continuesBefore && start < maxAbout && mayJoinAcross(reverseRunes(a.behind), reverseRunes(a.before)) ||
		t.continuesBehind && end > len(t.text)-maxAbout && mayJoinAcross(b.before, b.behind)
}

// maxAbout bounds the bytes inspected on either side of a cut.
const maxAbout = 1 << 10

// A border is the text around an offset: up to maxAbout bytes on either side.
type border struct{ before, behind string }

func (t *Text) borderAt(p int) border {
	b := border{t.text[max(0, p-maxAbout):p], t.text[p:min(len(t.text), p+maxAbout)]}
	for b.before != "" && !utf8.RuneStart(b.before[0]) {
		b.before = b.before[1:]
	}
	return b
}

// isUndecidable reports whether invisible characters fill one side of the border,
// so that the visible text behind them is out of reach.
func (b border) isUndecidable() bool {
	const most = maxAbout - utf8.UTFMax
	return len(b.before) > most && trimInvisibleRight(b.before) == "" || len(b.behind) > most && !utf8.FullRuneInString(trimInvisibleLeft(b.behind))
}

// mayContinueWord reports whether the text at the front of a chunk may continue a
// word or a number of the chunk before. It may if only hyphens and white space, or
// half of "un-" or "non-", stand before the word, or if no visible text is there.
func mayContinueWord(before, behind string) bool {
	switch before = trimInvisibleLeft(before); strings.ToLower(strings.TrimRightFunc(trimInvisibleRight(before), isHyphen)) {
	case "n", "on": // of un- or non-
		return true
	}

	line := strings.TrimLeftFunc(before, func(r rune) bool { return isHyphen(r) || isInvisible(r) })
	if strings.TrimSpace(line) != "" || line == "" && before != "" {
		return false
	}

	r, size := utf8.DecodeRuneInString(trimInvisibleLeft(behind))
	k := kindOf(r)
	return size == 0 || k == letter || k == digit || k == mark
}

// endsInWord reports whether the last visible character of s may be part of a
// word or number that goes on behind s. It is true if s has no visible character.
func endsInWord(s string) bool {
	r, size := utf8.DecodeLastRuneInString(trimInvisibleRight(s))
	return size == 0 || kindOf(r) != none
}

// mayJoinAcross reports whether a number, or a word with a hyphen or an
// apostrophe, may have its halves in two chunks. behind is the rest of the chunk;
// nothing but punctuation may stand between its end and the last word of before.
func mayJoinAcross(before, behind string) bool {
	if mayGroupAcross(before, behind) {
		return true
	}

	if endsWith(trimInvisibleRight(before), digit) {
		behind = strings.TrimLeft(trimInvisibleLeft(behind), "eE") // of a power of ten
	}

	if strings.ContainsFunc(behind, partsWords) {
		return false
	}

	// What is left behind the last word is punctuation, which may be the middle of a word
	// whose other half is in the next chunk.
	word := strings.TrimRightFunc(before, func(r rune) bool { return !partsWords(r) })
	marks := before[len(word):] + behind
	if word == "" || endsWith(word, digit) {
		return true // the next chunk may go on with the same number
	}
	return behind != "" && (endsWith(word, letter) || endsWith(word, mark)) && strings.ContainsFunc(marks, func(r rune) bool {
		return isHyphen(r) || plainRune(r) == '\'' || isInvisible(r)
	})
}

// mayGroupAcross reports whether a number whose thousands are parted by a space may
// have its halves in two chunks: behind the last digits of before stand that space
// and less than a whole group, and nothing else.
func mayGroupAcross(before, behind string) bool {
	number := strings.TrimRightFunc(before, func(r rune) bool { return isGroupSpace(r) || isInvisible(r) })
	if !endsWith(number, digit) {
		return false
	}

	spaces, digits := 0, 0
	for _, r := range before[len(number):] + behind {
		switch {
		case isInvisible(r):
		case digits == 0 && isGroupSpace(r):
			spaces++
		case kindOf(r) == digit:
			digits++
		default:
			return false
		}
	}

	// A whole group of three digits needs nothing of the next chunk.
	return spaces == 1 && digits < 3
}

// isGroupSpace reports whether r may part the thousands of a number.
func isGroupSpace(r rune) bool {
	switch r {
	case '\u00a0', '\u2007', '\u2009', '\u202f':
		return true
	}
	return false
}

// partsWords reports whether r is white space or belongs to a word or a number.
func partsWords(r rune) bool {
	k := kindOf(r)
	return unicode.IsSpace(r) || k == letter || k == digit || k == single || k == mark
}

// reverseRunes returns the characters of s in reverse order. A check written for
// the text behind a place then serves for the text before one.
func reverseRunes(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

// isInvisible reports whether r shows nothing and separates nothing.
func isInvisible(r rune) bool { return r == softHyphen || plainRune(r) == ignored }

// trimInvisibleLeft and trimInvisibleRight return s without the invisible
// characters at that end.
func trimInvisibleLeft(s string) string  { return strings.TrimLeftFunc(s, isInvisible) }
func trimInvisibleRight(s string) string { return strings.TrimRightFunc(s, isInvisible) }

// isInsideWord reports whether the border is within a word or a number.
func (b border) isInsideWord() bool {
	before, behind := trimInvisibleRight(b.before), trimInvisibleLeft(b.behind)
	last, n := utf8.DecodeLastRuneInString(before)
	first, m := utf8.DecodeRuneInString(behind)
	if n == 0 || m == 0 {
		return false
	}

	k, next := kindOf(last), kindOf(first)
	switch {
	case next == mark:
		return k != none
	case k == letter || k == mark:
		return next == letter
	case k == digit:
		return next == digit || joinsNumber(first, behind[m:]) || startsWithExponent(behind)
	}

	// What is before the border may be a point or a comma within a number.
	return next == digit && endsWith(trimInvisibleRight(before[:len(before)-n]), digit) && joinsNumber(last, behind)
}

// joinsNumber reports whether r, between a digit and behind, is the decimal point
// or a thousands separator of one number.
func joinsNumber(r rune, behind string) bool {
	behind = trimInvisibleLeft(behind)
	switch r {
	case '.', ',', '\'', '’', '·', '٫', '٬', '．', '，', '⁄':
		return startsWith(behind, digit)
	}

	if isGroupSpace(r) {
		n := skipKinds(behind, 0, digit, digit)
		return utf8.RuneCountInString(behind[:n]) == 3
	}
	return false
}

// startsWithExponent reports whether s, behind a digit, begins with a power of
// ten, as in 1.5e6.
func startsWithExponent(s string) bool {
	if s[0]|0x20 != 'e' {
		return false
	}
	s = s[1:]
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	return startsWith(s, digit)
}

// letterMeetsDigit reports whether a letter and a digit meet at offset p of s.
func letterMeetsDigit(s string, p int) bool {
	return endsWith(s[:p], letter) && startsWith(s[p:], digit) || endsWith(s[:p], digit) && startsWith(s[p:], letter)
}

// cutsBefore reports whether the text before a cut belongs to the word or number
// behind it.
func cutsBefore(before, behind string) bool {
	seen, behind := trimInvisibleRight(before), trimInvisibleLeft(behind)
	switch {
	case startsWith(behind, digit):
		return endsWithSign(seen) || endsWithPoint(seen)
	case startsWith(behind, letter):
		return endsWithNegativePrefix(seen) || endsWithLineHyphen(before)
	}
	return false
}

// isHyphen reports whether r joins two halves of a word.
func isHyphen(r rune) bool {
	switch r {
	case '-', '‐', '‑', softHyphen:
		return true
	}
	return false
}

// endsWithNegativePrefix reports whether s ends with "non-" or "un-".
func endsWithNegativePrefix(s string) bool {
	word := strings.TrimRightFunc(s, isHyphen)
	if word == s {
		return false
	}

	for _, prefix := range [...]string{"non", "un"} {
		if n := len(word) - len(prefix); n >= 0 && strings.EqualFold(word[n:], prefix) && !endsWith(word[:n], letter) {
			return true
		}
	}
	return false
}

// endsWithLineHyphen reports whether s ends with a hyphen at the end of a line,
// behind a letter.
func endsWithLineHyphen(s string) bool {
	line := strings.TrimRightFunc(s, isBlank)
	if !strings.ContainsFunc(s[len(line):], endsLine) {
		return false
	}
	word := strings.TrimRightFunc(line, isHyphen)
	return word != line && endsWith(trimInvisibleRight(word), letter)
}

// isBlank reports whether r is white space or ignored by normalisation.
func isBlank(r rune) bool { return unicode.IsSpace(r) || plainRune(r) == ignored }

// cutsBehind reports whether the text behind a cut belongs to the word that ends
// there. more is true if the document goes on behind the text.
func cutsBehind(before, behind string, more bool) bool {
	before = trimInvisibleRight(before)
	if !endsWith(before, letter) {
		return false
	}
	if c := before[len(before)-1] | 0x20; c == 'n' && negativeEnding(trimInvisibleLeft(behind)) > 0 {
		return true
	}

	line := strings.TrimLeftFunc(behind, isHyphen)
	if line == behind {
		return false
	}

	next := strings.TrimLeftFunc(line, isBlank)
	if next == "" && more {
		return true // the line may end there
	}
	if !strings.ContainsFunc(line[:len(line)-len(next)], endsLine) {
		return false
	}

	// A hyphen at the end of a line parts a word only if the next line goes on in small
	// letters.
	r, _ := utf8.DecodeRuneInString(next)
	return unicode.IsLower(r)
}
