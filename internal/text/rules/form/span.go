package form

import (
	"strings"
	"unicode"
)

// A Span is the half-open range of bytes [Start, End) of a text.
type Span struct{ Start, End int }

// NewSpan returns the range [start, end).
func NewSpan(start, end int) Span { return Span{start, end} }

// Of returns the part of text.
func (s Span) Of(text string) string { return text[s.Start:s.End] }

// Trim narrows s to what is not white space.
func Trim(text string, s Span) Span {
	s.End = s.Start + len(strings.TrimRightFunc(text[s.Start:s.End], unicode.IsSpace))
	s.Start = s.End - len(strings.TrimLeftFunc(text[s.Start:s.End], unicode.IsSpace))
	return s
}
