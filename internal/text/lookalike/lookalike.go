// Package lookalike finds words in text that was recognised in a picture, where letters are taken for
// others that look like them (O for 0, l for 1, rn for m) and words are cut in two or run together.
//
// It keeps to these rules. Two different digits are never alike, so that no quote lends a number to
// a place where another stands. A word is no number: where one of them has a number, the other has at least
// half of its digits, in one line and one cell. What is found begins and ends with words of the text. Nothing is found
// that has fewer than MinLength letters and digits. It is pure, and imports nothing of the project.
package lookalike

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MinLength is how many letters and digits a quote has at least that is looked for: shorter ones stand
// everywhere.
const MinLength = 4

// alike are the letters that recognition takes for digits, each with the digit, and letters that look
// like each other under one of them.
var alike = map[rune]rune{
	'o': '0', 'q': '0', 'd': '0',
	'l': '1', 'i': '1', 'ı': '1',
	'z': '2', 's': '5', 'b': '8', 'g': '9',
	'é': 'e', 'è': 'e', 'ê': 'e', 'ë': 'e', 'ä': 'a', 'à': 'a', 'á': 'a', 'â': 'a', 'ö': '0', 'ó': '0', 'ò': '0', 'ô': '0',
	'ü': 'u', 'ú': 'u', 'ù': 'u', 'û': 'u', 'ç': 'c', 'ñ': 'n', 'ß': '8', 'í': '1', 'ì': '1', 'î': '1', 'ï': '1',
	'ſ': 'f', 'v': 'u',
}

// joined are letters that together look like another.
var joined = strings.NewReplacer("rn", "m", "nn", "m", "vv", "w", "uu", "w", "c1", "0")

// A skeleton is a text by what it looks like: letters and digits alone, those that are alike as one.
type skeleton struct {
	text string
	from []int // by byte of text, the byte of the source that it comes from; one more is the end
}

// skeletonOf returns the skeleton of a text.
func skeletonOf(s string) skeleton {
	var b strings.Builder
	var from []int
	for at, r := range s {
		r = unicode.ToLower(r)
		if to, ok := alike[r]; ok {
			r = to
		} else if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			continue
		}
		n, _ := b.WriteRune(r)
		for range n {
			from = append(from, at)
		}
	}

	out := skeleton{text: b.String(), from: append(from, len(s))}
	return out.join()
}

// join replaces letters that together look like another, one after the other, so that each stands
// where the first of them did.
func (k skeleton) join() skeleton {
	var b strings.Builder
	from := make([]int, 0, len(k.from))
	for i := 0; i < len(k.text); {
		end := min(i+2, len(k.text))
		if pair := k.text[i:end]; end == i+2 && joined.Replace(pair) != pair {
			b.WriteString(joined.Replace(pair))
			from = append(from, k.from[i])
			i = end
			continue
		}

		b.WriteByte(k.text[i])
		from = append(from, k.from[i])
		i++
	}
	return skeleton{b.String(), append(from, k.from[len(k.text)])}
}

// A Text is a text in which quotes are looked for. It may be used by several goroutines.
type Text struct {
	source   string
	skeleton skeleton
}

// New prepares a text.
func New(text string) *Text { return &Text{text, skeletonOf(text)} }

// A Place is bytes [Start, End) of the text.
type Place struct{ Start, End int }

// Find returns the places of what looks like a quote, in order and at most so many.
func (t *Text) Find(quote string, most int) []Place {
	quoted := skeletonOf(quote)
	want := quoted.text
	if utf8.RuneCountInString(want) < MinLength {
		return nil
	}

	var all []Place
	for at := 0; len(all) < most; {
		i := strings.Index(t.skeleton.text[at:], want)
		if i < 0 {
			break
		}
		i += at
		at = i + 1
		if p, ok := t.placeOf(i, i+len(want)); ok && sameDigits(quote, t.source[p.Start:p.End]) && t.sameNumbers(quote, quoted, i, p) {
			all = append(all, p)
		}
	}
	return all
}

// placeOf returns the place of a range of the skeleton, if it begins and ends where words do.
func (t *Text) placeOf(from, to int) (Place, bool) {
	if !utf8.RuneStart(t.skeleton.text[from]) || to < len(t.skeleton.text) && !utf8.RuneStart(t.skeleton.text[to]) {
		return Place{}, false
	}
	start := t.skeleton.from[from]
	end := len(t.source)
	if to < len(t.skeleton.text) {
		end = t.skeleton.from[to]
	}

	// Between the last letter and the next there is what the skeleton leaves out, such as spaces.
	end = start + len(strings.TrimRightFunc(t.source[start:end], isBetween))
	before, _ := utf8.DecodeLastRuneInString(t.source[:start])
	behind, _ := utf8.DecodeRuneInString(t.source[end:])
	first, _ := utf8.DecodeRuneInString(t.source[start:])
	last, _ := utf8.DecodeLastRuneInString(t.source[:end])
	if inWord(before) && inWord(first) || inWord(last) && inWord(behind) {
		return Place{}, false
	}
	return Place{start, end}, true
}

// isBetween reports whether a character stands between words.
func isBetween(r rune) bool { return !inWord(r) }

// inWord reports whether a character is part of a word or a number.
func inWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// sameDigits reports whether two texts with the same skeleton have no digits that differ: where both
// have one it is the same, and nowhere has one a point or comma between digits that the other has not.
func sameDigits(a, b string) bool { return numberMarks(a) == numberMarks(b) }

// sameNumbers reports whether a quote and the place that looks like it, from a byte of the skeleton on, have
// numbers where the other does, and whether no number of the quote is of several cells or lines.
func (t *Text) sameNumbers(quote string, quoted skeleton, from int, at Place) bool {
	isBreak := func(r rune) bool { return r == '\n' || r == '\t' || r == '|' }
	if strings.ContainsFunc(t.source[at.Start:at.End], isBreak) && strings.ContainsFunc(quote, unicode.IsDigit) && !strings.ContainsFunc(quote, unicode.IsSpace) {
		return false
	}

	var mine, theirs tally
	for i := range quoted.text {
		a, b := quoted.from[i], t.skeleton.from[from+i]
		both := isDigitAt(quote, a) && isDigitAt(t.source, b)
		if !mine.add(quote, a, both) || !theirs.add(t.source, b, both) {
			return false
		}
	}
	return mine.holds() && theirs.holds()
}

// A tally counts the letters and digits of the word that is being read.
type tally struct{ last, all, digits, both int }

// add counts what stands at a byte of a text; it is false if the word that ends before it does not hold.
func (y *tally) add(text string, at int, both bool) bool {
	held := true
	if strings.ContainsFunc(text[min(y.last, at):at], unicode.IsSpace) {
		held = y.holds()
		*y = tally{}
	}

	y.last = at
	y.all++
	if isDigitAt(text, at) {
		y.digits++
	}
	if both {
		y.both++
	}

	return held
}

// holds reports whether the word is no number, or at least half of its digits are digits in the other text.
func (y *tally) holds() bool { return y.digits < 2 || 2*y.digits < y.all || 2*y.both >= y.digits }

func isDigitAt(text string, at int) bool {
	r, _ := utf8.DecodeRuneInString(text[at:])
	return unicode.IsDigit(r)
}

// numberMarks returns the marks that stand between digits, or what looks like them, each with how many
// of these stand behind it: "1,234.5O" has ",3.2".
func numberMarks(s string) string {
	runes := []rune(strings.ToLower(s))
	digit := func(i int) bool {
		return i >= 0 && i < len(runes) && (unicode.IsDigit(runes[i]) || alike[runes[i]] >= '0' && alike[runes[i]] <= '9')
	}
	solid := func(i int) bool { return i >= 0 && i < len(runes) && unicode.IsDigit(runes[i]) }

	var b strings.Builder
	for i, r := range runes {
		if r != '.' && r != ',' || !digit(i-1) || !digit(i+1) || !solid(i-1) && !solid(i+1) {
			continue
		}
		n := 0
		for j := i + 1; digit(j); j++ {
			n++
		}
		// A point and a comma are taken for each other; how many digits follow tells them apart.
		b.WriteByte(',')
		b.WriteByte('0' + byte(min(n, 9)))
	}
	return b.String()
}

// digits are what letters within numbers are taken from.
var digits = map[rune]rune{'O': '0', 'o': '0', 'Q': '0', 'D': '0', 'l': '1', 'I': '1', 'i': '1', 'Z': '2', 'z': '2', 'S': '5', 's': '5', 'B': '8', 'G': '9', 'g': '9'}

// Numbers returns a text with digits in place of letters that look like them, in words that have a digit
// and no letter that looks like none.
func Numbers(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		// A word ends with the blanks behind it.
		n := strings.IndexFunc(s, unicode.IsSpace)
		if n < 0 {
			n = len(s)
		}
		b.WriteString(numberWord(s[:n]))
		s = s[n:]

		rest := strings.TrimLeftFunc(s, unicode.IsSpace)
		b.WriteString(s[:len(s)-len(rest)])
		s = rest
	}
	return b.String()
}

// numberWord is Numbers of one word.
func numberWord(w string) string {
	solid, foreign := false, false
	for _, r := range w {
		solid = solid || unicode.IsDigit(r)
		foreign = foreign || unicode.IsLetter(r) && digits[r] == 0
	}
	if !solid || foreign {
		return w
	}

	return strings.Map(func(r rune) rune {
		if to := digits[r]; to != 0 {
			return to
		}
		return r
	}, w)
}
