package program

import (
	"strings"
	"unicode/utf8"
)

// Nearest returns the word of a list that is most like a mistyped one, or "" if none is
// like it. Two words are alike if few letters have to be changed, added, left out or
// swapped: one in words of up to four letters, two in words of up to eight, else three.
// A word that the mistyped one begins is like it too. Of equally good words the first
// counts.
func Nearest(typed string, words []string) string {
	typed = strings.ToLower(typed)
	best, least := "", limitOf(typed)+1
	for _, word := range words {
		if d := distance(typed, strings.ToLower(word)); d < least {
			best, least = word, d
		}
	}

	if best != "" || utf8.RuneCountInString(typed) < 3 {
		return best
	}
	for _, word := range words {
		if strings.HasPrefix(strings.ToLower(word), typed) {
			return word
		}
	}
	return ""
}

// DidYouMean returns the end of a message about a mistyped word, or "" if there is no
// word like it. Before is what stands before the words when a user types them.
func DidYouMean(typed, before string, words []string) string {
	if word := Nearest(typed, words); word != "" {
		return "; did you mean " + before + word + "?"
	}
	return ""
}

// limitOf returns how many letters of a word may be wrong.
func limitOf(word string) int {
	switch n := utf8.RuneCountInString(word); {
	case n <= 4:
		return 1
	case n <= 8:
		return 2
	}
	return 3
}

// distance returns how many letters have to be changed, added, left out or swapped with
// their neighbour to make one word of the other: the optimal string alignment distance.
func distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	rows := make([][]int, len(from)+1) // rows[i][j] is the distance of from[:i] and to[:j]
	for i := range rows {
		rows[i] = make([]int, len(to)+1)
		rows[i][0] = i
	}

	for j := range rows[0] {
		rows[0][j] = j
	}

	for i := 1; i <= len(from); i++ {
		for j := 1; j <= len(to); j++ {
			changed := rows[i-1][j-1]
			if from[i-1] != to[j-1] {
				changed++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, changed)
			if i > 1 && j > 1 && from[i-1] == to[j-2] && from[i-2] == to[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(from)][len(to)]
}
