package rules_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/text/rules"
)

const everyHint = `
properties:
  total: {type: number, x-coditect: {labels: [TOTAL, GRAND TOTAL, a]}}
  amounts: {type: array, items: {type: number}, x-coditect: {labels: [TOTAL]}}
  doc_no: {type: string, x-coditect: {labels: [NO, a, DOC NO]}}
  date: {type: string, format: date, x-coditect: {labels: [DATE, TOTAL]}}
  at: {type: string, format: date-time}
  time: {type: array, items: {type: string, format: time}}
  mail: {type: array, items: {type: string, format: email}}
  home: {type: array, items: {type: string, format: uri}}
  paid: {type: boolean, x-coditect: {labels: [TOTAL]}}
  kind: {enum: [total a, a total, total]}
  licence: {type: string, x-coditect: {values: {x: [total total total total], y: [a a a a a a a a]}}}
  shop: {type: string, x-coditect: {lines: [0, 3], pattern: '(?i)^.*(sdn|bhd|enterprise).*$'}}
  words: {type: array, items: {type: string}, x-coditect: {pattern: '\w+'}}
  pair: {type: array, items: {type: string}, x-coditect: {pattern: ['(a) (a)', '(\d) (\d)']}}
  behind: {type: number, x-coditect: {after: total, number_words: true}}
  front: {type: string, x-coditect: {before: total, exclude: [a], replace: {a: aa}}}
  middle: {type: string, x-coditect: {between: [total, a]}}
  law: {type: string, x-coditect: {within: {section: total}}}
  price: {type: array, items: {type: number}, x-coditect: {within: {column: total}}}
  row: {type: array, items: {type: string}, x-coditect: {within: {row: [total, a]}}}
  start: {type: string, format: date, x-coditect: {within: {chars: [-900]}}}
  term: {type: array, items: {type: string, format: duration}}
  money: {type: array, items: {type: string, format: currency}}
  weight: {type: array, items: {type: number}, x-coditect: {units: [a, total, '%'], number_words: true}}
  rows: {type: array, items: {required: [total], properties: {total: {type: number}, no: {}}}}
`

// TestManyFieldsAtOneLabel: a schema of a thousand fields that all stand at one label makes
// no more of a document than its largest record may take.
func TestManyFieldsAtOneLabel(t *testing.T) {
	var schema strings.Builder
	schema.WriteString("type: object\nproperties:\n")
	for i := range 1000 {
		fmt.Fprintf(&schema, "  p%d: {type: string, x-coditect: {labels: [ORDER]}}\n", i)
	}
	out := extractAll(t, compile(t, schema.String()), rules.Document("ORDER: "+strings.Repeat("a", 20_000)))
	total := 0
	for _, f := range out.Records[0].Found {
		total += len(f.Quote)
	}
	if total == 0 || total > 4<<20 {
		t.Errorf("the values have %d bytes together, want some, and at most %d", total, 4<<20)
	}
}

// TestTextsThatCostMuch runs on texts that make careless matching quadratic: it would not
// end in time.
func TestTextsThatCostMuch(t *testing.T) {
	testenv.Lengthy(t)

	const size = 32 << 10
	programs := map[string]*rules.Program{
		"record":  compile(t, everyHint),
		"records": compile(t, "type: array\nitems:\n"+strings.ReplaceAll(everyHint, "\n", "\n  ")),
	}
	for name, unit := range map[string]string{
		"labels":             "total ",
		"labels with colons": "total: ",
		"a label a line":     "total\n",
		"colons below":       "total:\n:\n",
		"single letters":     "a ",
		"joined labels":      "total.",
		"paragraphs":         "total: 1\n\n",
		"digits":             "1",
		"numbers":            "1 ",
		"points":             "1.",
		"thousands":          "234 ",
		"narrow thousands":   "234\u202f",
		"dates":              "1/1/20",
		"times":              "1:1:1",
		"colons":             ":",
		"addresses":          "a@a.",
		"schemes":            "://",
		"hosts":              "www.",
		"parentheses":        "(",
		"labels in brackets": "total ((",
		"spaces":             " ",
		"label and spaces":   "total" + strings.Repeat(" ", 500),
		"lines":              "\n",
		"dashes":             "-",
		"nothing":            "\x00",
		"invalid":            "\xff\xfe",
		"marks":              "e\u0301\u0301",
		"wide":               "合計",
		"months":             "may ",
		"quotes":             "'1'",
		"bars":               "| total | a |\n",
		"rows":               "total,a\n",
		"tabs":               "total\ta\t",
		"short rows":         strings.Repeat("total\t", 49) + "total\n" + strings.Repeat(strings.Repeat("1\t", 48)+"1\n", 50),
		"number words":       "one hundred and ",
		"numbers in words":   "1 one ",
		"durations":          "1 year and ",
		"amounts":            "$1 mio ",
		"headings":           "# total\n",
		"numbered headings":  "1. Total. a\n\n",
		"articles":           "ARTICLE I\n",
		"han digits":         "二〇年",
		"days":               "first of ",
		"header":             "Date: a\n b\n",
		"quoted cells":       "\"a,\"",
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Repeat(unit, size/len(unit))
			for _, p := range programs {
				checkQuotes(t, text, extractAll(t, p, rules.Document(text)))
			}
		})
	}
	t.Run("labels before blank lines", func(t *testing.T) {
		text := strings.Repeat("total ", size/12) + strings.Repeat("\n", size/2)
		for _, p := range programs {
			checkQuotes(t, text, extractAll(t, p, rules.Document(text)))
		}
	})
}

// FuzzExtract checks that no text and no placement of the core breaks anything.
func FuzzExtract(f *testing.F) {
	f.Add("TOTAL: RM 9.00\nDATE 25/12/2018 8:13 PM\na@b.co www.x.org", 0, 99)
	f.Add("Name: Ann\n\nTotal (\n-1.", 3, 9)
	f.Add("\xf0合計：1", 1, 5)
	record := compile(f, everyHint)
	records := compile(f, "type: array\nitems:\n"+strings.ReplaceAll(everyHint, "\n", "\n  "))
	f.Fuzz(func(t *testing.T, text string, start, end int) {
		start = min(max(start, 0), len(text))
		end = min(max(end, start), len(text))
		for _, u := range []rules.Unit{rules.Document(text), {Text: text, CoreStart: start, CoreEnd: end, Last: true}} {
			out := extractAll(t, record, u)
			checkQuotes(t, text, out)
			for _, found := range out.Records[0].Found {
				if found.Field != "rows" && (found.Start < u.CoreStart || found.Start >= u.CoreEnd) {
					t.Errorf("%s at %d is outside of the core [%d, %d)", found.Field, found.Start, u.CoreStart, u.CoreEnd)
				}
			}
			checkQuotes(t, text, extractAll(t, records, u))
		}
	})
}

// FuzzSchema checks that every schema that is taken is matched against a text in bounded
// time, or refused, and finds nothing that is not there.
func FuzzSchema(f *testing.F) {
	f.Add([]byte(everyHint), "TOTAL: RM 9.00\nDATE 25/12/2018 8:13 PM\na@b.co www.x.org")
	f.Add([]byte("type: array\nitems:\n"+strings.ReplaceAll(everyHint, "\n", "\n  ")), "total a\n\na total: 1")
	f.Add([]byte("properties: {a: {type: string, x-coditect: {pattern: '"+strings.Repeat("(a?)", 300)+"'}}}"), strings.Repeat("a", 300))
	f.Add([]byte("properties: {a: {type: string, x-coditect: {pattern: '((a{0,30}){0,30})*'}}}"), strings.Repeat("ab", 300))
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		s, err := schema.Parse("f.yaml", data)
		if err != nil {
			return
		}
		p, err := rules.Compile(s)
		if err != nil {
			return
		}
		began, text := time.Now(), text[:min(len(text), 4<<10)]
		out, err := p.Extract(rules.Document(text), func() error {
			if time.Since(began) > slowest {
				return errSlow
			}
			return nil
		})
		if errors.Is(err, errSlow) || time.Since(began) > 2*slowest {
			t.Fatalf("%d bytes of schema took more than %s on %d bytes of text", len(data), slowest, len(text))
		}
		checkQuotes(t, text, out)
	})
}

// slowest is what no schema may take on four kilobytes of text, on a machine with much else
// to do.
const slowest = 10 * time.Second

var errSlow = errors.New("it takes too long")

func BenchmarkExtract(b *testing.B) {
	const receipt = "ACME ENTERPRISE\nNO 5, JALAN SAGU\nDOC NO: TD0116\nDATE: 25/12/2018 8:13:39 PM\nKF MODELLING CLAY\n1 PC\n9.00\nTOTAL (RM):\n9.00\nCASH\n10.00\nTHANK YOU, SEE WWW.ACME.COM\n"
	p := compile(b, `
properties:
  company: {type: string, x-coditect: {lines: [0, 3], pattern: '(?i)^.*(sdn|bhd|enterprise).*$'}}
  date: {type: string, format: date, x-coditect: {labels: [DATE]}}
  doc_no: {type: string, x-coditect: {labels: [INVOICE NO, DOC NO]}}
  total: {type: number, x-coditect: {labels: [TOTAL, GRAND TOTAL, NET TOTAL], pick: max}}
  home: {type: string, format: uri}
`)
	for name, text := range map[string]string{
		"receipt":      receipt,
		"50000 tokens": strings.Repeat(receipt, 200_000/len(receipt)),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				extractAll(b, p, rules.Document(text))
			}
		})
	}
}
