package resultfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Record is an entry of a result's aggregated_data as text for people: a line for
// each field, or the value alone if it is no object.
type Record struct {
	text  strings.Builder
	chars int64 // of text, in code points
	parts []part
	cited map[string][]string // references by field
}

// reference is how results spell the id of a citation.
var reference = regexp.MustCompile(`\bREF_[0-9a-f]{8,64}\b`)

// ParseRecord reads an entry of aggregated_data. It leaves out fields that are null,
// and the members that say what the others rest on.
func ParseRecord(data []byte) (*Record, error) {
	r := &Record{}
	if !json.Valid(data) {
		return nil, errors.New("it is not JSON")
	}

	value, err := parseValue(data)
	if err != nil {
		return nil, err
	}

	if o, ok := value.(object); ok {
		return r, r.addMembers(o)
	}
	if value == nil {
		return r, nil
	}

	r.addField("value", "", func() { r.addValue("value", 0, value) })
	return r, nil
}

// Text returns the record as text, which is empty if all fields are null.
func (r *Record) Text() string { return r.text.String() }

// Refs returns the references that the record rests on, in the order of its text, each
// once.
func (r *Record) Refs() []string {
	var all []string
	seen := make(map[string]bool)

	for _, p := range r.parts {
		for _, ref := range p.Refs {
			if !seen[ref] {
				seen[ref] = true
				all = append(all, ref)
			}
		}
	}

	return all
}

// addMembers adds the fields of the outermost object.
func (r *Record) addMembers(o object) error {
	// The references come first, for each field is added with its own.
	for _, m := range o {
		if m.name == "_citations" {
			if err := json.Unmarshal(m.data, &r.cited); err != nil {
				return fmt.Errorf("_citations: %w", err)
			}
		}
	}

	for _, m := range o {
		if m.name == "_derived" {
			if err := r.addDerived(m.data); err != nil {
				return err
			}
		}
	}

	for _, m := range o {
		if m.value != nil && !strings.HasPrefix(m.name, "_") {
			r.addField(m.name, heading(m.name, m.value), func() { r.addValue(m.name, 0, m.value) })
		}
	}

	return nil
}

// addDerived adds the citations that derived values follow from.
func (r *Record) addDerived(data []byte) error {
	var derived map[string]struct {
		Citations []string `json:"citations"`
	}
	if err := json.Unmarshal(data, &derived); err != nil {
		return fmt.Errorf("_derived: %w", err)
	}

	if r.cited == nil {
		r.cited = make(map[string][]string, len(derived))
	}

	for field, d := range derived {
		r.cited[field] = d.Citations
	}
	return nil
}

// addField adds a line, or several, and their place if they have references.
func (r *Record) addField(field, head string, add func()) {
	start, from, inner := r.chars, r.text.Len(), len(r.parts)
	r.write(head)
	add()

	refs := slices.Clone(r.cited[field])
	if len(r.parts) == inner { // no field inside has references of its own
		refs = append(refs, reference.FindAllString(r.text.String()[from:], -1)...)
	}

	if slices.Sort(refs); len(refs) > 0 {
		r.parts = append(r.parts, part{Field: field, Start: start, End: r.chars, Refs: slices.Compact(refs)})
	}

	r.write("\n")
}

// addValue adds the value of a field. A list of plain values takes one line; members
// of objects and other elements have lines of their own, indented below the field.
func (r *Record) addValue(path string, depth int, value any) {
	indent := "\n" + strings.Repeat("  ", depth+1)

	switch v := value.(type) {
	case object:
		for _, m := range v {
			if m.value == nil {
				continue
			}
			r.write(indent)
			r.addInner(path+"."+m.name, heading(m.name, m.value), depth+1, m.value)
		}
	case []any:
		if !slices.ContainsFunc(v, isNested) {
			for i, one := range v {
				if i > 0 {
					r.write("; ")
				}
				r.addValue(path, depth, one)
			}
			return
		}
		for _, one := range v {
			r.write(indent + "-")
			r.addValue(path, depth+1, one)
		}
	case string:
		r.write(plainText(v))
	case nil:
		r.write("-")
	default:
		r.write(fmt.Sprint(v))
	}
}

// addInner adds a field inside an object, and its place if it has citations.
func (r *Record) addInner(path, head string, depth int, value any) {
	start := r.chars
	r.write(head)
	r.addValue(path, depth, value)
	if refs := r.cited[path]; len(refs) > 0 {
		r.parts = append(r.parts, part{Field: path, Start: start, End: r.chars, Refs: refs})
	}
}

func (r *Record) write(s string) {
	r.text.WriteString(s)
	r.chars += int64(utf8.RuneCountInString(s))
}

// heading returns what stands before a value: on its line, or above its lines.
func heading(name string, value any) string {
	list, ok := value.([]any)
	if _, isObject := value.(object); isObject || ok && slices.ContainsFunc(list, isNested) {
		return name + ":"
	}
	return name + ": "
}

func isNested(v any) bool {
	switch v.(type) {
	case object, []any:
		return true
	}
	return false
}

// plainText replaces characters that a text document must not have.
func plainText(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) && c != '\n' && c != '\t' {
			return ' '
		}
		return c
	}, s)
}

// An object is a JSON object whose members keep their order.
type object []member

// A member is a member of an object.
type member struct {
	name  string
	value any             // object, []any, string, json.Number, bool or nil
	data  json.RawMessage // of value
}

// parseValue reads a JSON value. The order of members is part of the text.
func parseValue(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	token, err := d.Token()
	if err != nil {
		return nil, err
	}

	switch token {
	case json.Delim('{'):
		var o object
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			m := member{name: name.(string)} // the decoder has checked it
			if m.data, m.value, err = parseNext(d); err != nil {
				return nil, err
			}
			o = append(o, m)
		}
		return o, nil
	case json.Delim('['):
		list := []any{}
		for d.More() {
			_, v, err := parseNext(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	}

	return token, nil
}

// parseNext reads the next value of a decoder, and returns its JSON too.
func parseNext(d *json.Decoder) (data json.RawMessage, value any, err error) {
	if err = d.Decode(&data); err == nil {
		value, err = parseValue(data)
	}
	return data, value, err
}
