package find

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/text/rules/field"
	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/rules/phrase"
	"github.com/coditect/mapreduce/internal/text/table"
)

// A scope is where one field is looked for: a text, the field, and the part of the text that is searched
// now. It tells what the places there are to the field: its labels, and what may be a value of it.
type scope struct {
	*Document
	*field.Field
	index int  // of the field
	area  area // the part that is searched now
}

// candidatesIn returns the places in r that have the form of a value.
func (s *scope) candidatesIn(r form.Span) []candidate {
	switch {
	case len(s.Patterns) > 0:
		return s.patternMatches(r)
	case len(s.Values) > 0:
		return s.phrasesIn(r)
	case s.Scan != nil:
		var found []candidate
		for _, v := range s.Scan(s.Text, r.Start, r.End, s.Style) {
			found = append(found, candidate{Span: v, matchStart: v.Start, value: -1})
		}
		return found
	default:
		return nil
	}
}

// phrasesIn returns the canonical values that phrases in r stand for.
func (s *scope) phrasesIn(r form.Span) []candidate {
	var found []candidate
	for _, m := range phrase.Between(s.valueMarks[s.index], r.Start, r.End) {
		if m.End <= r.End {
			found = append(found, candidate{Span: m.Span, matchStart: m.Start, value: m.Value})
		}
	}
	return found
}

// patternMatches returns what the patterns match in r. A group that took no part in
// a match holds no value.
func (s *scope) patternMatches(r form.Span) []candidate {
	var found []candidate
	for order, p := range s.Patterns {
		s.findAll(p.Pattern, r, func(m []int) {
			for _, group := range p.Groups {
				if m[2*group] < 0 {
					continue
				}

				v := form.Trim(s.Text, form.NewSpan(m[2*group], m[2*group+1]))
				if v.Start >= v.End {
					continue
				}

				if len(s.Values) == 0 {
					found = append(found, candidate{Span: v, matchStart: m[0], value: -1, order: order})
					continue
				}

				// With phrases, what the pattern matched must hold one of them.
				for _, c := range s.phrasesIn(v) {
					c.matchStart, c.order = m[0], order
					found = append(found, c)
				}
			}
		})
	}

	return found
}

// dateBonus returns what a date without a label gains over three small numbers:
// for a year of four digits or a month by its name, and for a time behind it.
func (s *scope) dateBonus(v form.Span) int {
	if s.Element.Format != schema.Date || len(s.Patterns) > 0 {
		return 0
	}

	more := 0
	quote := s.Text[v.Start:v.End]
	if hasYear(quote) || strings.ContainsFunc(quote, unicode.IsLetter) {
		more = bonusCertain
	}

	end := min(v.End+len(", 08:13"), len(s.Text))
	if len(form.Times(s.Text, v.End, end)) > 0 {
		more += bonusCertain
	}

	return more
}

// hasYear reports whether one of several numbers in a date has four digits.
func hasYear(date string) bool {
	numbers := strings.FieldsFunc(date, func(c rune) bool { return !unicode.IsDigit(c) })
	return len(numbers) > 1 && slices.ContainsFunc(numbers, func(n string) bool { return len(n) == len("2018") })
}

// basisOf returns what a candidate was found by.
func (s *scope) basisOf(c candidate) Basis {
	h := &s.Property.Hints

	// The first that applies counts: a guess is one even where hints were given.
	switch {
	case c.byForm:
		return ByType
	case c.guess || s.LabelsGiven && len(s.Patterns) == 0 && c.score <= scoreApart:
		return ByGuess
	case s.LabelsGiven || len(s.Patterns) > 0 || h.Lines != nil || h.Within != nil || s.After != nil || s.Before != nil ||
		len(h.Values) > 0:
		return ByHint
	case c.score >= scoreEntry:
		return ByEntry
	case c.matchStart < c.Start && c.score <= scoreBlock && c.score >= scoreBlock-penaltyConfused:
		return ByBlock
	case c.matchStart < c.Start:
		return ByName
	default:
		return ByType
	}
}

// parseValue reads a candidate's value.
func (s *scope) parseValue(c candidate) (Found, error) {
	quote := s.Text[c.Start:c.End]
	f := Found{
		Field: s.Path, Quote: quote, Start: c.Start, End: c.End,
		Confidence: float64(min(max(c.score, 5), 95)) / 100, Basis: s.basisOf(c),
	}

	var err error
	if c.value >= 0 {
		f.Value = s.Values[c.value].Canonical
	} else if f.Value, err = s.valueOf(c); err != nil {
		return f, err
	}

	// What the schema excludes is refused only now, as it may name the text or the value.
	if s.IsExcluded(quote, f.Value) {
		return f, fmt.Errorf("%q %w", field.Clip(quote), field.ErrExcluded)
	}

	return f, nil
}

// valueOf returns the value that a candidate is.
func (s *scope) valueOf(c candidate) (any, error) {
	if !c.cell {
		return s.readValue(s.Text[c.Start:c.End])
	}
	value, _, err := s.CellValue(table.Cell{Start: c.whole.Start, End: c.whole.End}.Text(s.Text), s.Style, s.Reading.Stop)
	return value, err
}

// readValue normalises a quote, after what the schema wants to be replaced.
func (s *scope) readValue(quote string) (any, error) {
	return s.ReadText(quote, s.Style, s.Reading.Stop)
}

// scoreAlone is the score of a value without a label.
func (s *scope) scoreAlone() int {
	switch {
	case s.LabelsGiven:
		return scoreNoLabel
	case len(s.Patterns) > 0:
		return scorePattern
	case len(s.Values) > 0:
		return scorePhrase
	case s.Property.Hints.Lines != nil && !s.RecognisedAnywhere():
		return scoreLine
	default:
		return scoreForm
	}
}
