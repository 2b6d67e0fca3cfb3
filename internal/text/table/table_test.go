package table_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/text/table"
)

// rowsOf returns what the cells of lines say. A cell that belongs to the one at its left is
// an arrow.
func rowsOf(text string, lines []table.Line) [][]string {
	var rows [][]string
	for _, l := range lines {
		var row []string
		for _, c := range table.Cells(text, l, nil) {
			if c.Joined {
				row = append(row, "<")
				continue
			}
			row = append(row, c.Text(text))
		}
		rows = append(rows, row)
	}
	return rows
}

func TestRead(t *testing.T) {
	type want struct {
		Heads, Rows [][]string
	}
	for _, test := range []struct {
		name, text string
		want       []want
	}{
		{"nothing", "a\nb | c\n\n", nil},
		{"one", "x\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\ny", []want{{[][]string{{"a", "b"}}, [][]string{{"1", "2"}}}}},
		{"without bars around it", "a | b\n:-- | --:\n1 | 2", []want{{[][]string{{"a", "b"}}, [][]string{{"1", "2"}}}}},
		{"two heads", "| g | g |\n| a | b |\n|---|---|\n| 1 | 2 |\n", []want{{[][]string{{"g", "g"}, {"a", "b"}}, [][]string{{"1", "2"}}}}},
		{"text above that has a bar", "this | is | it\n| a | b |\n|---|---|\n| 1 | 2 |\n", []want{{[][]string{{"a", "b"}}, [][]string{{"1", "2"}}}}},
		{"head that stands again", "| a | b |\n|---|---|\n| 1 | 2 |\n\n| a | b |\n|---|---|\n| 3 | 4 |\n", []want{{[][]string{{"a", "b"}}, [][]string{{"1", "2"}, {"3", "4"}}}}},
		{"another table with that head", "| a | b |\n|---|---|\n| 1 | 2 |\n\nand\n\n| a | b |\n|---|---|\n| 3 | 4 |\n", []want{
			{[][]string{{"a", "b"}}, [][]string{{"1", "2"}}}, {[][]string{{"a", "b"}}, [][]string{{"3", "4"}}},
		}},
		{"another head", "| a | b |\n|---|---|\n| 1 | 2 |\n\n| a | c |\n|---|---|\n| 3 | 4 |\n", []want{
			{[][]string{{"a", "b"}}, [][]string{{"1", "2"}}}, {[][]string{{"a", "c"}}, [][]string{{"3", "4"}}},
		}},
		{"cells of all kinds", "| a | b | c |\n|---|---|---|\n|  | x\\|y ||\n| 1 |\n| 1 | 2 | 3 | 4 |\n", []want{
			{[][]string{{"a", "b", "c"}}, [][]string{{"", "x|y", "<"}, {"1"}, {"1", "2", "3", "4"}}},
		}},
		{"no rows", "| a |\n| --- |\n", []want{{[][]string{{"a"}}, nil}}},
		{"a line below text", "a | b\n---\nc", nil},
		{"a rule without a head", "| --- | --- |\n| 1 | 2 |\n", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []want
			for _, one := range table.Read(test.text) {
				got = append(got, want{rowsOf(test.text, one.Heads), rowsOf(test.text, one.Rows)})
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestForms: two forms of a value are told from text in brackets.
func TestForms(t *testing.T) {
	for cell, want := range map[string][2]string{
		"12.34% (=0.1234)":                   {"12.34%", "0.1234"},
		"2,000 (=1999.5)":                    {"2,000", "1999.5"},
		"(5) (=-5)":                          {"(5)", "-5"},
		"3/4/24 (=2024-03-04)":               {"3/4/24", "2024-03-04"},
		"3/4/24 8:30 (=2024-03-04T08:30:00)": {"3/4/24 8:30", "2024-03-04T08:30:00"},
		"8:30 (=08:30:00)":                   {"8:30", "08:30:00"},
		"36:30 (=PT36H30M)":                  {"36:30", "PT36H30M"},
		"1E+20 (=1e+20)":                     {"1E+20", "1e+20"},
		"WAHR (=TRUE)":                       {"WAHR", "TRUE"},
		"12 (5)":                             {"12 (5)", ""},
		"see (=A1)":                          {"see (=A1)", ""},
		"x (=01)":                            {"x (=01)", ""},
		"x (=TRUE())":                        {"x (=TRUE())", ""},
		"x (=PT)":                            {"x (=PT)", ""},
		"x (=PT5M3H)":                        {"x (=PT5M3H)", ""},
		" (=5)":                              {" (=5)", ""},
		"":                                   {"", ""},
	} {
		shown, stored := table.Forms(cell)
		if got := [2]string{shown, stored}; got != want {
			t.Errorf("%q: got %q, want %q", cell, got, want)
		}
		if stored != "" && table.WithStored(shown, stored) != cell {
			t.Errorf("%q is written as %q", cell, table.WithStored(shown, stored))
		}
	}
}

func TestNoValues(t *testing.T) {
	for cell, want := range map[string][2]bool{
		"#DIV/0!": {true, false}, "#N/A": {true, false}, "#1": {false, false}, "=SUM(A1:A3)": {false, true},
		"=": {false, false}, "==": {false, false}, "a=b": {false, false},
	} {
		if got := [2]bool{table.IsError(cell), table.IsFormula(cell)}; got != want {
			t.Errorf("%q: an error or a formula: %v, want %v", cell, got, want)
		}
	}
}

// TestWhatIsWrittenIsRead: whatever cells say, they are read from the text where they were
// written.
func TestWhatIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 5).Draw(t, "width")
		cell := rapid.SampledFrom([]string{"", "a", "---", "a|b", `\`, `\|`, "|", "x\ny", " é ", "= 1", "#"})
		rows := rapid.SliceOfN(rapid.SliceOfN(cell, width, width), 1, 6).Draw(t, "rows")
		rows[0][0] = "head"
		var b strings.Builder
		b.WriteString("above\n\n")
		for i, row := range rows {
			b.WriteByte('|')
			for j, c := range row {
				rows[i][j] = strings.Join(strings.Fields(c), " ")
				b.WriteString(" " + table.Escape(c) + " |")
			}
			b.WriteByte('\n')
			if i == 0 {
				b.WriteString(table.Rule(width) + "\n")
			}
		}
		b.WriteString("\nbelow\n")
		text := b.String()
		all := table.Read(text)
		if len(all) != 1 {
			t.Fatalf("%d tables of\n%s", len(all), text)
		}
		got := rowsOf(text, append(all[0].Heads, all[0].Rows...))
		if diff := cmp.Diff(rows, got); diff != "" {
			t.Errorf("%s(-want +got):\n%s", text, diff)
		}
	})
}

// FuzzRead reads any text: rows are lines of it, in order, and cells are parts of their rows.
func FuzzRead(f *testing.F) {
	f.Add("| a | b |\n|---|---|\n| 1 ||\n\n| a | b |\n|---|---|\n| 3 \\| 4 |\n")
	f.Fuzz(func(t *testing.T, text string) {
		end := 0
		for _, one := range table.Read(text) {
			if one.Start < end || len(one.Heads) == 0 || one.Columns < 1 || one.Heads[0].Start != one.Start {
				t.Fatalf("a table at %d behind %d: %+v", one.Start, end, one)
			}
			end = one.Start
			for _, l := range append(one.Heads, one.Rows...) {
				if l.Start < end || l.End < l.Start || l.End > one.End || strings.Contains(text[l.Start:l.End], "\n") {
					t.Fatalf("a row at %+v behind %d of %+v", l, end, one)
				}
				end = l.End
				at := l.Start
				for _, c := range table.Cells(text, l, nil) {
					if c.Start < at || c.End < c.Start || c.End > l.End {
						t.Fatalf("a cell at %+v behind %d of row %+v", c, at, l)
					}
					at = c.End
				}
			}
			end = one.End
		}
	})
}
