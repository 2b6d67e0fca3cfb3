package form

import (
	"bytes"
	"encoding/json"
	"regexp"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/answer"
)

// shortValue matches the place of a value in a short answer: see foundValue.
var shortValue = regexp.MustCompile(`^(/records/[0-9]+)?/fields/[^/]+/[0-9]+(/|$)`)

// shortHints say what a short answer means by what it leaves out.
var shortHints = answer.Hints{
	Empty: []answer.Filler{
		{Place: regexp.MustCompile(`^(/records/[0-9]+)?/fields/[^/]+(/[0-9]+/quotes)?$`), Value: []any{}},
		{Place: regexp.MustCompile(`^/no_records$|/fields/[^/]+/[0-9]+/formula$`), Value: ""},
		{Place: regexp.MustCompile(`/fields/[^/]+/[0-9]+/confidence$`), Value: json.Number("0")},
	},
	Shares: regexp.MustCompile(`^(/records/[0-9]+)?/fields/[^/]+/[0-9]+/confidence$`),
}

// Short returns the schema of an answer that has values alone: where they stand is found by us. Derived
// values need not stand anywhere, so they have the quotes that they follow from.
func (f *Form) Short() (*llm.Schema, error) {
	var fields dict
	for i, one := range valueSchemas(f.schema) {
		field := f.Fields[i]
		if field.Property.Hints.Derived {
			one = f.findingSchema(field, one, textSchema("a passage of the document, letter by letter"))
		}
		fields = append(fields, pair{field.Key, listSchema(one, describeField(field))})
	}

	record := objectSchema(dict{{"fields", objectSchema(fields)}})
	if f.Many() {
		record = objectSchema(dict{
			{"records", listSchema(record, "all records, in the order of the document")},
			{"no_records", textSchema("why there are none; empty if there are")},
		})
	}

	doc, err := json.Marshal(record)
	if err != nil {
		return nil, err
	}
	s, err := llm.NewSchema("extraction", doc)
	if err != nil {
		return nil, err
	}
	return s.Tolerating(shortValue).Hinting(shortHints)
}

// A short is a Record of values alone, but for derived ones.
type short struct {
	Fields map[string][]json.RawMessage `json:"fields"`
}

// ReadShort returns the records of an answer by Short, and why there are none.
func (f *Form) ReadShort(raw []byte) (records []Record, none string, err error) {
	var many struct {
		Records []short `json:"records"`
		None    string  `json:"no_records"`
	}

	if f.schema.Kind == schema.KindRecords {
		err = json.Unmarshal(raw, &many)
	} else {
		many.Records = make([]short, 1)
		err = json.Unmarshal(raw, &many.Records[0])
	}
	if err != nil {
		return nil, "", err
	}

	for _, s := range many.Records {
		r := Record{Fields: make(map[string][]Finding)}
		for _, field := range f.Fields {
			for _, one := range s.Fields[field.Key] {
				found, err := readFinding(one, field.Property.Hints.Derived)
				if err != nil {
					return nil, "", err
				}
				r.Fields[field.Key] = append(r.Fields[field.Key], found)
			}
		}
		records = append(records, r)
	}
	return records, many.None, nil
}

// readFinding reads a value, or a derived one, with what it follows from.
func readFinding(raw json.RawMessage, derived bool) (found Finding, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	// What does not fit its form is shown as it is.
	if derived && d.Decode(&found) == nil {
		return found, nil
	}

	d = json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	found = Finding{}
	err = d.Decode(&found.Value)
	return found, err
}
