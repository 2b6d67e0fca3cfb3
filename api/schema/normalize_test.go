package schema_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/api/schema/hint"
)

func TestParseNumber(t *testing.T) {
	for text, want := range map[string]string{
		"9":               "9",
		"9.00":            "9",
		"60.30":           "60.3",
		"007":             "7",
		".50":             "0.5",
		"-.50":            "-0.5",
		"RM 1,234.50":     "1234.5",
		"RM1,234.50":      "1234.5",
		"12. 50":          "12.5",
		"RM .50":          "0.5",
		"$.50":            "0.5",
		"Rs.50":           "50",
		"10²":             "",
		"1½":              "",
		"-RM5.00":         "-5",
		"RM-5.00":         "-5",
		"Rs. 1,00,000.00": "100000",
		"1.234,50":        "1234.5",
		"1.234.567":       "1234567",
		"1,234,567":       "1234567",
		"1,234":           "1234",
		"0,234":           "0.234",
		"12,5":            "12.5",
		"1.234":           "1.234",
		"1 234,50 €":      "1234.5",
		"1\u202f234,50":   "1234.5",
		"1'234.50":        "1234.5",
		"$1,234":          "1234",
		"(12.00)":         "-12",
		"12.00-":          "-12",
		"−12":             "-12",
		"+3":              "3",
		"６.００":            "6",
		"53.00S":          "53",
		"9.00 SR":         "9",
		"6%":              "6",
		"1e3":             "1000",
		"-0":              "0",
		"1,2,3":           "",
		"12.01.2018":      "",
		"12/01":           "",
		"1e999":           "",
		"TOTAL 3":         "",
		"":                "",
		"RM":              "",
		"1-2":             "",
	} {
		got, ok := format.ParseNumber(text)
		if ok != (want != "") || got != want {
			t.Errorf("ParseNumber(%q) = %q, %v, want %q", text, got, ok, want)
		}
	}
}

func TestParseDate(t *testing.T) {
	for text, want := range map[string]string{
		"25/12/2018":               "2018-12-25",
		"25/12/2018 8:13:39 PM":    "2018-12-25",
		"12-01-19":                 "2019-01-12",
		"1.2.03":                   "2003-02-01",
		"3/4/71":                   "1971-04-03",
		"12 Jan 2018":              "2018-01-12",
		"12Jan2018":                "2018-01-12",
		"12-JAN-18":                "2018-01-12",
		"1st of February, 2020":    "2020-02-01",
		"JAN 12, 2018":             "2018-01-12",
		"SEPT. 3RD 2018":           "2018-09-03",
		"January 12 '18":           "2018-01-12",
		"20180112":                 "2018-01-12",
		"2018-01-12":               "2018-01-12",
		"2018/1/2":                 "2018-01-02",
		"2018-01-12T10:00:00Z":     "2018-01-12",
		"2018-Mar-02":              "2018-03-02",
		"12/25/2018":               "2018-12-25",
		"SAT 17 MAR 2018":          "2018-03-17",
		"21/01/201815:46":          "2018-01-21",
		"25 / 12 / 2018":           "2018-12-25",
		"29/02/2016":               "2016-02-29",
		"29/02/2018":               "",
		"31/04/2018":               "",
		"1.2.3.4":                  "",
		"12.34.56":                 "",
		"10.10.2.255":              "",
		"MAY 5":                    "",
		"123456789":                "",
		"MARGIN 12 2018":           "",
		"DECADE 12, 2018":          "",
		"":                         "",
		"VERSION 2 OF 12 MAY 2001": "2001-05-12",
	} {
		got, ok := calendar.ParseDate(text)
		if ok != (want != "") || got != want {
			t.Errorf("ParseDate(%q) = %q, %v, want %q", text, got, ok, want)
		}
	}
}

func TestNormalize(t *testing.T) {
	text := schema.Property{Type: schema.String}
	enum := schema.Property{Type: schema.String, Enum: []any{"Tax Invoice", "receipt"}}
	for _, tt := range []struct {
		name    string
		p       schema.Property
		in      any
		want    any
		wantErr string
	}{
		{"null", text, nil, nil, ""},
		{"white space", text, "  a \t b\r\nc ", "a b c", ""},
		{"compatibility forms", text, "ﬁle １ soft\u00adhyphen", "file 1 softhyphen", ""},
		{"raised and lowered", text, "10⁶, ﬁne １0⁻⁶ m²  of H₂O, 1½ ½", "10⁶, fine 10⁻⁶ m² of H₂O, 1½ ½", ""},
		{"empty", text, " \n", nil, "is empty"},
		{"number as text", text, json.Number("3.50"), "3.50", ""},
		{"list as text", text, []any{"a"}, nil, "a list or object where a single value belongs"},
		{"enum", enum, "TAX-INVOICE", "Tax Invoice", ""},
		{"no member", enum, "bill", nil, `"bill" is none of the allowed values`},
		{"number", schema.Property{Type: schema.Number}, "RM 9.50", json.Number("9.5"), ""},
		{"float", schema.Property{Type: schema.Number}, 60.3, json.Number("60.3"), ""},
		{"no number", schema.Property{Type: schema.Number}, "nine", nil, `"nine" is no number`},
		{"whole", schema.Property{Type: schema.Integer}, "28,591.00", json.Number("28591"), ""},
		{"not whole", schema.Property{Type: schema.Integer}, "1.5", nil, `"1.5" is no whole number`},
		{"large", schema.Property{Type: schema.Integer}, json.Number("9007199254740993"), json.Number("9007199254740993"), ""},
		{"yes", schema.Property{Type: schema.Boolean}, "Yes", true, ""},
		{"perhaps", schema.Property{Type: schema.Boolean}, "perhaps", nil, `"perhaps" is neither yes nor no`},
		{"date", schema.Property{Type: schema.String, Format: schema.Date}, "25.12.18", "2018-12-25", ""},
		{"date and time", schema.Property{Type: schema.String, Format: schema.DateTime}, "25/12/2018 8:13:39 PM", "2018-12-25T20:13:39", ""},
		{"zone", schema.Property{Type: schema.String, Format: schema.DateTime}, "2018-12-25T12:01:02.50+0800", "2018-12-25T12:01:02.5+08:00", ""},
		{"time", schema.Property{Type: schema.String, Format: schema.Time}, "12:05 am", "00:05:00", ""},
		{"email", schema.Property{Type: schema.String, Format: schema.Email}, "Ann <Ann.B@Example.ORG>", "Ann.B@example.org", ""},
		{"uri", schema.Property{Type: schema.String, Format: schema.URI}, "<HTTPS://Play0AD.com/Path>", "https://play0ad.com/Path", ""},
		{"www", schema.Property{Type: schema.String, Format: schema.URI}, "www.Example.org", "http://www.example.org", ""},
		{"no uri", schema.Property{Type: schema.String, Format: schema.URI}, "example", nil, `"example" is no absolute URI`},
		{"list", schema.Property{Type: schema.Array, Items: &text}, []any{" a", nil, "b"}, []any{"a", "b"}, ""},
		{"list of one", schema.Property{Type: schema.Array, Items: &text}, "a", []any{"a"}, ""},
		{
			"object",
			schema.Property{Type: schema.Object, Properties: []schema.Property{{Name: "n", Type: schema.Number}, {Name: "m", Type: schema.String}}},
			map[string]any{"n": "1,5", "other": 1},
			map[string]any{"n": json.Number("1.5")},
			"",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.p.Normalize(tt.in)
			msg := ""
			if err != nil {
				msg = err.Error()
			}
			if diff := cmp.Diff(tt.wantErr, msg); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnits reads numbers with units, however their digits are written.
func TestUnits(t *testing.T) {
	area := schema.Property{Type: schema.Number, Hints: hint.Hints{Units: []hint.Unit{{Name: "m2", Factor: "1"}, {Name: "km²", Factor: "1000000"}, {Name: "t CO2", Factor: "1"}}}}
	for text, want := range map[string]string{
		"25 m2": "25", "25 m²": "25", "25 km2": "25000000", "2.5 KM²": "2500000", "3 t CO₂": "3", "3 t CO2": "3", "m² 7": "7",
	} {
		if got, err := area.Normalize(text); err != nil || got != json.Number(want) {
			t.Errorf("%q is %v, %v, want %s", text, got, err, want)
		}
	}
	if got, err := area.Normalize("25 m³"); err == nil {
		t.Errorf("25 m³ is %v, want none", got)
	}
}

func TestIdentity(t *testing.T) {
	text := &schema.Property{Type: schema.String}
	list := &schema.Property{Type: schema.Array, Items: text}
	if text.Identity("INDAH Gift") != text.Identity("indah gift") {
		t.Error("strings that differ in case are not the same")
	}
	for _, same := range [][2]string{{"25 m²", "25 m2"}, {"H₂O", "h2o"}, {"10⁻⁶", "10^-6"}, {"2¹⁰", "2^10"}, {"1010₂", "1010_2"}, {"1½", "1 ½"}} {
		if a, b := text.Identity(same[0]), text.Identity(same[1]); a != b {
			t.Errorf("%q is %q, and %q is %q", same[0], a, same[1], b)
		}
	}
	for _, other := range [][2]string{{"10⁶", "106"}, {"10⁻⁶", "10-6"}, {"10₂", "10²"}, {"1½", "11⁄2"}, {"5①", "51"}} {
		if a := text.Identity(other[0]); a == text.Identity(other[1]) {
			t.Errorf("%q and %q are both %q", other[0], other[1], a)
		}
	}
	if list.Identity([]any{"a", "b"}) == list.Identity([]any{`a","b`}) {
		t.Error("different lists are the same")
	}
}

// TestIdentityOfWhatNoSchemaDescribes checks that values of any kind, and those that break their
// schema, are the same only if all that is in them is: of values that are the same, one is kept.
func TestIdentityOfWhatNoSchemaDescribes(t *testing.T) {
	free := schema.Property{Type: schema.Any}
	number := json.Number("1")
	distinct := []any{
		map[string]any{},
		map[string]any{"a": "x"},
		map[string]any{"a": "y"},
		map[string]any{"b": "x"},
		map[string]any{"a": "x", "b": "x"},
		map[string]any{"a": map[string]any{"b": number}},
		map[string]any{"a": map[string]any{"b": true}},
		map[string]any{"a": []any{map[string]any{"b": number}}},
		map[string]any{"a": []any{map[string]any{"b": "x"}}},
		[]any{map[string]any{"a": "x"}},
		[]any{map[string]any{"a": "y"}},
		"x", number, true,
	}
	for name, p := range map[string]*schema.Property{
		"any value":         &free,
		"a map of any":      {Type: schema.Map, Items: &free},
		"other types":       {Type: schema.Union, Options: []schema.Property{{Type: schema.Integer}, {Type: schema.String}}},
		"a text":            {Type: schema.String},
		"an object without": {Type: schema.Object, Properties: []schema.Property{{Name: "c", Type: schema.String}}},
	} {
		by := map[string]any{}
		for _, v := range distinct {
			id := p.Identity(v)
			if other, ok := by[id]; ok {
				t.Errorf("%s: %v and %v are both %q", name, other, v, id)
			}
			by[id] = v
		}
	}
	if a, b := free.Identity(map[string]any{"a": "Elm", "b": "x"}), free.Identity(map[string]any{"b": "X", "a": "elm"}); a != b {
		t.Errorf("objects that differ in case are %q and %q", a, b)
	}
}

// TestNumbersAgreeWithBig checks canonical numbers and their order against exact
// arithmetic.
func TestNumbersAgreeWithBig(t *testing.T) {
	number := rapid.StringMatching(`-?[0-9]{1,12}(\.[0-9]{1,6})?([eE][+-]?[0-9]{1,2})?`)
	p := &schema.Property{Type: schema.Number}
	rapid.Check(t, func(t *rapid.T) {
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		x, okX := format.ParseNumber(a)
		y, okY := format.ParseNumber(b)
		if !okX || !okY {
			t.Fatalf("no numbers: %q %q", a, b)
		}
		ratA, _ := new(big.Rat).SetString(a)
		ratX, _ := new(big.Rat).SetString(x)
		ratY, _ := new(big.Rat).SetString(y)
		if ratA.Cmp(ratX) != 0 {
			t.Fatalf("%q became %q", a, x)
		}
		if again, _ := format.ParseNumber(x); again != x {
			t.Fatalf("%q is not canonical, becomes %q", x, again)
		}
		if got, want := sign(p.Compare(json.Number(x), json.Number(y))), ratX.Cmp(ratY); got != want {
			t.Fatalf("Compare(%s, %s) = %d, want %d", x, y, got, want)
		}
	})
}

func sign(n int) int { return min(max(n, -1), 1) }

// TestDatesAgreeWithTime formats days in many ways and reads them back.
func TestDatesAgreeWithTime(t *testing.T) {
	layouts := []string{
		"2006-01-02", "2006/1/2", "20060102", "02/01/2006", "2-1-2006", "02.01.06", "2 January 2006",
		"02-Jan-06", "Jan 2, 2006", "January 02 2006", "02/01/2006 15:04", "2006-01-02T15:04:05Z07:00",
	}
	rapid.Check(t, func(t *rapid.T) {
		day := time.Date(1970, 1, 1, 13, 0, 0, 0, time.UTC).AddDate(0, 0, rapid.IntRange(0, 36_500).Draw(t, "day"))
		text := day.Format(rapid.SampledFrom(layouts).Draw(t, "layout"))
		if got, _ := calendar.ParseDate(text); got != day.Format("2006-01-02") {
			t.Fatalf("ParseDate(%q) = %q, want %s", text, got, day.Format("2006-01-02"))
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(receipt))
	f.Add([]byte(`{"type":"array","items":{"properties":{"a":{"x-coditect":{"lines":[0,-1]}}}}}`))
	f.Add([]byte("$defs: {t: {properties: {t: {$ref: '#/$defs/t'}}}}\n$ref: '#/$defs/t'"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := schema.Parse("f.yaml", data)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		again, err := schema.Parse("f.yaml", s.Canonical())
		if err != nil {
			t.Fatalf("the canonical form is refused: %v\n%s", err, s.Canonical())
		}
		if diff := cmp.Diff(s, again, ignoreUnexported); diff != "" {
			t.Errorf("the canonical form means something else:\n%s", diff)
		}
	})
}

// FuzzNormalize checks that normalised values are left alone by normalising, and
// fit.
func FuzzNormalize(f *testing.F) {
	for _, s := range []string{"RM 1,234.50", "25/12/2018 8:13 PM", "a@b.co", "WWW.x.org/ü", "12:30:15.00Z", "(3.0)"} {
		f.Add(s)
	}
	formats := []schema.Format{"", schema.Date, schema.DateTime, schema.Time, schema.Email, schema.URI}
	f.Fuzz(func(t *testing.T, text string) {
		properties := []*schema.Property{{Type: schema.Number}, {Type: schema.Integer}, {Type: schema.Boolean}}
		for _, format := range formats {
			properties = append(properties, &schema.Property{Type: schema.String, Format: format})
		}
		for _, p := range properties {
			once, err := p.Normalize(text)
			if err != nil {
				continue
			}
			twice, err := p.Normalize(once)
			if err != nil || twice != once {
				t.Errorf("%s %s: %q became %q, then %q, %v", p.Type, p.Format, text, once, twice, err)
			}
			if err := p.Fits(once); err != nil {
				t.Errorf("%s %s: %q became %q, which does not fit: %v", p.Type, p.Format, text, once, err)
			}
			if s, ok := once.(string); ok && strings.TrimSpace(s) == "" {
				t.Errorf("%s %s: %q became an empty value", p.Type, p.Format, text)
			}
		}
	})
}
