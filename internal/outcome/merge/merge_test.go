package merge_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/hint"
	"github.com/coditect/mapreduce/internal/outcome/merge"
)

func parse(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Parse("s.yaml", []byte(text))
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return s
}

// strategies has a field for every strategy.
const strategies = `
properties:
  vote: {type: string}
  first: {type: string, x-coditect: {merge: first}}
  latest: {type: string, x-coditect: {merge: latest}}
  longest: {type: string, x-coditect: {merge: longest}}
  max: {type: number, x-coditect: {merge: max}}
  min: {type: string, format: date, x-coditect: {merge: min}}
  sum: {type: number, x-coditect: {merge: sum}}
  best: {type: string, x-coditect: {merge: highest_confidence}}
  text: {type: string, x-coditect: {merge: concat}}
  union: {type: array, items: {type: string}}
  concat: {type: array, items: {type: string}, x-coditect: {merge: concat}}
  list: {type: array, items: {type: number}, x-coditect: {merge: vote}}
x-coditect: {key: []}
`

func value(field string, v any, sure float64, citations ...merge.Citation) merge.Value {
	return merge.Value{Field: field, Value: v, Confidence: sure, Citations: citations}
}

func record(document string, unit int64, values ...merge.Value) merge.Record {
	return merge.Record{Document: document, Order: merge.Order{Unit: unit}, Values: values}
}

// resolve merges records into entities and resolves each.
func resolve(s *schema.Schema, records ...merge.Record) []merge.Result {
	var all []merge.Accumulator
	for _, r := range records {
		all = append(all, merge.Accumulate(s, r))
	}
	var results []merge.Result
	for _, a := range merge.Rekey(s, all) {
		results = append(results, merge.Resolve(s, a))
	}
	return results
}

func TestStrategies(t *testing.T) {
	s := parse(t, strategies)
	results := resolve(
		s,
		record("a", 0,
			value("vote", "x", 0.9, "a1"), value("first", "one", 0.5, "a2"), value("latest", "one", 0.9, "a3"),
			value("longest", "short", 0.9, "a4"), value("max", json.Number("9"), 0.9, "a5"),
			value("min", "2018-01-02", 0.9, "a6"), value("sum", json.Number("0.1"), 0.9, "a7"),
			value("best", "p", 0.7, "a8"), value("text", "first part", 0.9, "a9"),
			value("union", "A", 0.9, "a10"), value("union", "B", 0.9, "a11"),
			value("concat", "A", 0.9, "a12"), value("concat", "A", 0.9, "a13"),
			value("list", []any{json.Number("1"), json.Number("2")}, 0.9, "a14")),
		record("b", 1,
			value("vote", "y", 0.5, "b1"), value("first", "two", 0.9, "b2"), value("latest", "two", 0.2, "b3"),
			value("longest", "much longer", 0.9, "b4"), value("max", json.Number("10"), 0.9, "b5"),
			value("min", "2017-12-31", 0.9, "b6"), value("sum", json.Number("0.2"), 0.9, "b7"),
			value("best", "q", 0.8, "b8"), value("text", "second part", 0.9, "b9"),
			value("union", "b", 0.7, "b10"), value("union", "C", 0.9, "b11"),
			value("concat", "B", 0.9, "b12"),
			value("list", []any{json.Number("1")}, 0.8, "b14")),
		record("c", 2, value("vote", "Y", 0.6, "c1"), value("sum", json.Number("0.2"), 0.9, "c7"), value("best", "p", 0.7, "c8")),
	)
	if len(results) != 1 {
		t.Fatalf("%d results, want one summary", len(results))
	}
	got := results[0]
	wantValues := map[string]any{
		"vote": "y", "first": "one", "latest": "two", "longest": "much longer", "max": json.Number("10"),
		"min": "2017-12-31", "sum": json.Number("0.5"), "best": "q", "text": "first part\nsecond part",
		"union": []any{"A", "B", "C"}, "concat": []any{"A", "A", "B"}, "list": []any{json.Number("1"), json.Number("2")},
	}
	if diff := cmp.Diff(wantValues, got.Values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	wantCitations := map[string][]merge.Citation{
		"vote": {"b1", "c1"}, "first": {"a2"}, "latest": {"b3"}, "longest": {"b4"}, "max": {"b5"}, "min": {"b6"},
		"sum": {"a7", "b7", "c7"}, "best": {"b8"}, "text": {"a9", "b9"}, "union": {"a10", "a11", "b10", "b11"},
		"concat": {"a12", "a13", "b12"}, "list": {"a14"},
	}
	if diff := cmp.Diff(wantCitations, got.Citations); diff != "" {
		t.Errorf("citations (-want +got):\n%s", diff)
	}
	wantConfidence := map[string]float64{
		"vote": 0.55 * 1.1 / 2, "first": 0.5, "latest": 0.2, "longest": 0.9, "max": 0.9, "min": 0.9, "sum": 0.9,
		"best": 0.8, "text": 0.9, "union": 0.85, "concat": 0.9, "list": 0.9 * 0.9 / 1.7,
	}
	if diff := cmp.Diff(wantConfidence, got.Confidence, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
		t.Errorf("confidence (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int64{"vote": 1, "sum": 1, "best": 1, "union": 1}, got.Duplicates); diff != "" {
		t.Errorf("duplicates (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, got.Sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	wantConflict := merge.Conflict{
		Field: "vote", Key: map[string]any{}, Chosen: "y", Strategy: hint.MergeVote,
		Rationale: "2 of 3 values, with 1.10 of 2.00 confidence",
		Candidates: []merge.Choice{
			{Value: "y", Citations: []merge.Citation{"b1", "c1"}, Confidence: 0.55, Count: 2},
			{Value: "x", Citations: []merge.Citation{"a1"}, Confidence: 0.9, Count: 1},
		},
	}
	if diff := cmp.Diff(wantConflict, got.Conflicts[0], cmpopts.EquateApprox(0, 1e-6)); diff != "" {
		t.Errorf("conflict (-want +got):\n%s", diff)
	}
	var fields []string
	for _, c := range got.Conflicts {
		fields = append(fields, c.Field)
	}
	if diff := cmp.Diff([]string{"vote", "first", "latest", "longest", "max", "min", "best", "list"}, fields); diff != "" {
		t.Errorf("fields in conflict (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(merge.Dropped{Field: "vote", Citation: "a1", Reason: `value "x": it lost the vote`}, got.Dropped[0]); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
}

func TestVoteTie(t *testing.T) {
	s := parse(t, "properties: {n: {type: number}}\nx-coditect: {key: []}")
	results := resolve(s, record("a", 0, value("n", json.Number("10"), 0.5, "1")), record("b", 1, value("n", json.Number("9"), 0.5, "2")))
	if got, want := results[0].Values["n"], json.Number("9"); got != want {
		t.Errorf("a tie gave %v, want the smaller %v", got, want)
	}
	want := "1 of 2 values, with 0.50 of 1.00 confidence; of equal ones the smallest value"
	if got := results[0].Conflicts[0].Rationale; got != want {
		t.Errorf("rationale %q, want %q", got, want)
	}
}

func TestEntities(t *testing.T) {
	type entity struct {
		Key     map[string]any
		Sources []string
		Values  map[string]any
	}
	for _, tt := range []struct {
		name, schema string
		records      []merge.Record
		want         []entity
	}{
		{
			"each document", "properties: {a: {}, b: {}}",
			[]merge.Record{record("y", 1, value("a", "1", 1, "c1")), record("x", 0, value("a", "1", 1, "c2")), record("y", 2, value("b", "2", 1, "c3"))},
			[]entity{
				{map[string]any{"document": "x"}, []string{"x"}, map[string]any{"a": "1"}},
				{map[string]any{"document": "y"}, []string{"y"}, map[string]any{"a": "1", "b": "2"}},
			},
		},
		{
			"by key over pieces of documents", "properties: {a: {}, b: {type: array}}\nx-coditect: {key: [a]}",
			[]merge.Record{
				record("x", 0, value("a", "No 1", 1, "c1")), record("x", 1, value("b", "p", 1, "c2")),
				record("y", 2, value("a", "NO  1", 1, "c3"), value("b", "q", 1, "c4")), record("z", 3, value("b", "r", 1, "c5")),
			},
			[]entity{
				{map[string]any{"a": "No 1"}, []string{"x", "y"}, map[string]any{"a": "No 1", "b": []any{"p", "q"}}},
				{map[string]any{"document": "z"}, []string{"z"}, map[string]any{"b": []any{"r"}}},
			},
		},
		{
			"records of lists", "type: array\nitems: {properties: {a: {}}}",
			[]merge.Record{
				{Document: "x", Order: merge.Order{Unit: 0, Record: 1}, Values: []merge.Value{value("a", "1", 1, "c1")}},
				{Document: "x", Order: merge.Order{Unit: 0, Record: 0}, Values: []merge.Value{value("a", "1", 1, "c2")}},
			},
			[]entity{
				{map[string]any{"document": "x"}, []string{"x"}, map[string]any{"a": "1"}},
				{map[string]any{"document": "x"}, []string{"x"}, map[string]any{"a": "1"}},
			},
		},
		{
			"records of lists by key", "type: array\nitems: {properties: {a: {}, n: {type: number, x-coditect: {merge: sum}}}}\nx-coditect: {key: [a]}",
			[]merge.Record{
				{Document: "x", Order: merge.Order{Unit: 0, Record: 0}, Values: []merge.Value{value("a", "1", 1, "c1"), value("n", json.Number("2"), 1, "c2")}},
				{Document: "x", Order: merge.Order{Unit: 0, Record: 1}, Values: []merge.Value{value("a", "1", 1, "c3"), value("n", json.Number("2"), 1, "c4")}},
			},
			[]entity{{map[string]any{"a": "1"}, []string{"x"}, map[string]any{"a": "1", "n": json.Number("4")}}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []entity
			for _, r := range resolve(parse(t, tt.schema), tt.records...) {
				got = append(got, entity{r.Key, r.Sources, r.Values})
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("entities (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMissingAndUnverified: a field without a value is null and says why (A12).
func TestMissingAndUnverified(t *testing.T) {
	s := parse(t, "properties: {a: {}, b: {}, c: {}, d: {}}")
	first := record("x", 0, value("b", "guess", 0.9), value("c", "guess", 0.9))
	first.Missing = []merge.Missing{{Field: "a", Reason: "no label matched"}}
	second := record("x", 1, value("c", "found", 0.2, "c1"))
	second.Missing = []merge.Missing{{Field: "a", Reason: "another reason"}}
	got := resolve(s, second, first)[0]
	if diff := cmp.Diff(map[string]any{"c": "found"}, got.Values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"b": "guess"}, got.Unverified); diff != "" {
		t.Errorf("unverified (-want +got):\n%s", diff)
	}
	wantMissing := map[string]string{
		"a": "no label matched", "b": "no citation supports what was found", "d": "nothing was found",
	}
	if diff := cmp.Diff(wantMissing, got.Missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

// TestGuessesAreNoValues checks that what is wrong nine times out of ten stands apart with its reason, gives
// way to any other value, and takes no quote away from one (R16).
func TestGuessesAreNoValues(t *testing.T) {
	s := parse(t, strategies)
	got := resolve(
		s,
		record("a", 0,
			value("vote", "41", 0.05, "a1"),
			value("first", "41", 0.05, "a2"), value("first", "Bank", 0.4, "a2"),
			value("union", "A", 0.9, "a3"), value("union", "and the Banks", 0.02, "a4"),
			value("sum", json.Number("2.07"), 0.1, "a5")),
		record("b", 1, value("sum", json.Number("5"), 0.9, "b5"), value("vote", "41", 0.1, "b1"), value("best", "p", 0.05, "b8")),
		record("c", 2, value("best", "p", 0.7, "c8")),
	)[0]

	wantValues := map[string]any{"first": "Bank", "union": []any{"A"}, "sum": json.Number("5"), "best": "p"}
	if diff := cmp.Diff(wantValues, got.Values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	wantRefused := map[string]merge.Refusal{
		"vote":  {Value: "41", Constraint: mapreduce.LeastConfidence, Message: "a guess with a confidence of 0.10", Citations: []merge.Citation{"a1", "b1"}},
		"union": {Value: []any{"and the Banks"}, Constraint: mapreduce.LeastConfidence, Message: "a guess with a confidence of 0.02", Citations: []merge.Citation{"a4"}},
	}
	if diff := cmp.Diff(wantRefused, got.Refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}

	var dropped []merge.Citation
	for _, d := range got.Dropped {
		dropped = append(dropped, d.Citation)
	}
	if diff := cmp.Diff([]merge.Citation{"a1", "a4", "a5", "b1"}, slices.Sorted(slices.Values(dropped))); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
	if why := got.Missing["vote"]; !strings.Contains(why, "a guess") {
		t.Errorf("missing %q says nothing of a guess", why)
	}
}

// records draws records of a few documents whose values often agree.
func records(t *rapid.T) []merge.Record {
	sure := rapid.Float64Range(0, 1)
	word := rapid.SampledFrom([]string{"a", "A", "b", "ab c", "AB C", "d"})
	number := rapid.SampledFrom([]json.Number{"1", "2.5", "-3", "10"})
	day := rapid.SampledFrom([]string{"2018-01-02", "2017-12-31"})
	var all []merge.Record
	for i := range rapid.IntRange(1, 9).Draw(t, "records") {
		r := merge.Record{
			Document: rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "document"),
			Order:    merge.Order{Unit: int64(i / 2), Record: int64(i % 2)},
		}
		for _, field := range []string{"vote", "first", "latest", "longest", "best", "text", "union", "concat", "union", "concat"} {
			r.Values = append(r.Values, merge.Value{Field: field, Value: word.Draw(t, field)})
		}
		for _, field := range []string{"max", "sum", "list", "list"} {
			r.Values = append(r.Values, merge.Value{Field: field, Value: number.Draw(t, field)})
		}
		r.Values = append(r.Values, merge.Value{Field: "min", Value: day.Draw(t, "day")})
		r.Values = slices.DeleteFunc(r.Values, func(merge.Value) bool { return rapid.IntRange(0, 4).Draw(t, "skip") == 0 })
		for j := range r.Values {
			v := &r.Values[j]
			v.Confidence, v.Of = sure.Draw(t, "confidence"), rapid.Int64Range(0, 3).Draw(t, "passes")
			v.Found = rapid.Int64Range(min(v.Of, 1), v.Of).Draw(t, "found")
			for k := range rapid.IntRange(0, 2).Draw(t, "citations") {
				v.Citations = append(v.Citations, merge.Citation(fmt.Sprintf("%s/%d/%d", v.Field, i/rapid.SampledFrom([]int{1, 4}).Draw(t, "share"), k)))
			}
		}
		r.Missing = []merge.Missing{{Field: "vote", Reason: fmt.Sprint("reason ", i)}}
		all = append(all, r)
	}
	return all
}

// anyTree merges accumulators in a drawn order and grouping.
func anyTree(t *rapid.T, all []merge.Accumulator) []merge.Accumulator {
	all = rapid.Permutation(all).Draw(t, "order")
	for len(all) > 1 && rapid.IntRange(0, 3).Draw(t, "group") > 0 {
		k := rapid.IntRange(1, len(all)).Draw(t, "size")
		all = append(merge.Group(all[:k]), all[k:]...)
		all = rapid.Permutation(all).Draw(t, "again")
	}
	return merge.Group(all)
}

// TestAnyOrderAndGrouping is the algebra: commutative and associative, through
// the encoding too.
func TestAnyOrderAndGrouping(t *testing.T) {
	schemas := []*schema.Schema{
		parse(t, strategies),
		parse(t, strategies[:len(strategies)-len("x-coditect: {key: []}\n")]),
		parse(t, strategies[:len(strategies)-len("x-coditect: {key: []}\n")]+"x-coditect: {key: [vote]}"),
	}
	rapid.Check(t, func(t *rapid.T) {
		s := schemas[rapid.IntRange(0, len(schemas)-1).Draw(t, "schema")]
		var all []merge.Accumulator
		for _, r := range records(t) {
			all = append(all, merge.Accumulate(s, r))
		}
		straight := merge.Rekey(s, all)
		other := merge.Rekey(s, anyTree(t, all))
		if diff := cmp.Diff(straight, other); diff != "" {
			t.Fatalf("accumulators (-straight +tree):\n%s", diff)
		}
	})
}

// TestCitationsAreKeptOrListed checks that no citation is gained, and that each
// is carried or listed (A11).
func TestCitationsAreKeptOrListed(t *testing.T) {
	s := parse(t, strategies)
	rapid.Check(t, func(t *rapid.T) {
		in := map[string]map[merge.Citation]bool{}
		all := records(t)
		for _, r := range all {
			for _, v := range r.Values {
				for _, id := range v.Citations {
					if in[v.Field] == nil {
						in[v.Field] = map[merge.Citation]bool{}
					}
					in[v.Field][id] = true
				}
			}
		}
		got := resolve(s, all...)[0]
		for field, ids := range got.Citations {
			for _, id := range ids {
				if !in[field][id] {
					t.Fatalf("%s: citation %s was gained or is there twice", field, id)
				}
				delete(in[field], id)
			}
			if _, ok := got.Values[field]; !ok {
				t.Fatalf("%s: citations without a value", field)
			}
		}
		for _, d := range got.Dropped {
			if !in[d.Field][d.Citation] {
				t.Fatalf("%s: citation %s is listed as dropped but is carried or unknown", d.Field, d.Citation)
			}
			if d.Reason == "" {
				t.Fatalf("%s: citation %s was dropped without a reason", d.Field, d.Citation)
			}
			delete(in[d.Field], d.Citation)
		}
		for field, rest := range in {
			if len(rest) > 0 {
				t.Fatalf("%s: lost %v", field, rest)
			}
		}
		for field := range got.Values {
			if len(got.Citations[field]) == 0 {
				t.Fatalf("%s has a value without a citation", field)
			}
		}
	})
}

func TestInputsAreNotChanged(t *testing.T) {
	s := parse(t, strategies)
	rapid.Check(t, func(t *rapid.T) {
		var all []merge.Accumulator
		for _, r := range records(t) {
			all = append(all, merge.Accumulate(s, r))
		}
		before := fmt.Sprintf("%+v", all)
		for _, a := range merge.Rekey(s, all) {
			merge.Resolve(s, a)
		}
		if before != fmt.Sprintf("%+v", all) {
			t.Fatal("merging changed its inputs")
		}
	})
}

func TestStatistics(t *testing.T) {
	s := parse(t, "properties: {n: {type: number}, w: {}, l: {type: array}, never: {type: integer}}")
	rows := []map[string]any{
		{"n": json.Number("0.1"), "w": "a", "l": []any{"x", "y"}},
		{"n": json.Number("0.2"), "w": "A", "l": []any{"x"}},
		{"n": json.Number("-5"), "w": nil},
		{"n": nil, "w": "b"},
	}
	want := map[string]merge.FieldStatistics{
		"n":     {Count: 3, Null: 1, Distinct: 3, Min: "-5", Max: "0.2", Mean: "-1.5666666666666667", Sum: "-4.7"},
		"w":     {Count: 3, Null: 1, Distinct: 2},
		"l":     {Count: 2, Null: 2, Distinct: 2},
		"never": {Count: 0, Null: 4},
	}
	for range 5 {
		st := merge.NewStatistics(s)
		for _, row := range rows {
			st.Add(row)
		}
		if diff := cmp.Diff(want, st.Fields()); diff != "" {
			t.Errorf("statistics (-want +got):\n%s", diff)
		}
		rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	}
}

func TestDistinctOfMany(t *testing.T) {
	s := parse(t, "properties: {w: {}}")
	st := merge.NewStatistics(s)
	for i := range 50_000 {
		st.Add(map[string]any{"w": fmt.Sprint(i % 20_000)})
	}
	if got := st.Fields()["w"].Distinct; got != 20_000 {
		t.Errorf("distinct = %d, want 20000", got)
	}
}

// tenThousand makes records of 13 fields, as those of packages.
func tenThousand(key string) (*schema.Schema, []merge.Record, error) {
	text := "properties:\n"
	for i := range 13 {
		text += fmt.Sprintf("  f%d: {}\n", i)
	}
	s, err := schema.Parse("s.yaml", []byte(text+key))
	records := make([]merge.Record, 10_000)
	for i := range records {
		r := record(fmt.Sprintf("doc%d", i), int64(i))
		for f := range 13 {
			r.Values = append(r.Values, value(fmt.Sprint("f", f), fmt.Sprintf("value %d of %d", i%(f*1000+1), f), 0.9, merge.Citation(fmt.Sprintf("%032d", i*13+f))))
		}
		records[i] = r
	}
	return s, records, err
}

func BenchmarkMerge10000(b *testing.B) {
	for name, key := range map[string]string{"documents": "", "single": "x-coditect: {key: []}"} {
		b.Run(name, func(b *testing.B) {
			s, records, err := tenThousand(key)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				resolve(s, records...)
			}
			b.ReportMetric(float64(b.N*len(records))/b.Elapsed().Seconds(), "records/s")
		})
	}
}
