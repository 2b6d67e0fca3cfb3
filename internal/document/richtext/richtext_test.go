package richtext_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/richtext"
)

func TestWriter(t *testing.T) {
	here := &mapreduce.Location{Page: 1}
	var w richtext.Writer
	w.Paragraph("\n", nil)
	w.Heading(9, " A \n title", here)
	w.Paragraph("one\ntwo ", here)
	w.Paragraph("three", nil)
	w.Item(1, "-", "item\nof lines", here)
	w.Item(0, "2.", "next", here)
	w.Item(0, "", "goes on", here)
	w.Item(0, "-", " ", here)
	w.Table([][]richtext.Cell{{{Text: "a|b", Place: here}}, {{Text: "1\n2"}, {Text: "3", Place: here}}, nil})
	w.Note("[^1]:", "note", here)
	w.Heading(1, "End", nil)
	d, err := w.Document()
	if err != nil {
		t.Fatal(err)
	}
	want := "###### A title\n\none\ntwo\nthree\n\n  - item of lines\n2. next\n  goes on\n\n| a\\|b |  |\n| --- | --- |\n| 1 2 | 3 |\n|  |  |\n\n[^1]: note\n\n# End\n"
	if diff := cmp.Diff(want, d.Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var placed []string
	for _, p := range d.Layout {
		placed = append(placed, d.Text[p.Start:p.End])
	}
	if diff := cmp.Diff([]string{"A title", "one\ntwo", "item of lines", "next", "goes on", `a\|b`, "3", "note"}, placed); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
	if err := d.Layout.Check(len(d.Text)); err != nil {
		t.Error(err)
	}
}

// TestHeaderRepeats writes a long table: no row is far from a header.
func TestHeaderRepeats(t *testing.T) {
	var w richtext.Writer
	w.BeginTable([]richtext.Cell{{Text: "name"}, {Text: "size"}})
	for range 1000 {
		w.Row([]richtext.Cell{{Text: "a row of some length"}, {Text: "12"}})
	}
	w.EndTable()
	d, err := w.Document()
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(d.Text, "| a row"); n != 1000 {
		t.Errorf("%d rows, want 1000", n)
	}
	for table := range strings.SplitSeq(strings.TrimSpace(d.Text), "\n\n") {
		if !strings.HasPrefix(table, "| name | size |\n| --- | --- |\n| a row") || len(table) > 9<<10 {
			t.Errorf("a table of %d bytes begins with %.40q", len(table), table)
		}
	}
}

func TestBounds(t *testing.T) {
	for name, write := range map[string]func(*richtext.Writer){
		"paragraphs": func(w *richtext.Writer) { w.Paragraph(strings.Repeat("x", 60), nil) },
		"rows":       func(w *richtext.Writer) { w.Row(make([]richtext.Cell, 20)) },
		"cells":      func(w *richtext.Writer) { w.Row([]richtext.Cell{{Text: strings.Repeat("x", 90)}}) },
	} {
		w := richtext.Writer{MaxBytes: 100}
		write(&w)
		write(&w)
		if _, err := w.Document(); !errors.As(err, new(*document.RefusedError)) {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
		if w.Len() > 250 {
			t.Errorf("%s: %d bytes were written", name, w.Len())
		}
	}
}

// TestCells writes cells that stand in several columns as if each were its own, and counts
// cells up to their bound.
func TestCells(t *testing.T) {
	var texts []string
	for _, rows := range [][][]richtext.Cell{
		{{{Text: "a"}, {Times: 2}}, {{Text: "b", Times: 2}}, {{}, {Text: "c"}, {}, {Text: "d"}}},
		{{{Text: "a"}, {}, {}}, {{Text: "b"}, {Text: "b"}}, {{}, {Text: "c"}, {}, {Text: "d"}}},
	} {
		var w richtext.Writer
		w.Table(rows)
		d, err := w.Document()
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, d.Text)
	}
	if diff := cmp.Diff(texts[1], texts[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w := richtext.Writer{MaxCells: 10}
	if err := w.CountCells(10); err != nil {
		t.Error(err)
	}
	if err := w.CountCells(1); err == nil || !strings.Contains(err.Error(), "more than 10 cells (--document-cells)") || !errors.Is(w.Err(), err) {
		t.Errorf("got %v, want one that refuses", err)
	}
}

func TestNumbers(t *testing.T) {
	for _, test := range []struct {
		format richtext.NumberFormat
		n      int
		want   string
	}{
		{richtext.Decimal, 12, "12"},
		{richtext.DecimalZero, 3, "03"},
		{richtext.DecimalZero, 12, "12"},
		{richtext.LowerLetter, 1, "a"},
		{richtext.UpperLetter, 28, "BB"},
		{richtext.LowerLetter, 0, "0"},
		{richtext.LowerLetter, 1 << 40, "1099511627776"},
		{richtext.LowerRoman, 1994, "mcmxciv"},
		{richtext.UpperRoman, 4, "IV"},
		{richtext.UpperRoman, -4, "-4"},
		{richtext.UpperRoman, 5000, "5000"},
		{richtext.Bullet, 1, ""},
		{richtext.NoNumber, 1, ""},
	} {
		if got := richtext.FormatNumber(test.format, test.n); got != test.want {
			t.Errorf("%d in %d is %q, want %q", test.n, test.format, got, test.want)
		}
	}
}

func TestListCounter(t *testing.T) {
	levels := []richtext.ListLevel{
		{Format: richtext.Decimal, Start: 1, Text: "%1."},
		{Format: richtext.LowerLetter, Start: 2, Text: "%1.%2)"},
		{Format: richtext.Bullet},
		{Format: richtext.NoNumber, Text: "x"},
		{Format: richtext.Decimal, Start: 1, Text: "%9%5%"},
	}
	var c richtext.ListCounter
	var got []string
	for _, level := range []int{0, 1, 1, 0, 1, 2, 3, 4, 99, -1} {
		got = append(got, c.Next(levels, level))
	}
	c.Restart(0, 7)
	c.Restart(-1, 7)
	got = append(got, c.Next(levels, 0))
	if diff := cmp.Diff([]string{"1.", "1.b)", "1.c)", "2.", "2.b)", "-", "", "1%", "2%", "3.", "7."}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTallHeads: the head of a table goes on in rows that a cell of it covers.
func TestTallHeads(t *testing.T) {
	cells := func(texts ...string) (row []richtext.Cell) {
		for _, text := range texts {
			row = append(row, richtext.Cell{Text: strings.TrimPrefix(text, "^"), Tall: strings.HasPrefix(text, "^")})
		}
		return row
	}
	wide := []richtext.Cell{{Text: "Part"}, {Text: "Net", Span: 2}}
	buyer := []richtext.Cell{{Text: "Buyer"}, {Text: "ACME", Span: 2}}
	logo := []richtext.Cell{{Text: "Logo", Span: 2}, {Text: "Net"}}
	const rule = "| --- | --- | --- |\n"

	for _, test := range []struct {
		name  string
		heads int
		rows  [][]richtext.Cell
		want  string
	}{
		{"beside a name of several columns", 0, [][]richtext.Cell{wide, cells("^Part", "EUR", "USD"), cells("Bolt", "1", "2")}, "| Part | Net | Net |\n| Part | EUR | USD |\n| --- | --- | --- |\n| Bolt | 1 | 2 |\n"},
		{"with years", 0, [][]richtext.Cell{wide, cells("^Part", "2024", "Q2"), cells("Bolt", "1 kg", "-")}, "| Part | Net | Net |\n| Part | 2024 | Q2 |\n" + rule + "| Bolt | 1 kg | - |\n"},
		{"with days", 0, [][]richtext.Cell{wide, cells("^Part", "31.12.2024", "2023-12-31"), cells("Bolt", "1", "2")}, "| Part | Net | Net |\n| Part | 31.12.2024 | 2023-12-31 |\n" + rule + "| Bolt | 1 | 2 |\n"},
		{"above a sum", 0, [][]richtext.Cell{wide, cells("^Part", "EUR", "USD"), cells("Bolt", "1", "n/a"), {{Text: "Total", Span: 2}, {Text: "2"}}}, "| Part | Net | Net |\n| Part | EUR | USD |\n" + rule + "| Bolt | 1 | n/a |\n| Total || 2 |\n"},
		{"above wide cells alone", 0, [][]richtext.Cell{wide, cells("^Part", "EUR", "USD"), {{Text: "Total 2024", Span: 3}}}, "| Part | Net | Net |\n" + rule + "| Part | EUR | USD |\n| Total 2024 |||\n"},
		{"of a form", 0, [][]richtext.Cell{buyer, cells("^Buyer", "Street 5", "Paris"), cells("Sum", "1", "2")}, "| Buyer | ACME | ACME |\n" + rule + "| Buyer | Street 5 | Paris |\n| Sum | 1 | 2 |\n"},
		{"of a form with words", 0, [][]richtext.Cell{buyer, cells("^Buyer", "Main Street", "Paris"), cells("Seller", "Bob", "Rome")}, "| Buyer | ACME | ACME |\n" + rule + "| Buyer | Main Street | Paris |\n| Seller | Bob | Rome |\n"},
		{"of a form with labels", 0, [][]richtext.Cell{{{Text: "Buyer:"}, {Text: "ACME", Span: 2}}, cells("^Buyer:", "Main Street", "Paris"), cells("Sum:", "1", "2")}, "| Buyer: | ACME | ACME |\n" + rule + "| Buyer: | Main Street | Paris |\n| Sum: | 1 | 2 |\n"},
		{"wide and tall in one", 0, [][]richtext.Cell{logo, {{Text: "Logo", Span: 2, Tall: true}, {Text: "EUR"}}, cells("a", "b", "1")}, "| Logo | Logo | Net |\n" + rule + "| Logo || EUR |\n| a | b | 1 |\n"},
		{"of a head that is said", 1, [][]richtext.Cell{cells("a", "b"), cells("^a", "c"), cells("1", "2")}, "| a | b |\n| a | c |\n| --- | --- |\n| 1 | 2 |\n"},
		{"of values", 0, [][]richtext.Cell{cells("a", "b"), cells("^a", "c"), cells("1", "2")}, "| a | b |\n| --- | --- |\n| a | c |\n| 1 | 2 |\n"},
		{"of all rows", 1, [][]richtext.Cell{cells("a", "b"), cells("^a", "c")}, "| a | b |\n| --- | --- |\n| a | c |\n"},
		{"below the head", 1, [][]richtext.Cell{cells("a", "b"), cells("1", "2"), cells("^1", "3")}, "| a | b |\n| --- | --- |\n| 1 | 2 |\n| 1 | 3 |\n"},
	} {
		w := &richtext.Writer{}
		w.WriteTable(richtext.Table{Heads: test.heads, Rows: test.rows})
		d, err := w.Document()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, d.Text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestHeadOfManyColumns: whether a head goes on is told in time that grows with the cells of its table, not
// with their square, which would be a minute here.
func TestHeadOfManyColumns(t *testing.T) {
	const columns = 300_000
	row := func(first richtext.Cell, text string) []richtext.Cell {
		return append([]richtext.Cell{first}, slices.Repeat([]richtext.Cell{{Text: text}}, columns)...)
	}
	part := richtext.Cell{Text: "Part", Tall: true}
	above := []richtext.Cell{{Text: "Part"}, {Text: "Net", Span: columns}}

	begun := time.Now()
	if !richtext.HeadGoesOn(above, row(part, "A"), slices.Values([][]richtext.Cell{row(part, "1")}), false) {
		t.Error("the head ends above its names")
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestClip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.String().Draw(t, "name") + strings.Repeat("é", rapid.IntRange(0, 300).Draw(t, "length"))
		got := richtext.Clip(name)
		if len(got) > mapreduce.MaxLocationText || !utf8.ValidString(got) {
			t.Errorf("%q has %d bytes", got, len(got))
		}
		if fields := strings.Join(strings.Fields(name), " "); len(fields) <= mapreduce.MaxLocationText && got != fields {
			t.Errorf("got %q of %q", got, fields)
		}
	})
}
