package eval_test

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/outcome/eval"
)

const reviewedResult = `{"aggregated_data": [
	{"number": "A-1", "total": 12.5, "seller": {"name": "Bär"}, "_sources": ["a"], "_citations": {"total": ["REF_2"]}, "_reviewed": {
		"number": {"verdict": "accept", "model": "A-1"},
		"total": {"verdict": "correct", "model": 12.0, "citations": ["REF_1"], "confidence": 0.75},
		"seller.name": {"verdict": "correct", "model": "Bar", "unverified": true}}},
	{"number": null, "total": 7, "seller": {"name": null}, "_sources": ["b"], "_confidence": {"total": 0.9}, "_reviewed": {
		"number": {"verdict": "absent", "model": "B-2"},
		"seller.name": {"verdict": "reject", "model": "Hen"}}},
	{"number": "C", "total": 1, "seller": {"name": null}, "_sources": ["c"]}
], "citations": {"REF_1": {"quote": "twelve"}, "REF_2": {"quote": "12.5"}}}`

// What people have decided is the truth, and what the job found is compared with it; what nobody has
// decided is neither right nor wrong.
func TestReviewed(t *testing.T) {
	truth, err := eval.ReadReviewed("r", strings.NewReader(reviewedResult))
	if err != nil {
		t.Fatal(err)
	}
	results, err := eval.ReadResult("r", strings.NewReader(reviewedResult))
	if err != nil {
		t.Fatal(err)
	}
	r := eval.Compare(nil, eval.Within(results, truth), truth)

	// One number was accepted, and one is not in its document; the total is wrong, and the seller unverified.
	got := map[string]int{}
	for _, d := range r.Errors {
		got[d.Document+" "+d.Field+" "+string(d.Kind)]++
	}
	for _, want := range []string{"a total wrong", "a seller.name unverified", "b number spurious"} {
		if got[want] != 1 {
			t.Errorf("%s: %d times; errors %v", want, got[want], got)
		}
	}
	if len(r.Errors) != 3 || r.Fields["number"].Precision != 0.5 || r.Fields["number"].Recall != 1 {
		t.Errorf("errors %v, number %+v", got, r.Fields["number"])
	}
	if d := r.Errors[0]; d.Field == "total" && (d.Confidence != 0.75 || len(d.Quotes) != 1 || d.Quotes[0] != "twelve") {
		t.Errorf("the wrong total: %+v", d)
	}
}

func TestNothingReviewed(t *testing.T) {
	for name, text := range map[string]string{
		"nothing decided":      `{"aggregated_data": [{"a": 1, "_sources": ["a"]}]}`,
		"of several documents": `{"aggregated_data": [{"a": 1, "_sources": ["a", "b"], "_reviewed": {"a": {"verdict": "accept", "model": 1}}}]}`,
		"no result":            `[]`,
	} {
		if truth, err := eval.ReadReviewed("r", strings.NewReader(text)); err == nil {
			t.Errorf("%s: %v", name, truth)
		}
	}
}
