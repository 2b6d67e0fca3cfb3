package form

import (
	"bytes"
	"encoding/json"

	"github.com/coditect/mapreduce/worker/llm"
)

// Sourced returns the schema of an answer by an agent that read several texts: each quote
// names the text that it stands in.
func (f *Form) Sourced() (*llm.Schema, error) {
	doc, err := f.recordsSchema(valueSchemas(f.schema), objectSchema(dict{
		{"document", textSchema("the id of the text, as it was given")},
		{"quote", textSchema("a passage of it, letter by letter")},
	}))
	if err != nil {
		return nil, err
	}
	return extractionSchema(doc)
}

// A Quote is a passage of a text, and which text that is.
type Quote struct {
	Document string `json:"document"`
	Quote    string `json:"quote"`
}

// sourced is a Record whose quotes name their texts.
type sourced struct {
	Fields map[string][]struct {
		Value      any     `json:"value"`
		Quotes     []Quote `json:"quotes"`
		Confidence float64 `json:"confidence"`
		Formula    string  `json:"formula"`
	} `json:"fields"`
	NotFound []Absence `json:"not_found"`
}

// ReadSourced reads an answer by Sourced. The quotes are those of all records, in the order
// of Quotes; none says why there is no record.
func (f *Form) ReadSourced(raw []byte) (records []Record, quotes []Quote, none string, err error) {
	var many struct {
		Records []sourced `json:"records"`
		None    string    `json:"no_records"`
	}

	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()

	if f.Many() {
		err = d.Decode(&many)
	} else {
		many.Records = make([]sourced, 1)
		err = d.Decode(&many.Records[0])
	}

	for _, s := range many.Records {
		r := Record{Fields: make(map[string][]Finding), NotFound: s.NotFound}
		// Quotes are listed in the order of the form, in which places are handed out later.
		for _, field := range f.Fields {
			for _, found := range s.Fields[field.Key] {
				one := Finding{Value: found.Value, Confidence: found.Confidence, Formula: found.Formula}
				for _, q := range found.Quotes {
					one.Quotes = append(one.Quotes, q.Quote)
					quotes = append(quotes, q)
				}
				r.Fields[field.Key] = append(r.Fields[field.Key], one)
			}
		}

		records = append(records, r)
	}
	return records, quotes, many.None, err
}
