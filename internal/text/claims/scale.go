package claims

import (
	"strings"

	"github.com/coditect/mapreduce/internal/text/prose"
)

// scales are words that multiply the number in front of them, as powers of ten.
var scales = map[string]int{
	"thousand": 3, "thousands": 3, "million": 6, "millions": 6, "billion": 9, "billions": 9, "trillion": 12, "trillions": 12,
}

// scaleBehind returns the power of ten of the word behind the i-th, 0 if that is not a number
// in figures with such a word behind it.
func scaleBehind(words []prose.Word, i int) int {
	if i+1 >= len(words) || !words[i].Number || !isFigure(words[i].Lower) {
		return 0
	}
	return scales[words[i+1].Lower]
}

func isFigure(text string) bool { return strings.ContainsAny(text, "0123456789") }

// shifted returns a number in plain figures times a power of ten: 8.738 by 3 is 8738.
func shifted(value string, places int) string {
	whole, decimals, _ := strings.Cut(value, ".")
	digits, point := whole+decimals, len(whole)+places
	if point <= 0 {
		digits, point = strings.Repeat("0", 1-point)+digits, 1
	}
	if point > len(digits) {
		digits += strings.Repeat("0", point-len(digits))
	}

	whole, decimals = strings.TrimLeft(digits[:point], "0"), strings.TrimRight(digits[point:], "0")
	switch {
	case decimals == "":
		return whole
	case whole == "":
		return "0." + decimals
	}
	return whole + "." + decimals
}
