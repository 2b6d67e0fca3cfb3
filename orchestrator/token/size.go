package token

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Names of estimators. Characters may be followed by how many characters a token
// is taken for, as in "characters/4.9".
const (
	O200kBase  = "o200k_base" // the tokens of that encoding
	Characters = "characters" // a quarter of the characters: a guess, and worth a warning
)

// charsPerToken is what English text has on average, more or less.
const charsPerToken = 4

// Characters that a token may be taken for.
const (
	leastChars = 1
	mostChars  = 16
)

// Unknown is the count of a provider that gave none.
const Unknown int64 = -1

// A Source says where a count of tokens comes from, the best first.
type Source uint8

// Where counts come from.
const (
	Counted   Source = iota // the provider counted
	Estimated               // by the estimator of the job
	Guessed                 // a quarter of the characters: worth a warning
)

var sourceNames = [...]string{"provider", "estimator", "characters"}

// String returns the source's name.
func (s Source) String() string {
	if int(s) < len(sourceNames) {
		return sourceNames[s]
	}
	return "unknown"
}

// An Estimator counts the tokens of a text. One that is at a loss returns a
// negative number.
type Estimator func(text string) int64

// Named returns the estimator of a name, which "" is O200kBase for; that one is
// count. That of Characters is nil: Size guesses.
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
		return nil, fmt.Errorf("%.80q is none: it must be %s, %s, or %s/N with N characters a token, from %d to %d",
			name, O200kBase, Characters, Characters, leastChars, mostChars)
	}
	return func(text string) int64 { return int64(float64(utf8.RuneCountInString(text)) / chars) }, nil
}

// Size returns how many tokens a text has, and how that is known. The provider's
// count wins if it has one, 0 included; then the estimator's, if there is one;
// then it is a quarter of the characters, rounded down.
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
