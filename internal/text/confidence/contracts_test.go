package confidence_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/eval"
	"github.com/coditect/mapreduce/internal/text/rules"
)

// contractSchema was written for the wordings of makers[0].
const contractSchema = `
title: contract
type: object
required: [parties, date, law]
x-coditect: {locale: en-US}
properties:
  parties:
    type: array
    items: {type: string}
    x-coditect:
      pattern:
        - '(?s)\b(?:between|among)\s+([A-Z][^,(]{2,60}?),?\s*[,(].{0,200}?\band\s+([A-Z][^,(]{2,60}?),?\s*[,(]'
  date:
    type: string
    format: date
    x-coditect: {after: [made on, made as of, entered into as of, made and entered into this, is dated, dated, effective as of]}
  term:
    type: string
    format: duration
    x-coditect: {within: {section: [Term, Duration]}, after: [for a period of, for a term of, term of, for, remains in force]}
  notice:
    type: string
    format: duration
    x-coditect: {within: {section: [Termination, Term and Termination, Ending]}}
  law:
    type: string
    x-coditect:
      within: {section: [Governing Law, Law, Applicable Law, Choice of Law]}
      values:
        Delaware: [State of Delaware, Delaware law, laws of Delaware]
        New York: [State of New York, New York law, laws of New York]
        California: [State of California, California law, laws of California]
        Texas: [State of Texas, Texas law, laws of Texas]
        England: [laws of England, English law]
  fee:
    type: number
    minimum: 0
    x-coditect: {within: {section: [Fees, Payment, Rent, Price, Consideration]}, units: [USD, $, EUR, €, GBP, £]}
  currency:
    type: string
    format: currency
    x-coditect: {within: {section: [Fees, Payment, Rent, Price, Consideration]}}
  payment_days:
    type: integer
    x-coditect: {within: {section: [Fees, Payment, Rent, Price, Consideration]}, after: [within, not later than, no later than], number_words: true}
  contact:
    type: string
    format: email
`

// A maker writes contracts in wordings of its own. The verbs of each clause are what the
// contract says: parties, date, and so on.
type maker struct {
	preambles []string // %[1]s and %[2]s are the parties, %[3]s is the date
	terms     []string // %s is the period
	ends      []string
	laws      []string // %s is the place
	fees      []string // %[1]s is the amount, %[2]s the days
	headings  [4]string
}

// makers[0] wrote what the schema was made for, makers[1] what nobody had seen then.
var makers = [2]maker{
	{
		preambles: []string{
			"This Agreement is made on %[3]s between %[1]s, a Delaware corporation (\"Supplier\"), and %[2]s, a limited company (the \"Customer\").",
			"THIS AGREEMENT is entered into as of %[3]s, by and between %[1]s (\"Licensor\") and %[2]s (\"Licensee\").",
			"This lease, made and entered into this %[3]s, by and between %[1]s, having its seat in Albany, and %[2]s, having its seat in Dallas.",
			"Services Agreement dated %[3]s between %[1]s, the provider, and %[2]s, the client.",
		},
		terms: []string{
			"This Agreement shall continue for a period of %s from the date above.", "The Agreement begins on signature and is for a term of %s.",
			"It runs for %s unless it ends earlier under section 4.",
		},
		ends: []string{
			"Either party may terminate this Agreement on %s' written notice.", "Either party may end it by giving the other %s notice in writing.",
			"The Customer may terminate for convenience upon %s prior notice.",
		},
		laws: []string{
			"This Agreement is governed by the laws of the %s, without regard to its rules on conflicts of laws.", "The laws of the %s apply.",
			"This Agreement shall be construed in accordance with the laws of the %s.",
		},
		fees: []string{
			"The Customer pays a fee of %[1]s. Invoices are due within %[2]s days of receipt.", "The price is %[1]s, payable not later than %[2]s days after delivery.",
			"A monthly rent of %[1]s shall be paid within %[2]s days.",
		},
		headings: [4]string{"Term", "Fees", "Termination", "Governing Law"},
	},
	{
		preambles: []string{
			"AGREEMENT effective as of %[3]s among %[1]s, organised under the laws of Ohio (the \"Company\"), and %[2]s, an individual (the \"Consultant\").",
			"This Consulting Agreement (this \"Agreement\") is dated %[3]s and is made between %[1]s, with offices in Boston, and %[2]s, with offices in Leeds.",
			"MEMORANDUM OF AGREEMENT made as of %[3]s by and between %[1]s, hereinafter the Seller, and %[2]s, hereinafter the Buyer.",
		},
		terms: []string{
			"The initial term of %s starts on the Effective Date.", "The engagement lasts for %s and may be renewed.",
			"Unless ended sooner, this Agreement remains in force for %s.",
		},
		ends: []string{
			"This Agreement may be cancelled by either side with %s notice.", "A party that wishes to leave shall give at least %s notice to the other.",
		},
		laws: []string{
			"The validity of this Agreement shall be determined under the laws of the %s.", "All disputes are decided under the internal laws of the %s, and the courts there have jurisdiction.",
		},
		fees: []string{
			"In consideration of the services, the Company shall pay %[1]s no later than %[2]s days after each invoice.", "The Buyer shall pay to the Seller the sum of %[1]s within %[2]s days from shipment.",
		},
		headings: [4]string{"Duration", "Consideration", "Ending", "Choice of Law"},
	},
}

// Names, numbers and the ways to write them, of which contracts are made.
var (
	companies = []string{"Acme Tools Inc.", "Bolt GmbH", "Northern Light LLC", "Harper & Sons Ltd.", "Maria Alvarez", "Cedar River Holdings Inc.", "Quill Software Corporation", "Blue Anchor Shipping Co.", "J. Peter Ruiz", "Tesson Laboratories S.A."}
	places    = map[string]string{"State of Delaware": "Delaware", "State of New York": "New York", "State of California": "California", "State of Texas": "Texas"}
	ones      = []string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen"}
	tens      = map[int]string{20: "twenty", 30: "thirty", 45: "forty-five", 60: "sixty", 90: "ninety"}
	months    = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
)

func inWords(n int) string {
	if n < len(ones) {
		return ones[n]
	}
	return tens[n]
}

func draw[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// written writes a count: "two (2)", "two" or "2".
func written(r *rand.Rand, n int) string {
	return draw(r, []string{fmt.Sprintf("%s (%d)", inWords(n), n), inWords(n), fmt.Sprint(n)})
}

// period draws a period and returns it as it is written, with its value.
func period(r *rand.Rand, units ...string) (text, value string) {
	unit := draw(r, units)
	n := draw(r, []int{1, 2, 3, 5, 6})
	if unit == "day" {
		n = draw(r, []int{10, 15, 30, 60, 90})
	}
	text = written(r, n) + " " + unit
	if n > 1 {
		text += "s"
	}
	return text, fmt.Sprintf("P%d%s", n, strings.ToUpper(unit[:1]))
}

// day draws a date and returns it as it is written, with its value.
func day(r *rand.Rand) (text, value string) {
	y, m, d := 1998+r.IntN(25), 1+r.IntN(12), 1+r.IntN(28)
	suffix := "th"
	if d%10 < 4 && d%10 > 0 && (d < 10 || d > 20) {
		suffix = []string{"", "st", "nd", "rd"}[d%10]
	}
	return draw(r, []string{
		fmt.Sprintf("%s %d, %d", months[m-1], d, y), fmt.Sprintf("%d %s %d", d, months[m-1], y), fmt.Sprintf("the %d%s day of %s, %d", d, suffix, months[m-1], y),
		fmt.Sprintf("%d%s day of %s %d", d, suffix, months[m-1], y), fmt.Sprintf("%s %d%s, %d", months[m-1], d, suffix, y), fmt.Sprintf("%04d-%02d-%02d", y, m, d),
	}), fmt.Sprintf("%04d-%02d-%02d", y, m, d)
}

// money draws an amount and returns it as it is written, with its value and currency.
func money(r *rand.Rand) (text string, value json.Number, currency string) {
	n := (1 + r.IntN(900)) * 100
	grouped := fmt.Sprint(n)
	if n >= 1000 {
		grouped = fmt.Sprintf("%d,%03d", n/1000, n%1000)
	}
	code := draw(r, []string{"USD", "EUR", "GBP"})
	sign := map[string]string{"USD": "$", "EUR": "€", "GBP": "£"}[code]
	return draw(r, []string{code + " " + grouped, sign + grouped + ".00", sign + grouped, grouped + " " + code}), json.Number(fmt.Sprint(n)), code
}

// contract makes a contract of a maker, with its truth.
func (m *maker) contract(r *rand.Rand) (text string, truth map[string]any) {
	first := draw(r, companies)
	second := draw(r, slices.DeleteFunc(slices.Clone(companies), func(c string) bool { return c == first }))
	date, dateValue := day(r)
	term, termValue := period(r, "year", "month", "year")
	notice, noticeValue := period(r, "day", "day", "month")
	amount, fee, currency := money(r)
	days := draw(r, []int{10, 15, 30, 45, 60})
	all := make([]string, 0, len(places))
	for place := range places {
		all = append(all, place)
	}
	slices.Sort(all)
	place := draw(r, all)
	contact := fmt.Sprintf("%s@example.org", strings.ToLower(strings.Fields(first)[0]))
	contact = strings.ReplaceAll(contact, ".", "") // of an initial
	contact = strings.Replace(contact, "exampleorg", "example.org", 1)
	number := 0
	heading := func(title string) string {
		number++
		return draw(r, []string{fmt.Sprintf("%d. %s. ", number, title), fmt.Sprintf("%d. %s\n", number, title), fmt.Sprintf("ARTICLE %d\n%s\n", number, strings.ToUpper(title))})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", draw(r, []string{"SERVICES AGREEMENT", "LEASE", "MASTER AGREEMENT", "CONTRACT"}))
	fmt.Fprintf(&b, draw(r, m.preambles)+"\n\n", first, second, date)
	fmt.Fprintf(&b, "WHEREAS the parties have worked together for %s years; NOW, THEREFORE, they agree as follows.\n\n", inWords(2+r.IntN(9)))
	truth = map[string]any{"parties": []any{first, second}, "date": dateValue}
	clause := func(title string, says map[string]any, text string, args ...any) {
		if r.IntN(8) == 0 {
			return // this contract does not speak of it
		}
		maps.Copy(truth, says)
		sentences := []string{fmt.Sprintf(text, args...)}
		if r.IntN(3) == 0 { // with something else beside it
			sentences = slices.Insert(sentences, r.IntN(2), m.beside(r, title))
		}
		fmt.Fprintf(&b, "%s%s\n\n", heading(title), strings.Join(sentences, " "))
	}
	clause(m.headings[0], map[string]any{"term": termValue}, draw(r, m.terms), term)
	clause(m.headings[1], map[string]any{"fee": fee, "currency": currency, "payment_days": json.Number(fmt.Sprint(days))}, draw(r, m.fees), amount, written(r, days))
	clause(m.headings[2], map[string]any{"notice": noticeValue}, draw(r, m.ends), notice)
	clause(m.headings[3], map[string]any{"law": places[place]}, draw(r, m.laws), place)
	clause("Notices", map[string]any{"contact": contact}, "All notices go to %s, or to the seat of the party.", contact)
	fmt.Fprintf(&b, "IN WITNESS WHEREOF the parties have signed.\n\n_______________  _______________\n")
	return b.String(), truth
}

// beside returns a sentence of a section that speaks of other dates, amounts and periods.
func (m *maker) beside(r *rand.Rand, title string) string {
	other, _ := period(r, "day", "month")
	amount, _, _ := money(r)
	switch title {
	case m.headings[0]:
		return fmt.Sprintf("The parties may extend it by %s at a time.", other)
	case m.headings[1]:
		return fmt.Sprintf("Late payments bear a charge of %s for each reminder.", amount)
	case m.headings[2]:
		return fmt.Sprintf("A breach that is not cured after %s is a cause for ending it at once.", other)
	case m.headings[3]:
		return "Mandatory rules of the State of Texas on consumers stay in force."
	}
	return "Post is deemed received on the third day."
}

// Contracts whose dates are written out, with numbers in words, two parties in a preamble,
// jurisdictions and terms: F1 and calibration of each field. The schema was written for one
// maker's wordings; the held-out half is another's.
func TestContracts(t *testing.T) {
	s, err := schema.Parse("contract.yaml", []byte(contractSchema))
	if err != nil {
		t.Fatal(err)
	}
	p, err := rules.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct {
		name  string
		least float64 // micro F1
	}{{"chosen on", 0.93}, {"held out", 0.93}} {
		t.Run(tt.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, uint64(i)))
			var truth []eval.Truth
			var results []eval.Result
			for n := range 120 {
				text, values := makers[i].contract(r)
				name := fmt.Sprintf("contract%03d.txt", n)
				truth = append(truth, eval.Truth{Document: name, Values: values})
				results = append(results, receipt(t, s, p, name, text))
			}
			report := eval.Compare(s, results, truth)
			for _, f := range s.Fields() {
				score := report.Fields[f.Path]
				t.Logf("%-14s F1 %.3f, precision %.3f, recall %.3f", f.Path, score.F1, score.Precision, score.Recall)
			}
			t.Logf("micro F1 %.3f over 120 contracts", report.Micro.F1)
			for _, d := range report.Errors[:min(len(report.Errors), 12)] {
				t.Logf("%s %s %s: truth %v, found %v, quotes %q", d.Kind, d.Document, d.Field, d.Truth, d.Found, d.Quotes)
			}
			if report.Calibration == nil {
				t.Fatal("no value has a confidence")
			}
			logTable(t, tt.name, *report.Calibration)
			if report.Micro.F1 < tt.least {
				t.Errorf("micro F1 is %.3f, want at least %.2f", report.Micro.F1, tt.least)
			}
			if report.Calibration.Error > maxError {
				t.Errorf("the expected calibration error is %.3f, want at most %.2f", report.Calibration.Error, maxError)
			}
		})
	}
}
