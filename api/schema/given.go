package schema

import "slices"

// tying are the keywords that may ask for a property from elsewhere than the list of required
// ones, or count properties.
var tying = []string{
	"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "$dynamicRef",
	"dependentRequired", "dependentSchemas", "dependencies", "minProperties", "maxProperties",
}

// withoutGiven returns a schema without those of its properties that the program fills in. It is
// returned as it is if nothing would be left to write, or if it ties its properties together, so
// that it may be fulfilled by nothing without them.
func (n *node) withoutGiven(all []Property) *node {
	given := make(map[string]bool)
	for i := range all {
		if all[i].Hints.Given != "" {
			given[all[i].Name] = true
		}
	}

	props := n.get("properties")
	if len(given) == 0 || props == nil || slices.ContainsFunc(tying, func(key string) bool { return n.get(key) != nil }) {
		return n
	}

	left := props.pick(func(key, _ *node) bool { return !given[key.text] })
	if len(left.items) == 0 {
		return n
	}

	// What is no property any more cannot be required either.
	out := n.replace("properties", left)
	if required := n.get("required"); required != nil {
		out = out.replace("required", required.pick(func(_, name *node) bool { return !given[name.text] }))
	}
	return out
}

// pick returns a mapping or a list with the items alone that a function keeps, which is given the
// key as well; that is nil in lists.
func (n *node) pick(keep func(key, item *node) bool) *node {
	out := &node{kind: n.kind, line: n.line, col: n.col, index: make(map[string]int)}
	for i, item := range n.items {
		var key *node
		if n.kind == nodeMap {
			key = n.keys[i]
		}
		if !keep(key, item) {
			continue
		}

		if key != nil {
			out.index[key.text] = len(out.keys)
			out.keys = append(out.keys, key)
		}
		out.items = append(out.items, item)
	}
	return out
}

// replace returns a mapping with another value under a key that it has.
func (n *node) replace(key string, value *node) *node {
	out := *n
	out.items = slices.Clone(n.items)
	out.items[n.index[key]] = value
	return &out
}
