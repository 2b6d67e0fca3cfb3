package review

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/judge"
	"github.com/coditect/mapreduce/internal/outcome/merge"
)

// sections are the members of a record that say something about its values by field, in their order.
var sections = []string{"_citations", "_derived", "_confidence", "_said", "_missing", "_unverified", "_seen"}

// A view is a record that decisions are applied to.
type view struct {
	schema   *schema.Schema
	values   map[string]any // by field path
	about    map[string]map[string]json.RawMessage
	sources  json.RawMessage
	has      map[string]bool // members that the record has
	warnings []string        // nil while they are as they were
	warned   json.RawMessage
	reviewed map[string]Entry // by the decisions that are applied
	waited   map[string]Entry // by decisions that the output of a unit had already
}

// An Entry says in a record's _reviewed what was decided about a field, and what stood there before.
type Entry struct {
	Verdict string          `json:"verdict"`
	By      string          `json:"by"`
	At      string          `json:"at"`
	Model   json.RawMessage `json:"model"` // null if there was no value
	// Unverified says that the value stood under _unverified.
	Unverified bool            `json:"unverified,omitempty"`
	Citations  json.RawMessage `json:"citations,omitempty"` // of the model's value, if the record has another now
	Confidence json.RawMessage `json:"confidence,omitempty"`
	Note       string          `json:"note,omitempty"`
}

func newView(s *schema.Schema, record []byte) (*view, error) {
	members := make(map[string]json.RawMessage)
	if err := json.Unmarshal(record, &members); err != nil {
		return nil, err
	}

	v := &view{schema: s, about: make(map[string]map[string]json.RawMessage), has: make(map[string]bool), reviewed: make(map[string]Entry)}
	v.sources, v.warned = members["_sources"], members["_warnings"]
	if raw, ok := members["_reviewed"]; ok {
		if err := json.Unmarshal(raw, &v.waited); err != nil {
			return nil, fmt.Errorf("_reviewed: %w", err)
		}
	}
	for _, name := range sections {
		raw, ok := members[name]
		if v.has[name] = ok; !ok {
			continue
		}
		section := make(map[string]json.RawMessage)
		if err := json.Unmarshal(raw, &section); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		v.about[name] = section
	}

	values, err := decodeValues(s, record)
	v.values = values
	return v, err
}

// decodeValues returns the values of a record by field path, with numbers as they are written.
func decodeValues(s *schema.Schema, record []byte) (map[string]any, error) {
	var all map[string]any
	d := json.NewDecoder(bytes.NewReader(record))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		return nil, err
	}
	return s.Flatten(all), nil
}

// found returns the value of a field that the job found, as JSON, and whether it stands under
// _unverified; null if there is none.
func (v *view) found(field string) (value json.RawMessage, unverified bool) {
	if one, ok := v.values[field]; ok && one != nil {
		return encode(one), false
	}
	raw, ok := v.about["_unverified"][field]
	if !ok {
		return json.RawMessage("null"), false
	}

	// A value that the schema refuses stands in an object that says why.
	var refused struct {
		Value      json.RawMessage `json:"value"`
		Constraint string          `json:"constraint"`
	}
	if json.Unmarshal(raw, &refused) == nil && refused.Constraint != "" && refused.Value != nil {
		raw = refused.Value
	}
	if one, err := decode(raw); err == nil {
		raw = encode(one) // so that equal values are equal bytes
	}
	return raw, true
}

// forget takes away all that the record says of a field, and notes it in the field's entry.
func (v *view) forget(field string, e *Entry) {
	e.Citations, e.Confidence = v.about["_citations"][field], v.about["_confidence"][field]
	for _, name := range sections {
		delete(v.about[name], field)
	}

	for path := range v.about["_unverified"] {
		// Parts of a value stand there by their own paths.
		if strings.HasPrefix(path, field+"[") || strings.HasPrefix(path, field+".") {
			delete(v.about["_unverified"], path)
		}
	}

	delete(v.values, field)
}

// missing says why a field has no value.
func (v *view) missing(field, why string) { v.set("_missing", field, encode(why)) }

func (v *view) set(section, field string, value json.RawMessage) {
	if v.about[section] == nil {
		v.about[section] = make(map[string]json.RawMessage)
	}
	v.about[section][field] = value
	v.has[section] = true
}

// judge judges the values, and renews the warnings.
func (v *view) judge() judge.Judgement {
	j := judge.Record(v.schema, v.values)
	r := merge.Result{Missing: make(map[string]string), Lacking: j.Missing}
	for field, raw := range v.about["_missing"] {
		var why string
		if json.Unmarshal(raw, &why) == nil {
			r.Missing[field] = why
		}
	}
	v.warnings = slices.Concat([]string{}, r.Warnings())
	return j
}

// broken returns what the record breaks of the schema, as results count it.
func (v *view) broken() map[mapreduce.BrokenConstraint]int64 {
	all := make(map[mapreduce.BrokenConstraint]int64)
	for field, raw := range v.about["_unverified"] {
		var refused struct {
			Constraint string `json:"constraint"`
		}
		if json.Unmarshal(raw, &refused) == nil && refused.Constraint != "" {
			all[mapreduce.BrokenConstraint{Field: field, Constraint: refused.Constraint}]++
		}
	}

	for _, b := range judge.Record(v.schema, v.values).Missing {
		all[mapreduce.BrokenConstraint{Field: b.Field, Constraint: b.Constraint}]++
	}
	return all
}

// entries returns what the record says of decisions. What the job found is what it found at first, however
// often somebody has decided since.
func (v *view) entries() map[string]Entry {
	all := maps.Clone(v.reviewed)
	for field, before := range v.waited {
		e, again := all[field]
		if !again {
			all[field] = before
			continue
		}

		e.Model, e.Unverified = before.Model, before.Unverified
		if before.Citations != nil {
			e.Citations = before.Citations
		}
		if before.Confidence != nil {
			e.Confidence = before.Confidence
		}
		all[field] = e
	}
	return all
}

// encode writes the record, with its members in the order that all records have.
func (v *view) encode() ([]byte, error) {
	nested := v.schema.Nest(v.values)
	var b bytes.Buffer
	add := func(name string, value any) {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.Write(encode(name))
		b.WriteByte(':')
		b.Write(encode(value))
	}

	for _, name := range v.schema.Names(nested) {
		add(name, nested[name])
	}
	if v.sources != nil {
		add("_sources", v.sources)
	}
	for _, name := range sections {
		if v.has[name] && (name != "_derived" && name != "_said" && name != "_seen" || len(v.about[name]) > 0) {
			add(name, v.about[name])
		}
	}

	switch {
	case len(v.warnings) > 0:
		add("_warnings", v.warnings)
	case v.warnings == nil && v.warned != nil:
		add("_warnings", v.warned)
	}
	if all := v.entries(); len(all) > 0 {
		add("_reviewed", all)
	}
	return append(append([]byte{'{'}, b.Bytes()...), '}'), nil
}

// encode writes a value of a record as JSON, which such values always have.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("review: a value of a record cannot be encoded: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// decode reads one JSON value, with numbers as they are written.
func decode(raw []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("there is more than one value")
	}
	return v, nil
}
