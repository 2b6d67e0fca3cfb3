package llm

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// A Dialect is the part of JSON Schema by which a vendor constrains answers. A keyword
// outside of it goes into the description of its field, and we check it. A keyword that
// cannot be approximated is an error.
type Dialect struct {
	Name        string
	All         bool     // everything is taken
	Keywords    []string // taken besides those of structure
	Formats     []string // taken; nil takes all
	Closed      bool     // every object lists its fields, and has no others
	AllRequired bool     // every field is required; what may be absent becomes nullable
	AnyOf       bool     // oneOf becomes anyOf
	OneType     bool     // a list of types becomes anyOf
	SmallMin    bool     // of minItems only 0 and 1
	NoAllOf     bool
	NoConst     bool // a constant becomes an enumeration of one
	LoneRef     bool // nothing stands beside a reference
	Named       bool // only fields that are named as properties can be required
}

// isStructural reports whether a keyword has rules of its own, beside those of Dialect.Keywords.
func isStructural(key string) bool {
	switch key {
	case "type", "properties", "required", "items", "enum", "const", "anyOf", "oneOf", "allOf",
		"$ref", "$defs", "definitions", "description", "title", "additionalProperties":
		return true
	}
	return false
}

// isSilent reports whether a keyword says nothing about what an answer may be.
func isSilent(key string) bool {
	switch key {
	case "$schema", "$id", "$comment", "$vocabulary", "$anchor", "default", "deprecated",
		"readOnly", "writeOnly", "unevaluatedProperties", "unevaluatedItems":
		return true
	}
	return strings.HasPrefix(key, "x-")
}

// In returns the schema in a vendor's dialect, always an object at the top. The error
// names the keyword that cannot be expressed, and its place.
func (s *Schema) In(d Dialect) (json.RawMessage, error) {
	if s == nil {
		s = &Schema{doc: object{{"type", "object"}, {"properties", object{}}}}
	}

	root := s.doc
	if s.wrap {
		root = wrapObject(root)
	}

	r := reducer{Dialect: d, schema: s, pruner: newPruner(s)}
	out, err := r.reduceSchema(root, "#", 0)
	if err != nil {
		return nil, err
	}
	return encodeJSON(out)
}

// wrapObject puts a schema into the one field of an object. Definitions stay at
// the top, where references look for them.
func wrapObject(root object) object {
	inner, outer := object{}, object{{"type", "object"}}
	for _, m := range root {
		if m.key == "$defs" || m.key == "definitions" {
			outer = append(outer, m)
		} else {
			inner = append(inner, m)
		}
	}
	return append(outer,
		member{"properties", object{{wrapped, inner}}},
		member{"required", []any{wrapped}},
		member{"additionalProperties", false})
}

// A reducer brings one schema into a dialect.
type reducer struct {
	Dialect
	schema *Schema
	pruner *pruner // of all fields together
}

func (r *reducer) refuseKeyword(where, keyword, why string) error {
	return NewError(BadSchema, "%s cannot express %s at %s: %s; change that in the schema, or ask another provider", r.Name, keyword, where, why)
}

// reduceSchema reduces one schema.
func (r *reducer) reduceSchema(v any, where string, depth int) (any, error) {
	n, ok := v.(object)
	switch {
	case depth > maxDepth:
		return nil, r.refuseKeyword(where, "the schema", "it is nested too deeply")
	case !ok && r.Closed:
		return nil, r.refuseKeyword(where, "a schema of true or false", "every value needs a type")
	case !ok:
		return v, nil
	}

	if types := n.getList("type"); types != nil && r.OneType {
		return r.reduceSchema(spreadTypes(n, types), where, depth+1)
	}

	if err := r.checkExpressible(n, where); err != nil {
		return nil, err
	}

	if ref := n.getText("$ref"); ref != "" && r.LoneRef {
		return object{{"$ref", ref}}, nil
	}

	out := object{}
	var notes []string
	// What the dialect lacks goes into the description, so that nothing of the schema is
	// lost.
	for _, m := range n {
		switch {
		case isSilent(m.key):
		case isStructural(m.key):
			sub, err := r.reduceKeyword(n, m, where, depth)
			if err != nil {
				return nil, err
			}
			out = append(out, sub...)
		case r.takesKeyword(m):
			out = append(out, m)
		default:
			notes = append(notes, keywordNote(m))
		}
	}

	return r.closeObject(appendNotes(out, notes), n), nil
}

// checkExpressible refuses keywords that would make right answers impossible.
func (r *reducer) checkExpressible(n object, where string) error {
	if ref := n.getText("$ref"); ref != "" {
		if _, ok := r.schema.resolveRef(n); !ok || (r.schema.wrap && ref == "#") {
			return r.refuseKeyword(where, "$ref "+strconv.Quote(ref), "it refers to something outside of the definitions")
		}
		return nil
	}

	if _, ok := n.get("allOf"); ok && r.NoAllOf {
		return r.refuseKeyword(where, "allOf", "write the parts out as one")
	}

	if !r.Closed {
		return nil
	}

	// A dialect whose objects are closed wants a type for every value.
	for _, key := range []string{"patternProperties", "prefixItems", "$dynamicRef"} {
		if _, ok := n.get(key); ok {
			return r.refuseKeyword(where, key, "the provider has no such keyword")
		}
	}
	if extra, ok := n.get("additionalProperties"); ok && extra != false {
		return r.refuseKeyword(where, "additionalProperties", "every field of an object has to be named")
	}
	if _, named := n.get("properties"); n.getText("type") == "object" && !named {
		return r.refuseKeyword(where, "an object without properties", "every field of an object has to be named")
	}
	if _, items := n.get("items"); n.getText("type") == "array" && !items {
		return r.refuseKeyword(where, "an array without items", "its items need a type")
	}

	for _, key := range []string{"type", "enum", "const", "anyOf", "oneOf", "allOf"} {
		if _, ok := n.get(key); ok {
			return nil
		}
	}

	return r.refuseKeyword(where, "a value of any type", "every value needs a type")
}

// reduceKeyword reduces a keyword that holds schemas, or says how they relate.
func (r *reducer) reduceKeyword(n object, m member, where string, depth int) (object, error) {
	where += "/" + m.key
	switch m.key {
	case "properties", "$defs", "definitions":
		fields, err := r.reduceFields(n, m, where, depth)
		return object{{m.key, fields}}, err
	case "items":
		items, err := r.reduceSchema(m.value, where, depth+1)
		return object{{m.key, items}}, err
	case "anyOf", "oneOf", "allOf":
		branches, err := r.reduceBranches(m, where, depth)
		key := m.key
		if key == "oneOf" && r.AnyOf {
			key = "anyOf"
		}
		return object{{key, branches}}, err
	case "const":
		if r.NoConst {
			return object{{"enum", []any{m.value}}}, nil
		}
	case "required":
		if r.AllRequired {
			return nil, nil // closeObject says it
		}
		if r.Named {
			m.value = namedOnly(n, m)
		}
	case "additionalProperties":
		if r.Closed {
			return nil, nil // closeObject says it
		}
	}
	return object{m}, nil
}

// namedOnly returns the required fields of an object that are among its properties.
func namedOnly(n object, m member) any {
	fields, _ := n.get("properties")
	named, _ := fields.(object)
	list, _ := m.value.([]any)

	out := []any{}
	for _, name := range list {
		key, isText := name.(string)
		if _, has := named.get(key); isText && has {
			out = append(out, name)
		}
	}
	return out
}

// spreadTypes writes a list of types as one schema for each.
func spreadTypes(n object, types []any) object {
	rest, out := object{}, object{}
	for _, m := range n {
		switch m.key {
		case "type":
		case "title", "description":
			out = append(out, m)
		default:
			rest = append(rest, m)
		}
	}

	branches := make([]any, len(types))
	for i, t := range types {
		branches[i] = object{{"type", t}}
		// The other keywords say nothing of null.
		if t != "null" {
			branches[i] = append(object{{"type", t}}, rest...)
		}
	}

	return append(out, member{"anyOf", branches})
}

// reduceFields reduces schemas by name.
func (r *reducer) reduceFields(n object, m member, where string, depth int) (object, error) {
	out := object{}

	all, _ := m.value.(object)
	for _, f := range all {
		v, err := r.reduceSchema(f.value, where+"/"+f.key, depth+1)
		if err != nil {
			return nil, err
		}

		sub, _ := f.value.(object)
		// A field that may be absent takes null instead, unless it does already.
		if r.AllRequired && m.key == "properties" && !slices.Contains(n.getList("required"), any(f.key)) && !r.pruner.takesNull(sub, 0) {
			v = orNull(v)
		}

		out = append(out, member{f.key, v})
	}
	return out, nil
}

func (r *reducer) reduceBranches(m member, where string, depth int) ([]any, error) {
	list, _ := m.value.([]any)
	out := make([]any, len(list))
	for i, b := range list {
		v, err := r.reduceSchema(b, where+"/"+strconv.Itoa(i), depth+1)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// takesKeyword reports whether the dialect has a keyword with this value.
func (r *reducer) takesKeyword(m member) bool {
	if r.All || !slices.Contains(r.Keywords, m.key) {
		return r.All
	}

	switch m.key {
	case "format":
		name, _ := m.value.(string)
		return r.Formats == nil || slices.Contains(r.Formats, name)
	case "minItems":
		n, _ := m.value.(json.Number)
		return !r.SmallMin || n == "0" || n == "1"
	}
	return true
}

// closeObject lists the fields of an object as all there are.
func (r *reducer) closeObject(out, n object) object {
	fields, isObject := n.get("properties")
	if !isObject || !r.Closed {
		return out
	}

	if r.AllRequired {
		names := []any{}
		all, _ := fields.(object)
		for _, f := range all {
			names = append(names, f.key)
		}
		out = out.withKey("required", names)
	}

	return out.withKey("additionalProperties", false)
}

// orNull returns a schema that takes null too.
func orNull(v any) any {
	n, ok := v.(object)
	if !ok {
		return v
	}
	_, isEnum := n.get("enum")
	_, isConst := n.get("const")
	if t := n.getText("type"); t != "" && !isEnum && !isConst {
		return n.withKey("type", []any{t, "null"})
	}
	return object{{"anyOf", []any{n, object{{"type", "null"}}}}}
}

// keywordNote says a keyword in words.
func keywordNote(m member) string {
	raw, err := encodeJSON(m.value)
	if err != nil {
		return m.key
	}
	return m.key + ": " + string(raw)
}

// appendNotes adds notes to a description.
func appendNotes(out object, notes []string) object {
	if len(notes) == 0 {
		return out
	}
	text := "{" + strings.Join(notes, ", ") + "}"
	if d := out.getText("description"); d != "" {
		text = d + " " + text
	}
	return out.withKey("description", text)
}
