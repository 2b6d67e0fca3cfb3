package confidence

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
)

// A Verdict is a validator's judgement of a value.
type Verdict int8

// The verdicts.
const (
	Contradicts Verdict = iota - 1
	Silent
	Confirms
)

// Support judges whether a value follows from its quote. The quote of a text must
// contain the text; the quote of a number or a date must contain an equal one. A
// choice among given values, or a text in other words, may follow from a quote
// that does not contain it. Support is silent about these, unless most words of a
// text are not in the quote.
func Support(p *schema.Property, value any, quote string) Verdict {
	if p == nil || value == nil {
		return Silent
	}
	switch v := value.(type) {
	case []any:
		return worstVerdict(v, func(item any) Verdict { return Support(elementOf(p), item, quote) })
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
	if !p.Numeric() || !spansCells(quote) {
		if read, err := p.Normalize(quote); err == nil && read != nil && p.Identity(read) == want {
			return Confirms
		}
	}
	switch {
	case p.Enum != nil || len(p.Hints.Values) > 0 || p.Type == schema.Boolean:
		return judgeChoice(p, want, value, quote)
	case p.Numeric():
		return judgeNumber(p, want, numbersOf(quote))
	case p.Format == schema.Date:
		return judgeDate(want, quote)
	default:
		return judgeText(value, quote)
	}
}

// spansCells reports whether a quote spans several lines or cells. Its digits then
// belong to several numbers, as in "2\n500.00".
func spansCells(quote string) bool {
	return strings.ContainsAny(strings.TrimSpace(quote), "\n\r\t\v\f")
}

func elementOf(p *schema.Property) *schema.Property {
	if p.Type == schema.Array && p.Items != nil {
		return p.Items
	}
	return p
}

// worstVerdict returns the worst verdict on the elements of a list.
func worstVerdict(list []any, verdict func(any) Verdict) Verdict {
	worst := Confirms
	for _, item := range list {
		worst = min(worst, verdict(item))
	}
	return worst
}

// judgeChoice searches the quote for the phrases of a value, or for the value itself.
func judgeChoice(p *schema.Property, want string, value any, quote string) Verdict {
	text := format.Fold(quote)
	for _, v := range p.Hints.Values {
		if p.Identity(v.Canonical) == want && slices.ContainsFunc(v.Phrases, func(s string) bool { return strings.Contains(text, format.Fold(s)) }) {
			return Confirms
		}
	}
	if s, ok := value.(string); ok && s != "" && strings.Contains(text, format.Fold(s)) {
		return Confirms
	}
	return Silent
}

// maxReadings bounds the numbers, dates and words of a quote that are compared.
const maxReadings = 1000

// numberPattern matches a possible number: digits with separators among them.
var numberPattern = regexp.MustCompile(`[-+(]?[\p{Sc}]?\s?\d(?:[\d.,'’ ]*\d)?\)?`)

// numberSuffix matches a suffix that changes the number before it: a power of ten,
// a raised or lowered number, a fraction.
var numberSuffix = regexp.MustCompile(`^(?:[eE][-+]?\d|[\p{No}⁻⁄])`)

// leadingPoint matches the leading point of a number, as in $.50, but not the point
// of an abbreviation, as in Rs.50, or one of a row of points.
var leadingPoint = regexp.MustCompile(`(?:^|[^\pL\pN.])\.$`)

// numbersOf returns the possible numbers of a text.
func numbersOf(quote string) []string {
	var all []string
	for _, at := range numberPattern.FindAllStringIndex(quote, maxReadings) {
		from, to := at[0], at[1]
		if numberSuffix.MatchString(quote[to:]) {
			continue
		}
		if leadingPoint.MatchString(quote[max(0, from-1-utf8.UTFMax):from]) {
			from--
		}
		all = append(all, quote[from:to])
	}
	return all
}

// judgeNumber searches for an equal number. A number written with spaces may also
// be several numbers.
func judgeNumber(p *schema.Property, want string, found []string) Verdict {
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

// judgeDate searches for an equal date.
func judgeDate(want, quote string) Verdict {
	n := 0
	for i, c := range quote {
		if !unicode.IsDigit(c) && !unicode.IsLetter(c) {
			continue
		}
		if iso, _, ok := format.DateAt(quote, i); ok && iso == want {
			return Confirms
		}
		if n++; n > maxReadings {
			break
		}
	}
	for d := range format.NumericDates(quote) { // it may be in either order
		if want == d.DayFirst || want == d.MonthFirst || want == d.YearFirst {
			return Confirms
		}
	}
	return Contradicts
}

// judgeText compares the words of a text with those of its quote.
func judgeText(value any, quote string) Verdict {
	s, ok := value.(string)
	if !ok {
		b, _ := json.Marshal(value) // it was decoded from JSON
		s = string(b)
	}
	s, quote = format.Fold(s), format.Fold(quote)
	if strings.Contains(quote, s) {
		return Confirms
	}
	said := splitWords(quote)
	have := make(map[string]bool, len(said))
	for _, w := range said {
		have[w] = true
	}
	known, of := 0, 0
	for _, w := range splitWords(s) {
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

func splitWords(s string) []string {
	return strings.FieldsFunc(s, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsNumber(c) })
}

// judgeForm confirms values of a type that an arbitrary text does not have.
func judgeForm(p *schema.Property) Verdict {
	p = elementOf(p)
	if p.Enum != nil || p.Numeric() || p.Type == schema.Boolean || p.Format != "" {
		return Confirms
	}
	return Silent
}

// judgeLabel searches for one of the schema's labels before the quote.
func judgeLabel(e Evidence) Verdict {
	if len(e.Property.Hints.Labels) == 0 || e.Before == "" {
		return Silent
	}
	before := format.Fold(e.Before)
	for _, l := range e.Property.Hints.Labels {
		if strings.Contains(before, format.Fold(l)) {
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
