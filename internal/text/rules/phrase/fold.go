package phrase

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/coditect/mapreduce/api/schema/format"
)

// Phrases are compared by their letters, digits and a few symbols alone, so that
// "GRAND TOTAL", "Grand-Total:" and "GRANDTOTAL" are the same, and a phrase may
// be wrapped over the commented lines of a program. Scanners confuse some
// letters and digits, so these are folded together too: O and 0, I and L and 1,
// S and 5, B and 8. Raised and lowered digits are the digits that they look like, as
// people write CO₂ and CO2.

// foldTable gives for an ASCII byte what it folds to, 0 if it is left out.
var foldTable = func() (table [utf8.RuneSelf]byte) {
	for c := range table {
		switch b := byte(c); {
		case b >= '0' && b <= '9', b >= 'a' && b <= 'z', strings.IndexByte("+#%$&@", b) >= 0:
			table[c] = b
		case b >= 'A' && b <= 'Z':
			table[c] = b + 'a' - 'A'
		}
	}
	for letter, digit := range map[byte]byte{'o': '0', 'i': '1', 'l': '1', 's': '5', 'b': '8'} {
		table[letter], table[letter-'a'+'A'] = digit, digit
	}
	return table
}()

// isWritten reports whether c, which is beyond ASCII, is a letter or a digit, on the line
// or not.
func isWritten(c rune) bool {
	return unicode.IsLetter(c) || unicode.IsDigit(c) || isScriptDigit(c)
}

// isScriptDigit reports whether c is a raised or lowered digit.
func isScriptDigit(c rune) bool {
	return unicode.Is(unicode.No, c) && (format.IsRaised(c) || format.IsLowered(c))
}

// foldRune appends what a character beyond ASCII folds to: its letters in lower
// case without accents.
func foldRune(dst []byte, c rune) []byte {
	if !isWritten(c) {
		return dst
	}

	for _, part := range norm.NFKD.String(string(c)) {
		// Decomposed, an accent is a part of its own, which neither case keeps.
		switch {
		case part < utf8.RuneSelf:
			if b := foldTable[part]; b != 0 {
				dst = append(dst, b)
			}
		case unicode.IsLetter(part) || unicode.IsDigit(part):
			dst = utf8.AppendRune(dst, unicode.ToLower(part))
		}
	}

	return dst
}

// foldText returns the folded form of s.
func foldText(s string) []byte {
	var dst []byte
	for _, c := range s {
		if c >= utf8.RuneSelf {
			dst = foldRune(dst, c)
		} else if b := foldTable[c]; b != 0 {
			dst = append(dst, b)
		}
	}
	return dst
}

// Fold folds s as foldText does, but keeps letters and digits that
// scanners confuse apart.
func Fold(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c < utf8.RuneSelf && foldTable[c] == 0 || c >= utf8.RuneSelf && !isWritten(c):
			return -1
		case isScriptDigit(c):
			return rune(norm.NFKC.String(string(c))[0])
		}
		return unicode.ToLower(c)
	}, s)
}

// WithoutNotes returns s without the raised digits at its end, which may be those of notes.
func WithoutNotes(s string) string {
	return strings.TrimRightFunc(s, func(c rune) bool { return isScriptDigit(c) && format.IsRaised(c) })
}

// IsWord reports whether c is part of a word with visible ends. Scripts written
// without spaces have no such words.
func IsWord(c rune) bool {
	if c < utf8.RuneSelf {
		return c >= '0' && c <= '9' || (c|0x20) >= 'a' && (c|0x20) <= 'z'
	}
	if unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) {
		return false
	}
	return unicode.IsLetter(c) || unicode.IsDigit(c) || isScriptDigit(c) && format.IsLowered(c)
}

// wholeWords reports whether text[start:end] is not part of a longer word. A
// number may follow at once, as in TOTAL9.00.
func wholeWords(text string, start, end int) bool {
	first, _ := utf8.DecodeRuneInString(text[start:])
	before, _ := utf8.DecodeLastRuneInString(text[:start])
	if start > 0 && IsWord(first) && IsWord(before) {
		return false
	}

	last, _ := utf8.DecodeLastRuneInString(text[:end])
	after, _ := utf8.DecodeRuneInString(text[end:])
	if end == len(text) || !IsWord(last) || !IsWord(after) {
		return true
	}

	return unicode.IsDigit(after) && !unicode.IsDigit(last)
}
