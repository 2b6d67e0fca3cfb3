package arrange

import (
	"cmp"
	"slices"
	"unicode"

	"golang.org/x/text/unicode/bidi"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A Direction is that in which a text runs.
type Direction int

// The directions of characters.
const (
	Neutral     Direction = iota // spaces and punctuation: that of what stands around them
	leftToRight                  // Latin letters, for one
	RightToLeft                  // Hebrew and Arabic letters, for two
	number                       // left to right, within a text of either direction
	Attached                     // marks: that of their letter
)

// classOf returns the class of a character in UAX #9.
func classOf(c rune) bidi.Class {
	properties, _ := bidi.LookupRune(c)
	return properties.Class()
}

// DirectionOf returns the direction of a character.
func DirectionOf(c rune) Direction {
	switch classOf(c) {
	case bidi.L:
		return leftToRight
	case bidi.R, bidi.AL:
		return RightToLeft
	case bidi.EN, bidi.AN:
		return number
	case bidi.NSM, bidi.BN:
		return Attached
	}
	return Neutral
}

// firstRightToLeft is where the characters begin that may run from right to left.
const firstRightToLeft = '\u0590'

// directionOfLetter returns the direction of a letter; neutral of another character.
func directionOfLetter(c rune) Direction {
	switch {
	case !unicode.IsLetter(c):
		return Neutral
	case c < firstRightToLeft:
		return leftToRight
	}
	return DirectionOf(c)
}

// HasRightToLeft reports whether one of the characters is a letter that runs from right to
// left.
func HasRightToLeft(chars []rune) bool {
	return slices.ContainsFunc(chars, func(c rune) bool { return directionOfLetter(c) == RightToLeft })
}

// A tally is how many words run in a direction. Some run in both.
type tally struct {
	leftToRight, rightToLeft int
	leftAtEnds               bool // the first and the last of them run from left to right alone
}

func tallyOf(words []Word) (t tally) {
	first, last := Neutral, Neutral
	for _, w := range words {
		var left, right bool
		for _, c := range w.Text {
			d := directionOfLetter(c)
			left, right = left || d == leftToRight, right || d == RightToLeft
		}

		switch {
		// A word with letters of both directions counts for both, and ends from right to
		// left.
		case right:
			last = RightToLeft
			t.rightToLeft++
		case left:
			last = leftToRight
		}

		if left {
			t.leftToRight++
		}

		first = cmp.Or(first, last)
	}

	t.leftAtEnds = first == leftToRight && last == leftToRight
	return t
}

// wordDirection returns the direction of words that stand in a text of another direction, or
// beside it: that of most of them. But in a text from right to left, more than half of a
// line may be names and terms of Latin letters; it has words of its own at one end, then.
func (t tally) wordDirection(around Direction) Direction {
	switch {
	case around == RightToLeft && t.rightToLeft > 0 && !t.leftAtEnds:
		return RightToLeft
	case t.leftToRight > t.rightToLeft:
		return leftToRight
	case t.rightToLeft > t.leftToRight:
		return RightToLeft
	}
	return around
}

// mirror turns boxes about the left side of the page, so that a page which is read from
// right to left can be arranged as one that is read from left to right.
func mirror(words []Word) {
	for i := range words {
		words[i].Box = mirrored(words[i].Box)
	}
}

func mirrored(b mapreduce.Box) mapreduce.Box {
	b.Left, b.Right = -b.Right, -b.Left
	return b
}

// mirror turns a row back again.
func (r *Row) mirror() {
	r.box = mirrored(r.box)
	mirror(r.words)
	sortWords(r.words) // they were from right to left
}

// sortLines sorts the words of lines from left to right, as far as the lines are level. If
// not all lines are sorted, only those with words that run from right to left are.
func sortLines(words []Word, all bool) {
	for from := 0; from < len(words); {
		to := from + 1
		for to < len(words) && words[to].Line == words[from].Line && beside(words[to-1].Box, words[to].Box) {
			to++
		}
		if all || tallyOf(words[from:to]).rightToLeft > 0 {
			sortWords(words[from:to])
		}
		from = to
	}
}

func sortWords(words []Word) {
	slices.SortStableFunc(words, func(a, b Word) int { return cmp.Compare(a.Box.Left, b.Box.Left) })
}

// read brings the words of a row, which are from left to right, into the order in which
// people read them. page is the direction of the page, whose words are mostly as high as usual.
//
// The cells of a row follow each other in the direction of the page, as they do in the
// rows above and below; from right to left also if most words of the row run so.
func (r *Row) read(page Direction, usual float64) {
	t := tallyOf(r.words)
	direction := t.wordDirection(page)

	var cells [][]Word
	for from := 0; from < len(r.words); {
		to := from + 1
		for to < len(r.words) && !standApart(&r.words[to-1], &r.words[to], usual) {
			to++
		}
		cells = append(cells, r.words[from:to])
		from = to
	}

	if direction == RightToLeft || page == RightToLeft {
		slices.Reverse(cells)
	}

	r.words = nil

	for _, cell := range cells {
		if t.rightToLeft > 0 || direction == RightToLeft {
			cell = logicalOrder(cell, direction)
		} else {
			space(cell)
		}

		if len(r.words) > 0 {
			cell[0].before = "\t"
		}

		r.words = append(r.words, cell...)
	}
}

// space parts words by spaces.
func space(words []Word) {
	for i := range words {
		words[i].before = " "
	}
}
