package confidence

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema"
)

// A Verdict is what a validator says of a value.
type Verdict int8

// The verdicts.
const (
	Contradicts Verdict = iota - 1
	Silent
	Confirms
)

// Support says whether a value follows from its quote. The quote of a text
// holds it, that of a number or a date one that is equal. A choice among given
// values, or a text in other words, may follow from what does not hold it:
// of those Support says nothing, unless most words are not in the quote.
func Support(p *schema.Property, value any, quote string) Verdict {
	if p == nil || value == nil {
		return Silent
	}
	switch v := value.(type) {
	case []any:
		return all(v, func(item any) Verdict { return Support(elementOf(p), item, quote) })
	case map[string]any:
		verdict := Confirms
		for i := range p.Properties {
			if item, ok := v[p.Properties[i].Name]; ok && item != nil {
				verdict = min(verdict, Support(&p.Properties[i], item, quote))
			}
		}
		return verdict
	}
	p = elementOf(p)
	want := p.Identity(value)
	if !p.Numeric() || !severed(quote) {
		if read, err := p.Normalize(quote); err == nil && read != nil && p.Identity(read) == want {
			return Confirms
		}
	}
	switch {
	case p.Enum != nil || len(p.Hints.Values) > 0 || p.Type == schema.Boolean:
		return chosen(p, want, value, quote)
	case p.Numeric():
		return among(p, want, numbersOf(quote))
	case p.Format == schema.Date:
		return dated(want, quote)
	default:
		return worded(value, quote)
	}
}

// severed reports whether a quote goes on in another line or cell: its digits are
// of several numbers then, as in "2\n500.00", and not of one.
func severed(quote string) bool { return strings.ContainsAny(strings.TrimSpace(quote), "\n\r\t\v\f") }

func elementOf(p *schema.Property) *schema.Property {
	if p.Type == schema.Array && p.Items != nil {
		return p.Items
	}
	return p
}

// all returns the worst verdict on the elements of a list.
func all(list []any, verdict func(any) Verdict) Verdict {
	worst := Confirms
	for _, item := range list {
		worst = min(worst, verdict(item))
	}
	return worst
}

// chosen looks for the phrases of a value, or for the value itself.
func chosen(p *schema.Property, want string, value any, quote string) Verdict {
	text := schema.Fold(quote)
	for _, v := range p.Hints.Values {
		if p.Identity(v.Canonical) == want && slices.ContainsFunc(v.Phrases, func(s string) bool { return strings.Contains(text, schema.Fold(s)) }) {
			return Confirms
		}
	}
	if s, ok := value.(string); ok && s != "" && strings.Contains(text, schema.Fold(s)) {
		return Confirms
	}
	return Silent
}

// maxReadings bounds how many numbers, dates and words of a quote are compared.
const maxReadings = 1000

// numbers matches what may be a number: digits, with separators among them.
var numbers = regexp.MustCompile(`[-+(]?[\p{Sc}]?\s?\d(?:[\d.,'’ ]*\d)?\)?`)

// grown matches what makes another number of the one before it: a power of ten, a
// raised or lowered number, a fraction.
var grown = regexp.MustCompile(`^(?:[eE][-+]?\d|[\p{No}⁻⁄])`)

// point matches the point that a number begins with, as in $.50, and not that of
// an abbreviation, as in Rs.50, or of a row of them.
var point = regexp.MustCompile(`(?:^|[^\pL\pN.])\.$`)

// numbersOf returns what may be numbers of a text.
func numbersOf(quote string) []string {
	var all []string
	for _, at := range numbers.FindAllStringIndex(quote, maxReadings) {
		from, to := at[0], at[1]
		if grown.MatchString(quote[to:]) {
			continue
		}
		if point.MatchString(quote[max(0, from-1-utf8.UTFMax):from]) {
			from--
		}
		all = append(all, quote[from:to])
	}
	return all
}

// among looks for a number that is equal. What was written with spaces may also
// be several numbers.
func among(p *schema.Property, want string, found []string) Verdict {
	for _, f := range found {
		for _, s := range append([]string{f}, strings.Fields(f)...) {
			s = strings.TrimSpace(s)
			for _, t := range []string{s, strings.Trim(s, "()+-")} {
				if read, err := p.Normalize(t); err == nil && read != nil && p.Identity(read) == want {
					return Confirms
				}
			}
		}
	}
	return Contradicts
}

// dated looks for a date that is equal.
func dated(want, quote string) Verdict {
	n := 0
	for i, c := range quote {
		if !unicode.IsDigit(c) && !unicode.IsLetter(c) {
			continue
		}
		if iso, _, ok := schema.DateAt(quote, i); ok && iso == want {
			return Confirms
		}
		if n++; n > maxReadings {
			break
		}
	}
	return Contradicts
}

// worded compares a text with its quote by words.
func worded(value any, quote string) Verdict {
	s, ok := value.(string)
	if !ok {
		b, _ := json.Marshal(value) // it was decoded from JSON
		s = string(b)
	}
	s, quote = schema.Fold(s), schema.Fold(quote)
	if strings.Contains(quote, s) {
		return Confirms
	}
	said := words(quote)
	have := make(map[string]bool, len(said))
	for _, w := range said {
		have[w] = true
	}
	known, of := 0, 0
	for _, w := range words(s) {
		of++
		if have[w] {
			known++
		}
	}
	if 2*known < of {
		return Contradicts
	}
	return Silent
}

func words(s string) []string {
	return strings.FieldsFunc(s, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsNumber(c) })
}

// form confirms values of a type that not every text is of.
func form(p *schema.Property) Verdict {
	p = elementOf(p)
	if p.Enum != nil || p.Numeric() || p.Type == schema.Boolean || p.Format != "" {
		return Confirms
	}
	return Silent
}

// label looks for one of the schema's labels before the quote.
func label(e Evidence) Verdict {
	if len(e.Property.Hints.Labels) == 0 || e.Before == "" {
		return Silent
	}
	before := schema.Fold(e.Before)
	for _, l := range e.Property.Hints.Labels {
		if strings.Contains(before, schema.Fold(l)) {
			return Confirms
		}
	}
	return Silent
}

// beforeLines and beforeBytes bound how far before a quote its label may stand.
const (
	beforeLines = 2
	beforeBytes = 120
)

// Before returns the text before an offset in which a label would stand: the
// rest of its line and the line above.
func Before(text string, at int) string {
	from := max(0, at-beforeBytes)
	lines := 0
	for i := at - 1; i >= from; i-- {
		if text[i] == '\n' {
			if lines++; lines == beforeLines {
				from = i + 1
				break
			}
		}
	}
	return strings.ToValidUTF8(text[from:at], "")
}
