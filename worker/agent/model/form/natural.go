package form

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
)

// Natural returns a value of an answer, which has the form that vendors take, in the shape
// that the schema asks for: lists of entries become objects, and texts of JSON what they
// hold. What has that shape already stays as it is, and so does what has neither.
func Natural(p *schema.Property, v any) any {
	switch p.Type {
	case schema.Object:
		return naturalObject(p, v)
	case schema.Map:
		return naturalMap(p, v)
	case schema.Tuple:
		return naturalTuple(p, v)
	case schema.Array:
		return eachNatural(p.Items, v)
	case schema.Union:
		return naturalOption(p, v)
	case schema.Any:
		return unpackText(v)
	default:
		return v
	}
}

// NaturalOf is Natural for one finding of a field: one element of a list, or one entry of a
// map.
func NaturalOf(p *schema.Property, v any) any {
	if p.Type == schema.Array {
		return Natural(p.Items, v)
	}
	if entry, ok := v.(map[string]any); ok && p.Type == schema.Map && isEntry(entry) {
		v = []any{v}
	}
	return Natural(p, v)
}

func isEntry(m map[string]any) bool {
	_, isKey := m[entryKey].(string)
	_, isValue := m[entryValue]
	return len(m) == 2 && isKey && isValue
}

func naturalObject(p *schema.Property, v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}

	names := memberNames(p)
	out := make(map[string]any, len(m))
	for key, item := range m {
		// A model may use the name of the form or that of the schema.
		i := slices.Index(names, key)
		if i < 0 {
			i = slices.IndexFunc(p.Properties, func(q schema.Property) bool { return q.Name == key })
		}

		switch {
		case i >= 0:
			out[p.Properties[i].Name] = Natural(&p.Properties[i], item)
		case key == restKey && p.Rest != nil:
			others, _ := naturalMap(&schema.Property{Items: p.Rest}, item).(map[string]any)
			maps.Copy(out, others)
		case p.Rest != nil:
			out[key] = Natural(p.Rest, item)
		default:
			out[key] = item
		}
	}

	return out
}

func naturalMap(p *schema.Property, v any) any {
	out := map[string]any{}
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			out[key] = Natural(p.Items, item)
		}
		return out
	case []any:
		for _, item := range v {
			// One element that is no entry leaves all as it is.
			entry, ok := item.(map[string]any)
			if !ok || !isEntry(entry) {
				return v
			}
			out[fmt.Sprint(entry[entryKey])] = Natural(p.Items, entry[entryValue])
		}
		return out
	}
	return v
}

func eachNatural(p *schema.Property, v any) any {
	list, ok := v.([]any)
	if !ok {
		return v
	}
	out := make([]any, len(list))
	for i, item := range list {
		out[i] = Natural(p, item)
	}
	return out
}

func naturalTuple(p *schema.Property, v any) any {
	var list []any
	switch v := v.(type) {
	case []any:
		list = v
	case map[string]any:
		for i := range p.Prefix {
			list = append(list, v[fmt.Sprint(tupleKey, i+1)])
		}
		others, _ := v[tupleRest].([]any)
		list = append(list, others...)
		for len(list) > 0 && list[len(list)-1] == nil {
			list = list[:len(list)-1] // places at the end of which nothing was found
		}
	default:
		return v
	}

	out := make([]any, len(list))
	for i, item := range list {
		out[i] = Natural(p.ItemAt(i), item)
	}
	return out
}

// naturalOption takes the option of a union that a value is of.
func naturalOption(p *schema.Property, v any) any {
	if slices.ContainsFunc(p.Options, func(o schema.Property) bool { return isText(&o) }) {
		v = unpackText(v)
	}

	// The first option whose form the value has is taken.
	for i := range p.Options {
		option := &p.Options[i]
		_, isList := v.([]any)
		_, isObject := v.(map[string]any)

		switch option.Type {
		case schema.Array, schema.Tuple:
			if isList {
				return Natural(option, v)
			}
		case schema.Object, schema.Map:
			if isObject {
				return Natural(option, v)
			}
		}
	}
	return v
}

// unpackText returns the list or the object that a text holds, or else the value as it is.
func unpackText(v any) any {
	text, ok := v.(string)
	if !ok || !strings.HasPrefix(strings.TrimSpace(text), "{") && !strings.HasPrefix(strings.TrimSpace(text), "[") {
		return v
	}

	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var inner any
	if d.Decode(&inner) != nil || d.More() {
		return v
	}
	return inner
}

// Told is the inverse of Natural: a value in the form of answers, as examples show it. For a
// map, it is the list of its entries.
func Told(p *schema.Property, v any) any {
	switch v := v.(type) {
	case map[string]any:
		return toldObject(p, v)
	case []any:
		return toldList(p, v)
	}
	return v
}

// textOf returns a value as a text of JSON.
func textOf(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		return v
	}
	return string(raw)
}

func toldObject(p *schema.Property, m map[string]any) any {
	switch p.Type {
	case schema.Map:
		return toldEntries(p.Items, m, nil)
	case schema.Union:
		if i := slices.IndexFunc(p.Options, func(o schema.Property) bool { return o.Type == schema.Object }); i >= 0 {
			return toldObject(&p.Options[i], m)
		}
		return textOf(m)
	case schema.Object:
		out, named := map[string]any{}, map[string]bool{}
		names := memberNames(p)
		for i := range p.Properties {
			one := &p.Properties[i]
			if item, ok := m[one.Name]; ok && names[i] != "" {
				out[names[i]] = Told(one, item)
			}
			named[one.Name] = true
		}

		if entries := toldEntries(p.Rest, m, named); p.Rest != nil && len(entries) > 0 {
			out[restKey] = entries
		}

		return out
	}
	return textOf(m)
}

// toldEntries returns the entries of an object that have no name of their own.
func toldEntries(of *schema.Property, m map[string]any, named map[string]bool) []any {
	entries := []any{}
	if of == nil {
		return entries
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if !named[name] {
			entries = append(entries, map[string]any{entryKey: name, entryValue: Told(of, m[name])})
		}
	}
	return entries
}

func toldList(p *schema.Property, list []any) any {
	switch p.Type {
	case schema.Array:
		out := make([]any, len(list))
		for i, item := range list {
			out[i] = Told(p.Items, item)
		}
		return out
	case schema.Tuple:
		out, others := map[string]any{}, []any{}
		for i, item := range list {
			if told := Told(p.ItemAt(i), item); i < len(p.Prefix) {
				out[fmt.Sprint(tupleKey, i+1)] = told
			} else {
				others = append(others, told)
			}
		}

		if len(others) > 0 {
			out[tupleRest] = others
		}
		return out
	case schema.Union:
		if i := slices.IndexFunc(p.Options, func(o schema.Property) bool { return o.Type == schema.Array }); i >= 0 {
			return toldList(&p.Options[i], list)
		}
	}

	return textOf(list)
}
