// Package records writes the records of a result for other programs: as CSV for
// spreadsheets, as JSON or lines of JSON, and as Parquet. docs/results.md has the rules
// by which nested fields become columns.
//
// It holds one record at a time, and knows neither files nor services.
package records

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
)

// The formats of records.
const (
	CSV     = "csv"
	JSON    = "json"
	JSONL   = "jsonl"
	Parquet = "parquet"
)

// Formats returns the names of all formats.
func Formats() []string { return []string{CSV, JSONL, JSON, Parquet} }

// A Config says what to write of each record.
type Config struct {
	// Schema is that of the job. A nil schema stands for records of any shape, which
	// become one column "value" of JSON.
	Schema *schema.Schema
	// Citations adds where each value stands: see docs/results.md.
	Citations bool
	// Seen says that models were shown pages: a table has a column of what they saw there and
	// nobody found.
	Seen bool
}

// A Writer writes records in one format. Its Close must be called once, and writes the
// end; it does not close what the writer writes to.
type Writer interface {
	// WriteRecord writes a record. Several records may share citations.
	WriteRecord(*Record) error
	Close() error
}

// NewWriter returns a writer of a format. It writes to out through no buffer of its own.
func NewWriter(format string, out io.Writer, c Config) (Writer, error) {
	switch format {
	case CSV:
		return newCSV(out, c)
	case JSONL:
		return &lineWriter{out: out, config: c}, nil
	case JSON:
		return &listWriter{lineWriter: lineWriter{out: out, config: c}}, nil
	case Parquet:
		return newParquet(out, c)
	}
	return nil, fmt.Errorf("records: no format is named %q; the formats are %s", format, strings.Join(Formats(), ", "))
}

// A Record is an entry of aggregated_data with its citations.
type Record struct {
	JSON      json.RawMessage
	Citations map[string]*mapreduce.Citation // by reference
}

// A Collector makes records of the parts of a result, in which the citations of a record
// come behind it, and passes them on to all its writers.
type Collector struct {
	writers []Writer
	pending *Record
}

// NewCollector returns a collector for writers.
func NewCollector(writers ...Writer) *Collector { return &Collector{writers: writers} }

// AddPart adds a part of a result.
func (c *Collector) AddPart(p *mapreduce.ResultPart) error {
	if p.Citation != nil {
		if c.pending != nil {
			c.pending.Citations[p.Citation.Ref] = p.Citation
		}
		return nil
	}

	if err := c.flush(); err != nil {
		return err
	}

	if p.Record != nil {
		c.pending = &Record{JSON: p.Record, Citations: make(map[string]*mapreduce.Citation)}
	}
	return nil
}

// flush passes on the record that has all its citations.
func (c *Collector) flush() error {
	rec := c.pending
	if c.pending = nil; rec == nil {
		return nil
	}

	for _, w := range c.writers {
		if err := w.WriteRecord(rec); err != nil {
			return err
		}
	}
	return nil
}

// Close passes on the last record, and closes all writers.
func (c *Collector) Close() error {
	err := c.flush()
	for _, w := range c.writers {
		err = errors.Join(err, w.Close())
	}
	return err
}

// A lineWriter writes each record on a line, as it stands in aggregated_data.
type lineWriter struct {
	out    io.Writer
	config Config
}

// WriteRecord implements Writer.
func (w *lineWriter) WriteRecord(r *Record) error {
	line, err := w.lineOf(r)
	if err == nil {
		_, err = w.out.Write(append(line, '\n'))
	}
	return err
}

// lineOf returns a record on one line, without the end of the line.
func (w *lineWriter) lineOf(r *Record) ([]byte, error) {
	var b bytes.Buffer
	if !w.config.Citations {
		err := json.Compact(&b, r.JSON)
		return b.Bytes(), err
	}

	data, err := withCitations(r)
	if err != nil {
		return nil, err
	}
	err = json.Compact(&b, data)
	return b.Bytes(), err
}

// Close implements Writer.
func (w *lineWriter) Close() error { return nil }

// A listWriter writes one list of records, each on its line.
type listWriter struct {
	lineWriter
	n int
}

// WriteRecord implements Writer.
func (w *listWriter) WriteRecord(r *Record) error {
	line, err := w.lineOf(r)
	if err != nil {
		return err
	}
	before := ",\n"
	if w.n++; w.n == 1 {
		before = "[\n"
	}
	_, err = w.out.Write(append([]byte(before), line...))
	return err
}

// Close implements Writer.
func (w *listWriter) Close() error {
	end := "\n]\n"
	if w.n == 0 {
		end = "[]\n"
	}
	_, err := io.WriteString(w.out, end)
	return err
}

// A quote is a citation as records in JSON show it.
type quote struct {
	Ref       string               `json:"ref"`
	Document  mapreduce.DocumentID `json:"document_id"`
	Start     int64                `json:"start"`
	End       int64                `json:"end"`
	ByteStart int64                `json:"byte_start"`
	ByteEnd   int64                `json:"byte_end"`
	Quote     string               `json:"quote"`
	Grade     string               `json:"grade"`
	Unit      mapreduce.UnitID     `json:"unit_id"`
}

// withCitations returns the JSON of a record with its citations in place of their
// references, and otherwise as it is, in its order.
func withCitations(r *Record) ([]byte, error) {
	var head struct {
		Citations map[string][]string     `json:"_citations"`
		Derived   map[string]derivedValue `json:"_derived"`
	}

	// A record of another kind has no fields, and so no citations of them.
	if !isObject(r.JSON) {
		return r.JSON, nil
	}
	if err := json.Unmarshal(r.JSON, &head); err != nil {
		return nil, err
	}

	full := make(map[string][]quote, len(head.Citations))
	for field, refs := range head.Citations {
		full[field] = r.quotes(refs)
	}

	out, err := replaceMember(r.JSON, "_citations", full)
	if err != nil || len(head.Derived) == 0 {
		return out, err
	}

	derived := make(map[string]quotedDerived, len(head.Derived))
	for field, d := range head.Derived {
		derived[field] = quotedDerived{d.Formula, d.Computed, r.quotes(d.Citations)}
	}

	return replaceMember(out, "_derived", derived)
}

// A derivedValue is an entry of _derived, and a quotedDerived one with its citations in place of
// their references.
type (
	derivedValue struct {
		Formula   *string  `json:"formula"`
		Computed  *string  `json:"computed"`
		Citations []string `json:"citations"`
	}
	quotedDerived struct {
		Formula   *string `json:"formula"`
		Computed  *string `json:"computed"`
		Citations []quote `json:"citations"`
	}
)

// quotes returns the citations of references.
func (r *Record) quotes(refs []string) []quote {
	all := []quote{}
	for _, ref := range refs {
		if c := r.Citations[ref]; c != nil {
			all = append(all, quote{c.Ref, c.Document, c.Start, c.End, c.ByteStart, c.ByteEnd, c.Quote, c.Grade, c.Unit})
		}
	}
	return all
}

// replaceMember returns an object with another value for one of its members.
func replaceMember(object []byte, name string, v any) ([]byte, error) {
	members, err := membersOf(object)
	if err != nil {
		return nil, err
	}
	value, err := encode(v)
	if err != nil {
		return nil, err
	}

	// The members keep their order, and the others their bytes.
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			b.WriteByte(',')
		}

		key, err := encode(m.name)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')

		if m.name == name {
			m.value = value
		}
		b.Write(m.value)
	}

	b.WriteByte('}')
	return b.Bytes(), nil
}

// A member is a member of an object.
type member struct {
	name  string
	value json.RawMessage
}

// membersOf returns the members of an object, in its order.
func membersOf(object []byte) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	// The first token is the opening brace.
	if _, err := d.Token(); err != nil {
		return nil, err
	}

	var members []member
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var m member
		m.name, _ = name.(string)
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		members = append(members, m)
	}

	return members, nil
}

// encode returns v as JSON, without escapes for < > &.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func isObject(data []byte) bool {
	data = bytes.TrimSpace(data)
	return len(data) > 0 && data[0] == '{'
}

// A column is a field that is not nested any more.
type column struct {
	name     string   // its path
	path     []string // the names that lead to it in a record
	property *schema.Property
	others   map[string]bool // of a map of all other names: those that have columns of their own
}

// columnsOf returns the fields of a schema, in the order of the file.
func columnsOf(s *schema.Schema) []column {
	if s == nil {
		return nil
	}
	all := make([]column, 0, len(s.Fields()))
	for _, f := range s.Fields() {
		names, others := s.NamesOf(f.Path)
		all = append(all, column{name: f.Path, path: names, property: f.Property, others: others})
	}
	return all
}

// isList reports whether a column holds a list of values that are not lists or objects.
func (c column) isList() bool {
	return c.property.Type == schema.Array && c.property.Items != nil && c.property.Items.Type != schema.Object && c.property.Items.Type != schema.Array
}

// A flat is a record as columns see it.
type flat struct {
	values     map[string]any // by names of fields; numbers are json.Number
	sources    []string
	citations  map[string][]string
	derived    map[string]derivedValue
	confidence map[string]float64
	seen       map[string]json.RawMessage // by names of fields
	record     *Record
}

// flatten decodes a record. Its values are nil if it is no object.
func flatten(r *Record) (*flat, error) {
	f := &flat{record: r}
	if !isObject(r.JSON) {
		return f, nil
	}

	var about struct {
		Sources    []string                `json:"_sources"`
		Citations  map[string][]string     `json:"_citations"`
		Derived    map[string]derivedValue `json:"_derived"`
		Confidence map[string]float64      `json:"_confidence"`

		Seen       map[string]json.RawMessage `json:"_seen"`
		Unverified map[string]json.RawMessage `json:"_unverified"`
	}
	if err := json.Unmarshal(r.JSON, &about); err != nil {
		return nil, err
	}
	f.sources, f.citations, f.derived, f.confidence = about.Sources, about.Citations, about.Derived, about.Confidence
	f.seen = seenValues(about.Seen, about.Unverified)

	d := json.NewDecoder(bytes.NewReader(r.JSON))
	d.UseNumber()
	return f, d.Decode(&f.values)
}

// seenValues returns the values that models saw, by field, without where they stand.
func seenValues(seen, unverified map[string]json.RawMessage) map[string]json.RawMessage {
	values := make(map[string]json.RawMessage, len(seen))
	for field := range seen {
		var refused struct{ Value json.RawMessage }
		if json.Unmarshal(unverified[field], &refused) == nil && refused.Value != nil {
			values[field] = refused.Value
		}
	}
	return values
}

// seenJSON returns the values that models saw, by field, as JSON; nil if there are none.
func (f *flat) seenJSON() ([]byte, error) {
	if len(f.seen) == 0 {
		return nil, nil
	}
	return encode(f.seen)
}

// valueOf returns the value of a column: nil, a string, a bool, a json.Number, a list or
// an object.
func (f *flat) valueOf(c column) any {
	var v any = f.values
	for _, name := range c.path {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[name]
	}

	// Names that have columns of their own do not show again in the map of the others.
	if object, ok := v.(map[string]any); ok && c.others != nil {
		rest := make(map[string]any, len(object))
		for name, item := range object {
			if !c.others[name] && !(len(c.path) == 0 && schema.IsAbout(name)) {
				rest[name] = item
			}
		}
		if len(rest) == 0 {
			return nil
		}
		return rest
	}

	return v
}

// citationOf returns the first citation of a column; nil if it has none. Citations of
// elements of a list count as those of the list.
func (f *flat) citationOf(c column) *mapreduce.Citation {
	if first := f.first(f.citations[c.name]); first != nil {
		return first
	}

	// Of several members of the first element, the first by name: each run writes the same.
	for _, path := range slices.Sorted(maps.Keys(f.citations)) {
		if strings.HasPrefix(path, c.name+"[0]") {
			return f.first(f.citations[path])
		}
	}
	return nil
}

// derivation returns the formula of a column whose value was derived, and the quotes from which
// it follows, one a line; both are empty if there is none.
func (f *flat) derivation(c column) (formula, quotes string) {
	d := f.derived[c.name]
	if d.Formula != nil {
		formula = *d.Formula
	}

	var texts []string
	for _, q := range f.record.quotes(d.Citations) {
		texts = append(texts, q.Quote)
	}
	return formula, strings.Join(texts, "\n")
}

// first returns the first citation that is known.
func (f *flat) first(refs []string) *mapreduce.Citation {
	for _, ref := range refs {
		if c := f.record.Citations[ref]; c != nil {
			return c
		}
	}
	return nil
}
