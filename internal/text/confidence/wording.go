package confidence

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/internal/text/claims"
	"github.com/coditect/mapreduce/internal/text/prose"
)

// judgeDate searches for an equal date.
func (q *quotation) judgeDate(want string) Verdict {
	if slices.Contains(q.certainDates(), want) {
		return Confirms
	}
	for d := range calendar.NumericDates(q.text) { // it may be in either order
		if want == d.DayFirst || want == d.MonthFirst || want == d.YearFirst {
			return Confirms
		}
	}
	return Contradicts
}

// datesOf returns the dates of a text that are read in one way alone.
func datesOf(text string) []string {
	var dates []string
	n := 0
	for i, c := range text {
		if !unicode.IsDigit(c) && !unicode.IsLetter(c) {
			continue
		}

		if iso, _, ok := calendar.DateAt(text, i); ok {
			dates = append(dates, iso)
		}
		if n++; n > maxReadings {
			break
		}
	}

	return dates
}

// maxWindow bounds the words that are read together as a value of a format.
const maxWindow = 6

// judgeFormat searches a quote for an equal value of the format of a property: a time, an
// address, a duration.
func (q *quotation) judgeFormat(p *schema.Property, want string) Verdict {
	if hasPhrase(q.text, want) {
		return Confirms
	}

	words := strings.Fields(q.text)
	// Each run of a few words may be the value, as "two and a half hours" is.
	for from := range words[:min(len(words), maxReadings/maxWindow)] {
		for to := from + 1; to <= min(len(words), from+maxWindow); to++ {
			text := strings.Trim(strings.Join(words[from:to], " "), ",;()[]\"'")
			if read, err := p.Normalize(text); err == nil && read != nil && p.Identity(read) == want {
				return Confirms
			}
		}
	}

	if q.lacksWordsOf(format.Fold(want)) {
		return Contradicts
	}
	return Silent
}

// judgeText judges a text by its quote, whatever the type of its property: a text that is a
// date, a number, an answer or a currency has the support of an equal one.
func (q *quotation) judgeText(p *schema.Property, value any) Verdict {
	text, ok := value.(string)
	if !ok {
		b, _ := json.Marshal(value) // it was decoded from JSON
		text = string(b)
	}

	folded := format.Fold(text)
	switch {
	case hasPhrase(q.fold(), folded):
		return Confirms
	case !q.saysSomething():
		return Contradicts
	}

	// The order is that of how much each says: the form of a value, then most of its words,
	// then their sense.
	if verdict, judged := q.judgeByForm(p, text); judged {
		return verdict
	}

	if q.lacksWordsOf(folded) || q.contradictsWording(text) {
		return Contradicts
	}
	return Silent
}

// numberProperty reads the numbers of texts.
var numberProperty = &schema.Property{Type: schema.Number}

// judgeByForm judges a text that is nothing but a date, an amount, an answer or a currency.
func (q *quotation) judgeByForm(p *schema.Property, text string) (verdict Verdict, judged bool) {
	if iso, end, ok := calendar.DateAt(text, 0); ok && end == len(text) {
		return q.judgeDate(iso), true
	}
	if code, ok := format.ParseCurrency(text); ok && isCurrencyAlone(text) {
		return q.judgeCurrency(code), true
	}
	if yes, ok := format.ParseAnswer(format.Fold(text)); ok && len(text) > 1 {
		return q.judgeBoolean(p, yes), true
	}
	if first, _ := utf8.DecodeRuneInString(strings.TrimLeft(text, "+-−(")); unicode.IsDigit(first) || unicode.Is(unicode.Sc, first) {
		if number, ok := format.ParseNumber(text); ok {
			return q.judgeAmount(number, text), true
		}
	}

	return Silent, false
}

// isCurrencyAlone reports whether a text is the code, the sign or the name of a currency.
func isCurrencyAlone(text string) bool {
	return utf8.RuneCountInString(text) <= 12 && !strings.ContainsFunc(text, func(c rune) bool { return unicode.IsDigit(c) || unicode.IsSpace(c) })
}

// judgeCurrency compares a currency with those of a quote. A sign that several currencies
// share says nothing against another of them.
func (q *quotation) judgeCurrency(code string) Verdict {
	found, ok := format.ParseCurrency(q.text)
	switch {
	case ok && found == code:
		return Confirms
	case !ok, strings.ContainsAny(q.text, "$¥£") || strings.Contains(strings.ToLower(q.text), "dollar"):
		return Silent
	}
	return Contradicts
}

// judgeAmount compares a number with its currency, if a text has one, with those of a quote.
func (q *quotation) judgeAmount(number, text string) Verdict {
	verdict := q.judgeNumber(numberProperty, number)
	if code, ok := format.ParseCurrency(text); ok && verdict == Confirms {
		return min(verdict, q.judgeCurrency(code))
	}
	return verdict
}

// lacksWordsOf reports whether the quote lacks most words of a text, which is folded. A text in
// other words may say the same.
func (q *quotation) lacksWordsOf(text string) bool {
	known, of := 0, 0
	for _, w := range splitWords(text) {
		of++
		if q.has(w) {
			known++
		}
	}

	return 2*known < of
}

func splitWords(s string) []string {
	return strings.FieldsFunc(s, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsNumber(c) })
}

// minClaim is how many words a text has at least that is judged as a sentence.
const minClaim = 4

// contradictsWording reports whether a text says otherwise than its quote: it has a number
// or a year that the quote has not, the opposite of one of its words, or its words in
// another order.
func (q *quotation) contradictsWording(text string) bool {
	if q.lacksNumber(text) {
		return true
	}

	words := prose.Words(text)
	if len(words) < minClaim {
		return false
	}

	return claims.Check(text, q.text).Grade == claims.Contradicted || swapsNames(words, prose.Words(q.text))
}

// lacksNumber reports whether a text has a number that its quote has not.
func (q *quotation) lacksNumber(text string) bool {
	has := map[string]bool{}
	for _, one := range q.quantities() {
		for _, n := range slices.Concat(one.sure, one.part) {
			has[strings.TrimPrefix(n, "-")] = true
		}
	}

	// The parts of dates are numbers of the quote, too: a text may name the year alone.
	dated := map[string]bool{}
	for _, iso := range q.certainDates() {
		for part := range strings.SplitSeq(iso, "-") {
			n, _ := format.CanonicalNumber(part)
			dated[n] = true
		}
	}

	for _, at := range digitRun.FindAllStringIndex(text, maxReadings) {
		known := false
		for _, q := range readDigits(text, at[0], at[1]) {
			for _, n := range append(q.sure, q.part...) {
				n = strings.TrimPrefix(n, "-")
				known = known || has[n] || dated[n]
			}
		}
		if !known {
			return true
		}
	}

	return false
}

// passive are words behind which stands who did it.
var passive = map[string]bool{"by": true, "von": true, "vom": true, "durch": true, "par": true, "por": true, "da": true, "door": true, "from": true}

// swapsNames reports whether a text has just the words of a quote, but its names in another
// order, around the same other words: who hired is who was hired.
func swapsNames(text, quote []prose.Word) bool {
	count := map[string]int{}
	for _, w := range quote {
		count[w.Stem]++
		if passive[w.Lower] {
			return false
		}
	}

	for _, w := range text {
		count[w.Stem]--
		if passive[w.Lower] {
			return false
		}
	}

	for n := range maps.Values(count) {
		if n != 0 {
			return false
		}
	}

	// The same words around the names, in the same order, and the names in another.
	mine, theirs := namesOf(text), namesOf(quote)
	return len(mine) >= 2 && !slices.Equal(mine, theirs) && slices.Equal(othersOf(text), othersOf(quote))
}

// namesOf returns the words that are written as names, and othersOf the others.
func namesOf(words []prose.Word) []string {
	var names []string
	for _, w := range words {
		if isName(w) {
			names = append(names, w.Stem)
		}
	}
	return names
}

func othersOf(words []prose.Word) []string {
	var others []string
	for _, w := range words {
		if !isName(w) {
			others = append(others, w.Stem)
		}
	}
	return others
}

func isName(w prose.Word) bool { return w.Name || w.First && !w.Common && !w.Number }
