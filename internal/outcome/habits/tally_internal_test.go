package habits

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/schema/format"
)

// A tally has what a map of counts by name would have.
func TestTallyCountsAsAMapDoes(t *testing.T) {
	if n := reflect.TypeFor[format.NumberCount]().NumField(); n != len(partsOf(new(format.NumberCount))) {
		t.Fatalf("a count has %d numbers, and a tally keeps %d of them", n, len(partsOf(new(format.NumberCount))))
	}

	rapid.Check(t, func(t *rapid.T) {
		var got tally
		want := make(map[[2]string]format.NumberCount)
		name := rapid.SampledFrom([]string{"", "a", "b", "ab"})
		for range rapid.IntRange(0, 40).Draw(t, "adds") {
			document, field := name.Draw(t, "document"), name.Draw(t, "field")
			var c format.NumberCount
			for _, part := range partsOf(&c) {
				*part = rapid.SampledFrom([]int64{0, 1, 2, 200, 1000}).Draw(t, "count")
			}

			got.add(tallyKey(document, field), c)
			all := want[[2]string{document, field}]
			all.Add(c)
			want[[2]string{document, field}] = all
		}

		for key, c := range want {
			if found := got.of(tallyKey(key[:]...)); found != c {
				t.Errorf("%q has %+v, want %+v", key, found, c)
			}
		}
		if len(got.small)+len(got.large) != len(want) {
			t.Errorf("%d and %d keys, want %d", len(got.small), len(got.large), len(want))
		}
	})
}
