package found_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/worker/agent/model/form"
	"github.com/coditect/mapreduce/worker/agent/model/found"
)

// settled returns the quotes that the values of a record get, by field, and the fields that stay open.
func settled(t *testing.T, doc, text string, values map[string]any) (quotes map[string][]string, open []string) {
	t.Helper()
	s, err := schema.Parse("s.json", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	f, err := form.New(s)
	if err != nil {
		t.Fatal(err)
	}
	r := form.Record{Fields: make(map[string][]form.Finding)}
	for name, v := range values {
		r.Fields[name] = []form.Finding{{Value: v}}
	}
	for _, o := range found.NewText(ground.New(text)).Settle(f, []form.Record{r}) {
		open = append(open, o.Field.Key)
	}
	quotes = make(map[string][]string)
	for name, all := range r.Fields {
		if q := all[0].Quotes; q != nil {
			quotes[name] = q
		}
	}
	return quotes, open
}

const bill = `{"type":"object","properties":{"company":{"type":"string"},"date":{"type":"string","format":"date"},
	"due_date":{"type":"string","format":"date"},"total":{"type":"number"},"cash":{"type":"number"},"quantity":{"type":"integer"},
	"currency":{"enum":["MYR","USD"],"type":"string"},"paid":{"type":"boolean"},
	"seller":{"type":"object","properties":{"city":{"type":"string"},"phone":{"type":"string"}}}}}`

func TestSettle(t *testing.T) {
	n := func(s string) any { return json.Number(s) }
	for _, tt := range []struct {
		name, text string
		values     map[string]any
		quotes     map[string][]string
		open       []string
	}{
		{
			"what stands there once", "GARDENIA  Bakeries\non 25/12/2018: 60.30",
			map[string]any{"company": "Gardenia Bakeries", "date": "2018-12-25", "total": n("60.3")},
			map[string][]string{"company": {"GARDENIA  Bakeries"}, "date": {"25/12/2018"}, "total": {"60.30"}},
			nil,
		},
		{
			"a text with other marks", "27, JALAN DEDAP 13,\nTAMAN JOHOR JAYA\n81100 JOHOR",
			map[string]any{"company": "27 Jalan Dedap 13, Taman Johor Jaya, 81100 Johor"},
			map[string][]string{"company": {"27, JALAN DEDAP 13,\nTAMAN JOHOR JAYA\n81100 JOHOR"}},
			nil,
		},
		{"what does not", "GARDENIA", map[string]any{"company": "Gardenia Bakeries", "total": n("60.3")}, nil, []string{"company", "total"}},
		{
			"the one with the name of its field beside it", "TOTAL RM 60.30\nCASH 60.30\nROUNDED 60.30",
			map[string]any{"total": n("60.3"), "cash": n("60.3")},
			map[string][]string{"total": {"TOTAL RM 60.30"}, "cash": {"CASH 60.30"}},
			nil,
		},
		{"a label that says something else besides", "SUB TOTAL 60.30\nCASH TENDERED 60.30", map[string]any{"total": n("60.3"), "cash": n("60.3")}, nil, []string{"total", "cash"}},
		{"lines of values mean nothing by themselves", "RM 60.30\nRM 60.30\n", map[string]any{"total": n("60.3")}, nil, []string{"total"}},
		{"no part of a word is that", "SUBTOTAL 60.30\nCASHIER 60.30", map[string]any{"total": n("60.3"), "cash": n("60.3")}, nil, []string{"total", "cash"}},
		{"two with it are asked about", "TOTAL 60.30\nTotal: 60.30\n", map[string]any{"total": n("60.3")}, nil, []string{"total"}},
		{
			"what heads each page", "Gardenia Bakeries, page of accounts\n12.30\nGardenia Bakeries, page of accounts\n",
			map[string]any{"company": "Gardenia Bakeries"},
			map[string][]string{"company": {"Gardenia Bakeries"}},
			nil,
		},
		{
			"the line above counts if there is nothing before", "Total\n60.30\nChange\n60.30\n",
			map[string]any{"total": n("60.3")},
			map[string][]string{"total": {"Total\n60.30"}},
			nil,
		},
		{
			"the head of a column", "|total|tax|\n|---|---|\n|60.30|60.30|\n",
			map[string]any{"total": n("60.3")},
			map[string][]string{"total": {"|60.30|60.30|"}},
			nil,
		},
		{
			"a cell far below the head of its column is none", "|kind|sum|\n|---|---|\n" + strings.Repeat("|1|2|\n", 70) + "|1|total|\n|3|60.30|\n60.30\n",
			map[string]any{"total": n("60.3")},
			nil,
			[]string{"total"},
		},
		{"a row of something else", "|item|total|\n|---|---|\n|shipping|60.30|\nto be paid: 60.30\n", map[string]any{"total": n("60.3")}, nil, []string{"total"}},
		{"a date is no due date", "Delivered: 25/12/2018\nDate: 25/12/2018\n", map[string]any{"due_date": "2018-12-25"}, nil, []string{"due_date"}},
		{"short words say something else too", "TOTAL B/F 60.30\nDUE 60.30", map[string]any{"total": n("60.3")}, nil, []string{"total"}},
		{"words behind a value are its own label", "Cash\n60.30 Tax\n60.30 Cash", map[string]any{"cash": n("60.3")}, nil, []string{"cash"}},
		{"letters before a number are currencies", "RM60.30", map[string]any{"total": n("60.3")}, map[string][]string{"total": {"RM60.30"}}, nil},
		{
			"a number of two digits stands anywhere", "QUANTITY 12 of 2012",
			map[string]any{"quantity": n("12"), "total": n("12")},
			map[string][]string{"quantity": {"QUANTITY 12"}},
			[]string{"total"},
		},
		{"and so does a choice", "in USD\nCurrency: MYR", map[string]any{"currency": "MYR"}, map[string][]string{"currency": {"MYR"}}, nil},
		{"a choice without the name of its field", "in MYR", map[string]any{"currency": "MYR"}, nil, []string{"currency"}},
		{"yes and no stand nowhere", "paid: true", map[string]any{"paid": true}, nil, []string{"paid"}},
		{"below zero is asked about", "TOTAL -60.30 (60.30)", map[string]any{"total": n("-60.3"), "cash": n("60.3")}, nil, []string{"total", "cash"}},
		{"a date is no number", "25/12/2018 and 2018", map[string]any{"total": n("2018")}, nil, []string{"total"}},
	} {
		got, open := settled(t, bill, tt.text, tt.values)
		if diff := cmp.Diff(tt.open, open); diff != "" {
			t.Errorf("%s: open (-want +got):\n%s", tt.name, diff)
		}
		if tt.quotes == nil {
			tt.quotes = map[string][]string{}
		}
		if diff := cmp.Diff(tt.quotes, got); diff != "" {
			t.Errorf("%s: quotes (-want +got):\n%s", tt.name, diff)
		}
	}
}

// What is part of a longer number or code is not what a value says.
func TestPartsStandForNothing(t *testing.T) {
	for text, v := range map[string]any{
		"Ref TX300": json.Number("300"), "$300k": json.Number("300"), "Tel 555 300 1234": json.Number("300"), "Population 1 234 567": json.Number("567"),
		"300% of it": json.Number("300"), "125 million": json.Number("125"), "300:12 hours": json.Number("300"), "300½": json.Number("300"), "1.5e300": json.Number("300"),
		"Date: 25/12/2018\nModel 2018": json.Number("2018"), "Tel 030-10115-22": "10115", "Sum 51.1234": "1234", "at 1234:5678": "1234",
	} {
		field := "total"
		if _, isText := v.(string); isText {
			field = "company"
		}
		if quotes, open := settled(t, bill, text, map[string]any{field: v}); len(open) != 1 {
			t.Errorf("%v in %q: %q", v, text, quotes)
		}
	}
}

// A value that stands in the row of another record alone is not this one's, however many such it has.
func TestRowsOfOthers(t *testing.T) {
	const rows = `{"type":"array","items":{"type":"object","properties":{"swimmer":{"type":"string"},"time":{"type":"string"},"laps":{"type":"integer"},"day":{"type":"string","format":"date"}}}}`
	s, err := schema.Parse("s.json", []byte(rows))
	if err != nil {
		t.Fatal(err)
	}
	f, err := form.New(s)
	if err != nil {
		t.Fatal(err)
	}
	record := func(name, time, laps string) form.Record {
		return form.Record{Fields: map[string][]form.Finding{"swimmer": {{Value: name}}, "time": {{Value: time}}, "laps": {{Value: json.Number(laps)}}, "day": {{Value: "2018-12-25"}}}}
	}
	answers := []form.Record{record("Ann Lee", "1:59.20", "12"), record("Bea Roe", "1:59.20", "12"), record("Eve Poe", "2:05.00", "14")}
	const text = "On 25/12/2018\n\n|swimmer|time|laps|\n|---|---|---|\n|Ann Lee|1:59.20|12|\n|Bea Roe|2:01.10|13|\n|Eve Poe|2:05.00|14|\n"
	var open []string
	for _, o := range found.NewText(ground.New(text)).Settle(f, answers) {
		open = append(open, answers[o.Record].Fields["swimmer"][0].Value.(string)+" "+o.Field.Key)
		if q := answers[o.Record].Fields[o.Field.Key][o.Finding].Quotes; q != nil {
			t.Errorf("%s is asked about, and has %q", o.Field.Key, q)
		}
	}
	if diff := cmp.Diff([]string{"Bea Roe time", "Bea Roe laps"}, open); diff != "" {
		t.Errorf("open (-want +got):\n%s", diff)
	}
}

// A value that stands in a line with another one of its record belongs there.
func TestRecordsAreLines(t *testing.T) {
	const rows = `{"type":"array","items":{"type":"object","properties":{"swimmer":{"type":"string"},"time":{"type":"string"}}}}`
	s, err := schema.Parse("s.json", []byte(rows))
	if err != nil {
		t.Fatal(err)
	}
	f, err := form.New(s)
	if err != nil {
		t.Fatal(err)
	}
	answers := []form.Record{
		{Fields: map[string][]form.Finding{"swimmer": {{Value: "Ann Lee"}}, "time": {{Value: "1:59.20"}}}},
		{Fields: map[string][]form.Finding{"swimmer": {{Value: "Bea Roe"}}, "time": {{Value: "1:59.20"}}}},
	}
	if open := found.NewText(ground.New("1 Ann Lee 1:59.20\n2 Bea Roe 1:59.20\n")).Settle(f, answers); open != nil {
		t.Errorf("open: %+v", open)
	}
	for i, want := range []string{"1 Ann Lee 1:59.20", "2 Bea Roe 1:59.20"} {
		if diff := cmp.Diff([]string{want}, answers[i].Fields["time"][0].Quotes); diff != "" {
			t.Errorf("record %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestBetween(t *testing.T) {
	text := found.NewText(ground.New("The tenant shall pay\n  the rent on the first day of each month. The tenant shall pay all costs. The end of each month. " + strings.Repeat("x ", 3000) + "far away"))
	for _, tt := range []struct{ name, begin, end, want string }{
		{"all of it", "shall pay all costs", "", "shall pay all costs"},
		{"by its ends", "the rent on", "of each month.", "the rent on the first day of each month."},
		{"white space and case are of no account", "THE TENANT shall pay the rent", "FIRST day", "The tenant shall pay\n  the rent on the first day"},
		{"the nearest end", "tenant shall pay all", "each month", "tenant shall pay all costs. The end of each month"},
		{"the same at both ends", "all costs", "costs", "all costs"},
		{"several that differ", "the tenant shall pay", "month", ""},
		{"two beginnings of one end", "the", "costs.", "The tenant shall pay all costs."},
		{"no such beginning", "the landlord", "each month", ""},
		{"no such end", "the rent", "each year", ""},
		{"too far away", "the rent on", "far away", ""},
	} {
		if got := text.Between(tt.begin, tt.end); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
