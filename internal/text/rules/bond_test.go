package rules_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBonds has labels that other words make another label, and words that leave them as they
// are; sums in rows and columns; and numbers of things with remarks behind them.
func TestBonds(t *testing.T) {
	total := "value: {type: number, x-coditect: {labels: [Total, Gesamtbetrag, Nettobetrag, Subtotal]}}"
	date := "value: {type: string, format: date, x-coditect: {labels: [Date, Due date]}}"
	number := "value: {type: string, x-coditect: {labels: [Invoice, Invoice No, Facture, IBAN]}}"
	tests := []struct {
		name, property, text string
		want                 any
	}{
		{"a total of other things", total, "Gesamtbetrag der Abschläge 0,50\n", nil},
		{"another total", total, "Total Tax\t4.90\n", nil},
		{"a total of quantities", total, "TOTAL QUANTITY\n102.00\n", nil},
		{"a total in cells", total, "Belege:\n\n| Gesamtbetrag der |  | Zuschläge | 0,50 |\n| --- | --- | --- | --- |\n| Rest |  |  | 1,00 |\n", nil},
		{"a word in front", total, "Net Total:\t20.00\n", nil},
		{"the total of the document", total, "Total for this invoice\t$4.11\n", 4.11},
		{"the total with tax", total, "TOTAL INCL. GST @6%\nRM 37.10\n", 37.1},
		{"the total on a date", total, "Total due on August 3, 2014 $4.11\n", 4.11},
		{"the total in a currency", total, "Total Amount (EUR)\nTotal EUR 4.11\n", 4.11},
		{"an article in front", total, "Your total: 4.11\n", 4.11},

		{"another date", date, "Order Date: 2024-01-02\n", nil},
		{"a date of another thing", date, "Date of delivery 2024-01-02\n", nil},
		{"another date above", date, "Date of delivery\n2024-01-02\n", nil},
		{"the date of the document", date, "Invoice date: 2024-01-02\n", "2024-01-02"},
		{"words behind the colon", date, "Date: Wed, 2024-01-03\n", "2024-01-03"},

		{"sums of parts", total, "a 1.00\nSubtotal 1.00\nb 2.00\nc 3.50\nSubtotal 5.50\nSubtotal 6.50\n", 6.5},
		{"amounts of a row that add up", total, "Total   257.59   59.24   316.83\n", 316.83},
		{"amounts of a row in a table", total, "Sums:\n\n| Kind | Net | Gross |\n| --- | --- | --- |\n| Total | 24.99 | 29.99 |\n", nil},
		{"a column of several values", total, "Items:\n\n| Item | Total |\n| --- | --- |\n| a | 1.00 |\n| b | 3.00 |\n", nil},
		{"a column with its sum", total, "Items:\n\n| Item | Total |\n| --- | --- |\n| a | 1.00 |\n| b | 3.00 |\n|  | 4.00 |\n", 4.0},
		{"a column and an entry", total, "Items:\n\n| Item | Total |\n| --- | --- |\n| a | 1.00 |\n\nTotal: 1.19\n", 1.19},
		{"a label across two columns", total, "Belege:\n\n| Nettobetrag | Nettobetrag |  | 198,00 |\n| --- | --- | --- | --- |\n| Steuer | in | EUR | 37,62 |\n", 198.0},
		{"a head across two columns", total, "Items:\n\n| Item | Total | Total |\n| --- | --- | --- |\n| a | 1.00 |  |\n", 1.0},
		{"a text label across two columns", number, "Belege:\n\n| Invoice | Invoice | R-77 |\n| --- | --- | --- |\n| Date | of | it |\n", "R-77"},

		{"a date behind a number", number, "Facture n°562044387 du 02 Juillet 2015\n", "562044387"},
		{"words and a date behind a number", number, "Invoice # RE-20190610/507 issued at 2019-06-10\n", "RE-20190610/507"},
		{"a comma behind a number", number, "IBAN DE75123456780000001234, BIC WELADED1MST, Bank\n", "DE75123456780000001234"},
		{"a number of several words", number, "Invoice No: F 1234K20/1234/12\n", "F 1234K20/1234/12"},
		{"two numbers", number, "Invoice No: 4711 and 4712\n", "4711 and 4712"},
		{"a word that is no number", number, "Invoice Summary\n", nil},
		{"a colon in a cell", number, "Bank:\n\n| IBAN | : | DE12 |\n| --- | --- | --- |\n| BIC | : | X |\n", "DE12"},
		{"a colon in the cell of the value", "value: {type: string, x-coditect: {labels: [Currency]}}", "Invoice:\n\n| Currency | : GBP |\n| --- | --- |\n| Discount | : 2 % |\n", "GBP"},
		{"a number in several cells", number, "Bank:\n\n| IBAN | : | DE12 | 1234 |\n| --- | --- | --- | --- |\n| BIC | : | X |  |\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, p := parseSchema(t, "type: object\nproperties:\n  "+tt.property+"\n")
			r := one(t, p, tt.text)
			got, err := json.Marshal(s.Nest(p.Values(&r)))
			if err != nil {
				t.Fatal(err)
			}
			want, err := json.Marshal(map[string]any{"value": tt.want})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("values (-want +got):\n%s\nmissing: %+v", diff, r.Missing)
			}
		})
	}
}
