package format

import (
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/number"
)

// A NumberStyle is how a text writes its numbers. The zero value leaves all open, so
// that a number such as 1.500 has two readings.
type NumberStyle struct {
	Decimal  byte   // '.' or ',', the sign in front of decimals; 0 if nothing tells
	Blanks   Usage  // whether a plain blank sets groups of thousands apart
	Negative string // what stands for a minus: "()" for brackets, "-" for one behind the number; "" if nothing tells
}

// A Usage says whether a text has a habit.
type Usage int8

// The usages.
const (
	Unknown Usage = iota
	Yes
	No
)

// StyleOf returns the style of a locale. In South Africa both signs are in use, whatever
// the standard says, so that its locale tells nothing.
func StyleOf(locale language.Tag) NumberStyle {
	if region, _ := locale.Region(); region.String() == "ZA" {
		return NumberStyle{}
	}

	shown := message.NewPrinter(locale).Sprint(number.Decimal(12345678.5))
	at := strings.LastIndexAny(shown, ".,")
	if at < 0 {
		return NumberStyle{}
	}

	style := NumberStyle{Decimal: shown[at], Blanks: No}
	if strings.ContainsAny(shown, " \u00a0\u202f") {
		style.Blanks = Yes
	}

	return style
}

// A NumberCount counts what the numbers of a text tell of its style.
type NumberCount struct {
	Points   int64 // that have a decimal point, or can have no other sign
	Commas   int64 // the same with a decimal comma
	Blanks   int64 // whose groups of thousands are set apart by blanks
	Marks    int64 // whose groups are set apart by another sign
	Minuses  int64 // with a minus in front
	Trailing int64 // with a minus behind them
	Brackets int64 // in brackets, each in a cell of its own
}

// Add adds the counts of another text.
func (c *NumberCount) Add(other NumberCount) {
	c.Points += other.Points
	c.Commas += other.Commas
	c.Blanks += other.Blanks
	c.Marks += other.Marks
	c.Minuses += other.Minuses
	c.Trailing += other.Trailing
	c.Brackets += other.Brackets
}

// fewestNegative is how many numbers must have brackets, or a minus behind them, for
// that to be the form of a document: one alone may be a remark or a dash.
const fewestNegative = 2

// Style returns the style that the texts show. Where they show two styles, it leaves
// open which is meant.
func (c NumberCount) Style() NumberStyle {
	var s NumberStyle
	switch {
	case IsClear(c.Points, c.Commas):
		s.Decimal = '.'
	case IsClear(c.Commas, c.Points):
		s.Decimal = ','
	}

	switch {
	case IsClear(c.Blanks, c.Marks):
		s.Blanks = Yes
	case c.Marks > 0 && c.Marks >= c.Blanks: // a blank stands between two numbers, too
		s.Blanks = No
	}

	switch {
	// Signs in front, or both other forms, show no one form for negative numbers.
	case c.Minuses > 0 || c.Brackets > 0 && c.Trailing > 0:
	case c.Brackets >= fewestNegative:
		s.Negative = "()"
	case c.Trailing >= fewestNegative:
		s.Negative = "-"
	}

	return s
}

// IsMixed reports whether the texts show two decimal signs, so that nothing further
// away can tell which is meant.
func (c NumberCount) IsMixed() bool {
	return c.Points > 0 && c.Commas > 0 && c.Style().Decimal == 0
}

// clearMajority is how often a habit must show in texts for each time that another does.
const clearMajority = 9

// IsClear reports whether texts that show one habit a times and another b times have the first.
func IsClear(a, b int64) bool { return a > 0 && a >= clearMajority*b }

// Or returns s with what it leaves open as in other.
func (s NumberStyle) Or(other NumberStyle) NumberStyle {
	if s.Decimal == 0 {
		s.Decimal = other.Decimal
	}
	if s.Blanks == Unknown {
		s.Blanks = other.Blanks
	}
	if s.Negative == "" {
		s.Negative = other.Negative
	}
	return s
}
