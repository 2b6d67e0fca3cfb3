package ground

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/coditect/mapreduce/internal/text/offset"
)

// A form is a way to normalise text. The forms differ in the treatment of a hyphen
// at the end of a line, which may or may not belong to the word.
type form int8

const (
	hyphensJoined form = iota // removes a line-end hyphen before a small letter, with the line break
	hyphensKept               // keeps hyphens, and removes white space behind them
	formCount     = iota
)

// asIs is the text itself, in no normal form.
const asIs form = formCount

// Same reports whether a and b are the same in a normal form, as a quote of grade
// Normalised and the text at its place are.
func Same(a, b string) bool {
	for f := range form(formCount) {
		if normalQuote(a, f) == normalQuote(b, f) {
			return true
		}
	}
	return false
}

// normalQuote returns the normal form of a text that stands alone.
func normalQuote(s string, f form) string {
	return strings.Trim(normaliseText(s, f).text, " ")
}

// A normal is a text in normal form.
type normal struct {
	text    string
	back    *offset.Map // maps to the original text
	hyphens bool        // the text has white space behind a hyphen, so its forms may differ
}

// A normaliser turns a text into its normal form. It holds back white space, and a
// hyphen behind a letter, until it knows what follows.
type normaliser struct {
	form form
	out  strings.Builder
	back offset.Builder

	letter bool // the last character written is a letter
	hyphen held // a hyphen behind a letter
	soft   bool // the hyphen held back is a soft hyphen
	space  held // white space, behind the hyphen
	broken bool // the white space holds a line break

	hyphens   bool // there was white space behind a hyphen
	separator rune // written between a number and the folded cluster; 0 for none
}

// held is a range of the source that is held back; empty if nothing is.
type held struct{ pos, len int }

// normaliseText returns the normal form f of text. Its time is linear in the length
// of the text.
func normaliseText(text string, f form) normal {
	n := normaliser{form: f}
	n.out.Grow(len(text))

	for pos := 0; pos < len(text); {
		// Most of most texts is plain ASCII, which goes the short way.
		if size := simplePrefix(text[pos:]); size > 0 {
			n.writeSimple(text[pos:pos+size], pos)
			pos += size
			continue
		}

		size := 1
		if text[pos] >= utf8.RuneSelf || pos+1 < len(text) && text[pos+1] >= utf8.RuneSelf {
			size = max(1, norm.NFKC.NextBoundaryInString(text[pos:], true))
		}

		n.writeCluster(text[pos:pos+size], pos)
		pos += size
	}

	n.flushHeld(0)
	return normal{text: n.out.String(), back: n.back.Map(), hyphens: n.hyphens}
}

// simplePrefix returns the length of the front of s that needs no normalisation
// but for case: ASCII characters that do not combine with what follows.
func simplePrefix(s string) int {
	i := 0
	for i < len(s) && '!' <= s[i] && s[i] <= '~' && s[i] != '-' && s[i] != '`' {
		i++
	}

	// What is not ASCII may be a mark that combines with the last character.
	if i > 0 && i < len(s) && s[i] >= utf8.RuneSelf {
		i--
	}
	return i
}

// writeSimple writes simple characters of the source at pos.
func (n *normaliser) writeSimple(s string, pos int) {
	n.flushHeld(rune(s[0]))
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		n.out.WriteByte(c)
	}
	n.letter = unicode.IsLetter(rune(s[len(s)-1]))
	n.back.Copy(pos, len(s))
}

// writeCluster writes a base character of the source at pos with its marks.
func (n *normaliser) writeCluster(s string, pos int) {
	r, size := utf8.DecodeRuneInString(s)
	// A character without marks mostly needs no tables.
	if size == len(s) {
		r = plainRune(r)
		switch {
		case r == softHyphen:
			if n.letter && n.hyphen.len == 0 && n.space.len == 0 {
				n.hyphen, n.soft = held{pos, size}, true
			}
			return
		case r == ignored:
			return
		case unicode.IsSpace(r):
			n.holdSpace(held{pos, size}, endsLine(r))
			return
		case r == '-' && n.letter && n.hyphen.len == 0 && n.space.len == 0:
			n.hyphen, n.soft = held{pos, size}, false
			return
		case r < utf8.RuneSelf:
			n.flushHeld(r)
			n.writeRune(unicode.ToLower(r), 1, pos, size)
			return
		}
	}

	n.separator = separatorBefore(r)
	n.writeFolded(norm.NFKC.String(s), pos, len(s))
}

// writeFolded writes s, the NFKC form of a cluster of size bytes at pos.
func (n *normaliser) writeFolded(s string, pos, size int) {
	var out []rune
	blank := true
	for _, r := range s {
		if r = plainRune(r); r == ignored || r == softHyphen {
			continue
		}
		blank = blank && unicode.IsSpace(r)
		out = append(out, r)
	}

	switch {
	case len(out) == 0:
		return
	case blank:
		n.holdSpace(held{pos, size}, false)
		return
	}

	n.flushHeld(out[0])
	for i, r := range out {
		out[i] = unicode.ToLower(unicode.ToUpper(r))
	}

	folded := string(out)
	if n.separator != 0 && endsWith(n.out.String(), digit) && (unicode.IsNumber(out[0]) || out[0] == '-') {
		folded = string(n.separator) + folded // 10² is not 102, 10⁻² not 10-2
	}

	n.letter = unicode.IsLetter(out[len(out)-1])
	n.out.WriteString(folded)
	n.back.Step(len(folded), pos, size)
}

// separatorBefore returns the character that separates the folded r from a number
// before it: '_' for subscripts, '^' for other forms, 0 for the digits that may
// continue the number.
func separatorBefore(r rune) rune {
	switch {
	case unicode.IsDigit(r):
		return 0
	case '₀' <= r && r <= '₎':
		return '_'
	}
	return '^'
}

// holdSpace holds back white space.
func (n *normaliser) holdSpace(h held, breaks bool) {
	if n.space.len == 0 {
		n.space, n.broken = h, false
	}
	n.space.len = h.pos + h.len - n.space.pos
	n.broken = n.broken || breaks
}

// flushHeld writes the characters held back. next is the character that follows, 0
// at the end.
func (n *normaliser) flushHeld(next rune) {
	hyphen, space := n.hyphen, n.space
	n.hyphen, n.space = held{}, held{}
	// Only a hyphen before white space is in doubt: it may part a word at the end of a
	// line.
	if hyphen.len > 0 && space.len > 0 {
		n.hyphens = true
		switch {
		case n.form == hyphensJoined && n.broken && unicode.IsLower(next), n.soft && n.broken && unicode.IsLetter(next):
			return // one word
		case n.form == hyphensKept && unicode.IsLetter(next):
			space = held{}
		}
	}

	if hyphen.len > 0 && !n.soft {
		n.writeRune('-', 1, hyphen.pos, hyphen.len)
	}
	if space.len > 0 {
		n.writeRune(' ', 1, space.pos, space.len)
	}
}

// writeRune writes r, of size bytes, for the in bytes of the source at pos.
func (n *normaliser) writeRune(r rune, size, pos, in int) {
	n.letter = unicode.IsLetter(r)
	n.out.WriteRune(r)
	n.back.Step(size, pos, in)
}

// Results of plainRune for invisible characters.
const (
	ignored    = -1
	softHyphen = '\u00ad'
)

// plainRune returns the plainest character that reads like r: one quotation mark
// and one dash stand for all their shapes.
func plainRune(r rune) rune {
	if r < 0x80 {
		if r == '`' {
			return '\''
		}
		return r
	}

	switch r {
	case '‘', '’', '‚', '‛', '′', '‵', '´', 'ʹ', 'ʼ', '‹', '›', '＇':
		return '\''
	case '“', '”', '„', '‟', '″', '‶', '«', '»', '〃', '＂':
		return '"'
	case '‐', '‑', '‒', '–', '—', '―', '−', '⁃', '﹘', '﹣', '－':
		return '-'
	case '\u200b', '\u200c', '\u200d', '\u2060', '\ufeff', '\u034f':
		return ignored
	}

	// What only changes how neighbours are displayed is no part of the wording.
	if isPresentationRune(r) {
		return ignored
	}
	return r
}

// isPresentationRune reports whether r only affects the display of its
// neighbours: their direction or their variant.
func isPresentationRune(r rune) bool {
	switch {
	case r == '\u061c', '\u200e' <= r && r <= '\u200f', '\u202a' <= r && r <= '\u202e', '\u2066' <= r && r <= '\u2069':
		return true
	}
	return '\ufe00' <= r && r <= '\ufe0f'
}

// endsLine reports whether r, white space, ends a line.
func endsLine(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}
