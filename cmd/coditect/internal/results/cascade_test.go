package results_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/cmd/coditect/internal/results"
)

// The table of a cascade has a row for each field, and what is of the member as a whole once.
func TestCascadeRows(t *testing.T) {
	got, err := results.CascadeRows([]byte(`[{"member":"rules","oracle":"openai/gpt-5","target":0.95,"confidence":0.95,"seed":"7","units":400,"labels":75,"accepted":300,
		"measures":[{"field":"date","certified":380,"least_confidence":0.81,"alike":74,"of":75,"ended":"too dear"},
			{"field":"total","certified":0,"least_confidence":0,"alike":40,"of":50,"ended":"failed"}],"saved_tokens":9000,"saved_usd":0.25},
		{"member":"cheap","oracle":"openai/gpt-5","target":0.95,"units":25,"labels":5,"accepted":0,"measures":[{"certified":0,"alike":3,"of":5,"ended":"failed"}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"rules for openai/gpt-5", "date", "0.95", "400", "75", "74 of 75", "380 (95.0 %)", "0.81", "300 (75.0 %)", "$0.25", "too dear"},
		{"", "total", "", "", "", "40 of 50", "0 (0.0 %)", "", "", "", "failed"},
		{"cheap for openai/gpt-5", "whole record", "0.95", "25", "5", "3 of 5", "0 (0.0 %)", "", "0 (0.0 %)", "", "failed"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}

	of := `[{"member":"rules","oracle":"a/b","target":0.9,"units":9,"labels":5,"accepted":4,"certificate":{"kind":"bills","job_id":"mr_1","age_seconds":%s},
		"measures":[{"field":"x","certified":9,"least_confidence":0.5,"alike":5,"of":5,"ended":%s}]}]`
	for _, tt := range []struct{ age, ended, want string }{
		{`100,"held":true`, `"certificate"`, "certificate of job mr_1 for bills, 100 seconds old"},
		{`90000,"held":true`, `"certificate"`, "certificate of job mr_1 for bills, 25 hours old"},
		{`864001,"held":false`, `"all"`, "all; the certificate of job mr_1 for bills, 10 days old, did not hold and was dropped"},
	} {
		rows, err := results.CascadeRows(fmt.Appendf(nil, of, tt.age, tt.ended))
		if err != nil || len(rows) != 1 || rows[0][10] != tt.want {
			t.Errorf("%s: %q, %v, want %q", tt.age, rows, err, tt.want)
		}
	}

	if rows, err := results.CascadeRows(nil); err != nil || rows != nil {
		t.Errorf("a job without a cascade has %v, %v", rows, err)
	}
	if _, err := results.CascadeRows([]byte("{")); err == nil {
		t.Error("what is no JSON was read")
	}
}
