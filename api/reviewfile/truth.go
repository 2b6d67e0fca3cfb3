// Package reviewfile writes files of what people have decided about values of a result: the truth that
// eval compares results with, and examples for the prompts of a pipeline. docs/results.md describes them.
//
// It is for the command line and the pages alike. It asks the service only through mapreduce.Client, and what a
// decision means the service knows: it reads results to which decisions were applied.
package reviewfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
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
func TruthOf(s *schema.Schema, read resultfile.Reader) (*Truth, error) {
	decided, err := decidedOf(s, read)
	if err != nil {
		return nil, err
	}

	fields := bestFields(decided)
	out := &Truth{}
	var lines bytes.Buffer
	for _, d := range decided {
		if len(fields) == 0 || !d.has(fields) {
			continue
		}
		if err := d.writeLine(&lines, fields); err != nil {
			return nil, err
		}
		out.Documents = append(out.Documents, d.document)
	}
	out.Lines = lines.String()
	return out, nil
}

// WriteTruth writes all that people have decided to be right in a result, as JSON lines: of each document the
// fields that they have decided about, by path, null where the document has no value. Eval with --reviewed
// compares these fields and no others. It leaves out documents of several records, as eval does not know which
// of them a line is of. If nothing is left it writes nothing and returns errs.Precondition.
func WriteTruth(out io.Writer, s *schema.Schema, read resultfile.Reader) error {
	decided, err := decidedOf(s, read)
	if err != nil {
		return err
	}
	if len(decided) == 0 {
		return errs.New(errs.Precondition, "nobody has decided what is right in a document of one record, so there is no truth to write; review some values first")
	}

	for _, d := range decided {
		if err := d.writeLine(out, slices.Sorted(maps.Keys(d.values))); err != nil {
			return err
		}
	}
	return nil
}

// A decidedRecord is what was decided about the only record of a document: its values by field, null where there
// is none.
type decidedRecord struct {
	document string
	values   map[string]any
}

func (d *decidedRecord) has(fields []string) bool {
	return !slices.ContainsFunc(fields, func(f string) bool { _, found := d.values[f]; return !found })
}

// writeLine writes a line of a truth with some fields.
func (d *decidedRecord) writeLine(out io.Writer, fields []string) error {
	line := map[string]any{"document": d.document} // by path: a record would have null for every other field
	for _, field := range fields {
		line[field] = d.values[field]
	}
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	_, err = out.Write(append(data, '\n'))
	return err
}

// decidedOf returns the records of a result that people have decided about, each the only one of its document.
func decidedOf(s *schema.Schema, read resultfile.Reader) ([]decidedRecord, error) {
	var decided []decidedRecord
	records := make(map[string]int) // by document
	err := foldRecords(s, read, func(r *record) error {
		if r.document == "" {
			return nil
		}
		records[r.document]++

		one := decidedRecord{r.document, make(map[string]any)}
		for field, verdict := range r.verdicts {
			switch verdict {
			case mapreduce.ReviewAccept, mapreduce.ReviewCorrect:
				one.values[field] = r.values[field]
			case mapreduce.ReviewAbsent:
				one.values[field] = nil
			}
		}
		if len(one.values) > 0 {
			decided = append(decided, one)
		}
		return nil
	})
	return slices.DeleteFunc(decided, func(d decidedRecord) bool { return records[d.document] != 1 }), err
}

// A record is a record of a result with all of its citations.
type record struct {
	document string // that it is of; empty if there are several
	values   map[string]any
	verdicts map[string]mapreduce.ReviewVerdict // by field
	refs     map[string][]string                // by field
	cited    map[string]*mapreduce.Citation     // by reference
}

// foldRecords calls take with each record of a result, in order.
func foldRecords(s *schema.Schema, read resultfile.Reader, take func(*record) error) error {
	var data []byte
	var cited map[string]*mapreduce.Citation
	finish := func() error {
		if data == nil {
			return nil
		}
		r, err := newRecord(s, data, cited)
		if err != nil {
			return errs.New(errs.DataLoss, "a record of the result cannot be read: %w", err)
		}
		data = nil
		return take(r)
	}

	err := read(func(part *mapreduce.ResultPart) error {
		switch {
		case part.Record != nil:
			if err := finish(); err != nil {
				return err
			}
			data, cited = bytes.Clone(part.Record), make(map[string]*mapreduce.Citation)
		case part.Citation != nil && cited != nil:
			cited[part.Citation.Ref] = part.Citation
		}
		return nil
	})
	if err != nil {
		return err
	}
	return finish()
}

func newRecord(s *schema.Schema, data []byte, cited map[string]*mapreduce.Citation) (*record, error) {
	var about struct {
		Reviewed  map[string]struct{ Verdict string } `json:"_reviewed"`
		Sources   []string                            `json:"_sources"`
		Citations map[string][]string                 `json:"_citations"`
	}
	if err := json.Unmarshal(data, &about); err != nil {
		return nil, err
	}
	var values map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&values); err != nil {
		return nil, err
	}

	r := &record{values: s.Flatten(values), verdicts: make(map[string]mapreduce.ReviewVerdict), refs: about.Citations, cited: cited}
	for field, review := range about.Reviewed {
		r.verdicts[field] = mapreduce.ReviewVerdictOf(review.Verdict)
	}
	r.document = r.onlyDocument(about.Sources)
	return r, nil
}

// onlyDocument returns the document of the record; empty if it is of several, or of none.
func (r *record) onlyDocument(sources []string) string {
	all := make(map[string]bool)
	for _, name := range sources {
		all[name] = true
	}
	for _, c := range r.cited {
		all[string(c.Document)] = true
	}

	if len(all) != 1 {
		return ""
	}
	for name := range all {
		return name
	}
	return ""
}

// bestFields are those of the record whose fields are decided of most values together.
func bestFields(decided []decidedRecord) (best []string) {
	most := 0
	seen := make(map[string]bool)
	for i := range decided {
		fields := slices.Sorted(maps.Keys(decided[i].values))
		key := fmt.Sprint(fields)
		if seen[key] {
			continue
		}
		seen[key] = true

		n := 0
		for j := range decided {
			if decided[j].has(fields) {
				n += len(fields)
			}
		}
		if n > most {
			best, most = fields, n
		}
	}
	return best
}
