package pipeline

import (
	"maps"
	"slices"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/pipeline/internal/filetree"
	"github.com/coditect/mapreduce/api/pipeline/internal/template"
)

// variableSpaces returns the spaces of the variables that a stage's templates may use.
func (s *Stage) variableSpaces() []string {
	switch s.Each {
	case EachAgent, EachGroup:
		return []string{template.Input, template.OfAgents}
	case EachAll:
		return []string{template.Items, template.Input, template.OfAgents}
	}
	return []string{template.Item, template.Input, template.OfAgents}
}

// CheckInputs refuses a run that does not set an input without a default.
func (p *Pipeline) CheckInputs(vars map[string]string) error {
	for _, in := range slices.Sorted(maps.Keys(p.Inputs)) {
		if _, given := vars[in]; !given && p.Inputs[in] == nil {
			return errs.Field("vars", "the pipeline %s needs the input %s: give it with --var %s=VALUE", p.Name, in, in)
		}
	}
	return nil
}

// CheckItem refuses a document that lacks what the templates of stages over documents
// name of it. The error's field is the template.
func (p *Pipeline) CheckItem(id string, metadata map[string]string) error {
	for i, s := range p.Stages {
		if s.From != Documents {
			continue
		}

		if order, ok := s.Ordering(); ok {
			if _, ok := itemValue(order.Field, id, metadata); !ok {
				return p.fieldError(stageField(i, "order"), "is by %s, and document %q has no %q; it has %s", order.Field, id, order.Field,
					filetree.ListNames(append(slices.Sorted(maps.Keys(metadata)), itemID)))
			}
		}

		for _, one := range p.stageParts(i) {
			for _, v := range p.templates[one.field].Variables() {
				if v.Space == template.OfAgents {
					continue
				}

				// The number of inputs is no field of a document.
				counted := v.Name == count && (v.Space == template.Items || s.Each == EachBatch)
				if _, ok := itemValue(v.Name, id, metadata); !ok && !counted && v.Space != template.Input {
					return p.fieldError(one.field, "names %s, and document %q has no %q; it has %s", v, id, v.Name,
						filetree.ListNames(append(slices.Sorted(maps.Keys(metadata)), itemID)))
				}
			}
		}
	}
	return nil
}

// The names of variables that items have in addition to their metadata.
const (
	itemID = "id"
	count  = "count" // of all items
)

// Value returns what a document has under a name: a field of its metadata, or its id.
func (d Document) Value(name string) (string, bool) { return itemValue(name, d.ID, d.Metadata) }

func itemValue(key, id string, metadata map[string]string) (string, bool) {
	if v, ok := metadata[key]; ok {
		return v, true
	}
	return id, key == itemID
}
