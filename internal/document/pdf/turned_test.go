package pdf_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/document"
)

// upright is a table with lines as it stands on a page that nothing turns.
func upright() sheet {
	lines := []line{{44, 686, "Part"}, {104, 686, "Qty"}, {144, 686, "Note"}, {44, 666, "Bolt"}, {104, 666, "2"}, {144, 666, "zinc"}}
	for i, name := range strings.Fields("Nut Nail Screw Hook Ring") {
		y := 646 - 20*float64(i)
		lines = append(lines, line{44, y, name}, line{104, y, "12"}, line{144, y, "steel"})
	}
	return sheet{lines: lines, drawn: stroked([]float64{40, 100, 140, 220}, []float64{700, 680, 660, 640, 620, 600, 580, 560})}
}

// partBoxes returns the boxes of the parts of a text by what they say.
func partBoxes(d *document.Document) map[string][4]float64 {
	boxes := make(map[string][4]float64)
	for _, p := range d.Layout {
		boxes[d.Text[p.Start:p.End]] = [4]float64{p.Box.Left, p.Box.Top, p.Box.Right, p.Box.Bottom}
	}
	return boxes
}

// TestTurnedPages reads a table that is turned on its page as the one that is not, with the boxes
// where a viewer shows them.
func TestTurnedPages(t *testing.T) {
	straight := read(t, shared, makeFile("", upright()))
	for _, test := range []struct {
		name, by, more string
		// shown returns where the point of the straight page is shown.
		shown func(x, y float64) (float64, float64)
	}{
		{"read from below", "0 1 -1 0 800 0 cm", "/MediaBox [0 0 800 600]", func(x, y float64) (float64, float64) { return y, 600 - x }},
		{"read from above", "0 -1 1 0 0 600 cm", "/MediaBox [0 0 800 600]", func(x, y float64) (float64, float64) { return 800 - y, x }},
		{"upside down", "-1 0 0 -1 600 800 cm", "", func(x, y float64) (float64, float64) { return 600 - x, 800 - y }},
		{"read from below on a page that is rotated", "-1 0 0 -1 600 800 cm", "/Rotate 90", func(x, y float64) (float64, float64) { return y, 600 - x }},
		{"a page that is rotated so that it is upright", "0 1 -1 0 800 0 cm", "/MediaBox [0 0 800 600] /Rotate 90", func(x, y float64) (float64, float64) { return x, y }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := upright()
			s.drawn, s.more = test.by+"\n"+s.drawn, test.more
			d := read(t, shared, makeFile("", s))
			if diff := cmp.Diff(straight.Text, d.Text); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}

			want := partBoxes(straight)
			for part, b := range want {
				x1, y1 := test.shown(b[0], b[1])
				x2, y2 := test.shown(b[2], b[3])
				want[part] = [4]float64{min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)}
			}
			near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 0.3 })
			if diff := cmp.Diff(want, partBoxes(d), near); diff != "" {
				t.Errorf("boxes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTurnedLabels leaves a page alone of which some words are turned, such as those beside a
// figure.
func TestTurnedLabels(t *testing.T) {
	s := upright()
	want := read(t, shared, makeFile("", s))
	s.lines = append(s.lines, line{10, 20, "below"})
	s.drawn += "q 0 1 -1 0 600 0 cm " + content([]line{{300, 20, "Figure"}}) + "Q\n"
	d := read(t, shared, makeFile("", s))
	if !strings.Contains(d.Text, want.Text) {
		t.Errorf("%q does not contain the table as it is without them", d.Text)
	}
}
