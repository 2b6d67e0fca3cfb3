package pack

import (
	"unicode"
	"unicode/utf8"
)

// A rank rates a place between two characters for a cut.
type rank int8

// Ranks, from the worst.
const (
	inCluster rank = iota // before a combining mark, inside a line break
	inWord                // between any two other characters
	afterSpace
	afterSentence
	afterLine
	afterParagraph
)

const zeroWidthJoiner = '\u200d'

// A scanner walks over text and ranks the place before each character. It keeps
// all it needs of the text behind it in its fields, so that a copy can return to a
// place later.
type scanner struct {
	pos     int  // offset of the next character
	last    rune // the character before pos; 0 at the start
	breaks  int  // line breaks in the white space that ends at pos
	blank   bool // white space ends at pos
	stopped bool // a sentence ended before that white space
	wide    bool // it ended with a mark that needs no white space after it
}

// rankNext returns the rank of the place at s.pos and moves behind the next
// character.
func (s *scanner) rankNext(text string) rank {
	r, size := rune(text[s.pos]), 1
	if r >= utf8.RuneSelf {
		r, size = utf8.DecodeRuneInString(text[s.pos:])
	}

	if s.last == '\r' && r != '\n' {
		s.breaks++ // a line ended by a carriage return alone
	}

	at := s.rankBefore(r)
	s.pos += size
	s.advancePast(r)
	return at
}

// rankBefore returns the rank of the place between s.last and r.
func (s *scanner) rankBefore(r rune) rank {
	space := unicode.IsSpace(r)
	switch {
	case s.last == '\r' && r == '\n', unicode.IsMark(r), r == zeroWidthJoiner, s.last == zeroWidthJoiner:
		return inCluster
	case endsLine(s.last) && !endsLine(r) && s.breaks > 1, s.last == '\f' && !space:
		return afterParagraph
	case endsLine(s.last) && !endsLine(r):
		return afterLine
	case s.blank && !space && s.stopped, s.wide && !s.blank && !space && !closesSentence(r) && !endsSentence(r):
		return afterSentence
	case s.blank && !space:
		return afterSpace
	}
	return inWord
}

// advancePast records r as the character before s.pos.
func (s *scanner) advancePast(r rune) {
	s.last = r

	switch {
	case unicode.IsSpace(r):
		s.blank = true
		if endsLine(r) && r != '\r' {
			s.breaks++
		}
	case endsSentence(r):
		s.blank, s.breaks = false, 0
		s.stopped, s.wide = true, r >= 0x3000
	case closesSentence(r) && s.stopped && !s.blank: // still the end of a sentence
	default:
		s.blank, s.breaks, s.stopped, s.wide = false, 0, false, false
	}
}

// endsLine reports whether r ends a line.
func endsLine(r rune) bool {
	switch r {
	case '\n', '\r', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}

// endsSentence reports whether r ends a sentence.
func endsSentence(r rune) bool {
	switch r {
	case '.', '!', '?', '…', '。', '！', '？', '｡', '।', '؟', '۔':
		return true
	}
	return false
}

// closesSentence reports whether r may stand between the end of a sentence and the
// white space behind it.
func closesSentence(r rune) bool {
	switch r {
	case '"', '\'', ')', ']', '}', '»', '”', '’', '」', '』', '）', '】':
		return true
	}
	return false
}
