package calendar_test

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/schema/format/calendar"
)

func TestDatesWrittenOut(t *testing.T) {
	for text, want := range map[string]string{
		"18th day of April, 2001":              "2001-04-18",
		"this 18th\nday of April, 2001":        "2001-04-18",
		"the 3rd day of\r\nMay 1999":           "1999-05-03",
		"the eighteenth day of April, 2001":    "2001-04-18",
		"Twenty-First day of March 2010":       "2010-03-21",
		"April\n18, 2001":                      "2001-04-18",
		"April 18,\n2001":                      "2001-04-18",
		"Apr. 18th, 2001":                      "2001-04-18",
		"18. März 2001":                        "2001-03-18",
		"am 1. Jänner 2020":                    "2020-01-01",
		"1er mai 2001":                         "2001-05-01",
		"le 18 août 2001":                      "2001-08-18",
		"18 de abril de 2001":                  "2001-04-18",
		"1º de março de 2001":                  "2001-03-01",
		"18 aprile 2001":                       "2001-04-18",
		"18 mei 2001":                          "2001-05-18",
		"den 18 maj 2001":                      "2001-05-18",
		"18. desember 2001":                    "2001-12-18",
		"18 kwietnia 2001 r.":                  "2001-04-18",
		"18. dubna 2001":                       "2001-04-18",
		"18 апреля 2001 г.":                    "2001-04-18",
		"18 Ağustos 2001":                      "2001-08-18",
		"2001. április 18.":                    "2001-04-18",
		"2001年4月18日":                           "2001-04-18",
		"２００１年４月１８日":                           "2001-04-18",
		"平成13年4月18日":                           "2001-04-18",
		"令和元年5月1日":                             "2019-05-01",
		"二〇〇一年四月十八日":                           "2001-04-18",
		"二○二一年十二月三十一日":                         "2021-12-31",
		"2001년 4월 18일":                         "2001-04-18",
		"日付：2001年4月18日":                        "2001-04-18",
		"25 Dec 2018":                          "2018-12-25",
		"DEC 25, 2018":                         "2018-12-25",
		"25-12-18":                             "2018-12-25",
		"31 April 2001":                        "",
		"out 25, 2018":                         "",
		"two thousand and one":                 "",
		"2001年13月1日":                           "",
		"second day of the month":              "",
		"dated as of 7\nDecember 2010":         "2010-12-07",
		"as of 19 June\n1998 (the":             "1998-06-19",
		"5 June\n1200 boxes":                   "",
		"5\nDec 2001 sales":                    "",
		"the party of the first part, 2001, x": "",
	} {
		if got, _ := calendar.ParseDate(text); got != want {
			t.Errorf("ParseDate(%q) = %q; want %q", text, got, want)
		}
	}
}

// A zone is Z, or hours and minutes with or without a colon, and nothing behind it is lost.
func TestTimesWithZones(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"15:46", "15:46:00"},
		{"15:46Z", "15:46:00Z"},
		{"15:46+0800", "15:46:00+08:00"},
		{"15:46:09-0330", "15:46:09-03:30"},
		{"15:46+08:00", "15:46:00+08:00"},
		{" 3:46 PM ", "15:46:00"},
		{"15:46+08:0", ""},
		{"15:46+0:800", ""},
		{"15:46+08000", ""},
		{"15:46+1500", ""},
		{"15:46+08:00 today", ""},
	} {
		if got, ok := calendar.ParseTime(test.text); got != test.want || ok != (test.want != "") {
			t.Errorf("%q: got %q, %t; want %q", test.text, got, ok, test.want)
		}
	}
}

func FuzzParseTime(f *testing.F) {
	for _, s := range []string{"15:46+0800", "2001-04-18T15:46:09.5-03:30", "3:46 PM", "24:00Z", "1:2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if iso, ok := calendar.ParseTime(s); ok && !strings.Contains(iso, ":") {
			t.Errorf("%q became %q", s, iso)
		}
		if iso, ok := calendar.ParseDateTime(s); ok && !strings.Contains(iso, "T") {
			t.Errorf("%q became %q", s, iso)
		}
	})
}

// The end of a period is no date of the day on which it begins.
func TestPeriodsAreNoDates(t *testing.T) {
	for text, want := range map[string]string{
		"March 26 - April 10, 2019":  "2019-04-10",
		"26 - April 10, 2019":        "2019-04-10",
		"from 3 – May 12, 2020":      "2020-05-12",
		"18 April 01, 2019 was warm": "2019-04-01",
		"18 April 2001, 2019":        "2001-04-18",
		"18 Apr 01":                  "2001-04-18",
		"18-Apr-01, 12 items":        "2001-04-18",
	} {
		if got, _ := calendar.ParseDate(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
