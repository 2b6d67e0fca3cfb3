package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A record is one of a result, as a page shows it.
type record struct {
	Number int // in the result, from 1
	Cells  []cell
	Notes  []string // warnings of the record
	Source string   // the end of the name of its document, which tells it from others; of the first of several
	Others int      // documents that it is of beside that
	values map[string]json.RawMessage
	marks  recordMarks
}

// A cell is what a record has for a field.
type cell struct {
	Field      string
	Text       string // the value, as people read it
	Missing    string // why there is none
	Unverified string // what was found and is no value
	Path       string // of the passage on which the value rests
	Confidence string // empty if there is none
	Low        bool   // it is below a half
	Number     bool
	Derived    string // how it follows from its quotes
	Verdict    string // of a review; empty if nobody has decided
	By         string // who decided
	Model      string // what the job found, if the record has another value now
}

// recordMarks are the members of a record that are about its fields.
type recordMarks struct {
	Citations  map[string][]string        `json:"_citations"`
	Confidence map[string]float64         `json:"_confidence"`
	Missing    map[string]string          `json:"_missing"`
	Unverified map[string]json.RawMessage `json:"_unverified"`
	Derived    map[string]json.RawMessage `json:"_derived"`
	Reviewed   map[string]struct {
		Verdict string          `json:"verdict"`
		By      string          `json:"by"`
		Model   json.RawMessage `json:"model"`
	} `json:"_reviewed"`
	Warnings []string `json:"_warnings"`
	Sources  []string `json:"_sources"`
}

// readRecord reads one entry of aggregated_data, and the names of its fields in their order.
func readRecord(number int, data []byte) (*record, []string, error) {
	r := &record{Number: number, values: make(map[string]json.RawMessage)}
	if err := json.Unmarshal(data, &r.marks); err != nil {
		return nil, nil, fmt.Errorf("record %d: %w", number, err)
	}
	r.Notes = r.marks.Warnings
	if n := len(r.marks.Sources); n > 0 {
		r.Source, r.Others = endOf(r.marks.Sources[0]), n-1
	}

	d := json.NewDecoder(bytes.NewReader(data))
	if _, err := d.Token(); err != nil { // {
		return nil, nil, fmt.Errorf("record %d: %w", number, err)
	}
	var fields []string
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, nil, fmt.Errorf("record %d: %w", number, err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, nil, fmt.Errorf("record %d: %w", number, err)
		}

		field, _ := name.(string)
		if _, isMark := markNames[field]; !isMark {
			fields = append(fields, field)
			r.values[field] = value
		}
	}
	return r, fields, nil
}

// maxName is how many characters of the name of a document a row shows.
const maxName = 40

// endOf returns the end of a long name.
func endOf(name string) string {
	runes := []rune(name)
	if len(runes) <= maxName {
		return name
	}
	return "…" + string(runes[len(runes)-maxName+1:])
}

// markNames are the members of a record that are no fields.
var markNames = map[string]struct{}{
	"_citations": {}, "_confidence": {}, "_missing": {}, "_unverified": {}, "_derived": {}, "_warnings": {}, "_sources": {}, "_said": {}, "_reviewed": {}, "_seen": {},
	"_record": {}, "_support": {}, "_lineage": {},
}

// text returns a value of the record as people read it; "" where there is none.
func (r *record) text(field string) string { return plainValue(r.values[field]) }

// plainValue writes a value of JSON for people: texts without quotes, the rest as it is.
func plainValue(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case raw[0] == '"':
		var text string
		if json.Unmarshal(raw, &text) == nil {
			return text
		}
	case raw[0] == '[':
		if text, plain := plainList(raw); plain {
			return text
		}
	}

	var compact bytes.Buffer
	if json.Compact(&compact, raw) == nil {
		return compact.String()
	}
	return string(raw)
}

// plainList writes a list of texts, numbers and the like for people, and reports whether it is one.
func plainList(raw json.RawMessage) (string, bool) {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return "", false
	}

	texts := make([]string, 0, len(items))
	for _, item := range items {
		if item = bytes.TrimSpace(item); item[0] == '{' || item[0] == '[' {
			return "", false
		}
		texts = append(texts, plainValue(item))
	}
	return strings.Join(texts, "; "), true
}

// has reports whether a text stands in a field of the record, or in any, in any case of letters.
func (r *record) has(text, field string) bool {
	if text == "" {
		return true
	}

	text = strings.ToLower(text)
	if field != "" {
		return strings.Contains(strings.ToLower(r.text(field)), text)
	}

	for name := range r.values {
		if strings.Contains(strings.ToLower(r.text(name)), text) {
			return true
		}
	}
	for _, source := range r.marks.Sources {
		if strings.Contains(strings.ToLower(source), text) {
			return true
		}
	}
	return false
}

// lowConfidence is the confidence below which a value is worth a look.
const lowConfidence = 0.5

// isOf reports whether the record is of a kind that somebody wants to see.
func (r *record) isOf(kind string) bool {
	switch kind {
	case "unverified":
		return len(r.marks.Unverified) > 0
	case "missing":
		return len(r.marks.Missing) > 0
	case "unsure":
		for _, c := range r.marks.Confidence {
			if c < lowConfidence {
				return true
			}
		}
		return false
	case "warned":
		return len(r.marks.Warnings) > 0
	}
	return true
}

// fill makes the cells of the record for some fields.
func (r *record) fill(fields []string, passage func(ref string) string) {
	r.Cells = make([]cell, 0, len(fields))
	for _, field := range fields {
		c := cell{Field: field, Text: r.text(field), Missing: r.marks.Missing[field]}
		if raw, found := r.marks.Unverified[field]; found {
			c.Unverified = unverifiedText(raw)
		}
		for path, raw := range r.marks.Unverified { // of parts of the field
			if strings.HasPrefix(path, field+".") || strings.HasPrefix(path, field+"[") {
				c.Unverified = strings.TrimPrefix(c.Unverified+"; "+path+": "+unverifiedText(raw), "; ")
			}
		}

		if raw, found := r.marks.Derived[field]; found {
			c.Derived = plainValue(raw)
		}
		if e, found := r.marks.Reviewed[field]; found {
			c.Verdict, c.By = e.Verdict, e.By
			if model := plainValue(e.Model); model != c.Text {
				c.Model = model
			}
		}
		if confidence, found := r.marks.Confidence[field]; found && c.Text != "" {
			c.Confidence = strconv.FormatFloat(confidence, 'f', 2, 64)
			c.Low = confidence < lowConfidence
		}

		raw := bytes.TrimSpace(r.values[field])
		c.Number = len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
		for _, ref := range r.refs(field) {
			if c.Path = passage(ref); c.Path != "" {
				break
			}
		}
		r.Cells = append(r.Cells, c)
	}
}

// refs are the citations of a field and its parts.
func (r *record) refs(field string) []string {
	if refs := r.marks.Citations[field]; len(refs) > 0 {
		return refs
	}

	var paths []string
	for path := range r.marks.Citations {
		if strings.HasPrefix(path, field+".") || strings.HasPrefix(path, field+"[") {
			paths = append(paths, path)
		}
	}
	sort.Strings(paths)
	if len(paths) == 0 {
		return nil
	}
	return r.marks.Citations[paths[0]]
}

// unverifiedText writes what was found and is no value, and why.
func unverifiedText(raw json.RawMessage) string {
	var broken struct {
		Value      json.RawMessage `json:"value"`
		Constraint string          `json:"constraint"`
		Message    string          `json:"message"`
	}
	if len(raw) > 0 && raw[0] == '{' && json.Unmarshal(raw, &broken) == nil && broken.Constraint != "" {
		return plainValue(broken.Value) + " " + mapreduce.FaultText(broken.Constraint, broken.Message)
	}
	return plainValue(raw)
}
