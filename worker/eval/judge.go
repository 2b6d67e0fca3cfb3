package eval

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/schema"
)

// A judge compares the values of one field.
type judge struct {
	path string
	p    *schema.Property
}

// fieldsOf returns the fields that the truth speaks of: in the order of the
// schema, or of their names.
func fieldsOf(s *schema.Schema, truth []Truth) []judge {
	samples := map[string]any{}
	for _, t := range truth {
		for path, v := range flat("", t.Values) {
			if known, ok := samples[path]; !ok || known == nil {
				samples[path] = v
			}
		}
	}
	var judged []judge
	if s != nil {
		for _, f := range s.Fields() {
			if _, ok := samples[f.Path]; ok {
				judged = append(judged, judge{f.Path, f.Property})
				delete(samples, f.Path)
			}
		}
	}
	known := len(judged)
	for path, v := range samples {
		judged = append(judged, judge{path, guess(v)})
	}
	slices.SortFunc(judged[known:], func(a, b judge) int { return strings.Compare(a.path, b.path) })
	return judged
}

// flat returns the values of a record by their paths.
func flat(prefix string, values map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range values {
		if inner, ok := v.(map[string]any); ok {
			for path, v := range flat(prefix+name+".", inner) {
				out[path] = v
			}
			continue
		}
		out[prefix+name] = v
	}
	return out
}

// guess makes a property for a field that no schema describes. A text that
// reads as a date or number in full is compared as such.
func guess(v any) *schema.Property {
	switch v := v.(type) {
	case bool:
		return &schema.Property{Type: schema.Boolean}
	case json.Number, float64, int:
		return &schema.Property{Type: schema.Number}
	case []any:
		p := &schema.Property{Type: schema.Array, Items: &schema.Property{Type: schema.String}}
		if len(v) > 0 {
			p.Items = guess(v[0])
		}
		return p
	case map[string]any:
		p := &schema.Property{Type: schema.Object}
		for name, inner := range v {
			q := guess(inner)
			q.Name = name
			p.Properties = append(p.Properties, *q)
		}
		return p
	case string:
		if _, end, ok := schema.DateAt(v, 0); ok && end == len(v) {
			return &schema.Property{Type: schema.String, Format: schema.Date}
		}
		if _, err := strconv.ParseFloat(v, 64); err == nil {
			return &schema.Property{Type: schema.Number}
		}
	}
	return &schema.Property{Type: schema.String}
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
		if s := comparable(j.p, v); s != "" {
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
		if s := comparable(j.p.Items, item); s != "" {
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

// comparable returns a text that is equal for values that are counted as equal.
// A value that is not of the field's type is compared as text, so it is wrong
// unless the truth says the same.
func comparable(p *schema.Property, v any) string {
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
