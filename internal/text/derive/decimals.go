package derive

import (
	"math/big"
	"regexp"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/schema"
)

// maxStated bounds the decimals that a schema states: a step of 1/3 has no end of them.
const maxStated = 20

// DecimalsOf returns how many decimals the schema allows numbers of a property: none of an integer, 2 of multiples
// of 0.01. It is not ok if the schema does not say it, or the property is no number.
func DecimalsOf(p *schema.Property) (n int, ok bool) {
	if p.Type == schema.Integer {
		return 0, true
	}
	if p.Type != schema.Number {
		return 0, false
	}

	for _, k := range p.Keywords {
		step, isNumber := new(big.Rat).SetString(string(k.Value))
		if k.Name != "multipleOf" || !isNumber {
			continue
		}

		for n, ten := 0, big.NewRat(10, 1); n <= maxStated; n++ {
			if step.IsInt() {
				return n, true
			}
			step.Mul(step, ten)
		}
	}
	return 0, false
}

// written finds numbers of digits, with the signs that texts set between them.
var written = regexp.MustCompile(`[0-9]+(?:[.,'’ \x{00a0}\x{202f}][0-9]+)*`)

// DecimalsIn returns with how many decimals a text writes a number in canonical form: 2 for 1234.5 in "1.234,50 €".
// It is not ok if the text does not have the number, or writes it in another way, such as with a word for
// thousands.
func DecimalsIn(number, text string) (n int, ok bool) {
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(number, "-"), ".")

	for _, run := range written.FindAllString(text, -1) {
		zeros, isNumber := strings.CutPrefix(digitsOf(run), whole+fraction)
		if !isNumber || strings.Trim(zeros, "0") != "" {
			continue
		}

		// The last sign may set off thousands: only decimals explain zeros behind the number.
		n := len(fraction) + len(zeros)
		if n == 0 || strings.LastIndexAny(run, ".,") == len(run)-n-1 {
			return n, true
		}
	}
	return 0, false
}

// digitsOf returns the digits of a text.
func digitsOf(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return r
		}
		return -1
	}, text)
}

// Padded returns a number in canonical form with n decimals at least: it loses no digit.
func Padded(number string, n int) string {
	whole, fraction, _ := strings.Cut(number, ".")
	if n <= len(fraction) {
		return number
	}
	return whole + "." + fraction + strings.Repeat("0", n-len(fraction))
}

// Rounded returns a number in canonical form with n decimals at most, and half of the last one up. A text
// that is no number stays as it is.
func Rounded(number string, n int) string {
	_, fraction, _ := strings.Cut(number, ".")
	exact, ok := new(big.Rat).SetString(number)
	if len(fraction) <= n || !ok {
		return number
	}

	short := exact.FloatString(n)
	if strings.Contains(short, ".") {
		short = strings.TrimRight(strings.TrimRight(short, "0"), ".")
	}
	if short == "-0" {
		return "0"
	}
	return short
}
