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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/answer"
)

// A Form is the JSON Schema of a model's answer for a user's schema. It is immutable.
type Form struct {
	schema *schema.Schema
	Answer *llm.Schema // of an answer about one document
	Fields []Field     // in the order of the schema
	byKey  map[string]*Field
	sees   bool // an answer says on which page a value is seen
	direct func() (*llm.Schema, error)
}

// A Field is a field as the model knows it.
type Field struct {
	schema.Field
	Key string // its name in answers
}

// plainKey is how a name must look for every vendor to take it.
var plainKey = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// New derives the form from a schema.
func New(s *schema.Schema) (*Form, error) { return newForm(s, false) }

// NewSeeing derives the form of answers of a model that is shown pages: each value says on which page
// it is seen, if it stands in a picture alone.
func NewSeeing(s *schema.Schema) (*Form, error) { return newForm(s, true) }

func newForm(s *schema.Schema, sees bool) (*Form, error) {
	f := &Form{schema: s, byKey: make(map[string]*Field), sees: sees}
	raw := valueSchemas(s)
	for i, field := range s.Fields() {
		key := field.Path
		if !plainKey.MatchString(key) {
			key = "field_" + strconv.Itoa(i+1)
		}
		f.Fields = append(f.Fields, Field{field, key})
	}

	// Pointers into Fields are taken only once it does not grow any more.
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

	// Few jobs read several documents at once, and a large schema takes a second to compile.
	f.direct = sync.OnceValues(func() (*llm.Schema, error) { return f.directForm(raw) })
	return f, nil
}

// Direct returns the schema of an answer about several documents. It is compiled when it is first asked for.
func (f *Form) Direct() (*llm.Schema, error) { return f.direct() }

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
		{Place: regexp.MustCompile(`/fields/[^/]+/[0-9]+/formula$`), Value: ""},
		{Place: regexp.MustCompile(`/fields/[^/]+/[0-9]+/page$`), Value: json.Number("0")},
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
		found := f.findingSchema(field, raw[i], quote)
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

// findingSchema is what an answer says of a value.
func (f *Form) findingSchema(field Field, value any, quote dict) dict {
	parts := dict{
		{"value", value},
		{"quotes", listSchema(quote, "where it says so: exact passages, each as short as it can be to show the value")},
		{"confidence", dict{{"type", "number"}, {"description", "how sure you are, from 0.0 to 1.0"}}},
	}

	// A derived value rests on several passages, and says how.
	if field.Property.Hints.Derived {
		parts[1] = pair{"quotes", listSchema(quote, "what it follows from: exact passages, one for each number, date or statement that it rests on")}
		parts = slices.Insert(parts, 2, pair{"formula", textSchema("how it follows from the quotes; empty if it does not follow by computing")})
	}

	if f.sees {
		parts = append(parts, pair{"page", dict{{"type", "integer"}, {"description", "the page whose picture shows it, if the text does not have it; else 0"}}})
	}
	return objectSchema(parts)
}

// describeField says what belongs into a field.
func describeField(f Field) string {
	p := f.Property

	var words []string
	switch {
	case f.Path == schema.RestName:
		words = append(words, "What else the document tells, by its name")
	case f.Key != f.Path:
		words = append(words, f.Path)
	}

	for _, w := range []string{p.Title, p.Description} {
		if w != "" && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}

	if p.Hints.Derived {
		words = append(words, "It need not stand in the document: it may follow from what does")
	}

	switch p.Type {
	case schema.Array:
		words = append(words, "Each element on its own. Empty if there are none.")
	case schema.Map:
		words = append(words, "Each entry on its own, with its key. Empty if there are none.")
	default:
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
		Formula    string   `json:"formula"` // of a derived value
		Page       int      `json:"page"`    // on which it is seen; 0 if it stands in the text
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

	// The place is the word that begins with # and ends with a colon.
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

	// The form has the elements of a list as findings, so it lacks the step to them.
	if field.Property.Type == schema.Array {
		rest = "/items" + rest
	}

	return top + strings.ReplaceAll(field.Path, ".", "/properties/") + rest
}
