package find

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/hint"
	"github.com/coditect/mapreduce/internal/text/rules/field"
)

// listElements returns the values of a list, each once.
func listElements(f *field.Field, found []candidate, values []Found) []Found {
	switch f.Property.Hints.Pick {
	case "", hint.PickAll:
	default:
		i := pickValue(f, found, values)
		return values[i : i+1]
	}

	slices.SortStableFunc(values, func(a, b Found) int { return cmp.Compare(a.Start, b.Start) })

	// The first place of a value stays.
	seen := map[string]bool{}
	return slices.DeleteFunc(values, func(v Found) bool {
		id := f.Element.Identity(v.Value)
		if seen[id] {
			return true
		}

		seen[id] = true
		return false
	})
}

// pickValue returns the index of the value that the pick hint asks for, and among
// equals the one with the higher score, then the first in the text. Without a
// hint the longest phrase is taken, being the most specific, or else the value
// at the best label, as it is restated.
func pickValue(f *field.Field, found []candidate, values []Found) int {
	pick := f.Property.Hints.Pick
	if pick == "" && len(f.Values) > 0 {
		pick = hint.PickLongest
	}
	// order compares two candidates; the better one comes first.
	order := func(i, j int) int {
		a, b := found[i], found[j]
		c := 0
		switch pick {
		case hint.PickFirst:
			c = cmp.Compare(a.Start, b.Start)
		case hint.PickLast:
			c = cmp.Compare(b.Start, a.Start)
		case hint.PickLongest:
			c = cmp.Compare(b.End-b.Start, a.End-a.Start)
		case hint.PickMax:
			c = f.Element.Compare(values[j].Value, values[i].Value)
		case hint.PickMin:
			c = f.Element.Compare(values[i].Value, values[j].Value)
		default:
			c = cmp.Compare(a.rank, b.rank)
		}

		return cmp.Or(c, cmp.Compare(b.score, a.score), cmp.Compare(a.Start, b.Start))
	}

	best := 0
	for i := range found {
		if order(i, best) < 0 {
			best = i
		}
	}

	if pick == "" && f.Element.Type == schema.Number {
		return lastRestatement(values, grandTotal(found, values, best))
	}

	return best
}

// grandTotal returns the index of the last value at labels of the same rank as that of
// values[i], if it adds up the others: a bill in parts gives a sum for each of them, then one
// for all. Otherwise it returns i.
func grandTotal(found []candidate, values []Found, i int) int {
	var numbers []float64

	last := i
	for j := range values {
		n, ok := AsFloat(values[j].Value)
		if found[j].rank != found[i].rank || !ok {
			continue
		}
		if values[j].Start < values[last].Start {
			return i // not in the order of the text
		}

		numbers, last = append(numbers, n), j
	}

	if !isSum(numbers) {
		return i
	}

	return last
}

// rounding is the most by which an amount changes when it is rounded to coins.
const rounding = 0.05

// lastRestatement returns the index of the last value in the text that equals
// values[i] but for rounding: bills give the sum first, then the rounding, then
// the amount to pay.
func lastRestatement(values []Found, i int) int {
	amount := func(f Found) float64 {
		n, _ := f.Value.(json.Number)
		v, err := n.Float64()
		if err != nil || !strings.ContainsAny(f.Quote, ".,") {
			return math.Inf(1) // no amount: differs from all
		}
		return v
	}

	for j := range values {
		// The index moves on, so several restatements lead to the last of them.
		if values[j].Start > values[i].Start && math.Abs(amount(values[j])-amount(values[i])) <= rounding+1e-9 {
			i = j
		}
	}

	return i
}

// unitBasis is the basis of a number that its unit alone led to: as good as any other
// hint if it is the only one, else no better than a name.
func unitBasis(f *field.Field, rivals int) Basis {
	if rivals == 0 || f.Property.Hints.Pick != "" {
		return ByHint
	}
	return ByName
}

// countRivals counts the values that differ from values[i], each once.
func countRivals(f *field.Field, values []Found, i int) int {
	seen := map[string]bool{f.Element.Identity(values[i].Value): true}
	for _, v := range values {
		seen[f.Element.Identity(v.Value)] = true
	}
	return len(seen) - 1
}

// isSum reports whether the last of three numbers or more is the sum of the others, but for
// what was rounded.
func isSum(numbers []float64) bool {
	if len(numbers) < 3 {
		return false
	}
	sum := 0.0
	for _, n := range numbers[:len(numbers)-1] {
		sum += n
	}
	last := numbers[len(numbers)-1]
	return last != 0 && math.Abs(last-sum) <= 0.011
}

// AsFloat returns the number that a value of a number is.
func AsFloat(value any) (float64, bool) {
	number, ok := value.(json.Number)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(number), 64)
	return v, err == nil
}

// chooseValues picks among the candidates of the best class that are values of the
// field's type; of those that patterns matched, among what the most preferred did.
func (s *search) chooseValues() ([]Found, string) {
	s.candidates = slices.DeleteFunc(s.candidates, func(c candidate) bool { return !s.InCore(c.Start) })
	if len(s.candidates) == 0 {
		return nil, s.missingReason()
	}

	slices.SortStableFunc(s.candidates, func(a, b candidate) int { return cmp.Compare(a.order, b.order) })
	var refused error // the first candidate that is no value

	for class := s.bestClass(); class >= 0; class-- {
		var typed []candidate
		var values []Found

		for _, c := range s.candidates {
			if classOf(c.score) != class || len(typed) > 0 && c.order > typed[0].order {
				continue
			}

			v, err := s.parseValue(c)
			if err == nil {
				typed, values = append(typed, c), append(values, v)
			} else if refused == nil {
				refused = err
			}
		}

		switch {
		case len(values) == 0:
		case s.Property.Type == schema.Array:
			return listElements(s.Field, typed, values), ""
		default:
			i := pickValue(s.Field, typed, values)
			values[i].Rivals = countRivals(s.Field, values, i)
			if s.Property.Hints.Units != nil && values[i].Basis == ByType {
				values[i].Basis = unitBasis(s.Field, values[i].Rivals)
			}
			return values[i : i+1], ""
		}
	}

	return nil, "what was found cannot be used as a value: " + refused.Error()
}

// missingReason says why nothing was found.
func (s *search) missingReason() string {
	// A label that was not found explains most, so it comes before types and patterns.
	switch {
	case s.LabelsGiven && !s.labelSeen:
		return "no label matched"
	case s.passed != "":
		return s.passed
	case s.labelSeen:
		if s.refused == "" {
			return "no value of the type " + s.TypeName() + " after the label"
		}
		if _, err := s.Element.Normalize(s.refused); err != nil && len(s.Patterns) == 0 && len(s.Values) == 0 {
			return "after the label: " + err.Error()
		}
		return fmt.Sprintf("no value of the type %s after the label, but %q", s.TypeName(), field.Clip(s.refused))
	case len(s.Patterns) > 1:
		return "none of the patterns matched"
	case len(s.Patterns) > 0:
		return "the pattern did not match"
	case len(s.Values) > 0:
		return "none of the phrases was found"
	case s.RecognisedAnywhere():
		return "nothing that looks like a value of the type " + s.TypeName()
	case len(s.Labels) > 0:
		return "no label matched"
	default:
		return "the lines are blank"
	}
}
