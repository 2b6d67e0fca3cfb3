package derive

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/internal/text/confidence"
)

// maxGuessed bounds the quotes of which a formula is guessed.
const maxGuessed = 50

// guessFormula returns the simplest formula by which a number, a duration or an amount follows from its
// quotes, each of which has one number, or one date; "" if there is none. A count, a least and
// a greatest value are never guessed, as too many values are one by chance.
func guessFormula(p *schema.Property, v any, quotes []Quote) string {
	if len(quotes) < 2 || len(quotes) > maxGuessed || !needsFormula(p, v) {
		return ""
	}

	// The simplest formulas come first, and the first that fits is taken.
	for _, formula := range append(ofNumbers(quotes), ofDates(quotes)...) {
		n, err := parse(formula)
		if err != nil {
			continue
		}

		got, err := n.computeValue(len(quotes))
		c := &checker{quotes: quotes}
		if err != nil {
			continue
		}
		if _, ok := c.compare(p, v, got, n); ok {
			return formula
		}
	}
	return ""
}

// ofNumbers returns the formulas of quotes with one number each.
func ofNumbers(quotes []Quote) []string {
	var numbers []string
	for _, q := range quotes {
		number, ok := onlyNumber(q)
		if !ok {
			return nil
		}
		numbers = append(numbers, number)
	}

	formulas := []string{"sum(" + strings.Join(numbers, ", ") + ")"}

	if len(numbers) > 2 {
		return append(formulas, "average("+strings.Join(numbers, ", ")+")")
	}

	// Nothing tells which of two numbers comes first, so both orders are tried.
	for _, form := range []string{"%s - %s", "%s * %s", "%s / %s", "percent(%s, %s)", "change(%s, %s)"} {
		formulas = append(formulas, fmt.Sprintf(form, numbers[0], numbers[1]), fmt.Sprintf(form, numbers[1], numbers[0]))
	}

	return append(formulas, fmt.Sprintf("average(%s, %s)", numbers[0], numbers[1]))
}

// onlyNumber returns the number of a quote that has one, as it is usually read.
func onlyNumber(q Quote) (string, bool) {
	found := ""
	for start, end := range format.Numerals(q.Text, q.Numbers) {
		readings := format.ReadNumber(q.Text[start:end], q.Numbers)
		if len(readings) == 0 || found != "" {
			return "", false
		}
		found = readings[0]
	}

	return found, found != "" && confidence.Support(numberProperty, json.Number(found), q.Text) == confidence.Confirms
}

// ofDates returns the formulas of two quotes with a date each, in the order of these.
func ofDates(quotes []Quote) []string {
	if len(quotes) != 2 {
		return nil
	}

	var dates []string
	for _, q := range quotes {
		iso, ok := calendar.ParseDate(strings.TrimSpace(q.Text))
		if !ok || dateIn(iso, q) != sure {
			return nil
		}
		dates = append(dates, iso)
	}

	// In ISO form the order of texts is that of days.
	if dates[0] > dates[1] {
		dates[0], dates[1] = dates[1], dates[0]
	}

	var formulas []string
	for _, form := range []string{"days(%s, %s)", "months(%s, %s)", "years(%s, %s)", "duration(%s, %s)"} {
		formulas = append(formulas, fmt.Sprintf(form, dates[0], dates[1]))
	}

	return formulas
}
