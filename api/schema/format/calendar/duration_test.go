package calendar_test

import (
	"testing"

	"github.com/coditect/mapreduce/api/schema/format/calendar"
)

func check(t *testing.T, name string, parse func(string) (string, bool), cases map[string]string) {
	t.Helper()
	for text, want := range cases {
		got, ok := parse(text)
		if !ok {
			got = ""
		}
		if got != want {
			t.Errorf("%s(%q) = %q; want %q", name, text, got, want)
		}
	}
}

func TestDurations(t *testing.T) {
	check(t, "ParseDuration", calendar.ParseDuration, map[string]string{
		"two (2) years":                 "P2Y",
		"a term of two\n(2) years from": "P2Y",
		"30 days":                       "P30D",
		"thirty (30) calendar days":     "P30D",
		"12-month":                      "P12M",
		"two-year term":                 "P2Y",
		"1 year and 6 months":           "P1Y6M",
		"one (1) year, six (6) months":  "P1Y6M",
		"1.5 years":                     "P1Y6M",
		"2 weeks":                       "P2W",
		"1 year 2 weeks":                "P1Y14D",
		"48 hours":                      "PT48H",
		"zwei (2) Jahre":                "P2Y",
		"drei Monate":                   "P3M",
		"deux ans":                      "P2Y",
		"treinta (30) días":             "P30D",
		"24 месяца":                     "P24M",
		"3年間":                           "P3Y",
		"6ヶ月":                           "P6M",
		"30日":                           "P30D",
		"P1Y6M":                         "P1Y6M",
		"two (3) years":                 "",
		"2 apples":                      "",
		"in 2001":                       "",
		"24 (twenty-four) months":       "P24M",
		"ninety (90) days or one hundred (100) km": "P90D",
	})
	if a, b := calendar.DurationIdentity("P12M"), calendar.DurationIdentity("P1Y"); a != b {
		t.Errorf("P12M is %s and P1Y is %s; want them equal", a, b)
	}
}

// FuzzCalendar checks that no text breaks a reader, and that what one reads it reads
// again as the same.
func FuzzCalendar(f *testing.F) {
	f.Add("18th day of April, 2001, two (2) years, € 5 Mio")
	f.Add("二〇〇一年四月十八日 3億円 P1Y 1.5 years")
	parsers := map[string]func(string) (string, bool){
		"date": calendar.ParseDate, "duration": calendar.ParseDuration, "time": calendar.ParseDateTime,
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, parse := range parsers {
			got, ok := parse(text)
			if !ok {
				continue
			}
			if again, ok := parse(got); !ok || again != got {
				t.Errorf("%s: %q is %q, and that is %q", name, text, got, again)
			}
		}
	})
}
