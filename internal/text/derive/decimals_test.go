package derive_test

import (
	"testing"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/text/derive"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		property string
		want     int
		ok       bool
	}{
		{`{"type": "integer"}`, 0, true},
		{`{"type": "number", "multipleOf": 0.01}`, 2, true},
		{`{"type": "number", "multipleOf": 0.25}`, 2, true},
		{`{"type": "number", "multipleOf": 5}`, 0, true},
		{`{"type": "number", "minimum": 0.01}`, 0, false},
		{`{"type": "string"}`, 0, false},
	} {
		s, err := schema.Parse("schema", []byte(`{"title": "t", "type": "object", "properties": {"x": `+c.property+`}}`))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := derive.DecimalsOf(&s.Properties[0]); got != c.want || ok != c.ok {
			t.Errorf("%s: %d, %t; want %d, %t", c.property, got, ok, c.want, c.ok)
		}
	}
}

func TestIn(t *testing.T) {
	for _, c := range []struct {
		number, text string
		want         int
		ok           bool
	}{
		{"262.9", "262.90", 2, true},
		{"-233.47", "-233,47", 2, true},
		{"1234.5", "1.234,50 €", 2, true},
		{"1234", "1,234", 0, true},
		{"1234", "CHF 1'234.00", 2, true},
		{"1.234", "1.234", 3, true},
		{"160", "160.00 €", 2, true},
		{"0", "0.00", 2, true},
		{"12", "7 of 12", 0, true},
		{"12000000", "12 million", 0, false},
		{"1.5", "15", 0, false},
		{"10", "100", 0, false},
		{"7", "", 0, false},
	} {
		if got, ok := derive.DecimalsIn(c.number, c.text); got != c.want || ok != c.ok {
			t.Errorf("%s in %q: %d, %t; want %d, %t", c.number, c.text, got, ok, c.want, c.ok)
		}
	}
}

func TestPaddedAndRounded(t *testing.T) {
	for _, c := range []struct {
		number          string
		n               int
		padded, rounded string
	}{
		{"262.9", 2, "262.90", "262.9"},
		{"487.00363636363636", 2, "487.00363636363636", "487"},
		{"421.786", 2, "421.786", "421.79"},
		{"-0.001", 2, "-0.001", "0"},
		{"496", 2, "496.00", "496"},
		{"496", 0, "496", "496"},
		{"1000.4", 0, "1000.4", "1000"},
	} {
		if got := derive.Padded(c.number, c.n); got != c.padded {
			t.Errorf("%s with %d decimals: %s, want %s", c.number, c.n, got, c.padded)
		}
		if got := derive.Rounded(c.number, c.n); got != c.rounded {
			t.Errorf("%s rounded to %d decimals: %s, want %s", c.number, c.n, got, c.rounded)
		}
	}
}
