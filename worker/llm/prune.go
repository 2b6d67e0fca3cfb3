package llm

import (
	"slices"
	"strings"
)

// pruneSteps bounds the work on one answer or schema. A schema whose branches refer to itself
// would take 2 to the power of maxDepth steps otherwise. The longest answers of models, of
// some 100,000 tokens, take fewer steps.
const pruneSteps = 100_000

// A pruner tells where null stands for a field that is absent, and removes it.
type pruner struct {
	schema *Schema
	steps  int // that are left
}

func newPruner(s *Schema) *pruner { return &pruner{schema: s, steps: pruneSteps} }

// pruneValue returns an answer without the nulls of fields that may be absent, but not null.
// Once pruneSteps are spent, the rest of the answer stays as it is.
func (s *Schema) pruneValue(v any) any { return newPruner(s).pruneNulls(s.doc, v, 0) }

// takeStep reports whether a step was left, and takes it.
func (p *pruner) takeStep() bool {
	if p.steps <= 0 {
		return false
	}
	p.steps--
	return true
}

// pruneNulls returns a value without the nulls of fields that may be absent, but not
// null: strict dialects have no other way to leave one out.
func (p *pruner) pruneNulls(schema object, v any, depth int) any {
	if depth > maxDepth || !p.takeStep() {
		return v
	}

	if target, ok := p.schema.resolveRef(schema); ok {
		return p.pruneNulls(target, v, depth+1)
	}

	// All branches are applied: which of them the answer is of is not known.
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		for _, branch := range schema.getList(key) {
			if b, ok := branch.(object); ok {
				v = p.pruneNulls(b, v, depth+1)
			}
		}
	}

	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = p.pruneNulls(schema.getObject("items"), item, depth+1)
		}
		return out
	case object:
		return p.pruneObject(schema, v, depth)
	}
	return v
}

func (p *pruner) pruneObject(schema, v object, depth int) object {
	out := object{}
	for _, m := range v {
		field, known := schema.getObject("properties").get(m.key)
		sub, _ := field.(object)
		if known && m.value == nil && !slices.Contains(schema.getList("required"), any(m.key)) && !p.takesNull(sub, 0) {
			continue
		}
		out = append(out, member{m.key, p.pruneNulls(sub, m.value, depth+1)})
	}
	return out
}

// takesNull reports whether a schema takes null. It returns true if that is not known, so
// that the null stays.
func (p *pruner) takesNull(schema object, depth int) bool {
	if depth > maxDepth || !p.takeStep() {
		return true
	}
	if target, ok := p.schema.resolveRef(schema); ok {
		return p.takesNull(target, depth+1)
	}

	// Values that are listed decide before types do.
	if v, ok := schema.get("const"); ok {
		return v == nil
	}
	if values := schema.getList("enum"); values != nil {
		return slices.Contains(values, nil)
	}

	for _, key := range []string{"anyOf", "oneOf"} {
		if branches := schema.getList(key); branches != nil {
			return slices.ContainsFunc(branches, func(b any) bool {
				sub, _ := b.(object)
				return p.takesNull(sub, depth+1)
			})
		}
	}

	switch t, _ := schema.get("type"); t := t.(type) {
	case string:
		return t == "null"
	case []any:
		return slices.Contains(t, any("null"))
	}
	return true
}

// resolveRef returns the schema that a reference within the document names.
func (s *Schema) resolveRef(schema object) (object, bool) {
	rest, ok := strings.CutPrefix(schema.getText("$ref"), "#")
	if !ok {
		return nil, false
	}

	at := any(s.doc)
	for _, step := range strings.Split(rest, "/")[1:] {
		o, ok := at.(object)
		if !ok {
			return nil, false
		}
		if at, ok = o.get(strings.NewReplacer("~1", "/", "~0", "~").Replace(step)); !ok {
			return nil, false
		}
	}

	o, ok := at.(object)
	return o, ok
}
