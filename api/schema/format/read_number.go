package format

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxNumeral bounds the bytes of a number as people write it.
const maxNumeral = 512

// ParseNumber reads a number as people write it and returns it in canonical
// form: "RM 1,234.50", "1.234,50", "€ 5 Mio", "$1.2M", "(12.00)" and "12.00-" for negative
// ones. Of several readings it returns the most usual, see ReadNumber: a single
// separator before exactly three digits is taken for grouping when it is
// a comma and for a decimal point when it is a point. What holds a raised number
// or a fraction, such as 10² or 1½, is none of these.
func ParseNumber(s string) (string, bool) {
	readings := ReadNumber(s, NumberStyle{})
	if len(readings) == 0 {
		return "", false
	}
	return readings[0], true
}

// ReadNumber returns what a number as people write it may mean in a text of a style, in
// canonical form, the most usual first: nothing if it is no number, one reading if it is
// sure, and several where the style leaves open how it is to be read. 1.500 may be
// fifteen hundred or one and a half, (12.00) may be negative or a remark, and 1.2M a
// million or a length.
func ReadNumber(s string, style NumberStyle) []string {
	if len(s) > maxNumeral {
		return nil
	}

	if isPlainNumber(s) {
		n, _ := CanonicalNumber(s)
		return []string{n}
	}

	s, power := cutPower(joinGroups(plainDigitsOf(s)))
	if strings.ContainsFunc(s, func(c rune) bool { return unicode.Is(unicode.No, c) }) {
		return nil
	}

	s = strings.TrimSpace(norm.NFKC.String(s))
	if readings, ok := readScientific(s, style); ok {
		return scaled(readings, []int{power})
	}

	// The sign may stand outside of currency and unit, or right at the digits.
	s, outer := cutSigns(s)
	s, powers := cutMagnitude(s)
	s = trimUnits(trimCurrency(s))
	s, inner := cutSigns(s)

	if strings.Contains(s, ". ") || strings.Contains(s, " .") { // scanning sets the point apart at times
		s = apartPoint.Replace(s)
	}
	digits := readDigits(s, style)

	for i := range powers {
		powers[i] += power
	}

	return withSigns(scaled(digits, powers), outer, inner, style)
}

// isPlainNumber reports whether s is a number of digits, with at most a minus in front and a
// point in front of decimals, that every style reads in the same way: where a point could as
// well stand between groups of three digits, it is not. Most numbers of tables are plain.
func isPlainNumber(s string) bool {
	whole, fraction, hasPoint := strings.Cut(strings.TrimPrefix(s, "-"), ".")
	if whole == "" || len(s) > maxDigits || !allDigits(whole) || !allDigits(fraction) {
		return false
	}
	if !hasPoint {
		return true
	}
	mayBeGroup := len(fraction) == 3 && len(whole) <= 3 && whole[0] != '0'
	return fraction != "" && !mayBeGroup
}

// apartPoint removes the blank on one side of a point.
var apartPoint = strings.NewReplacer(". ", ".", " .", ".")

// plainDigitsOf returns s with the digits and separators of Arabic, Persian and Indian
// scripts as those of ASCII, and without marks of the direction of writing.
func plainDigitsOf(s string) string {
	if isASCII(s) {
		return s
	}

	return strings.Map(func(c rune) rune {
		switch {
		case c < 0x80:
			return c
		case c == '\u066b':
			return '.'
		case c == '\u066c':
			return '\''
		case c == '\u066a':
			return '%'
		case c == '\u200e' || c == '\u200f' || c == '\u061c':
			return -1
		}

		for _, zero := range []rune{'\u0660', '\u06f0', '\u0966', '\u09e6'} {
			// The zeros of Arabic, Persian, Devanagari and Bengali digits: the other nine
			// follow each.
			if c >= zero && c <= zero+9 {
				return '0' + c - zero
			}
		}

		return c
	}, s)
}

// isASCII reports whether all characters of s are of ASCII.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// joinGroups writes an apostrophe for the blanks that hold a number together: unlike a
// plain one they do not stand between two numbers.
func joinGroups(s string) string {
	if strings.IndexByte(s, '\xc2') < 0 && strings.IndexByte(s, '\xe2') < 0 {
		return s
	}

	runes := []rune(s)
	for i, c := range runes {
		if i == 0 || i+1 == len(runes) || !isASCIIDigit(runes[i-1]) || !isASCIIDigit(runes[i+1]) {
			continue
		}

		if strings.ContainsRune(tightBlanks, c) {
			runes[i] = '\''
		}
	}

	return string(runes)
}

// tightBlanks are the blanks that hold the groups of a number together.
const tightBlanks = "\u00a0\u202f\u2009\u2007"

func isASCIIDigit(c rune) bool { return c >= '0' && c <= '9' }

// cutPower removes a power of ten behind a number, as in 1.5×10³ and 1.5 x 10^3.
func cutPower(s string) (rest string, power int) {
	at := strings.LastIndex(s, "10")
	if at <= 0 {
		return s, 0
	}

	head := strings.TrimRight(s[:at], " \u00a0")
	for _, times := range []string{"×", "·", "x", "*", "⋅"} {
		number, ok := strings.CutSuffix(head, times)
		if !ok || number == "" {
			continue
		}

		exponent, isRaised := s[at+2:], false
		// An exponent without ^ must be raised, or 10 and its digits are a number.
		if after, ok := strings.CutPrefix(exponent, "^"); ok {
			exponent = after
		} else {
			exponent, isRaised = norm.NFKC.String(exponent), true
		}

		n, err := strconv.Atoi(strings.Replace(strings.TrimSpace(exponent), "−", "-", 1))
		if err != nil || isRaised && norm.NFKC.String(s[at+2:]) == s[at+2:] || n > maxExponent || n < -maxExponent {
			return s, 0
		}

		return strings.TrimRight(number, " \u00a0"), n
	}

	return s, 0
}

// readScientific reads a number with an exponent, as 1.5e3, whose digits are never in
// groups.
func readScientific(s string, style NumberStyle) ([]string, bool) {
	i := strings.IndexAny(s, "eE")
	if i < 0 {
		return nil, false
	}
	mantissa, exponent := s[:i], strings.TrimPrefix(s[i+1:], "+")
	if style.Decimal != '.' && strings.Count(mantissa, ",") == 1 {
		mantissa = strings.Replace(mantissa, ",", ".", 1)
	}
	n, ok := CanonicalNumber(mantissa + "e" + exponent)
	return []string{n}, ok
}

// scaled returns the numbers times each of the powers of ten.
func scaled(numbers []string, powers []int) []string {
	var all []string
	for _, power := range powers {
		for _, n := range numbers {
			if power != 0 {
				n += "e" + strconv.Itoa(power)
			}
			if n, ok := CanonicalNumber(n); ok && !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
	}

	return all
}

// A sign is what stands for the sign of a number.
type sign string

// The signs. Those of accounts mean a minus only in texts that have this form.
const (
	noSign    sign = ""
	minusSign sign = "minus"
	trailing  sign = "-"
	brackets  sign = "()"
)

// cutSigns removes a leading or trailing sign, or the parentheses of accounts. A line
// behind a comma or point stands for decimals that are zero: 99,-.
func cutSigns(s string) (rest string, found sign) {
	if strings.HasPrefix(s, "(") && strings.HasSuffix(s, ")") {
		return strings.TrimSpace(s[1 : len(s)-1]), brackets
	}

	for _, minus := range []string{"-", "−", "–"} {
		if rest, ok := strings.CutPrefix(s, minus); ok {
			return strings.TrimSpace(rest), minusSign
		}

		rest, ok := strings.CutSuffix(s, minus)
		// The line behind a comma stands for decimals, so it is no sign.
		if whole := strings.TrimRight(rest, "-−–"); ok && whole != strings.TrimRight(whole, ",.") {
			return strings.TrimRight(whole, ",."), noSign
		}

		if ok {
			return strings.TrimSpace(rest), trailing
		}
	}

	return strings.TrimSpace(strings.TrimPrefix(s, "+")), noSign
}

// withSigns returns the readings with the signs that stood around the number and beside
// its currency.
func withSigns(numbers []string, outer, inner sign, style NumberStyle) []string {
	factors := []bool{false} // whether the number is negative
	for _, one := range []sign{outer, inner} {
		// A sign that the style does not settle keeps both readings, the negative one
		// first.
		switch {
		case one == noSign:
		case one == minusSign || style.Negative == string(one):
			factors = flipped(factors)
		default:
			factors = append(flipped(factors), factors...)
		}
	}

	var all []string
	for _, negative := range factors {
		for _, n := range numbers {
			if negative && n != "0" {
				n = "-" + n
			}
			if !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
	}

	return all
}

func flipped(list []bool) []bool {
	other := make([]bool, len(list))
	for i, v := range list {
		other[i] = !v
	}
	return other
}

// groupSigns may stand between groups of digits.
var groupSigns = []byte{',', '.', '\'', ' '}

// isGrouped reports whether s has digits and what may stand between them, and nothing else.
func isGrouped(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isASCIIDigit(rune(c)) && !slices.Contains(groupSigns, c) {
			return false
		}
	}
	return true
}

// readDigits returns what a run of digits and separators may mean.
func readDigits(s string, style NumberStyle) []string {
	s = strings.ReplaceAll(strings.Join(strings.FieldsFunc(s, unicode.IsSpace), " "), "’", "'")
	if !isGrouped(s) { // words, which no style reads
		return nil
	}

	all := readDigitsBy(s, style)
	if len(all) == 0 { // it breaks the style of its text, and can be read in one way alone
		all = readDigitsBy(s, NumberStyle{Blanks: style.Blanks})
	}
	return all
}

func readDigitsBy(s string, style NumberStyle) []string {
	if allDigits(s) && s != "" {
		return []string{s}
	}

	var all []string
	add := func(n string, ok bool) {
		if n, fits := CanonicalNumber(n); ok && fits && !slices.Contains(all, n) {
			all = append(all, n)
		}
	}

	for _, decimal := range []byte{'.', ','} {
		if style.Decimal != 0 && style.Decimal != decimal {
			continue
		}

		for _, group := range groupSigns {
			if group == decimal || group == ' ' && style.Blanks == No {
				continue
			}

			n, ok := readGroups(s, decimal, group)
			add(n, ok)
		}
	}

	if first, rest, ok := strings.Cut(s, " "); ok && len(all) > 0 && style.Blanks == Unknown && !strings.Contains(rest, ",") {
		add(first, allDigits(first)) // it may as well be two numbers
		last := rest[strings.LastIndexByte(rest, ' ')+1:]
		add(last, true)
	}

	return all
}

// readGroups reads digits with one sign in front of decimals and another between groups
// of three digits; or of two digits before the last three, as in India.
func readGroups(s string, decimal, group byte) (string, bool) {
	whole, fraction := s, ""
	if strings.Count(s, string(rune(decimal))) == 1 {
		i := strings.IndexByte(s, decimal)
		whole, fraction = s[:i], s[i+1:]
	}

	if !allDigits(fraction) {
		return "", false
	}

	groups := strings.Split(whole, string(rune(group)))
	if len(groups) == 1 {
		return whole + "." + fraction, allDigits(whole) && whole+fraction != ""
	}

	last := len(groups) - 1
	indian := last > 1 && len(groups[1]) == 2 && group == ','
	// In India, all groups but the last have two digits at most.
	for j, g := range groups {
		want := 3
		if indian && j < last {
			want = 2
		}

		if !allDigits(g) || j > 0 && len(g) != want || j == 0 && (g == "" || len(g) > want || g[0] == '0') {
			return "", false
		}
	}

	return strings.Join(groups, "") + "." + fraction, true
}
