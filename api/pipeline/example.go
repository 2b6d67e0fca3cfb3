package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/pipeline/internal/filetree"
	"github.com/coditect/mapreduce/api/schema"
)

// checkExample refuses an example that is none of a schema.
func (e *Example) checkExample(s *schema.Schema) (key string, err error) {
	switch {
	case strings.TrimSpace(e.Document) == "":
		return "document", fmt.Errorf("is required: an example shows what is found in a text")
	case len(e.Document) > maxExample:
		return "document", fmt.Errorf("has %d bytes; at most %d are accepted", len(e.Document), maxExample)
	case s.Kind == schema.KindRecord && len(e.Records) != 1:
		return "records", fmt.Errorf("must be one, as the schema is of one record a document, and there are %d", len(e.Records))
	}

	for n, r := range e.Records {
		if key, err := r.checkRecord(s, e.Document); err != nil {
			return fmt.Sprintf("records[%d].%s", n, key), err
		}
	}

	return "", nil
}

// CheckExamples refuses examples that are not such of the run's schema: with fields
// that it does not have, values that do not fit, or quotes that do not stand in the
// example's document. A model would learn from them. A stage whose output has a schema
// of its own is held to that one.
func (p *Pipeline) CheckExamples(run *schema.Schema) error {
	for i, stage := range p.Stages {
		s := run
		if stage.Output.parsed != nil {
			s = stage.Output.parsed
		}

		for n := range stage.Examples {
			if key, err := stage.Examples[n].checkExample(s); err != nil {
				return p.fieldError(stageField(i, fmt.Sprintf("examples[%d].%s", n, key)), "%s", err)
			}
		}
	}

	return nil
}

// checkRecord refuses a record that does not fit a schema.
func (r Record) checkRecord(s *schema.Schema, document string) (path string, err error) {
	fields := make(map[string]bool)
	var names []string
	for _, f := range s.Fields() {
		fields[f.Path] = true
		names = append(names, f.Path)
		p := f.Property
		if p.Type == schema.Array && p.Items != nil {
			p = p.Items
		}

		for _, found := range r[f.Path] {
			if found.Value == nil {
				return f.Path, fmt.Errorf("has no value; a quote needs its value")
			}
			if _, err := p.Normalize(found.Value); err != nil {
				return f.Path, fmt.Errorf("the value %v does not fit the schema: %w", found.Value, err)
			}
			if found.Quote == "" || !strings.Contains(document, found.Quote) {
				return f.Path, fmt.Errorf("the quote %.80q does not stand in the example's document, letter by letter", found.Quote)
			}
		}

		if f.Property.Type != schema.Array && f.Property.Type != schema.Map && len(r[f.Path]) > 1 {
			return f.Path, fmt.Errorf("has %d values, and the schema has one", len(r[f.Path]))
		}
	}

	for _, path := range slices.Sorted(maps.Keys(r)) {
		if !fields[path] {
			return path, fmt.Errorf("is no field of the schema, which has %s", filetree.ListNames(names))
		}
	}

	return "", nil
}

// Bounds of examples: they are a part of every prompt.
const (
	maxExamples = 16
	maxExample  = 16 << 10 // bytes of a document
)
