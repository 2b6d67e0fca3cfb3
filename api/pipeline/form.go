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
	case o.Kind == OutputPassages:
		return json.RawMessage(passagesForm)
	case o.Kind == OutputReport:
		return json.RawMessage(`{"type":"string","minLength":1}`)
	}
	return nil
}

// passagesForm is the schema of passages: each with its reference, how much it bears on
// the query, and the characters that it takes in a prompt, with what is said of it.
const passagesForm = `{"type":"object","required":["passages"],"additionalProperties":false,"properties":{"passages":{"type":"array","items":{` +
	`"type":"object","required":["passage","size","text"],"additionalProperties":false,"properties":{"passage":{"type":"string"},` +
	`"relevance":{"type":"number"},"size":{"type":"integer","minimum":0},"text":{"type":"integer","minimum":0},"summary":{"type":"string","maxLength":4000}}}}}}`

// PassagesPath is the path of the list of passages in an output of OutputPassages.
var PassagesPath = []string{OutputPassages}

// ReadsPassages reports whether the stage reads passages: each of them is an input then.
func (p *Pipeline) ReadsPassages(s *Stage) bool {
	for _, name := range s.Sources() {
		if source := p.Stage(name); source != nil && source.Output.Kind == OutputPassages {
			return true
		}
	}
	return false
}

// NeedsSchema reports whether a stage makes records of the run's schema.
func (p *Pipeline) NeedsSchema() bool {
	return slices.ContainsFunc(p.Stages, func(s *Stage) bool { return s.Output.Kind == OutputRecords && s.Output.Schema == nil })
}
