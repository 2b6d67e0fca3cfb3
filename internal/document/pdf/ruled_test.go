package pdf_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stroked returns the drawing of lines at places from the left and from the bottom, which cross.
func stroked(xs, ys []float64) string {
	var b strings.Builder
	for _, x := range xs {
		fmt.Fprintf(&b, "%v %v m %v %v l S\n", x, ys[0], x, ys[len(ys)-1])
	}
	for _, y := range ys {
		fmt.Fprintf(&b, "%v %v m %v %v l S\n", xs[0], y, xs[len(xs)-1], y)
	}
	return b.String()
}

// TestRuledTables reads tables as their lines part them, however near their texts are to each
// other, and leaves alone what lines only frame.
func TestRuledTables(t *testing.T) {
	cells := []line{
		{44, 706, "Part"},
		{104, 706, "Qty"},
		{144, 706, "Note"},
		{44, 686, "Bolt"},
		{104, 686, "2"},
		{144, 692, "zinc plated,"},
		{144, 682, "by weight"},
		{44, 666, "Nut"},
		{144, 666, "short"},
	}
	want := "| Part | Qty | Note |\n| --- | --- | --- |\n| Bolt | 2 | zinc plated, by weight |\n| Nut |  | short |\n"
	xs, ys := []float64{40, 100, 140, 220}, []float64{720, 700, 680, 660}
	for _, test := range []struct {
		name, drawn string
		lines       []line
		want        string
	}{
		{"lines", stroked(xs, ys), cells, want},
		{"thin rectangles", strings.NewReplacer("40 720 m 220 720 l S", "40 719.5 180 1 re f").Replace(stroked(xs, ys)), cells, want},
		{"a rectangle around each cell", "40 660 60 20 re 100 660 40 20 re 140 660 80 20 re 40 680 60 20 re 100 680 40 20 re 140 680 80 20 re 40 700 60 20 re 100 700 40 20 re 140 700 80 20 re S\n", cells, want},
		{"double lines", stroked(xs, ys) + stroked([]float64{42, 98, 102, 138, 142, 218}, []float64{718, 702, 698, 682, 678, 662}), cells, want},
		{"colours of cells", "0.8 g 40 700 60 20 re f 100 700 40 20 re f 140 700 80 20 re f 40 680 60 20 re f 100 680 40 20 re f 140 680 80 20 re f 40 660 60 20 re f 100 660 40 20 re f 140 660 80 20 re f 0 g\n", cells, want},
		{"no lines at the sides", stroked([]float64{100, 140}, ys) + "40 720 m 220 720 l S 40 700 m 220 700 l S 40 680 m 220 680 l S 40 660 m 220 660 l S\n", cells, want},
		{"a form of which the lines are a part", "q 1 0 0 1 10 0 cm /X Do Q\n", nil, "| Part | Qty |\n| --- | --- |\n| Bolt | 2 |\n"},
		{
			"a cell of several columns, and one of several rows", stroked([]float64{40, 100, 140}, []float64{700, 680, 660}) + "40 660 m 40 740 l S 40 740 m 140 740 l S 140 660 m 140 740 l S 100 700 m 100 740 l S 100 720 m 140 720 l S\n",
			[]line{{44, 716, "Part"}, {104, 726, "Net"}, {104, 706, "EUR"}, {44, 686, "Bolt"}, {104, 686, "1"}, {44, 666, "Nut"}, {104, 666, "2"}},
			"| Part | Net |\n| Part | EUR |\n| --- | --- |\n| Bolt | 1 |\n| Nut | 2 |\n",
		},
		{
			"columns with lines, rows without", stroked(xs, []float64{720, 700, 640}),
			[]line{{44, 706, "Part"}, {104, 706, "Qty"}, {144, 706, "Note"}, {44, 686, "Bolt"}, {104, 686, "2"}, {144, 686, "a"}, {44, 666, "Nut"}, {104, 666, "3"}, {144, 666, "b"}, {44, 646, "Nail"}, {104, 646, "4"}, {144, 646, "c"}},
			"| Part | Qty | Note |\n| --- | --- | --- |\n| Bolt | 2 | a |\n| Nut | 3 | b |\n| Nail | 4 | c |\n",
		},
		{
			"a title within the lines, and every second row a bar", stroked(xs, []float64{700, 680, 660}) + "40 740 180 40 re S 40 720 m 220 720 l S 40 640 m 220 640 l S 40 640 m 40 660 l S 220 640 m 220 660 l S\n",
			[]line{{44, 726, "Parts in stock"}, {44, 686, "Part"}, {104, 686, "Qty"}, {144, 686, "Note"}, {44, 666, "Bolt"}, {104, 666, "2"}, {144, 666, "a"}, {44, 646, "Nut"}, {104, 646, "3"}, {144, 646, "b"}},
			"Parts in stock\n\n| Part | Qty | Note |\n| --- | --- | --- |\n| Bolt | 2 | a |\n| Nut | 3 | b |\n",
		},
		{"a frame", "40 640 300 100 re S\n", prose(44, 700, "Only a frame", "with text in it"), "Only a frame\nwith text in it\n"},
		{"words that are underlined", stroked(xs, ys) + "104 684 m 112 684 l S\n", cells, want},
		{"labels with colons", stroked([]float64{40, 100, 220}, []float64{720, 700, 680}), []line{{44, 706, "Date:"}, {104, 706, "2024-01-02"}, {44, 686, "Total:"}, {104, 686, "12.50"}}, "Date:\t2024-01-02\n\nTotal:\t12.50\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := read(t, shared, makeFile("", sheet{lines: test.lines, drawn: test.drawn}))
			if diff := cmp.Diff(test.want, d.Text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
