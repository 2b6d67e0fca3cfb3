package jsonvalue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/internal/text/prose"
	"github.com/coditect/mapreduce/internal/text/refs"
)

// A quotedField is a property of a value that has to stand in a quote.
type quotedField struct {
	path     []string // of objects, from the top
	property schema.Property
}

// quotedIn finds the properties with the hint quoted among properties and in their objects.
func quotedIn(properties []schema.Property, path []string) (found []quotedField) {
	for _, p := range properties {
		if p.Hints.Quoted {
			found = append(found, quotedField{path, p})
		}
		if p.Type == schema.Object {
			found = append(found, quotedIn(p.Properties, append(slices.Clip(path), p.Name))...)
		}
	}
	return found
}

// CheckQuoted refuses a value in which a property that has to stand in a quote does not
// stand in one of the references that the object around it has.
//
// v is the decoded value, and quote returns the quote of a reference that the value's
// output carries.
func (f *Form) CheckQuoted(v any, quote func(refs.ID) (string, bool)) error {
	for _, q := range f.hints.quoted {
		object, ok := v.(map[string]any)
		for _, name := range q.path {
			object, ok = object[name].(map[string]any)
		}

		text, isText := object[q.property.Name].(string)
		if !ok || !isText {
			continue // whether it may be missing the schema says
		}

		if !q.standsIn(text, quotesOf(object, quote)) {
			at := strings.Join(append(q.path, q.property.Name), ".")
			return fmt.Errorf("%w: %s, %.80q, does not stand in a quote of the references beside it", ErrForm, at, text)
		}
	}
	return nil
}

// quotesOf returns the quotes of the references that an object has itself, or in its lists.
func quotesOf(object map[string]any, quote func(refs.ID) (string, bool)) (quotes []string) {
	add := func(text string) {
		for _, id := range refs.FullIDs(text) {
			if text, ok := quote(id); ok {
				quotes = append(quotes, text)
			}
		}
	}

	// Only the object itself and its lists count: references of inner objects are of these.
	for _, key := range sortedKeys(object) {
		switch v := object[key].(type) {
		case string:
			add(v)
		case []any:
			for _, one := range v {
				if text, ok := one.(string); ok {
					add(text)
				}
			}
		}
	}

	return quotes
}

// standsIn reports whether a text stands in one of the quotes, with or without their marks of links,
// emphasis and the like, or in case of a date, one that means the same day.
func (q *quotedField) standsIn(text string, quotes []string) bool {
	for _, quote := range quotes {
		if folded := format.Fold(text); strings.Contains(format.Fold(quote), folded) || strings.Contains(format.Fold(prose.Plain(quote)), folded) {
			return true
		}
		if q.property.Format == schema.Date && meansDate(quote, text) {
			return true
		}
	}
	return false
}

// meansDate reports whether a quote has a date that is the day, or may be: of a date of three numbers, the
// quote alone does not tell whether the day or the month comes first.
func meansDate(quote, day string) bool {
	for d := range calendar.NumericDates(quote) {
		if day == d.DayFirst || day == d.MonthFirst || day == d.YearFirst {
			return true
		}
	}

	for i := range quote {
		if i > 0 && isDigit(quote[i-1]) {
			continue // within a number
		}
		if found, _, ok := calendar.DateAt(quote, i); ok && found == day {
			return true
		}
	}
	return false
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// HasQuoted reports whether some property has to stand in a quote.
func (f *Form) HasQuoted() bool { return len(f.hints.quoted) > 0 }
