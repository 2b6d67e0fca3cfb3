package rules_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// netAndTotal are two fields of amounts.
const netAndTotal = "net: {type: number, x-coditect: {labels: [Net]}}\n  total: {type: number, x-coditect: {labels: [Total]}}"

// TestLabels has what belongs to a label, to its value and to the next one, and what a
// field has whose label is not there.
func TestLabels(t *testing.T) {
	tests := []struct {
		name, properties, text string
		want                   map[string]any
	}{
		{
			"without its label a date is no value", "due: {type: string, format: date, x-coditect: {labels: [Due date]}}",
			"Date: 28 November 2023\n",
			map[string]any{"due": nil},
		},
		{
			"nor is an address", "mail: {type: string, format: email, x-coditect: {labels: [Accounts payable]}}",
			"Mail: a@example.org\n",
			map[string]any{"mail": nil},
		},
		{
			"nor a currency", "currency: {type: string, format: currency, x-coditect: {labels: [Settlement currency]}}",
			"Total: EUR 5.00\n",
			map[string]any{"currency": nil},
		},
		{
			"nor a choice", "status: {enum: [open, paid], x-coditect: {labels: [Status]}}",
			"The shop is open.\n",
			map[string]any{"status": nil},
		},
		{
			"nor a date far behind a text", "start: {type: string, format: date, x-coditect: {after: beginning on}}",
			"The term, beginning on a day to be agreed.\n\n\nSigned:\n28 November 2023\n",
			map[string]any{"start": nil},
		},
		{
			"otherwise by form", "due: {type: string, format: date, x-coditect: {labels: [Due date], otherwise: form}}",
			"Date: 28 November 2023\n",
			map[string]any{"due": "2023-11-28"},
		},
		{"a number sign", "no: {type: string, x-coditect: {labels: [Invoice]}}", "Invoice # R-77\n", map[string]any{"no": "R-77"}},
		{"No.", "no: {type: string, x-coditect: {labels: [Invoice]}}", "Invoice No. R-77\n", map[string]any{"no": "R-77"}},
		{"No. and a colon", "no: {type: string, x-coditect: {labels: [Invoice]}}", "Invoice No.: R-77\n", map[string]any{"no": "R-77"}},
		{"n°", "no: {type: string, x-coditect: {labels: [Facture]}}", "Facture n° 2024-001\n", map[string]any{"no": "2024-001"}},
		{"n° of which the letter is in the label", "no: {type: string, x-coditect: {labels: [Facture n]}}", "Facture n°562044387\n", map[string]any{"no": "562044387"}},
		{
			"labels with colons above their values",
			"due: {type: string, format: date, x-coditect: {labels: [Due Date]}}\n  date: {type: string, format: date, x-coditect: {labels: [Invoice Date]}}",
			"Invoice Date:\tDue Date:\tReference:\n03/20/2023\t04/14/2023\tCUST17\n",
			map[string]any{"due": "2023-04-14", "date": "2023-03-20"},
		},
		{
			"labels with colons above their values, in a table",
			"due: {type: string, format: date, x-coditect: {labels: [Due Date]}}\n  date: {type: string, format: date, x-coditect: {labels: [Invoice Date]}}",
			"| Invoice Date: | Due Date: | Reference: |\n| --- | --- | --- |\n| 03/20/2023 | 04/14/2023 | CUST17 |\n",
			map[string]any{"due": "2023-04-14", "date": "2023-03-20"},
		},
		{"Nr.", "no: {type: string, x-coditect: {labels: [Rechnung]}}", "Rechnung Nr. 17\n", map[string]any{"no": "17"}},
		{"a value that is no number", "answer: {type: string, x-coditect: {labels: [Answer]}}", "Answer: No. He left.\n", map[string]any{"answer": "No. He left."}},
		{"points of a table of contents", "name: {type: string, x-coditect: {labels: [Seller]}}", "Seller ......... Acme Ltd\n", map[string]any{"name": "Acme Ltd"}},
		{"the next cell", "name: {type: string, x-coditect: {labels: [Seller]}}", "Seller: Acme Ltd\tPage 1\n", map[string]any{"name": "Acme Ltd"}},
		{"a wide gap", "name: {type: string, x-coditect: {labels: [Seller]}}", "Seller: Acme Ltd      12 High Street\n", map[string]any{"name": "Acme Ltd"}},
		{"the next label behind a gap", "name: {type: string, x-coditect: {labels: [Seller]}}", "Seller: Acme Ltd  Reg: 12\n", map[string]any{"name": "Acme Ltd"}},
		{"the next label behind a blank", "no: {type: string, x-coditect: {labels: [Invoice No]}}", "Invoice No: R-77 Date: 2024-01-02\n", map[string]any{"no": "R-77"}},
		{"a name of two colons", "title: {type: string}", "Title: threading for Email::Simple objects\n", map[string]any{"title": "threading for Email::Simple objects"}},
		{"blanks within a sentence", "title: {type: string}", "Title: numbers evaluated at     compile time\n", map[string]any{"title": "numbers evaluated at compile time"}},
		{"a colon in a title", "title: {type: string}", "Title: Star Wars: A New Hope\n", map[string]any{"title": "Star Wars: A New Hope"}},
		{
			"values below labels by tabs",
			"due: {type: string, format: date, x-coditect: {labels: [Due Date]}}\n  no: {type: string, x-coditect: {labels: [Invoice Number]}}",
			"Invoice Date\tDue Date\tInvoice Number\n2024-01-02\t2024-02-01\tR-77\n\nTotal\t12.50\n",
			map[string]any{"due": "2024-02-01", "no": "R-77"},
		},
		{
			"values below labels by gaps",
			"due: {type: string, format: date, x-coditect: {labels: [Due Date]}}\n  no: {type: string, x-coditect: {labels: [Invoice Number]}}",
			"Invoice Date    Due Date      Invoice Number\n2024-01-02      2024-02-01    R-77\n",
			map[string]any{"due": "2024-02-01", "no": "R-77"},
		},
		{
			"an empty place below a label",
			"due: {type: string, format: date, x-coditect: {labels: [Due Date]}}\n  no: {type: string, x-coditect: {labels: [Invoice Number]}}",
			"Invoice Date    Due Date      Invoice Number\n2024-01-02                    R-77\n",
			map[string]any{"due": nil, "no": "R-77"},
		},
		{
			"rows of fewer cells than labels, which a sum tells apart", netAndTotal,
			"Goods\tDiscount\tNet\tTax\tTax rate\tTotal\n326,50\t-5,10\t321,40\t61,07\t19,0\t382,47\n" +
				"127,59\t127,59\t8,93\t7,0\t136,52\n\n457,20\t-8,21\t448,99\t70,00\tEUR\t518,99\n",
			map[string]any{"net": json.Number("448.99"), "total": json.Number("518.99")},
		},
		{
			"all rows of fewer cells than labels", "total: {type: number, x-coditect: {labels: [Total]}}",
			"Goods\tDiscount\tTotal\n-5,00\t-5,77\n-2,90\t-3,02\n\n-7,90\t-8,79\n",
			map[string]any{"total": json.Number("-8.79")},
		},
		{
			"which nothing tells apart", netAndTotal,
			"Goods\tNet\tTax\tTotal\n326,50\t321,40\t61,07\t382,47\n127,59\t8,93\t136,52\n",
			map[string]any{"net": nil, "total": nil},
		},
		{
			"nor does a sum of either", "net: {type: number, x-coditect: {labels: [Net]}}",
			"Goods\tNet\tTax\n10,00\t1,00\n20,00\t2,00\n\n30,00\t3,00\n",
			map[string]any{"net": nil},
		},
		{
			"which types tell apart",
			"no: {type: string, x-coditect: {labels: [Invoice Number]}}\n  due: {type: string, format: date, x-coditect: {labels: [Due Date]}}",
			"Invoice Number\tDue Date\tReference\nR-77\t2024-02-01\n",
			map[string]any{"no": "R-77", "due": "2024-02-01"},
		},
		{
			"a row of totals behind a blank line", "total: {type: number, x-coditect: {labels: [Total]}}",
			"Goods\tTax\tTotal\n10,00\t1,00\t11,00\n20,00\t2,00\t22,00\n\n30,00\t3,00\t33,00\n",
			map[string]any{"total": json.Number("33")},
		},
		{
			"names and values side by side", "seller: {type: string}\n  date: {type: string, format: date}",
			"Seller\tAcme Ltd\nDate\t2024-01-02\n",
			map[string]any{"seller": "Acme Ltd", "date": "2024-01-02"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, p := parseSchema(t, "type: object\nproperties:\n  "+tt.properties+"\n")
			r := one(t, p, tt.text)
			got, err := json.Marshal(s.Nest(p.Values(&r)))
			if err != nil {
				t.Fatal(err)
			}
			want, err := json.Marshal(tt.want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("values (-want +got):\n%s\nmissing: %+v", diff, r.Missing)
			}
		})
	}
}
