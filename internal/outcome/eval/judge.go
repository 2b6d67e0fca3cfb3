package eval

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
)

// A judge compares the values of one field.
type judge struct {
	path      string
	property  *schema.Property
	normalise Normalisation // of texts
}

// fieldsOf returns the fields to judge. With a schema these are its fields that
// the truth has too: a field outside the schema cannot have been found. Without
// one they are all fields of the truth, sorted by name.
func fieldsOf(s *schema.Schema, truth []Truth) []judge {
	samples := map[string][]any{}
	for _, t := range truth {
		for path, v := range flattenRecord("", t.Values) {
			if known := samples[path]; v != nil && len(known) < maxSamples {
				samples[path] = append(known, v)
			} else if known == nil {
				samples[path] = []any{}
			}
		}
	}

	var judged []judge

	// A field of which all values are null is still one of the truth.
	if s != nil {
		for _, f := range s.Fields() {
			if _, ok := samples[f.Path]; ok {
				judged = append(judged, judge{path: f.Path, property: f.Property})
			}
		}
		return judged
	}

	for _, path := range slices.Sorted(maps.Keys(samples)) {
		judged = append(judged, judge{path: path, property: guessProperty(samples[path])})
	}
	return judged
}

// maxSamples bounds the values from which the type of a field is guessed.
const maxSamples = 1000

// flattenRecord returns the values of a record by their paths.
func flattenRecord(prefix string, values map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range values {
		if inner, ok := v.(map[string]any); ok {
			maps.Copy(out, flattenRecord(prefix+name+".", inner))
			continue
		}
		out[prefix+name] = v
	}
	return out
}

// guessProperty guesses the property of a field without a schema from values of
// the truth. If nine in ten texts parse as numbers or dates, the field is compared
// as such.
func guessProperty(samples []any) *schema.Property {
	if len(samples) == 0 {
		return &schema.Property{Type: schema.String}
	}

	switch v := samples[0].(type) {
	case []any:
		var items []any
		for _, sample := range samples {
			list, _ := sample.([]any)
			items = append(items, list...)
		}
		return &schema.Property{Type: schema.Array, Items: guessProperty(items)}
	case map[string]any:
		p := &schema.Property{Type: schema.Object}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			q := guessProperty([]any{v[name]})
			q.Name = name
			p.Properties = append(p.Properties, *q)
		}
		return p
	}

	// A tenth of the samples may be misread or misspelled.
	for _, p := range []*schema.Property{
		{Type: schema.Boolean}, {Type: schema.Number}, {Type: schema.String, Format: schema.Date},
	} {
		fit := 0
		for _, sample := range samples {
			if fitsProperty(p, sample) {
				fit++
			}
		}
		if fit*10 >= len(samples)*9 {
			return p
		}
	}

	return &schema.Property{Type: schema.String}
}

// fitsProperty reports whether a sample is a value of p beyond doubt.
func fitsProperty(p *schema.Property, sample any) bool {
	text, isText := sample.(string)
	switch {
	case p.Type == schema.Boolean:
		_, ok := sample.(bool)
		return ok
	case p.Format == schema.Date:
		_, end, ok := calendar.DateAt(text, 0)
		return ok && end == len(text)
	case isText:
		_, ok := format.ParseNumber(text)
		return ok
	default:
		_, err := p.Normalize(sample)
		return err == nil
	}
}

// compareField counts the values of one field of a pair of records.
func (j judge) compareField(truth, result map[string]any) count {
	want, got := j.comparableValues(truth), j.comparableValues(result)
	c := count{found: len(got), true: len(want)}

	for _, w := range want {
		if i := slices.Index(got, w); i >= 0 {
			c.right++
			got = slices.Delete(got, i, i+1)
		}
	}

	return c
}

// comparableValues returns comparison keys of the field's values: one for a scalar,
// one for each element of a list, none for null.
func (j judge) comparableValues(record map[string]any) []string {
	v := valueAt(record, j.path)
	if v == nil {
		return nil
	}

	if j.property.Type != schema.Array {
		if s := j.comparisonKey(j.property, v); s != "" {
			return []string{s}
		}
		return nil
	}

	// One value in place of a list counts as a list of one.
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}

	out := make([]string, 0, len(list))
	for _, item := range list {
		if s := j.comparisonKey(j.property.Items, item); s != "" {
			out = append(out, s)
		}
	}

	return out
}

// valueAt follows a path through nested objects.
func valueAt(record map[string]any, path string) any {
	if v, ok := record[path]; ok {
		return v
	}

	for i, c := range path {
		if c != '.' {
			continue
		}
		if inner, ok := record[path[:i]].(map[string]any); ok {
			if v := valueAt(inner, path[i+1:]); v != nil {
				return v
			}
		}
	}
	return nil
}

// comparisonKey returns a text that is equal for values that count as equal. A
// value that is not of the field's type is compared as text, so it is wrong unless
// the truth has the same text.
func (j judge) comparisonKey(p *schema.Property, v any) string {
	if v == nil {
		return ""
	}

	normal, err := p.Normalize(v)
	if err != nil {
		text, ok := v.(string)
		if !ok {
			b, _ := json.Marshal(v) // it was decoded from JSON
			text = string(b)
		}
		return j.foldText(text)
	}

	if text, ok := normal.(string); ok && p.Enum == nil && !hasStrictForm(p.Format) {
		return j.foldText(text)
	}

	return p.Identity(normal)
}

// KeyOf returns a text that is equal for values of a property that count as equal, as eval
// compares them.
func KeyOf(p *schema.Property, v any) string { return judge{property: p}.comparisonKey(p, v) }

func (j judge) foldText(text string) string {
	if j.normalise != nil {
		return j.normalise(text)
	}
	return foldLoosely(text)
}

// hasStrictForm reports whether a format has a normal form of its own, in which every
// character counts.
func hasStrictForm(f schema.Format) bool {
	return slices.Contains([]schema.Format{schema.Date, schema.DateTime, schema.Time, schema.Email, schema.URI}, f)
}

// foldLoosely folds NFKC, case, white space and punctuation.
func foldLoosely(s string) string {
	folded := format.Fold(s)
	bare := strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || unicode.IsPunct(c) {
			return -1
		}
		return c
	}, folded)

	if bare == "" {
		return folded
	}
	return bare
}
