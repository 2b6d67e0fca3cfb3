// Package confidence computes the reliability of a value from facts that can be
// checked: how well its quote agrees with the text, how many readings agree, and
// the verdicts of validators. The confidence that an extractor states plays no
// part. docs/confidence.md has the formula and its measurement.
//
// It is pure and imports nothing of the project but api/schema and other pure packages
// of the worker: how texts are compared.
package confidence

import (
	"math"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/internal/text/lookalike"
)

// Evidence describes one value that was read at one place.
type Evidence struct {
	Property *schema.Property // of the value; for an element, of the list
	Value    any              // normalised
	Quote    string           // as it stands in the text
	Grade    ground.Grade     // with which the quote was found; "" if it was not
	Before   string           // the text before the quote, a line or two
	Basis    Basis            // what led to the value
	Rivals   int              // other values that might as well have been chosen
}

// A Basis is what led an extractor to a value.
type Basis string

// The bases.
const (
	ByReading Basis = ""       // an extractor that reads, or a hint of the schema
	ByColumn  Basis = "column" // the name of the property, as that of a column of a table whose head fits the schema
	ByEntry   Basis = "entry"  // the name of the property, at the head of a line and with a colon behind it
	ByName    Basis = "name"   // the name of the property elsewhere
	ByBlock   Basis = "block"  // its place in a block of values, of labels of which the name is one
	ByType    Basis = "type"   // nothing but the form of the value
	ByGuess   Basis = "guess"  // a label of the schema in a sentence, with words that may change what it means
)

// The constants of the formula. They are round on purpose: they were chosen on one
// half of the documents that docs/confidence.md names, and tested on the other.
const (
	initialDoubt         = 0.25 // doubt in a value if all validators are silent
	doubtPerConfirmation = 0.6  // remaining share of the doubt for each validator that confirms
	contradictionFactor  = 0.2  // remaining share of the confidence for each validator that contradicts
	readingOdds          = 0.15 // odds against the result of one reading
	oddsPerAgreement     = 0.25 // remaining share of these odds for each further reading that agrees
	maxConfidence        = 0.99 // no value is certain
)

// Of returns the confidence in a value that one reading found: the factor of the
// grade times that of the validators. It is 0 without a grade.
func Of(e Evidence) float64 {
	if e.Property == nil {
		return OfGrade(e.Grade) * (1 - initialDoubt)
	}
	return of(e, supportOf(e))
}

// supportOf returns how a quote supports a value. Of a place that only looks like what was looked for,
// the letters that look like digits may be these.
func supportOf(e Evidence) Verdict {
	support := Support(e.Property, e.Value, e.Quote)
	if e.Grade == ground.Lookalike && support == Contradicts {
		return Support(e.Property, e.Value, lookalike.Numbers(e.Quote))
	}
	return support
}

// of is Of for evidence with a property, of which it is known how the quote supports the value.
func of(e Evidence, support Verdict) float64 {
	if e.Basis == ByReading || e.Basis == ByColumn {
		return OfGrade(e.Grade) * validatorFactor(e, support)
	}
	return OfGrade(e.Grade) * guessFactor(e, support)
}

// Most returns the most confidence that a value can have with its quote, whatever led to it
// and whatever stands before the quote.
func Most(e Evidence) float64 {
	e.Rivals = 0
	if e.Property == nil || OfGrade(e.Grade) == 0 {
		return Of(e)
	}

	if len(e.Property.Hints.Labels) > 0 {
		e.Before = e.Property.Hints.Labels[0]
	}

	most, support := 0.0, supportOf(e) // the same whatever led to the value
	for _, basis := range []Basis{ByReading, ByEntry, ByName} {
		e.Basis = basis
		most = max(most, of(e, support))
	}
	return most
}

// OfGrade returns the factor of a grade.
func OfGrade(g ground.Grade) float64 {
	switch g {
	case ground.Exact:
		return 1
	case ground.Normalised:
		return 0.98
	case ground.Fuzzy:
		return 0.8
	case ground.Lookalike: // of a model that saw the picture: what recognition read there has other letters
		return 0.9
	default:
		return 0
	}
}

// Agreement returns the factor for a value that found of the readings of its place
// found, by overlapping chunks and repeated passes. It is 1 for one reading that
// found it. Each further reading that finds it lowers the odds against the value,
// and each that does not raises them as much.
func Agreement(found, of int64) float64 {
	lead := float64(2*min(found, of) - of) // readings that found it minus those that did not
	return (1 + readingOdds) / (1 + readingOdds*math.Pow(oddsPerAgreement, lead-1))
}

// Agreed returns the confidence in a value that found of its readings found, if
// the confidence of a single reading is single.
func Agreed(single float64, found, of int64) float64 {
	return min(single*Agreement(found, of), maxConfidence)
}

// validatorFactor returns the factor of the validators' verdicts.
func validatorFactor(e Evidence, support Verdict) float64 {
	passed, factor := 0, 1.0
	for _, v := range []Verdict{support, judgeForm(e.Property), judgeLabel(e)} {
		switch v {
		case Confirms:
			passed++
		case Contradicts:
			factor *= contradictionFactor
		case Silent:
		}
	}

	return factor * (1 - initialDoubt*math.Pow(doubtPerConfirmation, float64(passed)))
}

// The constants of values that rules guess without a hint of the schema, chosen as those
// above.
const (
	guessedText   = 0.05 // a text beside a word that is also the property's name; a whole number there
	guessedEntry  = 0.4  // a text or whole number that is an entry with the property's name
	guessedAmount = 0.75 // a number with decimals beside the property's name
	guessedBlock  = 0.2  // a number with decimals in a block of values
	guessedNumber = 0.1  // a number that is anywhere
	guessedForm   = 0.97 // a date, an address or another value of a form that few texts have
	guessedHint   = 0.4  // a value that a label of the schema may mean
)

// guessFactor is validatorFactor for a value that nothing but its type led to, or a word
// that is also the name of its property. Its quote and its form confirm themselves, and
// so say nothing of whether it is the value that is meant. Of several values that might
// be, each has its share.
func guessFactor(e Evidence, support Verdict) float64 {
	p := elementOf(e.Property)
	factor := guessedText

	// Forms that few texts have say most, and numbers without a name least.
	switch {
	case e.Basis == ByGuess:
		factor = guessedHint
	case p.Enum != nil || p.Format != "":
		factor = guessedForm
	case p.Numeric() && e.Basis == ByType:
		factor = guessedNumber
	case p.Numeric() && strings.ContainsAny(strings.Trim(e.Quote, ".,"), ".,"):
		factor = guessedAmount
		if e.Basis == ByBlock {
			factor = guessedBlock
		}
	case e.Basis == ByEntry:
		factor = guessedEntry
	}

	factor /= float64(1 + e.Rivals)
	if support == Contradicts {
		factor *= contradictionFactor
	}
	return factor
}
