// Package form has the form of a model's answers about records: the JSON Schema that is
// derived from a user's schema, how an answer is read, and how examples of a pipeline
// look as answers.
//
// An answer has, for each field of a record, a list of values, each with its quotes. The
// list may be empty. So no value is optional or of two types, which vendors restrict, and
// every value has quotes.
package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/answer"
)

// A Form is the JSON Schema of a model's answer for a user's schema. It is immutable.
type Form struct {
	schema *schema.Schema
	Answer *llm.Schema // of an answer about one document
	Direct *llm.Schema // of an answer about several documents
	Fields []Field     // in the order of the schema
	byKey  map[string]*Field
}

// A Field is a field as the model knows it.
type Field struct {
	schema.Field
	Key string // its name in answers
}

// plainKey is how a name must look for every vendor to take it.
var plainKey = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// New derives the form from a schema.
func New(s *schema.Schema) (*Form, error) {
	f := &Form{schema: s, byKey: make(map[string]*Field)}
	raw, err := rawFields(s)
	if err != nil {
		return nil, err
	}
	for i, field := range s.Fields() {
		key := field.Path
		if !plainKey.MatchString(key) {
			key = "field_" + strconv.Itoa(i+1)
		}
		f.Fields = append(f.Fields, Field{field, key})
	}
	for i := range f.Fields {
		f.byKey[f.Fields[i].Key] = &f.Fields[i]
	}
	doc, err := f.answerSchema(raw)
	if err != nil {
		return nil, err
	}
	if f.Answer, err = extractionSchema(doc); err != nil {
		return nil, err
	}
	f.Direct, err = f.directForm(raw)
	return f, err
}

// foundValue matches the place of a value in an answer. If the value does not fit the
// user's schema the answer can be used all the same: the value is none of the record's,
// and is shown with what it breaks.
var foundValue = regexp.MustCompile(`^(/records/[0-9]+)?/fields/[^/]+/[0-9]+/value(/|$)`)

// extractionSchema reads the schema of answers about records.
func extractionSchema(doc []byte) (*llm.Schema, error) {
	s, err := llm.NewSchema("extraction", doc)
	if err != nil {
		return nil, err
	}
	return s.Tolerating(foundValue).Hinting(answerHints)
}

// answerHints say what in an answer about records stands for what. A value alone is a finding
// that has no quotes: they are looked for, and until then it is not believed. What says that
// nothing was found may be left out.
var answerHints = answer.Hints{
	Values: []answer.Principal{
		{Place: regexp.MustCompile(`^(/records/[0-9]+)?/fields/[^/]+/[0-9]+$`), Key: "value", Texts: "quotes"},
		{Place: regexp.MustCompile(`^(/records/[0-9]+)?/not_found/[0-9]+$`), Key: "field"},
	},
	Empty: []answer.Filler{
		{Place: regexp.MustCompile(`^(/records/[0-9]+)?(/fields/[^/]+(/[0-9]+/quotes)?|/not_found)$`), Value: []any{}},
		{Place: regexp.MustCompile(`^/no_records$|/not_found/[0-9]+/reason$`), Value: ""},
		{Place: regexp.MustCompile(`/fields/[^/]+/[0-9]+/confidence$`), Value: json.Number("0")},
	},
	Remarks: regexp.MustCompile(`^(/records/[0-9]+)?/not_found$`),
	Shares:  regexp.MustCompile(`^(/records/[0-9]+)?/fields/[^/]+/[0-9]+/confidence$`),
}

// objectSchema is the schema of an object that has all of its fields and no others.
func objectSchema(fields dict) dict {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.key
	}
	return dict{{"type", "object"}, {"properties", fields}, {"required", names}, {"additionalProperties", false}}
}

func listSchema(of any, description string) dict {
	return dict{{"type", "array"}, {"description", description}, {"items", of}}
}

func textSchema(description string) dict {
	return dict{{"type", "string"}, {"description", description}}
}

// answerSchema is the schema of an answer.
func (f *Form) answerSchema(raw []any) ([]byte, error) {
	return f.recordsSchema(raw, textSchema("a passage of the document, letter by letter"))
}

// recordsSchema returns the schema of an answer whose quotes look as quote says.
func (f *Form) recordsSchema(raw []any, quote dict) ([]byte, error) {
	record := objectSchema(f.recordSchema(raw, quote))
	if f.schema.Kind == schema.KindRecords {
		return json.Marshal(objectSchema(dict{
			{"records", listSchema(record, "all records, in the order of the document")},
			{"no_records", textSchema("why there are none; empty if there are")},
		}))
	}
	return json.Marshal(record)
}

// recordSchema is what an answer says of a record.
func (f *Form) recordSchema(raw []any, quote dict) dict {
	var fields dict
	var keys []string
	for i, field := range f.Fields {
		found := objectSchema(dict{
			{"value", raw[i]},
			{"quotes", listSchema(quote, "where it says so: exact passages, each as short as it can be to show the value")},
			{"confidence", dict{{"type", "number"}, {"description", "how sure you are, from 0.0 to 1.0"}}},
		})
		fields = append(fields, pair{field.Key, listSchema(found, describeField(field))})
		keys = append(keys, field.Key)
	}
	return dict{
		{"fields", objectSchema(fields)},
		{"not_found", listSchema(objectSchema(dict{
			{"field", dict{{"type", "string"}, {"enum", keys}}},
			{"reason", textSchema("why the document does not tell it")},
		}), "every field of which nothing was found")},
	}
}

// describeField says what belongs into a field.
func describeField(f Field) string {
	p := f.Property
	var words []string
	if f.Key != f.Path {
		words = append(words, f.Path)
	}
	for _, w := range []string{p.Title, p.Description} {
		if w != "" && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	if p.Type == schema.Array {
		words = append(words, "Each element on its own. Empty if there are none.")
	} else {
		words = append(words, "At most one value. Empty if it is not in the document.")
	}
	return strings.Join(words, ". ")
}

// The parts of an answer.
type (
	// A Record is what an answer says of one record: findings by the key of their field.
	Record struct {
		Fields   map[string][]Finding `json:"fields"`
		NotFound []Absence            `json:"not_found"`
	}

	// A Finding is one value of a field, with the passages that show it, and how sure the
	// model is of it, from 0 to 1.
	Finding struct {
		Value      any      `json:"value"`
		Quotes     []string `json:"quotes"`
		Confidence float64  `json:"confidence"`
	}

	// An Absence is a field, by its key, of which nothing was found.
	Absence struct{ Field, Reason string }
)

// ReadAnswer returns the records of an answer that fits the form, and why there are
// none.
func (f *Form) ReadAnswer(raw []byte) (records []Record, none string, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if f.schema.Kind == schema.KindRecords {
		var a struct {
			Records []Record `json:"records"`
			None    string   `json:"no_records"`
		}
		err = d.Decode(&a)
		return a.Records, a.None, err
	}
	var a Record
	err = d.Decode(&a)
	return []Record{a}, "", err
}

// Many reports whether an answer is a list of records, rather than one.
func (f *Form) Many() bool { return f.schema.Kind == schema.KindRecords }

// ExplainError adds to the error about a schema that cannot be expressed the place of
// the keyword in the user's file.
func (f *Form) ExplainError(err error) error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Kind != llm.BadSchema {
		return err
	}
	words := strings.Fields(e.Message)
	for i, w := range words {
		if where, ok := strings.CutSuffix(w, ":"); ok && strings.HasPrefix(where, "#") {
			words[i] = f.placeOf(where) + ":"
		}
	}
	return fmt.Errorf("schema: %s", strings.Join(words, " "))
}

// placeOf translates the place of a keyword in the form to its place in the user's
// schema.
func (f *Form) placeOf(where string) string {
	record, top := "#/properties/fields/properties/", "#/properties/"
	if f.schema.Kind == schema.KindRecords {
		record, top = "#/properties/records/items/properties/fields/properties/", "#/items/properties/"
	}
	rest, ok := strings.CutPrefix(where, record)
	if !ok {
		return where
	}
	key, rest, _ := strings.Cut(rest, "/items/properties/value")
	field := f.byKey[key]
	if field == nil {
		return where
	}
	if field.Property.Type == schema.Array {
		rest = "/items" + rest
	}
	return top + strings.ReplaceAll(field.Path, ".", "/properties/") + rest
}

// rawFields returns the schema of one value of each field, as it stands in the
// file, in the order of Fields.
func rawFields(s *schema.Schema) ([]any, error) {
	d := json.NewDecoder(bytes.NewReader(s.Plain()))
	d.UseNumber()
	v, err := readOrdered(d)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	root, _ := v.(dict)
	r := &rawReader{root: root, resolved: make(map[string]dict)}
	record := r.expandSchema(root)
	if s.Kind == schema.KindRecords {
		record = r.expandSchema(record.getDict("items"))
	}
	r.readProperties(record, s.Properties)
	return r.out, nil
}

// A rawReader walks a schema file together with the parsed schema.
type rawReader struct {
	root     dict
	resolved map[string]dict // what references refer to, with their own references resolved
	out      []any
}

func (r *rawReader) readProperties(in dict, all []schema.Property) {
	named := in.getDict("properties")
	for i := range all {
		p := &all[i]
		sub := r.expandSchema(named.getDict(p.Name))
		switch p.Type {
		case schema.Object:
			r.readProperties(sub, p.Properties)
		case schema.Array:
			if _, tuple := sub.get("prefixItems"); tuple {
				r.out = append(r.out, r.valueSchema(sub, p)) // which no vendor can express
				continue
			}
			r.out = append(r.out, r.valueSchema(sub.getDict("items"), p.Items))
		default:
			r.out = append(r.out, r.valueSchema(sub, p))
		}
	}
}

// valueSchema is the schema of one value: with its type, and without what may be null, as
// a value that is not there is not listed.
func (r *rawReader) valueSchema(in dict, p *schema.Property) dict {
	var out dict
	for _, k := range r.expandSchema(in) {
		switch k.key {
		case "title", "description", "default", "examples", "$defs", "definitions":
		default:
			out = append(out, k)
		}
	}
	out = out.withKey("type", string(p.Type))
	if values, ok := out.getList("enum"); ok {
		out = out.withKey("enum", slices.DeleteFunc(slices.Clone(values), func(v any) bool { return v == nil }))
	}
	switch p.Type {
	case schema.Object:
		out = r.narrowProperties(out, p)
	case schema.Array:
		if p.Items != nil {
			out = out.withKey("items", r.valueSchema(out.getDict("items"), p.Items))
		}
	}
	return out
}

// narrowProperties makes each property of an object a single value. A property that may
// be absent may be null.
func (r *rawReader) narrowProperties(out dict, p *schema.Property) dict {
	named := out.getDict("properties")
	var fields dict
	for i := range p.Properties {
		one := &p.Properties[i]
		v := r.valueSchema(named.getDict(one.Name), one)
		if one.Description != "" {
			v = v.withKey("description", one.Description)
		}
		fields = append(fields, pair{one.Name, v})
	}
	out = out.withKey("properties", fields)
	if names, ok := out.getList("required"); ok {
		out = out.withKey("required", slices.DeleteFunc(slices.Clone(names), func(name any) bool {
			i := slices.IndexFunc(p.Properties, func(one schema.Property) bool { return one.Name == name })
			return i < 0 || p.Properties[i].Nullable
		}))
	}
	return out
}

// maxRefs bounds how far references are followed. A schema that was read has none that lead
// in a circle, and fewer in a row.
const maxRefs = 128

// expandSchema returns a schema with its references resolved; its own keywords come
// first. Of two alternatives of which one is null, it keeps the other.
func (r *rawReader) expandSchema(in dict) dict { return r.followRefs(in, 0) }

func (r *rawReader) followRefs(in dict, depth int) dict {
	out := slices.Clone(in)
	if depth > maxRefs {
		return out
	}
	if ref, ok := in.get("$ref"); ok {
		text, _ := ref.(string)
		to, known := r.resolved[text] // else a few definitions in a row could be come to a million times
		if !known {
			to = r.followRefs(r.resolveRef(text), depth+1)
			r.resolved[text] = to
		}
		out = out.withoutKey("$ref").addMissing(to)
	}
	if all, ok := in.getList("allOf"); ok {
		out = r.joinAllOf(out, all, depth)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if one, ok := nonNullOption(in, key); ok {
			out = out.withoutKey(key).addMissing(r.followRefs(one, depth+1))
		}
	}
	return out
}

// joinAllOf writes the parts of allOf out as one, if they do not speak of the same
// things. Properties are added up.
func (r *rawReader) joinAllOf(out dict, all []any, depth int) dict {
	one := out.withoutKey("allOf")
	for _, part := range all {
		sub, _ := part.(dict)
		for _, k := range r.followRefs(sub, depth+1) {
			had, twice := one.get(k.key)
			a, isMap := had.(dict)
			b, areMaps := k.value.(dict)
			switch {
			case !twice:
				one = append(one, k)
			case k.key == "properties" && isMap && areMaps:
				one = one.withKey(k.key, a.addMissing(b))
			case k.key == "required" || reflect.DeepEqual(had, k.value):
			default:
				return out
			}
		}
	}
	return one
}

// nonNullOption returns the alternative that is not null, if there is one.
func nonNullOption(in dict, key string) (dict, bool) {
	all, _ := in.getList(key)
	var found []dict
	for _, a := range all {
		sub, ok := a.(dict)
		if t, _ := sub.get("type"); ok && t != "null" {
			found = append(found, sub)
		}
	}
	if len(found) != 1 {
		return nil, false
	}
	return found[0], true
}

// resolveRef returns the value at a pointer into the file.
func (r *rawReader) resolveRef(ref string) dict {
	at := r.root
	for _, step := range strings.Split(strings.TrimPrefix(ref, "#"), "/")[1:] {
		at = at.getDict(strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
	}
	return at
}
