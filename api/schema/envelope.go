package schema

import (
	"maps"
	"slices"
	"strings"
)

// envelopes are the keys under which others put a schema: the response_format of OpenAI,
// a tool or a function of a model, and a tool of MCP.
var envelopes = []string{"schema", "json_schema", "parameters", "input_schema", "inputSchema", "function", "response_format", "output_schema", "outputSchema"}

// ofSchemas are keys that schemas have at the top, and envelopes do not.
var ofSchemas = []string{"properties", "items", "prefixItems", "$ref", "anyOf", "oneOf", "allOf", "$defs", "definitions", "additionalProperties", "patternProperties", "enum", "const", "required", "if"}

// maxEnvelopes bounds how many envelopes are around a schema.
const maxEnvelopes = 4

// unwrap returns the schema in an envelope, with the envelope's name and description if
// the schema has none itself. What is no envelope is returned as it is.
func unwrap(root *node) *node {
	n := root
	for range maxEnvelopes {
		inner := insideOf(n)
		if inner == nil {
			break
		}
		n = titled(inner, n)
	}
	return n
}

// insideOf returns what an envelope holds, nil if n is none.
func insideOf(n *node) *node {
	if n.kind == nodeList && len(n.items) == 1 && insideOf(n.items[0]) != nil {
		return n.items[0] // a list of one tool
	}

	if n.kind != nodeMap || slices.ContainsFunc(ofSchemas, func(key string) bool { return n.get(key) != nil }) {
		return nil
	}

	if t := n.get("type"); t != nil && (t.kind != nodeString || typesByName[t.text] != 0) {
		// A type that is none of JSON Schema's, such as "function", may be that of an
		// envelope.
		return nil
	}

	for _, key := range envelopes {
		if inner := n.get(key); inner != nil && inner.kind == nodeMap {
			return inner
		}
	}
	return schemaUnder(n)
}

// schemaUnder returns the one schema of an envelope that stands under another name for one, such
// as schema_definition or responseSchema; nil if there is none, or more than one.
func schemaUnder(n *node) (found *node) {
	for i, key := range n.keys {
		inner := n.items[i]
		if inner.kind != nodeMap || !strings.Contains(strings.ToLower(key.text), "schema") {
			continue
		}

		isSchema := inner.get("type") != nil || slices.ContainsFunc(ofSchemas, func(key string) bool { return inner.get(key) != nil })
		if !isSchema || found != nil {
			return nil
		}
		found = inner
	}
	return found
}

// titled returns a schema with the name and the description of its envelope, where it has
// none of its own. An envelope in an envelope takes them on for the one within.
func titled(inner, envelope *node) *node {
	name := "title"
	if insideOf(inner) != nil {
		name = "name"
	}

	out := inner
	for _, pair := range [][2]string{{"name", name}, {"description", "description"}} {
		if from := envelope.get(pair[0]); from != nil && from.kind == nodeString && inner.get(pair[1]) == nil {
			out = out.with(pair[1], from)
		}
	}

	return out
}

// with returns n with one more key.
func (n *node) with(key string, value *node) *node {
	out := *n
	out.keys = append(slices.Clip(n.keys), &node{kind: nodeString, line: value.line, col: value.col, text: key})
	out.items = append(slices.Clip(n.items), value)
	out.index = make(map[string]int, len(n.index)+1)
	maps.Copy(out.index, n.index)
	out.index[key] = len(out.items) - 1
	return &out
}
