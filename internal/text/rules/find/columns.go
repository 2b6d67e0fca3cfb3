package find

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/internal/text/rules/field"
	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/table"
)

// addColumn adds the values of the cells below a label. Of several that differ, the last may
// add up the others; otherwise none is more likely than another to be the one value of a
// field. A single row is that of a form if others of its heads are labels, too; else it may be
// the one item of a list.
func (s *search) addColumn(cells []table.Cell, isForm bool) {
	before := len(s.candidates)
	s.addFromCells(cells)
	added := s.candidates[before:]
	if s.LabelsGiven {
		for i := range added {
			added[i].score = scoreNextLine // an entry of a form comes first
		}
	}

	if s.LabelsGiven && !isForm && !s.IsList() && s.Property.Hints.Pick == "" {
		for i := range added {
			added[i].score, added[i].guess = scoreApart, true
		}
	}

	if len(added) < 2 || s.IsList() || s.Property.Hints.Pick != "" || s.agree(added) {
		return
	}

	switch {
	case s.addsUp(added):
		s.candidates = append(s.candidates[:before], added[len(added)-1])
	case s.LabelsGiven && !s.MayGuess():
		s.candidates = s.candidates[:before]
		s.passed = cmp.Or(s.passed, "several values stand below the label, and the last does not add up the others")
	default:
		for i := range added {
			added[i].guess = true
		}
	}
}

// addStacked adds the values of the rows below a label. Where it is not known which cells
// stand below it, they are guesses at best.
func (s *search) addStacked(t *stack, isForm bool) {
	cells, placed := t.column()
	if placed {
		s.addColumn(cells, isForm)
		return
	}

	if s.LabelsGiven && !s.MayGuess() {
		s.passed = cmp.Or(s.passed, "the rows below the label have fewer cells than there are labels, so which cell is its value is not known")
		return
	}

	before := len(s.candidates)
	s.addFromCells(cells)
	for i := range s.candidates[before:] {
		c := &s.candidates[before+i]
		c.score, c.guess = scoreApart, true
	}
}

// addsUp reports whether the last of three candidates or more is the sum of the others.
func (s *scope) addsUp(candidates []candidate) bool {
	numbers := make([]float64, len(candidates))
	for i, c := range candidates {
		v, err := s.valueOf(c)
		if err != nil {
			return false
		}

		n, ok := AsFloat(v)
		if !ok {
			return false
		}
		numbers[i] = n
	}

	return isSum(numbers)
}

// inRow returns what counts of the numbers behind a label. Of the amounts of a row that
// differ, one that adds up those in front of it is what the label is of; settled is false if
// there is none, as each may then be of another column.
func (s *scope) inRow(found []candidate) (counting []candidate, settled bool) {
	if !s.Element.Numeric() || s.IsList() || len(found) < 2 || len(s.Patterns)+len(s.Values) > 0 || s.Element.Hints.Units != nil {
		return found, true
	}

	var amounts []candidate
	// In a field of amounts, a number without decimals may be a count.
	for _, c := range found {
		if s.coarsePenalty(c.Span) == 0 {
			amounts = append(amounts, c)
		}
	}

	for n := len(amounts); n > 2; n-- {
		if s.addsUp(amounts[:n]) {
			return amounts[n-1 : n], true
		}
	}

	inTable := strings.HasPrefix(strings.TrimSpace(s.LineText(s.LineAt(found[0].Start))), "|")
	ambiguous := inTable && s.LabelsGiven && !s.MayGuess() && s.Property.Hints.Pick == "" && len(amounts) > 1
	return found, !ambiguous || s.agree(amounts)
}

// outsideDates returns the numbers that are no parts of dates in r: a date may stand between a
// label and its amount.
func (s *scope) outsideDates(found []candidate, r form.Span) []candidate {
	if !s.Element.Numeric() || len(found) < 2 || len(s.Patterns)+len(s.Values) > 0 {
		return found
	}

	dates := field.DateScanner(s.Text, r.Start, r.End, s.Style)
	if len(dates) == 0 {
		return found
	}

	var kept []candidate
	for _, c := range found {
		if !slices.ContainsFunc(dates, func(d form.Span) bool { return c.Start >= d.Start && c.Start < d.End }) {
			kept = append(kept, c)
		}
	}
	return kept
}

// agree reports whether all candidates are one value.
func (s *scope) agree(candidates []candidate) bool {
	first := ""
	for i, c := range candidates {
		v, err := s.valueOf(c)
		if err != nil {
			return false
		}

		if i == 0 {
			first = s.Element.Identity(v)
		} else if s.Element.Identity(v) != first {
			return false
		}
	}
	return true
}
