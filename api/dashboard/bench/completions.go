package bench

import "github.com/coditect/mapreduce/api/schema"

// Completions are what may stand in a schema, by where it may: keys are "keywords" beside a type,
// "hints" among those of a property, "top" among those of the whole, and else the keyword or hint
// whose value is one of a few.
func Completions() map[string][]string {
	return map[string][]string{
		"keywords": {
			"type", "format", "title", "description", "enum", "const", "properties", "required", "items", "minimum", "maximum", "minLength", "maxLength",
			"pattern", "minItems", "maxItems", "uniqueItems", "additionalProperties", "anyOf", "oneOf", "allOf", "default", "examples", hintName,
		},
		"hints":        schema.HintNames(),
		"top":          {"key", "match", "date_order", "locale"},
		"within":       {"section", "chars", "column", "row"},
		"type":         Types(),
		"format":       Formats(),
		"pick":         {"first", "last", "max", "min", "longest", "all"},
		"merge":        {"vote", "first", "latest", "longest", "max", "min", "sum", "union", "highest_confidence", "concat"},
		"otherwise":    {"form"},
		"match":        {"exact", "near"},
		"date_order":   {"dmy", "mdy", "ymd"},
		"number_words": {"true"}, "derived": {"true"}, "uniqueItems": {"true"}, "additionalProperties": {"false"},
	}
}

// Types are those that a property may have.
func Types() []string { return []string{"string", "number", "integer", "boolean", "object", "array"} }

// Formats are those of a text that rules know by their form.
func Formats() []string {
	return []string{
		string(schema.Date), string(schema.DateTime), string(schema.Time), string(schema.Duration), string(schema.Email), string(schema.URI), string(schema.Currency),
	}
}
