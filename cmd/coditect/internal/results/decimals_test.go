package results_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results"
)

// decimalSchema has a number whose decimals it states, one without, a whole number and a text.
const decimalSchema = `{"title": "t", "type": "object", "properties": {"total": {"type": "number", "multipleOf": 0.01},
	"rate": {"type": "number"}, "pages": {"type": "integer"}, "code": {"type": "string"}}}`

// TestDecimals checks that reports show numbers with the decimals of the schema, or else of the quote, and
// no mean with fifteen of them; the data keeps the numbers.
func TestDecimals(t *testing.T) {
	var parts []*mapreduce.ResultPart
	for i, values := range []string{
		`"total": 262.9, "rate": 0.5, "pages": 3, "code": "7.5"`, `"total": 496, "rate": 19, "pages": 4, "code": "8"`, `"total": -233.47, "rate": 7, "pages": 4, "code": "9"`,
	} {
		parts = append(parts, &mapreduce.ResultPart{Record: fmt.Appendf(nil, `{%s, "_sources": ["d%d"], "_citations": {"rate": ["REF_%08x"], "pages": ["REF_000000aa"], "code": ["REF_000000bb"]}}`, values, i, i)})
	}
	for ref, quote := range map[string]string{"REF_00000000": "0,50 %", "REF_00000001": "19", "REF_00000002": "7.000", "REF_000000aa": "3.00", "REF_000000bb": "7.50"} {
		parts = append(parts, &mapreduce.ResultPart{Citation: &mapreduce.Citation{Ref: ref, Document: "d", Unit: "d", Quote: quote, Grade: "exact"}})
	}
	parts = append(parts, &mapreduce.ResultPart{Summary: &mapreduce.Summary{Statistics: []byte(`{
		"total": {"count": 3, "null": 0, "distinct": 3, "min": -233.47, "max": 496, "mean": 175.14333333333335, "sum": 525.43},
		"pages": {"count": 3, "null": 0, "distinct": 2, "min": 3, "max": 4, "mean": 3.6666666666666665, "sum": 11}}`)}})

	s := &store{job: job(), parts: parts}
	s.job.Spec.Schema = []byte(decimalSchema)
	dir := write(t, s, results.Config{})

	text := readFile(t, dir, "report.md")
	for _, want := range []string{
		"| total | 262.90 |", "| total | 496.00 |", "| total | -233.47 |", "| rate | 0.50 |", "| rate | 19 |", "| rate | 7.000 |",
		"| pages | 3 |", "| code | 7.5 |", "| -233.47 | 496.00 | 175.14 | 525.43 |", "| 3 | 4 | 3.67 | 11 |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("report.md lacks %q:\n%s", want, text)
		}
	}

	values := pageData(t, dir).Records[0].Values
	if values["total"] != "262.90" || values["rate"] != "0.50" || values["pages"] != "3" || values["code"] != "7.5" {
		t.Errorf("report.html shows %v", values)
	}
	if !strings.Contains(readFile(t, dir, "result.json"), `"total": 262.9,`) {
		t.Error("result.json does not have the number as such")
	}
}
