package sheet_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/richtext"
	"github.com/coditect/mapreduce/internal/document/sheet"
)

func TestRows(t *testing.T) {
	for _, test := range []struct {
		name string
		rows [][]string
		want string
	}{
		{"a table", [][]string{{"a", "b"}, {"1", ""}, {"", "2", " "}}, "| a | b |\n| --- | --- |\n| 1 |  |\n|  | 2 |\n"},
		{"titles", [][]string{{"Report"}, {"", "of 2024"}, {"a", "b"}, {"1"}}, "Report\nof 2024\n\n| a | b |\n| --- | --- |\n| 1 |  |\n"},
		{"two tables", [][]string{{"a", "b"}, nil, {"c", "d"}, {"1", "2"}}, "| a | b |\n| --- | --- |\n\n| c | d |\n| --- | --- |\n| 1 | 2 |\n"},
		{"an empty row within", [][]string{{"a", "b"}, {"x", "1"}, nil, nil, {"y", "2"}, {"z", "3"}}, "| a | b |\n| --- | --- |\n| x | 1 |\n| y | 2 |\n| z | 3 |\n"},
		{"an empty row within a part", [][]string{{"a", "b", "", "c", "d"}, {"x", "1", "", "u", "7"}, {"", "", "", "v", "8"}, {"y", "2", "", "w", "9"}}, "| a | b |\n| --- | --- |\n| x | 1 |\n| y | 2 |\n\n| c | d |\n| --- | --- |\n| u | 7 |\n| v | 8 |\n| w | 9 |\n"},
		{"an empty row, and a first column that is empty", [][]string{{"", "a", "b", "c"}, {"", "x", "1", "2"}, {"", "", "3", "4"}, nil, {"", "", "5", "6"}}, "| a | b | c |\n| --- | --- | --- |\n| x | 1 | 2 |\n|  | 3 | 4 |\n|  | 5 | 6 |\n"},
		{"an empty row, and texts as above", [][]string{{"a", "b"}, {"x", "red"}, {"y", "blue"}, nil, {"z", "red"}}, "| a | b |\n| --- | --- |\n| x | red |\n| y | blue |\n| z | red |\n"},
		{"an empty row, and an odd cell", [][]string{{"a", "b"}, {"1", "2"}, nil, {"none", "4"}}, "| a | b |\n| --- | --- |\n| 1 | 2 |\n| none | 4 |\n"},
		{"a head of its own", [][]string{{"a", "b"}, {"x", "1"}, nil, {"c", "d"}, {"y", "2"}}, "| a | b |\n| --- | --- |\n| x | 1 |\n\n| c | d |\n| --- | --- |\n| y | 2 |\n"},
		{"the same head again", [][]string{{"a", "2023"}, {"x", "1"}, nil, {"c", "2023"}, {"y", "2"}}, "| a | 2023 |\n| --- | --- |\n| x | 1 |\n\n| c | 2023 |\n| --- | --- |\n| y | 2 |\n"},
		{"a head of years", [][]string{{"a", "2023"}, {"x", "1"}, nil, {"c", "2024"}, {"y", "2"}}, "| a | 2023 |\n| --- | --- |\n| x | 1 |\n\n| c | 2024 |\n| --- | --- |\n| y | 2 |\n"},
		{"a head of years below numbers", [][]string{{"a", "b"}, {"x", "1"}, nil, {"c", "2024"}, {"y", "2"}}, "| a | b |\n| --- | --- |\n| x | 1 |\n\n| c | 2024 |\n| --- | --- |\n| y | 2 |\n"},
		{"a head of days below numbers", [][]string{{"a", "b"}, {"x", "1"}, nil, {"c", "Jan-24 (=2024-01-01)"}, {"y", "2"}}, "| a | b |\n| --- | --- |\n| x | 1 |\n\n| c | Jan-24 (=2024-01-01) |\n| --- | --- |\n| y | 2 |\n"},
		{"a number like a year alone", [][]string{{"a", "b"}, {"x", "1"}, nil, {"y", "2024"}}, "| a | b |\n| --- | --- |\n| x | 1 |\n| y | 2024 |\n"},
		{"a round number alone", [][]string{{"a", "b"}, {"x", "1"}, nil, {"y", "2000"}, {"z", "3"}}, "| a | b |\n| --- | --- |\n| x | 1 |\n| y | 2000 |\n| z | 3 |\n"},
		{"round numbers like years", [][]string{{"a", "b", "c"}, {"x", "1", "2"}, nil, {"d", "1950", "2000"}, {"z", "4", "5"}}, "| a | b | c |\n| --- | --- | --- |\n| x | 1 | 2 |\n\n| d | 1950 | 2000 |\n| --- | --- | --- |\n| z | 4 | 5 |\n"},
		{"a number like a year beside another", [][]string{{"a", "b", "c"}, {"x", "1", "2"}, nil, {"y", "2024", "3"}, {"z", "4", "5"}}, "| a | b | c |\n| --- | --- | --- |\n| x | 1 | 2 |\n| y | 2024 | 3 |\n| z | 4 | 5 |\n"},
		{"years below years", [][]string{{"a", "b"}, {"x", "2023"}, nil, {"y", "2024"}, {"z", "2025"}}, "| a | b |\n| --- | --- |\n| x | 2023 |\n| y | 2024 |\n| z | 2025 |\n"},
		{"a column that is empty below", [][]string{{"a", "b", "c", "d", "e"}, {"x", "1", "k", "2", "3"}, {"v", "7", "", "8", "9"}, nil, {"y", "4", "", "5", "6"}}, "| a | b | c | d | e |\n| --- | --- | --- | --- | --- |\n| x | 1 | k | 2 | 3 |\n| v | 7 |  | 8 | 9 |\n| y | 4 |  | 5 | 6 |\n"},
		{"another table beside rows that go on", [][]string{{"a", "b"}, {"x", "1"}, nil, {"y", "2"}, {"z", "3", "", "c", "d"}, {"w", "4", "", "u", "5"}}, "| a | b |\n| --- | --- |\n| x | 1 |\n| y | 2 |\n| z | 3 |\n| w | 4 |\n\n| c | d |\n| --- | --- |\n| u | 5 |\n"},
		{"more columns", [][]string{{"a", "b"}, {"x", "1"}, nil, {"y", "2", "3"}}, "| a | b |\n| --- | --- |\n| x | 1 |\n\n| y | 2 | 3 |\n| --- | --- | --- |\n"},
		{"a label below", [][]string{{"a", "b"}, {"x", "1"}, nil, {"Sent:", "2"}}, "| a | b |\n| --- | --- |\n| x | 1 |\n\n| Sent: | 2 |\n| --- | --- |\n"},
		{"one column", [][]string{{"a"}, {"1"}, {"2"}}, "| a |\n| --- |\n| 1 |\n| 2 |\n"},
		{"a long column", [][]string{{"a"}, {"1"}, {"2"}, {"3"}, {"4"}, {"5"}, {"6"}, {"7"}, {"8"}, {"9"}}, "| a |\n| --- |\n| 1 |\n| 2 |\n| 3 |\n| 4 |\n| 5 |\n| 6 |\n| 7 |\n| 8 |\n| 9 |\n"},
		{"lines", [][]string{{"a"}, {"b"}}, "a\nb\n"},
		{"an empty column at the left", [][]string{{"", "a", "b"}, {"", "1", "2"}}, "| a | b |\n| --- | --- |\n| 1 | 2 |\n"},
		{"side by side", [][]string{{"a", "b", "", "c", "d"}, {"1", "2", "", "3", "4"}}, "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n| c | d |\n| --- | --- |\n| 3 | 4 |\n"},
		{"one below the other's side", [][]string{{"a", "b"}, {"1", "2", "", "c", "d"}, {"", "", "", "3", "4"}}, "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n| c | d |\n| --- | --- |\n| 3 | 4 |\n"},
		{"an empty column within", [][]string{{"a", "", "b"}, {"1", "", "2"}}, "| a |  | b |\n| --- | --- | --- |\n| 1 |  | 2 |\n"},
		{"a title beside", [][]string{{"T"}, {"a", "b"}, {"1", "2"}}, "T\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n"},
		{"a far cell", [][]string{{"a"}, nil, {"", "", "b"}}, "| a |\n| --- |\n\n| b |\n| --- |\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := new(richtext.Writer)
			w := sheet.Writer{Text: text}
			for i, r := range test.rows {
				if err := w.Row(i+1, r); err != nil {
					t.Fatal(err)
				}
			}
			w.End()
			d, err := text.Document()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, d.Text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A mergedRow is a row of cells, each with how many columns it covers.
type mergedRow struct {
	cells []string
	spans []int
}

// TestMergedRows: a head that groups columns has a row of names below it, and stands above its columns.
// Rows below an empty row go on with a table also if a merged cell of theirs reaches beyond its head, and a
// column within them is empty.
func TestMergedRows(t *testing.T) {
	for name, test := range map[string]struct {
		rows []mergedRow
		want string
	}{
		"a head of two rows": {[]mergedRow{
			{[]string{"Goods", "Sold"}, []int{0, 2}},
			{[]string{"Goods", "2023", "2024"}, nil},
			{[]string{"Bolts", "7", "9"}, nil},
			{[]string{"Sum", "", "16"}, []int{2}},
		}, "| Goods | Sold | Sold |\n| Goods | 2023 | 2024 |\n| --- | --- | --- |\n| Bolts | 7 | 9 |\n| Sum || 16 |\n"},
		"a wide cell below an empty row": {[]mergedRow{
			{[]string{"a", "b", "c", "d", "e"}, nil},
			{[]string{"x", "1", "k", "2", "3"}, nil},
			{[]string{"v", "7", "", "8", "9"}, nil},
			{},
			{[]string{"y", "4", "", "5", "6"}, []int{1, 1, 1, 1, 2}},
		}, "| a | b | c | d | e |\n| --- | --- | --- | --- | --- |\n| x | 1 | k | 2 | 3 |\n| v | 7 |  | 8 | 9 |\n| y | 4 |  | 5 | 6 ||\n"},
	} {
		t.Run(name, func(t *testing.T) {
			text := new(richtext.Writer)
			w := sheet.Writer{Text: text}
			for i, r := range test.rows {
				if err := w.MergedRow(i+1, r.cells, r.spans); err != nil {
					t.Fatal(err)
				}
			}
			w.End()

			d, err := text.Document()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, d.Text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestGapsInWideTable: each row below an empty one is compared with the head in time that grows with its
// cells, not with their square, which would be some 15 s here.
func TestGapsInWideTable(t *testing.T) {
	head, values := make([]string, sheet.MaxColumns), slices.Repeat([]string{"1"}, sheet.MaxColumns)
	head[0], head[len(head)-1] = "a", "z"

	begun := time.Now()
	w := sheet.Writer{Text: &richtext.Writer{MaxBytes: 1 << 20}}
	for i := range 40 {
		for _, row := range [][]string{head, values, nil}[min(i, 1):] {
			if err := w.Row(2*i+1, row); err != nil && !errors.As(err, new(*document.RefusedError)) {
				t.Fatal(err)
			}
		}
	}
	if took := time.Since(begun); took > 6*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestBounds(t *testing.T) {
	w := sheet.Writer{Text: new(richtext.Writer)}
	if err := w.Row(1, make([]string, sheet.MaxColumns+1)); !errors.As(err, new(*document.RefusedError)) {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestNumber(t *testing.T) {
	for _, test := range []struct {
		shown  string
		stored float64
		want   string
	}{
		{"5", 5, "5"},
		{"5.00", 5, "5.00"},
		{"$1,234.50", 1234.5, "$1,234.50"},
		{"1.234,50 €", 1234.5, "1.234,50 €"},
		{"1,234", 1234, "1,234 (=1234)"},
		{"1.234.567", 1234567, "1.234.567"},
		{"12.3", 12.3456, "12.3 (=12.3456)"},
		{"(12)", -12, "(12) (=-12)"},
		{"-12", -12, "-12"},
		{"25%", 0.25, "25% (=0.25)"},
		{"26%", 0.256, "26% (=0.256)"},
		{"1.2E+03", 1200, "1.2E+03"},
		{"1.2E+03", 1234, "1.2E+03 (=1234)"},
		{"####", 7, "7"},
		{"", 7, "7"},
		{"yes", 1, "yes (=1)"},
		{"0.3", 0.1 + 0.2, "0.3"},
		{"x", math.Inf(1), "x"},
		{"0.123", 0.123, "0.123"},
		{"1.234", 1.234, "1.234 (=1.234)"},
	} {
		if got := sheet.Number(test.shown, test.stored); got != test.want {
			t.Errorf("%v shown as %q is %q, want %q", test.stored, test.shown, got, test.want)
		}
	}
}

func TestDate(t *testing.T) {
	for _, test := range []struct{ shown, stored, want string }{
		{"4.3.24", "2024-03-04", "4.3.24 (=2024-03-04)"},
		{"4.3.24", "2024-03-04T00:00:00", "4.3.24 (=2024-03-04)"},
		{"2024-03-04", "2024-03-04", "2024-03-04"},
		{"2024-03-04 10:00", "2024-03-04T10:00", "2024-03-04 10:00"},
		{"", "2024-03-04", "2024-03-04"},
		{"###", "2024-03-04", "2024-03-04"},
		{"x", "", "x"},
	} {
		if got := sheet.Date(test.shown, test.stored); got != test.want {
			t.Errorf("%s shown as %q is %q, want %q", test.stored, test.shown, got, test.want)
		}
	}
}

func TestDuration(t *testing.T) {
	for seconds, want := range map[float64]string{0: "PT0S", 1: "PT1S", 5400: "PT1H30M", 36.5 * 3600: "PT36H30M", 59.6: "PT1M", -60: "-PT1M", math.Inf(1): ""} {
		if got := sheet.Duration(seconds); got != want {
			t.Errorf("%v s is %q, want %q", seconds, got, want)
		}
	}
}

func TestColumnName(t *testing.T) {
	for n, want := range map[int]string{0: "A", 25: "Z", 26: "AA", 701: "ZZ", 702: "AAA", 16383: "XFD"} {
		if got := sheet.ColumnName(n); got != want {
			t.Errorf("column %d is %s, want %s", n, got, want)
		}
	}
}

// TestPlacesBelowEmptyRows: rows that go on with a table keep the places of their own cells.
func TestPlacesBelowEmptyRows(t *testing.T) {
	text := new(richtext.Writer)
	w := sheet.Writer{Text: text}
	w.Begin("S")
	for i, r := range [][]string{{"", "a", "b"}, {"", "x", "1"}, nil, {"", "y", "22"}} {
		if err := w.Row(i+1, r); err != nil {
			t.Fatal(err)
		}
	}
	w.End()
	d, err := text.Document()
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(d.Text, "22")
	if l := d.Layout.Locate(at, at+2); l == nil || l.Cell != "C4" {
		t.Errorf("it is at %+v of %q, want C4", l, d.Text)
	}
}
