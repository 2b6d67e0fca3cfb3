package waiting_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/pipeline/waiting"
)

func TestOfRuns(t *testing.T) {
	for field, vars := range map[string]map[string]string{
		"vars.review": {"review": "x"}, "vars.review_by": {"review": "all", "review_by": "x"},
		"vars.review_within": {"review": "all", "review_within": "soon", "review_then": "fail"}, "vars.review_then": {"review": "all", "review_within": "1h"},
	} {
		if _, err := waiting.Of(vars); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%v: %v", vars, err)
		}
	}

	r, err := waiting.Of(map[string]string{"review": "fuzzy , confidence<0.5,", "review_by": "admin", "review_within": "36h", "review_then": "fail"})
	want := waiting.Rule{When: []string{"fuzzy", "confidence<0.5"}, By: waiting.ByAdmin, Within: "36h", Then: waiting.Fail}
	if diff := cmp.Diff(want, r); err != nil || diff != "" || r.Time() != 36*time.Hour || r.Role() != "admin" {
		t.Errorf("%v; -want +got:\n%s", err, diff)
	}
	if diff := cmp.Diff(waiting.Reasons{Fuzzy: true, Confidence: 0.5}, r.Reasons()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if r, err := waiting.Of(nil); err != nil || r.IsSet() || !r.IsZero() {
		t.Errorf("of no variables: %+v, %v", r, err)
	}
}

func TestReasonsThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"soon": "no reason", "confidence": "write it as confidence", "confidence < 2": "up to 1", "confidence > 0.5": "above 0", "sample 0%": "above 0",
		"sample 101%": "up to 100", "sample 5": "sample 5%", "all of it": "no reason", "NaN": "no reason", "confidence < NaN": "above 0",
	} {
		if r, err := waiting.ParseReasons([]string{"fuzzy", text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %q", text, r, err, want)
		}
	}
	if _, err := waiting.ParseReasons([]string{"sample 5%", "sample 6%"}); err == nil || !strings.Contains(err.Error(), "names sample twice") {
		t.Errorf("a reason twice: %v", err)
	}
}
