package view

import (
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema/source"
)

// envelopes are the keys under which others put a schema: the response_format of OpenAI,
// a tool or a function of a model, and a tool of MCP.
var envelopes = []string{"schema", "json_schema", "parameters", "input_schema", "inputSchema", "function", "response_format", "output_schema", "outputSchema"}

// ofSchemas are keys that schemas have at the top, and envelopes do not.
var ofSchemas = []string{"properties", "items", "prefixItems", "$ref", "anyOf", "oneOf", "allOf", "$defs", "definitions", "additionalProperties", "patternProperties", "enum", "const", "required", "if"}

// maxEnvelopes bounds how many envelopes are around a schema.
const maxEnvelopes = 4

// Unwrap returns the schema in an envelope, with the envelope's name and description if
// the schema has none itself. What is no envelope is returned as it is.
func Unwrap(root *source.Node) *source.Node {
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
func insideOf(n *source.Node) *source.Node {
	if n.Kind == source.List && len(n.Items) == 1 && insideOf(n.Items[0]) != nil {
		return n.Items[0] // a list of one tool
	}

	if n.Kind != source.Map || slices.ContainsFunc(ofSchemas, func(key string) bool { return n.Get(key) != nil }) {
		return nil
	}

	if t := n.Get("type"); t != nil && (t.Kind != source.String || TypesByName[t.Text] != 0) {
		// A type that is none of JSON Schema's, such as "function", may be that of an
		// envelope.
		return nil
	}

	for _, key := range envelopes {
		if inner := n.Get(key); inner != nil && inner.Kind == source.Map {
			return inner
		}
	}
	return schemaUnder(n)
}

// schemaUnder returns the one schema of an envelope that stands under another name for one, such
// as schema_definition or responseSchema; nil if there is none, or more than one.
func schemaUnder(n *source.Node) (found *source.Node) {
	for i, key := range n.Keys {
		inner := n.Items[i]
		if inner.Kind != source.Map || !strings.Contains(strings.ToLower(key.Text), "schema") {
			continue
		}

		isSchema := inner.Get("type") != nil || slices.ContainsFunc(ofSchemas, func(key string) bool { return inner.Get(key) != nil })
		if !isSchema || found != nil {
			return nil
		}
		found = inner
	}
	return found
}

// titled returns a schema with the name and the description of its envelope, where it has
// none of its own. An envelope in an envelope takes them on for the one within.
func titled(inner, envelope *source.Node) *source.Node {
	name := "title"
	if insideOf(inner) != nil {
		name = "name"
	}

	out := inner
	for _, pair := range [][2]string{{"name", name}, {"description", "description"}} {
		if from := envelope.Get(pair[0]); from != nil && from.Kind == source.String && inner.Get(pair[1]) == nil {
			out = out.With(pair[1], from)
		}
	}

	return out
}
