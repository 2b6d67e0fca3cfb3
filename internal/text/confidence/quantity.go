package confidence

import (
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
)

// A quantity is a number of a text with all around it that changes it: its sign, a word
// such as million, a power of ten, the range of which it is one end.
type quantity struct {
	sure []string // numbers that it is, however it is read; in canonical form
	part []string // numbers that it is in one reading of several, or that are a part of it
}

// maxReadings bounds the numbers, dates and words of a quote that are compared.
const maxReadings = 1000

var (
	// digitRun matches a possible number: digits with separators among them.
	digitRun = regexp.MustCompile(`\d(?:[\d.,'’ \x{a0}\x{202f}]*\d)?`)

	// An exponent follows a number, as in 1.5e3; timesPower too, as in 3×10^8, 3·10⁸;
	// power stands behind a base, as in 10^6.
	exponent   = regexp.MustCompile(`^[eE]([-+−]?\d{1,3})(?:$|[^\pL\d])`)
	timesPower = regexp.MustCompile(`^\s?[×x*·∙⋅]\s?10(?:\^|\*\*)?\(?([-−⁻]?[\d⁰¹²³⁴-⁹]{1,4})\)?`)
	power      = regexp.MustCompile(`^(?:(?:\^|\*\*)\(?([-−]?\d{1,4})\)?|([⁻]?[⁰¹²³⁴-⁹]{1,4}))`)
	exponentOf = regexp.MustCompile(`(?:\d\s?\^|\*\*)\(?[-−]?$|\d[eE][-+−]?$`)
	raisedTen  = regexp.MustCompile(`[×x*·∙⋅]\s?$`)

	// A fraction and what is joined to a number make it a part of something else.
	fraction = regexp.MustCompile(`^\s?[/⁄]\s?(\d{1,9})(?:$|[^\d/.⁄])`)
	// A line that stands apart from the number at its left alone is the sign of that at its
	// right, as in -2 -6.
	joinedNext = regexp.MustCompile(`^(?:[-–—−:/]\s?\d|\s[-–—−:/]\s\d|\s(?:to|bis|à|through|till|until)\s\p{Sc}?\d)`)
	joinedLast = regexp.MustCompile(`\d[-–—−:/]\s?$|\d\s[-–—−:/]\s$|\d\s(?:to|bis|à|through|till|until)\s\p{Sc}?$`)
	percent    = regexp.MustCompile(`(?i)^\s?(?:%|％|percent\b|per cent\b|prozent\b|pour cent\b|por ciento\b|per cento\b)`)
	dozens     = regexp.MustCompile(`(?i)^[\s-](?:dozen|dutzend)`)
	halfOf     = regexp.MustCompile(`(?i)(?:^|[^\pL])half an? (million|billion|thousand|trillion|dozen)(?:$|[^\pL])`)

	// A sign stands close to its number, or to the currency in front of it; the last
	// group is what stands between.
	signBefore = regexp.MustCompile(`(^|[^\pL\pN\s]|\s|[\pL\p{Sc}])([-−–])(\s?)(?:\p{Sc}\s?|[A-Z]{3}\s?)?$`)

	// leadingPoint matches the leading point of a number, as in $.50, but not the point
	// of an abbreviation, as in Rs.50, or one of a row of points.
	leadingPoint = regexp.MustCompile(`(?:^|[^\pL\pN.])\.$`)
)

// readQuantities returns the quantities of a text, in digits and in words.
func readQuantities(text string) []quantity {
	var all []quantity
	for _, at := range digitRun.FindAllStringIndex(text, maxReadings) {
		all = append(all, readDigits(text, at[0], at[1])...)
	}
	return append(all, readWords(text)...)
}

// readDigits returns the quantities of a run of digits: the whole run is one number, or,
// if there are spaces in it, each part may be one.
func readDigits(text string, from, to int) []quantity {
	if leadingPoint.MatchString(text[max(0, from-1-utf8.UTFMax):from]) {
		from--
	}
	all := []quantity{readOne(text, from, to)}

	// Spaces may be separators of thousands, or part two numbers.
	run := text[from:to]
	if !strings.ContainsFunc(run, unicode.IsSpace) {
		return all
	}
	for at := 0; at < len(run); {
		if c, width := utf8.DecodeRuneInString(run[at:]); unicode.IsSpace(c) {
			at += width
			continue
		}

		end := strings.IndexFunc(run[at:], unicode.IsSpace)
		if end < 0 {
			end = len(run) - at
		}
		all = append(all, readOne(text, from+at, from+at+end))
		at += end
	}
	return all
}

// readOne returns the quantity of which the digits stand at text[from:to]: of a number such as
// 1.500, which may be read in two ways, with both.
func readOne(text string, from, to int) quantity {
	var all quantity
	isApart := strings.ContainsFunc(text[from:to], unicode.IsSpace) // its parts are read by themselves
	// The second reading is left out where something tells against it.
	for i, plain := range format.ReadNumber(text[from:to], format.NumberStyle{}) {
		if i > 0 && (isApart || isBracketed(text[:from], text[to:])) {
			break
		}
		q := readPlain(plain, text, from, to)
		all.sure, all.part = append(all.sure, q.sure...), append(all.part, q.part...)
	}

	return all
}

// readPlain returns the quantity of which the digits at text[from:to] mean a number.
func readPlain(plain, text string, from, to int) quantity {
	before, after := text[max(0, from-40):from], text[to:min(len(text), to+60)]

	// The order matters: each form below would be read wrongly as one of those behind it.
	if exponentOf.MatchString(before) {
		return quantity{}
	}

	if q, ok := readPower(plain, before, after); ok {
		return withSign(q, before, after)
	}

	if c, _ := utf8.DecodeRuneInString(after); unicode.Is(unicode.No, c) {
		return withSign(readMixed(plain, c), before, after)
	}

	if m := fraction.FindStringSubmatch(after); m != nil && !joinedLast.MatchString(before) {
		return quantity{part: append(quotient(plain, m[1]), plain)}
	}

	if joinedNext.MatchString(after) || joinedLast.MatchString(before) {
		return quantity{part: []string{plain}}
	}

	return withSign(readScale(plain, text, from, to), before, after)
}

// readPower reads a number that has an exponent, or is the base of a power. The base and
// the exponent are no numbers of the text.
func readPower(plain, before, after string) (quantity, bool) {
	if raisedTen.MatchString(before) && plain == "10" && power.MatchString(after) {
		return quantity{}, true // it belongs to the number before it
	}

	for _, form := range []*regexp.Regexp{exponent, timesPower} {
		if m := form.FindStringSubmatch(after); m != nil {
			n, ok := format.CanonicalNumber(plain + "e" + plainDigits(m[1]))
			return sureOf(n, ok), true
		}
	}

	m := power.FindStringSubmatch(after)
	if m == nil {
		return quantity{}, false
	}
	n, ok := raise(plain, plainDigits(m[1]+m[2]))
	return sureOf(n, ok), true
}

// plainDigits writes raised digits on the line, and a minus as a hyphen.
func plainDigits(s string) string {
	return raisedSigns.Replace(norm.NFKC.String(s))
}

// raisedSigns writes the signs of powers as those of numbers.
var raisedSigns = strings.NewReplacer("−", "-", "⁻", "-", "+", "")

func sureOf(number string, ok bool) quantity {
	if !ok {
		return quantity{}
	}
	return quantity{sure: []string{number}}
}

// maxPower bounds the exponents of powers that are computed.
const maxPower = 300

// raise returns a power of a whole number.
func raise(base, exponent string) (string, bool) {
	e, err := strconv.Atoi(exponent)
	b, whole := new(big.Int).SetString(base, 10)
	if err != nil || !whole || len(base) > 6 || e > maxPower || e < -maxPower {
		return "", false
	}

	if base == "10" {
		return format.CanonicalNumber("1e" + strconv.Itoa(e))
	}

	if e < 0 || len(base)*e > maxPower {
		return "", false
	}

	return format.CanonicalNumber(b.Exp(b, big.NewInt(int64(e)), nil).String())
}

// readMixed returns a number with a fraction of one character behind it, as in 1½.
func readMixed(plain string, c rune) quantity {
	a, b, isFraction := strings.Cut(norm.NFKC.String(string(c)), "⁄")
	if !isFraction {
		return quantity{}
	}

	x, okX := new(big.Rat).SetString(plain)
	for _, q := range quotient(a, b) {
		if y, okY := new(big.Rat).SetString(q); okX && okY {
			digits, _ := y.FloatPrec()
			n, ok := format.CanonicalNumber(x.Add(x, y).FloatString(digits))
			return sureOf(n, ok)
		}
	}
	return quantity{}
}

// quotient returns a fraction as a decimal number, if it is one; it may as well be a date,
// or a place on a list.
func quotient(a, b string) []string {
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	if !okX || !okY || y.Sign() == 0 || len(a) > 9 {
		return nil
	}

	digits, exact := new(big.Rat).Quo(x, y).FloatPrec()
	if !exact || digits > 12 {
		return nil
	}

	n, ok := format.CanonicalNumber(x.Quo(x, y).FloatString(digits))
	if !ok {
		return nil
	}
	return []string{n}
}

// readScale reads what multiplies the number: a word such as million, a percent sign.
func readScale(plain, text string, from, to int) quantity {
	after := text[to:]

	end := to
	if strings.HasPrefix(after, ")") { // of accounts, as in (1,500) thousand
		end++
	}

	before := text[max(0, from-20):from]
	isMoney := strings.ContainsFunc(lastRunes(before, 2), func(c rune) bool { return unicode.Is(unicode.Sc, c) })

	if word := format.MagnitudeEnd(text, end, true); word > end {
		scaled := scaledBy(plain, text[end:word])
		if sure := format.MagnitudeEnd(text, end, isMoney) > end; sure || scaled == nil {
			return quantity{sure: scaled}
		}
		return quantity{sure: []string{plain}, part: scaled} // 5m may be metres
	}

	switch {
	case dozens.MatchString(text[end:]):
		return quantity{sure: product(plain, "12")}
	case percent.MatchString(text[end:]):
		share, _ := format.CanonicalNumber(plain + "e-2")
		return quantity{sure: []string{plain}, part: []string{share}}
	}
	return quantity{sure: []string{plain}}
}

// scaledBy returns a number times the word behind it.
func scaledBy(plain, word string) []string {
	n, ok := format.ParseNumber("$1" + word)
	if !ok {
		return nil
	}
	return product(plain, n)
}

func product(a, b string) []string {
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	if !okX || !okY || len(a)+len(b) > maxPower {
		return nil
	}

	digits, _ := x.FloatPrec()
	n, ok := format.CanonicalNumber(x.Mul(x, y).FloatString(digits))
	if !ok {
		return nil
	}
	return []string{n}
}

// lastRunes returns the last n characters of a text.
func lastRunes(s string, n int) string {
	at := len(s)
	for ; n > 0 && at > 0; n-- {
		_, width := utf8.DecodeLastRuneInString(s[:at])
		at -= width
	}
	return s[at:]
}

// withSign gives a quantity its sign. A minus that stands close to the number is one. A
// dash that stands apart, a minus behind the number and parentheses may be one.
func withSign(q quantity, before, after string) quantity {
	switch {
	case hasSign(before):
		// The parentheses of accounts and a line that may be a dash leave it open.
		return quantity{sure: negated(q.sure), part: negated(q.part)}
	case hasDash(before) || isTrailingMinus(after) || isBracketed(before, after):
		return quantity{part: append(append(negated(q.sure), q.sure...), q.part...)}
	}
	return q
}

// hasSign reports whether a text ends with the sign of the number behind it. A hyphen
// behind a word, as in COVID-19, is none, but behind a currency, as in RM-5.
func hasSign(before string) bool {
	m := signBefore.FindStringSubmatch(before)
	if m == nil || m[3] != "" {
		return false
	}

	if last, _ := utf8.DecodeLastRuneInString(m[1]); !unicode.IsLetter(last) {
		return true
	}

	words := strings.FieldsFunc(strings.TrimRight(before, "-−– "), func(c rune) bool { return !unicode.IsLetter(c) })
	_, isCurrency := format.ParseCurrency(words[len(words)-1])
	return isCurrency
}

// hasDash reports whether a dash stands between a text and the number behind it, which
// may be a sign. Behind a word it parts the number from what it is of.
func hasDash(before string) bool {
	m := signBefore.FindStringSubmatch(before)
	return m != nil && m[3] != "" && !wordThenDash.MatchString(before)
}

var wordThenDash = regexp.MustCompile(`[\pL\pN)]\s[-−–—]\s\p{Sc}?\s?$`)

var trailingMinus = regexp.MustCompile(`^[-−](?:$|[^\pL\pN])`)

func isTrailingMinus(after string) bool { return trailingMinus.MatchString(after) }

// isBracketed reports whether a number stands alone in parentheses, which accounts have
// for a minus. A number in parentheses behind its words, as in thirty (30), is none of them.
func isBracketed(before, after string) bool {
	open := strings.TrimRightFunc(before, func(c rune) bool { return unicode.Is(unicode.Sc, c) || c == ' ' })
	if !strings.HasSuffix(open, "(") {
		return false
	}
	close := strings.TrimLeftFunc(after, func(c rune) bool { return unicode.Is(unicode.Sc, c) || c == ' ' || c == '%' })
	return strings.HasPrefix(close, ")")
}

func negated(numbers []string) []string {
	out := make([]string, 0, len(numbers))
	for _, n := range numbers {
		if minus, ok := strings.CutPrefix(n, "-"); ok {
			out = append(out, minus)
		} else if n != "0" {
			out = append(out, "-"+n)
		} else {
			out = append(out, n)
		}
	}
	return out
}

// readWords returns the quantities that a text has in words.
func readWords(text string) []quantity {
	var all []quantity
	for _, m := range halfOf.FindAllStringSubmatch(text, maxReadings) {
		if strings.EqualFold(m[1], "dozen") {
			all = append(all, quantity{sure: []string{"6"}})
		} else {
			all = append(all, quantity{sure: product("0.5", scaledBy("1", " "+m[1])[0])})
		}
	}

	// A number in words is looked for only where a word begins.
	inWord := false
	for at, c := range text {
		begins := unicode.IsLetter(c) && !inWord
		inWord = unicode.IsLetter(c) || unicode.IsDigit(c)
		if !begins || len(all) >= maxReadings {
			continue
		}

		n, end, ok := format.WordsAt(text, at)
		if !ok {
			continue
		}

		number := strconv.FormatInt(n, 10)
		switch {
		case dozens.MatchString(text[end:]):
			all = append(all, quantity{sure: product(number, "12")})
		case n <= 1: // one, and ein or un, are articles as well
			all = append(all, quantity{part: []string{number}})
		default:
			all = append(all, quantity{sure: []string{number}})
		}
	}
	return all
}

// judgeNumber searches a quote for an equal number. A number that the quote has in one
// reading of several, or in a part of another number, is left open.
func (q *quotation) judgeNumber(p *schema.Property, want string) Verdict {
	isWanted := func(numbers []string) bool {
		for _, n := range numbers {
			if read, err := p.Normalize(json.Number(n)); err == nil && p.Identity(read) == want {
				return true
			}
		}
		return false
	}

	verdict := Contradicts
	for _, one := range q.quantities() { // the number as it is, which costs little to compare
		if slices.Contains(one.sure, want) && isWanted(one.sure) {
			return Confirms
		}
	}
	for _, one := range q.quantities() {
		switch {
		case isWanted(one.sure):
			return Confirms
		case isWanted(one.part):
			verdict = Silent
		}
	}

	// A unit may multiply the number, which only the property knows.
	if verdict == Contradicts && hasWithUnit(p, want, q.text) {
		return Confirms
	}
	return verdict
}

// hasWithUnit searches a quote for an equal number with one of the units of its property,
// which may multiply it.
func hasWithUnit(p *schema.Property, want, quote string) bool {
	if len(p.Hints.Units) == 0 {
		return false
	}

	for _, at := range digitRun.FindAllStringIndex(quote, maxReadings) {
		for i := range p.Hints.Units {
			// The unit may stand behind or before the number, with or without a space.
			name := len(p.Hints.Units[i].Name)
			for _, text := range []string{
				quote[at[0]:min(len(quote), at[1]+name)], quote[at[0]:min(len(quote), at[1]+1+name)],
				quote[max(0, at[0]-name):at[1]], quote[max(0, at[0]-1-name):at[1]],
			} {
				if read, err := p.Normalize(text); err == nil && read != nil && p.Identity(read) == want {
					return true
				}
			}
		}
	}
	return false
}
