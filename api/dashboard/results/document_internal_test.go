package results

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The pieces of a text are the text, and the piece that was asked for is the passage.
func TestMark(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []rune(rapid.StringOfN(rapid.RuneFrom([]rune("abcä語\n")), 0, 60, -1).Draw(t, "text"))
		at := func(name string) passage {
			from := rapid.IntRange(0, 70).Draw(t, name)
			return passage{from, from + rapid.IntRange(0, 20).Draw(t, name+" length")}
		}
		here, others := at("here"), []passage{at("one"), at("two")}
		pieces, cut := mark(text, here, others)
		var all, marked strings.Builder
		for _, p := range pieces {
			all.WriteString(p.Text)
			if p.Here {
				marked.WriteString(p.Text)
			}
		}
		if cut || all.String() != string(text) {
			t.Fatalf("%q became %q", string(text), all.String())
		}
		if want := string(text[min(here.start, len(text)):min(here.end, len(text))]); marked.String() != want {
			t.Fatalf("%q is marked, want %q", marked.String(), want)
		}
	})
}

// Of a long text the part around the passage is shown.
func TestMarkOfLongTexts(t *testing.T) {
	text := []rune(strings.Repeat("x", 3*maxText) + "quote")
	pieces, cut := mark(text, passage{3 * maxText, 3*maxText + 5}, nil)
	if !cut || pieces[len(pieces)-1].Text != "quote" || !pieces[len(pieces)-1].Here {
		t.Errorf("the passage is not shown: %d pieces, cut %v", len(pieces), cut)
	}
}
