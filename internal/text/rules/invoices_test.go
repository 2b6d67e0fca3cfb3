package rules_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/internal/outcome/habits"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/confidence"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/internal/text/rules/infer"
)

// invoiceSchema has the labels of invoices in six languages, and nothing of any layout.
const invoiceSchema = `
type: object
properties:
  number:
    type: string
    x-coditect: {labels: [Invoice Number, Invoice No, Rechnungsnummer, Numéro de facture, Factuurnummer, Numer faktury, Número de factura]}
  date:
    type: string
    format: date
    x-coditect: {labels: [Invoice Date, Rechnungsdatum, Date de facture, Factuurdatum, Data wystawienia, Fecha de factura, Date, Datum]}
  due:
    type: string
    format: date
    x-coditect: {labels: [Due Date, Fällig am, Date d'échéance, Vervaldatum, Termin płatności, Fecha de vencimiento]}
  net:
    type: number
    x-coditect: {labels: [Subtotal, Nettobetrag, Total HT, Totaal excl. btw, Wartość netto, Base imponible]}
  total:
    type: number
    x-coditect: {labels: [Total, Gesamtbetrag, Total TTC, Totaal incl. btw, Do zapłaty, Importe total]}
  iban:
    type: string
    x-coditect: {labels: [IBAN]}
`

// A country is how the invoices of a country are written.
type country struct {
	numbers                              string // the name of a form of numbers
	date                                 string // as package time writes it
	number, dated, due, net, total, iban string
	tax, sum                             string   // of the tax; of a column of the items
	item, amount                         string   // heads of the other columns
	others                               []string // labels of dates and sums that are not looked for
}

var countries = []country{
	{
		"en-US", "01/02/2006", "Invoice Number", "Invoice Date", "Due Date", "Subtotal", "Total", "IBAN", "Sales Tax", "Total", "Item", "Qty",
		[]string{"Order Date", "Ship Date", "Total Discount", "Total Quantity", "Customer Number", "Order Number"},
	},
	{
		"en-GB", "2 January 2006", "Invoice No", "Date", "Due Date", "Subtotal", "Total", "IBAN", "VAT", "Amount", "Description", "Quantity",
		[]string{"Order Date", "Date of delivery", "Total VAT", "Total savings", "Customer No", "Delivery Note No"},
	},
	{
		"de-DE", "02.01.2006", "Rechnungsnummer", "Rechnungsdatum", "Fällig am", "Nettobetrag", "Gesamtbetrag", "IBAN", "MwSt", "Gesamtbetrag", "Artikel", "Menge",
		[]string{"Lieferdatum", "Bestelldatum", "Gesamtbetrag der Rabatte", "Gesamtbetrag der Zuschläge", "Kundennummer", "Bestellnummer"},
	},
	{
		"fr-FR typed", "02/01/2006", "Numéro de facture", "Date de facture", "Date d'échéance", "Total HT", "Total TTC", "IBAN", "TVA", "Total HT", "Désignation", "Quantité",
		[]string{"Date de commande", "Date de livraison", "Total des remises", "Total TVA", "Numéro de client", "Numéro de commande"},
	},
	{
		"nl-NL", "02-01-2006", "Factuurnummer", "Factuurdatum", "Vervaldatum", "Totaal excl. btw", "Totaal incl. btw", "IBAN", "Btw", "Bedrag", "Omschrijving", "Aantal",
		[]string{"Orderdatum", "Leverdatum", "Totaal korting", "Totaal btw", "Klantnummer", "Ordernummer"},
	},
	{
		"pl-PL", "2006-01-02", "Numer faktury", "Data wystawienia", "Termin płatności", "Wartość netto", "Do zapłaty", "IBAN", "Kwota VAT", "Wartość netto", "Nazwa", "Ilość",
		[]string{"Data sprzedaży", "Data zamówienia", "Suma rabatów", "Razem VAT", "Numer klienta", "Numer zamówienia"},
	},
}

// An entry is a label of an invoice with its value.
type entry struct{ label, value string }

// layouts write the entries of an invoice as the texts of PDF files, web pages and
// documents have them.
var layouts = []struct {
	name  string
	write func(entries []entry) string
}{
	{"entries", joined("%s: %s\n")},
	{"tabs", joined("%s\t%s\n")},
	{"gaps", joined("%-32s%s\n")},
	{"points", joined("%s ........ %s\n")},
	{"list", joined("- **%s:** %s\n")},
	{"below", joined("%s\n%s\n\n")},
	{"colons below", joined("%s:\n%s\n\n")},
	{"table of names", func(entries []entry) string {
		return "| | |\n| --- | --- |\n" + joined("| %s | %s |\n")(entries)
	}},
	{"pairs on a line", pairs("%s: %s\t")},
	{"pairs by gaps", pairs("%s: %s          ")},
	{"head and row", heads(func(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }, true)},
	{"head and row by tabs", heads(func(cells []string) string { return strings.Join(cells, "\t") + "\n" }, false)},
}

func joined(format string) func([]entry) string {
	return func(entries []entry) string {
		var b strings.Builder
		for _, e := range entries {
			fmt.Fprintf(&b, format, e.label, e.value)
		}
		return b.String()
	}
}

// pairs writes two entries on a line.
func pairs(format string) func([]entry) string {
	return func(entries []entry) string {
		var b strings.Builder
		for two := range slices.Chunk(entries, 2) {
			for _, e := range two {
				fmt.Fprintf(&b, format, e.label, e.value)
			}
			b.WriteByte('\n')
		}
		return b.String()
	}
}

// heads writes three labels on a line, and their values on the next.
func heads(write func(cells []string) string, rule bool) func([]entry) string {
	return func(entries []entry) string {
		var b strings.Builder
		for some := range slices.Chunk(entries, 3) {
			var labels, values, rules []string
			for _, e := range some {
				labels, values, rules = append(labels, e.label), append(values, e.value), append(rules, "---")
			}
			b.WriteString(write(labels))
			if rule {
				b.WriteString(write(rules))
			}
			b.WriteString(write(values) + "\n")
		}
		return b.String()
	}
}

// A drawnInvoice is an invoice of a test with its true values. Those that are missing are
// absent.
type drawnInvoice struct {
	text  string
	truth map[string]string
}

// drawInvoice writes an invoice of a country in a layout. A quarter of the fields are missing,
// while dates, sums and numbers of other things stand in it.
func drawInvoice(rng *rand.Rand, c *country, write func([]entry) string) drawnInvoice {
	form := &numberForms[slices.IndexFunc(numberForms, func(f numberForm) bool { return f.name == c.numbers })]
	amount := func(cents int) string {
		return form.before + form.write(false, fmt.Sprint(cents/100), fmt.Sprintf("%02d", cents%100)) + form.after
	}
	plain := func(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }
	day := time.Date(2020+rng.IntN(6), time.Month(1+rng.IntN(12)), 13+rng.IntN(15), 0, 0, 0, 0, time.UTC)
	code := func() string {
		return fmt.Sprintf("%c%c-%d", 'A'+rng.IntN(26), 'A'+rng.IntN(26), 1000+rng.IntN(900_000))
	}
	d := drawnInvoice{truth: map[string]string{}}

	var lines []string
	net := 0
	for i := range 1 + rng.IntN(4) {
		cents := 100 + rng.IntN(900_000)
		net += cents
		lines = append(lines, fmt.Sprintf("| Thing %c | %d | %s |\n", 'A'+i, 1+rng.IntN(9), amount(cents)))
	}
	tax := net / 5
	number, iban := code(), fmt.Sprintf("DE%020d", rng.IntN(1<<50))
	due := day.AddDate(0, 0, 30)

	var top, sums []entry
	add := func(to *[]entry, field, label, written, truth string) {
		if rng.IntN(4) > 0 {
			*to = append(*to, entry{label, written})
			d.truth[field] = truth
		}
	}
	add(&top, "number", c.number, number, number)
	add(&top, "date", c.dated, day.Format(c.date), day.Format(time.DateOnly))
	add(&top, "due", c.due, due.Format(c.date), due.Format(time.DateOnly))
	for i, label := range c.others[:2] {
		top = append(top, entry{label, day.AddDate(0, 0, -7-i).Format(c.date)})
	}
	for _, label := range c.others[4:] {
		top = append(top, entry{label, code()})
	}
	add(&sums, "net", c.net, amount(net), plain(net))
	sums = append(sums, entry{c.others[2], amount(tax / 7)}, entry{c.others[3], amount(tax / 3)}, entry{c.tax, amount(tax)})
	add(&sums, "total", c.total, amount(net+tax), plain(net+tax))
	add(&sums, "iban", c.iban, iban, iban)
	rng.Shuffle(len(top), func(i, j int) { top[i], top[j] = top[j], top[i] })

	items := fmt.Sprintf("\n| %s | %s | %s |\n| --- | --- | --- |\n%s\n", c.item, c.amount, c.sum, strings.Join(lines, ""))
	d.text = "Acme\n12 High Street\n\n" + write(top) + items + write(sums)
	return d
}

// TestInvoices reads 1,200 invoices of six countries in twelve layouts. No wrong value may be
// as sure as a right one, be the field there or missing; and nine of ten that are there are
// found.
func TestInvoices(t *testing.T) {
	s, p := parseSchema(t, invoiceSchema)
	rng := rand.New(rand.NewPCG(41, 4))
	there, right, guesses, wrong := 0, 0, 0, 0
	missed := map[string]int{}
	for i := range 1200 {
		c, layout := &countries[i%len(countries)], layouts[i/len(countries)%len(layouts)]
		d := drawInvoice(rng, c, layout.write)
		there += len(d.truth)

		// The values are those of a run: settled, with the confidence of one reading.
		var out output.Output
		var habits habits.Habits
		habits.AddText("d", calendar.CountOrders(d.text), format.CountNumbers(d.text))
		record := merge.Record{Document: "d"}
		for _, f := range one(t, p, d.text).Found {
			key := out.Cite(output.Citation{ID: refs.New(output.HashDocument("d", []byte(d.text)), f.Start, f.End, f.Quote), Document: "d", Quote: f.Quote})
			habits.AddQuote(s, "d", f.Field, f.Quote)
			sure := confidence.Of(confidence.Evidence{
				Property: s.Field(f.Field), Value: f.Value, Quote: f.Quote, Grade: ground.Exact,
				Before: confidence.Before(d.text, f.Start), Basis: confidence.Basis(f.Basis), Rivals: f.Rivals,
			})
			record.Values = append(record.Values, merge.Value{Field: f.Field, Value: f.Value, Confidence: sure, Citations: []merge.Citation{key}})
		}
		r := merge.Resolve(s, habits.Settle(s, merge.Accumulate(s, record), out.Citations))

		for _, field := range []string{"number", "date", "due", "net", "total", "iban"} {
			got, found := r.Values[field]
			want, isThere := d.truth[field]
			if field == "net" || field == "total" {
				want, _ = format.CanonicalNumber(want)
			}
			switch {
			case found && isThere && fmt.Sprint(got) == want:
				right++
			case found && r.Confidence[field] <= 0.5:
				guesses++
			case found:
				if wrong++; wrong <= 20 {
					t.Errorf("%s, %s: %s is %v with confidence %.2f, want %q, in\n%s", c.numbers, layout.name, field, got, r.Confidence[field], want, d.text)
				}
			case isThere:
				if missed[layout.name+" "+field]++; missed[layout.name+" "+field] == 1 {
					t.Logf("%s, %s: %s is missing: %s; in\n%s", c.numbers, layout.name, field, r.Missing[field], d.text)
				}
			}
		}
	}
	t.Logf("of %d values %d right, %d guesses that are wrong, %d wrong; missed %v", there, right, guesses, wrong, missed)
	if right*10 < there*9 {
		t.Errorf("%d of %d values are right, want nine of ten", right, there)
	}
}

// TestProposalsReadOtherDocuments infers a schema from a few invoices of each country in each
// layout, and reads others with it. The fields have the labels of the invoices, and the values
// are right.
func TestProposalsReadOtherDocuments(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 5))
	there, right, lists := 0, 0, 0
	for i := range countries {
		c := &countries[i]
		for _, layout := range layouts {
			var proposal infer.Proposal
			for range 6 {
				proposal.Add(drawInvoice(rng, c, layout.write).text)
			}
			source, err := proposal.Schema()
			if err != nil {
				t.Fatal(err)
			}
			s, p := parseSchema(t, source)
			byLabel := make(map[string]string)
			for _, f := range s.Fields() {
				if f.Property.Type == schema.Array && f.Property.Items.Type == schema.Object {
					lists++
				}
				for _, label := range f.Property.Hints.Labels {
					byLabel[label] = f.Path
				}
			}

			labels := map[string]string{"number": c.number, "date": c.dated, "due": c.due, "net": c.net, "total": c.total, "iban": c.iban}
			for range 5 {
				d := drawInvoice(rng, c, layout.write)
				r := settle(t, s, p, d.text)
				for field, want := range d.truth {
					there++
					if field == "net" || field == "total" {
						want, _ = format.CanonicalNumber(want)
					}
					switch got, found := r.Values[byLabel[labels[field]]]; {
					case found && fmt.Sprint(got) == want:
						right++
					case found:
						t.Errorf("%s, %s: %s is %v, want %s, by\n%s\nin\n%s", c.numbers, layout.name, field, got, want, source, d.text)
					}
				}
			}
		}
	}
	t.Logf("of %d values of documents that no schema was inferred from %d are right; %d of %d schemas have a list", there, right, lists, len(countries)*len(layouts))
	if right*10 < there*8 || lists < len(countries)*len(layouts) {
		t.Errorf("%d of %d values are right, want eight of ten; %d schemas have a list, want all", right, there, lists)
	}
}
