package pack

import "unicode/utf8"

// charsPerToken is what English text has on average, more or less.
const charsPerToken = 4

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
