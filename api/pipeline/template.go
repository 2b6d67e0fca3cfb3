package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/pipeline/internal/filetree"
	"github.com/coditect/mapreduce/api/shorten"
)

// A Template is a text that names variables, as {{item.dish}}. Nothing else can
// be done in one: no condition, no function, no other template.
type Template struct {
	pieces []piece
}

// A piece is a text, or a variable.
type piece struct {
	text string
	Variable
}

// A Variable is a variable of a template.
type Variable struct {
	Space string // where it is from; empty for text
	Name  string
}

// String returns the variable as templates name it.
func (v Variable) String() string { return v.Space + "." + v.Name }

// The spaces of variables.
const (
	// Item is what a unit gets of a stage that fans out: the id and the metadata of
	// a document, or the properties of an element. For a batch it is as Items.
	Item = "item"
	// Items are all inputs of a stage with each: all. Their number is items.count;
	// of an id or of metadata it is the values of all, in order.
	Items = "items"
	// Input is the space of the inputs of a run.
	Input = "input"
	// OfAgents is the space of the agents that may work in a stage, by its name.
	OfAgents = "agents"
)

// variableSpaces returns the spaces of the variables that a stage's templates may use.
func (s *Stage) variableSpaces() []string {
	switch s.Each {
	case EachAgent, EachGroup:
		return []string{Input, OfAgents}
	case EachAll:
		return []string{Items, Input, OfAgents}
	}
	return []string{Item, Input, OfAgents}
}

// parseTemplate reads a template.
func parseTemplate(text string) (Template, error) {
	var t Template
	for rest := text; rest != ""; {
		before, after, found := strings.Cut(rest, "{{")
		if strings.Contains(before, "}}") {
			return t, fmt.Errorf("has }} without {{ before it")
		}

		if before != "" {
			t.pieces = append(t.pieces, piece{text: before})
		}
		if !found {
			break
		}

		inside, next, closed := strings.Cut(after, "}}")
		if !closed {
			return t, fmt.Errorf("has {{ without }} behind it: %.40q", "{{"+after)
		}

		v, err := parseVariable(inside)
		if err != nil {
			return t, err
		}

		t.pieces = append(t.pieces, piece{Variable: v})
		rest = next
	}
	return t, nil
}

// parseVariable parses the text between braces. It accepts a leading dot, as other
// template languages have it.
func parseVariable(inside string) (Variable, error) {
	space, key, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(inside), "."), ".")
	if !slices.Contains([]string{Item, Items, Input, OfAgents}, space) || !name.MatchString(key) {
		return Variable{}, fmt.Errorf("names {{%.60s}}, which is no variable: those are item.NAME, items.NAME, input.NAME and agents.STAGE", inside)
	}
	return Variable{space, key}, nil
}

// Variables returns the variables of the template, sorted, each once.
func (t Template) Variables() []Variable {
	seen := make(map[Variable]bool)
	for _, p := range t.pieces {
		if p.Space != "" {
			seen[p.Variable] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b Variable) int { return strings.Compare(a.String(), b.String()) })
}

// namesSpace reports whether the template names a variable of a space.
func (t Template) namesSpace(space string) bool {
	return slices.ContainsFunc(t.pieces, func(p piece) bool { return p.Space == space })
}

// maxValue bounds the value of a variable in a text, in characters.
const maxValue = 1000

// renderTemplate returns the template with the values of its variables. A value is put
// on one line, without invisible characters, and is never read as a template.
func (t Template) renderTemplate(value func(Variable) (string, bool)) (string, error) {
	var b strings.Builder
	for _, p := range t.pieces {
		if p.Space == "" {
			b.WriteString(p.text)
			continue
		}

		text, ok := value(p.Variable)
		if !ok {
			return "", fmt.Errorf("needs the variable %s, which is not there", p.Variable)
		}
		if p.Space != OfAgents { // whose parts are plain
			text = shorten.Text(shorten.Visible(text), maxValue)
		}

		b.WriteString(text)
	}

	return b.String(), nil
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
				if v.Space == OfAgents {
					continue
				}

				// The number of inputs is no field of a document.
				counted := v.Name == count && (v.Space == Items || s.Each == EachBatch)
				if _, ok := itemValue(v.Name, id, metadata); !ok && !counted && v.Space != Input {
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
