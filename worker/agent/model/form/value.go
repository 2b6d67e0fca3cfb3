package form

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/api/schema"
)

// Names in the form of values that JSON Schema has and vendors do not.
const (
	entryKey   = "key"           // of an entry of a map
	entryValue = "value"         // of an entry of a map
	restKey    = "other_entries" // of an object: entries under names that the schema does not give
	tupleKey   = "item_"         // of a tuple: an item, with its number from 1 on
	tupleRest  = "other_items"   // of a tuple: the items behind those that have a place
	memberKey  = "member_"       // of an object: a property with a name that vendors do not take, with its number
)

// valueSchemas returns the schema of one value of each field, in the order of Fields.
func valueSchemas(s *schema.Schema) []any {
	fields := s.Fields()
	out := make([]any, len(fields))
	for i, f := range fields {
		switch p := f.Property; p.Type {
		case schema.Array:
			out[i] = valueSchema(p.Items)
		case schema.Map:
			out[i] = entrySchema(p.Items)
		default:
			out[i] = valueSchema(p)
		}
	}
	return out
}

// valueSchema is the schema of one value: with its type, and without what may be null, as a
// value that is not there is not listed.
func valueSchema(p *schema.Property) dict {
	switch p.Type {
	case schema.Object:
		return membersSchema(p)
	case schema.Map:
		return describedList(entrySchema(p.Items), "each entry, with its key", p)
	case schema.Tuple:
		return tupleSchema(p)
	case schema.Union:
		return unionSchema(p)
	case schema.Any, schema.Null:
		return dict{{"type", []string{"string", "number", "boolean"}}, {"description", "a list or an object is written as a text of JSON"}}
	}

	return constrain(p, dict{{"type", string(p.Type)}})
}

// constrain adds to the schema of a value what the schema asks of it by itself, in the
// order of the names.
func constrain(p *schema.Property, out dict) dict {
	if p.Enum != nil {
		out = out.with("enum", p.Enum)
	}
	if p.Format != "" {
		out = out.with("format", string(p.Format))
	}

	// A pattern that readers understand differently is only described.
	var note string
	for _, k := range p.Keywords {
		if k.Name == "pattern" && !isPlainPattern(k.Value) {
			note = "matches the regular expression " + string(k.Value)
			continue
		}
		out = out.with(k.Name, k.Value)
	}

	if p.Type == schema.Array {
		out = out.with("items", valueSchema(p.Items))
	}

	slices.SortStableFunc(out, func(a, b pair) int { return cmp.Compare(a.key, b.key) })
	if note != "" {
		out = out.with("description", note)
	}

	return out
}

// isPlainPattern reports whether all who read the form know the syntax of a pattern, a
// text in JSON.
func isPlainPattern(raw json.RawMessage) bool {
	var expr string
	if json.Unmarshal(raw, &expr) != nil {
		return false
	}
	return schema.IsPlainPattern(expr)
}

func entrySchema(of *schema.Property) dict {
	value := valueSchema(of)
	if of.Nullable || of.Type == schema.Any {
		value = orNull(value)
	}
	return objectSchema(dict{{entryKey, textSchema("the name of the entry")}, {entryValue, value}})
}

// orNull returns the schema of a value that may be null as well.
func orNull(d dict) dict { return dict{{"anyOf", []dict{d, {{"type", "null"}}}}} }

func describedList(of any, description string, p *schema.Property) dict {
	if p.Description != "" {
		description = p.Description + ". " + description
	}
	return listSchema(of, description)
}

// memberNames returns the names of an object's properties in the form, "" for those of
// which there is no value to find.
func memberNames(p *schema.Property) []string {
	names := make([]string, len(p.Properties))
	for i := range p.Properties {
		one := &p.Properties[i]
		switch {
		case one.Type == schema.Null:
		case !plainKey.MatchString(one.Name) || one.Name == restKey && p.Rest != nil:
			names[i] = fmt.Sprint(memberKey, i+1)
		default:
			names[i] = one.Name
		}
	}

	return names
}

// membersSchema is the schema of an object. Each property is a single value; one that may
// be absent may be null.
func membersSchema(p *schema.Property) dict {
	names := memberNames(p)

	fields, required := dict{}, []string{}
	for i := range p.Properties {
		one := &p.Properties[i]
		if names[i] == "" {
			continue
		}

		v := valueSchema(one)
		// The description of the schema of a value gives way to that of its member.
		if text := describeMember(one, names[i]); text != "" {
			v = slices.DeleteFunc(slices.Clone(v), func(x pair) bool { return x.key == "description" }).with("description", text)
		}

		fields = fields.with(names[i], v)
		if one.Required && !one.Nullable {
			required = append(required, names[i])
		}
	}

	if p.Rest != nil {
		fields = fields.with(restKey, listSchema(entrySchema(p.Rest), "what else there is, by its name"))
	}

	out := dict{{"properties", fields}}
	if len(required) > 0 {
		out = out.with("required", required)
	}

	return out.with("type", "object")
}

// describeMember says what belongs into a property of an object.
func describeMember(p *schema.Property, name string) string {
	text := p.Description
	if name != p.Name {
		text = joinSentences(fmt.Sprintf("its name is %q", p.Name), text)
	}

	switch p.Type {
	case schema.Map, schema.Any:
		// The schema of a map has the description of the property in it, which would stand
		// twice.
		inner, _ := valueSchema(p).get("description")
		if p.Type == schema.Map {
			inner = "each entry, with its key"
		}
		text = joinSentences(text, fmt.Sprint(inner))
	}

	return text
}

func joinSentences(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ". " + b
}

// tupleSchema is the schema of a tuple: an object with a field for each place.
func tupleSchema(p *schema.Property) dict {
	fields := dict{}
	for i := range p.Prefix {
		one := &p.Prefix[i]

		v := valueSchema(one)
		if one.Description != "" {
			v = slices.DeleteFunc(slices.Clone(v), func(x pair) bool { return x.key == "description" }).with("description", one.Description)
		}

		fields = fields.with(fmt.Sprint(tupleKey, i+1), v)
	}

	if p.Items != nil {
		fields = fields.with(tupleRest, listSchema(valueSchema(p.Items), "the items behind these"))
	}

	return dict{{"properties", fields}, {"type", "object"}}
}

// unionSchema is the schema of one of several types. Types that only their form would
// distinguish are written as a text of JSON.
func unionSchema(p *schema.Property) dict {
	options := []dict{}
	asText := -1

	for i := range p.Options {
		one := &p.Options[i]
		switch {
		case !isText(one):
			options = append(options, valueSchema(one))
		case asText < 0:
			asText = len(options)
			options = append(options, dict{{"type", "string"}, {"description", "a text of JSON, which holds a list or an object"}})
		}
	}

	// A text of JSON and a plain text cannot be told apart, so both are one option.
	if i := slices.IndexFunc(options, func(d dict) bool { t, _ := d.get("type"); return t == "string" }); asText >= 0 && i >= 0 && i != asText {
		options[i] = dict{{"type", "string"}, {"description", "a text; a list or an object is written as a text of JSON"}}
		options = slices.Delete(options, asText, asText+1)
	}

	if len(options) == 1 {
		return options[0]
	}

	return dict{{"anyOf", options}}
}

// isText reports whether an option of a union is a text of JSON in the form.
func isText(p *schema.Property) bool {
	return p.Type == schema.Map || p.Type == schema.Tuple || p.Type == schema.Any
}
