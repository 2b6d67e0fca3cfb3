package answer

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Hints say of places of answers what their schema cannot. A place is a JSON pointer.
type Hints struct {
	// Values are objects of which one part is what was asked for, as a value among its
	// quotes: a value alone stands for all of it.
	Values []Principal

	// Empty are parts that say nothing if they are empty, and may be left out: what to put
	// in their place.
	Empty []Filler

	// Remarks are lists of which an element that does not fit can be left out. None of them
	// holds a value.
	Remarks *regexp.Regexp

	// Shares are numbers from 0 to 1, such as how sure a model is. None of them is a value.
	Shares *regexp.Regexp
}

// A Principal names the part of objects that a value alone stands for.
type Principal struct {
	Place *regexp.Regexp // of the objects
	Key   string
	Texts string // the key of a list of texts that show the value
}

// A Filler is what stands for a part that was left out.
type Filler struct {
	Place *regexp.Regexp
	Value any
}

// A Shape is what a JSON Schema says of the shape of values. It is immutable.
type Shape struct {
	root  any
	hints Hints
}

// NewShape returns the shape of a JSON Schema, which has to be JSON.
func NewShape(schema []byte, hints Hints) (*Shape, error) {
	p := &parser{text: string(schema), steps: leastSteps + stepsPerByte*len(schema)}
	root, err := p.parseValue(0, false)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return &Shape{root, hints}, nil
}

// alignSteps bounds the work on one value: alternatives that refer to themselves would take
// very long otherwise.
const alignSteps = 200_000

// Align brings a candidate into the shape as far as it can. What does not fit is left as it is.
func (s *Shape) Align(c Candidate) (any, []Repair) {
	a := &aligner{shape: s, steps: alignSteps, repairs: slices.Clone(c.Repairs)}
	v := a.align(s.root, c.Value, "", 0)
	return v, a.repairs
}

// An aligner works on one value.
type aligner struct {
	shape   *Shape
	steps   int
	repairs []Repair
}

func (a *aligner) note(k Kind, path string) { a.repairs = append(a.repairs, Repair{k, path}) }

// resolve returns a schema without references at its top.
func (a *aligner) resolve(schema any) Object {
	for range maxDepth {
		o, _ := schema.(Object)
		ref, _ := o.Get("$ref")
		rest, ok := ref.(string)
		if !ok || !strings.HasPrefix(rest, "#") {
			return o
		}

		schema = a.shape.root
		for _, step := range strings.Split(rest, "/")[1:] {
			at, _ := schema.(Object)
			schema, _ = at.Get(strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
		}
	}
	return nil
}

// align brings a value into the shape of a schema.
func (a *aligner) align(schema, v any, path string, depth int) any {
	o := a.resolve(schema)
	if a.steps--; a.steps < 0 || depth > maxDepth || o == nil {
		return v
	}

	for _, key := range []string{"anyOf", "oneOf"} {
		if branches := listOf(o, key); len(branches) > 0 {
			v = a.alignBranch(branches, v, path, depth)
		}
	}
	for _, part := range listOf(o, "allOf") {
		v = a.align(part, v, path, depth+1)
	}

	types := typesOf(o)
	if v == nil && slices.Contains(types, "null") || len(types) == 0 && !hasValues(o) {
		return v
	}

	// Several types are alternatives, each with what the schema says besides.
	if len(types) > 1 {
		branches := make([]any, len(types))
		for i, t := range types {
			branches[i] = withType(o, t)
		}
		return a.alignBranch(branches, v, path, depth)
	}

	switch first(types) {
	case "object":
		return a.alignObject(o, v, path, depth)
	case "array":
		return a.alignList(o, v, path, depth)
	}
	return a.alignScalar(o, first(types), v, path, depth)
}

// alignBranch brings a value into the shape of the alternative that takes the least to fit.
func (a *aligner) alignBranch(branches []any, v any, path string, depth int) any {
	best, least := v, -1
	var repairs []Repair
	for _, branch := range branches {
		try := &aligner{shape: a.shape, steps: a.steps}
		got := try.align(branch, v, path, depth+1)
		cost := len(try.repairs) + 100*try.countMisfits(branch, got, depth+1)
		a.steps = try.steps
		if least < 0 || cost < least {
			best, least, repairs = got, cost, try.repairs
		}
		if least == 0 {
			break
		}
	}

	a.repairs = append(a.repairs, repairs...)
	return best
}

// countMisfits counts what does not fit a schema by its shape alone.
func (a *aligner) countMisfits(schema, v any, depth int) int {
	o := a.resolve(schema)
	if a.steps--; a.steps < 0 || depth > maxDepth || o == nil {
		return 0
	}

	// Of alternatives the one that fits best counts, and nothing that stands beside them.
	for _, key := range []string{"anyOf", "oneOf"} {
		if branches := listOf(o, key); len(branches) > 0 {
			least := -1
			for _, b := range branches {
				if n := a.countMisfits(b, v, depth+1); least < 0 || n < least {
					least = n
				}
			}
			return least
		}
	}

	if values, ok := valuesOf(o); ok && !slices.ContainsFunc(values, func(w any) bool { return sameScalar(w, v) }) {
		return 1
	}
	if types := typesOf(o); len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return isOfType(t, v) }) {
		return 1
	}

	n := 0
	switch v := v.(type) {
	case Object:
		named := objectOf(o, "properties")
		for _, key := range listOf(o, "required") {
			if name, _ := key.(string); v.index(name) < 0 {
				n++
			}
		}
		for _, m := range v {
			if sub, ok := named.Get(m.Key); ok {
				n += a.countMisfits(sub, m.Value, depth+1)
			} else if extra, _ := o.Get("additionalProperties"); extra == false {
				n++
			}
		}
	case []any:
		items, _ := o.Get("items")
		for _, item := range v {
			n += a.countMisfits(items, item, depth+1)
		}
	}
	return n
}

// isOfType reports whether a value is of a type of JSON Schema.
func isOfType(t string, v any) bool {
	switch v := v.(type) {
	case nil:
		return t == "null"
	case bool:
		return t == "boolean"
	case string:
		return t == "string"
	case json.Number:
		return t == "number" || t == "integer" && isWhole(string(v))
	case []any:
		return t == "array"
	case Object:
		return t == "object"
	}
	return false
}

// isWhole reports whether a number of JSON has no fraction, as it is written.
func isWhole(n string) bool {
	whole, fraction, _ := strings.Cut(n, ".")
	return !strings.ContainsAny(whole, "eE") && strings.Trim(fraction, "0") == ""
}

// sameScalar reports whether two values are the same text, number or word.
func sameScalar(a, b any) bool {
	x, isNumber := a.(json.Number)
	y, areNumbers := b.(json.Number)
	if isNumber && areNumbers {
		m, errX := strconv.ParseFloat(string(x), 64)
		n, errY := strconv.ParseFloat(string(y), 64)
		return errX == nil && errY == nil && m == n
	}

	switch a.(type) {
	case string, bool, nil:
		return a == b
	}
	return false
}

// typesOf returns the types that a schema names, or that its keywords show.
func typesOf(o Object) []string {
	switch t, _ := o.Get("type"); t := t.(type) {
	case string:
		return []string{t}
	case []any:
		var all []string
		for _, one := range t {
			if name, ok := one.(string); ok {
				all = append(all, name)
			}
		}
		return all
	}

	if o.index("properties") >= 0 {
		return []string{"object"}
	}
	if o.index("items") >= 0 {
		return []string{"array"}
	}
	return nil
}

// withType returns a schema of one of its types. Values of an enumeration are of one type each.
func withType(o Object, t string) Object {
	out := slices.Clone(o)
	out[out.index("type")].Value = t
	if i := out.index("enum"); i >= 0 {
		values, _ := out[i].Value.([]any)
		out[i].Value = slices.DeleteFunc(slices.Clone(values), func(v any) bool { return !isOfType(t, v) })
	}
	return out
}

func listOf(o Object, key string) []any {
	v, _ := o.Get(key)
	list, _ := v.([]any)
	return list
}

func objectOf(o Object, key string) Object {
	v, _ := o.Get(key)
	sub, _ := v.(Object)
	return sub
}

// valuesOf returns the values that a schema allows, if it lists them.
func valuesOf(o Object) ([]any, bool) {
	if v, ok := o.Get("const"); ok {
		return []any{v}, true
	}
	list := listOf(o, "enum")
	return list, len(list) > 0
}

func hasValues(o Object) bool { _, ok := valuesOf(o); return ok }

func first(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// child returns the pointer to a part of what stands at path.
func child(path, key string) string {
	return path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
