package form

import (
	"bytes"
	"encoding/json"

	"github.com/coditect/mapreduce/worker/llm"
)

// directForm is the form of an answer about several documents.
func (f *Form) directForm(raw []any) (*llm.Schema, error) {
	number := dict{{"type", "integer"}, {"description", "the number of the document that this is of"}}
	doc, err := json.Marshal(objectSchema(dict{
		{"records", listSchema(objectSchema(append(dict{{"document", number}}, f.recordSchema(raw, textSchema("a passage of the document, letter by letter"))...)), "all records, in the order of the documents")},
		{"no_records", textSchema("why there are none; empty if there are")},
	}))
	if err != nil {
		return nil, err
	}
	return extractionSchema(doc)
}

// A numbered is a record of an answer about several documents.
type numbered struct {
	Document int `json:"document"`
	Record
}

// ReadDirect returns the records of an answer by the number of their document,
// and why there are none.
func ReadDirect(raw []byte) (map[int][]Record, string, error) {
	var a struct {
		Records []numbered `json:"records"`
		None    string     `json:"no_records"`
	}

	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&a); err != nil {
		return nil, "", err
	}

	of := make(map[int][]Record)
	for _, r := range a.Records {
		of[r.Document] = append(of[r.Document], r.Record)
	}

	return of, a.None, nil
}
