package found

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/worker/agent/model/form"
)

// Look gives findings that came without a quote the one place of a text at which their
// value stands, in the words of the text. A quote that leaves words out is none. A value
// that could be meant by several places, or that a text says in other words, stays without
// a quote, and is not believed. The quotes are looked for and checked as any.
func Look(f *form.Form, answers []form.Record, text string) {
	for _, a := range answers {
		for _, field := range f.Fields {
			for i, one := range a.Fields[field.Key] {
				if field.Property.Hints.Derived || len(one.Quotes) > 0 && !slices.ContainsFunc(one.Quotes, func(q string) bool { return leavesOut(q, text) }) {
					continue
				}

				if quotes := quotesFor(elementOf(field.Property), one.Value, text); quotes != nil {
					a.Fields[field.Key][i].Quotes = quotes
				}
			}
		}
	}
}

// leavesOut reports whether a quote has dots in place of words of a text.
func leavesOut(quote, text string) bool {
	return (strings.Contains(quote, "...") || strings.Contains(quote, "…")) && !strings.Contains(text, quote)
}

func elementOf(p *schema.Property) *schema.Property {
	if p.Type == schema.Array && p.Items != nil {
		return p.Items
	}
	return p
}

// quotesFor returns where a value stands in a text: of an object, where its texts and numbers do.
func quotesFor(p *schema.Property, v any, text string) []string {
	if v, ok := v.(map[string]any); ok {
		var all []string
		for i := range p.Properties {
			inner := &p.Properties[i]
			if value := v[inner.Name]; value != nil {
				all = append(all, quotesFor(inner, value, text)...)
			}
		}
		return all
	}

	var quote string
	switch {
	case p.Numeric():
		quote = numberIn(v, text)
	case p.Type == schema.String:
		word, _ := v.(string)
		quote = wordIn(word, text)
	}

	if quote == "" {
		return nil
	}
	return []string{quote}
}

// Bounds of what is looked for.
const (
	plainLetters = 4   // a word of fewer has to stand in the text once
	mostLooked   = 500 // bytes of a text
)

// wordIn returns a text as it stands in another, with its own words around it. Case is of no account.
func wordIn(word, text string) string {
	word = strings.TrimSpace(word)
	if word == "" || len(word) > mostLooked {
		return ""
	}

	places := placesOfWord(word, text)
	if len(places) == 0 {
		// In lower case some texts have another length: then places would be wrong.
		folded, lower := strings.ToLower(word), strings.ToLower(text)
		if len(lower) != len(text) {
			return ""
		}
		word, places = folded, placesOfWord(folded, lower)
	}

	if len(places) == 0 || len(places) > 1 && utf8.RuneCountInString(word) < plainLetters {
		return ""
	}

	return text[places[0] : places[0]+len(word)]
}

// placesOfWord returns where a word stands by itself.
func placesOfWord(word, text string) (places []int) {
	for from := 0; from < len(text); {
		i := strings.Index(text[from:], word)
		if i < 0 {
			break
		}

		at := from + i
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+len(word):])
		if !isWordRune(before) && !isWordRune(after) {
			places = append(places, at)
		}

		from = at + len(word)
	}
	return places
}

func isWordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// numberIn returns the one number of a text that is equal to a value.
func numberIn(v any, text string) string {
	var want string
	switch v := v.(type) {
	case json.Number:
		want, _ = format.CanonicalNumber(v.String())
	case string:
		want, _ = format.ParseNumber(v)
	}

	if want == "" {
		return ""
	}

	var found []string
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsDigit(r) && !strings.ContainsRune(".,'-+", r) }) {
		word = strings.Trim(word, ".,'-+")
		if n, ok := format.ParseNumber(word); ok && n == strings.TrimPrefix(want, "-") {
			found = append(found, word)
		}
	}

	// A number at several places could be any of them, and a minus before it may be a dash.
	slices.Sort(found)
	if found = slices.Compact(found); len(found) != 1 || strings.Count(text, found[0]) != 1 || strings.HasPrefix(want, "-") {
		return ""
	}

	return found[0]
}
