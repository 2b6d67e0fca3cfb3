package merge_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/merge"
)

func sighted(field string, v any, page int, quote string) merge.Value {
	return merge.Value{Field: field, Value: v, Seen: &merge.Sighting{Document: "d", Page: page, Quote: quote}}
}

// What a model saw is no value: it never competes with what something is cited for, stands before what
// nobody saw, and keeps its pages.
func TestWhatWasSeen(t *testing.T) {
	s := parse(t, strategies)
	for name, c := range map[string]struct {
		field   string
		values  []merge.Value
		value   any
		refused any
		pages   []int
	}{
		"alone":                {"vote", []merge.Value{sighted("vote", "PAID", 2, "PAID")}, nil, "PAID", []int{2}},
		"beside a citation":    {"vote", []merge.Value{sighted("vote", "PAID", 2, "PAID"), value("vote", "OPEN", 0.9, "c1")}, "OPEN", nil, nil},
		"beside an invention":  {"vote", []merge.Value{sighted("vote", "PAID", 2, "PAID"), value("vote", "DUE", 0)}, nil, "PAID", []int{2}},
		"the same, found too":  {"vote", []merge.Value{sighted("vote", "PAID", 2, "PAID"), value("vote", "PAID", 0.9, "c1")}, "PAID", nil, nil},
		"in a list of others":  {"union", []merge.Value{sighted("union", "a", 1, "a"), sighted("union", "b", 3, "b"), value("union", "c", 0.9, "c1")}, []any{"c"}, []any{"a", "b"}, []int{1, 3}},
		"two of one field":     {"first", []merge.Value{sighted("first", "a", 1, "a"), sighted("first", "b", 3, "b")}, nil, "a", []int{1}},
		"an invention, alone":  {"vote", []merge.Value{value("vote", "DUE", 0)}, nil, nil, nil},
		"with a citation":      {"vote", []merge.Value{{Field: "vote", Value: "x", Confidence: 0.9, Citations: []merge.Citation{"c"}, Seen: &merge.Sighting{Page: 1}}}, "x", nil, nil},
		"that breaks a schema": {"max", []merge.Value{sighted("max", "no number", 1, "q")}, nil, "no number", nil},
	} {
		r := resolve(s, record("d", 1, c.values...))[0]
		if diff := cmp.Diff(c.value, r.Values[c.field]); diff != "" {
			t.Errorf("%s: the value differs (-want +got):\n%s", name, diff)
		}
		refused, isRefused := r.Refused[c.field]
		if diff := cmp.Diff(c.refused, refused.Value); diff != "" {
			t.Errorf("%s: what is refused differs (-want +got):\n%s", name, diff)
		}
		if isRefused && c.pages != nil && refused.Constraint != mapreduce.SeenOnly {
			t.Errorf("%s: it is refused for %s", name, refused.Constraint)
		}
		var pages []int
		for _, at := range refused.Seen {
			pages = append(pages, at.Page)
		}
		if diff := cmp.Diff(c.pages, pages); diff != "" {
			t.Errorf("%s: the pages differ (-want +got):\n%s", name, diff)
		}
	}
}

// However records are grouped, the same was seen, and nothing of it is a value or has a confidence.
func TestSeenInAnyOrder(t *testing.T) {
	s := parse(t, strategies)
	rapid.Check(t, func(t *rapid.T) {
		var all []merge.Accumulator
		for i := range rapid.IntRange(1, 6).Draw(t, "records") {
			page := rapid.IntRange(1, 3).Draw(t, "page")
			word := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "word")
			all = append(all, merge.Accumulate(s, record("d", int64(i), sighted("vote", word, page, word), sighted("union", word, page, word))))
		}
		merged := func(list []merge.Accumulator) merge.Result {
			a := list[0]
			for _, b := range list[1:] {
				a = merge.Merge(a, b)
			}
			return merge.Resolve(s, a)
		}
		one, other := merged(all), merged(rapid.Permutation(all).Draw(t, "order"))
		if diff := cmp.Diff(one.Refused, other.Refused); diff != "" {
			t.Fatalf("the order changes what was seen:\n%s", diff)
		}
		for _, field := range []string{"vote", "union"} {
			if _, sure := one.Confidence[field]; sure || one.Values[field] != nil || len(one.Refused[field].Seen) == 0 {
				t.Fatalf("%s: %v, %v", field, one.Values[field], one.Refused[field])
			}
		}
	})
}
