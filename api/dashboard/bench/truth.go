package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
)

// A Truth is what people have decided about the values of a job, as true values to compare with.
type Truth struct {
	Lines     string   // JSON, one a document, as eval reads them
	Documents []string // that they are of, in the order of the result
}

// TruthOf returns the values of a result that people have decided about. A comparison takes a field that a
// document lacks for one that is not there, so it has the fields that most values of whole documents are
// decided of: those of a document of which less is decided are left out, and so are documents of several
// records.
func TruthOf(s *schema.Schema, read ResultReader) (*Truth, error) {
	r := &truthFold{schema: s, records: make(map[string]int)}
	if err := read(r.take); err != nil {
		return nil, err
	}
	if err := r.finish(); err != nil {
		return nil, err
	}

	fields := r.bestFields()
	out := &Truth{}
	var lines bytes.Buffer
	for _, d := range r.decided {
		if r.records[d.document] != 1 || len(fields) == 0 || !d.has(fields) {
			continue
		}
		line := map[string]any{"document": d.document} // by path: a record would have null for every other field
		for _, field := range fields {
			line[field] = d.values[field]
		}
		data, err := json.Marshal(line)
		if err != nil {
			return nil, err
		}
		lines.Write(append(data, '\n'))
		out.Documents = append(out.Documents, d.document)
	}
	out.Lines = lines.String()
	return out, nil
}

// A decidedRecord is what was decided about a record: its values by field, null where there is none.
type decidedRecord struct {
	document string
	values   map[string]any
}

func (d *decidedRecord) has(fields []string) bool {
	return !slices.ContainsFunc(fields, func(f string) bool { _, found := d.values[f]; return !found })
}

// A truthFold takes the parts of a result.
type truthFold struct {
	schema  *schema.Schema
	record  []byte
	place   string         // document of its first citation
	records map[string]int // by document
	decided []decidedRecord
}

func (r *truthFold) take(part *mapreduce.ResultPart) error {
	switch {
	case part.Record != nil:
		if err := r.finish(); err != nil {
			return err
		}
		r.record, r.place = part.Record, ""
	case part.Citation != nil && r.place == "":
		r.place = string(part.Citation.Document)
	}
	return nil
}

// finish takes the last record, whose citations have all come.
func (r *truthFold) finish() error {
	if r.record == nil {
		return nil
	}
	var about struct {
		Reviewed map[string]struct{ Verdict string } `json:"_reviewed"`
		Sources  []string                            `json:"_sources"`
	}
	var values map[string]any
	d := json.NewDecoder(bytes.NewReader(r.record))
	d.UseNumber()
	if err := json.Unmarshal(r.record, &about); err != nil {
		return fmt.Errorf("a record of the result: %w", err)
	}
	if err := d.Decode(&values); err != nil {
		return fmt.Errorf("a record of the result: %w", err)
	}
	r.record = nil

	document := r.place
	if document == "" && len(about.Sources) == 1 {
		document = about.Sources[0]
	}
	if document == "" || len(about.Sources) > 1 {
		return nil
	}
	r.records[document]++

	flat := r.schema.Flatten(values)
	one := decidedRecord{document, make(map[string]any)}
	for field, review := range about.Reviewed {
		switch mapreduce.ReviewVerdictOf(review.Verdict) {
		case mapreduce.ReviewAccept, mapreduce.ReviewCorrect:
			one.values[field] = flat[field]
		case mapreduce.ReviewAbsent:
			one.values[field] = nil
		}
	}
	if len(one.values) > 0 {
		r.decided = append(r.decided, one)
	}
	return nil
}

// bestFields are those of the record whose fields are decided of most values together.
func (r *truthFold) bestFields() (best []string) {
	most := 0
	seen := make(map[string]bool)
	for i := range r.decided {
		fields := slices.Sorted(maps.Keys(r.decided[i].values))
		if key := fmt.Sprint(fields); seen[key] {
			continue
		} else {
			seen[key] = true
		}

		n := 0
		for j := range r.decided {
			if r.decided[j].has(fields) {
				n += len(fields)
			}
		}
		if n > most {
			best, most = fields, n
		}
	}
	return best
}
