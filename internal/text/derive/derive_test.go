package derive_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/internal/text/confidence"
	"github.com/coditect/mapreduce/internal/text/derive"
)

// property returns the derived property of a schema.
func property(t *testing.T, kind string) *schema.Property {
	t.Helper()
	s, err := schema.Parse("s.yaml", []byte("{type: object, properties: {x: {"+kind+", x-coditect: {derived: true}}}}"))
	if err != nil {
		t.Fatal(err)
	}
	return s.Field("x")
}

func quotesOf(texts []string) []derive.Quote {
	quotes := make([]derive.Quote, len(texts))
	for i, text := range texts {
		quotes[i].Text = text
	}
	return quotes
}

const (
	number   = "type: number"
	integer  = "type: integer"
	date     = "type: string, format: date"
	duration = "type: string, format: duration"
	answer   = "type: boolean"
	text     = "type: string"
)

// Values that follow from their quotes, one kind of formula each, and what is computed.
func TestValuesThatFollow(t *testing.T) {
	for _, tt := range []struct {
		name, kind string
		value      any
		formula    string
		quotes     []string
		computed   string
	}{
		{"a sum", number, json.Number("1500.5"), "sum(1200, 300.50)", []string{"Rent: 1,200.00 EUR", "Heating 300.50"}, "1500.5"},
		{"a sum with signs", number, json.Number("900"), "1200 + -300", []string{"Rent 1,200", "Discount -300"}, "900"},
		{"a sum of amounts", number, json.Number("510504"), "$255,235 + $255,269", []string{"$255,235 and $255,269 thousand"}, "510504"},
		{"a difference", number, json.Number("-361"), "2,664 - 3,025", []string{"total assets 2,664 3,025"}, "-361"},
		{"a difference in brackets", number, json.Number("4751"), "-2,235 - (-6,986)", []string{"Operating income (loss) -2,235 -6,986"}, "4751"},
		{"a product", number, json.Number("14400"), "1200 * 12", []string{"a monthly rent of 1,200"}, "14400"},
		{"a ratio", number, json.Number("2.93"), "2,664 / 909", []string{"Assets 2,664", "Liabilities 909"}, "2.930693…"},
		{"a percentage", number, json.Number("79.05"), "percent(1,235,173, 1,562,474)", []string{"1,235,173", "1,562,474"}, "79.052387…"},
		{"a share as a percentage", "type: number, description: percentage of sales", json.Number("79.05"), "1,235,173 / 1,562,474", []string{"1,235,173", "1,562,474"}, "0.790524…"},
		{"a percentage as a share", "type: number, maximum: 1", json.Number("0.25"), "percent(30, 120)", []string{"30 of 120"}, "25"},
		{"a change", number, json.Number("10.84"), "change(102,920, 114,078)", []string{"114,078", "102,920"}, "10.841430…"},
		{"a change by one", "type: number, description: percentage", json.Number("38.98"), "164 / 118 - 1", []string{"164", "118"}, "0.389831…"},
		{"of a percentage", number, json.Number("9336.36"), "1,027 / 11%", []string{"1,027 employees, or 11 % of all"}, "9336.363636…"},
		{"a mean", number, json.Number("39.3"), "average(38.7, 40.0, 39.2)", []string{"38.7 % 40.0 % 39.2 %"}, "39.3"},
		{"a mean by its terms", number, json.Number("1454.5"), "(1,301 + 1,608) / 2", []string{"1,301", "1,608"}, "1454.5"},
		{"a count of texts", integer, json.Number("3"), `count("Acme Ltd", "Bolt GmbH", "Carl")`, []string{"between Acme Ltd, Bolt GmbH and Carl"}, "3"},
		{"a count of quotes", integer, json.Number("2"), "count()", []string{"first party", "second party"}, "2"},
		{"the least", number, json.Number("12.5"), "min(12.5, 40, 18)", []string{"12.50", "40.00", "18"}, "12.5"},
		{"the greatest", number, json.Number("40"), "max(12.5, 40, 18)", []string{"12.50", "40.00", "18"}, "40"},
		{"the last day", date, "2025-06-30", "max(2024-12-31, 2025-06-30)", []string{"31 December 2024", "June 30, 2025"}, "2025-06-30"},
		{"days", integer, json.Number("89"), "days(2025-01-01, 2025-03-31)", []string{"1 January 2025", "31 March 2025"}, "89"},
		{"days and the last one", integer, json.Number("90"), "days(2025-01-01, 2025-03-31) + 1", []string{"1 January 2025", "31 March 2025"}, "90"},
		{"days by minus", integer, json.Number("30"), "2025-05-31 - 2025-05-01", []string{"2025-05-01", "2025-05-31"}, "30"},
		{"a duration", duration, "P1Y6M", "duration(2024-01-15, 2025-07-15)", []string{"15 January 2024", "15 July 2025"}, "P1Y6M"},
		{"a period of whole months", duration, "P12M", "duration(2025-01-01, 2025-12-31)", []string{"from 1 January 2025 to 31 December 2025"}, "P1Y"},
		{"an age", integer, json.Number("34"), "years(1990-05-02, 2025-05-01)", []string{"born on 2 May 1990", "on 1 May 2025"}, "34"},
		{"months", integer, json.Number("6"), "months(2025-01-15, 2025-07-20)", []string{"15 Jan 2025", "20 Jul 2025"}, "6"},
		{"a date and a duration", date, "2025-04-30", "2025-01-31 + P3M", []string{"31 January 2025", "within three (3) months"}, "2025-04-30"},
		{"a date and days", date, "2025-03-02", "2025-01-31 + 30 days", []string{"31 January 2025", "payable within 30 days"}, "2025-03-02"},
		{"a date before another", date, "2025-01-01", "2025-01-31 - 30 days", []string{"2025-01-31", "30 days before"}, "2025-01-01"},
		{"a duration times a number", duration, "P6M", "2 * P3M", []string{"2 terms", "of three months"}, "P6M"},
		{"a quarter in a text", text, "FY2025 Q2", "quarter(2025-06-30)", []string{"the quarter ended June 30, 2025"}, "2"},
		{"the day of the week", text, "Monday", "weekday(2025-06-30)", []string{"June 30, 2025"}, "Monday"},
		{"an amount in a text", text, "1,500 EUR", "sum(1200, 300)", []string{"1,200 EUR", "300 EUR"}, "1500"},
		{"a comparison", answer, true, "2025-06-30 < 2025-07-15", []string{"due June 30, 2025", "paid on July 15, 2025"}, "yes"},
		{"with words that multiply", number, json.Number("2500000"), "1.5 million + 1 million", []string{"1.5 million", "1 million"}, "2500000"},
		{"a rounded one", number, json.Number("0.67"), "round(2 / 3, 2)", []string{"2 of 3"}, "0.67"},
		{"with its result", number, json.Number("1500"), "1200 + 300 = 1500", []string{"1,200", "300"}, "1500"},
		{"with a name", number, json.Number("1500"), "total = 1200 + 300", []string{"1,200", "300"}, "1500"},
		{"with signs of mathematics", number, json.Number("6"), "3 × 4 ÷ 2 − 0", []string{"3 4 2 and 0"}, "6"},
		{"a whole number of a fraction", integer, json.Number("4"), "average(3, 4, 6)", []string{"3", "4", "6"}, "4.333333…"},
		{"an absolute one", number, json.Number("361"), "abs(2664 - 3025)", []string{"2,664", "3,025"}, "361"},
		{"a guess of a sum", number, json.Number("1500"), "", []string{"1,200 EUR", "300 EUR"}, "1500"},
		{"a guess of a change", number, json.Number("25"), "", []string{"100", "125"}, "25"},
		{"a guess of a duration", duration, "P14D", "", []string{"2025-06-01", "2025-06-15"}, "P14D"},
	} {
		got := derive.Of(property(t, tt.kind), tt.value, tt.formula, quotesOf(tt.quotes), false)
		if got.Fault != "" || got.Computed != tt.computed {
			t.Errorf("%s: computed %q, want %q; fault: %s", tt.name, got.Computed, tt.computed, got.Fault)
		}
		if got := got.Confidence(1); got < 0.5 {
			t.Errorf("%s: confidence %v", tt.name, got)
		}
	}
}

// Values that do not follow from their quotes: none is a value.
func TestLies(t *testing.T) {
	for _, tt := range []struct {
		name, kind string
		value      any
		formula    string
		quotes     []string
		fault      string // a part of it
	}{
		{"a wrong sum", number, json.Number("1600"), "sum(1200, 300)", []string{"1,200", "300"}, "gives 1500, not 1600"},
		{"a number that is not quoted", number, json.Number("1600"), "sum(1200, 400)", []string{"1,200", "300"}, "400, which stands in none"},
		{"a number without its sign", number, json.Number("1500"), "1200 + 300", []string{"1,200", "-300"}, "300, which stands in none"},
		{"a number without its word", number, json.Number("1500"), "1200 + 300", []string{"1,200", "300 million"}, "300, which stands in none"},
		{"one number twice", number, json.Number("600"), "sum(300, 300)", []string{"300"}, "300 2 times"},
		{"one number twice by plus", number, json.Number("600"), "300 + 300", []string{"300 EUR"}, "300 2 times"},
		{"a number that makes it right", number, json.Number("1600"), "1200 + 300 + 100", []string{"1,200", "300"}, "100, which stands in none"},
		{"a factor that makes it right", number, json.Number("1650"), "(1200 + 300) * 1.1", []string{"1,200", "300"}, "1.1, which stands in none"},
		{"a mean of too many", number, json.Number("500"), "(1200 + 300) / 3", []string{"1,200", "300"}, "3, which stands in none"},
		{"a mean of two of three", number, json.Number("750"), "average(1200, 300, 900)", []string{"1,200", "300", "900"}, "gives 800"},
		{"rounded too far", number, json.Number("3"), "10 / 3", []string{"10", "3"}, ""},
		{"rounded the wrong way", number, json.Number("2.94"), "2664 / 909", []string{"2,664", "909"}, "gives 2.930693…"},
		{"cut off", number, json.Number("0.66"), "2 / 3", []string{"2 of 3"}, "gives 0.666667…"},
		{"a percentage where a number belongs", number, json.Number("50"), "1 / 2", []string{"1 of 2"}, "gives 0.5"},
		{"a count of what is not there", integer, json.Number("3"), `count("Acme", "Bolt", "Carl")`, []string{"between Acme and Bolt"}, "Carl, which stands in none"},
		{"a count of one thing twice", integer, json.Number("2"), `count("Acme", "Acme")`, []string{"Acme"}, "Acme 2 times"},
		{"a count of quotes", integer, json.Number("3"), "count()", []string{"one party", "another party"}, "gives 2"},
		{"a part of a word", integer, json.Number("1"), `count("art")`, []string{"a party"}, "art, which stands in none"},
		{"the wrong least", number, json.Number("18"), "min(12.5, 18)", []string{"12.50", "18"}, "gives 12.5"},
		{"a date that is not quoted", integer, json.Number("30"), "days(2025-05-01, 2025-05-31)", []string{"from 1 May 2025", "to 30 May 2025"}, "2025-05-31, which stands in none"},
		{"too many days", integer, json.Number("31"), "days(2025-05-01, 2025-05-31)", []string{"1 May 2025", "31 May 2025"}, "gives 30"},
		{"an age too high", integer, json.Number("35"), "years(1990-05-02, 2025-05-01)", []string{"2 May 1990", "1 May 2025"}, "gives 34"},
		{"a wrong duration", duration, "P2Y", "duration(2024-01-15, 2025-07-15)", []string{"15 January 2024", "15 July 2025"}, "gives P1Y6M"},
		{"a wrong date", date, "2025-05-01", "2025-01-31 + P3M", []string{"31 January 2025", "three months"}, "gives 2025-04-30"},
		{"a duration that is not quoted", date, "2025-04-30", "2025-01-31 + P3M", []string{"31 January 2025", "two months"}, "P3M, which stands in none"},
		{"dates in the wrong order", integer, json.Number("30"), "days(2025-05-31, 2025-05-01)", []string{"1 May 2025", "31 May 2025"}, "is before"},
		{"a wrong quarter", text, "FY2025 Q3", "quarter(2025-06-30)", []string{"the quarter ended June 30, 2025"}, "gives 2"},
		{"another number in a text", text, "1,500 EUR of 9,999", "sum(1200, 300)", []string{"1,200 EUR", "300 EUR"}, "no quote has the 9,999"},
		{"a wrong answer", answer, false, "2025-06-30 < 2025-07-15", []string{"June 30, 2025", "July 15, 2025"}, "gives yes"},
		{"an answer by a number", answer, true, "1 + 1", []string{"1", "1"}, "a number"},
		{"a number by dates", number, json.Number("3"), "2025-01-31 + P3M", []string{"31 January 2025", "three months"}, "a date"},
		{"no formula and none to be guessed", number, json.Number("1600"), "", []string{"1,200", "300"}, "no formula"},
		{"no formula for a count", integer, json.Number("2"), "", []string{"two stars", "Acme"}, "no formula"},
		{"no formula for a date", date, "2025-06-30", "", []string{"last year"}, "no formula"},
		{"no formula for an amount in a text", text, "1,600 EUR", "", []string{"1,200 EUR", "300 EUR"}, "no formula"},
		{"a division by zero", number, json.Number("0"), "5 / 0", []string{"5", "0"}, "divides by zero"},
		{"no formula at all", number, json.Number("5"), "see above", []string{"5"}, "cannot be read"},
		{"an unknown function", number, json.Number("5"), "system(5)", []string{"5"}, "no function"},
		{"half a formula", number, json.Number("5"), "5 +", []string{"5"}, "ends where"},
		{"brackets without end", number, json.Number("5"), strings.Repeat("(", 5000), []string{"5"}, "cannot be read"},
		{"nested too deep", number, json.Number("5"), strings.Repeat("(", 1900) + "5" + strings.Repeat(")", 1900), []string{"5"}, "nested too deep"},
		{"too many operands", number, json.Number("5"), strings.Repeat("5+", 1500) + "5", []string{"5"}, "more than"},
		{"numbers that grow", number, json.Number("5"), "999999999" + strings.Repeat(" * 999999999", 300), []string{"999999999"}, "too large"},
		{"a day that there is not", date, "2025-02-30", "max(2025-02-30, 2025-01-01)", []string{"2025-02-30", "2025-01-01"}, ""},
		{"beyond all years", date, "2025-02-28", "2025-01-31 + 999999 days", []string{"2025-01-31", "999999 days"}, ""},
		{"no quotes", number, json.Number("5"), "2 + 3", nil, "stands in none"},
	} {
		got := derive.Of(property(t, tt.kind), tt.value, tt.formula, quotesOf(tt.quotes), false)
		if got.Fault == "" || !strings.Contains(got.Fault, tt.fault) {
			t.Errorf("%s: fault %q, want %q; computed %q", tt.name, got.Fault, tt.fault, got.Computed)
		}
		if sure := got.Confidence(1); sure > 0.1 {
			t.Errorf("%s: confidence %v", tt.name, sure)
		}
	}
}

// Texts, answers and choices may follow without a formula. Nothing is computed then, and they
// are believed less than what is.
func TestValuesWithoutFormula(t *testing.T) {
	for kind, value := range map[string]any{
		text: "a landlord that lives abroad", answer: true, "enum: [small, large]": "large", "type: integer, enum: [1, 2, 3]": json.Number("2"),
	} {
		got := derive.Of(property(t, kind), value, "", quotesOf([]string{"the owner, of Rome, has 300 flats"}), true)
		if got != (derive.Derivation{}) || got.Confidence(1) >= 0.5 {
			t.Errorf("%s: %+v, confidence %v", kind, got, got.Confidence(1))
		}
	}
}

// What a document tells of how it is written decides between the readings of a number or a date.
// What nothing tells is open, and no value once all is known.
func TestReadingsOfQuotes(t *testing.T) {
	german := format.NumberStyle{Decimal: ','}
	for _, tt := range []struct {
		name    string
		value   any
		kind    string
		formula string
		quote   derive.Quote
		settled bool
		fault   string
		unsure  bool
	}{
		{"thousands", json.Number("1800"), number, "1500 + 300", derive.Quote{Text: "1.500 and 300", Numbers: german}, true, "", false},
		{"no decimals", json.Number("301.5"), number, "1.5 + 300", derive.Quote{Text: "1.500 and 300", Numbers: german}, true, "1.5, which stands in none", false},
		{"nothing tells yet", json.Number("1800"), number, "1500 + 300", derive.Quote{Text: "1.500 and 300"}, false, "", true},
		{"nothing tells at all", json.Number("1800"), number, "1500 + 300", derive.Quote{Text: "1.500 and 300"}, true, "one of several readings", false},
		{"day first", date, date, "", derive.Quote{}, true, "", false},
		{"the end of a range", json.Number("10"), number, "20 - 10", derive.Quote{Text: "10-20 days"}, true, "", true},
	} {
		if tt.name == "day first" {
			tt.value, tt.formula, tt.quote = "2025-04-13", "2025-04-03 + 10 days", derive.Quote{Text: "03/04/2025, within 10 days", Dates: calendar.DMY}
		}
		got := derive.Of(property(t, tt.kind), tt.value, tt.formula, []derive.Quote{tt.quote}, tt.settled)
		if (got.Fault == "") != (tt.fault == "") || !strings.Contains(got.Fault, tt.fault) || got.Unsure != tt.unsure {
			t.Errorf("%s: fault %q, unsure %v; want %q, %v", tt.name, got.Fault, got.Unsure, tt.fault, tt.unsure)
		}
	}
	american := derive.Quote{Text: "03/04/2025, within 10 days", Dates: calendar.MDY}
	if got := derive.Of(property(t, date), "2025-04-13", "2025-04-03 + 10 days", []derive.Quote{american}, true); got.Fault == "" {
		t.Errorf("a date in another order than that of its document: %+v", got)
	}
}

// A derived value is never as sure as one that its quote has, nor is one that was only stated
// as sure as one that was computed.
func TestDerivedIsLessThanQuoted(t *testing.T) {
	p := property(t, number)
	quoted := confidence.Of(confidence.Evidence{Property: &schema.Property{Type: schema.Number}, Value: json.Number("1500"), Quote: "1,500", Grade: "exact"})
	computed := derive.Of(p, json.Number("1500"), "1200+300", quotesOf([]string{"1,200.00", "300"}), true)
	stated := derive.Derivation{}
	if !(stated.Confidence(1) < computed.Confidence(1) && computed.Confidence(1) < quoted) {
		t.Errorf("stated %v, computed %v, quoted %v", stated.Confidence(1), computed.Confidence(1), quoted)
	}
}

// No formula makes the program fail or take long.
func FuzzFormula(f *testing.F) {
	for _, seed := range []string{"sum(1, 2)", `count("a")`, "2025-01-01 + P1M", "1,000.5% * -3 = 4", "((("} {
		f.Add(seed, "1, 2 and 2025-01-01, 3 months")
	}
	p := &schema.Property{Type: schema.Number}
	f.Fuzz(func(t *testing.T, formula, quote string) {
		got := derive.Of(p, json.Number("3"), formula, []derive.Quote{{Text: quote}}, false)
		if got.Computed == "" && got.Fault == "" {
			t.Errorf("%q of %q: %s", formula, quote, fmt.Sprint(got))
		}
	})
}
