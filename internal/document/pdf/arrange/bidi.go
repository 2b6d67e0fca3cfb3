package arrange

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
)

// logicalOrder returns the words of a cell, which are from left to right, in the order in which
// people read them: that of Unicode's bidirectional algorithm (UAX #9), whose rules say
// how a text is shown, backwards. Of a number in a text of the other direction, and of
// what stands beside it, there is more than one text that is shown so; then the nearest
// one is taken. row is the direction of the row, which the cell has if it has no other. A
// cell without letters, as of numbers, stays as it is.
func logicalOrder(words []Word, row Direction) []Word {
	t := tallyOf(words)
	isKnown := len(words) == 1 || words[0].Box != words[len(words)-1].Box // where they stand; not of OCR that says only what it has read

	if t.leftToRight > 0 && t.rightToLeft == 0 || !isKnown {
		space(words)
		return words
	}

	l := newBidiLine(words)
	l.joinNumbers()

	switch {
	case t.rightToLeft == 0:
	case t.wordDirection(row) == RightToLeft:
		l.levelRightToLeft()
	default:
		l.levelLeftToRight()
	}

	l.reorderLine()
	l.turnBrackets()
	return l.words()
}

// A bidiLine is the parts of a line, and the spaces between them.
type bidiLine []bidiPart

type bidiPart struct {
	Word
	direction Direction
	level     int // as in UAX #9: the odd ones run from right to left
	at        int // counted from the left
}

// newBidiLine returns the line of words that are from left to right.
func newBidiLine(words []Word) bidiLine {
	var l bidiLine
	add := func(w Word, d Direction) { l = append(l, bidiPart{Word: w, direction: d, at: len(l)}) }

	for i, w := range words {
		if i > 0 {
			add(Word{Text: " "}, Neutral)
		}
		for _, p := range w.split() {
			add(p, directionOfText(p.Text))
		}
	}
	return l
}

// split returns the parts of a word. Those of one without letters are its characters:
// there may be brackets among them.
func (w Word) split() []Word {
	if len(w.Parts) > 0 {
		return w.Parts
	}

	if strings.ContainsFunc(w.Text, unicode.IsLetter) {
		return []Word{w}
	}

	var parts []Word
	for _, c := range w.Text {
		parts = append(parts, Word{Text: string(c), Box: w.Box, Line: w.Line, Sure: w.Sure})
	}

	return parts
}

// directionOfText returns the direction of the first letter of a text; of one that has
// none, whether it has a number.
func directionOfText(text string) Direction {
	found := Neutral
	for _, c := range text {
		switch d := DirectionOf(c); d {
		case leftToRight, RightToLeft:
			return d
		case number:
			found = number
		}
	}
	return found
}

// joinNumbers makes parts of numbers of the separators within them, and of what stands
// right at them, as currency signs; behind Arabic letters, only of separators: a percent
// sign stands behind its number there, too.
func (l bidiLine) joinNumbers() {
	isArabic := make([]bool, len(l))

	// What is read before a part from right to left stands at its right, so the letter
	// before it is looked for from there.
	for i, arabic := len(l)-1, false; i >= 0; i-- {
		if d := l[i].direction; d == leftToRight || d == RightToLeft {
			c, _ := utf8.DecodeRuneInString(l[i].Text)
			arabic = classOf(c) == bidi.AL
		}
		isArabic[i] = arabic
	}

	for i := range l {
		class := l[i].bidiClass()
		if (class == bidi.CS || class == bidi.ES) && l.isNumber(i-1) && l.isNumber(i+1) || class == bidi.ET && !isArabic[i] && l.isNumber(i-1) {
			l[i].direction = number
		}
	}

	for i := range slices.Backward(l) {
		if l[i].bidiClass() == bidi.ET && !isArabic[i] && l.isNumber(i+1) {
			l[i].direction = number
		}
	}
}

// isNumber reports whether part i is one, and within the line.
func (l bidiLine) isNumber(i int) bool { return i >= 0 && i < len(l) && l[i].direction == number }

// isSpace reports whether part i is a space, or beyond the line.
func (l bidiLine) isSpace(i int) bool { return i < 0 || i >= len(l) || l[i].Text == " " }

// bidiClass returns the class of a part that is one character; of another, that of neutrals.
func (p *bidiPart) bidiClass() bidi.Class {
	c, size := utf8.DecodeRuneInString(p.Text)
	if size < len(p.Text) || size == 0 {
		return bidi.ON
	}
	return classOf(c)
}

// levelRightToLeft sets the levels of a line that runs from right to left. In it, a run
// from left to right goes from its first letter to its last one.
func (l bidiLine) levelRightToLeft() {
	for i := range l {
		l[i].level = 1
		if l[i].direction == number {
			l[i].level = 2
		}
	}

	l.eachRun(leftToRight, func(from, to int) {
		for i := from; i < to; i++ {
			l[i].level = 2
		}
	})
}

// levelLeftToRight sets the levels of a line that runs from left to right.
func (l bidiLine) levelLeftToRight() {
	l.eachRun(RightToLeft, func(from, to int) {
		for i := from; i < to; i++ {
			l[i].level = 1
			if l[i].direction == number {
				l[i].level = 2
			}
		}
	})
}

// eachRun calls f with the runs [from, to) of a direction: from its first letter to its
// last one without one of the other direction between. Numbers beside a run from left to
// right, and brackets of which the run has the other one, belong to it.
func (l bidiLine) eachRun(d Direction, f func(from, to int)) {
	other := leftToRight + RightToLeft - d
	for from := 0; from < len(l); from++ {
		if l[from].direction != d {
			continue
		}

		to := from + 1
		for i := to; i < len(l) && l[i].direction != other; i++ {
			if l[i].direction == d {
				to = i + 1
			}
		}

		first, last := l.extend(from, to, d)
		f(first, last)
		from = last - 1
	}
}

// extend returns the run [from, to) with the numbers and brackets that belong to it.
func (l bidiLine) extend(from, to int, d Direction) (first, last int) {
	if d == leftToRight {
		for i := l.beyondSpace(from-1, -1); l.isNumber(i); i = l.beyondSpace(from-1, -1) {
			from = i
		}
		for i := l.beyondSpace(to, 1); l.isNumber(i); i = l.beyondSpace(to, 1) {
			to = i + 1
		}
	}

	if l.completesPair(from-1, from, to) {
		from--
	}
	if l.completesPair(to, from, to) {
		to++
	}

	return from, to
}

// beyondSpace returns i, or the next number if part i is a space.
func (l bidiLine) beyondSpace(i, step int) int {
	if l.isSpace(i) {
		return i + step
	}
	return i
}

// completesPair reports whether part i is a bracket of which the run [from, to) has the other.
func (l bidiLine) completesPair(i, from, to int) bool {
	if i < 0 || i >= len(l) {
		return false
	}
	pair := pairOf(l[i].Text)
	return pair != "" && l[from:to].unpaired(pair)
}

// unpaired reports whether the line has an odd number of the brackets of a pair.
func (l bidiLine) unpaired(pair string) bool {
	odd := false
	for i := range l {
		if pairOf(l[i].Text) == pair {
			odd = !odd
		}
	}
	return odd
}

// reorderLine turns the line from what is shown to what is read (rule L2, which is its own
// inverse).
func (l bidiLine) reorderLine() {
	for level := 2; level > 0; level-- {
		for from := 0; from < len(l); from++ {
			to := from
			for to < len(l) && l[to].level >= level {
				to++
			}
			slices.Reverse(l[from:to])
			from = max(from, to-1)
		}
	}
}

// pairOf returns the pair of which a text is one of the brackets that a text from right to
// left shows turned; none of another text.
func pairOf(text string) string {
	switch text {
	case "(", ")":
		return "()"
	case "[", "]":
		return "[]"
	case "{", "}":
		return "{}"
	case "«", "»":
		return "«»"
	case "‹", "›":
		return "‹›"
	}
	return ""
}

// turnBrackets has brackets open before what they enclose, and close behind it. What the
// file says of them may be how they look, or how they are read, and PDFium turns them
// where it believes that they are in a text from right to left.
func (l bidiLine) turnBrackets() {
	// Whether a space stands before part i, or only brackets are between.
	before, behind := make([]bool, len(l)), make([]bool, len(l))
	for i := range l {
		before[i] = l.isSpace(i-1) || pairOf(l[i-1].Text) != "" && before[i-1]
	}

	for i := range slices.Backward(l) {
		behind[i] = l.isSpace(i+1) || pairOf(l[i+1].Text) != "" && behind[i+1]
	}

	open := make(map[string]int)
	for i := range l {
		pair := pairOf(l[i].Text)
		if pair == "" {
			continue
		}

		// White space on one side alone tells which bracket it is; else they open and close
		// in turn.
		opens := open[pair] == 0
		if before[i] != behind[i] {
			opens = before[i]
		}

		if size := len(pair) / 2; opens {
			l[i].Text, open[pair] = pair[:size], open[pair]+1
		} else {
			l[i].Text, open[pair] = pair[size:], max(0, open[pair]-1)
		}
	}
}

// words returns the words of the line. Parts of a word that stand beside each other are
// one, in one box.
func (l bidiLine) words() []Word {
	var words []Word
	for i := range l {
		w := l[i].Word
		if w.Text == " " {
			continue
		}

		switch joined := i > 0 && l[i-1].Text != " "; {
		// Parts that were beside each other before they were reordered are still one word.
		case joined && (l[i].at-l[i-1].at == 1 || l[i].at-l[i-1].at == -1):
			last := &words[len(words)-1]
			last.Text, last.Box = last.Text+w.Text, Union(last.Box, w.Box)
			continue
		case !joined:
			w.before = " "
		}

		words = append(words, w)
	}
	return words
}
