package sheet

import (
	"math"
	"strconv"
	"strings"
)

// fractionMark stands for the part of a second in a format: a character that no text has.
const fractionMark = "\uE000"

// storedDigits is how many digits of a second are kept of a time whose format shows any: days are floats,
// and have no more that mean something.
const storedDigits = 3

// markFraction returns a format of times with fractionMark in place of the digits behind the seconds, and
// how many these are. The library cuts them off where programs round, and has none in most dates.
func markFraction(code string) (marked string, digits int) {
	if code == builtinMark+"47" {
		code = "mm:ss.0"
	}

	var out strings.Builder
	seconds := false // they stand before i
	for i := 0; i < len(code); i++ {
		end := min(skipLiteral(code, i), len(code)-1)
		zeros := countZeros(code[i+1:])

		switch {
		case code[i] == '.' && seconds && zeros > 0:
			if digits != 0 && digits != zeros { // the sections differ, which none is known to do
				return code, 0
			}
			digits, end = zeros, i+zeros
			out.WriteString(`"` + fractionMark + `"`)
		default:
			out.WriteString(code[i : end+1])
		}

		seconds = strings.Trim(strings.ToLower(code[i:end+1]), "[s]") == ""
		i = end
	}
	return out.String(), digits
}

// countZeros returns with how many zeros a text begins.
func countZeros(s string) int { return len(s) - len(strings.TrimLeft(s, "0")) }

// splitSecond returns a number of days in whole seconds, and so many digits of the part of a second that is
// left.
func splitSecond(days float64, digits int) (seconds float64, part string) {
	scale := math.Pow10(digits)
	n := math.Round(days * 24 * 3600 * scale)
	seconds = math.Floor(n / scale)

	part = strconv.FormatFloat(n-seconds*scale, 'f', 0, 64)
	return seconds, strings.Repeat("0", max(0, digits-len(part))) + part
}

// storedPart returns a number of days in whole seconds, and the part of a second that is left as it stands
// behind them, if the format shows so many digits of it. It returns the number as it is if there are none.
func storedPart(number float64, digits int) (days float64, part string) {
	if digits == 0 {
		return number, ""
	}

	seconds, part := splitSecond(number, max(digits, storedDigits))
	if part = strings.TrimRight(part, "0"); part != "" {
		part = "." + part
	}
	return seconds / (24 * 3600), part
}
