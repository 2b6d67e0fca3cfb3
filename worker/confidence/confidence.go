// Package confidence computes how much a value can be relied on, from what can
// be checked: how its quote agrees with the text, how many readings agree with
// each other, and what validators say. What an extractor says of itself has no
// part in it. docs/confidence.md has the formula and how it was measured.
//
// It is pure and imports nothing of the project but api/schema and
// worker/ground.
package confidence

import (
	"math"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/worker/ground"
)

// Evidence is what is known of one value that was read at one place.
type Evidence struct {
	Property *schema.Property // of the value; of an element, the list's
	Value    any              // normalised
	Quote    string           // as it stands in the text
	Grade    ground.Grade     // with which the quote was found; "" if it was not
	Before   string           // the text before the quote, a line or two
}

// The constants of the formula. They are round on purpose: they were chosen on
// one half of the documents that docs/confidence.md names, and judged on the
// other.
const (
	doubt      = 0.25 // in a value of which no validator says anything
	confirmed  = 0.6  // what is left of the doubt after each validator that confirms
	contradict = 0.2  // what is left of the confidence after one that contradicts
	against    = 0.15 // odds against what one reading says
	repeated   = 0.25 // what each further reading that agrees leaves of those odds
	most       = 0.99 // no value is certain
)

// Of returns the confidence in a value that one reading found: grade ×
// validators. Without a grade there is none.
func Of(e Evidence) float64 { return OfGrade(e.Grade) * validators(e) }

// OfGrade returns the factor of a grade.
func OfGrade(g ground.Grade) float64 {
	switch g {
	case ground.Exact:
		return 1
	case ground.Normalised:
		return 0.98
	case ground.Fuzzy:
		return 0.8
	default:
		return 0
	}
}

// Agreement returns the factor for a value that was found by some of the
// readings of its place: by overlapping chunks and repeated passes. It is 1 for
// one reading that found it. Each further one that does lowers the odds against
// the value, each that does not raises them as much.
func Agreement(found, of int64) float64 {
	lead := float64(2*min(found, of) - of) // of those that found it over those that did not
	return (1 + against) / (1 + against*math.Pow(repeated, lead-1))
}

// Agreed returns the confidence in a value of which one reading has the given
// confidence, and which some of its readings found.
func Agreed(single float64, found, of int64) float64 {
	return min(single*Agreement(found, of), most)
}

// validators returns the factor of what the validators say.
func validators(e Evidence) float64 {
	if e.Property == nil {
		return 1 - doubt
	}
	passed, factor := 0, 1.0
	for _, v := range []Verdict{Support(e.Property, e.Value, e.Quote), form(e.Property), label(e)} {
		switch v {
		case Confirms:
			passed++
		case Contradicts:
			factor *= contradict
		case Silent:
		}
	}
	return factor * (1 - doubt*math.Pow(confirmed, float64(passed)))
}
