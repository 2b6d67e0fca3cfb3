package habits_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/internal/outcome/habits"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
)

func TestSettle(t *testing.T) {
	const ambiguous = "4/5/2001"
	tests := []struct {
		name, top, hint string
		quote, found    string
		texts           map[string]calendar.OrderCount // by document; the date is in "d"
		want            any
		readings        []any
	}{
		{name: "nothing tells", quote: ambiguous, found: "2001-05-04", readings: []any{"2001-05-04", "2001-04-05"}},
		{name: "another document has a day above 12", quote: ambiguous, found: "2001-05-04", texts: map[string]calendar.OrderCount{"e": {MonthFirst: 1}}, want: "2001-04-05"},
		{name: "its own document outweighs the others", quote: ambiguous, found: "2001-05-04", texts: map[string]calendar.OrderCount{"d": {MonthFirst: 1}, "e": {DayFirst: 100}}, want: "2001-04-05"},
		{name: "both orders are in use", quote: ambiguous, found: "2001-05-04", texts: map[string]calendar.OrderCount{"e": {MonthFirst: 3, DayFirst: 8}}, readings: []any{"2001-05-04", "2001-04-05"}},
		{name: "one slip among many", quote: ambiguous, found: "2001-04-05", texts: map[string]calendar.OrderCount{"e": {MonthFirst: 1, DayFirst: 30}}, want: "2001-05-04"},
		{name: "the property states the order", hint: ", x-coditect: {date_order: mdy}", quote: ambiguous, found: "2001-05-04", texts: map[string]calendar.OrderCount{"d": {DayFirst: 9}}, want: "2001-04-05"},
		{name: "the schema states the order", top: "x-coditect: {date_order: mdy}", quote: ambiguous, found: "2001-05-04", want: "2001-04-05"},
		{name: "year first", hint: ", x-coditect: {date_order: ymd}", quote: "01/02/03", found: "2003-02-01", want: "2001-02-03"},
		{name: "locale", top: "x-coditect: {locale: en-US}", quote: ambiguous, found: "2001-05-04", want: "2001-04-05"},
		{name: "documents outweigh the locale", top: "x-coditect: {locale: en-US}", quote: ambiguous, found: "2001-05-04", texts: map[string]calendar.OrderCount{"e": {DayFirst: 1}}, want: "2001-05-04"},
		{name: "a day above 12", quote: "25/5/2001", found: "2001-05-25", want: "2001-05-25"},
		{name: "equal numbers", quote: "5/5/2001", found: "2001-05-05", want: "2001-05-05"},
		{name: "a month by its name", quote: "4 May 2001", found: "2001-05-04", want: "2001-05-04"},
		{name: "ISO", quote: "2001-05-04", found: "2001-05-04", want: "2001-05-04"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := schema.Parse("s.yaml", []byte("title: t\ntype: object\n"+tt.top+"\nproperties:\n  date: {type: string, format: date"+tt.hint+"}\n"))
			if err != nil {
				t.Fatal(err)
			}
			var orders habits.DateOrders
			for document, c := range tt.texts {
				orders.Add(document, c)
			}
			id := merge.Citation("c")
			a := merge.Accumulate(s, merge.Record{Document: "d", Values: []merge.Value{{Field: "date", Value: tt.found, Confidence: 1, Citations: []merge.Citation{id}}}})
			cited := map[merge.Citation]output.Citation{id: {Document: "d", Quote: tt.quote}}
			r := merge.Resolve(s, orders.Settle(s, a, cited))
			if diff := cmp.Diff(tt.want, r.Values["date"]); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.readings, r.Refused["date"].Readings); diff != "" {
				t.Errorf("readings (-want +got):\n%s", diff)
			}
			if got := r.Refused["date"].Value; tt.readings != nil && got != tt.quote {
				t.Errorf("the value that is not verified is %v; want it as it stands, %s", got, tt.quote)
			}
		})
	}
}

func TestCountOrders(t *testing.T) {
	for text, want := range map[string]calendar.OrderCount{
		"25/12/2018, 12/25/2018 and 3.4.2001":          {DayFirst: 1, MonthFirst: 1},
		"2018-12-25, 192.168.25.1, 1.2.3.25, 20/5":     {},
		"13-05-18 25.12.18":                            {DayFirst: 2},
		"version 13.5.2018.1 and the file 25-12-2018b": {DayFirst: 1},
	} {
		if got := calendar.CountOrders(text); got != want {
			t.Errorf("CountOrders(%q) = %+v, want %+v", text, got, want)
		}
	}
}
