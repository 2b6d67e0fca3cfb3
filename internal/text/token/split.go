package token

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A class tells which sets in the expression of o200k_base hold a character. The
// first alternative of the expression that matches counts:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
type class uint8

// Classes.
const (
	upper     class = 1 << iota // Lu, Lt, Lm, Lo, M: begins a word
	lower                       // Ll, Lm, Lo, M: ends a word
	digit                       // N
	blank                       // \s
	newline                     // \r, \n
	prefix                      // neither L nor N nor newline: may precede a word
	symbol                      // neither \s nor L nor N
	symbolEnd                   // \r, \n, /: may follow symbols
)

func (c class) isIn(set class) bool { return c&set != 0 }

// classes holds the classes of all characters below 1<<16. It is never written
// again.
var classes = classTable()

func classTable() (all [1 << 16]class) {
	for r := range all {
		all[r] = prefix | symbol
	}

	for _, set := range sets {
		for _, r16 := range set.table.R16 {
			for r := int(r16.Lo); r <= int(r16.Hi); r += int(r16.Stride) {
				all[r] = all[r]&^set.not | set.class
			}
		}
	}

	for _, r := range "\r\n/" {
		all[r] |= symbolEnd
	}
	for _, r := range "\r\n" {
		all[r] = all[r]&^prefix | newline
	}
	return all
}

// sets lists the sets of characters other than symbols.
var sets = [...]struct {
	table      *unicode.RangeTable
	class, not class
}{
	{unicode.Lu, upper, prefix | symbol},
	{unicode.Lt, upper, prefix | symbol},
	{unicode.Ll, lower, prefix | symbol},
	{unicode.Lm, upper | lower, prefix | symbol},
	{unicode.Lo, upper | lower, prefix | symbol},
	{unicode.M, upper | lower, 0},
	{unicode.N, digit, prefix | symbol},
	{unicode.White_Space, blank, symbol},
}

func classOf(r rune) class {
	if r < 1<<16 {
		return classes[r]
	}
	for _, set := range sets {
		if unicode.Is(set.table, r) {
			return (prefix|symbol)&^set.not | set.class
		}
	}
	return prefix | symbol
}

// classAt returns the class and the length of the character at offset i of text. At
// the end of text both are 0.
func classAt(text string, i int) (class, int) {
	if i == len(text) {
		return 0, 0
	}
	if text[i] < utf8.RuneSelf {
		return classes[text[i]], 1
	}
	r, size := utf8.DecodeRuneInString(text[i:])
	return classOf(r), size
}

// runEnd returns the end of the run of characters in set that begins at offset i.
func runEnd(text string, i int, set class) int {
	for {
		c, size := classAt(text, i)
		if !c.isIn(set) {
			return i
		}
		i += size
	}
}

// pieceEnd returns the end of the first piece of text, which must not be empty.
func pieceEnd(text string) int {
	c, size := classAt(text, 0)
	if end := wordEnd(text, c, size); end > 0 {
		return end
	}

	switch {
	case c.isIn(digit):
		return digitsEnd(text)
	case c.isIn(symbol):
		return runEnd(text, runEnd(text, 0, symbol), symbolEnd)
	case text[0] == ' ':
		if end := runEnd(text, 1, symbol); end > 1 {
			return runEnd(text, end, symbolEnd)
		}
	}
	return spaceEnd(text)
}

// wordEnd returns the end of a word at the front of text, or behind its first
// character, which has class c. It returns 0 if there is no word.
func wordEnd(text string, c class, size int) int {
	for _, match := range [...]func(string, int) int{mixedCaseEnd, capitalsEnd} {
		if c.isIn(prefix) {
			if end := match(text, size); end > 0 {
				return end
			}
		}

		if c.isIn(upper | lower) {
			if end := match(text, 0); end > 0 {
				return end
			}
		}
	}
	return 0
}

// mixedCaseEnd matches [upper]*[lower]+ and a contraction from offset i, and returns
// the end, or 0 if it does not match. The first set is greedy, but leaves at least
// one character to the second.
func mixedCaseEnd(text string, i int) int {
	both := 0 // end of the last character so far that is in both
	for {
		c, size := classAt(text, i)
		if !c.isIn(upper) {
			if c.isIn(lower) {
				return contractionEnd(text, runEnd(text, i, lower))
			}
			break
		}
		i += size
		if c.isIn(lower) {
			both = i
		}
	}

	if both == 0 {
		return 0
	}
	return contractionEnd(text, both)
}

// capitalsEnd matches [upper]+[lower]* and a contraction from offset i, and returns
// the end, or 0 if it does not match.
func capitalsEnd(text string, i int) int {
	end := runEnd(text, i, upper)
	if end == i {
		return 0
	}
	return contractionEnd(text, runEnd(text, end, lower))
}

// contractionEnd returns the end of a contraction at offset i, or i if there is none.
func contractionEnd(text string, i int) int {
	if i+1 >= len(text) || text[i] != '\'' {
		return i
	}

	switch rest := text[i+1:]; lowerASCII(rest[0]) {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v':
		if len(rest) > 1 && lowerASCII(rest[1]) == 'e' {
			return i + 3
		}
	case 'l':
		if len(rest) > 1 && lowerASCII(rest[1]) == 'l' {
			return i + 3
		}
	default:
		if strings.HasPrefix(rest, longS) {
			return i + 1 + len(longS)
		}
	}
	return i
}

// longS is an s if case is ignored.
const longS = "ſ"

func lowerASCII(c byte) byte { return c | 0x20 }

// digitsEnd returns the end of up to three digits at the front of text.
func digitsEnd(text string) int {
	end := 0
	for range 3 {
		c, size := classAt(text, end)
		if !c.isIn(digit) {
			break
		}
		end += size
	}
	return end
}

// spaceEnd returns the end of a piece of white space at the front of text: behind its
// last line break if it holds one, at the end of the text, or before its last
// character, which belongs to the next piece.
func spaceEnd(text string) int {
	end, last, breaks := 0, 0, 0
	for {
		c, size := classAt(text, end)
		if !c.isIn(blank) {
			break
		}
		last = end
		end += size
		if c.isIn(newline) {
			breaks = end
		}
	}

	switch {
	case breaks > 0:
		return breaks
	case end == len(text) || last == 0:
		return end
	}
	return last
}
