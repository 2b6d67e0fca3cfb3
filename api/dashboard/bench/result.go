package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
)

// A ResultReader calls a function with the parts of a job's result.
type ResultReader func(sink func(*mapreduce.ResultPart) error) error

// FromResult makes of a job's result what Try makes of rules. The documents are those of the
// sample, in its order.
func FromResult(s *schema.Schema, docs []Document, read ResultReader) (*Report, error) {
	r := &resultFold{schema: s, report: &Report{}, at: make(map[string]int, len(docs))}
	for i, d := range docs {
		r.at[d.Name] = i
		r.report.Documents = append(r.report.Documents, Tried{Document: d.Name})
	}
	for _, f := range s.Fields() {
		r.report.Fields = append(r.report.Fields, Count{Field: f.Path})
	}

	if err := read(r.take); err != nil {
		return nil, err
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return r.report, nil
}

// A resultFold takes the parts of a result.
type resultFold struct {
	schema *schema.Schema
	report *Report
	at     map[string]int // documents by name

	record []byte
	cited  map[string]*mapreduce.Citation
}

func (r *resultFold) take(part *mapreduce.ResultPart) error {
	switch {
	case part.Record != nil:
		if err := r.finish(); err != nil {
			return err
		}
		r.record, r.cited = part.Record, make(map[string]*mapreduce.Citation)
	case part.Citation != nil && r.cited != nil:
		r.cited[part.Citation.Ref] = part.Citation
	case part.Source != nil && part.Source.Document != "" && len(part.Source.Errors) > 0:
		if i, known := r.at[string(part.Source.Document)]; known {
			r.report.Documents[i].Skipped = part.Source.Errors[len(part.Source.Errors)-1]
		}
	}
	return nil
}

// marks are the members of a record that are about its fields.
type marks struct {
	Citations  map[string][]string        `json:"_citations"`
	Missing    map[string]string          `json:"_missing"`
	Unverified map[string]json.RawMessage `json:"_unverified"`
	Sources    []string                   `json:"_sources"`
}

// finish takes the last record, whose citations have all come.
func (r *resultFold) finish() error {
	if r.record == nil {
		return nil
	}
	var about marks
	if err := json.Unmarshal(r.record, &about); err != nil {
		return fmt.Errorf("a record of the result: %w", err)
	}
	var values map[string]any
	d := json.NewDecoder(bytes.NewReader(r.record))
	d.UseNumber()
	if err := d.Decode(&values); err != nil {
		return fmt.Errorf("a record of the result: %w", err)
	}
	flat := r.schema.Flatten(values)

	var record Record
	place := -1 // the document in which most of the record stands
	for i, f := range r.report.Fields {
		field := Field{Name: f.Field, Reason: about.Missing[f.Field]}
		if v, found := flat[f.Field]; found && v != nil {
			field.Accepted = true
			field.Values = r.valuesOf(text(v), about.Citations[f.Field], &place)
			r.report.Fields[i].Found++
		} else if raw := about.Unverified[f.Field]; len(raw) > 0 {
			field.Refused = string(raw)
		}
		r.report.Fields[i].Records++
		record.Fields = append(record.Fields, field)
	}

	if place < 0 {
		place = r.placeOf(about.Sources)
	}
	if place >= 0 {
		r.report.Documents[place].Records = append(r.report.Documents[place].Records, record)
	}
	r.record = nil
	return nil
}

// valuesOf is a value with each passage that it rests on in the document of the first.
func (r *resultFold) valuesOf(value string, refs []string, place *int) []Value {
	var all []Value
	for _, ref := range refs {
		c := r.cited[ref]
		if c == nil {
			continue
		}

		at, known := r.at[string(c.Document)]
		if known && *place < 0 {
			*place = at
		}
		if !known || at != *place {
			continue
		}
		all = append(all, Value{Text: value, Quote: c.Quote, Start: int(c.ByteStart), End: int(c.ByteEnd)})
	}

	if len(all) == 0 {
		all = append(all, Value{Text: value})
	}
	return all
}

func (r *resultFold) placeOf(sources []string) int {
	for _, name := range sources {
		if i, known := r.at[name]; known {
			return i
		}
	}
	if len(r.report.Documents) == 1 {
		return 0
	}
	return slices.IndexFunc(r.report.Documents, func(t Tried) bool { return len(t.Records) == 0 })
}

// text is a value for people.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}
