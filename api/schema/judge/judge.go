// Package judge holds values against a schema: Record says which values of a record may stand,
// which are refused and why, and what is lacking; Value does so for one value by itself.
//
// It is pure, and reads no schema itself.
package judge

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/source"
	"github.com/coditect/mapreduce/api/schema/validator"
)

// A Breach is a constraint of the schema that a value of a record breaks, or that the
// record breaks because a value is missing.
type Breach struct {
	Field      string // path; "" if it is about the record as a whole
	Constraint string // the keyword of JSON Schema: minimum, enum, required, …
	Message    string // what the constraint asks for
}

// Error returns the breach as a sentence.
func (b *Breach) Error() string {
	return strings.TrimPrefix(b.Field+" ", " ") + "breaks " + b.Constraint + ": " + b.Message
}

// A Judgement says which values of a record break the schema.
type Judgement struct {
	Kept    map[string]any    // values that may stand, by field path
	Refused map[string]Breach // the others, with the first constraint that each breaks
	Parts   []Part            // of kept values: what was taken out of them, with the constraint that it breaks
	Missing []Breach          // what the record lacks: of required fields, by path
}

// A placed breach is one at a place inside the value of its field.
type placed struct {
	Breach
	inside []string
	nulls  []string // names that the object at the place lacks, and that may be null
}

// Record checks the values of a record, by field path, against all that the schema
// says. A value that breaks a constraint is refused; of one with parts only the part with
// the breach, if the value can be without it: a member that is not required, an element of a
// list or an entry of a map. What is left is judged again, as other constraints may depend
// on that value, until it breaks nothing but constraints that ask for more values.
func Record(s *schema.Schema, values map[string]any) Judgement {
	j := Judgement{Kept: maps.Clone(values), Refused: map[string]Breach{}}
	for _, f := range s.Fields() {
		v, ok := j.Kept[f.Path]
		if !ok {
			continue
		}

		b := refusal(f.Property, v)
		if b == nil {
			continue
		}

		// A value that is of the wrong form as a whole is refused; else it loses the parts
		// that are.
		sound, parts, ok := Sound(f.Property, v)
		if !ok {
			b.Field = f.Path
			j.refuse(*b)
			continue
		}

		j.Kept[f.Path] = sound
		for _, part := range parts {
			part.Field, part.Breach.Field = f.Path, f.Path
			j.Parts = append(j.Parts, part)
		}
	}

	// Null may be all that is lacking, so it is tried before values are refused for it.
	c, added := checkerOf(s), map[string]bool{}
	for {
		breaches, missing := c.breaches(j.Kept)
		j.Missing = missing

		if j.addNulls(breaches, added) {
			continue
		}

		if !slices.ContainsFunc(breaches, func(b placed) bool { return j.holds(b.Breach) }) {
			return j
		}

		j.applyBreaches(s, breaches)
	}
}

// applyBreaches takes out of the kept values what breaks a constraint. Of a list, the last
// elements go first, as their indexes change with those before them.
func (j *Judgement) applyBreaches(s *schema.Schema, breaches []placed) {
	taken := map[string]bool{}
	for _, b := range slices.Backward(breaches) {
		at := b.Field + pathWithin(b.inside)
		if !j.holds(b.Breach) || taken[at] {
			continue
		}

		taken[at] = true
		if len(b.inside) == 0 || !j.takeOut(s.Field(b.Field), b) {
			j.refuse(b.Breach)
		}
	}
}

func (j *Judgement) holds(b Breach) bool { _, ok := j.Kept[b.Field]; return ok }

func (j *Judgement) refuse(b Breach) {
	if j.holds(b) {
		delete(j.Kept, b.Field)
		j.Refused[b.Field] = b
		j.Parts = slices.DeleteFunc(j.Parts, func(p Part) bool { return p.Field == b.Field })
	}
}

// Value checks a value of a field by itself, or one element of a list, against
// what the schema says of it wherever it stands. It returns nil if nothing is broken, or
// nothing that the value cannot be without; then the record that holds the value may still
// break a constraint.
func Value(s *schema.Schema, path string, v any) *Breach {
	p := s.Field(path)
	if p == nil {
		return &Breach{Field: path, Constraint: "properties", Message: "the schema has no such field"}
	}

	element := p.IsElement(v)
	if element {
		p = p.Items
	}

	b := refusal(p, v)
	// A value with parts to be left out is judged without them.
	if sound, _, ok := Sound(p, v); b != nil && ok {
		v, b = sound, nil
	}

	if b == nil {
		// Constraints of a list as such, such as its length, say nothing of one element.
		part := element || p.Type == schema.Map
		if element {
			v = []any{v}
		}
		b = checkerOf(s).breachOf(path, v, part)
	}

	if b != nil {
		b.Field = path
	}

	return b
}

// breachOf returns the constraint that the value of a field breaks in a record without
// others. It leaves out constraints that hold only under a condition, names that null can
// stand for, and those of a list as such if the value is one of its elements.
func (c *checker) breachOf(path string, v any, element bool) *Breach {
	p := c.Field(path)
	for _, leaf := range c.faults(map[string]any{path: v}) {
		field, inside := c.fieldAt(leaf.at)
		if leaf.conditional || leaf.nulls != nil || field != path || element && inside == 0 {
			continue
		}

		least := 0 // steps to a part that the value itself is
		if element {
			least = 1
		}

		if removableSteps(p, v, leaf.at[len(leaf.at)-inside:]) > least {
			continue
		}

		return &Breach{Constraint: leaf.constraint, Message: leaf.message}
	}

	return nil
}

// refusal checks that v is in the form that Normalize gives values of p.
func refusal(p *schema.Property, v any) *Breach {
	err := p.Fits(v)
	if err == nil {
		return nil
	}

	b := &Breach{Constraint: "type", Message: err.Error()}
	text, isText := v.(string)
	switch {
	case p.Enum != nil && errors.Is(err, schema.ErrNotAllowed):
		b.Constraint = "enum"
	case isText && p.Type == schema.String && p.Format != "" && text != "":
		b.Constraint = "format"
	}

	return b
}

// breaches returns the constraints that the values break, and those that ask for
// more values.
func (c *checker) breaches(values map[string]any) (breaches []placed, missing []Breach) {
	for _, f := range c.faults(values) {
		b := Breach{Constraint: f.constraint, Message: f.message}
		if field, inside := c.fieldAt(f.at); field != "" {
			b.Field = field
			breaches = append(breaches, placed{b, f.at[len(f.at)-inside:], f.nulls})
			continue
		}

		below := c.pathAt(f.at)
		if f.lacking != nil {
			for _, name := range f.lacking {
				b.Field = strings.Trim(below+name, ".")
				missing = append(missing, b)
			}
			continue
		}

		for _, path := range slices.Sorted(maps.Keys(values)) { // no one value is to blame
			if strings.HasPrefix(path, below) {
				b.Field = path
				breaches = append(breaches, placed{Breach: b})
			}
		}

		if len(values) == 0 {
			missing = append(missing, Breach{Field: strings.Trim(below, "."), Constraint: f.constraint, Message: f.message})
		}
	}

	slices.SortStableFunc(breaches, func(a, b placed) int { // elements of lists in their order
		return cmp.Or(strings.Compare(a.Field, b.Field), comparePlaces(a.inside, b.inside))
	})
	slices.SortStableFunc(missing, func(a, b Breach) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Constraint, b.Constraint))
	})

	return breaches, slices.Compact(missing)
}

// comparePlaces orders places in a value: names as texts, indexes as numbers.
func comparePlaces(a, b []string) int {
	for i := range min(len(a), len(b)) {
		m, errA := strconv.Atoi(a[i])
		n, errB := strconv.Atoi(b[i])

		c := strings.Compare(a[i], b[i])
		if errA == nil && errB == nil {
			c = cmp.Compare(m, n)
		}

		if c != 0 {
			return c
		}
	}

	return cmp.Compare(len(a), len(b))
}

// A fault is what the validator says of one place of a record.
type fault struct {
	at          []string // names of properties and indexes of elements
	constraint  string
	message     string
	lacking     []string // names of properties that should stand at this place
	nulls       []string // these names, if all of them may be null
	conditional bool     // the constraint holds under a condition
}

// faults validates a record with values by field path.
func (c *checker) faults(values map[string]any) []fault {
	err := c.validate(values)
	var invalid *jsonschema.ValidationError
	var ofNumber *numberError
	switch {
	case errors.As(err, &invalid):
	case errors.As(err, &ofNumber):
		return []fault{{constraint: "type", message: err.Error()}}
	case err != nil:
		return []fault{{constraint: "schema", message: err.Error()}}
	default:
		return nil
	}

	all := c.faultsOf(invalid)
	slices.SortStableFunc(all, func(a, b fault) int { // the validator goes through maps
		return cmp.Or(slices.Compare(a.at, b.at), strings.Compare(a.constraint, b.constraint), strings.Compare(a.message, b.message))
	})
	return all
}

// faultsOf returns what the validator found, by places in a record.
func (c *checker) faultsOf(invalid *jsonschema.ValidationError) []fault {
	var all []fault
	for _, f := range c.leavesOf(invalid, nil) {
		if c.wrap {
			if len(f.at) == 0 {
				continue // about the list of records, of which this is only one
			}
			f.at = f.at[1:]
		}

		all = append(all, f)
	}
	return all
}

var english = message.NewPrinter(language.English)

// leavesOf returns the faults at the bottom of a tree of errors. Of alternatives of
// which none holds, and of what a list should contain, it returns the fault of the
// whole, unless one alternative lacks values only.
func (c *checker) leavesOf(e *jsonschema.ValidationError, all []fault) []fault {
	f := fault{at: e.InstanceLocation, message: e.ErrorKind.LocalizedString(english), conditional: isConditional(e.SchemaURL)}
	if words := e.ErrorKind.KeywordPath(); len(words) > 0 {
		f.constraint = words[0]
	}

	f.message = strings.TrimPrefix(f.message, f.constraint+": ")

	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		f.lacking, f.nulls = k.Missing, c.nullsAt(f.at, k.Missing)
	case *kind.MinProperties:
		f.lacking = []string{""} // any
	case *kind.DependentRequired:
		f.at = append(slices.Clone(f.at), k.Prop)
	case *kind.Dependency:
		f.at, f.constraint = append(slices.Clone(f.at), k.Prop), "dependencies"
	case *kind.PropertyNames:
		f.at = append(slices.Clone(f.at), k.Property)
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			one := f
			one.at = append(slices.Clone(f.at), name)
			all = append(all, one)
		}
		return all
	case *kind.Not:
		f.constraint = "not"
		f.message = "it matches the schema that not excludes"
	case *kind.FalseSchema:
		f.message = "no value is allowed here"
		f.constraint = cmp.Or(lastKeyword(e.SchemaURL), "false")
	case *kind.AnyOf, *kind.OneOf:
		return append(all, c.alternativeFaults(e, f)...)
	case *kind.Contains, *kind.MinContains, *kind.MaxContains:
	default:
		if len(e.Causes) > 0 {
			for _, cause := range e.Causes {
				all = c.leavesOf(cause, all)
			}
			return all
		}
	}
	return append(all, f)
}

// alternativeFaults returns the faults of alternatives of which none, or more than one,
// holds: of one that lacks values alone, first of one that lacks what may be null, or else of
// all values that any is about.
func (c *checker) alternativeFaults(e *jsonschema.ValidationError, whole fault) []fault {
	var inner, lacking []fault
	for _, cause := range e.Causes {
		branch := c.leavesOf(cause, nil)
		inner = append(inner, branch...)
		// An alternative that lacks values alone might still hold once these are found.
		if len(branch) == 0 || slices.ContainsFunc(branch, func(f fault) bool { return f.lacking == nil }) {
			continue
		}

		if !slices.ContainsFunc(branch, func(f fault) bool { return f.nulls == nil }) {
			return branch
		}

		if lacking == nil {
			lacking = branch
		}
	}

	if lacking != nil {
		return lacking
	}

	// Only faults at places inside tell more than the fault of the whole.
	inner = slices.DeleteFunc(inner, func(f fault) bool { return f.lacking != nil || len(f.at) <= len(whole.at) })

	if len(inner) == 0 {
		return []fault{whole}
	}

	for i := range inner {
		inner[i].constraint, inner[i].conditional = whole.constraint, true
	}

	return inner
}

// isConditional reports whether a part of a schema counts only under a condition.
func isConditional(at string) bool {
	for _, key := range []string{"/then", "/else", "/dependentSchemas/", "/anyOf/", "/oneOf/", "/dependencies/"} {
		if strings.Contains(at, key) {
			return true
		}
	}
	return false
}

// lastKeyword returns the last name of a JSON pointer that is no index.
func lastKeyword(pointer string) string {
	parts := strings.Split(pointer, "/")
	for _, part := range slices.Backward(parts) {
		if _, err := strconv.Atoi(part); err != nil {
			return part
		}
	}
	return ""
}

// fieldAt returns the field at a place of a record or around it, and how many steps
// the place is inside its value; "" if the place is an object with several fields.
func (c *checker) fieldAt(at []string) (path string, inside int) {
	if c.Bare() {
		return c.Properties[0].PathStep(), len(at)
	}

	// Objects are gone through as far as the schema names their properties.
	properties, rest, prefix := c.Properties, c.Rest != nil, ""
	for i, name := range at {
		n := slices.IndexFunc(properties, func(p schema.Property) bool { return p.Name == name })
		if n < 0 && rest {
			return prefix + schema.RestName, len(at) - i
		}

		if n < 0 {
			return "", 0
		}

		p := &properties[n]
		if p.Type != schema.Object {
			return prefix + p.PathStep(), len(at) - i - 1
		}

		properties, rest, prefix = p.Properties, p.Rest != nil, prefix+p.PathStep()+"."
	}
	return "", 0
}

// pathAt returns the path of a place that is an object with several fields, with a dot
// behind it unless it is the record.
func (c *checker) pathAt(at []string) string {
	properties, prefix := c.Properties, ""
	for _, name := range at {
		n := slices.IndexFunc(properties, func(p schema.Property) bool { return p.Name == name })
		if n < 0 {
			return prefix + name + "."
		}
		properties, prefix = properties[n].Properties, prefix+properties[n].PathStep()+"."
	}
	return prefix
}

// A checker holds values against a schema.
type checker struct {
	*schema.Schema
	of   *validator.Schema
	wrap bool // of expects a list of records
}

func checkerOf(s *schema.Schema) *checker {
	of, wrap := s.Validator()
	return &checker{s, of, wrap}
}

// instanceOf returns what the validator looks at: the record with values by field path, and
// with null at the paths that have to have it.
func (c *checker) instanceOf(values map[string]any, nulls map[string]bool) (any, error) {
	for path, v := range values {
		if err := boundNumbers(v); err != nil {
			return nil, &numberError{path, err}
		}
	}

	record, _ := instanceObject("", c.Properties, c.Rest != nil, values, nulls)
	instance := any(record)
	if c.Bare() {
		instance = record[schema.ValueName]
	}

	if c.wrap {
		instance = []any{instance}
	}

	return instance, nil
}

// instanceObject returns an object without what was not found, and whether anything was.
func instanceObject(prefix string, properties []schema.Property, rest bool, values map[string]any, nulls map[string]bool) (object map[string]any, some bool) {
	object = make(map[string]any, len(properties))
	if others, ok := values[prefix+schema.RestName].(map[string]any); ok && rest {
		for name, v := range others {
			object[name], some = v, true
		}
	}

	for i := range properties {
		p := &properties[i]
		path := prefix + p.PathStep()
		v := values[path]

		if inner, found := map[string]any(nil), false; p.Type == schema.Object {
			if inner, found = instanceObject(path+".", p.Properties, p.Rest != nil, values, nulls); found {
				v = inner
			}
		}

		if v != nil {
			object[p.Name], some = v, true
		} else if p.Required && p.Nullable || nulls[path] {
			// A null that the schema asks for is no value, so it does not count as one.
			object[p.Name] = nil
		}
	}

	return object, some
}

// A numberError says that a number in the value of a field is out of range.
type numberError struct {
	path string
	err  error
}

// Error names the field and the number.
func (e *numberError) Error() string { return e.path + ": " + e.err.Error() }

// boundNumbers refuses numbers that are out of range, because the validator computes with
// them exactly.
func boundNumbers(v any) error {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			if err := boundNumbers(item); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	case []any:
		for i, item := range v {
			if err := boundNumbers(item); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
	case json.Number:
		if _, ok := format.CanonicalNumber(v.String()); !ok {
			return fmt.Errorf("the number %s is out of range", source.Clip(v.String()))
		}
	}
	return nil
}
