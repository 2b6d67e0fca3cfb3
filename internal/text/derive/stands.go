package derive

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/internal/text/confidence"
)

// A standing says how sure it is that something stands in a quote.
type standing int

// The standings, the best last.
const (
	absent standing = iota
	open            // in one of several readings, of which the document tells none
	part            // as a part of something else, such as an end of a range
	sure
)

// A checker looks for the operands of a formula in the quotes of its value.
type checker struct {
	quotes  []Quote
	settled bool
	unsure  bool
	fault   string // the first one
}

func (c *checker) fail(form string, args ...any) {
	if c.fault == "" {
		c.fault = fmt.Sprintf(form, args...)
	}
}

// check looks for the operands of a part of a formula. parent is the part around it, of which
// it is the argument at i; nil for the whole.
func (c *checker) check(n, parent *node, i int) {
	for k, arg := range n.args {
		if n.kind == call && n.text == "round" && k == 1 {
			continue // how many decimals there are
		}
		c.check(arg, n, k)
	}

	// How sure it is depends on the best quote. What stands in none may be a constant of
	// the formula.
	var best standing
	switch n.kind {
	case numberLiteral:
		best = c.best(func(q Quote) standing { return numberIn(n.text, n.percent, q) })
		if best == absent && isConstant(n, parent, i) {
			return
		}
	case dateLiteral:
		best = c.best(func(q Quote) standing { return dateIn(n.text, q) })
	case durationLiteral:
		best = c.best(func(q Quote) standing { return durationIn(n.text, q) })
	case textLiteral:
		best = c.best(func(q Quote) standing { return textIn(n.text, q) })
	default:
		return
	}

	switch {
	case best == absent:
		c.fail("%.60s, which stands in none of its quotes", n.written())
	case best == open && c.settled:
		c.fail("%.60s, which stands in its quotes in one of several readings; nothing tells which is meant", n.written())
	case best != sure:
		c.unsure = true
	}
}

// written returns a literal as messages show it.
func (n *node) written() string {
	if n.percent {
		percent, _ := format.CanonicalNumber(n.text + "e2")
		return percent + "%"
	}
	return n.text
}

func (c *checker) best(in func(Quote) standing) standing {
	best := absent
	for _, q := range c.quotes {
		best = max(best, in(q))
	}
	return best
}

// numberProperty, dateProperty and durationProperty read quotes.
var (
	numberProperty   = &schema.Property{Type: schema.Number}
	dateProperty     = &schema.Property{Type: schema.String, Format: schema.Date}
	durationProperty = &schema.Property{Type: schema.String, Format: schema.Duration}
)

// numberIn looks for a number in a quote: as the document of the quote is written, if that is
// known.
func numberIn(number string, percent bool, q Quote) standing {
	verdict := confidence.Support(numberProperty, json.Number(number), q.Text)
	if verdict == confidence.Contradicts {
		return absent
	}
	value := json.Number(number)

	switch readings := numberProperty.ReadingsLike(value, q.Text, q.Numbers); {
	case slices.Contains(readings, value) && len(readings) == 1:
		return sure
	case slices.Contains(readings, value):
		return open
	case len(readings) > 0:
		return absent // its document writes numbers otherwise
	case verdict == confidence.Confirms || percent:
		return sure
	}
	return part
}

// dateIn looks for a date in a quote.
func dateIn(iso string, q Quote) standing {
	best, numeric := absent, false

	for d := range calendar.NumericDates(q.Text) {
		if iso != d.DayFirst && iso != d.MonthFirst && iso != d.YearFirst {
			continue
		}

		numeric = true
		switch settled := d.In(q.Dates); {
		case !d.IsAmbiguous() && (d.YearFirst == "" || d.YearFirst == iso), settled == iso:
			return sure
		case settled == "":
			best = max(best, open)
		}
	}

	// Support would take an ambiguous date for sure, so it is asked only about dates in
	// words.
	if numeric {
		return best
	}

	if confidence.Support(dateProperty, iso, q.Text) == confidence.Confirms {
		return sure
	}
	return absent
}

func durationIn(iso string, q Quote) standing {
	if confidence.Support(durationProperty, iso, q.Text) == confidence.Confirms {
		return sure
	}
	return absent
}

func textIn(text string, q Quote) standing {
	if occurrences(text, q.Text) > 0 {
		return sure
	}
	return absent
}

// occurrences counts how often a text stands in another, whatever their case and spaces.
func occurrences(text, in string) int {
	text = " " + format.Fold(text) + " "
	return strings.Count(strings.ReplaceAll(" "+wordsApart(format.Fold(in))+" ", " ", "  "), strings.ReplaceAll(wordsApart(text), " ", "  "))
}

// wordsApart returns a text with blanks in place of punctuation between its words.
func wordsApart(s string) string {
	return strings.Map(func(c rune) rune {
		if strings.ContainsRune(".,;:!?()[]\"'/", c) {
			return ' '
		}
		return c
	}, s)
}

// factors turn units into others, and quarters and weeks into years.
var factors = []string{"4", "7", "12", "24", "30", "52", "60", "100", "360", "365", "1000", "1000000", "1000000000"}

// isConstant reports whether a number need not stand in a quote, by its place in the
// formula: what turns one unit into another, the number of the terms of a mean, and the 1 of a
// change or of an inclusive count of days.
func isConstant(n, parent *node, i int) bool {
	if parent == nil || n.percent {
		return false
	}

	other := func() *node { return parent.args[1-i] }

	switch parent.kind {
	case multiplication:
		return slices.Contains(factors, n.text)
	case division:
		return i == 0 && n.text == "1" ||
			i == 1 && (slices.Contains(factors, n.text) || n.text == fmt.Sprint(len(other().terms())) || n.text == fmt.Sprint(other().countAddends()))
	case addition, subtraction:
		return n.text == "0" || n.text == "1" && other().takesOne()
	}
	return false
}

// takesOne reports whether 1 may be added to a part of a formula, or taken from it: from a
// quotient or a percentage, and from the distance of two days or years, both of which count.
func (n *node) takesOne() bool {
	switch n.kind {
	case division:
		return true
	case numberLiteral:
		return n.percent
	case subtraction:
		return slices.IndexFunc(n.args, func(arg *node) bool { return arg.kind != dateLiteral && !arg.isYear() }) < 0
	case call:
		return slices.Contains([]string{"ratio", "divide", "quotient", "days", "months", "years"}, n.text)
	}
	return false
}

func (n *node) isYear() bool {
	return n.kind == numberLiteral && len(n.text) == 4 && (strings.HasPrefix(n.text, "19") || strings.HasPrefix(n.text, "20"))
}

// countAddends returns how many parts of a formula plus signs join.
func (n *node) countAddends() int {
	if n.kind == addition {
		return n.args[0].countAddends() + n.args[1].countAddends()
	}
	return 1
}

// terms returns the operands of a sum: those between plus and minus, or those of the
// function. Anything else is its own only term.
func (n *node) terms() []*node {
	switch {
	case n.kind == negation:
		return n.args[0].terms()
	case n.kind == addition || n.kind == subtraction:
		return slices.Concat(n.args[0].terms(), n.args[1].terms())
	case n.kind == call && slices.Contains([]string{"sum", "total", "add", "average", "avg", "mean", "count"}, n.text):
		var all []*node
		for _, arg := range n.args {
			all = append(all, arg.terms()...)
		}
		return all
	}

	return []*node{n}
}

// countTerms looks for what a formula adds up, or counts, more often than its quotes have it.
func (c *checker) countTerms(n *node) {
	times := map[string]int{}
	byText := map[string]*node{}

	// Terms that several quotes have may be added as often as they stand there.
	if terms := n.terms(); len(terms) > 1 {
		for _, term := range terms {
			if len(term.args) == 0 {
				key := string(term.kind) + strings.TrimPrefix(term.text, "-")
				times[key]++
				byText[key] = term
			}
		}
	}

	for key, n := range times {
		if term := byText[key]; n > 1 && c.occurrencesOf(term) < n && !isUnit(term) {
			c.fail("%.60s %d times, and its quotes have it less often", term.written(), n)
		}
	}

	// A sum within a sum was looked at with it.
	for _, arg := range n.args {
		if n.kind != addition && n.kind != subtraction {
			c.countTerms(arg)
		}
	}
}

// isUnit reports whether a term is the 1 that formulas add to quotients.
func isUnit(n *node) bool { return n.kind == numberLiteral && strings.TrimPrefix(n.text, "-") == "1" }

// occurrencesOf counts how often the quotes have a literal.
func (c *checker) occurrencesOf(n *node) int {
	total := 0
	for _, q := range c.quotes {
		switch n.kind {
		case textLiteral:
			total += occurrences(n.text, q.Text)
		case numberLiteral:
			total += max(numerals(strings.TrimPrefix(n.text, "-"), q), int(min(numberIn(n.text, n.percent, q), 1)))
		default:
			total += strings.Count(q.Text, n.text)
		}
	}
	return total
}

// numerals counts the numbers of a quote that may be a number, whatever their sign.
func numerals(number string, q Quote) int {
	count := 0
	for start, end := range format.Numerals(q.Text, q.Numbers) {
		readings := format.ReadNumber(q.Text[start:end], q.Numbers)
		if slices.ContainsFunc(readings, func(r string) bool { return strings.TrimPrefix(r, "-") == number }) {
			count++
		}
	}

	return count
}
