package rules_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/internal/outcome/habits"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/internal/text/rules"
)

// settle returns the record of a document as a run has it: numbers and dates are read as
// the document tells, and what stays open is no value.
func settle(t *testing.T, s *schema.Schema, p *rules.Program, text string) merge.Result {
	t.Helper()
	var out output.Output
	var habits habits.Habits
	habits.AddText("d", calendar.CountOrders(text), format.CountNumbers(text))
	record := merge.Record{Document: "d"}
	hash := output.HashDocument("d", []byte(text))
	for _, f := range one(t, p, text).Found {
		key := out.Cite(output.Citation{ID: refs.New(hash, f.Start, f.End, f.Quote), Document: "d", Quote: f.Quote})
		habits.AddQuote(s, "d", f.Field, f.Quote)
		record.Values = append(record.Values, merge.Value{Field: f.Field, Value: f.Value, Confidence: f.Confidence, Citations: []merge.Citation{key}})
	}
	return merge.Resolve(s, habits.Settle(s, merge.Accumulate(s, record), out.Citations))
}

func parseSchema(t *testing.T, source string) (*schema.Schema, *rules.Program) {
	t.Helper()
	s, err := schema.Parse("s.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	p, err := rules.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

// A numberForm is how people of a country write numbers.
type numberForm struct {
	name, decimal, group string
	indian               bool   // groups of two digits before the last three
	late                 bool   // numbers of four digits have no groups
	minus                string // "-", "−", "()" or "x-" for one behind
	before, after        string // of an amount
}

// numberForms has the forms of twenty locales, and more.
var numberForms = []numberForm{
	{name: "en-US", decimal: ".", group: ",", minus: "-", before: "$"},
	{name: "en-US accounts", decimal: ".", group: ",", minus: "()", before: "USD "},
	{name: "en-GB", decimal: ".", group: ",", minus: "-", before: "£"},
	{name: "en-IN", decimal: ".", group: ",", indian: true, minus: "-", before: "₹"},
	{name: "en-ZA", decimal: ",", group: "\u00a0", minus: "-", before: "R"},
	{name: "ISO", decimal: ".", group: " ", minus: "-", after: " EUR"},
	{name: "de-DE", decimal: ",", group: ".", minus: "-", after: " €"},
	{name: "de-DE SAP", decimal: ",", group: ".", minus: "x-", after: " EUR"},
	{name: "de-AT", decimal: ",", group: "\u00a0", minus: "-", before: "€ "},
	{name: "de-CH", decimal: ".", group: "’", minus: "-", before: "CHF "},
	{name: "fr-FR", decimal: ",", group: "\u202f", minus: "-", after: "\u00a0€"},
	{name: "fr-FR typed", decimal: ",", group: " ", minus: "-", after: " €"},
	{name: "fr-CA", decimal: ",", group: "\u00a0", minus: "-", after: " $"},
	{name: "es-ES", decimal: ",", group: ".", late: true, minus: "-", after: " €"},
	{name: "es-MX", decimal: ".", group: ",", minus: "-", before: "$"},
	{name: "es-AR", decimal: ",", group: ".", minus: "-", before: "$ "},
	{name: "pt-BR", decimal: ",", group: ".", minus: "-", before: "R$ "},
	{name: "it-IT", decimal: ",", group: ".", minus: "-", after: " €"},
	{name: "nl-NL", decimal: ",", group: ".", minus: "-", before: "€ "},
	{name: "sv-SE", decimal: ",", group: "\u00a0", minus: "−", after: " kr"},
	{name: "nb-NO", decimal: ",", group: "\u00a0", minus: "−", before: "kr "},
	{name: "da-DK", decimal: ",", group: ".", minus: "-", after: " kr"},
	{name: "pl-PL", decimal: ",", group: "\u00a0", late: true, minus: "-", after: " zł"},
	{name: "ru-RU", decimal: ",", group: "\u00a0", minus: "-", after: " ₽"},
	{name: "tr-TR", decimal: ",", group: ".", minus: "-", before: "₺"},
	{name: "id-ID", decimal: ",", group: ".", minus: "-", before: "Rp "},
	{name: "ja-JP", decimal: ".", group: ",", minus: "-", after: "円"},
}

// write returns a number as people write it: digits are those without the point, of which
// the last are decimals.
func (f *numberForm) write(negative bool, whole string, decimals string) string {
	groups := ""
	for size := 3; len(whole) > size && (!f.late || groups != "" || len(whole) > 4); {
		groups = f.group + whole[len(whole)-size:] + groups
		whole = whole[:len(whole)-size]
		if f.indian {
			size = 2
		}
	}
	s := whole + groups
	if decimals != "" {
		s += f.decimal + decimals
	}
	switch {
	case !negative:
		return s
	case f.minus == "()":
		return "(" + s + ")"
	case f.minus == "x-":
		return s + "-"
	default:
		return f.minus + s
	}
}

// A drawnNumber is a number of a test, as it stands in a document.
type drawnNumber struct {
	form                   numberForm
	written, truth, amount string
}

func drawNumber(rng *rand.Rand) drawnNumber {
	f := numberForms[rng.IntN(len(numberForms))]
	whole := fmt.Sprint(rng.IntN([]int{10, 100, 1000, 10_000, 100_000, 10_000_000}[rng.IntN(6)]))
	decimals := ""
	if n := []int{0, 0, 1, 2, 2, 3}[rng.IntN(6)]; n > 0 {
		decimals = fmt.Sprintf("%0*d", n, rng.IntN([]int{1, 10, 100, 1000}[n]))
	}
	negative := rng.IntN(6) == 0 && whole != "0"
	d := drawnNumber{form: f, written: f.write(negative, whole, decimals)}
	truth := whole + "." + decimals
	if negative {
		truth = "-" + truth
	}
	d.truth, _ = format.CanonicalNumber(truth)
	d.amount = d.written
	if rng.IntN(2) == 0 && f.minus != "()" {
		d.amount = f.before + d.written + f.after
	}
	return d
}

// places are the documents in which a number stands.
var places = []string{
	"Total: %s\n", "Total %s\n", "Total ........ %s\n", "Total\t%s\n", "Total:\n%s\n",
	"| Item | Total |\n|---|---|\n| Apples | %s |\n", "Item\tTotal\tNote\nApples\t%s\tx1\n", "Total     %s     net\n",
}

// evidence returns lines with other numbers of a form.
func evidence(f *numberForm) string {
	s := "Subtotal: " + f.write(false, "1234567", "25") + "\nFreight: " + f.write(false, "18", "75") + "\n"
	if f.minus == "()" || f.minus == "x-" {
		s += "Loss:  " + f.write(true, "812", "40") + "\nFee:  " + f.write(true, "77", "95") + "\n"
	}
	return s
}

// TestNumbersAreRight reads 10,000 numbers in the forms of many locales. None may be shown
// wrong: what is open is said to be so. If the document shows how it writes numbers, nearly
// all are read.
func TestNumbersAreRight(t *testing.T) {
	s, p := parseSchema(t, "type: object\nproperties:\n  total: {type: number, x-coditect: {labels: [Total]}}\n")
	rng := rand.New(rand.NewPCG(41, 3))
	type score struct{ right, open, missing, wrong int }
	scores := map[string]*score{"alone": {}, "with evidence": {}}
	for range 10_000 {
		d := drawNumber(rng)
		text, kind := fmt.Sprintf(places[rng.IntN(len(places))], d.amount), "alone"
		if rng.IntN(2) == 0 {
			text, kind = evidence(&d.form)+text, "with evidence"
		}
		r := settle(t, s, p, text)
		_, isOpen := r.Refused["total"]
		switch got, ok := r.Values["total"]; {
		case ok && got == json.Number(d.truth):
			scores[kind].right++
		case ok:
			if scores[kind].wrong++; scores[kind].wrong < 40 {
				t.Errorf("%s %s: %q is %v, want %s", d.form.name, kind, text, got, d.truth)
			}
		case isOpen:
			scores[kind].open++
		default:
			if scores[kind].missing++; scores[kind].missing < 15 {
				t.Logf("missing in %q: %s", text, r.Missing["total"])
			}
		}
	}
	for kind, n := range scores {
		t.Logf("%s: %+v", kind, *n)
	}
	if n := scores["with evidence"]; n.right*100 < 95*(n.right+n.open+n.missing) {
		t.Errorf("with evidence %+v; want 95 of 100 right", *n)
	}
}

// TestNumberReadings has what a number means in its document.
func TestNumberReadings(t *testing.T) {
	tests := []struct {
		name, top, hint, text string
		want                  any
		readings              []any
	}{
		{name: "nothing tells", text: "Total: 1.500", readings: []any{json.Number("1.5"), json.Number("1500")}},
		{name: "a comma before three digits", text: "Total: 1,500", readings: []any{json.Number("1500"), json.Number("1.5")}},
		{name: "a decimal comma in the document", text: "Price: 0,85 €\nTotal: 1.500 pieces", want: json.Number("1500")},
		{name: "a decimal point in the document", text: "Price: $0.85\nTotal: 1.500 pieces", want: json.Number("1.5")},
		{name: "both in the document", text: "Price: $0.85\nNet: 0,85 €\nTotal: 1.500", readings: []any{json.Number("1.5"), json.Number("1500")}},
		{name: "the number of a section tells nothing", text: "3.2 Price\nTotal: 1.500", readings: []any{json.Number("1.5"), json.Number("1500")}},
		{name: "dollars tell by themselves", text: "Total: $1,500", want: json.Number("1500")},
		{name: "the locale of the schema", top: "x-coditect: {locale: de-DE}", text: "Total: 1.500", want: json.Number("1500")},
		{name: "the locale of the United States", top: "x-coditect: {locale: en-US}", text: "Total: 1.500", want: json.Number("1.5")},
		{name: "documents outweigh the locale", top: "x-coditect: {locale: en-US}", text: "Price: 0,85 €\nTotal: 1.500", want: json.Number("1500")},
		{name: "a plain blank", text: "Total: 1 234", readings: []any{json.Number("1234"), json.Number("1"), json.Number("234")}},
		{name: "blanks in the document", text: "Net: 12 345,60\nTotal: 1 234", want: json.Number("1234")},
		{name: "brackets alone", text: "Total: (12.50)", readings: []any{json.Number("-12.5"), json.Number("12.5")}},
		{name: "brackets as a form", text: "Loss:  (3.40)\nTotal: (12.50)", want: json.Number("-12.5")},
		{name: "brackets beside a minus", text: "Loss: -3.40\nTotal: (12.50)", readings: []any{json.Number("-12.5"), json.Number("12.5")}},
		{name: "whole numbers in brackets", text: "Loss:  (3)\nTotal: (12)", want: json.Number("-12")},
		{name: "a minus behind as a form", text: "Discount: 3,40-\nTotal: 12,50-", want: json.Number("-12.5")},
		{name: "a price without cents", text: "Total: 99,-", want: json.Number("99")},
		{name: "a letter that may multiply", text: "Total: 1.2M", readings: []any{json.Number("1.2"), json.Number("1200000")}},
		{name: "a letter behind money", text: "Total: $1.2M", want: json.Number("1200000")},
		{name: "Mio", text: "Total: 5 Mio", want: json.Number("5000000")},
		{name: "an exponent", text: "Total: 1.5e3", want: json.Number("1500")},
		{name: "a power of ten", text: "Total: 1.5×10³ kg", want: json.Number("1500")},
		{name: "Indian groups", text: "Total: 12,34,567.50", want: json.Number("1234567.5")},
		{name: "an apostrophe", text: "Total: CHF 1’234", want: json.Number("1234")},
		{name: "points that lead to it", text: "Total ....50", want: json.Number("50")},
		{name: "a percentage of one", hint: "maximum: 1, description: share, ", text: "Total: 12.34 %", want: json.Number("0.1234")},
		{name: "a percentage of a hundred", hint: "maximum: 100, description: share, ", text: "Total: 12.34 %", want: json.Number("12.34")},
		{name: "a thousand digits", text: "Total: " + strings.Repeat("1", 10_000)},
		{name: "a whole number", hint: "integer", text: "Total: 1.500", want: json.Number("1500")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			typ := "type: number, "
			if tt.hint == "integer" {
				typ, tt.hint = "type: integer, ", ""
			}
			s, p := parseSchema(t, "type: object\n"+tt.top+"\nproperties:\n  total: {"+typ+tt.hint+"x-coditect: {labels: [Total]}}\n")
			r := settle(t, s, p, tt.text)
			if diff := cmp.Diff(tt.want, r.Values["total"]); diff != "" {
				t.Errorf("value (-want +got):\n%s\nmissing: %v", diff, r.Missing)
			}
			if diff := cmp.Diff(tt.readings, r.Refused["total"].Readings); diff != "" {
				t.Errorf("readings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestColumnsTellTheirStyle reads numbers of a list of objects: the others of their column
// tell how they are read.
func TestColumnsTellTheirStyle(t *testing.T) {
	s, p := parseSchema(t, `type: object
properties:
  items:
    type: array
    items:
      type: object
      required: [article]
      properties: {article: {type: string}, price: {type: number}}
`)
	for text, want := range map[string]string{
		"Article: apples\nPrice: 1.500\nArticle: pears\nPrice: 2,75\n": `[{"article":"apples","price":1500},{"article":"pears","price":2.75}]`,
		"Article: apples\nPrice: 1.500\nArticle: pears\nPrice: 2.75\n": `[{"article":"apples","price":1.5},{"article":"pears","price":2.75}]`,
	} {
		r := settle(t, s, p, text)
		got, err := json.Marshal(r.Values["items"])
		if err != nil || string(got) != want {
			t.Errorf("%q gives %s, want %s (%v)", text, got, want, err)
		}
	}
}
