package richtext

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema/format"
)

// A Position is where characters stand.
type Position int8

// The positions.
const (
	OnLine Position = iota
	Raised
	Lowered
)

// PositionOf returns the position that Office has by a name.
func PositionOf(name string) Position {
	switch name {
	case "superscript":
		return Raised
	case "subscript":
		return Lowered
	}
	return OnLine
}

// PositionAt returns the position of characters so far above the line, in whatever unit.
func PositionAt(rise float64) Position {
	switch {
	case rise > 0:
		return Raised
	case rise < 0:
		return Lowered
	}
	return OnLine
}

// FormOf returns the character that looks like c at a position, if there is one.
func FormOf(c rune, at Position) (rune, bool) {
	switch at {
	case Raised:
		return format.Raise(c)
	case Lowered:
		return format.Lower(c)
	}
	return c, true
}

// Form returns text in characters that look like it at a position, if all of it has such.
func Form(text string, at Position) (string, bool) {
	var b strings.Builder
	for _, c := range text {
		f, ok := FormOf(c, at)
		if !ok {
			return "", false
		}
		b.WriteRune(f)
	}
	return b.String(), true
}

// Marked returns text behind the sign of a position other than OnLine: x^n, x_(max). It
// is in parentheses unless it is one character or one number, and then bracketed is false.
func Marked(text string, at Position) (marked string, bracketed bool) {
	sign := "^"
	if at == Lowered {
		sign = "_"
	}
	if isOne(text) {
		return sign + text, false
	}
	return sign + "(" + text + ")", true
}

// isOne reports whether text is one character, with its marks, or one number.
func isOne(text string) bool {
	characters, number := 0, true
	for _, c := range text {
		if !unicode.IsMark(c) {
			characters++
		}
		number = number && (unicode.IsDigit(c) || c == '.')
	}
	return characters == 1 || number
}

// Written returns how a run at a position is written behind a text. Without characters that
// look like it, it is written as on the line, but what would lengthen a number is marked.
func Written(before, run string, at Position) string {
	text := strings.TrimSpace(run)
	if at == OnLine || text == "" {
		return run
	}

	head, tail, _ := strings.Cut(run, text)
	if form, ok := Form(text, at); ok {
		return head + form + tail
	}
	if head == "" && Lengthens(before, text) {
		marked, _ := Marked(text, at)
		return marked + tail
	}
	return run
}

// Lengthens reports whether a text behind another would be read as part of a number at its
// end. References in brackets, as in 2015[1], are no such parts.
func Lengthens(before, text string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	return unicode.IsDigit(last) && strings.ContainsFunc(text, unicode.IsDigit) && !strings.HasPrefix(text, "[")
}

// Runs are the text of a paragraph. The zero Runs are empty.
type Runs struct {
	text     strings.Builder
	run      strings.Builder // what is raised or lowered, up to now
	at       Position        // of the run
	next     Position        // of what is written next
	line     bool            // what comes next stands on a line of its own
	equation int             // where the last equation ends; 0 if there is none
}

// At says where the characters stand that are written next. Those at one position that
// follow each other are one run, as programs cut runs anywhere.
func (t *Runs) At(p Position) { t.next = p }

// endRun writes the run that is raised or lowered.
func (t *Runs) endRun() {
	if t.run.Len() > 0 {
		t.text.WriteString(Written(t.text.String(), t.run.String(), t.at))
		t.run.Reset()
	}
}

// WriteString writes characters of the run.
func (t *Runs) WriteString(s string) {
	if s == "" {
		return
	}

	if t.next != t.at {
		t.endRun()
		t.at = t.next
	}

	t.beginLine(s)
	if t.at == OnLine {
		t.text.WriteString(s)
	} else {
		t.run.WriteString(s)
	}
}

// WriteRune writes a character of the run.
func (t *Runs) WriteRune(c rune) { t.WriteString(string(c)) }

// Insert writes what belongs to no run, such as the number of a note.
func (t *Runs) Insert(s string) {
	t.endRun()
	t.beginLine(s)
	t.text.WriteString(s)
}

// Line makes what comes next stand on a line of its own.
func (t *Runs) Line() {
	t.endRun()
	t.line = t.text.Len() > 0
}

// beginLine ends the line before s, if s stands on one of its own.
func (t *Runs) beginLine(s string) {
	if t.line && !strings.HasPrefix(s, "\n") && !strings.HasSuffix(t.text.String(), "\n") {
		t.text.WriteByte('\n')
	}
	t.line = false
}

// Equation writes an equation. A space parts it from another, and its digits from those
// in front of it.
func (t *Runs) Equation(s string) {
	if s == "" {
		return
	}
	t.endRun()
	t.beginLine(s)

	last, _ := utf8.DecodeLastRuneInString(t.text.String())
	first, _ := utf8.DecodeRuneInString(s)

	// Equations that touch would read as one word or number.
	follows := t.equation > 0 && t.equation == t.text.Len()
	if follows && isPartOfWord(last) && isPartOfWord(first) || unicode.IsDigit(last) && unicode.IsDigit(first) {
		t.text.WriteByte(' ')
	}

	t.text.WriteString(s)
	t.equation = t.text.Len()
}

func isPartOfWord(c rune) bool {
	return unicode.IsLetter(c) || unicode.IsNumber(c) || unicode.IsMark(c)
}

// Len returns the bytes of the text so far; those of a raised or lowered run may change.
func (t *Runs) Len() int { return t.text.Len() + t.run.Len() }

// Reset empties the text. The position stays.
func (t *Runs) Reset() {
	t.text.Reset()
	t.run.Reset()
	t.line, t.equation = false, 0
}

// String returns the text, and ends the run.
func (t *Runs) String() string {
	t.endRun()
	return t.text.String()
}
