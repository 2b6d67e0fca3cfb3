package form

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/worker/rules/span"
)

// scanNumbers finds numbers that stand for themselves, with sign or the
// parentheses of accounts: not parts of dates, times, telephone numbers or
// codes.
func scanNumbers(text string, start, end int) []span.Span {
	var found []span.Span
	for i := start; i < end; {
		if !IsDigit(text[i]) {
			i++
			continue
		}
		n := numberToken{text: text[start:end], Span: span.New(i-start, endOfDigits(text, i, end)-start)}
		if (n.addMagnitude() || n.mayEnd()) && n.mayBegin() {
			found = append(found, span.New(start+n.Start, start+n.End))
		}
		i = max(start+n.End, endOfDigits(text, i, end))
	}
	return found
}

// Amounts finds numbers that are not percentages.
func Amounts(text string, start, end int) []span.Span {
	return slices.DeleteFunc(scanNumbers(text, start, end), func(n span.Span) bool {
		return strings.HasPrefix(strings.TrimLeft(text[n.End:end], " "), "%")
	})
}

// IsDigit reports whether c is an ASCII digit.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }

// IsLetter reports whether c is an ASCII letter.
func IsLetter(c byte) bool { return (c|0x20) >= 'a' && (c|0x20) <= 'z' }

// IsWordByte reports whether c is a letter or a digit. Every byte beyond ASCII
// counts as a letter.
func IsWordByte(c byte) bool { return IsDigit(c) || IsLetter(c) || c >= utf8.RuneSelf }

// endOfDigits returns the end of a run of digits with separators inside. It
// bridges a space that a Scanner put before the decimals, as in "12. 50".
func endOfDigits(text string, i, end int) int {
	for i < end {
		switch {
		case IsDigit(text[i]):
			i++
		case strings.IndexByte(".,'", text[i]) >= 0 && i+1 < end && IsDigit(text[i+1]):
			i++
		case gapInDecimals(text[i:end]):
			i += 2
		case groupGap(text[i:end]) > 0:
			i += groupGap(text[i:end])
		default:
			return i
		}
	}
	return i
}

// maxGroups bounds the groups of thousands in a number.
const maxGroups = 8

// groupGap returns the length of a space between groups of thousands with which s
// begins, 0 if there is none. A plain space may as well stand between two numbers,
// so it counts only before a decimal comma, as in 1 234,50.
func groupGap(s string) int {
	for _, gap := range []string{"\u00a0", "\u202f"} {
		if rest, ok := strings.CutPrefix(s, gap); ok && threeDigits(rest) {
			return len(gap)
		}
	}
	for range maxGroups {
		if len(s) == 0 || s[0] != ' ' || !threeDigits(s[1:]) {
			return 0
		}
		if s = s[4:]; len(s) > 1 && s[0] == ',' && IsDigit(s[1]) {
			return 1
		}
	}
	return 0
}

// threeDigits reports whether s begins with three digits and no more.
func threeDigits(s string) bool {
	return len(s) >= 3 && IsDigit(s[0]) && IsDigit(s[1]) && IsDigit(s[2]) && (len(s) == 3 || !IsDigit(s[3]))
}

// gapInDecimals reports whether s begins with ". 50" or " .50".
func gapInDecimals(s string) bool {
	if len(s) < 4 || s[:2] != ". " && s[:2] != " ." {
		return false
	}
	return IsDigit(s[2]) && IsDigit(s[3]) && (len(s) == 4 || !IsWordByte(s[4]) && s[4] != '.')
}

// A numberToken is a run of digits that may be a number; its span grows over
// what belongs to it.
type numberToken struct {
	text string
	span.Span
}

// addMagnitude extends the number over a word that multiplies it, as in 5 Mio and
// $1.2M, and reports whether there is one.
func (n *numberToken) addMagnitude() bool {
	money := false
	for _, sign := range []string{"$", "€", "£", "¥"} {
		money = money || strings.HasSuffix(strings.TrimRight(n.text[:n.Start], " "), sign)
	}
	end := format.MagnitudeEnd(n.text, n.End, money)
	if end == n.End {
		return false
	}
	n.End = end
	return true
}

// byteAt returns the byte at i, a space beyond the ends.
func (n *numberToken) byteAt(i int) byte {
	if i < 0 || i >= len(n.text) {
		return ' '
	}
	return n.text[i]
}

func (n *numberToken) hasDecimals() bool {
	return strings.ContainsAny(n.text[n.Start:n.End], ".,")
}

// MaxTaxCode is the longest code that may follow an amount at once, as in 9.50SR.
const MaxTaxCode = 3

// mayEnd reports whether the number may end where it does, judging by the text
// behind it. A minus at the end becomes part of the number.
func (n *numberToken) mayEnd() bool {
	next, after := n.byteAt(n.End), n.byteAt(n.End+1)
	switch {
	case next == '-' && n.hasDecimals() && (after == ' ' || after == '\n' || after == '\r'):
		n.End++
		return true
	case next == '-':
		return !IsWordByte(after)
	case next == '/' || next == ':':
		return !IsDigit(after)
	case !IsWordByte(next):
		return true
	case !n.hasDecimals():
		return false
	}
	letters := 0
	for IsWordByte(n.byteAt(n.End + letters)) {
		if letters++; letters > MaxTaxCode {
			return false
		}
	}
	return true
}

// mayBegin reports whether the number may begin where it does, judging by the
// text before it. A sign, a leading point or an opening parenthesis becomes part
// of the number.
func (n *numberToken) mayBegin() bool {
	before, i := n.beforeCurrency()
	switch c := n.byteAt(i); {
	case c == '-' || c == '(' && n.byteAt(n.End) == ')' && n.hasDecimals():
		if c == '-' && (IsWordByte(n.byteAt(i-1)) && !n.isCurrency(i) || n.byteAt(i-1) == '-') {
			return false
		}
		n.Start = i
		if c == '(' {
			n.End++
		}
		return true
	case before:
		return true
	case c == '.' && !IsWordByte(n.byteAt(i-1)):
		n.Start = i
		return true
	case c == '/' || c == ':':
		return !IsDigit(n.byteAt(i - 1))
	default:
		return !IsWordByte(c)
	}
}

// currencies may stand before an amount without a space.
var currencies = []string{
	"RM", "USD", "US", "EUR", "GBP", "MYR", "SGD", "S", "RS", "INR", "CHF", "AUD", "A", "CAD", "C", "HKD", "HK",
	"NT", "TWD", "JPY", "CNY", "RMB", "IDR", "RP", "THB", "PHP", "KR", "R", "ZAR", "BRL",
}

// isCurrency reports whether the word that ends at end is a currency; a single
// letter is one only before a $.
func (n *numberToken) isCurrency(end int) bool {
	start := end
	for start > 0 && end-start <= MaxTaxCode && IsLetter(n.text[start-1]) { // one more than any currency has
		start--
	}
	if start > 0 && IsWordByte(n.text[start-1]) {
		return false
	}
	word := strings.ToUpper(n.text[start:end])
	return slices.Contains(currencies, word) && (len(word) > 1 || n.byteAt(end) == '$')
}

// EndsWithCurrency reports whether a currency stands right in front of text[end:].
func EndsWithCurrency(text string, end int) bool {
	n := numberToken{text: text}
	return n.isCurrency(end)
}

// beforeCurrency returns the position before a currency that is attached to the
// number, or before the number if there is none.
func (n *numberToken) beforeCurrency() (found bool, i int) {
	i = n.Start
	for _, symbol := range []string{"$", "€", "£", "¥"} {
		if strings.HasSuffix(n.text[:i], symbol) {
			i -= len(symbol)
			found = true
			break
		}
	}
	if n.isCurrency(i) {
		for i > 0 && IsLetter(n.text[i-1]) {
			i--
		}
		found = true
	}
	return found, i - 1
}
