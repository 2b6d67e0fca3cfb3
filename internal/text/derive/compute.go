package derive

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/schema/format/calendar"
)

// A value is what a formula comes to: one of these.
type value struct {
	number *big.Rat
	day    *time.Time
	span   *span
	text   string
	truth  *bool
}

// A span is a stretch of time: months, whose length depends on the calendar, and days.
type span struct{ months, days int64 }

// String returns the span as in ISO 8601.
func (s span) String() string {
	var text strings.Builder
	text.WriteByte('P')

	for _, part := range []struct {
		n    int64
		unit string
	}{{s.months / 12, "Y"}, {s.months % 12, "M"}, {s.days, "D"}} {
		if part.n != 0 {
			text.WriteString(strconv.FormatInt(part.n, 10) + part.unit)
		}
	}

	if text.Len() == 1 {
		return "P0D"
	}
	return text.String()
}

// maxShownDecimals bounds the decimals of a number that is shown.
const maxShownDecimals = 6

// String returns the value as people read it; a number with more decimals than are shown ends
// with an ellipsis.
func (v value) String() string {
	switch {
	case v.number != nil:
		if digits, exact := v.number.FloatPrec(); exact && digits <= 2*maxShownDecimals {
			return v.number.FloatString(digits)
		}
		return v.number.FloatString(maxShownDecimals) + "…"
	case v.day != nil:
		return v.day.Format(time.DateOnly)
	case v.span != nil:
		return v.span.String()
	case v.truth != nil && *v.truth:
		return "yes"
	case v.truth != nil:
		return "no"
	}
	return v.text
}

// kindName names what a value is.
func (v value) kindName() string {
	switch {
	case v.number != nil:
		return "number"
	case v.day != nil:
		return "date"
	case v.span != nil:
		return "duration"
	case v.truth != nil:
		return "answer"
	}
	return "text"
}

// maxBits bounds the numbers that are computed with.
const maxBits = 8192

var (
	errZero  = errors.New("it divides by zero")
	errLarge = errors.New("its numbers are too large to compute with")
)

// computeValue returns what a formula comes to; quotes is how many quotes there are.
func (n *node) computeValue(quotes int) (value, error) {
	switch n.kind {
	case numberLiteral:
		number, ok := new(big.Rat).SetString(n.text)
		if !ok {
			return value{}, fmt.Errorf("%.40s is no number", n.text)
		}
		return value{number: number}, nil
	case dateLiteral:
		day, err := time.Parse(time.DateOnly, n.text)
		if err != nil {
			return value{}, fmt.Errorf("there is no day %s", n.text)
		}
		return value{day: &day}, nil
	case durationLiteral:
		s, err := parseSpan(n.text)
		return value{span: &s}, err
	case textLiteral:
		return value{text: n.text}, nil
	}

	args := make([]value, len(n.args))
	for i, arg := range n.args {
		var err error
		if args[i], err = arg.computeValue(quotes); err != nil {
			return value{}, err
		}
	}

	// A few powers of powers would be too large to hold, so each step is bounded.
	v, err := n.apply(args, quotes)
	if err == nil && v.number != nil && v.number.Num().BitLen()+v.number.Denom().BitLen() > maxBits {
		return value{}, errLarge
	}
	return v, err
}

// parseSpan reads a duration of ISO 8601 of whole days.
func parseSpan(iso string) (span, error) {
	// The identity is months and seconds, which parts the calendar from the clock.
	months, seconds, ok := strings.Cut(strings.TrimSuffix(calendar.DurationIdentity(iso), "S"), "M")
	m, errM := strconv.ParseInt(months, 10, 64)
	s, errS := strconv.ParseInt(seconds, 10, 64)

	if !ok || errM != nil || errS != nil || m > maxTime || s/secondsOfDay > maxTime || s%secondsOfDay != 0 {
		return span{}, fmt.Errorf("%.40s is no duration of whole days, weeks, months or years", iso)
	}
	return span{m, s / secondsOfDay}, nil
}

// maxTime bounds the days and months of a duration.
const (
	maxTime      = 1_000_000
	secondsOfDay = 24 * 60 * 60
)

// apply applies an operator or a function to its operands.
func (n *node) apply(args []value, quotes int) (value, error) {
	switch n.kind {
	case call:
		if n.text == "count" && len(args) == 0 {
			return value{number: big.NewRat(int64(quotes), 1)}, nil
		}
		return functions[n.text](args)
	case negation:
		if args[0].number == nil {
			return value{}, fmt.Errorf("a minus stands in front of a %s", args[0].kindName())
		}
		return value{number: new(big.Rat).Neg(args[0].number)}, nil
	case comparison:
		return compareValues(n.text, args[0], args[1])
	}

	// From here on there are two operands, whose kinds decide what an operator means.
	a, b := args[0], args[1]
	switch {
	case a.number != nil && b.number != nil:
		return arithmetic(n.kind, a.number, b.number)
	case a.day != nil && (b.span != nil || isWholeNumber(b)) && (n.kind == addition || n.kind == subtraction):
		return moveDay(*a.day, b, n.kind == subtraction)
	case a.day != nil && b.day != nil && n.kind == subtraction:
		return value{number: big.NewRat(daysBetween(*b.day, *a.day), 1)}, nil
	case a.span != nil && b.span != nil && (n.kind == addition || n.kind == subtraction):
		return addSpans(*a.span, *b.span, n.kind == subtraction)
	case a.span != nil && isWholeNumber(b) && n.kind == multiplication:
		return timesSpan(*a.span, b)
	case b.span != nil && isWholeNumber(a) && n.kind == multiplication:
		return timesSpan(*b.span, a)
	}

	return value{}, fmt.Errorf("%s cannot join a %s and a %s", n.kind, a.kindName(), b.kindName())
}

func arithmetic(k kind, a, b *big.Rat) (value, error) {
	out := new(big.Rat)
	switch k {
	case addition:
		return value{number: out.Add(a, b)}, nil
	case subtraction:
		return value{number: out.Sub(a, b)}, nil
	case multiplication:
		return value{number: out.Mul(a, b)}, nil
	default:
		if b.Sign() == 0 {
			return value{}, errZero
		}
		return value{number: out.Quo(a, b)}, nil
	}
}

func isWholeNumber(v value) bool {
	return v.number != nil && v.number.IsInt() && v.number.Num().IsInt64() && v.number.Num().Int64() < maxTime && v.number.Num().Int64() > -maxTime
}

// moveDay returns the day so long after another, or before it. A number counts days. A day
// that the month does not have becomes its last one.
func moveDay(day time.Time, by value, back bool) (value, error) {
	s := span{}
	if by.span != nil {
		s = *by.span
	} else {
		s.days = by.number.Num().Int64()
	}

	if back {
		s.months, s.days = -s.months, -s.days
	}

	moved := addMonths(day, s.months).AddDate(0, 0, int(s.days))
	if moved.Year() < 1 || moved.Year() > 9999 {
		return value{}, fmt.Errorf("it leads to the year %d", moved.Year())
	}

	return value{day: &moved}, nil
}

// addMonths returns the same day of another month, or its last one.
func addMonths(day time.Time, months int64) time.Time {
	// The month is moved from its first day, as the day may be one that the other month
	// lacks.
	first := time.Date(day.Year(), day.Month()+time.Month(months), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(day.Day(), last)-1)
}

func addSpans(a, b span, minus bool) (value, error) {
	if minus {
		b.months, b.days = -b.months, -b.days
	}

	s := span{a.months + b.months, a.days + b.days}
	if s.months < 0 || s.days < 0 {
		return value{}, errors.New("it leads to a negative duration")
	}

	return value{span: &s}, nil
}

func timesSpan(s span, by value) (value, error) {
	n := by.number.Num().Int64()
	if n < 0 || s.months*n > maxTime || s.days*n > maxTime {
		return value{}, errors.New("it leads to a duration that is negative or too long")
	}
	return value{span: &span{s.months * n, s.days * n}}, nil
}

// compareValues compares two values of one kind.
func compareValues(sign string, a, b value) (value, error) {
	order := 0
	switch {
	case a.number != nil && b.number != nil:
		order = a.number.Cmp(b.number)
	case a.day != nil && b.day != nil:
		order = a.day.Compare(*b.day)
	default:
		return value{}, fmt.Errorf("a %s is compared with a %s", a.kindName(), b.kindName())
	}

	truth := map[string]bool{
		"<": order < 0, ">": order > 0, "<=": order <= 0, ">=": order >= 0, "==": order == 0, "!=": order != 0,
	}[sign]

	return value{truth: &truth}, nil
}

// daysBetween returns how many days after one day another is.
func daysBetween(from, to time.Time) int64 {
	return int64(to.Sub(from).Hours() / 24)
}

// spanBetween returns the whole months from one day to another, and the days that are left.
func spanBetween(from, to time.Time) span {
	months := int64(to.Year()-from.Year())*12 + int64(to.Month()-from.Month())
	if addMonths(from, months).After(to) {
		months--
	}

	return span{months, daysBetween(addMonths(from, months), to)}
}
