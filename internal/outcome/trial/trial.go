// Package trial shows what a schema finds in documents by rules: of each field its values with
// their quotes, or why there are none, and whether the schema accepts them. Values are judged
// when all documents were read, as a job does: how a date or a number is to be read depends on
// all of them.
//
// It is pure: it stores nothing and reads no file. Of the project it imports api/schema,
// api/mapreduce for its words, and packages of internal/outcome and internal/text.
package trial

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/internal/outcome/eval"
	"github.com/coditect/mapreduce/internal/outcome/habits"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/internal/text/rules"
	"github.com/coditect/mapreduce/internal/text/rules/find"
)

// A Document is what is tried on. Skip says why it has no text.
type Document struct {
	Name, Text, Skip string
}

// A Report is what was found in all documents.
type Report struct {
	Documents []Tried      `json:"documents,omitempty"`
	Fields    []FieldCount `json:"fields"`

	// Results are the records as a job would have them of one document each, without those of
	// several documents merged.
	Results []eval.Result `json:"-"`
}

// A Tried is what was found in a document.
type Tried struct {
	Document string       `json:"document"`
	Skipped  string       `json:"skipped,omitempty"`
	Records  []Found      `json:"records,omitempty"`
	Reason   string       `json:"reason,omitempty"`   // why there are no records
	Tables   []TakenTable `json:"tables,omitempty"`   // whose rows are records or elements of lists
	LeftOut  []string     `json:"left_out,omitempty"` // rows of these that are none, and why
}

// A TakenTable is a table that records were taken from.
type TakenTable struct {
	Line    int      `json:"line"` // of the text, from 1
	Rows    int      `json:"records"`
	Columns []string `json:"columns"` // "field: name of the column"
}

// A Found is the fields of a record, in the order of the schema.
type Found []FoundField

// A FoundField is one field of a record: its values, or why there are none.
type FoundField struct {
	Field   string       `json:"field"`
	Values  []FoundValue `json:"values,omitempty"`
	Refused string       `json:"refused,omitempty"` // the constraint that a value breaks, and how
	Reason  string       `json:"reason,omitempty"`

	// Accepted says that a run would take a value of the field.
	Accepted bool `json:"-"`
}

// A FoundValue is a value and the words that it was read from, at bytes of the text.
type FoundValue struct {
	Value any    `json:"value"`
	Quote string `json:"quote"`
	Start int    `json:"start"`
	End   int    `json:"end"`

	Basis  find.Basis `json:"-"` // what it was found by
	Rivals int        `json:"-"` // other values that the same rule found
}

// A FieldCount says in how many records a field was found.
type FieldCount struct {
	Field   string         `json:"field"`
	Found   int            `json:"found"`
	Records int            `json:"records"`
	Reasons map[string]int `json:"reasons,omitempty"` // why it was not
}

// A Trial collects what the rules find in documents. It is for one goroutine.
type Trial struct {
	schema    *schema.Schema
	program   *rules.Program
	fields    []string
	habits    habits.Habits
	documents []Tried
	records   []triedRecord // of all documents
}

// A triedRecord is a record before it is judged.
type triedRecord struct {
	document    string
	found       Found
	accumulator merge.Accumulator
	citations   map[merge.Citation]output.Citation
	keys        [][]merge.Citation // by field and value of found
}

// New returns a trial of a schema without documents. It fails for a schema whose hints are too
// large for the rules.
func New(s *schema.Schema) (*Trial, error) {
	program, err := rules.Compile(s)
	if err != nil {
		return nil, err
	}

	t := &Trial{schema: s, program: program}
	for _, f := range s.Fields() {
		t.fields = append(t.fields, f.Path)
	}
	return t, nil
}

// Add runs the rules on a document. What they cannot do is said of the document; the error is
// that of stop, which is asked every few milliseconds.
func (t *Trial) Add(d Document, stop func() error) error {
	var out rules.Output
	if d.Skip == "" {
		var err error
		out, err = t.program.Extract(rules.Document(d.Text), stop)
		if stopped := stop(); stopped != nil {
			return stopped
		}
		if err != nil {
			d.Skip = err.Error()
		}
	}

	t.addDocument(d, &out)
	return nil
}

// addDocument adds what was found in a document.
func (t *Trial) addDocument(d Document, out *rules.Output) {
	one := Tried{Document: d.Name, Skipped: d.Skip, Reason: out.Reason}
	if d.Skip == "" {
		one.LeftOut = rules.Summary(d.Text, out.LeftOut)
		for _, taken := range out.Tables {
			line := 1 + strings.Count(d.Text[:taken.Start], "\n")
			one.Tables = append(one.Tables, TakenTable{Line: line, Rows: taken.Rows, Columns: taken.Columns})
		}

		t.habits.AddText(d.Name, calendar.CountOrders(d.Text), format.CountNumbers(d.Text))
		hash := output.HashDocument(d.Name, []byte(d.Text))
		for i := range out.Records {
			record := t.newRecord(d.Name, hash, &out.Records[i])
			t.records = append(t.records, record)
			one.Records = append(one.Records, record.found)
		}
	}

	t.documents = append(t.documents, one)
}

// newRecord returns a record with the fields of the schema in their order.
func (t *Trial) newRecord(document string, hash refs.DocumentHash, from *rules.Record) triedRecord {
	var out output.Output
	record := merge.Record{Document: document}
	r := triedRecord{document: document}

	for _, field := range t.fields {
		one, keys := FoundField{Field: field}, []merge.Citation(nil)

		for _, f := range from.Found {
			if f.Field != field {
				continue
			}
			one.Values = append(one.Values, FoundValue{Value: f.Value, Quote: f.Quote, Start: f.Start, End: f.End, Basis: f.Basis, Rivals: f.Rivals})
			// How dates and numbers are to be read follows from all documents.
			t.habits.AddQuote(t.schema, document, f.Field, f.Quote)
			key := out.Cite(output.Citation{ID: refs.New(hash, f.Start, f.End, f.Quote), Document: document, Quote: f.Quote})
			keys = append(keys, key)
			record.Values = append(record.Values, merge.Value{Field: field, Value: f.Value, Confidence: f.Confidence, Citations: []merge.Citation{key}})
		}

		for _, m := range from.Missing {
			if m.Field == field {
				one.Reason = m.Reason
				record.Missing = append(record.Missing, merge.Missing(m))
			}
		}

		r.found, r.keys = append(r.found, one), append(r.keys, keys)
	}

	r.accumulator, r.citations = merge.Accumulate(t.schema, record), out.Citations
	return r
}

// Report judges the values of all records, and returns what was found. It is called once, behind
// all documents. The error is that of stop, which is asked before each record.
func (t *Trial) Report(stop func() error) (*Report, error) {
	report := &Report{Documents: t.documents}
	for _, field := range t.fields {
		report.Fields = append(report.Fields, FieldCount{Field: field, Reasons: map[string]int{}})
	}

	for i := range t.records {
		if err := stop(); err != nil {
			return nil, err
		}
		values := t.judge(&t.records[i])
		report.Results = append(report.Results, eval.Result{Documents: []string{t.records[i].document}, Values: t.schema.Nest(values)})
	}
	for _, d := range report.Documents {
		for _, record := range d.Records {
			report.count(record)
		}
	}
	return report, nil
}

// judge judges the values of a record, marks the fields that have one which the schema accepts,
// and returns the values that a job would have, by field.
func (t *Trial) judge(r *triedRecord) map[string]any {
	settled := t.habits.Settle(t.schema, r.accumulator, r.citations)
	values := make(map[string]any) // as they were settled, by field and citation
	for _, f := range settled.Fields {
		for _, c := range f.Candidates {
			for _, m := range c.Mentions {
				for _, key := range m.Citations {
					values[f.Path+"\x00"+string(key)] = c.Value
				}
			}
		}
	}

	result := merge.Resolve(t.schema, settled)
	for j := range r.found {
		f := &r.found[j]
		for k, key := range r.keys[j] {
			if v, ok := values[f.Field+"\x00"+string(key)]; ok && len(f.Values) > 0 {
				f.Values[k].Value = v
			}
		}

		refusal, refused := result.Refused[f.Field]
		if refused {
			f.Refused = refusalText(&refusal)
		}
		_, resolved := result.Values[f.Field]
		f.Accepted = resolved || !refused && len(f.Values) > 0
	}
	return result.Values
}

// count counts what was found in a record, and why something was not.
func (r *Report) count(record Found) {
	for i := range record {
		f, count := &record[i], &r.Fields[i]
		count.Records++
		switch {
		case f.Accepted:
			count.Found++
		case f.Refused != "":
			count.Reasons[f.Refused]++
		case f.Reason != "":
			count.Reasons[f.Reason]++
		}
	}
}

// refusalText says which constraint a value breaks, or that it is a guess.
func refusalText(r *merge.Refusal) string {
	text := mapreduce.FaultText(r.Constraint, r.Message)
	if len(r.Readings) > 0 {
		var readings []string
		for _, v := range r.Readings {
			readings = append(readings, ValueText(v))
		}
		text += "; it may mean " + strings.Join(readings, " or ")
	}
	return text
}

// ValueText returns a value as JSON, without the quotation marks of a text.
func ValueText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}
