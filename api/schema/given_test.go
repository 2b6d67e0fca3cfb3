package schema_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/schema"
)

// TestAsked: what the program fills in is not asked of a model.
func TestAsked(t *testing.T) {
	const total = "total: {type: integer, x-coditect: {given: rows.count}}"
	for _, tt := range []struct{ name, text, want string }{
		{
			"given", "{type: object, required: [total, summary], additionalProperties: false, properties: {summary: {type: string}, " + total + "}}",
			`{"additionalProperties":false,"properties":{"summary":{"type":"string"}},"required":["summary"],"type":"object"}`,
		},
		{
			"rows", "{type: object, properties: {table: {type: array, x-coditect: {given: rows}, items: {type: object, properties: {a: {type: string}}}}, b: {type: string}, a: {type: string}}}",
			`{"properties":{"b":{"type":"string"},"a":{"type":"string"}},"type":"object"}`,
		},
		{
			"nothing given", "{type: object, required: [summary], properties: {summary: {type: string}}}",
			`{"properties":{"summary":{"type":"string"}},"required":["summary"],"type":"object"}`,
		},
		{
			"nothing left", "{type: object, properties: {" + total + "}}",
			`{"properties":{"total":{"type":"integer"}},"type":"object"}`,
		},
		{
			"counted", "{type: object, minProperties: 2, properties: {summary: {type: string}, " + total + "}}",
			`{"minProperties":2,"properties":{"summary":{"type":"string"},"total":{"type":"integer"}},"type":"object"}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := schema.Parse("s.yaml", []byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(s.Asked())); diff != "" {
				t.Error(diff)
			}
		})
	}
}
