package pipeline

import (
	"encoding/json"
	"slices"
)

// Form returns the schema of the output of each unit: the schema in the file, or else
// the schema of the output's kind. For records without a schema it is nil, as they have
// the run's schema.
func (o *Output) Form() json.RawMessage {
	switch {
	case len(o.Schema) > 0:
		return o.Schema
	case o.Kind == OutputItems:
		return json.RawMessage(`{"type":"object"}`)
	case o.Kind == OutputTable:
		return json.RawMessage(`{"type":"array","items":{"type":"object"}}`)
	case o.Kind == OutputReport:
		return json.RawMessage(`{"type":"string","minLength":1}`)
	}
	return nil
}

// NeedsSchema reports whether a stage makes records of the run's schema.
func (p *Pipeline) NeedsSchema() bool {
	return slices.ContainsFunc(p.Stages, func(s *Stage) bool { return s.Output.Kind == OutputRecords && s.Output.Schema == nil })
}
