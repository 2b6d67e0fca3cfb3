package confidence

import (
	"strings"

	"github.com/coditect/mapreduce/api/schema/format"
)

// A quotation is a quote with what was read of it, each once: an object has many values, and
// one quote for all of them.
type quotation struct {
	text string

	folded  *string // memory of fold
	parted  *string // memory of space
	words   map[string]bool
	numbers *[]quantity
	dates   *[]string
}

// fold returns the quote for comparison, see format.Fold.
func (q *quotation) fold() string {
	if q.folded == nil {
		folded := format.Fold(q.text)
		q.folded = &folded
	}
	return *q.folded
}

// space returns the quote with its words apart, see spaced.
func (q *quotation) space() string {
	if q.parted == nil {
		parted := spacedOf(q.fold())
		q.parted = &parted
	}
	return *q.parted
}

// has reports whether a word, folded, is one of the quote.
func (q *quotation) has(word string) bool {
	if q.words == nil {
		q.words = map[string]bool{}
		for _, w := range splitWords(q.fold()) {
			q.words[w] = true
		}
	}
	return q.words[word]
}

// quantities returns the quantities of the quote.
func (q *quotation) quantities() []quantity {
	if q.numbers == nil {
		numbers := readQuantities(q.text)
		q.numbers = &numbers
	}
	return *q.numbers
}

// certainDates returns the dates of the quote that are read in one way alone.
func (q *quotation) certainDates() []string {
	if q.dates == nil {
		dates := datesOf(q.text)
		q.dates = &dates
	}
	return *q.dates
}

// saysSomething reports whether the quote has a letter or a digit.
func (q *quotation) saysSomething() bool { return hasWords(q.text) }

// spansCells reports whether the quote spans several lines or cells. Its digits then
// belong to several numbers, as in "2\n500.00".
func (q *quotation) spansCells() bool {
	return strings.ContainsAny(strings.TrimSpace(q.text), "\n\r\t\v\f")
}
