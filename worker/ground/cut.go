package ground

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cutsWord reports whether the bytes [start, end) of the text begin or end within a
// word or a number, or leave off what may turn their meaning round: the sign of a
// number, a "non-", the first half of a word that is parted at a line's end. So
// they do at an end of a chunk where nobody can tell. Characters that are not
// seen part nothing.
func (t *Text) cutsWord(start, end int) bool {
	a, b := t.borderAt(start), t.borderAt(end)
	return a.isUndecidable() || b.isUndecidable() || a.isInsideWord() || b.isInsideWord() || cutsBefore(a.before, a.behind) ||
		cutsBehind(b.before, b.behind, t.continuesBehind) ||
		t.continuesBefore && mayContinueWord(a.before, a.behind) || t.continuesBehind && b.behind == "" && endsInWord(b.before) ||
		(t.continuesBefore || t.continuesBehind) && trimInvisibleLeft(t.text[start:end]) == "" ||
		t.continuesBefore && start < maxAbout && mayJoinAcross(reverseRunes(a.behind), reverseRunes(a.before)) ||
		t.continuesBehind && end > len(t.text)-maxAbout && mayJoinAcross(b.before, b.behind)
}

// maxAbout is how many bytes on either side of a cut are looked at.
const maxAbout = 1 << 10

// A border is a place of a text: up to maxAbout bytes before it, and behind it.
type border struct{ before, behind string }

func (t *Text) borderAt(p int) border {
	b := border{t.text[max(0, p-maxAbout):p], t.text[p:min(len(t.text), p+maxAbout)]}
	for b.before != "" && !utf8.RuneStart(b.before[0]) {
		b.before = b.before[1:]
	}
	return b
}

// isUndecidable reports whether so much stands there that is not seen that nobody can
// tell what it parts.
func (b border) isUndecidable() bool {
	const most = maxAbout - utf8.UTFMax
	return len(b.before) > most && trimInvisibleRight(b.before) == "" || len(b.behind) > most && !utf8.FullRuneInString(trimInvisibleLeft(b.behind))
}

// mayContinueWord reports whether a word or a number stands at the front of a chunk, or
// behind nothing but a hyphen and white space there, or half of un- or non-, so
// that the chunk before it may hold its first half. Nothing that is seen may stand
// within one.
func mayContinueWord(before, behind string) bool {
	switch before = trimInvisibleLeft(before); strings.ToLower(strings.TrimRightFunc(before, isHyphen)) {
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

// endsInWord reports whether s ends with a part of a word or of a number, or with what a
// mark behind it may belong to, or with nothing that is seen.
func endsInWord(s string) bool {
	r, size := utf8.DecodeLastRuneInString(trimInvisibleRight(s))
	return size == 0 || kindOf(r) != none
}

// mayJoinAcross reports whether nothing but punctuation stands between a word or a number
// that before ends with and the end of a chunk, which behind goes on to, so that
// the two halves of a number, or of a word with a hyphen or an apostrophe, may be
// parted there.
func mayJoinAcross(before, behind string) bool {
	if endsWith(trimInvisibleRight(before), digit) {
		behind = strings.TrimLeft(trimInvisibleLeft(behind), "eE") // of a power of ten
	}
	if strings.ContainsFunc(behind, partsWords) {
		return false
	}
	word := strings.TrimRightFunc(before, func(r rune) bool { return !partsWords(r) })
	marks := before[len(word):] + behind
	if word == "" || endsWith(word, digit) {
		return true // one may follow that they part from another
	}
	return behind != "" && (endsWith(word, letter) || endsWith(word, mark)) && strings.ContainsFunc(marks, func(r rune) bool {
		return isHyphen(r) || plainRune(r) == '\'' || isInvisible(r)
	})
}

// partsWords reports whether r is white space or belongs to a word or a number.
func partsWords(r rune) bool {
	k := kindOf(r)
	return unicode.IsSpace(r) || k == letter || k == digit || k == single || k == mark
}

// reverseRunes returns the characters of s in the other order, by which what stands
// before a place is looked at as what stands behind one.
func reverseRunes(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

// isInvisible reports whether r shows nothing and parts nothing.
func isInvisible(r rune) bool { return r == softHyphen || plainRune(r) == ignored }

// trimInvisibleLeft and seenLast return s without what is not seen at its one end.
func trimInvisibleLeft(s string) string  { return strings.TrimLeftFunc(s, isInvisible) }
func trimInvisibleRight(s string) string { return strings.TrimRightFunc(s, isInvisible) }

// isInsideWord reports whether b is within a word or a number.
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
	return next == digit && endsWith(trimInvisibleRight(before[:len(before)-n]), digit) && joinsNumber(last, behind)
}

// joinsNumber reports whether r, between a digit and behind, parts the digits of one
// number: as its decimal point, or as a mark between thousands.
func joinsNumber(r rune, behind string) bool {
	behind = trimInvisibleLeft(behind)
	switch r {
	case '.', ',', '\'', '’', '·', '٫', '٬', '．', '，', '⁄':
		return startsWith(behind, digit)
	case '\u00a0', '\u2007', '\u2009', '\u202f':
		n := skipKinds(behind, 0, digit, digit)
		return utf8.RuneCountInString(behind[:n]) == 3
	}
	return false
}

// startsWithExponent reports whether s, behind a digit, begins with a power of ten, as in
// 1.5e6.
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

// cutsBefore reports whether what stands before a cut belongs to what begins
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

// endsWithNegativePrefix reports whether s ends with the prefix of a word that turns it round.
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

// endsWithLineHyphen reports whether s ends with a hyphen at the end of a line, behind
// a letter.
func endsWithLineHyphen(s string) bool {
	line := strings.TrimRightFunc(s, isBlank)
	if !strings.ContainsFunc(s[len(line):], endsLine) {
		return false
	}
	word := strings.TrimRightFunc(line, isHyphen)
	return word != line && endsWith(trimInvisibleRight(word), letter)
}

// isBlank reports whether r is white space, or not seen and no hyphen.
func isBlank(r rune) bool { return unicode.IsSpace(r) || plainRune(r) == ignored }

// cutsBehind reports whether what stands behind a cut belongs to what ends there.
// More says that the text goes on behind its end.
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
	r, _ := utf8.DecodeRuneInString(next)
	return unicode.IsLower(r)
}
