package format

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
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
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(strings.TrimPrefix(s[i+1:], "+")); err != nil {
			return "", false
		}
		mantissa = s[:i]
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if len(whole)+len(fraction) == 0 || !allDigits(whole) || !allDigits(fraction) {
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

// ParseNumber reads a number as people write it and returns it in canonical
// form: "RM 1,234.50", "1.234,50", "€ 5 Mio", "$1.2M", "(12.00)" and "12.00-" for negative ones. A
// single separator before exactly three digits is taken for grouping when it is
// a comma and for a decimal point when it is a point. What holds a raised number
// or a fraction, such as 10² or 1½, is none of these.
func ParseNumber(s string) (string, bool) {
	if strings.ContainsFunc(s, func(c rune) bool { return unicode.Is(unicode.No, c) }) {
		return "", false
	}
	s = strings.TrimSpace(norm.NFKC.String(s))
	if n, ok := CanonicalNumber(s); ok {
		return n, true
	}
	s, negative := cutSigns(s)
	s, power := cutMagnitude(s)
	s = trimUnits(trimCurrency(s))
	s, inner := cutSigns(s)
	if s == "" {
		return "", false
	}
	// Scanning sets the point apart at times.
	plain, ok := plainDigits(strings.NewReplacer(". ", ".", " .", ".").Replace(s))
	if !ok {
		return "", false
	}
	if negative != inner {
		plain = "-" + plain
	}
	if power > 0 {
		plain += "e" + decimal(int64(power))
	}
	return CanonicalNumber(plain)
}

// cutSigns removes a leading or trailing sign, or the parentheses of accounts.
func cutSigns(s string) (rest string, negative bool) {
	if strings.HasPrefix(s, "(") && strings.HasSuffix(s, ")") {
		return strings.TrimSpace(s[1 : len(s)-1]), true
	}
	for _, minus := range []string{"-", "−", "–"} {
		if rest, ok := strings.CutPrefix(s, minus); ok {
			return strings.TrimSpace(rest), true
		}
		if rest, ok := strings.CutSuffix(s, minus); ok {
			return strings.TrimSpace(rest), true
		}
	}
	return strings.TrimSpace(strings.TrimPrefix(s, "+")), false
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

// plainDigits removes grouping from a run of digits and separators and turns
// the decimal separator into a point.
func plainDigits(s string) (string, bool) {
	s = strings.Map(func(c rune) rune {
		if c == '\'' || c == '’' || unicode.IsSpace(c) {
			return ' '
		}
		return c
	}, s)
	decimal := decimalSeparator(s)
	whole, fraction := s, ""
	if decimal != 0 {
		i := strings.LastIndexByte(s, decimal)
		whole, fraction = s[:i], s[i+1:]
	}
	if !allDigits(fraction) {
		return "", false
	}
	whole, ok := stripThousands(whole)
	if !ok {
		return "", false
	}
	return whole + "." + fraction, whole+fraction != ""
}

// decimalSeparator decides which separator of s is the decimal one: 0 if none.
func decimalSeparator(s string) byte {
	points, commas := strings.Count(s, "."), strings.Count(s, ",")
	lastPoint, lastComma := strings.LastIndexByte(s, '.'), strings.LastIndexByte(s, ',')
	switch {
	case points > 0 && commas > 0:
		if lastPoint > lastComma {
			return '.'
		}
		return ','
	case points == 1:
		return '.'
	case commas == 1 && (len(s)-lastComma-1 != 3 || lastComma == 0 || lastComma > 3 || s[0] == '0'):
		return ','
	default:
		return 0
	}
}

// stripThousands removes separators of thousands; groups after the first must have
// three digits, and all separators must be the same.
func stripThousands(s string) (string, bool) {
	i := strings.IndexAny(s, "., ")
	if i < 0 {
		return s, allDigits(s)
	}
	groups := strings.Split(s, s[i:i+1])
	for j, g := range groups {
		if !allDigits(g) || j > 0 && len(g) != 3 || j == 0 && (len(g) == 0 || len(g) > 3) {
			return "", false
		}
	}
	return strings.Join(groups, ""), true
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
