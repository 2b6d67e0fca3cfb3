package ooxml

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// escapeLength is the length of the form in which a file writes a character that XML cannot
// have, such as _x000D_ for a carriage return (ECMA-376, part 1, 22.9.2.19).
const escapeLength = len("_x000D_")

// unescape returns a text with the characters that such forms stand for: ends of lines as one
// line feed, and other control characters as blanks. The form of an underscore, _x005F_, keeps
// what looks like such a form from being one.
func unescape(s string) string {
	at := strings.Index(s, "_x")
	if at < 0 {
		return s
	}

	var b strings.Builder
	for ; at >= 0; at = strings.Index(s, "_x") {
		b.WriteString(s[:at])
		s = s[at:]
		unit, ok := escapedCharacter(s)
		if !ok {
			b.WriteString(s[:len("_x")])
			s = s[len("_x"):]
			continue
		}

		s = s[escapeLength:]

		if low, ok := escapedCharacter(s); ok && utf16.IsSurrogate(unit) {
			unit, s = utf16.DecodeRune(unit, low), s[escapeLength:]
		}

		switch {
		case unit == '\r' && (strings.HasPrefix(s, "\n") || strings.HasPrefix(s, "_x000A_")): // the end of the line follows
		case unit == '\r' || unit == '\n':
			b.WriteByte('\n')
		case unicode.IsControl(unit):
			b.WriteByte(' ')
		default:
			b.WriteRune(unit)
		}
	}

	b.WriteString(s)
	return b.String()
}

// escapedCharacter returns the character in whose form s begins: one, or the half of one.
func escapedCharacter(s string) (unit rune, ok bool) {
	if len(s) < escapeLength || s[:2] != "_x" || s[escapeLength-1] != '_' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:escapeLength-1], 16, 16)
	return rune(n), err == nil
}
