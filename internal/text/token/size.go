package token

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Names of estimators. Characters may have the number of characters a token behind
// it, as in "characters/4.9".
const (
	O200kBase  = "o200k_base" // counts the tokens of that encoding
	Characters = "characters" // guesses a quarter of the characters, which deserves a warning
)

// charsPerToken is roughly the average of English text.
const charsPerToken = 4

// Bounds of the characters a token in the name of an estimator.
const (
	leastChars = 1
	mostChars  = 16
)

// Unknown stands for a count that the provider did not give.
const Unknown int64 = -1

// A Source tells where a count of tokens comes from.
type Source uint8

// Sources, the best first.
const (
	Counted   Source = iota // the provider counted
	Estimated               // by the estimator of the job
	Guessed                 // a quarter of the characters, which deserves a warning
)

var sourceNames = [...]string{"provider", "estimator", "characters"}

// String returns the source's name.
func (s Source) String() string {
	if int(s) < len(sourceNames) {
		return sourceNames[s]
	}
	return "unknown"
}

// An Estimator counts the tokens of a text. It returns a negative number if it
// cannot.
type Estimator func(text string) int64

// Named returns the estimator with a name. O200kBase, or "", counts with count. The
// estimator of Characters is nil, so that Size guesses.
func Named(name string, count func(text string) int) (Estimator, error) {
	switch name {
	case "", O200kBase:
		return func(text string) int64 { return int64(count(text)) }, nil
	case Characters:
		return nil, nil
	}

	ratio, ok := strings.CutPrefix(name, Characters+"/")
	chars, err := strconv.ParseFloat(ratio, 64)
	if !ok || err != nil || !(chars >= leastChars && chars <= mostChars) {
		return nil, fmt.Errorf("%.80q is not an estimator: it must be %s, %s, or %s/N with N characters a token, from %d to %d",
			name, O200kBase, Characters, Characters, leastChars, mostChars)
	}

	return func(text string) int64 { return int64(float64(utf8.RuneCountInString(text)) / chars) }, nil
}

// Size returns the number of tokens of a text, and the source of the number. It
// prefers the provider's count, which may be 0, then the estimator's, and otherwise
// returns a quarter of the characters, rounded down.
func Size(text string, provider int64, estimate Estimator) (int64, Source) {
	if provider >= 0 {
		return provider, Counted
	}
	if estimate != nil {
		if n := estimate(text); n >= 0 {
			return n, Estimated
		}
	}
	return int64(utf8.RuneCountInString(text)) / charsPerToken, Guessed
}
