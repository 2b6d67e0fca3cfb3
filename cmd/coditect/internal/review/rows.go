package review

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/dashboard/review"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/cmd/coditect/internal/records"
)

// A Row is a value of a queue as a file has it, with what was or is to be decided about it.
type Row struct {
	Record     mapreduce.RecordID   `json:"record"`
	Field      string               `json:"field"`
	Document   mapreduce.DocumentID `json:"document,omitempty"`
	Model      json.RawMessage      `json:"model,omitempty"` // that the job found
	Why        string               `json:"why,omitempty"`   // it is in the queue
	Confidence *float64             `json:"confidence,omitempty"`
	Verdict    string               `json:"verdict"`
	Value      json.RawMessage      `json:"value,omitempty"` // the right one, of a correction
	Note       string               `json:"note,omitempty"`
	By         string               `json:"by,omitempty"`
	Passage    *passage             `json:"passage,omitempty"` // on which the right value rests

	line int // of the file, from 1
}

// A passage is a part of a document's text, in bytes, half-open.
type passage struct {
	Document mapreduce.DocumentID `json:"document"`
	Unit     mapreduce.UnitID     `json:"unit,omitempty"`
	Start    int64                `json:"start"`
	End      int64                `json:"end"`
}

// columns are those of a table, in order.
var columns = []string{"record", "field", "document", "model", "why", "confidence", "verdict", "value", "note", "by"}

// rowOf returns a value of a queue.
func rowOf(i *review.Item, note string) Row {
	r := Row{
		Record: i.Record, Field: i.Field, Document: i.Document, Model: json.RawMessage(i.Model), Why: i.Why, Confidence: i.Confidence,
		Verdict: i.Verdict, By: i.By, Note: note,
	}
	if i.Right != "" {
		r.Value = json.RawMessage(i.Right)
	}
	return r
}

// writeRows writes rows as a table or as JSON lines, as the name of the file ends.
func writeRows(out io.Writer, table bool, rows []Row) error {
	if !table {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		for i := range rows {
			if err := encoder.Encode(&rows[i]); err != nil {
				return err
			}
		}
		return nil
	}

	w := csv.NewWriter(out)
	if err := w.Write(columns); err != nil {
		return err
	}
	for i := range rows {
		if err := w.Write(rows[i].cells()); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

func (r *Row) cells() []string {
	confidence := ""
	if r.Confidence != nil {
		confidence = strconv.FormatFloat(*r.Confidence, 'g', -1, 64)
	}
	all := []string{string(r.Record), r.Field, string(r.Document), string(r.Model), r.Why, confidence, r.Verdict, string(r.Value), r.Note, r.By}
	for i := range all {
		all[i] = records.SafeCell(all[i])
	}
	return all
}

// isTable reports whether a file is CSV; false if it is of JSON lines, and an error if it is neither.
func isTable(flag, name string) (bool, error) {
	switch {
	case strings.HasSuffix(strings.ToLower(name), ".csv"):
		return true, nil
	case strings.HasSuffix(strings.ToLower(name), ".jsonl"):
		return false, nil
	}
	return false, fmt.Errorf("--%s: %s must end in .csv or .jsonl", flag, name)
}

// maxLine bounds a line of a file of decisions, in bytes: what a decision may hold, as JSON writes it.
const maxLine = 1 << 20

// readRows calls take with each row of a file that has a verdict, in order. Of a table the value is text as people
// write it, or JSON; the schema says which.
func readRows(in io.Reader, table bool, s *schema.Schema, take func(*Row) error) error {
	if table {
		return readTable(in, s, take)
	}

	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if len(line) == 0 {
			continue
		}

		r := Row{line: n}
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&r); err != nil {
			return fmt.Errorf("line %d: is no row: %w", n, err)
		}
		if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
			return fmt.Errorf("line %d: has more than one JSON value", n)
		}
		if r.Verdict == "" {
			continue
		}
		if err := take(&r); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", n+1, err)
	}
	return nil
}

func readTable(in io.Reader, s *schema.Schema, take func(*Row) error) error {
	buffered := bufio.NewReader(in)
	if mark, _ := buffered.Peek(3); string(mark) == "\ufeff" { // as spreadsheets write it
		_, _ = buffered.Discard(3) // they were peeked at
	}
	r := csv.NewReader(buffered)
	header, err := r.Read()
	if err != nil {
		return fmt.Errorf("line 1: has no names of columns: %w", err)
	}
	for _, name := range header {
		if !slices.Contains(columns, name) {
			return fmt.Errorf("line 1: %q is none of the columns %s", name, strings.Join(columns, ", "))
		}
	}
	for _, name := range []string{"record", "field", "verdict"} {
		if !slices.Contains(header, name) {
			return fmt.Errorf("line 1: the column %s is missing", name)
		}
	}

	for {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err // it names the line
		}
		line, _ := r.FieldPos(0)
		row, err := rowOfCells(header, cells, line, s)
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		if row.Verdict == "" {
			continue
		}
		if err := take(row); err != nil {
			return err
		}
	}
}

func rowOfCells(header, cells []string, line int, s *schema.Schema) (*Row, error) {
	r := &Row{line: line}
	for i, name := range header {
		cell := plainCell(cells[i])
		switch name {
		case "record":
			r.Record = mapreduce.RecordID(cell)
		case "field":
			r.Field = cell
		case "verdict":
			r.Verdict = strings.TrimSpace(cell)
		case "note":
			r.Note = cell
		case "model":
			if cell != "" {
				r.Model = json.RawMessage(cell)
			}
		case "value":
			if cell != "" {
				r.Value = valueOf(cell, s.Field(fieldOf(header, cells)))
			}
		}
	}

	if r.Model != nil && !json.Valid(r.Model) {
		return nil, fmt.Errorf("model: %.40q is no JSON; leave the column as it was written", r.Model)
	}
	return r, nil
}

func fieldOf(header, cells []string) string { return plainCell(cells[slices.Index(header, "field")]) }

// plainCell takes the apostrophe away that keeps spreadsheets from taking a text for a formula.
func plainCell(cell string) string {
	if rest, found := strings.CutPrefix(cell, "'"); found && records.SafeCell(rest) == cell {
		return rest
	}
	return cell
}

// valueOf returns a cell as JSON: what is JSON for its field stays so, and all else is a text, which the service
// reads as a value of the field.
func valueOf(cell string, p *schema.Property) json.RawMessage {
	trimmed := strings.TrimSpace(cell)
	texts := p != nil && p.Type == schema.String
	if json.Valid([]byte(trimmed)) && (!texts || strings.HasPrefix(trimmed, `"`)) {
		return json.RawMessage(trimmed)
	}
	data, _ := json.Marshal(cell) // a text
	return data
}
