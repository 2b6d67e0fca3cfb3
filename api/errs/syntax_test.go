package errs_test

import (
	"encoding/json"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/api/errs"
)

// TestFaultsOfYAML: no message of the YAML package is left in what users make wrong.
func TestFaultsOfYAML(t *testing.T) {
	for text, want := range map[string]string{
		"a: b: c":              `a second ": "`,
		"a: 1\n b: 2":          `indented too far`,
		"a: {b: 1\nc: 2":       "a brace { is not closed",
		"a: [1, 2":             "a bracket [ is not closed",
		"p:\n    a: 1\n  b: 2": "indent the keys of one mapping alike",
		"- a\nb: c":            `each element begins with "- "`,
		"a: 1\nb\nc: 2":        `":"`,
		"a: - b":               `begin the list on a line of its own`,
		"a:\n\tb: 1":           "indent by blanks",
		"a: @x":                "put the text in quotes",
		"a: 'it''s":            "a quote is not closed",
		`a: "x\q"`:             "a backslash",
		"a: *nope":             "&nope",
		"a: &x {b: *x}":        "stands within what it names",
		"a: \x01":              "control character",
		"{\"a\": 1, \"b\": ":   "a value is missing",
	} {
		var v any
		err := yaml.Unmarshal([]byte(text), &v)
		if err == nil {
			t.Errorf("%q is valid YAML: %v", text, v)
			continue
		}
		if _, got := errs.YAMLFault(err); !strings.Contains(got, want) {
			t.Errorf("%q: %q (of %q), want %q in it", text, got, err, want)
		}
	}
	if line, _ := errs.YAMLFault(yaml.Unmarshal([]byte("a: 1\nb: c: d\n"), new(any))); line != 2 {
		t.Errorf("line %d, want 2", line)
	}
}

// TestFaultsOfJSON: names of Go types and of parsers' states do not show.
func TestFaultsOfJSON(t *testing.T) {
	type file struct {
		Servers map[string]json.RawMessage `json:"servers"`
		Count   int                        `json:"count"`
		Names   []string                   `json:"names"`
	}
	for text, want := range map[string]string{
		`{"servers": []}`:      "servers: is a list, and has to be an object",
		`{"count": "three"}`:   "count: is a text, and has to be a whole number",
		`{"count": 1.5}`:       "count: is the number 1.5, and has to be a whole number",
		`{"names": true}`:      "names: is true or false, and has to be a list",
		`{"count": 1,}`:        "'}' stands where a name in quotes has to; a comma before } is one too many",
		`{"names": ["a",]}`:    "']' stands where a value has to; a comma before ] is one too many, and texts need quotes",
		`{"count": 1 "a": 2}`:  `'"' stands where a comma or } has to`,
		`{"count" 1}`:          `'1' stands where a colon has to`,
		`{"names": ["a" "b"]}`: `'"' stands where a comma or ] has to`,
		`{"count": tru3}`:      "'3' stands in a word that is none of true, false and null; put texts in quotes",
		`{"count": 1`:          "the text ends within a value: a bracket, a brace or a quote is not closed",
		`{} x`:                 "'x' stands behind the end of the value",
		"{\"a\": \"b\nc\"}":    `a text in quotes holds '\n'; write line ends as \n`,
	} {
		err := json.Unmarshal([]byte(text), new(file))
		if err == nil {
			t.Errorf("%q is valid", text)
		} else if got := errs.JSONFault(err); got != want {
			t.Errorf("%q: %q (of %q), want %q", text, got, err, want)
		}
	}
}
