// Package shorten makes texts short enough to be shown or kept.
package shorten

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// mark stands where something was left out.
const mark = "…"

// Text returns a text as it is, or its first characters, at most so many, and a mark.
func Text(text string, characters int) string {
	// A text of few bytes has few characters, so most texts need not be counted.
	if len(text) <= characters {
		return text
	}

	n := 0
	for at := range text {
		if n == characters {
			return text[:at] + mark
		}
		n++
	}
	return text
}

// Line is Text of a text on one line: white space is one blank, and bytes that are no UTF-8
// are left out.
func Line(text string, characters int) string {
	return Text(strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " "), characters)
}

// Visible returns a text on one line without invisible characters.
func Visible(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == unicode.ReplacementChar || !unicode.IsGraphic(r):
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// Bytes returns the beginning of a text, of at most so many bytes. It does not end within a
// character, and has no mark.
func Bytes(text string, bytes int) string { return text[:Boundary(text, bytes)] }

// MarkedBytes is Bytes with a mark where something was left out. The mark counts.
func MarkedBytes(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	return Bytes(text, bytes-len(mark)) + mark
}

// Boundary returns where the character begins in which a byte of a text stands: the byte
// itself where a character begins, and the length of the text where there is no such byte.
// Bytes that are no UTF-8 are characters of their own.
func Boundary(text string, at int) int {
	at = max(at, 0)
	if at >= len(text) {
		return len(text)
	}

	for i := at; i > at-utf8.UTFMax && i >= 0; i-- {
		if utf8.RuneStart(text[i]) {
			return i
		}
	}
	return at
}
