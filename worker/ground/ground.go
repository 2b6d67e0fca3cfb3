// Package ground finds quotes in the text they are said to come from. What it
// returns was found in the text, at those offsets; a quote that is not there is
// not found, whoever claims it.
//
// It is pure and imports nothing of the project but worker/offset.
package ground

import (
	"sync"
	"unicode/utf8"
)

// A Grade says how well a quote agrees with the text it was found in.
type Grade string

// Grades, from the best.
const (
	// Exact means that the quote is in the text byte for byte.
	Exact Grade = "exact"

	// Normalised means that it is after differences were removed that a
	// reader would not call a change of wording: compatibility forms (NFKC),
	// case, lengths of white space, shapes of quotation marks and dashes, soft
	// hyphens and hyphens at the end of a line.
	Normalised Grade = "normalised"

	// Fuzzy means that most of its words are in the text, in order and close
	// together.
	Fuzzy Grade = "fuzzy"
)

// A Span is where a quote was found. Its ranges are half-open. The zero Span
// stands for a quote that was not found.
type Span struct {
	Start, End         int // code points
	ByteStart, ByteEnd int
	Grade              Grade
}

// Found reports whether s is a place in a text.
func (s Span) Found() bool { return s.Grade != "" }

// Shift returns s as seen in a larger text, in which the text of s begins at
// the given offsets.
func (s Span) Shift(points, bytes int) Span {
	s.Start, s.End = s.Start+points, s.End+points
	s.ByteStart, s.ByteEnd = s.ByteStart+bytes, s.ByteEnd+bytes
	return s
}

// An Aligner finds quotes in one text.
type Aligner interface {
	// Find returns where quote is in the text. A quote that stands at byte
	// offset near is found there. Else a place where it does not begin or end
	// within a word is preferred, then the first at or behind near, then the
	// first. The best grade that the quote reaches anywhere decides. A quote
	// of nothing but white space is not found.
	Find(quote string, near int) (Span, bool)

	// FindAll returns where the quotes are, in their order. They are taken to
	// be named in the order of the text as far as possible, so that a quote
	// that is repeated is found at successive places.
	FindAll(quotes []string) []Span
}

var _ Aligner = (*Text)(nil)

// pointStep is how many bytes of text, about, lie between two known code
// points.
const pointStep = 1 << 10

// A Text is a text prepared for finding many quotes in it. It is safe for
// concurrent use.
type Text struct {
	text   string
	points []checkpoint
	forms  [formCount]lazyForm
}

// A checkpoint is the first character at or behind a multiple of pointStep
// bytes.
type checkpoint struct {
	at    int // byte offset
	point int // number of the code point
}

// A lazyForm is a normal form of the text, made when first needed.
type lazyForm struct {
	once   sync.Once
	normal normal // written under once, then only read
}

// New prepares text. Offsets are meaningful if it is valid UTF-8.
func New(text string) *Text {
	t := &Text{text: text, points: make([]checkpoint, 0, len(text)/pointStep+1)}
	at, point := 0, 0
	t.points = append(t.points, checkpoint{})
	for next := pointStep; next < len(text); next += pointStep {
		for at < next && at < len(text) {
			if text[at] < utf8.RuneSelf {
				at++
			} else {
				_, size := utf8.DecodeRuneInString(text[at:])
				at += size
			}
			point++
		}
		t.points = append(t.points, checkpoint{at: at, point: point})
	}
	return t
}

// Point returns how many code points of the text lie before byte offset p,
// which must be within the text and between two characters.
func (t *Text) Point(p int) int {
	i := min(p/pointStep, len(t.points)-1)
	if t.points[i].at > p {
		i--
	}
	c := t.points[i]
	return c.point + utf8.RuneCountInString(t.text[c.at:p])
}

// span returns the bytes [start, end) of the text as a Span.
func (t *Text) span(start, end int, g Grade) Span {
	from := t.Point(start)
	return Span{
		Start: from, End: from + utf8.RuneCountInString(t.text[start:end]),
		ByteStart: start, ByteEnd: end, Grade: g,
	}
}

// form returns a normal form of the text.
func (t *Text) form(f form) *normal {
	l := &t.forms[f]
	l.once.Do(func() { l.normal = normalise(t.text, f) })
	return &l.normal
}
