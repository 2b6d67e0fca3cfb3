package review

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
)

// TestForget: what is forgotten of a large result while it is read changes nothing of its queue.
func TestForget(t *testing.T) {
	s, err := schema.Parse("s.yaml", []byte("type: object\nproperties:\n  a: {type: string}\n  b: {type: number}\n  c: {type: string}\n"))
	if err != nil {
		t.Fatal(err)
	}
	decisions := []*mapreduce.Decision{
		{Record: mapreduce.NewRecordID(3, 0), Field: "a", Number: 1, Verdict: mapreduce.ReviewAccept, By: "ann"},
		{Record: mapreduce.NewRecordID(14_001, 0), Field: "b", Number: 1, Verdict: mapreduce.ReviewReject, By: "ann"},
	}
	choice := Choice{Seed: 7, Sample: 60}
	whole, cut := NewBuilder(s, decisions, choice), NewBuilder(s, decisions, choice)
	whole.room = math.MaxInt

	most := 0
	for i := range int64(15_000) {
		c := "null"
		if i%3 == 0 {
			c = `"z"`
		}
		data := fmt.Sprintf(`{"a": "x", "b": %d, "c": %s, "_sources": ["d"], "_confidence": {"a": %.2f, "b": %.2f, "c": 0.99}}`, i, c, float64(i%97)/97, 1-float64(i%31)/40)
		parts := []*mapreduce.ResultPart{{Record: []byte(data), RecordID: mapreduce.NewRecordID(i, 0)}}
		if i%1000 == 5 {
			parts = append(parts, &mapreduce.ResultPart{Conflict: []byte(`{"field": "c"}`)})
		}
		for _, b := range []*Builder{whole, cut} {
			for _, p := range parts {
				if err := b.Take(p); err != nil {
					t.Fatal(err)
				}
			}
		}
		most = max(most, len(cut.items))
	}
	if most > leastRoom+3 || cut.forgotten == 0 {
		t.Errorf("%d items were kept, and %d forgotten", most, cut.forgotten)
	}

	want, err := whole.Queue()
	if err != nil {
		t.Fatal(err)
	}
	got, err := cut.Queue()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Item{})); diff != "" {
		t.Errorf("(-want +got):\n%.2000s", diff)
	}
	if want.Values != 45_000 || want.More < 5_000 {
		t.Errorf("%d values, %d more", want.Values, want.More)
	}
}
