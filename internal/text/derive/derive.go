// Package derive judges values that follow from quotes without standing in them: sums,
// shares, durations, quarters. Such a value has a formula, whose numbers and dates must stand
// in its quotes. The package computes the formula, and says where the value is not what
// it gives. docs/confidence.md has the rules, docs/schema.md the language of formulas.
// It also says which decimals people expect of a number: those that a schema states or that
// its source has.
//
// It is pure and imports api/schema and other pure packages of the worker alone.
package derive

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
)

// A Quote is a quote that a value follows from, and what its document tells of how numbers and
// dates are written. The zero values of these know nothing.
type Quote struct {
	Text    string
	Numbers format.NumberStyle
	Dates   calendar.DateOrder
}

// A Derivation is how a value follows from its quotes.
type Derivation struct {
	Formula string // with which the value was given, or that was found for it; "" if there is none
	// Computed is what the formula comes to, as people read it. It is "" if there is no
	// formula, or if it cannot be computed.
	Computed string
	Fault    string // why the value does not follow from its quotes; "" if nothing says so
	// Unsure means that a quote has a number of the formula only in one reading of several,
	// or as a part of something else.
	Unsure bool
}

// Of judges a value of a derived property by its formula and its quotes. If settled, nothing
// more will be known of how the documents are written: a number or a date that may be read in
// two ways is a fault then.
//
// A number, a date and a duration need a formula. If none is given, the simplest ones are
// tried. Texts, choices and answers may do without: then nothing is computed, and nothing says
// that they are wrong.
func Of(p *schema.Property, v any, formula string, quotes []Quote, settled bool) Derivation {
	if strings.TrimSpace(formula) == "" {
		if formula = guessFormula(p, v, quotes); formula == "" {
			if needsFormula(p, v) {
				return Derivation{Fault: "it has no formula, and does not follow from its quotes by a simple one"}
			}
			return Derivation{}
		}
	}

	d := Derivation{Formula: formula}
	n, err := parse(formula)
	if err != nil {
		d.Fault = fmt.Sprintf("its formula %.200q cannot be read: %v", formula, err)
		return d
	}
	if n.operands()*lengthOf(quotes) > maxSearched {
		d.Fault = fmt.Sprintf("its formula %.80s has too many operands to look for in so many quotes", formula)
		return d
	}

	// The operands are looked for before anything is computed: made-up numbers refute a
	// formula, whatever it comes to.
	c := &checker{quotes: quotes, settled: settled}
	c.check(n, nil, 0)
	c.countTerms(n)
	if d.Unsure = c.unsure; c.fault != "" {
		d.Fault = fmt.Sprintf("its formula %.200s has %s", formula, c.fault)
		return d
	}

	got, err := n.computeValue(len(quotes))
	if err != nil {
		d.Fault = fmt.Sprintf("its formula %.200s cannot be computed: %v", formula, err)
		return d
	}
	d.Computed = got.String()
	if why, ok := c.compare(p, v, got, n); !ok {
		d.Fault = fmt.Sprintf("its formula %.200s gives %s%s, not %.80s", formula, d.Computed, why, shown(v))
	}
	return d
}

// maxSearched bounds the bytes of quotes in which operands are looked for, of all operands
// together.
const maxSearched = 2 << 20

func lengthOf(quotes []Quote) int {
	bytes := 0
	for _, q := range quotes {
		bytes += len(q.Text) + 1
	}

	return bytes
}

// operands counts the literals of a formula.
func (n *node) operands() int {
	if len(n.args) == 0 {
		return 1
	}

	all := 0
	for _, arg := range n.args {
		all += arg.operands()
	}
	return all
}

// needsFormula reports whether a value is a number, a date or a duration, which others
// can compute again.
func needsFormula(p *schema.Property, v any) bool {
	switch {
	case p.Enum != nil || p.Type == schema.Boolean:
		return false
	case p.Numeric() || p.Format == schema.Date || p.Format == schema.Duration:
		return true
	}

	text, isText := v.(string)
	return isText && isPlainAmount(text)
}

// isPlainAmount reports whether a text is nothing but a number, with its currency or unit, or
// a date.
func isPlainAmount(text string) bool {
	if _, end, ok := calendar.DateAt(text, 0); ok && end == len(text) {
		return true
	}

	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(text, "+-−("))
	_, isNumber := format.ParseNumber(text)
	return isNumber && (unicode.IsDigit(first) || unicode.Is(unicode.Sc, first))
}

func shown(v any) string { return schema.Shown(v) }

// The factors of confidence in derived values. They are below those of values that their
// quotes have, whatever speaks for them: a formula may be the wrong one though it is computed
// right. No public set of answers tells how often.
const (
	computedFactor = 0.85
	unsureFactor   = 0.6
	statedFactor   = 0.4 // nothing was computed
	faultyFactor   = 0.1
)

// Confidence returns the confidence in a value of which one reading said how it follows from
// quotes, the worst of which has a grade.
func (d *Derivation) Confidence(grade float64) float64 {
	switch {
	case d.Fault != "":
		return grade * faultyFactor
	case d.Computed == "":
		return grade * statedFactor
	case d.Unsure:
		return grade * unsureFactor
	}
	return grade * computedFactor
}
