package ground

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A kind is what a character, or a token made of such, is.
type kind int8

const (
	none   kind = iota // white space and most punctuation: no token
	letter             // of a script that parts its words
	digit              // of a number
	single             // of a script that does not part its words: each is a token
	mark               // belongs to the character before it
	symbol             // changes what a number means: each is a token
)

// kindOf returns what r is.
func kindOf(r rune) kind {
	if r < utf8.RuneSelf {
		return kindOfASCII(byte(r))
	}
	switch {
	case unicode.IsMark(r):
		return mark
	case unicode.IsLetter(r):
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

// tokens returns the tokens of s in order. What they are depends on nothing
// farther away than the next two characters, so that a part of s has the tokens
// that s has there, but for the first and the last, which may be parts of them.
func tokens(s string) []token {
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

// tokenAt returns the token that begins at offset i of s, or what is none.
func tokenAt(s string, i int) token {
	r, size := utf8.DecodeRuneInString(s[i:])
	t := token{start: i, end: i + size, kind: kindOf(r)}
	switch t.kind {
	case letter:
		t.end = wordEnd(s, t.end)
	case digit:
		t.end = numberEnd(s, t.end)
	case single:
		t.end = skip(s, t.end, mark, mark)
	case mark: // of no word
		t.kind = none
	case none:
		if joinsDigits(s, i, t.end) || signs(s, i) {
			t.kind = symbol
		}
	}
	return t
}

// skip returns the offset of the first character of s from i on that is of
// neither kind.
func skip(s string, i int, a, b kind) int {
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

// wordEnd returns where the word ends that goes on at offset i of s. The ending
// of "don't" belongs to it, because it turns it round; that of "Iraq's" does not.
func wordEnd(s string, i int) int {
	i = skip(s, i, letter, mark)
	if s[i-1] != 'n' && s[i-1] != 'N' {
		return i
	}
	return i + negativeEnding(s[i:])
}

// negativeEnding returns how many bytes at the front of s are the ending of
// "don't" behind its n.
func negativeEnding(s string) int {
	for _, apostrophe := range [...]string{"'", "’"} {
		rest, ok := strings.CutPrefix(s, apostrophe)
		if ok && rest != "" && rest[0]|0x20 == 't' && skip(rest, 1, letter, mark) == 1 {
			return len(apostrophe) + 1
		}
	}
	return 0
}

// numberEnd returns where the number ends that goes on at offset i of s.
func numberEnd(s string, i int) int {
	for {
		i = skip(s, i, digit, digit)
		if i >= len(s) || !separates(s[i]) || !startsWith(s[i+1:], digit) {
			return i
		}
		i++
	}
}

// separates reports whether c parts the digits of one number.
func separates(c byte) bool { return c == '.' || c == ',' }

// joinsDigits reports whether the bytes [i, end) of s, which are no token by
// themselves, stand between two digits, as in 3-5 and 10:30.
func joinsDigits(s string, i, end int) bool {
	r, _ := utf8.DecodeRuneInString(s[i:])
	return !unicode.IsSpace(r) && endsWith(s[:i], digit) && startsWith(s[end:], digit)
}

// signs reports whether offset i of s holds the sign of a number.
func signs(s string, i int) bool {
	if s[i] != '-' || !startsWith(s[i+1:], digit) {
		return false
	}
	r, size := utf8.DecodeLastRuneInString(s[:i])
	return size == 0 || r != '-' && kindOf(r) == none || kindOf(r) == symbol
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

// cuts reports whether the bytes [start, end) of s begin or end within a word
// or a number, or leave off what may turn their meaning round: the sign of a
// number, a "non-", the first half of a word that is parted at a line's end.
func cuts(s string, start, end int) bool {
	return parts(s, start) || parts(s, end) || cutsBefore(s, start) || cutsBehind(s, end)
}

// parts reports whether a cut at offset p of s goes through a word or a number.
func parts(s string, p int) bool {
	before, n := utf8.DecodeLastRuneInString(s[:p])
	behind, m := utf8.DecodeRuneInString(s[p:])
	if n == 0 || m == 0 {
		return false
	}
	a, b := kindOf(before), kindOf(behind)
	switch {
	case b == mark:
		return a != none
	case a == letter || a == mark:
		return b == letter
	case a == digit:
		return b == digit || separates(s[p]) && startsWith(s[p+1:], digit)
	}
	return b == digit && separates(s[p-n]) && endsWith(s[:p-n], digit)
}

// touches reports whether a letter and a digit meet at offset p of s.
func touches(s string, p int) bool {
	return endsWith(s[:p], letter) && startsWith(s[p:], digit) || endsWith(s[:p], digit) && startsWith(s[p:], letter)
}

// cutsBefore reports whether what stands before offset p of s belongs to what
// begins there.
func cutsBefore(s string, p int) bool {
	if startsWith(s[p:], digit) {
		before := strings.TrimSuffix(s[:p], "−")
		if before != s[:p] {
			return !endsWith(before, letter) && !endsWith(before, digit)
		}
		return p > 0 && (signs(s, p-1) || s[p-1] == '.' && endsWith(s[:p-1], none))
	}
	if !startsWith(s[p:], letter) {
		return false
	}
	return negates(s[:p]) || hyphenated(s[:p])
}

// negates reports whether s ends with the prefix of a word that turns it round.
func negates(s string) bool {
	const prefix = "non-"
	if n := len(s) - len(prefix); n >= 0 && strings.EqualFold(s[n:], prefix) {
		return n == 0 || !endsWith(s[:n], letter)
	}
	return false
}

// hyphenated reports whether s ends with a hyphen at the end of a line, behind
// a letter.
func hyphenated(s string) bool {
	line := strings.TrimRightFunc(s, unicode.IsSpace)
	if !strings.ContainsAny(s[len(line):], "\n\r") {
		return strings.HasSuffix(line, "\u00ad") && line == s
	}
	word := strings.TrimSuffix(strings.TrimSuffix(line, "-"), "\u00ad")
	return word != line && endsWith(word, letter)
}

// cutsBehind reports whether what stands behind offset p of s belongs to what
// ends there.
func cutsBehind(s string, p int) bool {
	if !endsWith(s[:p], letter) {
		return false
	}
	if c := s[p-1] | 0x20; c == 'n' && negativeEnding(s[p:]) > 0 {
		return true
	}
	rest := strings.TrimPrefix(s[p:], "\u00ad")
	if rest != s[p:] && startsWith(rest, letter) {
		return true
	}
	rest = strings.TrimPrefix(rest, "-")
	if rest == s[p:] {
		return false
	}
	line := strings.TrimLeft(rest, " \t\r")
	next := strings.TrimLeftFunc(line, unicode.IsSpace)
	r, _ := utf8.DecodeRuneInString(next)
	return strings.HasPrefix(line, "\n") && unicode.IsLower(r)
}
