package output_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/outcome/output"
)

// B15: what is counted of an output is what a reduce has to read of it.
func TestTextIsWhatAReduceReads(t *testing.T) {
	s := orders(t)
	_, a, b := both(t, s)
	want := "city: Köln\n  Köln\nnote: van\n  van\norder: K-1\n  K-1\ntotal: 5.5\n  5.50\n"
	if got := sorted(a.Text()); got != sorted(want) {
		t.Errorf("a map unit's:\n%s\nwant:\n%s", got, sorted(want))
	}
	merged := output.Reduce(s, []*output.Output{a, b}, nil, false)
	merged.Removed = []output.Removed{{Name: "REF_x", Field: "note", Reason: "made up"}}
	for _, part := range []string{"city: Köln\n", "total: 5.5\n", "total: 7.5\n", "  lorry, tomorrow\n", "note: made up\n"} {
		if !strings.Contains(merged.Text(), part) {
			t.Errorf("a reduce's lacks %q:\n%s", part, merged.Text())
		}
	}
	_, alone := unit(t, s, 2, "c", textA, map[string]string{"order": "K-1", "total": "5.50"})
	names := output.Reduce(s, []*output.Output{alone}, nil, false)
	if text := names.Text(); strings.Contains(text, "5.50") || text != names.Open[0].Entity+"\n" {
		t.Errorf("of a record that nothing was merged with it is %q; want its name alone", text)
	}
}

func sorted(text string) string {
	lines := slices.Sorted(strings.Lines(text))
	return strings.Join(lines, "")
}

// Sizes decide trees, so they are the same for whoever runs the unit again, and of
// what is read from the store.
func TestTextIsTheSameOfWhatIsStored(t *testing.T) {
	s := parse(t, "")
	rapid.Check(t, func(t *rapid.T) {
		for _, o := range mapped(t, s) {
			if got, want := stored(t, o).Text(), o.Text(); got != want {
				t.Fatalf("%q after a round trip, %q before", got, want)
			}
		}
	})
}
