package jsonvalue_test

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/outcome/output/jsonvalue"
)

func TestLists(t *testing.T) {
	const output = `{"scope": {"sources": [1, {"a": 2}], "none": null, "word": "x"}, "": [3]}`
	for _, tt := range []struct {
		path, want, rule string
	}{
		{"scope.sources", `1|{"a": 2}`, ""},
		{"scope.none", "", ""},
		{"scope.word", "", "no list at scope.word"},
		{"scope.away", "", `no "away" at scope`},
		{"away", "", `no "away" at its top`},
		{"scope.sources.a", "", "no object at scope.sources"},
	} {
		list, err := jsonvalue.List([]byte(output), strings.Split(tt.path, "."))
		var got []string
		for _, e := range list {
			got = append(got, string(e))
		}
		if strings.Join(got, "|") != tt.want || (err == nil) != (tt.rule == "") || err != nil && !strings.Contains(err.Error(), tt.rule) {
			t.Errorf("%s: got %q, error %v", tt.path, got, err)
		}
	}
	if _, err := jsonvalue.List([]byte("[1"), nil); err == nil {
		t.Error("broken JSON has a list")
	}
}
