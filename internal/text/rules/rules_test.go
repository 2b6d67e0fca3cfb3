package rules_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/text/rules"
)

func compile(t testing.TB, text string) *rules.Program {
	t.Helper()
	s, err := schema.Parse("s.yaml", []byte(text))
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	p, err := rules.Compile(s)
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	return p
}

// extractAll runs a program that nothing stops.
func extractAll(t testing.TB, p *rules.Program, u rules.Unit) rules.Output {
	t.Helper()
	out, err := p.Extract(u, func() error { return nil })
	if err != nil {
		t.Fatalf("Extract: %v", err)
	}
	return out
}

// one returns what is found in a whole document of one record.
func one(t testing.TB, p *rules.Program, text string) rules.Record {
	t.Helper()
	out := extractAll(t, p, rules.Document(text))
	if len(out.Records) != 1 {
		t.Fatalf("%d records, want 1", len(out.Records))
	}
	checkQuotes(t, text, out)
	return out.Records[0]
}

// checkQuotes checks what holds for every output: quotes are where they are said
// to be, and confidence is one.
func checkQuotes(t testing.TB, text string, out rules.Output) {
	t.Helper()
	for _, r := range out.Records {
		for _, f := range r.Found {
			if f.Start < 0 || f.End > len(text) || f.Start >= f.End || text[f.Start:f.End] != f.Quote {
				t.Errorf("%s: quote %q is not at [%d, %d)", f.Field, f.Quote, f.Start, f.End)
			}
			if f.Value == nil || f.Confidence <= 0 || f.Confidence > 1 {
				t.Errorf("%s: value %v with confidence %v", f.Field, f.Value, f.Confidence)
			}
		}
	}
}

func TestFields(t *testing.T) {
	const total = "{type: number, x-coditect: {labels: [TOTAL, GRAND TOTAL]}}"
	for _, tt := range []struct {
		name, property, text string
		want                 any
		quote                string
	}{
		{"label and colon", total, "TOTAL: 9.00", json.Number("9"), "9.00"},
		{"any case", total, "Total 9.00", json.Number("9"), "9.00"},
		{"currency", total, "TOTAL (RM) : RM 1,234.50", json.Number("1234.5"), "1,234.50"},
		{"attached currency", total, "TOTAL RM9.50", json.Number("9.5"), "9.50"},
		{"attached label", total, "TOTAL9.50", json.Number("9.5"), "9.50"},
		{"negative", total, "TOTAL -9.50", json.Number("-9.5"), "-9.50"},
		{"in parentheses", total, "TOTAL (9.50)", json.Number("-9.5"), "(9.50)"},
		{"minus behind", total, "TOTAL 9.50-", json.Number("-9.5"), "9.50-"},
		{"tax code", total, "TOTAL 9.50SR", json.Number("9.5"), "9.50"},
		{"point set apart", total, "TOTAL 9. 50", json.Number("9.5"), "9. 50"},
		{"thousands", total, "TOTAL: 1 234 567,50 €", json.Number("1234567.5"), "1 234 567,50"},
		{"thousands by narrow spaces", total, "TOTAL 1\u202f234", json.Number("1234"), "1\u202f234"},
		{"count and amount, or one number", total, "TOTAL 3 150.00", json.Number("3150"), "3 150.00"}, // a run leaves it open
		{"count and amount, with commas in use", total, "NET 1,150.00\nTOTAL 3 150.00", json.Number("150"), "150.00"},
		{"next line", total, "TOTAL:\n9.00\n", json.Number("9"), "9.00"},
		{"over separators", total, "TOTAL\n:\nRM\n9.00\n", json.Number("9"), "9.00"},
		{"block of labels", total, "SUB TOTAL\nTOTAL\nCASH\n8.00\n9.00\n10.00\n", json.Number("9"), "9.00"},
		{"part of block has a heading", total, "BILL\nTOTAL\nCASH\n9.00\n10.00\n", json.Number("9"), "9.00"},
		{"percentage on the way", total, "TOTAL INCL 6% TAX 9.00", json.Number("9"), "9.00"},
		{"not a part of a word", total, "SUBTOTAL 8.00\nTOTAL 9.00", json.Number("9"), "9.00"},
		{"not a sub total", total, "SUB TOTAL 8.00\nSUB-TOTAL: 8.00\nTOTAL 9.00", json.Number("9"), "9.00"},
		{"only a sub total", total, "SUB-TOTAL 8.00", nil, ""},
		{"confused letters", total, "T0TAI 9.00", json.Number("9"), "9.00"},
		{"spaced label", total, "GRAND  TOTAL 9.00", json.Number("9"), "9.00"},
		{"joined label", total, "GRANDTOTAL: 9.00", json.Number("9"), "9.00"},
		{"decimals before whole numbers", total, "TOTAL 3 9.00", json.Number("9"), "9.00"},
		{"after another word", total, "TAX INCLUDED IN TOTAL 0.50\nTOTAL 9.00", json.Number("9"), "9.00"},
		{"first label of the list", "{type: number, x-coditect: {labels: [NET, TOTAL]}}", "TOTAL 9.00\nNET 8.00", json.Number("8"), "8.00"},
		{"after rounding", total, "TOTAL INCL TAX 9.02\nTOTAL 9.02\nROUNDING -0.02\nTOTAL 9.00\nTOTAL ITEMS 9", json.Number("9"), "9.00"},
		{"pick max", "{type: number, x-coditect: {labels: [TOTAL], pick: max}}", "TOTAL 9.00\nTOTAL 12.00\nTOTAL 3.00", json.Number("12"), "12.00"},
		{"pick min", "{type: number, x-coditect: {labels: [TOTAL], pick: min}}", "TOTAL 9.00\nTOTAL 12.00\nTOTAL 3.00", json.Number("3"), "3.00"},
		{"pick last", "{type: number, x-coditect: {labels: [TOTAL], pick: last}}", "TOTAL 9.00\nTOTAL 12.00\nTOTAL 3.00", json.Number("3"), "3.00"},
		{"no telephone number", "{type: integer, x-coditect: {labels: [TEL]}}", "TEL: 03-40210276", nil, ""},
		{"no code", "{type: integer, x-coditect: {labels: [REF]}}", "REF: JH61", nil, ""},
		{"no time", "{type: integer, x-coditect: {labels: [AT]}}", "AT 12:30", nil, ""},
		{"a percentage when asked for", "{type: number, description: rate of tax, x-coditect: {labels: [TAX]}}", "TAX 6%", json.Number("6"), "6"},
		{"label from the name", "{type: integer}", "Value: 28,591", json.Number("28591"), "28,591"},
		{"label from the title", "{type: integer, title: Installed-Size}", "Installed-Size: 28591", json.Number("28591"), "28591"},
		{"number without label", "{type: number}", "3.50", nil, ""},

		{"power is no number", total, "TOTAL 10⁶", nil, ""},
		{"power in a text", "{type: string}", "Value: 10⁻⁶ mol of H₂O", "10⁻⁶ mol of H₂O", "10⁻⁶ mol of H₂O"},
		{"raised unit", total, "TOTAL 25 m²", json.Number("25"), "25"},
		{"raised unit of a field", "{type: number, x-coditect: {units: [m2]}}", "it has 25 m²", json.Number("25"), "25 m²"},
		{"unit on the line", "{type: number, x-coditect: {units: [m²]}}", "it has 25 m2", json.Number("25"), "25 m2"},
		{"lowered digit of a label", "{type: number, x-coditect: {labels: [CO2]}}", "CO₂e: 2\nCO₂: 25", json.Number("25"), "25"},
		{"lowered digit of the schema", "{type: number, x-coditect: {labels: [CO₂]}}", "CO2: 25", json.Number("25"), "25"},
		{"raised digit of a label", "{type: number, x-coditect: {labels: [Area (m2)]}}", "Area (m²): 25", json.Number("25"), "25"},
		{"letter of a formula", "{type: string, x-coditect: {labels: [H]}}", "H₂O: a\nH: b", "b", "b"},
		{"note at a label", total, "TOTAL²: 9.00", json.Number("9"), "9.00"},
		{"lowered digit of an enum", "{enum: [CO2, CH4]}", "emits CH₄ only", "CH4", "CH₄"},

		{"date at label", "{type: string, format: date}", "25/12/2017\nVALUE 26-DEC-2018 8:13 PM", "2018-12-26", "26-DEC-2018"},
		{"date below label", "{type: string, format: date, x-coditect: {labels: [DATE]}}", "01/01/2018\nDATE:\nTIME:\n25/12/2018\n8:13", "2018-12-25", "25/12/2018"},
		{"date anywhere", "{type: string, format: date, x-coditect: {labels: [DATE], otherwise: form}}", "bought on 25.12.18, paid", "2018-12-25", "25.12.18"},
		{"the better date", "{type: string, format: date}", "SIZE 3-7-15\n12-01-19 21:13\n1.2.03", "2019-01-12", "12-01-19"},
		{"date as it is shown and stored", "{type: string, format: date}", "VALUE 04.03.2024 (2024-03-04)", "2024-03-04", "2024-03-04"},
		{"date with its time, shown and stored", "{type: string, format: date}", "VALUE 3/4/24 12:00 (2024-03-04T12:00:00)", "2024-03-04", "2024-03-04"},
		{"another date in brackets", "{type: string, format: date}", "VALUE 04.03.2024 (2024-05-06)", "2024-03-04", "04.03.2024"},
		{"no date", "{type: string, format: date}", "31/02/2018", nil, ""},
		{"date and time", "{type: string, format: date-time}", "at 25/12/2018 8:13:39 PM.", "2018-12-25T20:13:39", "25/12/2018 8:13:39 PM"},
		{"time", "{type: string, format: time}", "at 25/12/2018 8:13:39 PM.", "20:13:39", "8:13:39 PM"},
		{"email", "{type: string, format: email}", "Write to <Ann.B@Example.ORG>.", "Ann.B@example.org", "Ann.B@Example.ORG"},
		{"uri", "{type: string, format: uri}", "See (https://example.org/a_(b)), or not.", "https://example.org/a_(b)", "https://example.org/a_(b)"},
		{"www", "{type: string, format: uri}", "WWW.EXAMPLE.ORG!", "http://www.example.org", "WWW.EXAMPLE.ORG"},
		{"uri that ends in a point", "{type: string, format: uri}", "Value: https://example.org/M.A.", "https://example.org/M.A.", "https://example.org/M.A."},
		{"boolean", "{type: boolean, x-coditect: {labels: [PAID]}}", "PAID: yes", true, "yes"},
		{"enum", "{enum: [tax invoice, cash bill]}", "*** CASH-BILL ***", "cash bill", "CASH-BILL"},
		{"number of an enum", "{type: integer, enum: [10, 20], x-coditect: {labels: [SIZE]}}", "10\nSIZE: 20", json.Number("20"), "20"},

		{"text", "{type: string, x-coditect: {labels: [INVOICE NO]}}", "INVOICE NO. : CS00012727", "CS00012727", "CS00012727"},
		{"text with a number sign", "{type: string, x-coditect: {labels: [RECEIPT]}}", "RECEIPT #: R-12", "R-12", "R-12"},
		{"text on the next line", "{type: string, x-coditect: {labels: [DOC NO]}}", "DOC NO.\n\n  CS12  \n", "CS12", "CS12"},
		{"text with spaces", "{type: string}", "Value: a  b c", "a b c", "a  b c"},
		{"text in prose", "{type: string}", "the value of it all", nil, ""},
		{"text within a line", "{type: string}", "No. 7 value x", "x", "x"},
		{"entry before prose", "{type: string}", "Note: value of it\nValue: x", "x", "x"},
		{"compound before", "{type: string, x-coditect: {labels: [Depends]}}", "Pre-Depends: a", nil, ""},
		{"compound behind", "{type: string, x-coditect: {labels: [Description]}}", "Description-md5: a", nil, ""},
		{"sign of a label", "{type: string, x-coditect: {labels: [C++]}}", "C: a\nC++: b", "b", "b"},
		{"accents", "{type: string, x-coditect: {labels: [Größe]}}", "GRÖSSE: a\nGRÖßE: b\nGROßE: c", "b", "b"},
		{"script without spaces", "{type: string, x-coditect: {labels: [合計]}}", "お合計：100円", "100円", "100円"},

		{"pattern", `{type: string, x-coditect: {pattern: '[A-Z]{2}\d+'}}`, "no ab12, but CD34", "CD34", "CD34"},
		{"group of a pattern", `{type: string, x-coditect: {pattern: 'no (?P<value>\w+)$'}}`, "no a\nno b c", "a", "a"},
		{"a group that took no part", `{type: string, x-coditect: {pattern: 'no (?P<value>\w+)|\d+'}}`, "12 no a", "a", "a"},
		{"patterns in order of preference", `{type: string, x-coditect: {pattern: ['no (?P<value>\w+)', '\d+']}}`, "12 no a", "a", "a"},
		{"the second pattern", `{type: string, x-coditect: {pattern: ['no (?P<value>\w+)', '\d+']}}`, "12", "12", "12"},
		{"pattern on lines that end in CR LF", `{type: string, x-coditect: {pattern: '^(?P<value>[a-z]+)$'}}`, "1\r\nab\r\n", "ab", "ab"},
		{"type before class", "{type: integer, x-coditect: {labels: [TOTAL]}}", "TOTAL: 1.5\nALL TOTAL 7", json.Number("7"), "7"},
		{"pattern at label", `{type: string, x-coditect: {labels: [NO], pattern: '\d+', otherwise: form}}`, "1\nNO: X2", "2", "2"},
		{"pattern without its label", `{type: string, x-coditect: {labels: [NO], pattern: '\d+', otherwise: form}}`, "number 1", "1", "1"},
		{"pattern and type", `{type: number, x-coditect: {pattern: '\$\S+'}}`, "for $x or $3.50", json.Number("3.5"), "$3.50"},
		{"pattern that matches nothing", `{type: string, x-coditect: {pattern: 'x*'}}`, "abc", nil, ""},

		{"values", "{type: string, x-coditect: {values: {MIT: [Permission is hereby granted], Apache-2.0: Apache License}}}", "// Permission is\n// hereby granted", "MIT", "Permission is\n// hereby granted"},
		{"longest phrase", "{type: string, x-coditect: {values: {a: [one two], b: [two three four]}}}", "one two three four", "b", "two three four"},
		{"first phrase", "{type: string, x-coditect: {pick: first, values: {a: [one two], b: [two three four]}}}", "one two three four", "a", "one two"},
		{"values at label", "{type: string, x-coditect: {labels: [PAID BY], values: {cash: CASH, card: [VISA, MASTER]}}}", "CASH BILL\nPAID BY: VISA", "card", "VISA"},
		{"short phrases are exact", "{enum: [S, M]}", "5 of size m", "M", "m"},

		{"first lines", "{type: string, x-coditect: {lines: [0, 2]}}", "\nACME\nOTHER", "ACME", "ACME"},
		{"last line", "{type: string, x-coditect: {lines: -1}}", "a\nb\nc\n", "c", "c"},
		{"lines from the end", "{type: string, x-coditect: {lines: [-2]}}", "a\nb\nc", "b", "b"},
		{"longest line", "{type: string, x-coditect: {lines: [0, 3], pick: longest}}", "a\nbbb\ncc\ndddd", "bbb", "bbb"},
		{"pattern in lines", "{type: string, x-coditect: {lines: [1, 3], pattern: 'a.*'}}", "a0\nb\na2\na3", "a2", "a2"},
		{"number in lines", "{type: number, x-coditect: {lines: [-1]}}", "1.00\nsum 2.00", json.Number("2"), "2.00"},
		{"label in lines", "{type: number, x-coditect: {lines: [-1], labels: [TOTAL]}}", "TOTAL 1.00\nTOTAL 2.00", json.Number("2"), "2.00"},
		{"no such lines", "{type: string, x-coditect: {lines: [5, 7]}}", "a\nb", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := one(t, compile(t, "properties: {value: "+tt.property+"}"), tt.text)
			var value any
			quote := ""
			if len(r.Found) > 0 {
				value, quote = r.Found[0].Value, r.Found[0].Quote
			} else if len(r.Missing) != 1 || r.Missing[0].Reason == "" {
				t.Errorf("nothing found and no reason: %v", r.Missing)
			}
			if diff := cmp.Diff(tt.want, value); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
			if quote != tt.quote {
				t.Errorf("quote %q, want %q", quote, tt.quote)
			}
		})
	}
}

func TestMissingReasons(t *testing.T) {
	p := compile(t, `
properties:
  label: {type: string}
  empty: {type: number, x-coditect: {labels: [TOTAL]}}
  date: {type: string, format: date}
  pattern: {type: string, x-coditect: {pattern: 'x+'}}
  phrase: {enum: [x, y]}
  lines: {type: string, x-coditect: {lines: [1, 2]}}
  beyond: {type: string, x-coditect: {lines: [9, 10]}}
`)
	want := []rules.Missing{
		{Field: "label", Reason: "no label matched"},
		{Field: "empty", Reason: `after the label: "none" is no number`},
		{Field: "date", Reason: "nothing that looks like a value of the type string (date)"},
		{Field: "pattern", Reason: "the pattern did not match"},
		{Field: "phrase", Reason: "none of the phrases was found"},
		{Field: "lines", Reason: "the lines are blank"},
		{Field: "beyond", Reason: "the lines to look at do not exist"},
	}
	if diff := cmp.Diff(want, one(t, p, "TOTAL: none\n\nend").Missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

func TestLongestLabelWinsOverAllFields(t *testing.T) {
	p := compile(t, `
properties:
  size: {type: integer}
  installed_size: {type: integer}
  total: {type: number}
  subtotal: {type: number, x-coditect: {labels: [SUB TOTAL]}}
  same: {type: integer, x-coditect: {labels: [Size]}}
`)
	r := one(t, p, "Installed-Size: 10\nSUB TOTAL 8.00\nSize: 20\nTOTAL 9.00")
	want := map[string]any{
		"size": json.Number("20"), "installed_size": json.Number("10"), "same": json.Number("20"),
		"total": json.Number("9"), "subtotal": json.Number("8"),
	}
	if diff := cmp.Diff(want, p.Values(&r)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

func TestSeveralPairsOnALine(t *testing.T) {
	p := compile(t, "properties: {doc_no: {}, date: {format: date}, cashier: {}, note: {}, kind: {}}")
	r := one(t, p, "DOC NO: CS12 DATE: 13/01/2018\nCASHIER  Ann   NOTE  paid\nKind: a word and its doc no: 7\n")
	want := map[string]any{"doc_no": "CS12", "date": "2018-01-13", "cashier": "Ann", "note": "paid", "kind": "a word and its doc no: 7"}
	if diff := cmp.Diff(want, p.Values(&r)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

// TestSections: headings of many forms begin and end sections.
func TestSections(t *testing.T) {
	p := compile(t, `{properties: {law: {type: string, x-coditect: {within: {section: [Governing Law, 準拠法]}}}}}`)
	for name, tt := range map[string]struct{ text, want string }{
		"Markdown":              {"# Contract\n\n## Term\n\nTwo years.\n\n## Governing Law\n\nOhio.\n\n### Courts\n\nToledo.\n\n## Notices\n\nNone.\n", "Ohio. ### Courts Toledo."},
		"numbers":               {"1. Term. Two years.\n2. Governing Law. Ohio rules\n12 months later.\n3. Notices. None.\n", "Ohio rules 12 months later."},
		"numbers with a nought": {"1.0 Term\n\n1.1 Two years is the term of this\nagreement.\n\n2.0 Governing Law\n\n2.1 The laws of Ohio shall govern the\nagreement.\n\n3.0 Notices\n", "2.1 The laws of Ohio shall govern the agreement."},
		"articles":              {"ARTICLE I\n\nTERM\n\nTwo years.\n\nARTICLE II\n\nGOVERNING LAW\n\nOhio.\n\nARTICLE III\n\nNOTICES\n\nNone.\n", "Ohio."},
		"articles with titles":  {"ARTICLE I - TERM\nTwo years.\nARTICLE II - GOVERNING LAW; VENUE\nOhio.\nARTICLE III - NOTICES\nNone.\n", "Ohio."},
		"titles below articles": {"ARTICLE 1\nTERM\nTwo years.\n\nARTICLE 2\nGoverning Law\nOhio.\n\nARTICLE 3\nNOTICES\nNone.\n", "Ohio."},
		"lines alone":           {"Term\n\nTwo years.\n\nGoverning Law\n\nOhio is where it is.\n\nNotices\n\nNone.\n", "Ohio is where it is."},
		"Japanese":              {"第1条 期間\n二年\n第2条 準拠法\n日本法\n第3条 通知\nなし\n", "日本法"},
		"none":                  {"The governing law is that of Ohio.\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := one(t, p, tt.text)
			got, _ := p.Values(&r)["law"].(string)
			if got != tt.want {
				t.Errorf("law = %q; want %q", got, tt.want)
			}
		})
	}
}

// TestTablesOfRecords: each row of a table is a record, whatever is in its cells.
func TestTablesOfRecords(t *testing.T) {
	many := compile(t, `{type: array, items: {type: object, properties: {name: {type: string}, city: {type: string}, amount: {type: number}}}}`)
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"commas":         {"Name,City,Amount\nAnn,Ulm,1.50\n\"Smith, Bob\",,2\n", []string{"amount=1.5 city=Ulm name=Ann", "amount=2 name=Smith, Bob"}},
		"semicolons":     {"Amount;Name\r\n1,50;Ann\r\n2;Bob\r\n", []string{"amount=1.5 name=Ann", "amount=2 name=Bob"}},
		"empty first":    {"city\tname\tamount\n\tAnn\t1\nUlm\tBob\t2\n", []string{"amount=1 name=Ann", "amount=2 city=Ulm name=Bob"}},
		"bars":           {"## Sheet 1\n\n| Name | City | Amount |\n|---|---|---|\n| Ann | Ulm | 1.50 |\n| Bob | | 2 |\n", []string{"amount=1.5 city=Ulm name=Ann", "amount=2 name=Bob"}},
		"marks of notes": {"| Name² | City | Amount¹ |\n|---|---|---|\n| Ann | Ulm | 1.50 |\n", []string{"amount=1.5 city=Ulm name=Ann"}},
		"no table":       {"Name: Ann, City: Ulm\n", []string{"city=Ulm name=Ann,"}},
	} {
		t.Run(name, func(t *testing.T) {
			out := extractAll(t, many, rules.Document(tt.text))
			checkQuotes(t, tt.text, out)
			var got []string
			for _, r := range out.Records {
				var values []string
				for field, v := range many.Values(&r) {
					values = append(values, fmt.Sprintf("%s=%v", field, v))
				}
				slices.Sort(values)
				got = append(got, strings.Join(values, " "))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTablesAmongOtherText checks that the heads of a table are labels of what stands below
// them, as office files have it, and that names beside their values remain what they are.
func TestTablesAmongOtherText(t *testing.T) {
	const rule = "\n|---|---|---|\n"
	p := compile(t, `{type: object, properties: {item: {type: string}, price: {type: number}, due: {type: string, format: date}, prices: {type: array, items: {type: number}, x-coditect: {labels: [Price]}}}}`)
	for _, tt := range []struct{ name, text, want string }{
		{"heads", "Dear Bob,\n\n| Item | Due | Price |" + rule + "| Lamp | 2024-01-31 | 20.50 |\n| Desk | 2024-02-01 | 99 |\n\nRegards 7\n", "due=2024-01-31 item=Lamp price=20.5 prices=[20.5 99]"},
		{"one head of a field", "Dear Bob,\n\n| Colour | Number | Price |" + rule + "| red | 4 | 20.50 |\n\nRegards 7\n", "price=20.5 prices=[20.5]"},
		{"an empty cell", "Dear Bob,\n\n| Item | Due | Price |" + rule + "| Lamp | | |\n| Desk | 2024-02-01 | 99 |\n", "due=2024-02-01 item=Lamp price=99 prices=[99]"},
		{"names and values", "Dear Bob,\n\n| Item | Lamp |\n|---|---|\n| Price | 20.50 |\n| Due | 2024-01-31 |\n", "due=2024-01-31 item=Lamp price=20.5 prices=[20.5]"},
		{"two names and values in a row", "Dear Bob,\n\n| Price | 20.50 | Due | 2024-01-31 |\n|---|---|---|---|\n| Weight | 4 | Sent | 2024-03-01 |\n", "due=2024-01-31 price=20.5 prices=[20.5]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := extractAll(t, p, rules.Document(tt.text))
			checkQuotes(t, tt.text, out)
			var values []string
			for field, v := range p.Values(&out.Records[0]) {
				values = append(values, fmt.Sprintf("%s=%v", field, v))
			}
			slices.Sort(values)
			if got := strings.Join(values, " "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestLists(t *testing.T) {
	p := compile(t, `
properties:
  holders:
    type: array
    items: {type: string}
    x-coditect: {pattern: '^Copyright \d+ (?P<value>.+)$'}
  amounts: {type: array, items: {type: number}, x-coditect: {labels: [PAID]}}
  mails: {type: array, items: {type: string, format: email}}
  last: {type: array, items: {type: string, format: email}, x-coditect: {pick: last}}
  none: {type: array, items: {type: string, format: uri}}
  kinds: {type: array, items: {enum: [a cat, a dog]}}
`)
	text := "Copyright 2018 Ann\nCopyright 2019 Bob\nCopyright 2020 ANN\nPAID 1.00 2.00 3.00 4.00\na@x.org, b@x.org; a@x.org\na dog, a cat, a dog"
	r := one(t, p, text)
	want := map[string]any{
		"holders": []any{"Ann", "Bob"},
		"amounts": []any{json.Number("1"), json.Number("2"), json.Number("3"), json.Number("4")},
		"mails":   []any{"a@x.org", "b@x.org"},
		"last":    []any{"a@x.org"},
		"kinds":   []any{"a dog", "a cat"},
	}
	if diff := cmp.Diff(want, p.Values(&r)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]rules.Missing{{Field: "none", Reason: "nothing that looks like a value of the type string (uri)"}}, r.Missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

func TestNestedObjects(t *testing.T) {
	p := compile(t, "properties: {seller: {properties: {name: {}, tax_id: {}}}, buyer: {properties: {name: {x-coditect: {labels: [sold to]}}}}}")
	r := one(t, p, "Name: Ann\nTax ID: 7\nSold to: Bob")
	want := map[string]any{"seller.name": "Ann", "seller.tax_id": "7", "buyer.name": "Bob"}
	if diff := cmp.Diff(want, p.Values(&r)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

func TestListOfObjects(t *testing.T) {
	p := compile(t, `
properties:
  invoice: {type: string}
  items:
    type: array
    items:
      type: object
      required: [sku]
      properties:
        sku: {type: string}
        price: {type: number}
        note: {type: string}
`)
	text := "Invoice: 7\nSKU: a\nPrice: 1.50\nSKU: b\nNote: new\nPrice: 2.50\n"
	r := one(t, p, text)
	want := map[string]any{"invoice": "7", "items": []any{
		map[string]any{"sku": "a", "price": json.Number("1.5")},
		map[string]any{"sku": "b", "price": json.Number("2.5"), "note": "new"},
	}}
	if diff := cmp.Diff(want, p.Values(&r)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if got, want := r.Found[1].Quote, "a\nPrice: 1.50"; got != want {
		t.Errorf("quote of a row %q, want %q", got, want)
	}
}

const people = "type: array\nitems: {required: [name], properties: {name: {}, age: {type: integer}, city: {x-coditect: {lines: [-1], pattern: '[A-Z][a-z]+$'}}}}"

func TestRecords(t *testing.T) {
	type person = map[string]any
	for _, tt := range []struct {
		name, text string
		want       []person
	}{
		{"paragraphs", "People of 2018\n\nName: Ann\nAge: 5\nRome\n\n\nAge: 6\nName: Bob\nOslo\n", []person{
			{"name": "Ann", "age": json.Number("5"), "city": "Rome"}, {"name": "Bob", "age": json.Number("6"), "city": "Oslo"},
		}},
		{"paragraph that goes on", "Name: Ann\n\nof Rome\n\nName: Bob", []person{{"name": "Ann", "city": "Rome"}, {"name": "Bob", "city": "Bob"}}},
		{"paragraph without the first field", "Name: Ann\n\nAge: 7\n\nName: Bob", []person{
			{"name": "Ann", "city": "Ann"}, {"age": json.Number("7")}, {"name": "Bob", "city": "Bob"},
		}},
		{"lines", "List\nName: Ann\nAge: 5\nName: Bob\nAge: 6", []person{
			{"name": "Ann", "age": json.Number("5")}, {"name": "Bob", "age": json.Number("6")},
		}},
		{"one a line", "1. Name: Ann, Age: 5\n2. Name: Bob, Age: 6", []person{
			{"name": "Ann,", "age": json.Number("5")}, {"name": "Bob,", "age": json.Number("6")},
		}},
		{"two a line", "Name: Ann Age: 5 Name: Bob Age: 6", []person{
			{"name": "Ann", "age": json.Number("5")}, {"name": "Bob", "age": json.Number("6")},
		}},
		{"a single one", "Age: 5\nName: Ann\n", []person{{"name": "Ann", "age": json.Number("5"), "city": "Ann"}}},
		{"none", "nothing here", nil},
		{"empty", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := compile(t, people)
			out := extractAll(t, p, rules.Document(tt.text))
			checkQuotes(t, tt.text, out)
			var got []person
			for _, r := range out.Records {
				got = append(got, p.Values(&r))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			if (out.Reason == "") != (len(got) > 0) {
				t.Errorf("%d records with the reason %q", len(got), out.Reason)
			}
		})
	}
}

// TestCore checks that pieces of a document with context around their cores find
// each value once, as the whole document does.
func TestCore(t *testing.T) {
	lists := compile(t, "properties: {mails: {type: array, items: {format: email}}, paid: {type: array, items: {type: number}}}")
	many := compile(t, people)
	var b strings.Builder
	for i := range 200 {
		b.WriteString("Name: N" + strings.Repeat("x", i%7) + "\nAge: " + string(rune('1'+i%9)) + "\nmail m" + strings.Repeat("y", i) + "@x.org, paid: 1." + string(rune('0'+i%10)) + "0\n\n")
	}
	text := b.String()
	whole := extractAll(t, lists, rules.Document(text)).Records[0].Found
	wholeRecords := extractAll(t, many, rules.Document(text)).Records
	var found, records int
	const size, context = 997, 500
	for start := 0; start < len(text); start += size {
		end := min(start+size, len(text))
		from, to := max(start-context, 0), min(end+context, len(text))
		u := rules.Unit{Text: text[from:to], CoreStart: start - from, CoreEnd: end - from, First: from == 0, Last: to == len(text)}
		for _, f := range extractAll(t, lists, u).Records[0].Found {
			if f.Start < u.CoreStart || f.Start >= u.CoreEnd {
				t.Fatalf("%s at %d is outside of the core", f.Field, f.Start)
			}
			if f.Field == "mails" {
				found++
			}
		}
		records += len(extractAll(t, many, u).Records)
	}
	mails := 0
	for _, f := range whole {
		if f.Field == "mails" {
			mails++
		}
	}
	if found != mails || mails != 200 {
		t.Errorf("pieces hold %d addresses, the whole %d", found, mails)
	}
	if records != len(wholeRecords) || records != 200 {
		t.Errorf("pieces hold %d records, the whole %d", records, len(wholeRecords))
	}
}

func TestLinesCountFromTheEndsOfTheDocument(t *testing.T) {
	p := compile(t, "properties: {top: {x-coditect: {lines: [0, 1]}}, end: {x-coditect: {lines: [-1]}}, body: {x-coditect: {lines: [1, -1]}}}")
	text := "a\nb\nc\n"
	for _, tt := range []struct {
		name        string
		first, last bool
		want        map[string]any
	}{
		{"whole", true, true, map[string]any{"top": "a", "body": "b", "end": "c"}},
		{"first piece", true, false, map[string]any{"top": "a", "body": "b"}},
		{"last piece", false, true, map[string]any{"body": "a", "end": "c"}},
		{"middle", false, false, map[string]any{"body": "a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := extractAll(t, p, rules.Unit{Text: text, CoreEnd: len(text), First: tt.first, Last: tt.last}).Records[0]
			if diff := cmp.Diff(tt.want, p.Values(&r)); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTooManyPhrases(t *testing.T) {
	var b strings.Builder
	b.WriteString("properties: {a: {x-coditect: {labels: [")
	for i := range 3000 {
		fmt.Fprintf(&b, "%d %s,", i, strings.Repeat("abcdefghij", 20))
	}
	b.WriteString("]}}}")
	s, err := schema.Parse("s.yaml", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rules.Compile(s); err == nil {
		t.Error("a schema with too many phrases was compiled")
	}
}

// TestCurrenciesBesideNumbers checks that the quote of a currency is its sign, code or name
// alone, in whole characters, whatever stands beside it.
func TestCurrenciesBesideNumbers(t *testing.T) {
	p := compile(t, "type: object\nproperties:\n  currency: {type: string, format: currency}\n")
	for _, tt := range []struct{ text, quote, want string }{
		{`"∞","a","USD 54,728.50"`, "USD", "USD"},
		{`"54,728.50 USD","∞∞∞∞∞∞∞∞"`, "USD", "USD"},
		{"Sum 5 EUR,∞∞∞∞∞∞∞∞", "EUR", "EUR"},
		{"∞∞∞∞∞ € 5", "€", "EUR"},
		{"Price:US$5", "US$", "USD"},
		{"Price (GBP): 5", "GBP", "GBP"},
		{"It costs 5 (EUR) a day", "EUR", "EUR"},
		{"5\nEUR", "", ""},
		{"exempt by $4 Nr. 10a UStG, to pay 5 €", "€", "EUR"},
		{"by $ 19 Abs. 1", "", ""},
		{"Price $4 a piece", "$", "USD"},
	} {
		out, err := p.Extract(rules.Document(tt.text), func() error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		var quote string
		var value any = ""
		for _, r := range out.Records {
			for _, f := range r.Found {
				quote, value = f.Quote, f.Value
			}
		}
		if quote != tt.quote || value != any(tt.want) {
			t.Errorf("%q: got %v from %q, want %v from %q", tt.text, value, quote, tt.want, tt.quote)
		}
	}
}
