package eval

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/schema"
)

// A judge compares the values of one field.
type judge struct {
	path string
	p    *schema.Property
}

// fieldsOf returns the fields to judge. With a schema these are its fields of
// which the truth speaks: what was not asked for cannot have been found. Without
// one they are all fields of the truth, by name.
func fieldsOf(s *schema.Schema, truth []Truth) []judge {
	samples := map[string][]any{}
	for _, t := range truth {
		for path, v := range flat("", t.Values) {
			if known := samples[path]; v != nil && len(known) < maxSamples {
				samples[path] = append(known, v)
			} else if known == nil {
				samples[path] = []any{}
			}
		}
	}
	var judged []judge
	if s != nil {
		for _, f := range s.Fields() {
			if _, ok := samples[f.Path]; ok {
				judged = append(judged, judge{f.Path, f.Property})
			}
		}
		return judged
	}
	for _, path := range slices.Sorted(maps.Keys(samples)) {
		judged = append(judged, judge{path, guess(samples[path])})
	}
	return judged
}

// maxSamples is how many values the type of a field is guessed from.
const maxSamples = 1000

// flat returns the values of a record by their paths.
func flat(prefix string, values map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range values {
		if inner, ok := v.(map[string]any); ok {
			maps.Copy(out, flat(prefix+name+".", inner))
			continue
		}
		out[prefix+name] = v
	}
	return out
}

// guess makes a property for a field that no schema describes, from values in
// the truth. Texts that read as numbers or dates, nine in ten of them, are
// compared as such.
func guess(samples []any) *schema.Property {
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
		return &schema.Property{Type: schema.Array, Items: guess(items)}
	case map[string]any:
		p := &schema.Property{Type: schema.Object}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			q := guess([]any{v[name]})
			q.Name = name
			p.Properties = append(p.Properties, *q)
		}
		return p
	}
	for _, p := range []*schema.Property{
		{Type: schema.Boolean}, {Type: schema.Number}, {Type: schema.String, Format: schema.Date},
	} {
		fit := 0
		for _, sample := range samples {
			if fits(p, sample) {
				fit++
			}
		}
		if fit*10 >= len(samples)*9 {
			return p
		}
	}
	return &schema.Property{Type: schema.String}
}

// fits reports whether a sample is a value of p beyond doubt.
func fits(p *schema.Property, sample any) bool {
	text, isText := sample.(string)
	switch {
	case p.Type == schema.Boolean:
		_, ok := sample.(bool)
		return ok
	case p.Format == schema.Date:
		_, end, ok := schema.DateAt(text, 0)
		return ok && end == len(text)
	case isText:
		_, ok := schema.ParseNumber(text)
		return ok
	default:
		_, err := p.Normalize(sample)
		return err == nil
	}
}

// compare counts the values of one field of a pair of records.
func (j judge) compare(truth, result map[string]any) count {
	want, got := j.values(truth), j.values(result)
	c := count{found: len(got), true: len(want)}
	for _, w := range want {
		if i := slices.Index(got, w); i >= 0 {
			c.right++
			got = slices.Delete(got, i, i+1)
		}
	}
	return c
}

// values returns the field's values in the form in which they are compared: one
// for a scalar, each element of a list, none for null.
func (j judge) values(record map[string]any) []string {
	v := at(record, j.path)
	if v == nil {
		return nil
	}
	if j.p.Type != schema.Array {
		if s := comparison(j.p, v); s != "" {
			return []string{s}
		}
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	out := make([]string, 0, len(list))
	for _, item := range list {
		if s := comparison(j.p.Items, item); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// at follows a path through nested objects.
func at(record map[string]any, path string) any {
	if v, ok := record[path]; ok {
		return v
	}
	for i, c := range path {
		if c != '.' {
			continue
		}
		if inner, ok := record[path[:i]].(map[string]any); ok {
			if v := at(inner, path[i+1:]); v != nil {
				return v
			}
		}
	}
	return nil
}

// comparison returns a text that is equal for values that are counted as equal.
// A value that is not of the field's type is compared as text, so it is wrong
// unless the truth says the same.
func comparison(p *schema.Property, v any) string {
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
		return loose(text)
	}
	if text, ok := normal.(string); ok && p.Enum == nil && !strict(p.Format) {
		return loose(text)
	}
	return p.Identity(normal)
}

// strict reports whether a format has a normal form of its own, in which every
// character counts.
func strict(f schema.Format) bool {
	return slices.Contains([]schema.Format{schema.Date, schema.DateTime, schema.Time, schema.Email, schema.URI}, f)
}

// loose folds NFKC, case, white space and punctuation.
func loose(s string) string {
	folded := schema.Fold(s)
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
