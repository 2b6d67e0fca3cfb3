package schemafile

import (
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/internal/outcome/habits"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/internal/text/rules"
)

// A trial collects what the rules find in documents. When all were read, it judges the
// values as a run does: dates and numbers are read as the documents show, and the schema
// may refuse a value.
type trial struct {
	schema    *schema.Schema
	fields    []string
	habits    habits.Habits
	documents []tried
	records   []triedRecord // of all documents
}

// A takenTable is a table that records were taken from.
type takenTable struct {
	Line    int      `json:"line"` // of the text, from 1
	Rows    int      `json:"records"`
	Columns []string `json:"columns"` // "field: name of the column"
}

// A triedRecord is a record before it is judged.
type triedRecord struct {
	found       found
	accumulator merge.Accumulator
	citations   map[merge.Citation]output.Citation
	keys        [][]merge.Citation // by field and value of found
}

func newTrial(s *schema.Schema) *trial {
	t := &trial{schema: s}
	for _, f := range s.Fields() {
		t.fields = append(t.fields, f.Path)
	}
	return t
}

// addDocument adds what was found in a document.
func (t *trial) addDocument(text text, out *rules.Output) {
	one := tried{Document: text.name, Skipped: text.skip, Reason: out.Reason}
	if text.skip == "" {
		one.LeftOut = rules.Summary(text.content, out.LeftOut)
		for _, taken := range out.Tables {
			line := 1 + strings.Count(text.content[:taken.Start], "\n")
			one.Tables = append(one.Tables, takenTable{Line: line, Rows: taken.Rows, Columns: taken.Columns})
		}

		t.habits.AddText(text.name, format.CountOrders(text.content), format.CountNumbers(text.content))
		hash := output.HashDocument(text.name, []byte(text.content))
		for i := range out.Records {
			record := t.newRecord(text.name, hash, &out.Records[i])
			t.records = append(t.records, record)
			one.Records = append(one.Records, record.found)
		}
	}

	t.documents = append(t.documents, one)
}

// newRecord returns a record with the fields of the schema in their order.
func (t *trial) newRecord(document string, hash refs.DocumentHash, from *rules.Record) triedRecord {
	var out output.Output
	record := merge.Record{Document: document}
	r := triedRecord{}

	for _, field := range t.fields {
		one, keys := foundField{Field: field}, []merge.Citation(nil)

		for _, f := range from.Found {
			if f.Field != field {
				continue
			}
			one.Values = append(one.Values, foundValue{f.Value, f.Quote, f.Start, f.End})
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

// judgeAll judges the values of all records, and returns the fields that have a value which
// the schema accepts.
func (t *trial) judgeAll() map[*foundField]bool {
	accepted := make(map[*foundField]bool)
	for i := range t.records {
		r := &t.records[i]
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
			if _, ok := result.Values[f.Field]; ok || !refused && len(f.Values) > 0 {
				accepted[f] = true
			}
		}
	}

	return accepted
}

// refusalText says which constraint a value breaks, or that it is a guess.
func refusalText(r *merge.Refusal) string {
	text := mapreduce.FaultText(r.Constraint, r.Message)
	if len(r.Readings) > 0 {
		var readings []string
		for _, v := range r.Readings {
			readings = append(readings, valueText(v))
		}
		text += "; it may mean " + strings.Join(readings, " or ")
	}
	return text
}
