package token

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A class says which of the sets in the expression of o200k_base hold a
// character. That expression, the first alternative that matches being taken, is
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
	upper   class = 1 << iota // Lu, Lt, Lm, Lo, M: begins a word
	lower                     // Ll, Lm, Lo, M: ends a word
	digit                     // N
	blank                     // \s
	newline                   // \r, \n
	prefix                    // neither L nor N nor newline: may stand before a word
	symbol                    // neither \s nor L nor N
	ends                      // \r, \n, /: may stand behind symbols
)

func (c class) in(set class) bool { return c&set != 0 }

// classes holds those of all characters below 1<<16. It is never written to
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
		all[r] |= ends
	}
	for _, r := range "\r\n" {
		all[r] = all[r]&^prefix | newline
	}
	return all
}

// sets are the sets of characters that are not just symbols.
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

// at returns the class of the character at offset i of text and how long that
// is; at the end no class and 0.
func at(text string, i int) (class, int) {
	if i == len(text) {
		return 0, 0
	}
	if text[i] < utf8.RuneSelf {
		return classes[text[i]], 1
	}
	r, size := utf8.DecodeRuneInString(text[i:])
	return classOf(r), size
}

// run returns where the characters in set that begin at offset i end.
func run(text string, i int, set class) int {
	for {
		c, size := at(text, i)
		if !c.in(set) {
			return i
		}
		i += size
	}
}

// next returns where the first piece of text ends, which is not empty.
func next(text string) int {
	c, size := at(text, 0)
	if end := wordFrom(text, c, size); end > 0 {
		return end
	}
	switch {
	case c.in(digit):
		return digits(text)
	case c.in(symbol):
		return run(text, run(text, 0, symbol), ends)
	case text[0] == ' ':
		if end := run(text, 1, symbol); end > 1 {
			return run(text, end, ends)
		}
	}
	return space(text)
}

// wordFrom returns where a word ends that begins text, or that stands behind
// its first character, which is of class c; 0 if there is none.
func wordFrom(text string, c class, size int) int {
	for _, match := range [...]func(string, int) int{mixed, capitals} {
		if c.in(prefix) {
			if end := match(text, size); end > 0 {
				return end
			}
		}
		if c.in(upper | lower) {
			if end := match(text, 0); end > 0 {
				return end
			}
		}
	}
	return 0
}

// mixed matches [upper]*[lower]+ and a contraction from offset i: 0 if it does
// not. Characters in both sets go to the first, as far as the second is left
// one.
func mixed(text string, i int) int {
	both := 0 // end of the last character so far that is in both
	for {
		c, size := at(text, i)
		if !c.in(upper) {
			if c.in(lower) {
				return contraction(text, run(text, i, lower))
			}
			break
		}
		i += size
		if c.in(lower) {
			both = i
		}
	}
	if both == 0 {
		return 0
	}
	return contraction(text, both)
}

// capitals matches [upper]+[lower]* and a contraction from offset i: 0 if it
// does not.
func capitals(text string, i int) int {
	end := run(text, i, upper)
	if end == i {
		return 0
	}
	return contraction(text, run(text, end, lower))
}

// contraction returns where a word ends to which a contraction may belong that
// begins at offset i.
func contraction(text string, i int) int {
	if i+1 >= len(text) || text[i] != '\'' {
		return i
	}
	switch rest := text[i+1:]; fold(rest[0]) {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v':
		if len(rest) > 1 && fold(rest[1]) == 'e' {
			return i + 3
		}
	case 'l':
		if len(rest) > 1 && fold(rest[1]) == 'l' {
			return i + 3
		}
	default:
		if strings.HasPrefix(rest, longS) {
			return i + 1 + len(longS)
		}
	}
	return i
}

// longS is an s too when case does not matter.
const longS = "ſ"

func fold(c byte) byte { return c | 0x20 }

// digits returns where up to three digits end that begin text.
func digits(text string) int {
	end := 0
	for range 3 {
		c, size := at(text, end)
		if !c.in(digit) {
			break
		}
		end += size
	}
	return end
}

// space returns where a piece of white space ends that begins text: behind its
// last line break if it holds one, at the end of the text, or before its last
// character, which belongs to what follows.
func space(text string) int {
	end, last, breaks := 0, 0, 0
	for {
		c, size := at(text, end)
		if !c.in(blank) {
			break
		}
		last = end
		end += size
		if c.in(newline) {
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
