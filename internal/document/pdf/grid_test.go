package pdf_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rowsAt returns rows of texts at places from the left, each some points below the one before.
func rowsAt(top, lead float64, at []float64, rows ...[]string) []line {
	var all []line
	for i, r := range rows {
		for j, text := range r {
			if text != "" {
				all = append(all, line{at[j], top - lead*float64(i), text})
			}
		}
	}
	return all
}

// byColumn returns lines as a producer writes them that draws one column after the other, the
// last one first.
func byColumn(lines []line) []line {
	lines = slices.Clone(lines)
	slices.SortStableFunc(lines, func(a, b line) int { return int(b.x - a.x) })
	return lines
}

// TestGrids reads what is aligned: tables as Markdown, labels with their values in one line,
// and nothing else as a table.
func TestGrids(t *testing.T) {
	order := rowsAt(700, 16, []float64{40, 100, 260, 360, 480},
		[]string{"No", "Article", "Qty", "Price", "Amount"}, []string{"1", "Lamp", "2", "20.50", "41.00"},
		[]string{"2", "Chair of oak", "4", "49.00", "196.00"}, []string{"", "Delivery", "1", "9.00", "9.00"})
	ordered := `| No | Article | Qty | Price | Amount |
| --- | --- | --- | --- | --- |
| 1 | Lamp | 2 | 20.50 | 41.00 |
| 2 | Chair of oak | 4 | 49.00 | 196.00 |
|  | Delivery | 1 | 9.00 | 9.00 |
`
	totals := rowsAt(400, 22, []float64{400, 500}, []string{"Subtotal:", "120.00"}, []string{"Tax (0%):", "0.00"}, []string{"Total:", "120.00"})
	for _, tt := range []struct {
		name  string
		lines []line
		want  string
	}{
		{"a table", order, ordered},
		{"a table drawn by columns", byColumn(order), ordered},
		{
			"labels above their values", rowsAt(700, 14, []float64{40, 220, 400}, []string{"Invoice Date:", "Due Date:", "Reference:"}, []string{"03/20/2023", "04/04/2023", "CUST17"}),
			"| Invoice Date: | Due Date: | Reference: |\n| --- | --- | --- |\n| 03/20/2023 | 04/04/2023 | CUST17 |\n",
		},
		{"labels left of their values", totals, "Subtotal:\t120.00\n\nTax (0%):\t0.00\n\nTotal:\t120.00\n"},
		{"values drawn first", byColumn(totals), "Subtotal:\t120.00\n\nTax (0%):\t0.00\n\nTotal:\t120.00\n"},
		{
			"heads of two lines", rowsAt(700, 14, []float64{40, 200, 300}, []string{"Name", "Net", "Gross"}, []string{"of item", "in EUR", "in EUR"},
				[]string{"Bolt", "1.00", "1.19"}, []string{"Nut", "2.00", "2.38"}, []string{"Nail", "3.00", "3.57"}),
			"| Name | Net | Gross |\n| of item | in EUR | in EUR |\n| --- | --- | --- |\n| Bolt | 1.00 | 1.19 |\n| Nut | 2.00 | 2.38 |\n| Nail | 3.00 | 3.57 |\n",
		},
		{
			"a cell that has a bar", rowsAt(700, 14, []float64{40, 200, 300}, []string{"A", "B", "C"}, []string{"x|y", "1", "2"}, []string{"z", "3", "4"}),
			"| A | B | C |\n| --- | --- | --- |\n| x\\|y | 1 | 2 |\n| z | 3 | 4 |\n",
		},
	} {
		d := read(t, shared, makeFile("", sheet{lines: tt.lines}))
		if diff := cmp.Diff(tt.want, d.Text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestNoGrids reads what only looks aligned: no table is made of it.
func TestNoGrids(t *testing.T) {
	for name, lines := range map[string][]line{
		"a table of contents":     rowsAt(700, 14, []float64{40, 80, 500}, []string{"1.1", "Definitions ...............", "5"}, []string{"1.2", "Terms .....................", "7"}, []string{"1.3", "Payment ...................", "9"}),
		"a form of two columns":   rowsAt(700, 14, []float64{40, 140, 300, 400}, []string{"Name:", "Ann", "Town:", "Ulm"}, []string{"Street:", "Way 1", "Code:", "89073"}, []string{"Phone:", "12", "Fax:", "13"}),
		"running text in columns": slices.Concat(left, prose(250, 700, "The second of three columns", "says that it is not", "a table at all, however", "level it may stand."), prose(420, 700, "And a third of them", "says just that again", "and stands as level", "as the others do.")),
		"a list":                  rowsAt(700, 14, []float64{40, 70}, []string{"(a)", "the first"}, []string{"(b)", "the second"}, []string{"(c)", "the third"}),
	} {
		d := read(t, shared, makeFile("", sheet{lines: lines}))
		if strings.Contains(d.Text, "---") {
			t.Errorf("%s became a table:\n%s", name, d.Text)
		}
		for _, l := range lines {
			for word := range strings.FieldsSeq(l.text) {
				if !strings.Contains(d.Text, word) {
					t.Errorf("%s lost %q:\n%s", name, word, d.Text)
				}
			}
		}
	}
}
