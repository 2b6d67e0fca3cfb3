// Package validator compiles JSON Schemas and checks values by them, with work that is
// bounded: a schema of a few hundred bytes, each part of which refers to the next one twice,
// would otherwise keep a processor busy for ever. The package is pure and imports
// api/schema/pattern alone.
package validator

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/coditect/mapreduce/api/schema/pattern"
)

// Resource is the name under which the compiler knows a schema, as its errors name it. It
// is never loaded.
const Resource = "mem:///schema.json"

// The work of a check is counted in steps: each time that a part of the schema looks at a
// part of the value is one, and so is each property of an object that it looks at. A step
// takes less than a microsecond.
const (
	// lightSteps is how many steps for each part of a value every schema may make. Schemas
	// of which no value can ask more, as nearly all are, are not counted.
	lightSteps = 100
	// freeSteps is how many more may be made, whatever the value: there may be many
	// alternatives, each with long lists of what is allowed.
	freeSteps = 500_000
	// stepsAtOne is how many steps may be made at one value by a part of the schema, whatever
	// the value, those of its own parts included.
	stepsAtOne = 10_000
	// valuesAStep is how many values of an enumeration are compared in one step, and through
	// how many parts the validator looks for one that refers to itself.
	valuesAStep = 64
	// maxDepth bounds how deep parts of a schema may lie in others, those that they refer to
	// included, and values in values.
	maxDepth = 20_000
)

// ErrTooCostly is the error of a check that would take too long.
var ErrTooCostly = errors.New("this value cannot be checked: parts of the schema refer to each other so that it would take too many steps")

// ErrNothingFits is the error of a schema by which no value at all could be checked.
var ErrNothingFits = errors.New("no value could be checked by it: its parts refer to each other so that it would take too many steps")

// A Schema checks values. It is immutable and safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema
	light    bool // no value can ask for more than lightSteps for each of its parts
}

// Parse reads a schema and compiles the whole of it, as Compile does.
func Parse(doc []byte) (*Schema, error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		return nil, err
	}
	return Compile(v, "", nil)
}

// Compile compiles a schema (JSON Schema 2020-12, unless it says otherwise), as
// jsonschema.UnmarshalJSON returns it, or the part of it that a fragment such as #/items
// names. It may refer to itself alone. configure may be nil.
func Compile(doc any, fragment string, configure func(*jsonschema.Compiler)) (*Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(compilePattern)

	if configure != nil {
		configure(c)
	}

	if err := c.AddResource(Resource, doc); err != nil {
		return nil, err
	}

	compiled, err := c.Compile(Resource + fragment)
	if err != nil {
		return nil, err
	}

	w := walk{left: lightSteps}
	if w.visitAll(compiled); w.left >= 0 {
		return &Schema{compiled: compiled, light: true}, nil
	}

	steps, seen := make(map[*jsonschema.Schema]int), make(map[*jsonschema.Schema]bool)

	// One part of the schema with too many steps at one value is enough: it may be applied anywhere.
	for next := []*jsonschema.Schema{compiled}; len(next) > 0; {
		s := next[0]
		if next = next[1:]; s == nil || seen[s] {
			continue
		}

		if stepsHere(s, steps) > stepsAtOne {
			return nil, ErrNothingFits
		}

		seen[s], next = true, append(next, allParts(s)...)
	}

	return &Schema{compiled: compiled}, nil
}

// stepsHere returns how many steps s takes, with all of its parts that look at the same
// value: stepsAtOne+1 at most. known are those of parts that were counted.
func stepsHere(s *jsonschema.Schema, known map[*jsonschema.Schema]int) int {
	if n, ok := known[s]; ok {
		return n
	}

	known[s] = 1 // if it comes to itself: Validate sees what that leads to

	n := 1
	for _, part := range partsHere(s) {
		if part != nil {
			n = min(n+stepsHere(part, known), stepsAtOne+1)
		}
	}

	known[s] = n
	return n
}

// A noLoader keeps the compiler from reading files and the network.
type noLoader struct{}

// Load implements jsonschema.URLLoader.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is outside of the schema and is not loaded", url)
}

// Validate checks a value, as jsonschema.UnmarshalJSON returns it. The error is a
// *jsonschema.ValidationError if the value does not fit, and ErrTooCostly if that is not
// known, as the check would take too long.
func (s *Schema) Validate(value any) (err error) {
	defer func() {
		tooMuch := recover()
		if why, ok := tooMuch.(error); ok && errors.Is(why, pattern.ErrSteps) {
			err = fmt.Errorf("%w: %w", ErrTooCostly, why)
		} else if tooMuch != nil {
			panic(tooMuch)
		}
	}()

	if !s.light {
		// Light schemas take few steps with any value, so nothing is counted for them.
		w := walk{left: freeSteps + lightSteps*countParts(value)}
		w.visit(s.compiled, value)
		if w.left < 0 {
			return ErrTooCostly
		}
	}

	return s.compiled.Validate(value)
}

// countParts counts the values that a value consists of.
func countParts(value any) int {
	n := 1
	switch v := value.(type) {
	case map[string]any:
		for _, item := range v {
			n += countParts(item)
		}
	case []any:
		for _, item := range v {
			n += countParts(item)
		}
	}

	return n
}

// A walk goes the way of the validator through a schema, and counts: where the validator may
// stop early, it goes on.
type walk struct {
	left  int // steps; below zero there were too many
	depth int
	here  []*jsonschema.Schema // through which it has come to the value where it is
}

// enter counts a look of s at a value with so many properties, and reports whether to go on.
func (w *walk) enter(s *jsonschema.Schema, properties int) bool {
	w.left -= 1 + properties + len(w.here)/valuesAStep
	if s.Enum != nil {
		w.left -= len(s.Enum.Values) / valuesAStep
	}
	if w.depth > maxDepth || s.RecursiveRef != nil || s.DynamicRef != nil {
		w.left = -1 // what these lead to depends on the way that led here
	}
	return w.left >= 0
}

// partsHere returns the parts of s that look at the same value as s does.
func partsHere(s *jsonschema.Schema) []*jsonschema.Schema {
	parts := []*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else}
	parts = append(parts, s.AllOf...)
	parts = append(parts, s.AnyOf...)
	parts = append(parts, s.OneOf...)

	for _, part := range s.DependentSchemas {
		parts = append(parts, part)
	}
	for _, part := range s.Dependencies {
		parts = append(parts, asSchema(part))
	}

	return parts
}

// asSchema returns a part that may be something else as well, or nil.
func asSchema(part any) *jsonschema.Schema {
	s, _ := part.(*jsonschema.Schema)
	return s
}

// visit counts what s does with a value. A nil schema does nothing.
func (w *walk) visit(s *jsonschema.Schema, value any) {
	if s == nil || w.left < 0 {
		return
	}

	object, _ := value.(map[string]any)
	if !w.enter(s, len(object)) || slices.Contains(w.here, s) { // in a circle the validator ends
		return
	}

	w.depth++
	w.here = append(w.here, s)
	for _, part := range partsHere(s) {
		w.visit(part, value)
	}

	above := w.here[:len(w.here)-1]

	// Parts of the value are other places, where the schemas of this one may be applied
	// again.
	w.here = nil
	defer func() { w.depth, w.here = w.depth-1, above }()
	for name, v := range object {
		w.visitProperty(s, name, v)
	}

	list, _ := value.([]any)
	for i, item := range list {
		w.visitItem(s, i, item)
	}
}

// visitProperty counts what s does with a property of an object.
func (w *walk) visitProperty(s *jsonschema.Schema, name string, value any) {
	w.visit(s.PropertyNames, name)

	part, known := s.Properties[name]
	w.visit(part, value)

	for pattern, part := range s.PatternProperties {
		if w.left--; w.left >= 0 && pattern.MatchString(name) {
			known = true
			w.visit(part, value)
		}
	}

	if !known {
		w.visit(asSchema(s.AdditionalProperties), value)
	}

	w.visit(s.UnevaluatedProperties, value)
}

// visitItem counts what s does with an item of a list.
func (w *walk) visitItem(s *jsonschema.Schema, i int, item any) {
	w.visit(s.Contains, item)
	w.visit(s.UnevaluatedItems, item)

	before := s.PrefixItems
	rest := s.Items2020

	switch items := s.Items.(type) { // of drafts before 2020
	case *jsonschema.Schema:
		rest = items
	case []*jsonschema.Schema:
		before, rest = items, asSchema(s.AdditionalItems)
	}

	if i < len(before) {
		w.visit(before[i], item)
	} else {
		w.visit(rest, item)
	}
}

// visitAll counts each part of s, as often as one comes to it: no part of a value is looked
// at more often.
func (w *walk) visitAll(s *jsonschema.Schema) {
	if s == nil || w.left < 0 || !w.enter(s, len(s.Properties)) {
		return
	}
	w.depth++
	defer func() { w.depth-- }()
	for _, part := range allParts(s) {
		w.visitAll(part)
	}
}

// allParts returns the parts of s, those that it refers to included; some are nil.
func allParts(s *jsonschema.Schema) []*jsonschema.Schema {
	parts := append(partsHere(s), s.PropertyNames, asSchema(s.AdditionalProperties), s.UnevaluatedProperties,
		s.Contains, asSchema(s.Items), asSchema(s.AdditionalItems), s.Items2020, s.UnevaluatedItems)

	parts = append(parts, s.PrefixItems...)
	if items, ok := s.Items.([]*jsonschema.Schema); ok {
		parts = append(parts, items...)
	}

	for _, part := range s.Properties {
		parts = append(parts, part)
	}
	for _, part := range s.PatternProperties {
		parts = append(parts, part)
	}

	return parts
}
