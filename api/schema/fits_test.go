package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/coditect/mapreduce/api/schema"
)

func TestFits(t *testing.T) {
	text := &schema.Property{Type: schema.String}
	list := &schema.Property{Type: schema.Array, Items: text}
	object := &schema.Property{Type: schema.Object, Properties: []schema.Property{{Name: "n", Type: schema.Integer}}}
	for _, tt := range []struct {
		name string
		p    *schema.Property
		v    any
		fits bool
	}{
		{"a text", text, "x", true},
		{"null", text, nil, false},
		{"an empty text", text, "", false},
		{"a number as a text", text, json.Number("1"), false},
		{"a number", &schema.Property{Type: schema.Number}, json.Number("-1.5"), true},
		{"a number that is not plain", &schema.Property{Type: schema.Number}, json.Number("1e9"), false},
		{"a whole number that is none", &schema.Property{Type: schema.Integer}, json.Number("1.5"), false},
		{"a text as a number", &schema.Property{Type: schema.Number}, "1", false},
		{"a truth", &schema.Property{Type: schema.Boolean}, true, true},
		{"a text as a truth", &schema.Property{Type: schema.Boolean}, "yes", false},
		{"a date", &schema.Property{Type: schema.String, Format: schema.Date}, "2024-02-29", true},
		{"a date that there was not", &schema.Property{Type: schema.String, Format: schema.Date}, "2023-02-29", false},
		{"one of the allowed", &schema.Property{Type: schema.String, Enum: []any{"a"}}, "a", true},
		{"none of the allowed", &schema.Property{Type: schema.String, Enum: []any{"a"}}, "b", false},
		{"a list", list, []any{"x"}, true},
		{"a list of others", list, []any{true}, false},
		{"a list as a text", text, []any{"x"}, false},
		{"an object", object, map[string]any{"n": json.Number("1")}, true},
		{"an object with more", object, map[string]any{"n": json.Number("1"), "m": "x"}, false},
		{"what JSON does not have", text, 1.5, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.p.Fits(tt.v); (err == nil) != tt.fits {
				t.Errorf("Fits(%v) = %v", tt.v, err)
			}
		})
	}
}
