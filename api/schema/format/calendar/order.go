package calendar

import (
	"iter"

	"github.com/coditect/mapreduce/api/schema/format"
)

// A DateOrder says in which order a date of three numbers has them.
type DateOrder string

// The orders. The year of a date in the order YMD may have two digits.
const (
	DMY DateOrder = "dmy"
	MDY DateOrder = "mdy"
	YMD DateOrder = "ymd"
)

// DateOrders returns all orders.
func DateOrders() []DateOrder { return []DateOrder{DMY, MDY, YMD} }

// A NumericDate is a date such as 4/5/2001 in a text: three numbers, of which the last is
// the year or, with two digits, may be.
type NumericDate struct {
	Start, End           int    // bytes of the text
	DayFirst, MonthFirst string // in ISO 8601; empty if there is no such date
	YearFirst            string // the same, of three numbers of two digits
}

// In returns the date as read in an order; empty if there is no such date.
func (d *NumericDate) In(order DateOrder) string {
	switch order {
	case DMY:
		return d.DayFirst
	case MDY:
		return d.MonthFirst
	case YMD:
		return d.YearFirst
	}
	return ""
}

// IsAmbiguous reports whether the date means something else if its day and month change
// places.
func (d *NumericDate) IsAmbiguous() bool {
	return d.DayFirst != "" && d.MonthFirst != "" && d.DayFirst != d.MonthFirst
}

// NumericDates returns the dates of three numbers of a text, in order.
func NumericDates(text string) iter.Seq[NumericDate] {
	return func(yield func(NumericDate) bool) {
		for i := 0; i < len(text); i++ {
			if !digitAt(text, i) || i > 0 && continuesBefore(text, i) {
				continue
			}

			d, ok := numericDateAt(text, i)
			if !ok {
				continue
			}

			if !yield(d) {
				return
			}
			i = d.End - 1
		}
	}
}

// continuesBefore reports whether the number at i is the end of a longer number, or of
// several that belong together.
func continuesBefore(text string, i int) bool {
	switch c := text[i-1]; {
	case c >= '0' && c <= '9':
		return true
	case c == '/' || c == '.' || c == '-':
		return i > 1 && digitAt(text, i-2)
	}
	return false
}

// numericDateAt reads the date of three numbers that begins at text[start].
func numericDateAt(text string, start int) (d NumericDate, ok bool) {
	p := &cursor{s: text, i: start}
	first, digits, ok := p.readNumber(2)
	if !ok || p.isMonthNext() {
		return d, false
	}

	sep, ok := p.readSeparator()
	if !ok {
		return d, false
	}

	second, _, ok := p.readNumber(2)
	if !ok {
		return d, false
	}

	if again, ok := p.readSeparator(); !ok || again != sep {
		return d, false
	}

	last := p.i

	year, ok := p.readYear()
	if !ok || p.continuesNumber(sep) {
		return d, false
	}

	d.Start, d.End = start, p.i

	d.DayFirst, _ = isoDate(year, second, first)

	d.MonthFirst, _ = isoDate(year, first, second)
	// The text may also begin with a year of two digits, if the last number is a day of
	// two.
	if day, n, ok := (&cursor{s: text, i: last}).readNumber(2); ok && n == 2 && digits == 2 && p.i == last+2 {
		d.YearFirst, _ = isoDate(completeCentury(first), second, day)
	}

	return d, d.DayFirst != "" || d.MonthFirst != ""
}

// ParseDateIn reads the first date in s as ParseDate does, but a date of three numbers in
// an order.
func ParseDateIn(order DateOrder, s string) (string, bool) {
	iso, end, ok := findDate(s)
	if !ok || order == "" {
		return iso, ok
	}

	for d := range NumericDates(s) {
		// The date that was found is looked for by its end, to be read again in the order.
		if d.End < end {
			continue
		}

		if read := d.In(order); d.End == end && read != "" {
			return read, true
		}
		break
	}

	return iso, ok
}

// An OrderCount counts the dates of a text that can be read in one order alone, as a
// number of them is above 12.
type OrderCount struct{ DayFirst, MonthFirst int64 }

// CountOrders counts the dates of a text that tell their order.
func CountOrders(text string) (c OrderCount) {
	for d := range NumericDates(text) {
		switch {
		case d.MonthFirst == "":
			c.DayFirst++
		case d.DayFirst == "":
			c.MonthFirst++
		}
	}
	return c
}

// Add adds the counts of another text.
func (c *OrderCount) Add(other OrderCount) {
	c.DayFirst += other.DayFirst
	c.MonthFirst += other.MonthFirst
}

// Order returns the order in which the other dates of the texts are to be read; empty if
// nothing tells it, or if both orders are in use.
func (c OrderCount) Order() DateOrder {
	switch {
	case format.IsClear(c.DayFirst, c.MonthFirst):
		return DMY
	case format.IsClear(c.MonthFirst, c.DayFirst):
		return MDY
	}
	return ""
}

// ParseDateTimeIn reads a date and the time that follows it as ParseDateTime does, but a
// date of three numbers in an order.
func ParseDateTimeIn(order DateOrder, s string) (string, bool) {
	iso, ok := ParseDateTime(s)
	if !ok || order == "" {
		return iso, ok
	}
	date, ok := ParseDateIn(order, s)
	return date + iso[len(date):], ok
}
