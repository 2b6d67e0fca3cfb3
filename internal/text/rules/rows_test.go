package rules_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/text/rules"
)

// rowsOf returns the records of a text as JSON, each with the quotes of its values, and why
// rows were left out.
func rowsOf(t *testing.T, source string, u rules.Unit) (records, left []string) {
	t.Helper()
	s, err := schema.Parse("s.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	p, err := rules.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Extract(u, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for i := range out.Records {
		data, err := json.Marshal(p.Values(&out.Records[i]))
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, string(data))
	}
	for _, l := range out.LeftOut {
		left = append(left, l.Why+": "+u.Text[l.Start:l.End])
	}
	return records, left
}

const goods = `{type: array, items: {type: object, required: [item], properties: {item: {type: string}, qty: {type: integer}, price: {type: number}}}}`

const goodsHead = "| Item | Qty | Price |\n| --- | --- | --- |\n"

// TestRowsOfTables: a record is a row of a table whose heads fit, and nothing else is.
func TestRowsOfTables(t *testing.T) {
	bolt, nut := `{"item":"Bolt","price":0.5,"qty":2}`, `{"item":"Nut","price":0.25,"qty":4}`
	for _, test := range []struct {
		name, schema, text string
		want, left         []string
	}{
		{"among text", goods, "Item: none of it\n\n" + goodsHead + "| Bolt | 2 | 0.5 |\n\nPrice: 7", []string{bolt}, nil},
		{"two tables", goods, goodsHead + "| Bolt | 2 | 0.5 |\n\nand\n\n| Price | Item | Qty |\n|---|---|---|\n| 0.25 | Nut | 4 |\n", []string{bolt, nut}, nil},
		{"another table", goods, goodsHead + "| Bolt | 2 | 0.5 |\n\n| Name | City |\n|---|---|\n| Bob | Rome |\n", []string{bolt}, nil},
		{"the head again", goods, goodsHead + "| Bolt | 2 | 0.5 |\n\n" + goodsHead + "| Nut | 4 | 0.25 |\n", []string{bolt, nut}, nil},
		{"the head as a row", goods, goodsHead + "| Bolt | 2 | 0.5 |\n| Item | Qty | Price |\n| Nut | 4 | 0.25 |\n", []string{bolt, nut}, []string{"repeat the head of their table: | Item | Qty | Price |"}},
		{"a title above the head", goods, "| Goods of May |||\n|---|---|---|\n| Item | Qty | Price |\n| Bolt | 2 | 0.5 |\n", []string{bolt}, nil},
		{"two rows of heads", `{type: array, items: {type: object, required: [item], properties: {item: {type: string}, old: {type: integer, x-coditect: {labels: [Sold 2023]}}, new: {type: integer, x-coditect: {labels: [Sold 2024]}}}}}`, "| Item | Sold | Sold |\n| Item | 2023 | 2024 |\n|---|---|---|\n| Bolt | 7 | 9 |\n", []string{`{"item":"Bolt","new":9,"old":7}`}, nil},
		{"columns in another order, with units", goods, "| Price (EUR) | Note | Item* | Qty |\n|---|---|---|---|\n| 0.5 | x | Bolt | 2 |\n", []string{bolt}, nil},
		{"a sum", goods, goodsHead + "| Bolt | 2 | 0.5 |\n| Nut | 4 | 0.25 |\n| Total | 6 |  |\n", []string{bolt, nut}, []string{"add up other rows: | Total | 6 |  |"}},
		{"a sum by its number", goods, goodsHead + "| Bolt | 2 | 0.5 |\n| Nut | 4 | 0.25 |\n| Total of May | 6 | 0.75 |\n", []string{bolt, nut}, []string{"add up other rows: | Total of May | 6 | 0.75 |"}},
		{"a name that begins so", goods, goodsHead + "| Total Care Cream | 3 | 9.5 |\n", []string{`{"item":"Total Care Cream","price":9.5,"qty":3}`}, nil},
		{"a heading within", goods, goodsHead + "| Metal |||\n| Bolt | 2 | 0.5 |\n", []string{bolt}, []string{"are headings or notes within a table: | Metal |||"}},
		{"a longer row", goods, goodsHead + "| Bolt | 2 | 0.5 | see below |\n| Nut | 4 | 0.25 |\n", []string{bolt, nut}, nil},
		{"a row that is shifted", goods, goodsHead + "| Bolt | M8 | 2 | 0.5 |\n| Nut | 4 | 0.25 |\n", []string{nut}, []string{"have more cells than the head of their table, and not the values that it names: | Bolt | M8 | 2 | 0.5 |"}},
		{"a shorter row", goods, goodsHead + "| Bolt | 2 |\n| Nut | 4 | 0.25 |\n", []string{`{"item":"Bolt","qty":2}`, nut}, nil},
		{"empty cells", goods, goodsHead + "| Bolt |  | 0.5 |\n|  |  |  |\n| Nut | 4 | 0.25 |\n", []string{`{"item":"Bolt","price":0.5}`, nut}, nil},
		{"both forms", goods, goodsHead + "| Bolt | 2 | 50% (=0.5) |\n| Nut | 4 | 0 (=0.25) |\n", []string{bolt, nut}, nil},
		{"errors and formulas", goods, goodsHead + "| Bolt | #N/A | =B2*2 |\n| Nut | 4 | 0.25 |\n", []string{`{"item":"Bolt"}`, nut}, nil},
		{"bars in a cell", goods, goodsHead + "| Bolt\\|M8 | 2 | 0.5 |\n", []string{`{"item":"Bolt|M8","price":0.5,"qty":2}`}, nil},
		{"two columns of a name", goods, "| Item | Qty | Price | Price |\n|---|---|---|---|\n| Bolt | 2 | 0.5 | 0.4 |\n", []string{`{"item":"Bolt","qty":2}`}, nil},
		{"names and values", goods, "| Item | Bolt |\n|---|---|\n| Qty | 2 |\n| Price | 0.5 |\n", []string{bolt}, nil},
		{"separated by tabs", goods, "Item\tQty\tPrice\nBolt\t2\t0.5\n", []string{bolt}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, left := rowsOf(t, test.schema, rules.Document(test.text))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.left, left); diff != "" {
				t.Errorf("left out (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRowsOfAChunk: of a text that begins within a table, the rows above the next head are
// rows of it.
func TestRowsOfAChunk(t *testing.T) {
	text := "| Bolt | 2 | 0.5 |\n\n" + goodsHead + "| Nut | 4 | 0.25 |\n"
	got, _ := rowsOf(t, goods, rules.Unit{Text: text, CoreEnd: len(text), Last: true})
	if diff := cmp.Diff([]string{`{"item":"Bolt","price":0.5,"qty":2}`, `{"item":"Nut","price":0.25,"qty":4}`}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestQuotesOfCells: the quote of a value is all of its cell, and that of a text what is shown.
func TestQuotesOfCells(t *testing.T) {
	s, err := schema.Parse("s.yaml", []byte(goods))
	if err != nil {
		t.Fatal(err)
	}
	p, err := rules.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Extract(rules.Document(goodsHead+"| 0042 (=42) | 3.0 (=3) | 2 (=1.995) |\n"), func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range out.Records[0].Found {
		got = append(got, fmt.Sprintf("%s: %v by %q", f.Field, f.Value, f.Quote))
	}
	want := []string{`item: 0042 by "0042"`, `qty: 3 by "3.0 (=3)"`, `price: 1.995 by "2 (=1.995)"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestManyRows: the work for a row is small, and the same for each.
func TestManyRows(t *testing.T) {
	var b strings.Builder
	b.WriteString(goodsHead)
	const rows = 20_000
	for i := range rows {
		fmt.Fprintf(&b, "| Item %d | %d | %d.25 |\n", i, i%7, i)
	}
	got, left := rowsOf(t, goods, rules.Document(b.String()))
	if len(got) != rows || len(left) > 0 {
		t.Errorf("%d records of %d rows, %d left out", len(got), rows, len(left))
	}
}
