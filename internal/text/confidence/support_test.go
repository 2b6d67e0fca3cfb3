package confidence_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/text/confidence"
)

// A judgement is a value, its quote and the verdict that it should have.
type judgement struct {
	value, quote string
	want         confidence.Verdict
}

const (
	yes  = confidence.Confirms
	open = confidence.Silent
	no   = confidence.Contradicts
)

func judge(t *testing.T, p *schema.Property, cases []judgement) {
	t.Helper()
	for _, tt := range cases {
		var value any = tt.value
		if p.Numeric() {
			value = json.Number(tt.value)
		}
		if p.Type == schema.Boolean {
			value = tt.value == "true"
		}
		value, err := p.Normalize(value)
		if err != nil {
			t.Fatalf("%s: %v", tt.value, err)
		}
		if got := confidence.Support(p, value, tt.quote); got != tt.want {
			t.Errorf("%s from %q: verdict %d, want %d", tt.value, tt.quote, got, tt.want)
		}
	}
}

// TestNumbersOfQuotes: the sign of a number and all that multiplies it belong to it.
func TestNumbersOfQuotes(t *testing.T) {
	judge(t, &schema.Property{Name: "n", Type: schema.Number}, []judgement{
		{"1500", "-1,500.00 EUR", no},
		{"-1500", "-1,500.00 EUR", yes},
		{"1500", "Loss: −1500 EUR", no},
		{"-1500", "Loss: −1500 EUR", yes},
		{"5", "RM-5.00", no},
		{"-5", "a fee of RM-5.00", yes},
		{"-5", "a fee of -$5.00", yes},
		{"19", "COVID-19 cases", yes},
		{"-19", "COVID-19 cases", no},
		{"500", "Total - 500", yes},
		{"1500", "Result: (1,500) thousand", no},
		{"1500", "Result: (1,500)", open},
		{"-1500", "Result: (1,500)", open},
		{"1500", "1,500- of it", open},
		{"-2235", "income (loss) -2,235 -6,986", yes},
		{"-6986", "-2235 -6986", yes},
		{"-2235", "-2235 -6986", yes},
		{"2235", "-2235 -6986", no},
		{"20", "10 - 20", open},
		{"1500", "1.500 EUR", yes},
		{"1.5", "1.500 EUR", yes},
		{"-1500", "-1.500 EUR", yes},
		{"1500", "-1.500 EUR", no},
		{"30", "thirty (30) days", yes},
		{"12", "12 million dollars", no},
		{"12000000", "12 million dollars", yes},
		{"1.2", "about $1.2M", no},
		{"1200000", "about $1.2M", yes},
		{"5", "a rope of 5m", yes},
		{"5000000", "a rope of 5m", open},
		{"5", "some 5 Mio. Euro", no},
		{"5000000", "some 5 Mio. Euro", yes},
		{"10", "There are 10^6 cells", no},
		{"6", "There are 10^6 cells", no},
		{"1000000", "There are 10^6 cells", yes},
		{"3", "light has 3×10^8 m/s", no},
		{"10", "light has 3×10^8 m/s", no},
		{"300000000", "light has 3×10^8 m/s", yes},
		{"300000000", "light has 3 × 10⁸ m/s", yes},
		{"0.00002", "it is 2*10^-5 of it", yes},
		{"1500", "it is 1.5e3 of it", yes},
		{"3", "it is 1.5e3 of it", no},
		{"1.5", "1½ hours", yes},
		{"-20", "10-20 items", no},
		{"10", "10-20 items", open},
		{"20", "10–20 items", open},
		{"15", "10-20 items", no},
		{"5", "5 to 7 days", open},
		{"-4", "on 2021-04-03", no},
		{"30", "at 10:30", open},
		{"0.75", "a ratio of 3/4", open},
		{"4", "a ratio of 3/4", open},
		{"5", "growth of 5%", yes},
		{"0.05", "growth of 5%", open},
		{"50", "growth of 5%", no},
		{"8", "Not 7 but 8 errors", yes},
		{"500000", "Half a million euros", yes},
		{"24", "two dozen eggs", yes},
		{"2", "two dozen eggs", no},
		{"60", "sixty days", yes},
		{"1", "one of the days", open},
		{"7", ".", no},
		{"1980", "Born in 1980.", yes},
		{"1", "1.2.3", no},
	})
}

// TestFormsInTexts: a text that is a date, an amount, an answer or a currency has the support
// of an equal one, however it is written.
func TestFormsInTexts(t *testing.T) {
	judge(t, &schema.Property{Name: "text", Type: schema.String}, []judgement{
		{"2000-08-09", "August 9, 2000", yes},
		{"2000-08-09", "dated the 9th of August 2000", yes},
		{"2000-08-10", "August 9, 2000", no},
		{"1,500 EUR", "-1,500.00 EUR", no},
		{"$1.2M", "1.2 million dollars", yes},
		{"1200", "a sum of 1,200.00", yes},
		{"5 km", "some 5 km away", yes},
		{"EUR", "€ 20", yes},
		{"EUR", "20 GBP", no},
		{"CAD", "$ 20", open},
		{"Yes", "Paid: yes", yes},
		{"Yes", "Paid: no", no},
		{"art", "a party", no},
		{"合计", "合计金额", yes},
		{"Mallory Inc", ".", no},
		{"Bob Smith hired Carol Jones in 1998", "Bob Smith hired Carol Jones in 1999", no},
		{"Bob Smith hired Carol Jones in 1999", "In 1999 Bob Smith hired Carol Jones", open},
		{"Carol Jones hired Bob Smith", "Bob Smith hired Carol Jones", no},
		{"Smith, Bob", "Bob Smith", open},
		{"Revenue rose by 12 million dollars", "Revenue fell by 12 million dollars", no},
		{"Revenue fell by 12 million dollars", "Revenue fell by 12 million dollars in May", yes},
		{"The term ends on 2021-04-03", "The term ends on April 3, 2021", open},
		{"a term of 30 days", "a term of thirty days", open},
		{"a term of 60 days", "a term of thirty days", no},
	})
}

// TestAnswers: an answer is compared with its question.
func TestAnswers(t *testing.T) {
	judge(t, &schema.Property{Name: "paid", Type: schema.Boolean}, []judgement{
		{"true", "Paid: no", no},
		{"false", "Paid: no", yes},
		{"true", "Paid: yes", yes},
		{"true", "Bezahlt: ja", yes},
		{"true", "☑", yes},
		{"true", "[x]", yes},
		{"true", ".", no},
		{"true", "it was not yet paid", no},
		{"false", "it was not yet paid", yes},
		{"true", "it was settled in cash", open},
		{"false", "it was settled in cash", open},
	})
	judge(t, &schema.Property{Name: "no_colour", Type: schema.Boolean}, []judgement{
		{"true", "no_colour: true", yes},
		{"false", "no-colour: true", no},
		{"false", "--no-colour = false", yes},
		{"true", "colour: false", yes},
		{"true", "Colour: yes", no},
	})
	judge(t, &schema.Property{Name: "unpaid", Type: schema.Boolean}, []judgement{
		{"true", "Paid: no", yes},
		{"false", "Paid: no", no},
	})
}

// TestChoices: a quote with another choice speaks against a value.
func TestChoices(t *testing.T) {
	status := &schema.Property{Name: "status", Type: schema.String, Enum: []any{"open", "overdue", "in_progress", "not paid", "paid", "other"}}
	judge(t, status, []judgement{
		{"overdue", "Status: open", no},
		{"open", "Status: open", yes},
		{"open", "it was reopened", open},
		{"in_progress", "Status: In progress", yes},
		{"overdue", "payment is late by a week", open},
		{"overdue", "...", no},
		{"overdue", "it is not open any more", open},
		{"not paid", "Status: not paid", yes},
		{"overdue", "some other matter", open},
	})
}

// TestRefuted: a name, a choice or a number that its own quote contradicts is no value; the
// wording of a text says nothing.
func TestRefuted(t *testing.T) {
	text := &schema.Property{Name: "name", Type: schema.String}
	for _, tt := range []struct {
		p     *schema.Property
		value any
		quote string
		want  bool
	}{
		{text, "Bolt GmbH", "Acme Ltd", true},
		{text, "Acme Limited", "Acme Ltd", false},
		{text, "International Business Machines", "IBM Corp", false},
		{text, "Invoice", "Rechnung", false},
		{text, "Very Good", "we liked it", false},
		{text, "Mallory Inc", ".", true},
		{text, "Иван Петров", "Ivan Petrov", false},
		{&schema.Property{Name: "s", Type: schema.String, Enum: []any{"open", "overdue"}}, "overdue", "Status: open", true},
		{&schema.Property{Name: "n", Type: schema.Number}, json.Number("12"), "12 million", true},
		{&schema.Property{Name: "n", Type: schema.Number}, json.Number("10"), "10-20 items", false},
		{&schema.Property{Name: "b", Type: schema.Boolean}, true, "Paid: no", true},
	} {
		if got := confidence.Refuted(tt.p, tt.value, tt.quote); got != tt.want {
			t.Errorf("%v from %q: refuted %t, want %t", tt.value, tt.quote, got, tt.want)
		}
	}
}

// The quote of an object is read once, and not once for each of its values: twice the object
// takes twice the memory, and not four times as much.
func TestAQuoteIsReadOnce(t *testing.T) {
	of := &schema.Property{Type: schema.Map, Items: &schema.Property{Type: schema.Union, Options: []schema.Property{{Type: schema.String}, {Type: schema.Integer}}}}
	memory := func(values int) uint64 {
		object, quote := map[string]any{}, strings.Builder{}
		for i := range values {
			object[fmt.Sprint("name", i)], object[fmt.Sprint("number", i)] = fmt.Sprint("Elm street ", i), json.Number(fmt.Sprint(1000+i))
			fmt.Fprintf(&quote, "Elm street %d has number %d.\n", i, 1000+i)
		}

		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if got := confidence.Support(of, object, quote.String()); got != yes {
			t.Fatalf("%d values: verdict %d, want %d", values, got, yes)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	memory(100) // what is made once
	if once, twice := memory(200), memory(400); twice > 3*once {
		t.Errorf("200 values take %d bytes, and 400 take %d", once, twice)
	}
}
