// Package ground finds quotes in the text that they are said to come from. Every
// place it returns was found in the text at those offsets. A quote that is not in
// the text is not found, whoever claims it.
//
// The search for a quote goes byte by byte, then in normal form, then by the parts
// around its ellipses, then word by word. The last, the grade Fuzzy, lets a quote
// leave out a plain word or an article, or have the singular of a noun for its
// plural. It never lets a quote change a number, a name or a word that reverses a
// sentence, and never accepts a quote that only begins like the text. A quote of
// few words is not searched for in that way, because it would be found too easily.
// A quote that passes none of these may have the grade Near: the place where a
// quote that is not in the text must come from, found but not verified.
//
// The alignment of words follows LangExtract: a longest common subsequence under
// two gates, coverage and density, without its fallback to common prefixes. The
// time is linear in the length of text and quote, plus a constant for each quote.
//
// It is pure and imports nothing of the project but internal/text/offset and internal/text/prose.
package ground

import (
	"sync"
	"unicode/utf8"

	"github.com/coditect/mapreduce/internal/text/prose"
)

// A Grade rates how well a quote agrees with the text it was found in.
type Grade string

// Grades, from the best.
const (
	// Exact means that the quote is in the text byte for byte.
	Exact Grade = "exact"

	// Normalised means that the quote is in the text after normalisation, which
	// removes differences that no reader would call a change of wording:
	// compatibility forms (NFKC), case, lengths of white space, shapes of
	// quotation marks and dashes, soft hyphens and hyphens at the end of a line.
	Normalised Grade = "normalised"

	// Fuzzy means that the words of the quote are in the text, in order and
	// close together, but for differences that do not affect the meaning: see
	// the package comment. A quote with an ellipsis is at best Fuzzy.
	Fuzzy Grade = "fuzzy"

	// Lookalike means that what stands in the text looks like the quote: letters that
	// recognition takes for others differ (O for 0), or a word is cut in two. It is found by
	// package lookalike, in texts that were recognised in pictures, and not here.
	Lookalike Grade = "lookalike"

	// Near means that the quote is not in the text, and that this place differs
	// from it least: by a word or two, which may change the meaning. It tells a
	// reader where to look, and is never verified.
	Near Grade = "near"
)

// A Span is where a quote was found. Its ranges are half-open. The zero Span
// stands for a quote that was not found.
type Span struct {
	Start, End         int // code points
	ByteStart, ByteEnd int
	Grade              Grade

	// Coverage is the share of the words of the quote that are in the text,
	// Density the share of the words there that are in the quote. They are 1
	// for the grades above Fuzzy.
	Coverage, Density float64

	// Places is the number of places at which the quote stands, this one
	// included, counted up to 1000. It is 1 where the caller named the place.
	Places int

	// Cut means that the quote begins or ends within a word or a number, as
	// "able to pay" does in "unable to pay", so that it may say something that
	// the text does not. It is also set for a quote at an end of a chunk, see
	// NewChunk, and never where the caller named the place.
	Cut bool

	// Outside means that the quote is in the document, but not in the chunk
	// that it is said to come from.
	Outside bool
}

// Found reports whether s is a place in a text.
func (s Span) Found() bool { return s.Grade != "" }

// Verified reports whether s may be shown as a statement of the text: it was
// found, cuts no word and is not Near.
func (s Span) Verified() bool { return s.Found() && !s.Cut && s.Grade != Near }

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
	// offset near is found there. Otherwise Find searches the whole text and
	// takes the places of the best grade, where a place that cuts no word is
	// better than any that does, and Near is the worst. Of these places it
	// returns the first at or behind near, or if there is none, the first. A
	// caller that knows no place gives -1. A quote of nothing but white space is
	// not found.
	Find(quote string, near int) (Span, bool)

	// FindAll returns where the quotes are, in their order. It assumes that they
	// are given in the order of the text as far as possible, so that it finds a
	// repeated quote at successive places.
	FindAll(quotes []string) []Span
}

var _ Aligner = (*Text)(nil)

// pointStep is the approximate distance of two checkpoints, in bytes.
const pointStep = 1 << 10

// A Text is a text prepared for finding many quotes in it. It is safe for
// concurrent use.
type Text struct {
	text            string
	gates           Config
	continuesBefore bool // the text is a chunk whose document goes on before it
	continuesBehind bool // the document goes on behind the chunk
	points          []checkpoint
	layers          [formCount + 1]layer // by form
}

// A checkpoint is the first character at or behind a multiple of pointStep
// bytes.
type checkpoint struct {
	at    int // byte offset
	point int // number of the code point
}

// A layer is one form of the text with its words. Each part is computed at first
// use, written under its Once and then only read.
type layer struct {
	normalOnce sync.Once
	normal     normal
	indexOnce  sync.Once
	index      *index
	groupsOnce sync.Once
	groups     map[string][]int
}

// New prepares text. Offsets are meaningful if it is valid UTF-8.
func New(text string) *Text { return newText(text, Config{}.withDefaults()) }

// NewChunk prepares the text of a chunk whose document goes on before it, behind
// it, or both. A word at such an end may not be whole, so a quote that reaches it
// is cut.
func NewChunk(text string, before, behind bool) *Text {
	t := New(text)
	t.continuesBefore, t.continuesBehind = before, behind
	return t
}

func newText(text string, c Config) *Text {
	t := &Text{text: text, gates: c, points: make([]checkpoint, 0, len(text)/pointStep+1)}
	at, point := 0, 0

	t.points = append(t.points, checkpoint{})
	for next := pointStep; next < len(text); next += pointStep {
		// ASCII is most of most texts, and needs no decoding.
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

// String returns the text.
func (t *Text) String() string { return t.text }

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

// spanAt returns a place as a Span.
func (t *Text) spanAt(p place, g Grade) Span {
	from := t.Point(p.start)
	s := Span{
		Start: from, End: from + utf8.RuneCountInString(t.text[p.start:p.end]),
		ByteStart: p.start, ByteEnd: p.end, Grade: g, Coverage: 1, Density: 1, Places: 1,
	}
	if p.score != nil {
		s.Coverage, s.Density = p.score.coverage, p.score.density
	}
	return s
}

// normalForm returns the text in a form.
func (t *Text) normalForm(f form) *normal {
	l := &t.layers[f]

	l.normalOnce.Do(func() {
		if f == asIs {
			l.normal = normal{text: t.text}
			return
		}
		l.normal = normaliseText(t.text, f)
	})
	return &l.normal
}

// wordIndex returns the words of the text in a form.
func (t *Text) wordIndex(f form) *index {
	n, l := t.normalForm(f), &t.layers[f]
	l.indexOnce.Do(func() { l.index = newIndex(n.text) })
	return l.index
}

// nounGroups returns the vocabulary numbers of the text in a form, grouped by the
// stem that the singular and plural of a noun share.
func (t *Text) nounGroups(f form) map[string][]int {
	x, l := t.wordIndex(f), &t.layers[f]
	l.groupsOnce.Do(func() {
		l.groups = make(map[string][]int, len(x.ids))
		for s, id := range x.ids {
			g := prose.NounStem(s)
			l.groups[g] = append(l.groups[g], id)
		}
	})
	return l.groups
}

// isDistinctForm reports whether a search in form f can find a quote that the
// forms before it do not have.
func (t *Text) isDistinctForm(f form, q *normal) bool {
	return f != hyphensKept || q.hyphens || t.normalForm(hyphensJoined).hyphens
}
