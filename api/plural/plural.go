// Package plural writes counts of things in English, for texts that people read. It imports
// nothing of the project.
package plural

import (
	"strconv"
	"strings"
)

// Count returns n and what is counted: "1 unit", "2 units". The noun is the singular; words
// may stand before it, as in "failed unit".
func Count[N ~int | ~int64](n N, noun string) string {
	return strconv.FormatInt(int64(n), 10) + " " + Noun(n, noun)
}

// Of returns how many of all things something holds for: "0 of 1 unit", "1 of 2 units".
func Of[N ~int | ~int64](n, all N, noun string) string {
	return strconv.FormatInt(int64(n), 10) + " of " + Count(all, noun)
}

// Noun returns the singular for one thing, and else its plural.
func Noun[N ~int | ~int64](n N, noun string) string {
	if n == 1 {
		return noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok && !strings.HasSuffix(stem, "e") { // keys
		return stem + "ies"
	}
	return noun + "s"
}
