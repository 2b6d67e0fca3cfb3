package confidence

import (
	"cmp"
	"encoding/json"
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

// Support judges whether a value follows from its quote, by the form of the value and
// whatever the type of its property. The quote of a text must contain the text; the quote
// of a number, a date or an amount must contain an equal one, with its sign and all that
// multiplies it. A choice among given values, or a text in other words, may follow from a
// quote that does not contain it. Support is silent about these, unless the quote has
// another choice, the opposite answer or another number, or lacks most words of a text.
func Support(p *schema.Property, value any, quote string) Verdict {
	return (&quotation{text: quote}).support(p, value)
}

func (q *quotation) support(p *schema.Property, value any) Verdict {
	if p == nil || value == nil {
		return Silent
	}

	if p.IsElement(value) {
		p = p.Items
	}
	if p = p.Option(value); p == nil {
		return Silent
	}

	switch v := value.(type) {
	case []any:
		return worstVerdict(v, func(i int, item any) Verdict { return q.support(p.ItemAt(i), item) })
	case map[string]any:
		verdict := Confirms
		for name, item := range v {
			if of := p.Member(name); item != nil {
				verdict = min(verdict, q.support(cmp.Or(of, &schema.Property{Type: schema.Any}), item))
			}
		}
		return verdict
	}

	p = elementOf(p)
	want := p.Identity(value)
	if q.mayMean(p, want) {
		return Confirms
	}

	switch {
	case p.Type == schema.Boolean && len(p.Hints.Values) == 0:
		yes, _ := value.(bool)
		return q.judgeBoolean(p, yes)
	case p.Numeric() && p.Enum == nil:
		return q.judgeNumber(p, want)
	case p.Enum != nil || len(p.Hints.Values) > 0 || p.Type == schema.Boolean:
		return q.judgeChoice(p, want, value)
	case p.Format == schema.Date:
		return q.judgeDate(want)
	case p.Format == schema.DateTime || p.Format == schema.Time || p.Format == schema.Duration:
		return q.judgeFormat(p, want)
	case p.Format == schema.Currency:
		return q.judgeCurrency(choiceText(value))
	default:
		return q.judgeText(p, value)
	}
}

// maxAlone bounds quotes that may be a number, a date or a choice and nothing else, in bytes.
const maxAlone = 1000

// mayMean reports whether the quote is a value, or a number that may be read as it. How it is
// read in its document, other texts tell.
func (q *quotation) mayMean(p *schema.Property, want string) bool {
	// A number whose digits stand in several cells is none, even if it reads like one.
	if p.Numeric() && q.spansCells() {
		return false
	}

	switch isText := p.Type == schema.String || p.Type == schema.Any; {
	case isText && p.Format == "" && p.Enum == nil: // what Normalize and Identity come to
		return want != "" && q.fold() == want
	case len(q.text) > maxAlone:
		return false
	}
	if read, err := p.Normalize(q.text); err == nil && read != nil && p.Identity(read) == want {
		return true
	}
	return p.Numeric() && slices.ContainsFunc(p.Readings(q.text, format.NumberStyle{}), func(n json.Number) bool { return p.Identity(n) == want })
}

// Refuted reports whether a quote says that its value is wrong: it has another number,
// another date, another choice, the opposite answer or another name, or it has no words at
// all. Such a value is none. The wording of other texts varies too much to say so.
func Refuted(p *schema.Property, value any, quote string) bool {
	if p == nil || Support(p, value, quote) != Contradicts {
		return false
	}

	p = elementOf(p)
	if p.Numeric() || p.Type == schema.Boolean || p.Enum != nil || p.Format == schema.Date || p.Format == schema.Currency || !hasWords(quote) {
		return true
	}

	text, isText := value.(string)
	return isText && p.Format == "" && isOtherName(text, quote)
}

// Bounds of names, in words.
const (
	minNameWords = 2
	maxNameWords = 6
)

// isOtherName reports whether a value and its quote are both names, without a word in
// common or one that abbreviates the other.
func isOtherName(value, quote string) bool {
	mine, theirs := nameWords(value), nameWords(quote)
	if mine == nil || theirs == nil {
		return false
	}

	initials := func(words []string) string {
		var b strings.Builder
		for _, w := range words {
			c, _ := utf8.DecodeRuneInString(w)
			b.WriteRune(c)
		}
		return b.String()
	}

	// A word of one name may be the initials of the other, as IBM is.
	for _, a := range mine {
		for _, b := range theirs {
			if a == b || strings.HasPrefix(a, b) || strings.HasPrefix(b, a) || a == initials(theirs) || b == initials(mine) {
				return false
			}
		}
	}
	return true
}

// nameWords returns the words of a name, in small letters; nil if a text is none: each of
// its words begins with a capital, and all are of one script.
func nameWords(text string) []string {
	words := splitWords(text)
	if len(words) < minNameWords || len(words) > maxNameWords {
		return nil
	}

	for i, w := range words {
		c, _ := utf8.DecodeRuneInString(w)
		if !unicode.IsUpper(c) || !unicode.Is(unicode.Latin, c) {
			return nil
		}
		words[i] = strings.ToLower(w)
	}
	return words
}

func elementOf(p *schema.Property) *schema.Property {
	if p.Type == schema.Array && p.Items != nil {
		return p.Items
	}
	return p
}

// worstVerdict returns the worst verdict on the elements of a list.
func worstVerdict(list []any, verdict func(int, any) Verdict) Verdict {
	worst := Confirms
	for i, item := range list {
		worst = min(worst, verdict(i, item))
	}
	return worst
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
