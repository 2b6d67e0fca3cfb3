package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/source"
)

// others returns the property of values under names that the document gives, nil if p has
// none.
func (p *Property) others() *Property {
	if p.Type == Map {
		return p.Items
	}
	return p.Rest
}

// IsElement reports whether v is one element of p, a list, rather than a list of such.
func (p *Property) IsElement(v any) bool {
	if p.Type != Array {
		return false
	}
	_, isList := v.([]any)
	return !isList || p.Items.Fits(v) == nil
}

// Member returns the property of a value under a name; nil if p has none.
func (p *Property) Member(name string) *Property {
	for i := range p.Properties {
		if p.Properties[i].Name == name {
			return &p.Properties[i]
		}
	}
	return p.others()
}

// otherNames returns the names of an object that p does not name, sorted; none if p has no
// others.
func (p *Property) otherNames(m map[string]any) []string {
	if p.others() == nil {
		return nil
	}
	return p.unnamed(m)
}

// unnamed returns the names of an object that p does not name, sorted.
func (p *Property) unnamed(m map[string]any) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if !slices.ContainsFunc(p.Properties, func(q Property) bool { return q.Name == name }) {
			names = append(names, name)
		}
	}
	return names
}

// addOthers adds the values of m under other names to out, normalised.
func addOthers(p *Property, m, out map[string]any) error {
	of := p.others()
	for _, name := range p.otherNames(m) {
		value, err := of.Normalize(m[name])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}

		if value != nil || of.Nullable || of.Type == Any {
			out[name] = value
		}
	}

	return nil
}

func normalizeMap(p *Property, v any) (any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%T is no object", v)
	}
	out := make(map[string]any, len(m))
	return out, addOthers(p, m, out)
}

// ItemAt returns the property of an item of a list or a tuple.
func (p *Property) ItemAt(i int) *Property {
	switch {
	case i < len(p.Prefix):
		return &p.Prefix[i]
	case p.Items != nil:
		return p.Items
	}
	return &Property{Type: Any}
}

// normalizeTuple keeps every place, also that of what is null.
func normalizeTuple(p *Property, v any) (any, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("%T is no list", v)
	}

	out := make([]any, len(list))
	for i, item := range list {
		value, err := p.ItemAt(i).Normalize(item)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		out[i] = value
	}

	return out, nil
}

// Option returns the option of a union for values of v's type, nil if there is none. What is
// no union is its own option.
func (p *Property) Option(v any) *Property {
	if p.Type != Union {
		return p
	}

	is := func(types ...Type) *Property {
		for i := range p.Options {
			if slices.Contains(types, p.Options[i].Type) {
				return &p.Options[i]
			}
		}
		return nil
	}

	switch v.(type) {
	case string:
		return is(String)
	case bool:
		return is(Boolean)
	case []any:
		return is(Array, Tuple)
	case map[string]any:
		return is(Object, Map)
	case json.Number, int, int64, float64:
		return is(Number, Integer)
	}
	return nil
}

// normalizeUnion takes the option of the value's type. What it is none of, may be a value
// of another in its form: "12" is a number where no text is allowed.
func normalizeUnion(p *Property, v any) (any, error) {
	first := p.Option(v)
	var why error
	if first != nil {
		value, err := first.Normalize(v)
		if err == nil {
			return value, nil
		}
		why = err
	}

	for i := range p.Options {
		option := &p.Options[i]
		if option == first || option.Type == Array && first != nil {
			continue // a single value is a list of one only where nothing else is allowed
		}
		if value, err := option.Normalize(v); err == nil {
			return value, nil
		}
	}

	if why == nil {
		why = fmt.Errorf("%s is of none of the types that are allowed", Shown(v))
	}
	return nil, why
}

// normalizeAny gives a value of any type the form that values of its type have.
func normalizeAny(v any) (any, error) {
	switch v := v.(type) {
	case string:
		text := format.Text(v)
		if text == "" {
			return nil, errors.New("is empty")
		}
		return text, nil

	case json.Number, float64, int, int64:
		text, err := scalarText(v)
		if err != nil {
			return nil, err
		}

		n, ok := format.CanonicalNumber(text)
		if !ok {
			return nil, fmt.Errorf("%q is no number", source.Clip(text))
		}
		return json.Number(n), nil
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			value, err := normalizeWithin(item)
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			out[i] = value
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			value, err := normalizeWithin(v[name])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			out[name] = value
		}
		return out, nil
	case bool:
		return v, nil
	}
	return nil, fmt.Errorf("%T is no value", v)
}

// normalizeWithin is normalizeAny for what stands within a value, where null and empty
// texts are values.
func normalizeWithin(v any) (any, error) {
	if v == nil || v == "" {
		return v, nil
	}
	return normalizeAny(v)
}

// NormalizeParts normalises the parts of v that are values of their properties, and leaves
// the others as they are. It is for values that Normalize refuses for one of their parts.
func (p *Property) NormalizeParts(v any) any {
	if value, err := p.Normalize(v); err == nil {
		return value
	}

	of := p.Option(v)
	if of == nil {
		return v
	}

	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, item := range v {
			if m := of.Member(name); m != nil && item != nil {
				out[name] = m.NormalizeParts(item)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = of.ItemAt(i).NormalizeParts(item)
		}
		return out
	}
	return v
}
