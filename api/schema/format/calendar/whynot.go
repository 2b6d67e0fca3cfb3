package calendar

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// WhyNoDate says what a text lacks to be a date, or what is wrong with it; "" if
// nothing in it looks like one.
func WhyNoDate(s string) string {
	numbers := strings.FieldsFunc(s, func(c rune) bool { return !unicode.IsDigit(c) })

	month, name := 0, ""
	for i := range s {
		if i > 0 && letterAt(s, i-1) {
			continue
		}

		start := &cursor{s: s, i: i}
		// Two letters may be anything; the name of a month has more.
		if m, ok := start.readMonth(); ok && len(s[i:start.i]) > 2 {
			month, name = m.month, s[i:start.i]
			break
		}
	}

	day, year := 0, 0
	for _, digits := range numbers {
		n, err := strconv.Atoi(digits)
		switch {
		case err != nil:
		case len(digits) == 4 && year == 0:
			year = n
		case len(digits) <= 2 && day == 0:
			day = n
		}
	}

	switch {
	case month == 0 && len(numbers) == 3:
		return "its numbers are no day, month and year in an order that exists"
	case month == 0:
		return ""
	case year == 0 && len(numbers) < 2:
		return "it has no year"
	case day == 0:
		return "it has no day"
	case year > 0 && day > daysIn(year, month):
		return fmt.Sprintf("%s %d has %d days", name, year, daysIn(year, month))
	default:
		return ""
	}
}
