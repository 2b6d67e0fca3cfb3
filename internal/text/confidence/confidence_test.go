package confidence_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/text/confidence"
	"github.com/coditect/mapreduce/internal/text/ground"
)

const fields = `
properties:
  name: {type: string}
  total: {type: number, x-coditect: {labels: [TOTAL]}}
  date: {type: string, format: date}
  mail: {type: string, format: email}
  kind: {type: string, enum: [invoice, receipt]}
  licence: {type: string, x-coditect: {values: {MIT: [Permission is hereby granted]}}}
  paid: {type: boolean}
  tags: {type: array, items: {type: string}}
  who: {type: object, properties: {first: {type: string}, last: {type: string}}}
`

func property(t testing.TB, name string) *schema.Property {
	t.Helper()
	s, err := schema.Parse("s.yaml", []byte(fields))
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Properties {
		if s.Properties[i].Name == name {
			return &s.Properties[i]
		}
	}
	t.Fatalf("no field %s", name)
	return nil
}

func TestSupport(t *testing.T) {
	for _, tt := range []struct {
		field string
		value any
		quote string
		want  confidence.Verdict
	}{
		{"name", "Indah Gift", "INDAH  GIFT & HOME", yes},
		{"name", "Gift of Indah", "INDAH GIFT & HOME", open},
		{"name", "Acme Corporation", "INDAH GIFT & HOME", no},
		{"total", json.Number("60.3"), "RM 60.30", yes},
		{"total", json.Number("60.3"), "TOTAL 1 60.30", yes},
		{"total", json.Number("1234.5"), "in all 1,234.50 EUR", yes},
		{"total", json.Number("60.3"), "RM 6.30", no},
		{"total", json.Number("60.3"), "sixty", no},
		{"total", json.Number("2500"), "2 500.00", yes},
		{"total", json.Number("2500"), "2\n500.00", no},
		{"total", json.Number("2500"), "2\t500.00", no},
		{"total", json.Number("500"), "2\n500.00", yes},
		{"total", json.Number("102"), "10²", no},
		{"total", json.Number("10"), "10² or so", no},
		{"total", json.Number("1"), "1½ hours", no},
		{"total", json.Number("1.5"), "1.5e6 hours", no},
		{"total", json.Number("100"), "1O0", no},
		{"total", json.Number("1000"), "10,00", no},
		{"total", json.Number("50"), "$.50", no},
		{"total", json.Number("0.5"), "sold at $.50 each", yes},
		{"total", json.Number("50"), "Total....50 or so", yes},
		{"total", json.Number("50"), "Rs.50", yes},
		{"date", "2018-12-25", "25/12/2018 8:13:39 PM", yes},
		{"date", "2018-12-25", "on 25 December 2018, at noon", yes},
		{"date", "2018-12-25", "26/12/2018", no},
		{"mail", "a@example.org", "write to a@EXAMPLE.org", yes},
		{"mail", "a@example.org", "write to b@other.com", no},
		{"kind", "invoice", "Tax Invoice", yes},
		{"kind", "invoice", "please pay at once", open},
		{"licence", "MIT", "Permission is hereby granted, free", yes},
		{"paid", true, "it was settled in cash", open},
		{"tags", []any{"a", "b"}, "a and b", yes},
		{"tags", []any{"alpha", "zulu"}, "alpha", no},
		{"who", map[string]any{"first": "Ada", "last": "Lovelace"}, "Ada Lovelace", yes},
		{"who", map[string]any{"first": "Ada", "last": "Byron"}, "Ada Lovelace", no},
	} {
		p := property(t, tt.field)
		value, err := p.Normalize(tt.value)
		if err != nil {
			t.Fatal(err)
		}
		if got := confidence.Support(p, value, tt.quote); got != tt.want {
			t.Errorf("%s: %v from %q: verdict %d, want %d", tt.field, tt.value, tt.quote, got, tt.want)
		}
	}
}

// TestOrder: better evidence is never worth less.
func TestOrder(t *testing.T) {
	total := property(t, "total")
	sure := func(change func(*confidence.Evidence)) float64 {
		e := confidence.Evidence{Property: total, Value: json.Number("5"), Quote: "5", Grade: ground.Exact, Before: "TOTAL "}
		change(&e)
		return confidence.Of(e)
	}
	falling := []float64{
		1,
		sure(func(*confidence.Evidence) {}),
		sure(func(e *confidence.Evidence) { e.Grade = ground.Normalised }),
		sure(func(e *confidence.Evidence) { e.Grade = ground.Fuzzy }),
		sure(func(e *confidence.Evidence) { e.Grade, e.Before = ground.Fuzzy, "" }),
		sure(func(e *confidence.Evidence) { e.Quote = "6" }),
		sure(func(e *confidence.Evidence) { e.Quote, e.Grade = "6", ground.Fuzzy }),
		sure(func(e *confidence.Evidence) { e.Grade = "" }),
	}
	for i := 1; i < len(falling); i++ {
		if falling[i] >= falling[i-1] {
			t.Errorf("evidence %d is worth %v, the better one before it %v", i, falling[i], falling[i-1])
		}
	}
	if last := falling[len(falling)-1]; last != 0 {
		t.Errorf("a value whose quote was not found is worth %v", last)
	}
}

func TestAgreementProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.Int64Range(1, 20).Draw(t, "of")
		found := rapid.Int64Range(1, of).Draw(t, "found")
		a := confidence.Agreement(found, of)
		if a <= 0 || a > 1.15 || confidence.Agreed(1, found, of) > 0.99 {
			t.Fatalf("agreement(%d, %d) = %v", found, of, a)
		}
		if more := confidence.Agreement(found+1, of+1); more <= a {
			t.Fatalf("another reading that agrees lowers %v to %v", a, more)
		}
		if less := confidence.Agreement(found, of+1); less >= a {
			t.Fatalf("another reading that does not agree raises %v to %v", a, less)
		}
	})
}

func TestBefore(t *testing.T) {
	text := "first\nTOTAL\nRM 5.00\n"
	if got := confidence.Before(text, strings.Index(text, "5.00")); got != "TOTAL\nRM " {
		t.Errorf("before the value: %q", got)
	}
	if got := confidence.Before("é"+strings.Repeat("x", 119)+"5", 121); got != strings.Repeat("x", 119) {
		t.Errorf("before the value: %q", got)
	}
}

func FuzzOf(f *testing.F) {
	f.Add("total", "60.30", "RM 60.30", "TOTAL ")
	f.Add("date", "25/12/2018", "on 25/12/2018", "")
	f.Fuzz(func(t *testing.T, field, value, quote, before string) {
		s, err := schema.Parse("s.yaml", []byte(fields))
		if err != nil {
			t.Fatal(err)
		}
		p := s.Field(field)
		if p == nil {
			return
		}
		v, err := p.Normalize(value)
		if err != nil || v == nil {
			return
		}
		e := confidence.Evidence{Property: p, Value: v, Quote: quote, Grade: ground.Exact, Before: before}
		if c := confidence.Of(e); !(c > 0 && c <= 1) {
			t.Errorf("confidence %v", c)
		}
	})
}
