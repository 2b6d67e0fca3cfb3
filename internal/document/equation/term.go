package equation

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A kind says how strongly the parts of a term hold together. A term in a place that holds
// more strongly needs parentheses.
type kind int8

const (
	simple   kind = iota // a letter, a number, or what stands in brackets
	script               // x²
	product              // 2ax
	quotient             // a/b
	applied              // cos x, ∑ x: what follows might be taken for a part of it
	sum                  // a+b, and all else that has operators
)

// A term is a part of an equation.
type term struct {
	text   string
	kind   kind
	word   bool // it consists of letters, as cm and sin
	raised bool // a script that has a superscript
	limit  bool // a function with a limit
	// What may stand beside it.
	object bool   // it is no mere text
	digits bool   // it continues a number in front of it
	open   bool   // it ends with a script without parentheses, which letters would continue
	apart  bool   // a space stands between it and another term
	nested int    // brackets that it opens, less those that it closes
	inner  string // of a matrix, without its brackets
	lines  string // of an array of equations that is all of an equation
	plain  bool   // it is mere text
}

// asPart returns a term that is part of an object, and so has no lines and no space around
// it.
func (t term) asPart() term {
	t.text = strings.TrimSpace(t.text)
	if strings.Contains(t.text, "\n") {
		t.text, t.kind = strings.ReplaceAll(t.text, "\n", "; "), sum
	}
	return t
}

// inParentheses returns the text, in parentheses if the term holds less strongly than most.
func (t term) inParentheses(most kind) string {
	if t.kind > most {
		return "(" + t.text + ")"
	}
	return t.text
}

// A sequence is the texts and objects that follow each other in a part.
type sequence struct {
	text    strings.Builder
	factors int  // letters, numbers and objects outside of brackets
	kind    kind // at least
	other   bool // there are other characters than letters
	number  bool // the text ends within a number
	nested  int  // brackets that are open
	last    term // the object at the end; empty if text is
	only    term // the object, if there is nothing else
}

// invisible are operators that are not shown: that of a function, which a space replaces,
// and those of products, lists and sums.
var invisible = strings.NewReplacer("\u2061", " ", "\u2062", "", "\u2063", "", "\u2064", "")

// addText adds characters.
func (s *sequence) addText(text string) {
	if text = invisible.Replace(text); text == "" {
		return
	}

	s.separate(term{text: text})

	for i, c := range text {
		next, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(c):])
		s.count(c, next)
	}
	s.text.WriteString(text)

	s.last, s.only = term{}, term{}
}

// signs belong to the letter, number or bracket in front of them, or stand for one.
const signs = "′″‴'!%‰°∞∂∇∅…⋯⋮⋱"

// count counts a character in front of another.
func (s *sequence) count(c, next rune) {
	number := unicode.IsDigit(c) || s.number && (c == '.' || c == ',') && unicode.IsDigit(next)

	// What stands in brackets holds together, and counts as one factor.
	switch {
	case unicode.IsSpace(c), unicode.IsMark(c):
	case unicode.Is(unicode.Pe, c):
		if s.nested--; s.nested < 0 {
			s.kind = sum
		}
	case s.nested > 0 && !unicode.Is(unicode.Ps, c):
	case unicode.Is(unicode.Ps, c):
		if s.nested == 0 {
			s.factors++
		}
		s.nested++
	case number && s.number:
	case number, unicode.IsLetter(c), strings.ContainsRune(signs, c) && s.factors == 0:
		s.factors++
	case !strings.ContainsRune(signs, c):
		s.kind = sum
	}

	s.number = number
	s.other = s.other || !unicode.IsLetter(c)
}

// addTerm adds an object.
func (s *sequence) addTerm(t term) {
	if t.text == "" {
		return
	}

	t.object = true
	s.separate(t)

	s.only = term{}
	if s.text.Len() == 0 {
		s.only = t
	}

	if s.nested == 0 {
		s.factors++
		s.kind = max(s.kind, t.kind)
	}

	// More brackets end than begin: the term is no whole.
	if s.nested += t.nested; s.nested < 0 {
		s.kind = sum
	}

	s.number, s.other, s.last = false, true, t
	s.text.WriteString(t.text)
}

// separate writes a space if what comes next would be taken for a part of what stands in
// front of it, or the other way round.
func (s *sequence) separate(next term) {
	last, _ := utf8.DecodeLastRuneInString(s.text.String())
	first, _ := utf8.DecodeRuneInString(next.text)

	needed := false
	switch {
	case s.last.apart && s.last.word && !s.last.open && unicode.Is(unicode.Ps, first): // sin(x)
	case s.last.apart || next.apart:
		needed = endsOperand(last) && beginsOperand(first)
	case s.last.open:
		needed = beginsOperand(first)
	case (s.last.object || next.object) && !next.digits:
		needed = unicode.IsDigit(last) && unicode.IsDigit(first)
	}

	if needed && s.text.Len() > 0 {
		s.text.WriteByte(' ')
	}
}

func endsOperand(c rune) bool {
	return unicode.In(c, unicode.L, unicode.N, unicode.M, unicode.Pe) || strings.ContainsRune(signs, c)
}

func beginsOperand(c rune) bool {
	return unicode.In(c, unicode.L, unicode.N, unicode.Ps) || strings.ContainsRune("√∛∜∞∂∇¬¯▁⏞⏟∑∏∐∫∬∭∮∯∰⋃⋂⋁⋀", c)
}

// term returns the sequence as one term.
func (s *sequence) term() term {
	if s.only.text != "" {
		return s.only
	}

	t := term{text: s.text.String(), kind: s.kind, word: !s.other, open: s.last.open, apart: s.last.apart, nested: s.nested}

	if s.factors > 1 {
		t.kind = max(t.kind, product)
	}
	if s.nested != 0 {
		t.kind = sum
	}

	return t
}
