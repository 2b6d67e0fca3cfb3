package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/coditect/mapreduce/api/schema/format"
)

// Validate checks a record of normalised values against the schema. Null stands for "not
// found" and is taken as absent, unless it is required and may be null, so it breaks only
// "required". What the result says about its values is not looked at. The error names each
// value that does not fit.
func (s *Schema) Validate(record map[string]any) error {
	err := s.validate(s.Flatten(record))
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}

	var msgs []string
	for _, leaf := range leafErrors(invalid) {
		path := strings.Join(leaf.InstanceLocation, ".")
		msg := leaf.ErrorKind.LocalizedString(message.NewPrinter(language.English))
		msgs = append(msgs, strings.TrimPrefix(path+": "+msg, ": "))
	}

	slices.Sort(msgs)
	return errors.New(strings.Join(msgs, "; "))
}

// instanceOf returns what the validator looks at: the record with values by field path, and
// with null at the paths that have to have it.
func (s *Schema) instanceOf(values map[string]any, nulls map[string]bool) (any, error) {
	for path, v := range values {
		if err := boundNumbers(v); err != nil {
			return nil, &numberError{path, err}
		}
	}

	record, _ := instanceObject("", s.Properties, s.Rest != nil, values, nulls)
	instance := any(record)
	if s.bare {
		instance = record[ValueName]
	}

	if s.wrap {
		instance = []any{instance}
	}

	return instance, nil
}

// instanceObject returns an object without what was not found, and whether anything was.
func instanceObject(prefix string, properties []Property, rest bool, values map[string]any, nulls map[string]bool) (object map[string]any, some bool) {
	object = make(map[string]any, len(properties))
	if others, ok := values[prefix+RestName].(map[string]any); ok && rest {
		for name, v := range others {
			object[name], some = v, true
		}
	}

	for i := range properties {
		p := &properties[i]
		path := prefix + p.step()
		v := values[path]

		if inner, found := map[string]any(nil), false; p.Type == Object {
			if inner, found = instanceObject(path+".", p.Properties, p.Rest != nil, values, nulls); found {
				v = inner
			}
		}

		if v != nil {
			object[p.Name], some = v, true
		} else if p.Required && p.Nullable || nulls[path] {
			// A null that the schema asks for is no value, so it does not count as one.
			object[p.Name] = nil
		}
	}

	return object, some
}

// A numberError says that a number in the value of a field is out of range.
type numberError struct {
	path string
	err  error
}

// Error names the field and the number.
func (e *numberError) Error() string { return e.path + ": " + e.err.Error() }

// boundNumbers refuses numbers that are out of range, because the validator computes with
// them exactly.
func boundNumbers(v any) error {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			if err := boundNumbers(item); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	case []any:
		for i, item := range v {
			if err := boundNumbers(item); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
	case json.Number:
		if _, ok := format.CanonicalNumber(v.String()); !ok {
			return fmt.Errorf("the number %s is out of range", clipText(v.String()))
		}
	}
	return nil
}
