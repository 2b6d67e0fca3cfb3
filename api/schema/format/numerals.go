package format

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema/format/internal/scan"
)

// Numerals returns the places [start, end) of the numbers of a text that stand for
// themselves, with sign, the brackets of accounts and what multiplies them: not parts of
// dates, times, telephone numbers or codes. A plain blank between groups of thousands
// belongs to the number if the style allows it.
func Numerals(text string, style NumberStyle) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for i := 0; i < len(text); {
			if !isDigit(text[i]) {
				i++
				continue
			}

			n := numeral{text: text, start: i, end: endOfDigits(text, i, style)}
			digits := n.end

			n.addPower()
			if (n.addMagnitude() || n.mayEnd()) && n.mayBegin() && !yield(n.start, n.end) {
				return
			}

			// The search goes on behind all that was looked at, be it a number or not.
			i = max(n.end, digits)
		}
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return (c|0x20) >= 'a' && (c|0x20) <= 'z' }

// endOfDigits returns the end of a run of digits with separators inside. It
// bridges a space that a Scanner put before the decimals, as in "12. 50".
func endOfDigits(text string, start int, style NumberStyle) int {
	i := start
	for i < len(text) {
		switch {
		case isDigit(text[i]):
			i++
		case strings.IndexByte(".,'", text[i]) >= 0 && i+1 < len(text) && isDigit(text[i+1]):
			i++
		case gapInDecimals(text[i:]):
			i += 2
		case tightGap(text[i:]) > 0:
			i += tightGap(text[i:])
		case text[i] == ' ' && style.Blanks != No && groupsFollow(text[start:i], text[i:]):
			i++
		default:
			return i
		}
	}

	return i
}

// tightGap returns the length of the sign that holds groups of digits together with which
// s begins, 0 if there is none.
func tightGap(s string) int {
	c, width := utf8.DecodeRuneInString(s)
	if c < utf8.RuneSelf || c != '’' && !strings.ContainsRune(tightBlanks, c) || !threeDigits(s[width:]) {
		return 0
	}
	return width
}

// maxGroups bounds the groups of thousands in a number.
const maxGroups = 8

// groupsFollow reports whether rest begins with groups of three digits behind blanks, and
// head is what may stand in front of them: one to three digits, or such with groups.
func groupsFollow(head, rest string) bool {
	if len(head) > 4*maxGroups || head[0] == '0' {
		return false
	}

	for i, group := range strings.Split(head, " ") {
		if !allDigits(group) || i == 0 && len(group) > 3 || i > 0 && len(group) != 3 {
			return false
		}
	}

	for range maxGroups {
		if len(rest) == 0 || rest[0] != ' ' || !threeDigits(rest[1:]) {
			return false
		}
		rest = rest[4:]
		if len(rest) == 0 || rest[0] != ' ' || !threeDigits(rest[1:]) {
			break
		}
	}

	if len(rest) > 1 && (rest[0] == '.' || rest[0] == ',') && isDigit(rest[1]) {
		// Decimals end the number, unless another separator follows them.
		digits := len(rest[1:]) - len(strings.TrimLeft(rest[1:], "0123456789"))
		next := byte(' ')
		if 1+digits < len(rest) {
			next = rest[1+digits]
		}
		return next != '.' && next != ','
	}

	return true
}

// threeDigits reports whether s begins with three digits and no more.
func threeDigits(s string) bool {
	return len(s) >= 3 && isDigit(s[0]) && isDigit(s[1]) && isDigit(s[2]) && (len(s) == 3 || !isDigit(s[3]))
}

// gapInDecimals reports whether s begins with ". 50" or " .50".
func gapInDecimals(s string) bool {
	if len(s) < 4 || s[:2] != ". " && s[:2] != " ." {
		return false
	}
	return isDigit(s[2]) && isDigit(s[3]) && (len(s) == 4 || s[4] != '.' && !isWordByte(s[4]))
}

func isWordByte(c byte) bool { return isDigit(c) || isLetter(c) || c >= utf8.RuneSelf }

// A numeral is a run of digits that may be a number; it grows over what belongs to it.
type numeral struct {
	text       string
	start, end int
}

// maxExponentBytes bounds the bytes of a power of ten behind a number.
const maxExponentBytes = 24

// addPower extends the number over a power of ten, as in 1.5e3 and 1.5×10³.
func (n *numeral) addPower() {
	rest := n.text[n.end:min(len(n.text), n.end+maxExponentBytes)]
	if rest == "" {
		return
	}

	if rest[0]|0x20 == 'e' && (n.hasDecimals() || len(rest) > 1 && (rest[1] == '-' || rest[1] == '+')) {
		after := strings.TrimLeft(rest[1:], "+-")
		digits := len(after) - len(strings.TrimLeft(after, "0123456789"))
		if to := len(rest) - len(after) + digits; digits > 0 && digits <= 3 && len(rest)-len(after) <= 2 && (to == len(rest) || !isWordByte(rest[to])) {
			n.end += to
			return
		}
	}

	if !strings.Contains(rest, "10") {
		return // most numbers end here
	}

	// The longest exponent is tried first.
	for to := min(len(rest), maxExponentBytes); to > len("x10"); to-- {
		if to < len(rest) && !utf8.RuneStart(rest[to]) {
			continue
		}
		if _, power := cutPower("1" + rest[:to]); power != 0 && strings.TrimRight(rest[:to], " ") == rest[:to] {
			n.end += to
			return
		}
	}
}

// addMagnitude extends the number over a word that multiplies it, as in 5 Mio and
// $1.2M, and reports whether there is one. A letter behind a number that is no amount of
// money belongs to it too, as it may be one.
func (n *numeral) addMagnitude() bool {
	money := false
	for _, sign := range []string{"$", "€", "£", "¥"} {
		money = money || strings.HasSuffix(strings.TrimRight(n.text[:n.start], " "), sign)
	}

	if end := MagnitudeEnd(n.text, n.end, money); end != n.end {
		if end == n.end+1 && money { // the letter needs its currency
			n.start = lastBreak(strings.TrimRight(n.text[:n.start], " "))
		}
		n.end = end
		return true
	}

	next, after := n.byteAt(n.end), n.byteAt(n.end+1)
	if _, ok := bareMagnitudes[string(rune(next))]; ok && !isWordByte(after) && !isCurrencyCode(n.text, n.end) {
		n.end++
		return true
	}

	return false
}

// byteAt returns the byte at i, a space beyond the ends.
func (n *numeral) byteAt(i int) byte {
	if i < 0 || i >= len(n.text) {
		return ' '
	}
	return n.text[i]
}

func (n *numeral) hasDecimals() bool {
	return strings.ContainsAny(n.text[n.start:n.end], ".,")
}

// MaxTaxCode is the longest code that may follow an amount at once, as in 9.50SR.
const MaxTaxCode = 3

// attachedUnits may follow a whole number at once, as in 5kg. Other letters there make it
// a code.
var attachedUnits = strings.Fields("kg g mg t km m cm mm l ml kWh MWh kW W V A Ah GB MB TB kB h min s x EUR USD GBP CHF Stk pcs pc ha ft in lb lbs oz")

// mayEnd reports whether the number may end where it does, judging by the text
// behind it. A minus at the end becomes part of the number.
func (n *numeral) mayEnd() bool {
	next, after := n.byteAt(n.end), n.byteAt(n.end+1)
	switch {
	case next == '-' && (after == ' ' || after == '\n' || after == '\r' || after == '\t' || after == '|'):
		n.end++
		return true
	case next == '-':
		return !isWordByte(after)
	case next == '/' || next == ':':
		return !isDigit(after)
	}

	word := scan.Word(n.text, n.end, 2*longestWord)
	c, _ := utf8.DecodeRuneInString(n.text[n.end:])
	switch {
	case n.end >= len(n.text):
		return true
	case word == "" && unicode.IsLetter(c):
		return false // too long a word
	case word == "":
		return !unicode.IsNumber(c) && (c != '–' && c != '−' || !isDigit(n.byteAt(n.end+len("–"))))
	case scan.IsEastAsian(c) || slices.Contains(attachedUnits, word):
		return true
	case !n.hasDecimals():
		return false
	}

	// A number with decimals may run into the letters of a tax code.
	letters := 0
	for isWordByte(n.byteAt(n.end + letters)) {
		if letters++; letters > MaxTaxCode {
			return false
		}
	}

	return true
}

// mayBegin reports whether the number may begin where it does, judging by the
// text before it. A sign, a leading point or an opening parenthesis becomes part
// of the number.
func (n *numeral) mayBegin() bool {
	withCurrency, i := n.beforeCurrency()
	c, width := utf8.DecodeLastRuneInString(n.text[:i])

	switch {
	case i == 0:
		return true
	case c == '(' && n.byteAt(n.end) == ')' && (n.hasDecimals() || n.isCell(i-width, n.end+1)):
		n.start, n.end = i-width, n.end+1
		return true
	case c == '-' || c == '−' || c == '–':
		return n.addMinus(i, width)
	case withCurrency:
		return true
	case c == '.':
		return n.addPoint(i - width)
	case c == '/' || c == ':':
		return !isDigit(n.byteAt(i - 2))
	default:
		return scan.IsEastAsian(c) || !unicode.IsLetter(c) && !unicode.IsNumber(c)
	}
}

// addMinus extends the number over the line in front of it, unless that joins it to
// something else. A dash behind a word is none of its own.
func (n *numeral) addMinus(i, width int) bool {
	before, _ := utf8.DecodeLastRuneInString(n.text[:i-width])
	joined := unicode.IsLetter(before) || unicode.IsNumber(before) || before == '-' || before == '−' || before == '–'
	if joined && i-width > 0 && !n.isCurrency(i-width) {
		return false
	}
	n.start = i - width
	return true
}

// addPoint extends the number over a point in front of its decimals. Of several points, as
// between a name and a page, none belongs to it.
func (n *numeral) addPoint(at int) bool {
	before, _ := utf8.DecodeLastRuneInString(n.text[:at])
	switch {
	case before == '.' || before == '…':
		return true
	case at > 0 && (unicode.IsLetter(before) || unicode.IsNumber(before)):
		return false
	}
	n.start = at
	return true
}

// isCell reports whether [start, end) stands in a cell of its own: between lines, tabs,
// bars or gaps, or behind a colon.
func (n *numeral) isCell(start, end int) bool {
	from, to := start, end
	for from > 0 && n.text[from-1] == ' ' {
		from--
	}
	for to < len(n.text) && n.text[to] == ' ' {
		to++
	}
	begins := from == 0 || start-from > 1 || strings.HasSuffix(n.text[:from], "..") || strings.IndexByte("\n\t|:", n.text[from-1]) >= 0
	ends := to == len(n.text) || to-end > 1 || strings.IndexByte("\r\n\t|", n.text[to]) >= 0
	return begins && ends
}

// numeralCurrencies may stand before an amount without a space.
var numeralCurrencies = []string{
	"RM", "USD", "US", "EUR", "GBP", "MYR", "SGD", "S", "RS", "INR", "CHF", "AUD", "A", "CAD", "C", "HKD", "HK",
	"NT", "TWD", "JPY", "CNY", "RMB", "IDR", "RP", "THB", "PHP", "KR", "R", "ZAR", "BRL",
}

// isCurrency reports whether the word that ends at end is a currency; a single
// letter is one only before a $.
func (n *numeral) isCurrency(end int) bool {
	start := end
	for start > 0 && end-start <= MaxTaxCode && isLetter(n.text[start-1]) { // one more than any currency has
		start--
	}
	if start > 0 && isWordByte(n.text[start-1]) {
		return false
	}
	word := strings.ToUpper(n.text[start:end])
	return slices.Contains(numeralCurrencies, word) && (len(word) > 1 || n.byteAt(end) == '$')
}

// isRand reports whether an R alone stands in front of an amount, which has groups or
// decimals: R8 807,50 is one, R8 may be the name of anything.
func (n *numeral) isRand(end int) bool {
	if end == 0 || n.text[end-1] != 'R' || end > 1 && isWordByte(n.text[end-2]) || end != n.start {
		return false
	}
	return strings.ContainsFunc(n.text[n.start:n.end], func(c rune) bool { return !unicode.IsDigit(c) })
}

// EndsWithCurrency reports whether a currency stands right in front of text[end:].
func EndsWithCurrency(text string, end int) bool {
	n := numeral{text: text}
	return n.isCurrency(end)
}

// isCurrencyCode reports whether the letters at i are a currency.
func isCurrencyCode(text string, i int) bool {
	_, ok := currencyCodes[strings.ToLower(scan.Word(text, i, 2*longestWord))]
	return ok
}

// beforeCurrency returns the position of a currency that is attached to the number, or of
// the number if there is none.
func (n *numeral) beforeCurrency() (found bool, i int) {
	i = n.start
	if c, width := utf8.DecodeLastRuneInString(n.text[:i]); unicode.Is(unicode.Sc, c) {
		i -= width
		found = true
	}

	if n.isCurrency(i) || n.isRand(i) {
		for i > 0 && isLetter(n.text[i-1]) {
			i--
		}
		found = true
	}

	return found, i
}
