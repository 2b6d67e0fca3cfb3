package merge_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/text/confidence"
)

// TestNeighboursFindOneMention: what two chunks read at the same place is one
// mention, what they read at different places is two. A citation's id is that of
// its document and interval.
func TestNeighboursFindOneMention(t *testing.T) {
	s := parse(t, `
properties:
  sum: {type: number, x-coditect: {merge: sum}}
  all: {type: array, items: {type: string}, x-coditect: {merge: concat}}
  vote: {type: string}
`)
	num := json.Number("5")
	first := record("d", 0, value("sum", num, 0.9, "at 10"), value("all", "x", 0.9, "at 20"), value("vote", "a", 0.9, "at 30"))
	again := record("d", 1, value("sum", num, 0.8, "at 10"), value("all", "x", 0.9, "at 20"), value("vote", "b", 0.9, "at 40"))
	other := record("d", 2, value("sum", num, 0.9, "at 90"), value("all", "x", 0.9, "at 91"), value("vote", "b", 0.9, "at 40"))
	got := resolve(s, first, again, other)[0]
	want := map[string]any{"sum": json.Number("10"), "all": []any{"x", "x"}, "vote": "b"}
	if diff := cmp.Diff(want, got.Values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int64{"sum": 2, "all": 1, "vote": 1}, got.Duplicates); diff != "" {
		t.Errorf("duplicates (-want +got):\n%s", diff)
	}
	if got, want := got.Conflicts[0].Rationale, "1 of 2 values, with 0.99 of 1.89 confidence"; got != want {
		t.Errorf("rationale %q, want %q: b was read twice and stands once", got, want)
	}
	// Two readings of one place make it more certain, not two places of it.
	two := resolve(s, first, again)[0].Confidence["sum"]
	if diff := two - confidence.Agreed(0.9, 2, 2); diff < -1e-6 || diff > 1e-6 {
		t.Errorf("confidence %v of two readings that agree", two)
	}
	one := resolve(s, first)[0].Confidence["sum"]
	if one >= two {
		t.Errorf("confidence %v of one reading, %v of two that agree", one, two)
	}
}

func TestPassesThatFoundNothingLowerConfidence(t *testing.T) {
	s := parse(t, "properties: {a: {}}")
	last := 2.0
	for found := int64(3); found > 0; found-- {
		v := value("a", "x", 0.9, "at 1")
		v.Found, v.Of = found, 3
		got := resolve(s, record("d", 0, v))[0].Confidence["a"]
		if got >= last {
			t.Errorf("found by %d of 3 passes: confidence %v, not below %v", found, got, last)
		}
		last = got
	}
}

// TestNeighboursFindOneRecord is the same for records of lists.
func TestNeighboursFindOneRecord(t *testing.T) {
	s := parse(t, "type: array\nitems: {properties: {a: {}, b: {}}}")
	at := func(unit int64, shared bool, citation merge.Citation, b string) merge.Record {
		r := record("d", unit, value("a", "x", 0.9, citation), value("b", b, 0.9, "at 20"))
		r.Shared = shared
		return r
	}
	for _, tt := range []struct {
		name string
		all  []merge.Record
		want int
	}{
		{"the same places", []merge.Record{at(0, true, "at 10", "y"), at(1, true, "at 10", "y")}, 1},
		{"another place", []merge.Record{at(0, true, "at 10", "y"), at(1, true, "at 50", "y")}, 2},
		{"another value at the same places", []merge.Record{at(0, true, "at 10", "y"), at(1, true, "at 10", "z")}, 2},
		{"places that no neighbour reads", []merge.Record{at(0, false, "at 10", "y"), at(1, false, "at 10", "y")}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := resolve(s, tt.all...); len(got) != tt.want {
				t.Errorf("%d records, want %d", len(got), tt.want)
			}
		})
	}
}

func TestWhatExtractorsSayIsKeptBeside(t *testing.T) {
	s := parse(t, "properties: {a: {}, b: {}}")
	v := value("a", "x", 0.5, "at 1")
	v.Said = 0.99
	got := resolve(s, record("d", 0, v, value("b", "y", 0.5, "at 2")))[0]
	if diff := cmp.Diff(map[string]float64{"a": 0.99}, got.Said); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
	if got.Confidence["a"] != got.Confidence["b"] {
		t.Errorf("what is said counts: %v", got.Confidence)
	}
}
