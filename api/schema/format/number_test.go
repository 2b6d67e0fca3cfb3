package format_test

import (
	"testing"

	"github.com/coditect/mapreduce/api/schema/format"
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

func TestAmounts(t *testing.T) {
	check(t, "ParseNumber", format.ParseNumber, map[string]string{
		"USD 1,200.50":         "1200.5",
		"€ 5 Mio":              "5000000",
		"€ 5 Mio.":             "5000000",
		"5 Mio. €":             "5000000",
		"2,5 Mrd. EUR":         "2500000000",
		"$1.2M":                "1200000",
		"$500k":                "500000",
		"US$ 3 million":        "3000000",
		"5 million dollars":    "5000000",
		"5 million US dollars": "5000000",
		"-3 million":           "-3000000",
		"1,250 dollars":        "1250",
		"3億円":                  "300000000",
		"1.5万元":                "15000",
		"500 만원":               "5000000",
		"5m":                   "5",
		"5 kg":                 "5",
		"5%":                   "5",
		"1.200,50 €":           "1200.5",
		"CHF 1'200.50":         "1200.5",
	})
	check(t, "ParseCurrency", format.ParseCurrency, map[string]string{
		"USD 5": "USD", "5 €": "EUR", "A$5": "AUD", "5 million dollars": "USD", "RM5": "MYR", "5 kg": "", "£5": "GBP", "3億円": "",
	})
}

func TestNumberWords(t *testing.T) {
	check(t, "ParseNumberWords", format.ParseNumberWords, map[string]string{
		"five":                                 "5",
		"Twenty-One":                           "21",
		"two hundred and fifty":                "250",
		"one thousand two hundred thirty-four": "1234",
		"nineteen hundred":                     "1900",
		"three million five hundred thousand":  "3500000",
		"one hundred thousand":                 "100000",
		"a hundred":                            "",
		"thirty (30)":                          "30",
		"thirty (30) days":                     "30",
		"thirty (31)":                          "",
		"zwölf":                                "12",
		"treinta":                              "30",
		"vingt":                                "20",
		"30":                                   "30",
		"five and ten":                         "5",
		"nothing":                              "",
	})
}

// FuzzFormats checks that no text breaks a reader, and that what one reads it reads
// again as the same.
func FuzzFormats(f *testing.F) {
	f.Add("18th day of April, 2001, two (2) years, € 5 Mio")
	f.Add("二〇〇一年四月十八日 3億円 P1Y 1.5 years")
	parsers := map[string]func(string) (string, bool){
		"number": format.ParseNumber, "words": format.ParseNumberWords, "currency": format.ParseCurrency,
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
