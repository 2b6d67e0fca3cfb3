// Package passage makes texts ready for retrieval: it cuts them into passages, finds the
// terms of passages and of questions, and ranks passages by BM25.
//
// It is pure. It imports internal/text/prose, and nothing else of the project.
package passage

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/internal/text/prose"
)

// A Span is the bytes [Start, End) of a text.
type Span = prose.Span

// DefaultLength is how long a passage is, in characters of a script with spaces.
const DefaultLength = 1000

// pieceBytes bounds the part of a text in which sentences are looked for at a time.
const pieceBytes = 64 << 10

// Cut cuts a text into passages of whole sentences, in order and without overlap, each up to
// a length unless an empty line ends it earlier. A character of a script without spaces
// counts as three. A sentence that is longer is cut between words, or anywhere if it has
// none. Parts without a letter or digit are in no passage.
func Cut(text string, length int) []Span {
	c := cutter{text: text, length: length}
	for at := 0; at < len(text); {
		end := pieceEnd(text, at)
		for _, s := range prose.Sentences(text[at:end]) {
			c.addSentence(Span{Start: at + s.Start, End: at + s.End})
		}
		at = end
	}
	c.closePassage()
	return c.all
}

// pieceEnd returns where the piece of a text that begins at a byte ends: behind a line, or
// else a space, if there is one in its second half.
func pieceEnd(text string, at int) int {
	if len(text)-at <= pieceBytes {
		return len(text)
	}
	piece := text[at : at+pieceBytes]
	for _, mark := range []string{"\n\n", "\n", " "} {
		if i := strings.LastIndex(piece, mark); i >= pieceBytes/2 {
			return at + i + len(mark)
		}
	}
	return at + shorten.Boundary(text[at:], pieceBytes)
}

// A cutter cuts one text.
type cutter struct {
	text   string
	length int
	all    []Span
	open   Span // the passage to which sentences are added; empty if there is none
	size   int  // of the open passage, as Cut counts it
}

func (c *cutter) addSentence(s Span) {
	size := countedLength(s.In(c.text))
	if c.open.End > 0 {
		between := c.text[c.open.End:s.Start]
		// An empty line ends a passage that is at least half full.
		if c.size+size > c.length || c.size*2 > c.length && strings.Contains(between, "\n\n") {
			c.closePassage()
		}
	}

	if size > c.length {
		c.closePassage()
		c.cutLong(s)
		return
	}

	if c.open.End == 0 {
		c.open.Start = s.Start
	}
	c.open.End = s.End
	c.size += size + 1
}

// cutLong makes passages of a sentence that is too long for one.
func (c *cutter) cutLong(s Span) {
	start, space, size := s.Start, -1, 0
	for at := s.Start; at < s.End; {
		r, n := utf8.DecodeRuneInString(c.text[at:s.End])
		if size += counted(r); size > c.length {
			end := at
			if space > start {
				end = space
			}
			c.addPassage(Span{Start: start, End: end})
			start, space = end, -1
			size = countedLength(c.text[start : at+n])
		}

		if at += n; unicode.IsSpace(r) {
			space = at
		}
	}

	c.open, c.size = Span{Start: start, End: s.End}, size
}

func (c *cutter) closePassage() {
	if c.open.End > 0 {
		c.addPassage(c.open)
	}
	c.open, c.size = Span{}, 0
}

// addPassage adds a passage without the space around it, if it says anything.
func (c *cutter) addPassage(s Span) {
	s.Start += len(s.In(c.text)) - len(strings.TrimLeftFunc(s.In(c.text), unicode.IsSpace))
	s.End = s.Start + len(strings.TrimRightFunc(s.In(c.text), unicode.IsSpace))
	if strings.ContainsFunc(s.In(c.text), isWordRune) {
		c.all = append(c.all, s)
	}
}

// countedLength returns the length of a text as Cut counts it.
func countedLength(text string) int {
	n := 0
	for _, r := range text {
		n += counted(r)
	}
	return n
}

func counted(r rune) int {
	if r >= 0x0E00 && isUnspaced(r) {
		return 3
	}
	return 1
}
