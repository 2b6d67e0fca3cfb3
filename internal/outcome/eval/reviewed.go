package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// undo puts what the job found in the place of what people have decided, and keeps that.
func (r *Result) undo(reviewed map[string]any) {
	r.decided = make(map[string]any)
	for field, one := range reviewed {
		e, _ := one.(map[string]any)
		if verdict, _ := e["verdict"].(string); verdict != "reject" { // which says nothing of what is right
			r.decided[field] = valueAt(r.Values, field)
		}

		model := e["model"]
		if held, _ := e["unverified"].(bool); held {
			if r.Unverified == nil {
				r.Unverified = make(map[string]Unverified)
			}
			r.Unverified[field], model = Unverified{Value: model}, nil
		}
		setValue(r.Values, field, model)

		if quotes := textsOf(e["citations"]); quotes != nil {
			r.Quotes = setQuotes(r.Quotes, field, quotes)
		}
		if n, ok := e["confidence"].(json.Number); ok {
			if c, err := n.Float64(); err == nil && c >= 0 && c <= 1 {
				if r.Confidence == nil {
					r.Confidence = make(map[string]float64)
				}
				r.Confidence[field] = c
			}
		}
	}
}

// within returns the object that holds the value of a field, and its name there; false if there is
// none.
func within(values map[string]any, field string) (object map[string]any, name string, ok bool) {
	if _, here := values[field]; here {
		return values, field, true
	}

	// Names may have dots themselves, so each way to cut the path is tried.
	for i := range len(field) {
		if field[i] != '.' {
			continue
		}
		if inner, isObject := values[field[:i]].(map[string]any); isObject {
			if object, name, ok = within(inner, field[i+1:]); ok {
				return object, name, true
			}
		}
	}
	return nil, "", false
}

func setValue(values map[string]any, field string, v any) {
	if object, name, ok := within(values, field); ok {
		object[name] = v
	}
}

// ReadReviewed reads what people have decided about values of a result.json as the truth: of each
// record that they have decided about, the fields of which they said what is right. It also reads a truth file,
// in which such decisions were kept.
func ReadReviewed(name string, r io.Reader) ([]Truth, error) {
	in := bufio.NewReader(r)
	if isTruth(in) {
		return ReadTruth(name, in)
	}
	results, err := ReadResult(name, in)
	if err != nil {
		return nil, err
	}

	var truth []Truth
	for _, one := range results {
		if len(one.decided) == 0 {
			continue
		}
		if len(one.Documents) != 1 {
			return nil, fmt.Errorf("%s: a record of %d documents was reviewed, and a truth is of one: give it with --truth", name, len(one.Documents))
		}

		t := Truth{Document: one.Documents[0], Values: make(map[string]any)}
		for field, v := range one.decided {
			addValue(t.Values, strings.Split(field, "."), v)
		}
		truth = append(truth, t)
	}
	if len(truth) == 0 {
		return nil, errors.New(name + ": nobody has decided what is right in this result, so there is nothing to compare with")
	}
	return truth, nil
}

func addValue(values map[string]any, path []string, v any) {
	for _, name := range path[:len(path)-1] {
		inner, ok := values[name].(map[string]any)
		if !ok {
			inner = make(map[string]any)
			values[name] = inner
		}
		values = inner
	}
	values[path[len(path)-1]] = v
}

// Within returns results with those fields alone that the truth has of their documents: of a truth that
// is of some values, the others are neither right nor wrong.
func Within(results []Result, truth []Truth) []Result {
	fields := make(map[string][]string)
	for _, t := range truth {
		for field := range flattenRecord("", t.Values) {
			fields[t.Document] = append(fields[t.Document], field)
		}
		for field, v := range t.Values {
			if v == nil {
				fields[t.Document] = append(fields[t.Document], field)
			}
		}
	}

	var all []Result
	for _, r := range results {
		var known []string
		for _, document := range r.Documents {
			known = append(known, fields[document]...)
		}
		one := r
		one.Values, one.Unverified = make(map[string]any), make(map[string]Unverified)
		slices.Sort(known)
		for _, field := range slices.Compact(known) {
			if v := valueAt(r.Values, field); v != nil {
				addValue(one.Values, strings.Split(field, "."), v)
			}
			if u, held := r.Unverified[field]; held {
				one.Unverified[field] = u
			}
		}
		all = append(all, one)
	}
	return all
}

// isTruth reports whether a file is of JSON lines that name their documents: result.json has several lines.
func isTruth(in *bufio.Reader) bool {
	head, _ := in.Peek(in.Size()) // a short file is one as well
	line, _, whole := bytes.Cut(bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), "\r\n\t "), []byte("\n"))
	if _, err := readLine(bytes.TrimSpace(line)); err == nil {
		return true
	}
	return !whole && len(head) == in.Size() && bytes.HasPrefix(line, []byte(`{"document":`)) // a long line
}
