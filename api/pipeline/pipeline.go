// Package pipeline reads pipeline files: which agents a job has, what they are
// told, and which of its steps it has at all. A file is YAML or JSON; what roles,
// goals and tasks say may depend on the item and on what the run was given, by
// templates that can do nothing but name a variable.
//
// It is pure and imports nothing of the project but the vocabulary's errors and
// api/schema, by which examples are checked.
package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/api/errs"
)

// MaxBytes bounds a pipeline in its canonical form: the record of a job holds it.
const MaxBytes = 48 << 10

// A Pipeline is a pipeline file, checked.
type Pipeline struct {
	Name        string `yaml:"name" json:"name"`
	Description string `yaml:"description" json:"description,omitempty"`
	// Inputs are the variables that a run gives, with what they are if it does
	// not; null if it has to.
	Inputs map[string]*string `yaml:"inputs" json:"inputs,omitempty"`

	Map    *Step `yaml:"map" json:"map,omitempty"`
	Reduce *Step `yaml:"reduce" json:"reduce,omitempty"`
	Direct *Step `yaml:"direct" json:"direct,omitempty"`

	templates map[string]Template // by field, such as "map.agent.role"
}

// A Step is one kind of unit: who runs it and what it is to do.
type Step struct {
	Agent    *Agent    `yaml:"agent" json:"agent,omitempty"`
	Task     *Task     `yaml:"task" json:"task,omitempty"`
	Examples []Example `yaml:"examples" json:"examples,omitempty"` // of the map

	// Merge and Fold are of the reduce. Merge says who merges; empty leaves it to
	// the run. Fold has its inputs read in their order, with a scratchpad.
	Merge string `yaml:"merge" json:"merge,omitempty"`
	Fold  bool   `yaml:"fold" json:"fold,omitempty"`
}

// An Agent is who runs a step. The texts are templates.
type Agent struct {
	Role       string `yaml:"role" json:"role,omitempty"`
	Goal       string `yaml:"goal" json:"goal,omitempty"`
	Background string `yaml:"background" json:"background,omitempty"`
}

// A Task is what a step is to do. The texts are templates.
type Task struct {
	Description string `yaml:"description" json:"description,omitempty"`
	Expected    string `yaml:"expected_output" json:"expected_output,omitempty"`
}

// An Example shows what is to be found in a text.
type Example struct {
	Document string `yaml:"document" json:"document"`
	// Records are the records of the text; a schema of one record has one.
	Records []Record `yaml:"records" json:"records"`
}

// A Record is what an example holds: by the path of a field, what is found.
type Record map[string][]Finding

// A Finding is a value, and the passage of the example's document that shows it.
type Finding struct {
	Value any    `yaml:"value" json:"value"`
	Quote string `yaml:"quote" json:"quote"`
}

// UnmarshalYAML takes one finding where a list of them may stand.
func (r *Record) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: a record is a mapping of fields", n.Line)
	}
	*r = make(Record, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		var list []Finding
		key, v := n.Content[i], n.Content[i+1]
		nodes := []*yaml.Node{v}
		if v.Kind == yaml.SequenceNode {
			nodes = v.Content
		}
		for _, item := range nodes {
			var f Finding
			if err := finding(item, &f); err != nil {
				return err
			}
			list = append(list, f)
		}
		if _, twice := (*r)[key.Value]; twice {
			return fmt.Errorf("line %d: field %q stands there twice", key.Line, key.Value)
		}
		(*r)[key.Value] = list
	}
	return nil
}

// finding reads a finding. A decoder of a node forgets that it is strict.
func finding(n *yaml.Node, f *Finding) error {
	if n.Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content); i += 2 {
			if key := n.Content[i]; key.Value != "value" && key.Value != "quote" {
				return fmt.Errorf("line %d: field %s not found in type finding", key.Line, key.Value)
			}
		}
	}
	return n.Decode(f)
}

// Parse reads a pipeline file. The name is used in messages. An error names the
// line, or the field and the rule that it breaks.
func Parse(file string, data []byte) (*Pipeline, error) {
	if len(data) > 4*MaxBytes {
		return nil, errs.Field("pipeline", "%s: has %d bytes; at most %d are taken", file, len(data), MaxBytes)
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	p := new(Pipeline)
	if err := d.Decode(p); err != nil {
		return nil, errs.Field("pipeline", "%s: %s", file, plainly(err))
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errs.Field("pipeline", "%s: there is more than one document in the file", file)
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if n := len(p.Canonical()); n > MaxBytes {
		return nil, errs.Field("pipeline", "%s: has %d bytes; at most %d are taken", file, n, MaxBytes)
	}
	return p, nil
}

var (
	unknownKey = regexp.MustCompile(`field (\S+) not found in type \S+`)
	intoType   = regexp.MustCompile(` into \S+`)
)

// plainly words an error of the YAML package without names of Go.
func plainly(err error) string {
	if errors.Is(err, io.EOF) {
		return "it is empty"
	}
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if e, ok := errors.AsType[*yaml.TypeError](err); ok {
		text = strings.Join(e.Errors, "; ")
	}
	text = unknownKey.ReplaceAllString(text, `there is no key "$1" in this place`)
	text = intoType.ReplaceAllString(text, "")
	return strings.NewReplacer("!!seq", "a list", "!!map", "a mapping", "!!str", "a text", "!!int", "a number", "!!bool", "true or false").Replace(text)
}

// Canonical returns the pipeline as JSON, the same for equal pipelines.
func (p *Pipeline) Canonical() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(p) != nil {
		return nil // it was decoded, so that it can be encoded
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// A part is a template of a step, with where it stands.
type part struct {
	field, text string
}

// steps are the steps of a pipeline with their names, in order.
func (p *Pipeline) steps() []namedStep {
	return []namedStep{{"map", p.Map}, {"reduce", p.Reduce}, {"direct", p.Direct}}
}

type namedStep struct {
	name string
	*Step
}

// parts are the templates of a step.
func (s *namedStep) parts() (all []part) {
	if s.Step == nil {
		return nil
	}
	if a := s.Agent; a != nil {
		all = append(all, part{s.name + ".agent.role", a.Role}, part{s.name + ".agent.goal", a.Goal}, part{s.name + ".agent.background", a.Background})
	}
	if t := s.Task; t != nil {
		all = append(all, part{s.name + ".task.description", t.Description}, part{s.name + ".task.expected_output", t.Expected})
	}
	return slices.DeleteFunc(all, func(p part) bool { return p.text == "" })
}

// maxText bounds a template.
const maxText = 16 << 10

// name is how pipelines and variables are named.
var name = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

// merges are the ways to merge; empty leaves it to the run.
var merges = []string{"", "typed", "model", "typed-then-model"}

// check refuses what makes no sense, naming the field and the rule.
func (p *Pipeline) check() error {
	if !name.MatchString(p.Name) {
		return errs.Field("name", "must be 1 to 64 letters, digits, dots, dashes and underscores, and is %.80q", p.Name)
	}
	if slices.Contains(Presets, p.Name) {
		return errs.Field("name", "%q is the name of a pipeline that comes with the program; give yours another", p.Name)
	}
	for in := range p.Inputs {
		if !name.MatchString(in) {
			return errs.Field("inputs", "%.80q must be 1 to 64 letters, digits, dots, dashes and underscores", in)
		}
	}
	p.templates = make(map[string]Template)
	for _, s := range p.steps() {
		if err := s.check(); err != nil {
			return err
		}
		for _, one := range s.parts() {
			t, err := parseTemplate(one.text)
			if err != nil {
				return errs.Field(one.field, "%s", err)
			}
			if err := p.known(s.name, one.field, t); err != nil {
				return err
			}
			p.templates[one.field] = t
		}
	}
	return nil
}

// Presets are the names of the pipelines that come with the program.
var Presets = []string{"extract", "synthesize", "compare", "research"}

// check refuses what a step cannot be. That a step is missing is the planner's
// affair.
func (s *namedStep) check() error {
	if s.Step == nil {
		return nil
	}
	switch {
	case s.name != "reduce" && s.Merge != "":
		return errs.Field(s.name+".merge", "is of the reduce alone: nothing else merges")
	case s.name != "reduce" && s.Fold:
		return errs.Field(s.name+".fold", "is of the reduce alone: nothing else takes outputs in order")
	case s.name != "map" && len(s.Examples) > 0:
		return errs.Field(s.name+".examples", "are of the map alone, and a direct step is shown the same")
	case !slices.Contains(merges, s.Merge):
		return errs.Field(s.name+".merge", "must be typed, model or typed-then-model, and is %.40q", s.Merge)
	}
	if a := s.Agent; a != nil {
		if a.Role == "" {
			return errs.Field(s.name+".agent.role", "is needed: it says who the agent is")
		}
	}
	if t := s.Task; t != nil && t.Description == "" {
		return errs.Field(s.name+".task.description", "is needed: it says what is to be done")
	}
	for _, one := range s.parts() {
		if len(one.text) > maxText {
			return errs.Field(one.field, "has %d bytes; at most %d are taken", len(one.text), maxText)
		}
	}
	return nil
}
