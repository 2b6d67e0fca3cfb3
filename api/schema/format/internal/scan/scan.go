// Package scan reads the words and gaps of a text, of which numbers, dates and durations written out
// are made. It must import nothing of the project: it knows no words.
package scan

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Word returns the word that begins at s[i], of at most limit bytes; "" if there
// is none, or a longer one.
func Word(s string, i, limit int) string {
	for end := i; ; {
		c, width := utf8.DecodeRuneInString(s[end:])
		if end == len(s) || !unicode.IsLetter(c) {
			return s[i:end]
		}
		if end += width; end-i > limit {
			return ""
		}
	}
}

// IsEastAsian reports whether a letter is one of East Asia, where no blank sets words apart.
func IsEastAsian(c rune) bool {
	return unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// SkipSpace returns the end of the white space that begins at s[i], the end of one line included.
func SkipSpace(s string, i int) int {
	lines := 0
	for i < len(s) && strings.IndexByte(" \t\r\n", s[i]) >= 0 {
		if s[i] == '\n' {
			if lines++; lines > 1 {
				return i
			}
		}
		i++
	}
	return i
}
