package infer_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/text/rules/infer"
)

// fields describes the fields of a schema, one a line.
func fields(t *testing.T, source string) []string {
	t.Helper()
	s, err := schema.Parse("s.yaml", []byte(source))
	if err != nil {
		t.Fatalf("Parse: %v in\n%s", err, source)
	}
	lines := []string{string(s.Kind)}
	for _, f := range s.Fields() {
		p := f.Property
		line := fmt.Sprintf("%s %s", f.Path, p.Type)
		if p.Type == schema.Array {
			p = p.Items
			line += " of " + string(p.Type)
		}
		if p.Format != "" {
			line += " " + string(p.Format)
		}
		if p.Enum != nil {
			line += fmt.Sprint(" ", p.Enum)
		}
		if f.Property.Required {
			line += " required"
		}
		lines = append(lines, line)
	}
	return lines
}

// Labels of documents from different hands that mean the same are one field, which has all of them; labels that stand
// together in documents stay apart.
func TestLabelsTogether(t *testing.T) {
	texts := []string{
		"Invoice No: R-17\nInvoice date: 2001-03-04\nSubtotal: 80.00\nTotal: 96.50\nCustomer: Ann\n",
		"Invoice Number: R-18\nDate: 2001-03-05\nSubtotal: 10.00\nAmount due: 12.50\nCustomer: Bob\n",
		"Bill #: R-19\nDate: 2001-03-06\nSubtotal: 20.00\nGrand total: 22.50\nCustomer: Cy\n",
		"Rechnungsnummer: R-20\nRechnungsdatum: 2001-03-07\nGesamtbetrag: 33.50\nKunde: Dan\n",
		"Rechnungs-Nr.: R-21\nRechnungsdatum: 2001-03-08\nGesamtbetrag: 34.50\nKunde: Eve\n",
	}
	var p infer.Proposal
	for _, text := range texts {
		p.Add(text)
	}
	source, err := p.Schema()
	if err != nil {
		t.Fatal(err)
	}

	for _, want := range []string{
		`invoice_no: {type: string, x-coditect: {labels: ["Invoice No", "Invoice Number", "Bill #", "Rechnungsnummer", "Rechnungs-Nr."]}}`,
		`labels: ["Invoice date", "Rechnungsdatum"]`,
		`labels: ["Subtotal"]`,
		`gesamtbetrag: {type: number, x-coditect: {labels: ["Total", "Amount due", "Grand total", "Gesamtbetrag"]}}`,
		`labels: ["Customer", "Kunde"]`,
	} {
		if !strings.Contains(source, want) {
			t.Errorf("there is no %s in\n%s", want, source)
		}
	}
	if fields := fields(t, source); !slices.Contains(fields, "invoice_no string required") {
		t.Errorf("fields %q", fields)
	}
}

func TestProposals(t *testing.T) {
	invoice := func(n int, status string) string {
		return fmt.Sprintf("Invoice No: R-%d\nDate: %d. März 2001\nTotal: EUR %d.50\nItems: %d\nStatus: %s\nPaid: yes\nnote: see http://example.org/%d\n", n, n+1, n, n, status, n)
	}
	for name, tt := range map[string]struct {
		texts []string
		want  []string
	}{
		"labels": {
			[]string{
				invoice(1, "open"), invoice(2, "closed"), invoice(3, "open"), invoice(4, "open"),
				invoice(5, "closed"), invoice(6, "open"), invoice(7, "open"), invoice(8, "closed"),
			},
			[]string{
				"object", "invoice_no string required", "date string date required", "total number required", "items integer required",
				"status string [open closed] required", "paid boolean required", "note string required", "uri string uri", "currency string currency",
			},
		},
		"a table": {
			[]string{"Name;Born;Share of 1\nAnn;2001-04-18;0.5\nBob;2001-04-19;0.25\n"},
			[]string{"array", "name string required", "born string date required", "share_of_1 number required"},
		},
		"records": {
			[]string{"Name: Ann\nAge: 31\n\nName: Bob\nAge: 32\n", "Name: Cid\nAge: 33\n\nName: Dan\nAge: 34\n"},
			[]string{"array", "name string required", "age integer required"},
		},
		"a table in a text": {
			[]string{"The fruits:\n\n| Fruit | Price |\n|---|---|\n| Apples | 4.50 |\n| Pears | 3.20 |\n"},
			[]string{"object", "items array of object"},
		},
		"a form by tabs, and the number of a thing": {
			[]string{
				"Invoice # RE-17/4 issued on 2024-01-02\nDue date\t2024-02-01\nTotal\t12.50 €\nHigh Street 20\n",
				"Invoice # RE-18/4 issued on 2024-01-03\nDue date\t2024-02-02\nTotal\t7.00 €\nHigh Street 20\n",
			},
			[]string{"object", "due_date string date required", "total number required", "invoice string required", "currency string currency"},
		},
		"labels above values": {
			[]string{"Number:\tOrder date:\nA-1\t2024-02-01\n\nTotal\n12.50\n", "Number:\tOrder date:\nA-2\t2024-02-03\n\nTotal\n9.50\n"},
			[]string{"object", "number string required", "order_date string date required", "total number required"},
		},
		"a table of names and values": {
			[]string{"Sums:\n\n| Net total | 10.00 |\n| --- | --- |\n| Total | 12.00 |\n"},
			[]string{"object", "net_total number required", "total number required"},
		},
		"a list with its sum below": {
			[]string{"Items: 1\n\n| Item | Qty | Price |\n| --- | --- | --- |\n| Bolt | 2 | 4.50 |\n| | Total | 9.00 |\n"},
			[]string{"object", "items integer required", "total number required", "items_2 array of object"},
		},
		"prose": {
			[]string{"Made on the 18th day of April, 2001 for two years.", "Made on May 1, 2002 for three (3) years."},
			[]string{"object", "date string date", "duration string duration"},
		},
		"raised and lowered digits": {
			[]string{"CO₂: 4.5\nArea (m²): 7\n", "CO₂: 3.5\nArea (m²): 8\n"},
			[]string{"object", "co2 number required", "area_m2 integer required"},
		},
		"names that YAML reads otherwise": {
			[]string{"No: 007\n", "No: 008\n"},
			[]string{"object", "no_ string required"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var p infer.Proposal
			for _, text := range tt.texts {
				p.Add(text)
			}
			source, err := p.Schema()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, fields(t, source)); diff != "" {
				t.Errorf("fields (-want +got):\n%s\n%s", diff, source)
			}
		})
	}
}

func TestNothingToPropose(t *testing.T) {
	for _, text := range []string{"no more than words", "|--|--|\n|--|--|"} {
		var p infer.Proposal
		p.Add(text)
		if _, err := p.Schema(); !errors.Is(err, infer.ErrNothing) {
			t.Errorf("Schema of %q = %v; want ErrNothing", text, err)
		}
	}
}

// TestProposalsAreSchemas: whatever the documents hold, what is proposed is a schema.
func TestProposalsAreSchemas(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var p infer.Proposal
		for _, text := range rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]string{
			"No: 1", "null: x", "a b: 2001-04-18", "A-B: 'quoted'", "\"x\": {y}", "# a: b", "@: c", "1 a: b", "|a|b|", "|--|--|", "|1|2|",
			"a,b", "1,2", "Größe: 5 kg", "日付：2001年4月18日", "x: \x00", "*bold*: ]", "two years", "",
		}), 0, 8), 1, 4).Draw(rt, "texts") {
			p.Add(strings.Join(text, "\n"))
		}
		source, err := p.Schema()
		if errors.Is(err, infer.ErrNothing) {
			return
		}
		if _, err := schema.Parse("s.yaml", []byte(source)); err != nil {
			rt.Fatalf("%v in\n%s", err, source)
		}
	})
}

// The number of a thing stands behind its name alone in some documents, with the word for a number or the code of the
// kind of document in others, and behind a label with a colon in others again: it is one field, and a text.
func TestNumbersBehindNames(t *testing.T) {
	texts := []string{
		"Facture FA-2017-0007\n\nDate : 07/03/2017\nClient : Ann\n",
		"Rechnung Nr. 2019-03\n\nDatum: 07.03.2019\nKunde: Bob\n",
		"Invoice # 2019-17\nDate: 2019-04-01\nCustomer: Cy\n",
		"Invoice 103767\n\nDate: 2019-05-01\nCustomer: Dan\n",
		"HANDELSRECHNUNG (380) Nr. 471102 vom 05.03.2018\n\nDatum: 05.03.2018\nKunde: Eve\n",
		"Baurechnung(204) Nr. 181301674\n\nDatum: 05.03.2018\nKunde: Flo\n",
		"Rechnungsnummer: 2014-03\nDatum: 11.07.2014\nKunde: Gus\n\nRechnung 2014-03\n",
		"Rechnungsnummer 2014-04\nDatum: 12.07.2014\nKunde: Ida\n",
		"Invoice Number: US-99001-001\nDate: 2026-07-10\nCustomer: Hal\nOur street 12345\n",
	}
	var p infer.Proposal
	for _, text := range texts {
		p.Add(text)
	}
	source, err := p.Schema()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"in 9 of 9 documents, such as \"2014-03\"", `"Rechnungsnummer", "Invoice Number", "Facture", "Rechnung Nr.", "Invoice", "HANDELSRECHNUNG (380) Nr.", "Baurechnung(204) Nr."`,
	} {
		if !strings.Contains(source, want) {
			t.Errorf("there is no %s in\n%s", want, source)
		}
	}
	if fields := fields(t, source); !slices.Contains(fields, "rechnungsnummer string required") {
		t.Errorf("fields %q", fields)
	}
}
