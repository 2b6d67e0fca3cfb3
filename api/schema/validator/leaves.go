package validator

import "github.com/santhosh-tekuri/jsonschema/v6"

// Leaves returns the faults at the bottom of a tree of faults; those above say
// only that something below is wrong.
func Leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var all []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		all = append(all, Leaves(cause)...)
	}
	return all
}
