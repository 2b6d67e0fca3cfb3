package eval_test

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/eval"
)

// TestResultsThatCannotBe have confidences that are none, and keys twice.
func TestResultsThatCannotBe(t *testing.T) {
	for text, want := range map[string]string{
		`{"aggregated_data":[{"a":1,"_confidence":{"a":1}},{"a":2,"_confidence":{"a":0}}]}`: "",
		`{"aggregated_data":[{"a":1},{"a":1,"_confidence":{"a":1.01}}]}`:                    "record 1: _confidence.a is 1.01; a confidence is a number from 0 to 1",
		`{"aggregated_data":[{"a":1,"_confidence":{"a":-0.5}}]}`:                            "record 0: _confidence.a is -0.5",
		`{"aggregated_data":[{"a":1,"_confidence":{"a":1e999}}]}`:                           "record 0: _confidence.a is 1e999",
		`{"aggregated_data":{"a":1,"_confidence":{"a":2}}}`:                                 "_confidence.a is 2",
		`{"aggregated_data":[{"a":1,"a":2}]}`:                                               `record 0: the key "a" is there twice`,
		`{"aggregated_data":[{"a":{"b":[{"c":1,"c":1}]}}]}`:                                 `record 0: the key "a.b[0].c" is there twice`,
		`{"aggregated_data":{"a":1,"a":1}}`:                                                 `the key "a" is there twice`,
		`{"aggregated_data":[],"aggregated_data":[{"a":1}]}`:                                `the key "aggregated_data" is there twice`,
	} {
		_, err := eval.ReadResult("r.json", strings.NewReader(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestTruthThatCannotBe has keys, and documents of which the schema makes one record, twice.
func TestTruthThatCannotBe(t *testing.T) {
	if _, err := eval.ReadTruth("t", strings.NewReader(`{"document":"a","total":1,"total":2}`)); err == nil || !strings.HasPrefix(err.Error(), `t:1: the key "total" is there twice`) {
		t.Error(err)
	}
	if _, err := eval.ReadTruth("t", strings.NewReader(`{"document":"a","document":"b"}`)); err == nil {
		t.Error("a document is named twice")
	}

	truth, err := eval.ReadTruth("t", strings.NewReader(`{"document":"a","total":1}`+"\n"+`{"document":"b","total":1}`+"\n"+`{"document":"a","total":1}`))
	if err != nil {
		t.Fatal(err)
	}
	results := []eval.Result{{Documents: []string{"a"}}, {Documents: []string{"b"}}}
	for text, want := range map[string]string{
		`{type: object, properties: {total: {type: number}}}`:                       `the truth has more than one record of document "a"`,
		`{type: array, items: {type: object, properties: {total: {type: number}}}}`: "",
	} {
		s, err := schema.Parse("s.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		err = eval.CheckNames(s, results, nil, truth)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
