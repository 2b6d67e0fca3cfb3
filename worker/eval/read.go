package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxLine bounds a line of a truth file, in bytes.
const maxLine = 16 << 20

// ReadTruth reads JSON lines {"document": …, field: value, …}. Blank lines are
// skipped. The name is used in errors, which name the line.
func ReadTruth(name string, r io.Reader) ([]Truth, error) {
	var truth []Truth
	lines := bufio.NewScanner(r)
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
		t, err := readLine(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		truth = append(truth, t)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, n+1, err)
	}
	if len(truth) == 0 {
		return nil, fmt.Errorf("%s: holds no truth", name)
	}
	return truth, nil
}

func readLine(line []byte) (Truth, error) {
	var values map[string]any
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	if err := dec.Decode(&values); err != nil {
		return Truth{}, fmt.Errorf("not a JSON object: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Truth{}, errors.New("more than one JSON value on a line")
	}
	document, ok := values["document"].(string)
	if !ok || document == "" {
		return Truth{}, errors.New(`"document" must name a document`)
	}
	delete(values, "document")
	return Truth{Document: document, Values: values}, nil
}

// ReadResult reads the records of a result.json and skips the rest of it. The name
// is used in errors.
func ReadResult(name string, r io.Reader) ([]Result, error) {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	results, err := readResult(dec)
	if err != nil {
		return nil, fmt.Errorf("%s: at byte %d: %w", name, dec.InputOffset(), err)
	}
	return results, nil
}

func readResult(dec *json.Decoder) ([]Result, error) {
	if err := expectDelim(dec, '{'); err != nil {
		return nil, err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		if key != "aggregated_data" {
			if err := dec.Decode(new(json.RawMessage)); err != nil {
				return nil, err
			}
			continue
		}
		return readRecords(dec)
	}
	return nil, errors.New(`there is no "aggregated_data": this is no result of a job`)
}

// readRecords reads a list of records, or a single one.
func readRecords(dec *json.Decoder) ([]Result, error) {
	open, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch open {
	case json.Delim('['):
		results := []Result{}
		for dec.More() {
			var values map[string]any
			if err := dec.Decode(&values); err != nil {
				return nil, fmt.Errorf("record %d: %w", len(results), err)
			}
			results = append(results, newResult(values))
		}
		return results, expectDelim(dec, ']')
	case json.Delim('{'):
		values := map[string]any{}
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return nil, err
			}
			var v any
			if err := dec.Decode(&v); err != nil {
				return nil, err
			}
			values[key.(string)] = v // keys of objects are strings
		}
		summary := newResult(values)
		summary.Documents = nil
		return []Result{summary}, expectDelim(dec, '}')
	case nil:
		return nil, nil
	default:
		return nil, errors.New(`"aggregated_data" must be a list of records or one record`)
	}
}

func expectDelim(dec *json.Decoder, want json.Delim) error {
	tok, err := dec.Token()
	if err != nil {
		return err
	}
	if tok != want {
		return fmt.Errorf("found %v, expected %v", tok, want)
	}
	return nil
}

// newResult separates the values of a record from its sources and confidences.
func newResult(values map[string]any) Result {
	r := Result{Values: make(map[string]any, len(values))}
	sources, _ := values["_sources"].([]any)
	for _, s := range sources {
		if name, ok := s.(string); ok {
			r.Documents = append(r.Documents, name)
		}
	}
	if sure, ok := values["_confidence"].(map[string]any); ok {
		r.Confidence = make(map[string]float64, len(sure))
		for field, v := range sure {
			n, _ := v.(json.Number)
			if c, err := n.Float64(); err == nil {
				r.Confidence[field] = c
			}
		}
	}
	for key, v := range values {
		if !strings.HasPrefix(key, "_") {
			r.Values[key] = v
		}
	}
	return r
}
