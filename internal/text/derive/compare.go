package derive

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/internal/text/confidence"
)

// compare reports whether a value is what was computed, and if not, what more there is to say.
func (c *checker) compare(p *schema.Property, v any, got value, n *node) (why string, ok bool) {
	switch v := v.(type) {
	case json.Number:
		if got.number == nil {
			return ", a " + got.kindName(), false
		}
		return "", isRounded(p, v, got.number) || isPercentage(p, n) && isRounded(p, v, scaledBy(got.number, percentScale(p, n)))
	case bool:
		if got.truth == nil {
			return ", a " + got.kindName(), false
		}
		return "", *got.truth == v
	case string:
		if !c.hasResult(p, v, got, n) {
			return "", false
		}
		strange := c.strangeNumber(p, v, got)
		return strange, strange == ""
	}
	return "", false
}

// scaledBy returns a number times a hundred, or for a negative power its hundredth.
func scaledBy(n *big.Rat, power int) *big.Rat {
	hundred := big.NewRat(100, 1)
	if power < 0 {
		return new(big.Rat).Quo(n, hundred)
	}
	return new(big.Rat).Mul(n, hundred)
}

// percentScale is 1 if the formula gives a share and the property has percentages, and -1 if
// it is the other way about.
func percentScale(p *schema.Property, n *node) int {
	if p.Fraction && n.isPercent() {
		return -1
	}
	return 1
}

// isPercentage reports whether what a formula gives may be a share where the property has
// percentages, or the other way about.
func isPercentage(p *schema.Property, n *node) bool {
	if p.Fraction {
		return n.isPercent()
	}
	return p.MentionsPercent() && !n.isPercent() && (n.isShare() || n.isOfPercents())
}

// isOfPercents reports whether all numbers of a sum or a mean have percent signs.
func (n *node) isOfPercents() bool {
	if n.kind == division {
		return n.args[0].isOfPercents()
	}
	return !slices.ContainsFunc(n.terms(), func(term *node) bool { return !term.percent })
}

func (n *node) isPercent() bool {
	return n.kind == call && slices.Contains([]string{"percent", "percentage", "change", "growth"}, n.text)
}

// isShare reports whether a formula divides one number by another, or takes 1 from such.
func (n *node) isShare() bool {
	switch n.kind {
	case division, negation:
		return n.kind == division || n.args[0].isShare()
	case subtraction, addition:
		return slices.ContainsFunc(n.args, (*node).isShare) && slices.ContainsFunc(n.args, isUnit)
	case call:
		return slices.Contains([]string{"ratio", "divide", "quotient"}, n.text) || slices.Contains([]string{"abs", "round"}, n.text) && n.args[0].isShare()
	}
	return false
}

// maxRoundingError bounds how far a number may be from what was computed because it has fewer
// decimals: a twentieth. A whole number of a property that has no others may be as far as it takes.
var maxRoundingError = big.NewRat(1, 20)

// isRounded reports whether a number is what was computed, or that rounded to its decimals.
func isRounded(p *schema.Property, v json.Number, got *big.Rat) bool {
	want, ok := new(big.Rat).SetString(v.String())
	if !ok {
		return false
	}

	if want.Cmp(got) == 0 {
		return true
	}

	// A number may be rounded only if what was computed has more decimals.
	_, decimals, _ := strings.Cut(v.String(), ".")
	if digits, exact := got.FloatPrec(); exact && digits <= len(decimals) {
		return false
	}

	unit := new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(decimals))), nil))
	off := new(big.Rat).Abs(new(big.Rat).Sub(want, got))
	if off.Cmp(unit.Quo(unit, big.NewRat(2, 1))) > 0 {
		return false
	}

	limit := new(big.Rat).Mul(maxRoundingError, new(big.Rat).Abs(got))
	return p.Type == schema.Integer || off.Cmp(limit) <= 0
}

// hasResult reports whether a text says what was computed.
func (c *checker) hasResult(p *schema.Property, text string, got value, n *node) bool {
	switch {
	case p.Format == schema.Date && got.day == nil, p.Format == schema.Duration && got.span == nil:
		return false
	case got.day != nil:
		iso := got.day.Format(time.DateOnly)
		return confidence.Support(dateProperty, iso, text) == confidence.Confirms
	case got.span != nil:
		read, ok := calendar.ParseDuration(text)
		return ok && calendar.DurationIdentity(read) == calendar.DurationIdentity(got.span.String())
	case got.truth != nil:
		yes, ok := format.ParseAnswer(format.Fold(text))
		return ok && yes == *got.truth
	case got.number != nil:
		// A share may be written as a percentage.
		return slices.ContainsFunc(numbersOf(text), func(v json.Number) bool {
			return isRounded(p, v, got.number) || n.isShare() && strings.ContainsAny(text, "%％") && isRounded(p, v, scaledBy(got.number, 1))
		})
	}

	return occurrences(got.text, text) > 0
}

// numbersOf returns the numbers of a text that a value is: also those that stand behind a
// letter, as in Q2.
func numbersOf(text string) []json.Number {
	var all []json.Number
	add := func(s string) {
		for _, n := range format.ReadNumber(s, format.NumberStyle{}) {
			all = append(all, json.Number(n))
		}
	}

	// Digits behind a letter are no numeral of their own, and are read here.
	for start, end := range format.Numerals(text, format.NumberStyle{}) {
		add(text[start:end])
	}
	for _, word := range strings.FieldsFunc(text, func(c rune) bool { return c < '0' || c > '9' }) {
		add(strings.TrimLeft(word, "0"))
	}

	return all
}

// strangeNumber says which number of a text is neither what was computed nor in a quote; "" if
// there is none. Years and days of dates count as parts of these.
func (c *checker) strangeNumber(p *schema.Property, text string, got value) string {
	if got.number == nil || p.Enum != nil {
		return ""
	}

	for start, end := range format.Numerals(text, format.NumberStyle{}) {
		readings := format.ReadNumber(text[start:end], format.NumberStyle{})
		known := slices.ContainsFunc(readings, func(r string) bool {
			v := json.Number(r)
			return isRounded(p, v, got.number) || isRounded(p, v, scaledBy(got.number, 1)) ||
				c.best(func(q Quote) standing { return numberIn(strings.TrimPrefix(r, "-"), false, q) }) != absent || c.hasYear(r)
		})
		if !known {
			return ", and no quote has the " + text[start:end]
		}
	}

	return ""
}

// hasYear reports whether a date in a quote is of a year.
func (c *checker) hasYear(year string) bool {
	return len(year) == 4 && slices.ContainsFunc(c.quotes, func(q Quote) bool { return strings.Contains(q.Text, year) })
}
