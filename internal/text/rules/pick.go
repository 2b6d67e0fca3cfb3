package rules

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
)

// listElements returns the values of a list, each once.
func (f *field) listElements(found []candidate, values []Found) []Found {
	switch f.property.Hints.Pick {
	case "", schema.PickAll:
	default:
		i := f.pickValue(found, values)
		return values[i : i+1]
	}

	slices.SortStableFunc(values, func(a, b Found) int { return cmp.Compare(a.Start, b.Start) })

	// The first place of a value stays.
	seen := map[string]bool{}
	return slices.DeleteFunc(values, func(v Found) bool {
		id := f.element.Identity(v.Value)
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
func (f *field) pickValue(found []candidate, values []Found) int {
	pick := f.property.Hints.Pick
	if pick == "" && len(f.values) > 0 {
		pick = schema.PickLongest
	}
	// order compares two candidates; the better one comes first.
	order := func(i, j int) int {
		a, b := found[i], found[j]
		c := 0
		switch pick {
		case schema.PickFirst:
			c = cmp.Compare(a.Start, b.Start)
		case schema.PickLast:
			c = cmp.Compare(b.Start, a.Start)
		case schema.PickLongest:
			c = cmp.Compare(b.End-b.Start, a.End-a.Start)
		case schema.PickMax:
			c = f.element.Compare(values[j].Value, values[i].Value)
		case schema.PickMin:
			c = f.element.Compare(values[i].Value, values[j].Value)
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

	if pick == "" && f.element.Type == schema.Number {
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
		n, ok := asFloat(values[j].Value)
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
func (f *field) unitBasis(rivals int) Basis {
	if rivals == 0 || f.property.Hints.Pick != "" {
		return ByHint
	}
	return ByName
}

// countRivals counts the values that differ from values[i], each once.
func (f *field) countRivals(values []Found, i int) int {
	seen := map[string]bool{f.element.Identity(values[i].Value): true}
	for _, v := range values {
		seen[f.element.Identity(v.Value)] = true
	}
	return len(seen) - 1
}
