package format

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on numbers: with them a number in plain notation, and the exact sum of
// many, stays small.
const (
	maxDigits   = 200
	maxExponent = 308
)

// CanonicalNumber rewrites a JSON number in plain notation: 60.30 and 6.03e1
// become 60.3. It refuses what is not a number or is out of bounds.
func CanonicalNumber(s string) (string, bool) {
	mantissa, raised := s, "0"
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, raised = s[:i], strings.TrimPrefix(s[i+1:], "+")
	}

	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if len(whole)+len(fraction) == 0 || !allDigits(whole) || !allDigits(fraction) {
		return "", false // most words end here, before an error is made of what follows their e
	}

	exponent, err := strconv.Atoi(raised)
	if err != nil {
		return "", false
	}

	if len(whole)+len(fraction) > maxDigits || exponent > maxExponent || exponent < -maxExponent {
		return "", false
	}

	digits, point := whole+fraction, len(whole)+exponent
	if point > len(digits) {
		digits += strings.Repeat("0", point-len(digits))
	} else if point < 0 {
		digits, point = strings.Repeat("0", -point)+digits, 0
	}

	whole = strings.TrimLeft(digits[:point], "0")
	fraction = strings.TrimRight(digits[point:], "0")
	if whole == "" {
		whole = "0"
	}
	if fraction != "" {
		whole += "." + fraction
	}

	// Zero has no sign.
	if negative && whole != "0" {
		whole = "-" + whole
	}

	return whole, true
}

// MaxNumber bounds the characters of a JSON number that is computed with, and its exponent.
const MaxNumber = 400

// IsComputable reports whether a float can hold a JSON number, and whether what checks
// values against a JSON Schema can compute with it: that panics on exponents beyond a
// million, and a float takes any that is negative, as 0.
func IsComputable(number string) bool {
	if f, err := strconv.ParseFloat(number, 64); err != nil || math.IsInf(f, 0) || len(number) > MaxNumber {
		return false
	}
	i := strings.IndexAny(number, "eE")
	if i < 0 {
		return true
	}
	exponent, err := strconv.Atoi(number[i+1:])
	return err == nil && exponent >= -MaxNumber && exponent <= MaxNumber
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// maxUnit is the longest currency or unit that may stand beside a number,
// in characters.
const maxUnit = 4

// trimUnits removes a currency or unit before and after the digits.
func trimUnits(s string) string {
	isUnit := func(c rune) bool {
		return unicode.IsLetter(c) || unicode.Is(unicode.Sc, c) || c == '%' || c == '.' || c == ' '
	}

	if i := strings.IndexFunc(s, unicode.IsDigit); i > 0 {
		// A point that is one of decimals, or a hyphen, stays with the digits behind it.
		head := strings.TrimRight(s[:i], " ")
		switch {
		case head == "." || strings.HasSuffix(head, " .") || endsWithPoint(head):
			head = strings.TrimSuffix(head, ".")
			i--
		case strings.HasSuffix(head, "-"):
			head = strings.TrimSuffix(head, "-")
			i = len(head)
		}
		if utf8.RuneCountInString(strings.TrimSpace(head)) <= maxUnit && strings.TrimFunc(head, isUnit) == "" {
			s = s[i:]
		}
	}

	if i := strings.LastIndexFunc(s, unicode.IsDigit); i >= 0 {
		tail := strings.TrimSpace(s[i+1:])
		if utf8.RuneCountInString(tail) <= maxUnit && strings.TrimFunc(tail, isUnit) == "" {
			s = s[:i+1]
		}
	}

	return s
}

// endsWithPoint reports whether the text before digits ends with a decimal point after
// a currency sign, as in $.50. The point in Rs.50 belongs to an abbreviation.
func endsWithPoint(head string) bool {
	sign, ok := strings.CutSuffix(head, ".")
	r, _ := utf8.DecodeLastRuneInString(sign)
	return ok && unicode.Is(unicode.Sc, r)
}

// CompareNumbers orders two numbers in canonical form exactly.
func CompareNumbers(a, b string) int {
	x, negX := strings.CutPrefix(a, "-")
	y, negY := strings.CutPrefix(b, "-")

	switch {
	case negX && !negY:
		return -1
	case negY && !negX:
		return 1
	case negX:
		// Of two negative numbers the one with the larger digits is less.
		x, y = y, x
	}

	wholeX, fractionX, _ := strings.Cut(x, ".")
	wholeY, fractionY, _ := strings.Cut(y, ".")

	if len(wholeX) != len(wholeY) {
		return len(wholeX) - len(wholeY)
	}

	if c := strings.Compare(wholeX, wholeY); c != 0 {
		return c
	}

	return strings.Compare(fractionX, fractionY)
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
