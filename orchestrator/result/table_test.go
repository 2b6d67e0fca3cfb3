package result_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/orchestrator/result"
)

// TestTableOfAReport checks how people see a comparison: references as numbers in order and once each, columns
// by their titles and none that is empty, and numbers with the decimals of the schema or of the quote (D8).
func TestTableOfAReport(t *testing.T) {
	const source = `{"title": "t", "type": "object", "properties": {"rows": {"type": "array", "items": {"type": "object", "properties": {
		"media": {"title": "Source", "type": "string"}, "price": {"type": "number"}, "cost": {"type": "number", "multipleOf": 0.01},
		"count": {"type": "integer"}, "covered": {"type": "boolean"}, "references": {"type": "array", "items": {"type": "string"}}, "error": {"type": "string"}}}}}}`
	const rows = `[
		{"media": "A", "price": 262.9, "cost": 3, "count": 4, "covered": true, "references": ["REF_0000000b", "REF_0000000a", "REF_0000000b"], "error": null},
		{"media": "B", "price": 7, "count": 12, "covered": false, "references": ["REF_0000000a", "and others"], "error": null},
		{"media": "C", "price": 1234.5, "references": ["REF_0000000c", "REF_0000000b"]}]`
	quotes := map[string]string{"REF_0000000a": "twelve of them", "REF_0000000b": "It costs 262.90, as 4.00 others.", "REF_0000000c": "1.234,50 €"}

	columns, cells, err := result.Table(source, rows, quotes)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Source", "Price", "Cost", "Count", "Covered", "References"}, columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	want := [][]string{
		{"A", "262.90", "3.00", "4", "yes", "[1, 2]"},
		{"B", "7", "", "12", "no", "[2] and others"},
		{"C", "1234.50", "", "", "", "[1, 3]"},
	}
	if diff := cmp.Diff(want, cells); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}
