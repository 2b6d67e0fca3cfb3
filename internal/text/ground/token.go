package ground

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A kind classifies a character, or a token of such characters.
type kind int8

const (
	none   kind = iota // white space and most punctuation: no token
	letter             // of a script with spaces between words
	digit              // of a number
	single             // of a script without spaces between words: each is a token
	mark               // belongs to the character before it
	symbol             // changes the meaning of a number: each is a token
)

// kindOf returns the kind of r.
func kindOf(r rune) kind {
	if r < utf8.RuneSelf {
		return kindOfASCII(byte(r))
	}

	switch {
	case unicode.IsMark(r):
		return mark
	case unicode.IsLetter(r):
		// In these scripts nothing parts words, so each character is a token.
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) {
			return single
		}
		return letter
	case unicode.IsNumber(r):
		return digit
	case unicode.In(r, unicode.Sc, unicode.Sm), r == '‰':
		return symbol
	}
	return none
}

func kindOfASCII(c byte) kind {
	switch {
	case 'a' <= c|0x20 && c|0x20 <= 'z':
		return letter
	case '0' <= c && c <= '9':
		return digit
	}

	switch c {
	case '$', '%', '+', '<', '=', '>', '^', '~':
		return symbol
	}
	return none
}

// A token is a word, a number, a character of a script without words, or a
// symbol: the bytes [start, end) of a text.
type token struct {
	start, end int
	kind       kind
}

// splitTokens returns the tokens of s in order. A token depends on nothing farther
// away than the next two characters. So a part of s has the same tokens as s has
// there, except that the first and the last may be parts of tokens of s.
func splitTokens(s string) []token {
	list := make([]token, 0, len(s)/6+1)
	for i := 0; i < len(s); {
		if s[i] == ' ' {
			i++
			continue
		}

		t := tokenAt(s, i)
		if t.kind != none {
			list = append(list, t)
		}

		i = t.end
	}
	return list
}

// tokenAt returns the token at offset i of s, of kind none if there is no token.
func tokenAt(s string, i int) token {
	r, size := utf8.DecodeRuneInString(s[i:])
	t := token{start: i, end: i + size, kind: kindOf(r)}

	switch t.kind {
	case letter:
		t.end = wordEnd(s, t.end)
	case digit:
		t.end = numberEnd(s, t.end)
	case single:
		t.end = skipKinds(s, t.end, mark, mark)
	case mark: // of no word
		t.kind = none
	case none:
		if joinsDigits(s, i, t.end) || isSignAt(s, i) || isPointAt(s, i) {
			t.kind = symbol
		}
	}
	return t
}

// skipKinds returns the offset of the first character of s from i on that is of
// neither kind.
func skipKinds(s string, i int, a, b kind) int {
	for i < len(s) {
		if c := s[i]; c < utf8.RuneSelf {
			if k := kindOfASCII(c); k != a && k != b {
				break
			}
			i++
			continue
		}

		r, size := utf8.DecodeRuneInString(s[i:])
		if k := kindOf(r); k != a && k != b {
			break
		}
		i += size
	}
	return i
}

// wordEnd returns the end of the word that goes on at offset i of s. The ending of
// "don't" belongs to the word, because it negates it; that of "Iraq's" does not.
func wordEnd(s string, i int) int {
	i = skipKinds(s, i, letter, mark)

	if s[i-1] != 'n' && s[i-1] != 'N' {
		return i
	}

	return i + negativeEnding(s[i:])
}

// negativeEnding returns the length of the "'t" of a word such as "don't" at the
// front of s, 0 if there is none. The text before s ends with an n.
func negativeEnding(s string) int {
	r, size := utf8.DecodeRuneInString(s)
	if rest := s[size:]; plainRune(r) == '\'' && rest != "" && rest[0]|0x20 == 't' && skipKinds(rest, 1, letter, mark) == 1 {
		return size + 1
	}
	return 0
}

// numberEnd returns the end of the number that goes on at offset i of s.
func numberEnd(s string, i int) int {
	for {
		i = skipKinds(s, i, digit, digit)
		if i >= len(s) || !isDigitSeparator(s[i]) || !startsWith(s[i+1:], digit) {
			return i
		}
		i++
	}
}

// isDigitSeparator reports whether c separates digits of one number.
func isDigitSeparator(c byte) bool { return c == '.' || c == ',' }

// joinsDigits reports whether the bytes [i, end) of s, which are no token by
// themselves, stand between two digits, as in 3-5, 10:30 and 3 - 5.
func joinsDigits(s string, i, end int) bool {
	r, _ := utf8.DecodeRuneInString(s[i:])
	before, behind := s[:i], s[end:]

	if r == '-' || r == '/' {
		before, behind = strings.TrimSuffix(before, " "), strings.TrimPrefix(behind, " ")
	}
	return !unicode.IsSpace(r) && endsWith(before, digit) && startsWith(behind, digit)
}

// isSignAt reports whether offset i of s holds the sign of a number.
func isSignAt(s string, i int) bool {
	return s[i] == '-' && startsWith(s[i+1:], digit) && endsWithSign(s[:i+1])
}

// endsWithSign reports whether s, before a digit, ends with the sign of the number
// and not with the dash of a range or a list.
func endsWithSign(s string) bool {
	r, size := utf8.DecodeLastRuneInString(s)
	if plainRune(r) != '-' || isBreak(r) {
		return false
	}

	before, n := utf8.DecodeLastRuneInString(trimInvisibleRight(s[:len(s)-size]))
	return n == 0 || kindOf(before) == symbol || kindOf(before) == none && plainRune(before) != '-'
}

// isBreak reports whether r is a dash between phrases, and not a minus.
func isBreak(r rune) bool {
	switch r {
	case '—', '―', '⁃', '﹘':
		return true
	}
	return false
}

// isPointAt reports whether offset i of s holds the leading point of a number,
// as in .5.
func isPointAt(s string, i int) bool {
	return s[i] == '.' && startsWith(s[i+1:], digit) && endsWithPoint(s[:i+1])
}

// endsWithPoint reports whether s, before a digit, ends with the leading point of
// the number.
func endsWithPoint(s string) bool {
	r, size := utf8.DecodeLastRuneInString(s)
	if r != '.' && r != '·' && r != '٫' {
		return false
	}

	before, n := utf8.DecodeLastRuneInString(trimInvisibleRight(s[:len(s)-size]))
	return n == 0 || kindOf(before) == symbol || kindOf(before) == none && before != r
}

// startsWith reports whether the first character of s is of kind k.
func startsWith(s string, k kind) bool {
	r, size := utf8.DecodeRuneInString(s)
	return size > 0 && kindOf(r) == k
}

// endsWith reports whether the last character of s is of kind k.
func endsWith(s string, k kind) bool {
	r, size := utf8.DecodeLastRuneInString(s)
	return size > 0 && kindOf(r) == k
}
