package schema

import (
	"slices"

	"github.com/coditect/mapreduce/api/schema/source"
)

// tying are the keywords that may ask for a property from elsewhere than the list of required
// ones, or count properties.
var tying = []string{
	"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "$dynamicRef",
	"dependentRequired", "dependentSchemas", "dependencies", "minProperties", "maxProperties",
}

// withoutGiven returns a schema without those of its properties that the program fills in. It is
// returned as it is if nothing would be left to write, or if it ties its properties together, so
// that it may be fulfilled by nothing without them.
func withoutGiven(n *source.Node, all []Property) *source.Node {
	given := make(map[string]bool)
	for i := range all {
		if all[i].Hints.Given != "" {
			given[all[i].Name] = true
		}
	}

	props := n.Get("properties")
	if len(given) == 0 || props == nil || slices.ContainsFunc(tying, func(key string) bool { return n.Get(key) != nil }) {
		return n
	}

	left := props.Pick(func(key, _ *source.Node) bool { return !given[key.Text] })
	if len(left.Items) == 0 {
		return n
	}

	// What is no property any more cannot be required either.
	out := n.Replace("properties", left)
	if required := n.Get("required"); required != nil {
		out = out.Replace("required", required.Pick(func(_, name *source.Node) bool { return !given[name.Text] }))
	}
	return out
}
