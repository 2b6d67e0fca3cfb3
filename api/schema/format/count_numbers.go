package format

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema/format/internal/scan"
)

// CountNumbers counts what the numbers of a text tell of its style. It counts only what
// can be nothing else: 3.2 may be the number of a section, 14.30 a time and 31.12 a date,
// so without a currency, a percent sign or a unit these tell nothing.
func CountNumbers(text string) NumberCount {
	var c NumberCount
	for start, end := range Numerals(text, NumberStyle{}) {
		n := numeral{text: text, start: start, end: end}
		c.Add(n.tells(n.isMeasured()))
	}
	return c
}

// CountAmount counts what a text tells that is known to be a number, such as a cell of a
// column of numbers: its decimals are no time and no date.
func CountAmount(text string) NumberCount {
	var c NumberCount
	for start, end := range Numerals(text, NumberStyle{}) {
		n := numeral{text: text, start: start, end: end}
		c.Add(n.tells(true))
	}
	return c
}

// tells returns what a number tells of the style of its text. It is sure if nothing but a
// number can stand there.
func (n *numeral) tells(sure bool) NumberCount {
	var c NumberCount
	written := n.text[n.start:n.end]
	n.countSign(&c, written)

	digits := strings.Trim(joinGroups(written), "()-−–+ ")
	digits = strings.ReplaceAll(strings.TrimRightFunc(digits, func(r rune) bool { return r >= utf8.RuneSelf || !isDigit(byte(r)) }), "’", "'")
	if len(digits) > maxNumeral {
		return c
	}

	if len(readDigitsBy(digits, NumberStyle{Blanks: Yes})) > 1 {
		n.countByCurrency(&c, digits)
		return c
	}

	for _, decimal := range []byte{'.', ','} {
		for _, group := range groupSigns {
			if _, ok := readGroups(digits, decimal, group); group == decimal || !ok {
				continue
			}
			n.countSigns(&c, digits, decimal, group, sure)
			return c
		}
	}
	return c
}

// countSigns counts the signs of a number that can be read in one way alone.
func (n *numeral) countSigns(c *NumberCount, digits string, decimal, group byte, sure bool) {
	groups := strings.Count(digits, string(rune(group)))
	decimals := 0
	if i := strings.IndexByte(digits, decimal); i >= 0 {
		decimals = len(digits) - i - 1
	}

	if groups > 0 && group == ' ' && (decimals == 0 || groups == 1 && decimal == '.') {
		return // it may be several numbers
	}

	isDecimal := decimals > 0 && (sure || groups > 0 || !n.mayBeOther(digits, decimal, decimals))
	isGroup := groups > 1 && (group == '.' || group == ',') || groups > 0 && decimals > 0
	switch {
	case isDecimal && decimal == '.', isGroup && group == ',':
		c.Points++
	case isDecimal && decimal == ',', isGroup && group == '.':
		c.Commas++
	}

	switch {
	case groups == 0:
	case group == ' ' || strings.ContainsAny(n.text[n.start:n.end], tightBlanks):
		c.Blanks++
	case isGroup:
		c.Marks++
	}
}

// mayBeOther reports whether a number with decimals may be something else: with a point a
// time, a date, a month or the number of a section, with a comma two of a list.
func (n *numeral) mayBeOther(digits string, decimal byte, decimals int) bool {
	whole, fraction := digits[:len(digits)-decimals-1], digits[len(digits)-decimals:]

	if decimal == ',' {
		return decimals != 2
	}

	switch decimals {
	case 2:
		return len(whole) <= 2 && whole <= "31" && fraction <= "59"
	case 4:
		return len(whole) <= 2 && (strings.HasPrefix(fraction, "19") || strings.HasPrefix(fraction, "20"))
	default:
		return decimals < 4
	}
}

// countByCurrency counts a number with two readings if it is an amount of a currency whose
// people write it in one way: nobody writes $1,500 for one dollar and a half.
func (n *numeral) countByCurrency(c *NumberCount, digits string) {
	decimal, ok := currencyDecimals[n.currency()]
	if !ok {
		return
	}
	switch {
	case decimal == '.' && strings.Count(digits, ",") > 0 && !strings.Contains(digits, "."):
		c.Points++
	case decimal == ',' && strings.Count(digits, ".") > 0 && !strings.Contains(digits, ","):
		c.Commas++
	}
}

// currencyDecimals has for currencies, as written, the sign in front of decimals.
var currencyDecimals = func() map[string]byte {
	signs := make(map[string]byte)
	for forms, sign := range map[string]byte{
		"$ us$ a$ au$ s$ sg$ hk$ nz$ nt$ £ ₹ rs rm ¥ 円 ₩ 원 ₪ ฿ ₱ ₦": '.',
		"r$ kr ₺ tl rp ₫": ',',
	} {
		for form := range strings.FieldsSeq(forms) {
			signs[form] = sign
		}
	}
	return signs
}()

// currency returns the sign or the short name of a currency right in front of the number or
// behind it, in lower case; "" if there is none. A $ behind a blank is left out, as it
// stands so in Latin America.
func (n *numeral) currency() string {
	head := n.text[:n.start]
	tight := strings.TrimRight(head, " \u00a0.")
	front := strings.ToLower(tight[lastBreak(tight):])
	// A currency in front of the number counts before one behind it.
	if _, ok := currencyDecimals[front]; ok && (tight == head || !strings.HasSuffix(front, "$") || len(front) > 1) {
		return front
	}

	rest := strings.TrimLeft(n.text[n.end:min(len(n.text), n.end+2*longestWord)], " \u00a0")
	word := strings.ToLower(scan.Word(rest, 0, longestWord))
	if word == "" && rest != "" {
		_, width := utf8.DecodeRuneInString(rest)
		word = rest[:width]
	}

	if strings.HasPrefix(word, "円") || strings.HasPrefix(word, "원") {
		word = word[:len("円")]
	}

	if word == "$" || word == "£" {
		return ""
	}
	return word
}

// lastBreak returns where the last word of s begins, with a sign of a currency in it, among
// its last bytes.
func lastBreak(s string) int {
	floor := max(0, len(s)-longestWord)
	i := strings.LastIndexFunc(s[floor:], func(r rune) bool { return !unicode.IsLetter(r) && !unicode.Is(unicode.Sc, r) })
	if i < 0 {
		return floor
	}
	_, width := utf8.DecodeRuneInString(s[floor+i:])
	return floor + i + width
}

// measures may stand behind a number, with a blank or without.
var measures = strings.Fields("% ‰ kg g mg km m cm mm ml l kWh MWh kW GB MB °C °F m² m³ kr zł kč ft lei TL Rs")

// isMeasured reports whether a currency, a percent sign or a unit stands beside the number.
func (n *numeral) isMeasured() bool {
	head := strings.TrimRight(n.text[:n.start], " \u00a0")
	front := strings.ToLower(strings.TrimRight(head[lastBreak(head):], "."))
	if _, ok := currencyCodes[front]; ok && front != "" || strings.HasSuffix(head, "%") {
		return true
	}
	if c, _ := utf8.DecodeLastRuneInString(head); unicode.Is(unicode.Sc, c) {
		return true
	}

	rest := strings.TrimLeft(n.text[n.end:min(len(n.text), n.end+2*longestWord)], " \u00a0\u202f")
	if c, _ := utf8.DecodeRuneInString(rest); unicode.Is(unicode.Sc, c) {
		return true
	}
	word := rest
	if i := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",.;:)|/", r) }); i >= 0 {
		word = rest[:i]
	}
	_, isCurrency := currencyCodes[strings.ToLower(word)]
	return word != "" && (isCurrency || slices.Contains(measures, word) || strings.HasPrefix(word, "%"))
}

// countSign counts the form of a negative number.
func (n *numeral) countSign(c *NumberCount, written string) {
	switch {
	case strings.HasPrefix(written, "("):
		if n.isCell(n.start, n.end) {
			c.Brackets++
		}
	case strings.HasSuffix(written, "-") && len(written) > 1:
		c.Trailing++
	case strings.HasPrefix(written, "-") || strings.HasPrefix(written, "−"):
		c.Minuses++
	}
}
