package eval_test

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/eval"
)

const detailResult = `{"aggregated_data": [
	{"company": "Acme", "total": 9, "tags": ["a", "x"], "_sources": ["1.txt"], "_confidence": {"total": 0.5}, "_citations": {"total": ["REF_1"]}},
	{"company": "Other", "total": null, "_sources": ["2.txt"]},
	{"company": "Third", "total": 5, "_sources": ["3.txt"]}
], "citations": {"REF_1": {"document_id": "1.txt", "quote": "TOTAL 9"}}, "source_units": ["1.txt", "2.txt", "3.txt"],
	"failed_units": [{"unit_id": "4.txt_chunk_0", "errors": ["x"]}], "skipped_documents": [{"document_id": "5.txt", "reason": "y"}]}`

const detailTruth = `{"document": "1.txt", "company": "Acme", "total": 8, "tags": ["a", "b"]}
{"document": "2.txt", "company": "Other", "total": 7}
{"document": "3.txt", "company": "Third", "total": null}
`

func read(t *testing.T, result, truth string) ([]eval.Result, []string, []eval.Truth) {
	t.Helper()
	results, others, err := eval.ReadResultFile("result.json", strings.NewReader(result))
	if err != nil {
		t.Fatal(err)
	}
	truths, err := eval.ReadTruth("truth.jsonl", strings.NewReader(truth))
	if err != nil {
		t.Fatal(err)
	}
	return results, others, truths
}

func TestDifferences(t *testing.T) {
	results, _, truth := read(t, detailResult, detailTruth)
	r := eval.Compare(nil, results, truth)
	var got []string
	for _, d := range r.Errors {
		got = append(got, strings.Join([]string{d.Document, d.Field, string(d.Kind), strings.Join(d.Quotes, "|")}, " "))
	}
	want := []string{"1.txt tags wrong ", "1.txt total wrong TOTAL 9", "2.txt total missing ", "3.txt total spurious "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]eval.Confusion{{Truth: "8", Found: "9", Count: 1}}, r.Confusions["total"]); diff != "" {
		t.Errorf("confusions (-want +got):\n%s", diff)
	}
	// Wilson's interval of 3 of 3, from its closed form n/(n+z²).
	if got := r.Intervals["company"].Precision; got != [2]float64{0.4385, 1} {
		t.Errorf("interval of 3 right among 3: %v", got)
	}
}

// TestUnverifiedIsShown checks that a true value which stands under _unverified is told apart
// from one that was not found at all, and counts against recall like it.
func TestUnverifiedIsShown(t *testing.T) {
	const result = `{"aggregated_data": [
	{"total": null, "_sources": ["1.txt"], "_unverified": {"total": {"value": 12.5, "constraint": "maximum", "message": "must be at most 10", "citations": ["REF_1"]}}},
	{"total": null, "_sources": ["2.txt"], "_unverified": {"total": 7}},
	{"total": null, "_sources": ["3.txt"]},
	{"total": null, "tags": ["a"], "_sources": ["4.txt"], "_unverified": {"tags": {"value": ["bb"], "constraint": "maxLength", "message": "must have at most 1 character", "citations": ["REF_2"]}}},
	{"total": null, "_sources": ["5.txt"], "_unverified": {"total": 1}}
], "citations": {"REF_1": {"quote": "TOTAL 12.50"}, "REF_2": {"quote": "bb"}}}`
	const truths = `{"document": "1.txt", "total": 12.5}
{"document": "2.txt", "total": 8}
{"document": "3.txt", "total": 9}
{"document": "4.txt", "tags": ["a", "bb", "cc"]}
{"document": "5.txt", "total": null}
`
	results, _, truth := read(t, result, truths)
	r := eval.Compare(nil, results, truth)
	var got []string
	for _, d := range r.Errors {
		got = append(got, fmt.Sprint(d.Document, " ", d.Field, " ", d.Kind, " ", d.Truth, " ", d.Found, " ", d.Constraint, "|", d.Message, "|", strings.Join(d.Quotes, "|")))
	}
	want := []string{
		"1.txt total unverified 12.5 12.5 maximum|must be at most 10|TOTAL 12.50",
		"2.txt total unverified 8 7 ||",
		"3.txt total missing 9 <nil> ||",
		"4.txt tags unverified bb bb maxLength|must have at most 1 character|bb",
		"4.txt tags missing cc <nil> ||",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	if got := r.Fields["total"]; got.Recall != 0 || got.Support != 3 {
		t.Errorf("total is scored %+v, want a recall of 0 of 3", got)
	}
}

func TestChanges(t *testing.T) {
	first := strings.Builder{}
	second, truth := strings.Builder{}, strings.Builder{}
	for i := range 12 {
		name := string(rune('a' + i))
		right, wrong := `{"v": "yes", "_sources": ["`+name+`"]},`, `{"v": "no", "_sources": ["`+name+`"]},`
		a, b := wrong, right // ten get better
		if i >= 10 {
			a, b = right, right
		}
		if i == 11 {
			b = wrong // one gets worse
		}
		first.WriteString(a)
		second.WriteString(b)
		truth.WriteString(`{"document": "` + name + `", "v": "yes"}` + "\n")
	}
	file := func(records string) string {
		return `{"aggregated_data": [` + strings.TrimSuffix(records, ",") + `]}`
	}
	old, _, truths := read(t, file(first.String()), truth.String())
	now, _, _ := read(t, file(second.String()), truth.String())
	got := eval.Changes(eval.Compare(nil, old, truths), eval.Compare(nil, now, truths))["v"]
	// 2 × (1 + 11) / 2¹¹ = 0.01171875
	if got.Better != 10 || got.Worse != 1 || got.P != 0.01172 {
		t.Errorf("got %+v, want 10 better, 1 worse, p 0.01172", got)
	}
}

func TestNormalisations(t *testing.T) {
	for name, pair := range map[string][2]string{
		"squad":    {"The U.S. Army", "us army"},
		"kleister": {"New  York: NY", "new_york_ny"},
	} {
		n := eval.Normalisations()[name]
		if a, b := n(pair[0]), n(pair[1]); a != b {
			t.Errorf("%s: %q and %q are %q and %q", name, pair[0], pair[1], a, b)
		}
	}
	if n := eval.Normalisations()["squad"]; n("an apple") == n("apples") {
		t.Error("squad takes different words for equal")
	}
}

func TestCheckNames(t *testing.T) {
	s, err := schema.Parse("s.yaml", []byte("type: object\nproperties:\n  company: {type: string}\n  total: {type: number}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ truth, want string }{
		"all known":                 {`{"document": "1.txt", "company": "Acme"}`, ""},
		"failed and skipped":        {`{"document": "4.txt", "total": 1}` + "\n" + `{"document": "5.txt"}`, ""},
		"a path further up":         {`{"document": "docs/1.txt", "total": 1}`, ""},
		"an id of nothing":          {`{"document": "nine.txt", "total": 1}`, `no document "nine.txt"`},
		"a field of no schema":      {`{"document": "1.txt", "totl": 1}`, `no field "totl"`},
		"and one that is inside of": {`{"document": "1.txt", "seller": {"name": "x"}}`, `no field "seller.name"`},
	} {
		results, others, truth := read(t, detailResult, tt.truth)
		err := eval.CheckNames(s, results, others, truth)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}

// TestChangesByChance checks McNemar's test against sums of integers, and that a difference
// is never impossible by chance.
func TestChangesByChance(t *testing.T) {
	for _, n := range [][2]int{{0, 0}, {4, 0}, {3, 3}, {62, 2}, {2, 62}, {136, 0}, {300, 250}} {
		first, second := eval.Report{Outcomes: map[eval.Outcome]bool{}}, eval.Report{Fields: map[string]eval.Score{"v": {}}, Outcomes: map[eval.Outcome]bool{}}
		for i := range n[0] + n[1] {
			key := eval.Outcome{Record: i, Field: "v"}
			first.Outcomes[key], second.Outcomes[key] = i >= n[0], i < n[0]
		}
		all := int64(n[0] + n[1])
		tail, term := new(big.Int), new(big.Int)
		for k := range min(n[0], n[1]) + 1 {
			tail.Add(tail, term.Binomial(all, int64(k)))
		}
		want, _ := new(big.Rat).SetFrac(tail.Lsh(tail, 1), new(big.Int).Lsh(big.NewInt(1), uint(all))).Float64()
		want = min(1, want)
		got := eval.Changes(first, second)["v"].P
		if got <= 0 || math.Abs(got-want) > want*5e-4 {
			t.Errorf("%d better and %d worse: p %g, want %g", n[0], n[1], got, want)
		}
	}
}
