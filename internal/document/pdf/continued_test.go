package pdf_test

import (
	"strings"
	"testing"
)

// A table that goes on over the end of a page has its head on the first page alone. What stands
// on the next is rows of it, if its columns and its numbers say so, and else a table of its own.
func TestTablesGoOnOverPages(t *testing.T) {
	at := []float64{44, 164, 304}
	head, drawn := []string{"Part", "Qty", "Price"}, stroked([]float64{40, 160, 300, 420}, []float64{720, 700, 680, 660, 640})
	first := [][]string{head, {"Bolt", "2", "1.50"}, {"Nut", "3", "0.20"}, {"Nail", "40", "0.10"}}
	ruled := "| Part | Qty | Price |\n| --- | --- | --- |\n| Screw | 5 | 0.30 |\n"
	for _, test := range []struct {
		name          string
		first, second [][]string
		at            []float64 // of the second page
		drawn, lines  string    // of both
		above         string    // on the second page
		want          string    // which the text has
	}{
		{"lines", first, [][]string{{"Screw", "5", "0.30"}, {"Pin", "6", "0.40"}, {"Rod", "7", "9.00"}}, at, drawn, drawn, "", ruled},
		{"alignment", first, [][]string{{"Screw", "5", "0.30"}, {"Pin", "6", "0.40"}, {"Rod", "7", "9.00"}}, at, "", "", "", ruled},
		{"a running head", first, [][]string{{"Screw", "5", "0.30"}, {"Pin", "6", "0.40"}, {"Rod", "7", "9.00"}}, at, drawn, drawn, "Parts in stock, page 2", ruled},
		{"a head of its own", first, [][]string{{"Tool", "Weight", "Cost"}, {"Pin", "6", "0.40"}, {"Rod", "7", "9.00"}}, at, drawn, drawn, "", "| Tool | Weight | Cost |\n| --- | --- | --- |\n| Pin | 6 | 0.40 |\n"},
		{"years are its head", first, [][]string{{"Income", "2023", "2024"}, {"Sales", "6", "0.40"}, {"Rent", "7", "9.00"}}, at, drawn, drawn, "", "| Income | 2023 | 2024 |\n| --- | --- | --- |\n"},
		{"other columns", first, [][]string{{"Screw", "5", "0.30"}, {"Pin", "6", "0.40"}, {"Rod", "7", "9.00"}}, []float64{44, 124, 204}, drawn, stroked([]float64{40, 120, 200, 420}, []float64{720, 700, 680, 660}), "", "| Screw | 5 | 0.30 |\n| --- | --- | --- |\n"},
		{"no numbers", [][]string{head, {"Bolt", "two", "low"}, {"Nut", "three", "low"}, {"Nail", "many", "low"}}, [][]string{{"Screw", "five", "high"}, {"Pin", "six", "high"}, {"Rod", "seven", "high"}}, at, drawn, drawn, "", "| Screw | five | high |\n| --- | --- | --- |\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			second := sheet{lines: rowsAt(706, 20, test.at, test.second...), drawn: test.lines}
			if test.above != "" {
				second.lines = append([]line{{44, 760, test.above}}, second.lines...)
			}
			d := read(t, shared, makeFile("", sheet{lines: rowsAt(706, 20, at, test.first...), drawn: test.drawn}, second))
			if !strings.Contains(d.Text, test.want) {
				t.Errorf("the text lacks\n%s\nit is\n%s", test.want, d.Text)
			}
			for _, p := range d.Layout {
				if p.Start < 0 || p.End > len(d.Text) {
					t.Errorf("a part at [%d, %d) of %d bytes", p.Start, p.End, len(d.Text))
				}
			}
		})
	}
}
