package eval_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/eval"
)

const receipt = `
properties:
  company: {type: string}
  date: {type: string, format: date}
  total: {type: number}
  kind: {enum: [Tax Invoice, receipt]}
  tags: {type: array, items: {type: string}}
`

func parse(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Parse("s.yaml", []byte(text))
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return s
}

// compare reads result and truth and compares them; an empty schema is none.
func compare(t testing.TB, schemaText, result, truth string) eval.Report {
	t.Helper()
	var s *schema.Schema
	if schemaText != "" {
		s = parse(t, schemaText)
	}
	results, err := eval.ReadResult("result.json", strings.NewReader(result))
	if err != nil {
		t.Fatalf("ReadResult: %v", err)
	}
	truths, err := eval.ReadTruth("truth.jsonl", strings.NewReader(truth))
	if err != nil {
		t.Fatalf("ReadTruth: %v", err)
	}
	return eval.Compare(s, results, truths)
}

func TestReport(t *testing.T) {
	result := `{"job_id": "mr_1", "citations": {"REF_1": {"quote": "aggregated_data"}}, "aggregated_data": [
		{"company": "ACME SDN. BHD", "date": "2018-12-25", "total": 9, "tags": ["a", "b", "c"], "_sources": ["1.txt"], "_unverified": {"kind": "receipt"}},
		{"company": "Other", "date": null, "total": 7, "_sources": ["2.txt"]},
		{"company": "Third", "date": "2018-01-01", "_sources": ["3.txt"]},
		{"company": "Unknown", "_sources": ["9.txt"]}
	], "statistics": {}}`
	truth := `
{"document": "1.txt", "company": "Acme Sdn Bhd", "date": "25/12/2018", "total": "RM 9.00", "kind": "TAX INVOICE", "tags": ["B", "c", "d"]}
{"document": "2.txt", "company": "Other", "date": "26/12/2018", "total": "8.00"}

{"document": "3.txt", "company": "Third", "date": null, "total": "1.00"}
{"document": "4.txt", "company": "Fourth"}
`
	got := compare(t, receipt, result, truth)
	want := eval.Report{
		Fields: map[string]eval.Score{
			"company": {Precision: 1, Recall: 0.75, F1: 6.0 / 7, Support: 4},
			"date":    {Precision: 0.5, Recall: 0.5, F1: 0.5, Support: 2},
			"total":   {Precision: 0.5, Recall: 1.0 / 3, F1: 0.4, Support: 3},
			"kind":    {Precision: 0, Recall: 0, F1: 0, Support: 1},
			"tags":    {Precision: 2.0 / 3, Recall: 2.0 / 3, F1: 2.0 / 3, Support: 3},
		},
		Micro:     eval.Score{Precision: 7.0 / 10, Recall: 7.0 / 13, F1: 14.0 / 23, Support: 13},
		Macro:     eval.Score{Precision: (1 + 0.5 + 0.5 + 0 + 2.0/3) / 5, Recall: (0.75 + 0.5 + 1.0/3 + 0 + 2.0/3) / 5, F1: (6.0/7 + 0.5 + 0.4 + 0 + 2.0/3) / 5, Support: 13},
		Documents: eval.Coverage{Truth: 4, Found: 3, Unknown: 1},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12), cmpopts.IgnoreFields(eval.Report{}, "Errors", "Confusions", "Intervals", "Outcomes")); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	data, err := json.Marshal(eval.Report{Fields: map[string]eval.Score{"a": {Precision: 1, Recall: 0.5, F1: 2.0 / 3, Support: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	wantJSON := `{"fields":{"a":{"precision":1,"recall":0.5,"f1":0.6666666666666666,"support":2}},` +
		`"micro":{"precision":0,"recall":0,"f1":0,"support":0},"macro":{"precision":0,"recall":0,"f1":0,"support":0},` +
		`"documents":{"truth":0,"found":0,"unknown":0}}`
	if diff := cmp.Diff(wantJSON, string(data)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

func TestEqualValues(t *testing.T) {
	for _, tt := range []struct {
		name, schema, truth, result string
		want                        bool
	}{
		{"punctuation and spaces", "{}", `"BOOK TA .K (TAMAN DAYA)"`, `"book ta.k(taman  daya)"`, true},
		{"compatibility forms", "{}", `"ﬁle １"`, `"FILE 1"`, true},
		{"only punctuation", "{}", `"***"`, `"--"`, false},
		{"different text", "{}", `"a"`, `"b"`, false},
		{"date", "{format: date}", `"12-01-19"`, `"2019-01-12"`, true},
		{"other date", "{format: date}", `"12-01-19"`, `"2019-12-01"`, false},
		{"number as text", "{type: number}", `"$8.20"`, `8.2`, true},
		{"no number", "{type: number}", `"eight"`, `"Eight"`, true},
		{"enum", "{enum: [Tax Invoice]}", `"tax-invoice"`, `"Tax Invoice"`, true},
		{"uri is strict", "{format: uri}", `"https://x.org/a-b"`, `"https://x.org/ab"`, false},
		{"list in any order", "{type: array}", `["a", "b"]`, `["B", "a"]`, true},
		{"list of objects", "{type: array, items: {properties: {n: {type: number}}}}", `[{"n": "1.0"}]`, `[{"n": 1}]`, true},
		{"nested", "{properties: {n: {type: number}}}", `{"n": "1.0"}`, `{"n": 1}`, true},
		{"guessed date", "", `"2019-01-12"`, `"12/01/2019"`, true},
		{"guessed number", "", `"9.00"`, `9`, true},
		{"guessed amount", "", `"$9.00"`, `9`, true},
		{"guessed list", "", `["9.00"]`, `[9]`, true},
		{"guessed boolean", "", `true`, `"yes"`, true},
		{"guessed text", "", `"A b"`, `"a  B."`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := tt.schema
			if text != "" {
				text = "properties: {v: " + text + "}"
			}
			got := compare(t, text, `{"aggregated_data": [{"_sources": ["d"], "v": `+tt.result+`}]}`, `{"document": "d", "v": `+tt.truth+`}`)
			if (got.Micro.F1 == 1) != tt.want || got.Micro.Support == 0 {
				t.Errorf("report %+v, want equal: %v", got, tt.want)
			}
		})
	}
}

func TestFieldsBeyondTheSchema(t *testing.T) {
	got := compare(t, "properties: {v: {}}", `{"aggregated_data": [{"_sources": ["d"], "v": "x"}]}`, `{"document": "d", "v": "x", "w": "y"}`)
	if len(got.Fields) != 1 || got.Micro.F1 != 1 {
		t.Errorf("report %+v judges a field that was not asked for", got)
	}
}

// What a record says about its values is none of them: what a model saw in a picture above all, which
// nobody found.
func TestWhatIsSaidOfValuesIsNone(t *testing.T) {
	results, err := eval.ReadResult("result.json", strings.NewReader(`{"aggregated_data": [{"v": "x", "_sources": ["d"], "_citations": {}, "_confidence": {},
		"_said": {}, "_missing": {}, "_unverified": {}, "_seen": {"w": [{"page": 1, "quote": "PAID"}]}, "_warnings": [], "_derived": {}}]}`))
	if err != nil || len(results) != 1 || len(results[0].Values) != 1 {
		t.Errorf("%+v, %v: one value is read", results, err)
	}
}

func TestDocuments(t *testing.T) {
	for _, tt := range []struct {
		name, result, truth string
		want                float64 // micro F1
	}{
		{"summary", `{"v": "x", "_sources": ["a", "b"]}`, `{"document": "all", "v": "x"}`, 1},
		{"summary and documents", `{"v": "x", "_sources": ["a", "b"]}`, "{\"document\": \"a\", \"v\": \"x\"}\n{\"document\": \"b\", \"v\": \"x\"}", 0},
		{"source in a folder", `[{"v": "x", "_sources": ["docs/a"]}]`, `{"document": "a", "v": "x"}`, 1},
		{"truth in a folder", `[{"v": "x", "_sources": ["a"]}]`, `{"document": "docs/a", "v": "x"}`, 1},
		{"ambiguous name", `[{"v": "x", "_sources": ["a"]}]`, "{\"document\": \"p/a\", \"v\": \"x\"}\n{\"document\": \"q/a\", \"v\": \"x\"}", 0},
		{"entity of two documents", `[{"v": "x", "_sources": ["a", "b"]}]`, "{\"document\": \"a\", \"v\": \"x\"}\n{\"document\": \"b\", \"v\": \"x\"}", 1},
		{
			"records are paired by what agrees", `[{"v": "1", "w": "p", "_sources": ["a"]}, {"v": "2", "w": "q", "_sources": ["a"]}]`,
			"{\"document\": \"a\", \"v\": \"2\", \"w\": \"q\"}\n{\"document\": \"a\", \"v\": \"1\", \"w\": \"p\"}", 1,
		},
		{"no records", `[]`, `{"document": "a", "v": "x"}`, 0},
		{"null", `null`, `{"document": "a", "v": "x"}`, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := compare(t, "", `{"aggregated_data": `+tt.result+`}`, tt.truth)
			if math.Abs(got.Micro.F1-tt.want) > 1e-12 {
				t.Errorf("report %+v, want F1 %v", got, tt.want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct{ name, truth, want string }{
		{"no JSON", "{\"document\": \"a\"}\nnonsense", "t.jsonl:2: not a JSON object: invalid character 'o' in literal null (expecting 'u')"},
		{"a list", `["a"]`, "t.jsonl:1: not a JSON object: json: cannot unmarshal array into Go value of type map[string]interface {}"},
		{"no document", "\n\n{\"total\": 1}", `t.jsonl:3: "document" must name a document`},
		{"two values", `{"document": "a"} {}`, "t.jsonl:1: more than one JSON value on a line"},
		{"empty", "\n", "t.jsonl: is empty, so there are no true values to compare with"},
	} {
		t.Run("truth "+tt.name, func(t *testing.T) {
			_, err := eval.ReadTruth("t.jsonl", strings.NewReader(tt.truth))
			if err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
	for _, tt := range []struct{ name, result, want string }{
		{"no JSON", "x", "r.json: at byte 0: invalid character 'x' looking for beginning of value"},
		{"a list", "[]", "r.json: at byte 1: found [, expected {"},
		{"another file", `{"units": []}`, `r.json: at byte 12: there is no "aggregated_data": this is no result of a job`},
		{"a number", `{"aggregated_data": 1}`, `r.json: at byte 21: "aggregated_data" must be a list of records or one record`},
		{"a list of numbers", `{"aggregated_data": [{}, 1]}`, "r.json: at byte 26: record 1: json: cannot unmarshal number into Go value of type map[string]interface {}"},
		{"cut off", `{"aggregated_data": [{}`, "r.json: at byte 23: EOF"},
	} {
		t.Run("result "+tt.name, func(t *testing.T) {
			_, err := eval.ReadResult("r.json", strings.NewReader(tt.result))
			if err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

// TestPerfect checks that a result that says the truth is measured as such,
// whatever the order of its records.
func TestPerfect(t *testing.T) {
	s := parse(t, receipt)
	rapid.Check(t, func(t *rapid.T) {
		var truth []eval.Truth
		var results []eval.Result
		for i := range rapid.IntRange(1, 8).Draw(t, "documents") {
			name := string(rune('a' + i))
			values := map[string]any{
				"company": rapid.SampledFrom([]any{"A", "B", nil}).Draw(t, "company"),
				"total":   rapid.SampledFrom([]any{json.Number("1"), json.Number("2.5"), nil}).Draw(t, "total"),
				"tags":    rapid.SampledFrom([]any{[]any{"x", "y"}, []any{"x", "x"}, nil}).Draw(t, "tags"),
			}
			truth = append(truth, eval.Truth{Document: name, Values: values})
			results = append(results, eval.Result{Documents: []string{name}, Values: values})
		}
		got := eval.Compare(s, rapid.Permutation(results).Draw(t, "order"), truth)
		for name, score := range got.Fields {
			if score.Support > 0 && score.F1 != 1 {
				t.Fatalf("%s: %+v", name, score)
			}
		}
		if got.Micro.Support > 0 && (got.Micro.F1 != 1 || got.Macro.F1 != 1) {
			t.Fatalf("micro %+v, macro %+v", got.Micro, got.Macro)
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add(`{"aggregated_data": [{"v": [1, {"w": null}], "_sources": ["d"]}]}`, `{"document": "d", "v": [{"w": 2}]}`)
	f.Add(`{"aggregated_data": {"a.b": 1e999}}`, `{"document": "d", "a": {"b": "1e3"}}`)
	f.Fuzz(func(t *testing.T, result, truth string) {
		results, err := eval.ReadResult("r", strings.NewReader(result))
		if err != nil {
			return
		}
		truths, err := eval.ReadTruth("t", strings.NewReader(truth))
		if err != nil {
			return
		}
		for name, s := range eval.Compare(nil, results, truths).Fields {
			if s.F1 < 0 || s.F1 > 1 || math.IsNaN(s.F1) {
				t.Errorf("%s: %+v", name, s)
			}
		}
	})
}
