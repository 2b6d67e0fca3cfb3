package pdf

import (
	"math"
	"strings"
	"unicode"
)

// Fonts may lie about what their glyphs are: by no map to characters, by letters for private use,
// or by a map that is wrong, such as one that is shifted. The page looks right, and its text is
// what no language has.

// Bounds of text that no language has.
const (
	leastSigns    = 20   // of a page that are judged
	shareStrange  = 0.2  // of signs that are no characters
	leastLetters  = 120  // of Latin script of a page whose letters are judged
	leastLikeness = 0.68 // to how often the letters are in languages of that script; theirs is 0.83 and more, that of shifted ones 0.65 and less
	shareMute     = 0.04 // of words of four letters or more that have no vowel
)

// lies reports whether the fonts of a page lie, by the characters of its text.
func lies(chars []rune) bool {
	signs, strange := 0, 0
	for _, c := range chars {
		if unicode.IsSpace(c) {
			continue
		}
		signs++
		if isStrange(c) {
			strange++
		}
	}

	if signs >= leastSigns && float64(strange) > shareStrange*float64(signs) {
		return true
	}

	return isScrambled(chars)
}

// isStrange reports whether a sign is none of a script: one that is not assigned, for private use,
// or for control.
func isStrange(c rune) bool {
	return !isSoftHyphen(c) && c != '\u200e' && c != '\u200f' && c != '\u00ad' && (!unicode.IsGraphic(c) || c == unicode.ReplacementChar) && !unicode.Is(unicode.Cf, c) ||
		unicode.Is(unicode.Co, c)
}

// letterShares is how often the letters from a to z are in a thousand, in the mean of texts in
// English, German, French, Spanish, Italian, Portuguese, Dutch, Polish and Swedish.
var letterShares = [26]float64{84, 16, 35, 44, 146, 13, 18, 22, 77, 4, 14, 44, 28, 80, 68, 24, 4, 69, 65, 65, 38, 14, 8, 2, 8, 10}

// isScrambled reports whether the letters of Latin script are not those of a language: they are as
// often as in none, and many words have no vowel. A page with capital letters alone, as of names
// and codes, is judged in the same way.
func isScrambled(chars []rune) bool {
	var counts [26]float64

	letters, words, mute, length, vowels := 0.0, 0, 0, 0, 0
	end := func() {
		if length >= 4 {
			words++
			if vowels == 0 {
				mute++
			}
		}
		length, vowels = 0, 0
	}

	for _, c := range chars {
		l := unicode.ToLower(c)
		switch {
		case l >= 'a' && l <= 'z':
			counts[l-'a']++
			letters++
			length++
			if strings.ContainsRune("aeiouy", l) {
				vowels++
			}
		case unicode.IsLetter(c): // with an accent, or of another script
			length++
			vowels++
		default:
			end()
		}
	}

	end()

	return letters >= leastLetters && words >= leastSigns && float64(mute) > shareMute*float64(words) && likeness(counts) < leastLikeness
}

// likeness returns the cosine between counts of letters and how often they are.
func likeness(counts [26]float64) float64 {
	var product, a, b float64
	for i, n := range counts {
		product, a, b = product+n*letterShares[i], a+n*n, b+letterShares[i]*letterShares[i]
	}
	if a == 0 {
		return 1
	}
	return product / math.Sqrt(a*b)
}
