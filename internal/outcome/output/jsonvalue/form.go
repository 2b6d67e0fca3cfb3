// Package jsonvalue is what the values of a stage have to look like: the JSON Schema that its
// author wrote, and the hints in it that the program sees to, whoever makes the value:
// what is given, which documents may be chosen, and what has to stand in a quote.
//
// A value is JSON in canonical form: equal values are equal bytes. The package is pure and
// imports api/schema and internal/text/refs alone.
package jsonvalue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/validator"
)

// MaxValue bounds a value, in bytes of its canonical JSON.
const MaxValue = 15 << 18

// ErrForm is what a value is refused with that is not what its stage is to make.
var ErrForm = errors.New("output: the value does not fit the schema of its stage")

// A Form is what the values of a stage have to look like: a JSON Schema made
// ready, with its hints. It is immutable and safe for concurrent use.
type Form struct {
	validator *validator.Schema
	hints     hints
	given     *Given // nil if nothing is known that could be filled in
}

// NewForm reads a JSON Schema (2020-12).
func NewForm(schema []byte) (*Form, error) {
	v, err := validator.Parse(schema)
	if err != nil {
		return nil, fmt.Errorf("jsonvalue: schema: %w", err)
	}
	return &Form{validator: v, hints: readHints(schema)}, nil
}

// CheckFit checks a value that was decoded.
func (f *Form) CheckFit(value any) error {
	if err := f.validator.Validate(value); err != nil {
		return fmt.Errorf("%w: %w", ErrForm, err)
	}
	return nil
}

// Decode reads one JSON value, with numbers as they were written. Numbers
// that would take long to compute with are refused.
func Decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("jsonvalue: value: %w", err)
	}

	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("jsonvalue: value: there is more than one")
	}
	return v, boundNumbers(v)
}

// boundNumbers refuses numbers that are not in range.
func boundNumbers(v any) error {
	switch v := v.(type) {
	case json.Number:
		if !format.IsComputable(v.String()) {
			return fmt.Errorf("jsonvalue: value: the number %.40s is out of range", v.String())
		}
	case []any:
		for _, item := range v {
			if err := boundNumbers(item); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, item := range v {
			if err := boundNumbers(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// Encode returns the canonical JSON of a value: keys sorted, no white space,
// no escapes that pages would need.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("jsonvalue: value: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Canonical returns a JSON value in canonical form, which is the same for values
// that differ in the order of keys and in white space alone.
func Canonical(value []byte) ([]byte, error) {
	v, err := Decode(value)
	if err != nil {
		return nil, err
	}
	return Encode(v)
}

// CheckValue checks a value: that it is canonical, fits the form, and has what is given.
func (f *Form) CheckValue(value []byte) error {
	if len(value) == 0 || len(value) > MaxValue {
		return fmt.Errorf("%w: it has %d bytes; 1 to %d are kept", ErrForm, len(value), MaxValue)
	}

	v, err := Decode(value)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrForm, err)
	}

	if canonical, err := Encode(v); err != nil || !bytes.Equal(canonical, value) {
		return fmt.Errorf("%w: it is not in canonical form", ErrForm)
	}

	if err := f.CheckFit(v); err != nil {
		return err
	}
	return f.checkGiven(v)
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
