package jsonvalue

import (
	"encoding/json"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
)

// List returns the elements of the list at a path in an output.
func List(value json.RawMessage, path []string) ([]json.RawMessage, error) {
	for i, key := range path {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(value, &object); err != nil || object == nil {
			return nil, errs.New(errs.Precondition, "the output has no object at %s", placeName(path[:i]))
		}
		inner, ok := object[key]
		if !ok {
			return nil, errs.New(errs.Precondition, "the output has no %q at %s", key, placeName(path[:i]))
		}
		value = inner
	}

	var list []json.RawMessage
	if err := json.Unmarshal(value, &list); err != nil {
		return nil, errs.New(errs.Precondition, "the output has no list at %s", placeName(path))
	}
	return list, nil
}

func placeName(path []string) string {
	if len(path) == 0 {
		return "its top"
	}
	return strings.Join(path, ".")
}
