package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/hint"
	"github.com/coditect/mapreduce/api/schema/judge"
	"github.com/coditect/mapreduce/api/schema/source"
	"github.com/coditect/mapreduce/api/schema/validator"
)

const receipt = `title: receipt
type: object
required: [company, total]
properties:
  invoice_number: {type: string, x-coditect: {labels: ["INVOICE NO", "DOC NO"]}}
  company: {type: string, description: Name of the shop, x-coditect: {lines: [0, 3], pattern: '(?i)^.*(sdn|bhd|enterprise).*$'}}
  date:    {type: string, format: date, description: Date of purchase, x-coditect: {labels: [DATE, "INVOICE DATE"]}}
  total:   {type: number, description: Amount paid, x-coditect: {labels: [TOTAL, "GRAND TOTAL"], pick: max, merge: vote}}
x-coditect:
  key: [invoice_number]     # same key = same entity
`

var ignoreUnexported = cmpopts.IgnoreUnexported(schema.Schema{})

func parse(t *testing.T, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Parse("s.yaml", []byte(text))
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return s
}

func TestParseReceipt(t *testing.T) {
	got := parse(t, receipt)
	want := &schema.Schema{
		Title: "receipt",
		Kind:  schema.KindRecord,
		Key:   []string{"invoice_number"},
		Properties: []schema.Property{
			{Name: "invoice_number", Type: schema.String, Hints: hint.Hints{Labels: []string{"INVOICE NO", "DOC NO"}}},
			{
				Name: "company", Type: schema.String, Description: "Name of the shop", Required: true,
				Hints: hint.Hints{Lines: &hint.Lines{From: 0, To: 3}, Patterns: []string{"(?i)^.*(sdn|bhd|enterprise).*$"}},
			},
			{
				Name: "date", Type: schema.String, Format: schema.Date, Description: "Date of purchase",
				Hints: hint.Hints{Labels: []string{"DATE", "INVOICE DATE"}},
			},
			{
				Name: "total", Type: schema.Number, Description: "Amount paid", Required: true,
				Hints: hint.Hints{Labels: []string{"TOTAL", "GRAND TOTAL"}, Pick: hint.PickMax, Merge: hint.MergeVote},
			},
		},
	}
	if diff := cmp.Diff(want, got, ignoreUnexported); diff != "" {
		t.Errorf("schema (-want +got):\n%s", diff)
	}
}

func TestCanonicalRoundTrip(t *testing.T) {
	for name, text := range map[string]string{
		"receipt":  receipt,
		"list":     "type: array\nitems: {type: object, properties: {b: {type: integer, minimum: 0x10}, a: {enum: [Yes, 'no', null]}}}",
		"single":   "properties: {n: {type: number, x-coditect: {merge: sum}}}\nx-coditect: {key: []}",
		"refs":     `{"$defs":{"m":{"type":"number","description":"\ud83d\ude00 <b>"}},"properties":{"p":{"$ref":"#/$defs/m"},"q":{"anyOf":[{"$ref":"#/$defs/m"},{"type":"null"}]}}}`,
		"lines":    "properties: {a: {x-coditect: {lines: [-3]}}, b: {x-coditect: {lines: 2}}, c: {x-coditect: {lines: -1}}, d: {x-coditect: {lines: [-4, 0]}}}",
		"values":   "properties: {z: {x-coditect: {values: {MIT: [mit license], Apache-2.0: apache license}, pick: longest}}}",
		"timelike": "properties: {z: {default: 2018-01-01, minLength: 1_000}}",
	} {
		t.Run(name, func(t *testing.T) {
			first := parse(t, text)
			second := parse(t, string(first.Canonical()))
			if diff := cmp.Diff(first, second, ignoreUnexported); diff != "" {
				t.Errorf("schema (-first +second):\n%s", diff)
			}
			if diff := cmp.Diff(string(first.Canonical()), string(second.Canonical())); diff != "" {
				t.Errorf("canonical (-first +second):\n%s", diff)
			}
		})
	}
}

func TestCanonicalIgnoresOrderOfKeywords(t *testing.T) {
	a := parse(t, "title: x\ntype: object\nproperties: {values: {type: string, title: t}}")
	b := parse(t, `{"properties": {"values": {"title": "t", "type": "string"}}, "type": "object", "title": "x"}`)
	if got, want := string(b.Canonical()), string(a.Canonical()); got != want {
		t.Errorf("canonical forms differ:\n%s\n%s", got, want)
	}
}

func TestNestedAndReferenced(t *testing.T) {
	s := parse(t, `
$defs:
  money: {type: number, title: Money}
properties:
  seller:
    type: object
    required: [name]
    properties:
      name: {type: string}
      paid: {$ref: '#/$defs/money', title: Paid}
  tags: {type: array, items: {type: string}}
  note: {anyOf: [{type: string}, {type: 'null'}]}
  count: {type: [integer, 'null']}
  lines:
    type: array
    items: {type: object, properties: {sku: {}}}
`)
	type field struct {
		Path     string
		Type     schema.Type
		Title    string
		Nullable bool
		Merge    hint.Merge
	}
	var got []field
	for _, f := range s.Fields() {
		p := f.Property
		got = append(got, field{f.Path, p.Type, p.Title, p.Nullable, p.Merge()})
	}
	want := []field{
		{"seller.name", schema.String, "", false, hint.MergeVote},
		{"seller.paid", schema.Number, "Paid", false, hint.MergeVote},
		{"tags", schema.Array, "", false, hint.MergeUnion},
		{"note", schema.String, "", true, hint.MergeVote},
		{"count", schema.Integer, "", true, hint.MergeVote},
		{"lines", schema.Array, "", false, hint.MergeUnion},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	values := map[string]any{"seller.name": "A", "tags": []any{"x"}}
	record := s.Nest(values)
	wantRecord := map[string]any{
		"seller": map[string]any{"name": "A", "paid": nil},
		"tags":   []any{"x"}, "note": nil, "count": nil, "lines": nil,
	}
	if diff := cmp.Diff(wantRecord, record); diff != "" {
		t.Errorf("Nest (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(values, s.Flatten(record)); diff != "" {
		t.Errorf("Flatten (-want +got):\n%s", diff)
	}
}

func TestEntities(t *testing.T) {
	for text, want := range map[string]schema.Entities{
		"properties: {a: {}}":                             schema.PerDocument,
		"properties: {a: {}}\nx-coditect: {key: [a]}":     schema.ByKey,
		"properties: {a: {}}\nx-coditect: {key: []}":      schema.Single,
		"properties: {a: {}}\nx-coditect: {}":             schema.PerDocument,
		"{\"properties\":{\"a\":{}},\"x-coditect\":null}": schema.PerDocument,
	} {
		if got := parse(t, text).Entities(); got != want {
			t.Errorf("Entities of %q = %v, want %v", text, got, want)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"empty", " \n", []string{"s.yaml: the schema is empty"}},
		{"comment only", "# nothing\n", []string{"s.yaml: the schema is empty"}},
		{"not UTF-8", "title: \xff", []string{"s.yaml: not valid UTF-8"}},
		{"a list", "- a", []string{"s.yaml:1:1: a schema must be a mapping, not a list"}},
		{"a word", "receipt", []string{"s.yaml:1:1: a schema must be a mapping, not a string"}},
		{"syntax", "type: object\nproperties: {a: {", []string{"s.yaml:2:1: a value is missing, or stands outside of its brackets"}},
		{"two documents", "properties: {a: {}}\n---\nb: 1", []string{"s.yaml:2:1: more than one YAML document"}},
		{"only null", `{"type":"object","properties":{"a":{"allOf":[{"type":"string"},{"type":"integer"}]}}}`, []string{"s.yaml:1:1: nothing but null is allowed in any of its properties, so there is nothing to extract"}},
		{"no type", `{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"type":"integer"}]}`, []string{"s.yaml:1:1: type: no value fits: what the schema asks for excludes every type"}},
		{"no properties", "type: object\nadditionalProperties: false", []string{"s.yaml:1:1: there are no properties, so there is nothing to extract"}},
		{"root type", "type: string", []string{"s.yaml:1:1: type: the type of a schema must be object or array, not string"}},
		{
			"unknown type", "properties:\n  a: {type: strin}\n  b: {type: number}",
			[]string{"s.yaml:2:13: properties.a.type: unknown type \"strin\"; known are string, number, integer, boolean, array, object"},
		},
		{
			"duplicate key", "properties:\n  a: {type: string}\n  b: {}\n  a: {type: number}",
			[]string{"s.yaml:4:3: properties.a: key already given in line 2"},
		},
		{
			"duplicate key in JSON", "{\"properties\": {\n  \"a\": {},\n\t\"é\": 1, \"a\": {}}}",
			[]string{
				"s.yaml:3:7: properties.é: a schema must be a mapping, not a number",
				"s.yaml:3:10: properties.a: key already given in line 2",
			},
		},
		{
			"unknown hints, at once", "properties:\n  a:\n    x-coditect: {lable: [A], pick: best}\n  b: {x-coditect: {pattern: '(', merge: sum}}\nx-coditect: {keys: [a]}",
			[]string{
				"s.yaml:3:18: properties.a.x-coditect.lable: unknown hint \"lable\"; known are labels, pattern, lines, within, after, before, between, values, exclude, replace, number_words, units, date_order, otherwise, pick, merge, given, join, write, quoted, select, derived",
				"s.yaml:3:36: properties.a.x-coditect.pick: unknown pick \"best\"; known are first, last, max, min, longest, all",
				"s.yaml:4:29: properties.b.x-coditect.pattern: missing closing ): `(`",
				"s.yaml:4:41: properties.b.x-coditect.merge: merge sum does not fit b, which is of type string",
				"s.yaml:5:14: x-coditect.keys: unknown hint \"keys\" at the top of a schema; known are key, match, date_order and locale",
			},
		},
		{
			"unknown match", "properties: {a: {}}\nx-coditect: {key: [a], match: fuzzy}",
			[]string{"s.yaml:2:31: x-coditect.match: must be exact or near, not fuzzy"},
		},
		{
			"match without a key", "properties: {a: {}}\nx-coditect: {match: near}",
			[]string{"s.yaml:2:14: x-coditect.match: says how keys are compared, but the schema has no key"},
		},
		{
			"unknown merge", "properties: {a: {x-coditect: {merge: best}}}",
			[]string{"s.yaml:1:38: properties.a.x-coditect.merge: unknown merge \"best\"; known are concat, first, highest_confidence, latest, longest, max, min, sum, union, vote"},
		},
		{
			"merge unfit", "properties:\n  a: {type: boolean, x-coditect: {merge: max}}\n  b: {type: string, x-coditect: {merge: union}}\n  c: {type: number, x-coditect: {merge: concat}}",
			[]string{
				"s.yaml:2:42: properties.a.x-coditect.merge: merge max does not fit a, which is of type boolean",
				"s.yaml:3:41: properties.b.x-coditect.merge: merge union does not fit b, which is of type string",
				"s.yaml:4:41: properties.c.x-coditect.merge: merge concat does not fit c, which is of type number",
			},
		},
		{
			"pick unfit", "properties:\n  a: {x-coditect: {pick: all}}\n  b: {x-coditect: {pick: max}}",
			[]string{
				"s.yaml:2:26: properties.a.x-coditect.pick: pick all needs a property of type array, a is of type string",
				"s.yaml:3:26: properties.b.x-coditect.pick: pick max needs numbers or dates, b is of type string",
			},
		},
		{
			"key", "properties: {a: {}, b: {type: array}}\nx-coditect:\n  key: [a, c, a, b]",
			[]string{
				"s.yaml:3:12: x-coditect.key[1]: there is no property \"c\"",
				"s.yaml:3:15: x-coditect.key[2]: \"a\" is in the key twice",
				"s.yaml:3:18: x-coditect.key[3]: a list cannot be part of the key",
			},
		},
		{
			"key null", "properties: {a: {}}\nx-coditect: {key: }",
			[]string{"s.yaml:2:19: x-coditect.key: must be a list of property names, not null"},
		},
		{
			"stray hints", "properties: {a: {type: array, items: {x-coditect: {labels: [x]}}}, b: {not: {x-coditect: {}}}}",
			[]string{"s.yaml:1:78: properties.b.not.x-coditect: hints have no effect here; they belong to the schema's top or to a property that holds a value"},
		},
		{
			"hints of an object", "properties: {a: {properties: {b: {}}, x-coditect: {labels: [x]}}}",
			[]string{"s.yaml:1:51: properties.a.x-coditect: a is an object; its hints belong to the properties inside it"},
		},
		{
			"lines", "properties:\n  a: {x-coditect: {lines: [3, 1]}}\n  b: {x-coditect: {lines: [a]}}\n  c: {x-coditect: {lines: [1, 2, 3]}}",
			[]string{
				"s.yaml:2:27: properties.a.x-coditect.lines: there are no lines from 3 to 1: the second number is the first line that is left out",
				"s.yaml:3:28: properties.b.x-coditect.lines: line numbers must be whole numbers",
				"s.yaml:4:27: properties.c.x-coditect.lines: must be [from, to], or [from] for all lines from there",
			},
		},
		{
			"phrases", "properties:\n  a: {x-coditect: {labels: []}}\n  b: {x-coditect: {labels: ['::']}}\n  c: {type: number, x-coditect: {values: {x: [y]}}}",
			[]string{
				"s.yaml:2:28: properties.a.x-coditect.labels: must be a list of phrases",
				"s.yaml:3:29: properties.b.x-coditect.labels[0]: a phrase must hold a letter or a digit",
				"s.yaml:4:43: properties.c.x-coditect.values.x: is no value of c: \"x\" is no number",
			},
		},
		{
			"meta-schema", "properties:\n  a: {type: string, minLength: -1}\n  b: {type: string, pattern: '('}",
			[]string{
				"s.yaml:2:32: properties.a.minLength: minimum: got -1, want 0",
				"s.yaml:3:30: properties.b.pattern: '(' is not valid regex: missing closing ): `(`",
			},
		},
		{
			"references", "properties:\n  a: {$ref: 'https://example.org/x'}\n  b: {$ref: '#/$defs/no'}\n  c: {$ref: '#/properties/c'}",
			[]string{
				"s.yaml:2:13: properties.a.$ref: only references within the file (#/…) are followed, not \"https://example.org/x\"",
				"s.yaml:3:13: properties.b.$ref: nothing is at \"#/$defs/no\"",
				"s.yaml:4:6: properties.c: refers to itself",
			},
		},
		{
			"requires itself", "$defs: {t: {type: object, required: [u], properties: {u: {type: object, required: [t], properties: {t: {$ref: '#/$defs/t'}}}}}}\n$ref: '#/$defs/t'",
			[]string{"s.yaml:1:104: $defs.t.properties.u.properties.t: refers to itself, and requires it: no value would have an end"},
		},
		{
			"an alternative of itself", "properties: {a: {$ref: '#/$defs/d'}}\n$defs:\n  d: {anyOf: [{$ref: '#/$defs/d'}, {type: string}]}\n",
			[]string{"s.yaml:3:15: $defs.d.anyOf[0]: refers to itself"},
		},
		{
			"huge number", `{"properties": {"a": {"type": "number", "minimum": 1e999999}}}`,
			[]string{"s.yaml:1:52: properties.a.minimum: the number 1e999999 is out of range"},
		},
		{
			"doubled again and again", "properties: {a: {}}\nnot: {$ref: '#/$defs/d0'}\n$defs:\n" + doubled(40, "{if: NEXT, then: NEXT}"),
			[]string{"s.yaml:1:1: no value could be checked by it: its parts refer to each other so that it would take too many steps"},
		},
		{
			"itself, in a row", "properties: {a: {$ref: '#/$defs/d'}}\n$defs:\n  d: {allOf: [{$ref: '#/$defs/e'}, {$ref: '#/$defs/e'}]}\n  e: {allOf: [{title: x}, {$ref: '#/$defs/d'}]}\n",
			[]string{"s.yaml:3:6: $defs.d: refers to itself"},
		},
		{
			"a long row", "properties: {a: {$ref: '#/$defs/d0'}}\n$defs:\n" + doubled(200, "NEXT"),
			[]string{"s.yaml:103:9: $defs.d100: more than 100 references in a row"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := schema.Parse("s.yaml", []byte(tt.text))
			if err == nil {
				t.Fatalf("no error, want\n%s", strings.Join(tt.want, "\n"))
			}
			if diff := cmp.Diff(tt.want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if _, ok := errors.AsType[*source.Error](err); !ok {
				t.Errorf("%T holds no *schema.Error", err)
			}
		})
	}
}

// doubled returns n definitions, in each of which the next one stands for NEXT.
func doubled(n int, link string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  d%d: %s\n", i, strings.ReplaceAll(link, "NEXT", fmt.Sprintf("{$ref: '#/$defs/d%d'}", i+1)))
	}
	return b.String() + fmt.Sprintf("  d%d: {maxProperties: 9}\n", n)
}

// A record that cannot be checked, as its schema asks for too much, has no value that may
// stand: nobody knows whether it fits.
func TestRecordsThatCannotBeChecked(t *testing.T) {
	property, path := "x: {type: number}", "x"
	for range 6 {
		property, path = "x: {type: object, properties: {"+property+"}}", "x."+path
	}
	twelve := strings.TrimSuffix(strings.Repeat("{not: {properties: {x: NEXT}}}, ", 12), ", ")
	s := parse(t, "properties: {"+property+", y: {type: number}}\nnot: {not: {$ref: '#/$defs/d0'}}\n$defs:\n"+
		doubled(7, "{not: {anyOf: ["+twelve+"]}}"))
	if j := judge.Record(s, map[string]any{"y": json.Number("5")}); len(j.Refused) > 0 || j.Kept["y"] != json.Number("5") {
		t.Errorf("of a shallow record, kept %v, refused %v", j.Kept, j.Refused)
	}
	j := judge.Record(s, map[string]any{path: json.Number("1"), "y": json.Number("5")})
	if b := j.Refused[path]; len(j.Kept) > 0 || b.Constraint != "schema" || b.Message != validator.ErrTooCostly.Error() {
		t.Errorf("of a deep record, kept %v, refused %v", j.Kept, j.Refused)
	}
	if err := judge.Validate(s, s.Nest(map[string]any{path: json.Number("1")})); !errors.Is(err, validator.ErrTooCostly) {
		t.Errorf("of a deep record: %v", err)
	}
}

// Where a schema has the same part a thousand times, directly and by way of others, that part
// is read once.
func TestPartsThatComeOften(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat("NEXT, ", 8), ", ")
	start := time.Now()
	s := parse(t, "properties: {a: {$ref: '#/$defs/d0'}}\n$defs:\n"+doubled(3, "{allOf: ["+many+"], title: t}"))
	if p := s.Properties[0]; p.Title != "t" {
		t.Errorf("the property is %+v", p)
	}
	_, err := schema.Parse("s.yaml", []byte("properties: {a: {$ref: '#/$defs/d0'}}\n$defs:\n"+doubled(40, "{allOf: ["+many+"]}")))
	if err == nil || !strings.Contains(err.Error(), "no value could be checked by it") {
		t.Errorf("of one whose values take too long to check: %v", err)
	}
	t.Logf("after %v", time.Since(start))
}

func TestJSONSyntaxError(t *testing.T) {
	_, err := schema.Parse("s.json", []byte("{\n  \"a\": }"))
	want := "s.json:2:8: '}' stands where a value has to; a comma before ] is one too many, and texts need quotes"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestAliasBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		prev := string(rune('a' + i - 1))
		if i == 1 {
			prev = "l0"
		}
		b.WriteString(string(rune('a'+i)) + ": &" + string(rune('a'+i)) + " [" + strings.Repeat("*"+prev+",", 10) + "]\n")
	}
	if _, err := schema.Parse("s.yaml", []byte(b.String())); err == nil {
		t.Fatal("an exploding file was accepted")
	}
}

func TestValidate(t *testing.T) {
	s := parse(t, receipt)
	for _, tt := range []struct {
		name   string
		record map[string]any
		want   string
	}{
		{"fits", map[string]any{"company": "A", "total": 60.3, "date": "2018-12-25", "_sources": []any{"x"}}, ""},
		{"null is absent", map[string]any{"company": "A", "total": 1, "date": nil}, ""},
		{"missing", map[string]any{"company": "A", "total": nil}, "missing property 'total'"},
		{"not normalised", map[string]any{"company": 3, "total": 1, "date": "25/12/2018"}, "company: got number, want string; date: '25/12/2018' is not valid date: parsing time \"25/12/2018\" as \"2006-01-02\": cannot parse \"25/12/2018\" as \"2006\""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if err := judge.Validate(s, tt.record); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Validate (-want +got):\n%s", diff)
			}
		})
	}
	list := parse(t, "type: array\nminItems: 3\nitems: {type: object, properties: {n: {type: integer}}}")
	if err := judge.Validate(list, map[string]any{"n": 3}); err != nil {
		t.Errorf("a record of a list: %v", err)
	}
	if err := judge.Validate(list, map[string]any{"n": "x"}); err == nil {
		t.Error("a record of a list with a wrong type was accepted")
	}
}

// authored has its properties in an order that is not that of the alphabet, at every
// depth.
const authored = `
type: object
required: [zone, amount]
properties:
  zone: {type: string, title: Z, x-coditect: {labels: [Zone]}}
  amount: {type: number}
  parties:
    type: array
    items:
      type: object
      required: [name, address]
      properties: {name: {type: string}, address: {$ref: "#/$defs/properties"}, age: {type: integer}}
$defs:
  properties:
    type: object
    properties: {street: {type: string}, city: {type: string}}
`

// authoredJSON is the same.
const authoredJSON = `{
"$defs": {"properties": {"properties": {"street": {"type": "string"}, "city": {"type": "string"}}, "type": "object"}},
"properties": {
	"zone": {"x-coditect": {"labels": ["Zone"]}, "title": "Z", "type": "string"},
	"amount": {"type": "number"},
	"parties": {"items": {
		"properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/properties"}, "age": {"type": "integer"}},
		"required": ["name", "address"], "type": "object"
	}, "type": "array"}
},
"required": ["zone", "amount"], "type": "object"}`

func TestPlainKeepsTheOrderOfProperties(t *testing.T) {
	const want = `{"$defs":{"properties":{"properties":{"street":{"type":"string"},"city":{"type":"string"}},"type":"object"}},` +
		`"properties":{"zone":{"title":"Z","type":"string"},"amount":{"type":"number"},"parties":{"items":{` +
		`"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/properties"},"age":{"type":"integer"}},` +
		`"required":["name","address"],"type":"object"},"type":"array"}},"required":["zone","amount"],"type":"object"}`
	yaml, json := parse(t, authored), parse(t, authoredJSON)
	for name, s := range map[string]*schema.Schema{"YAML": yaml, "JSON": json, "what was stored": parse(t, string(yaml.Canonical()))} {
		if diff := cmp.Diff(want, string(s.Plain())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(string(yaml.Canonical()), string(json.Canonical())); diff != "" {
		t.Errorf("equal schemas, and their canonical forms differ (-YAML +JSON):\n%s", diff)
	}
}

// Data may hold what looks like hints.
func TestPlainLeavesOutHintsAlone(t *testing.T) {
	s := parse(t, `{"x-coditect": {"key": ["f"]}, "properties": {"f": {"type": "string", "default": {"x-coditect": {"b": 1, "a": 2}}}}}`)
	if got, want := string(s.Plain()), `{"properties":{"f":{"default":{"x-coditect":{"a":2,"b":1}},"type":"string"}}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The schema in an envelope is read, whatever the name that it has there, unless there are
// several, or what stands there is none.
func TestEnvelopesOfAnyName(t *testing.T) {
	const inner = `{"type":"object","properties":{"total":{"type":"number"}}}`
	for text, want := range map[string]string{
		`{"name":"a","description":"b","schema_definition":` + inner + `}`:                            "total",
		`{"responseMimeType":"application/json","responseSchema":` + inner + `}`:                      "total",
		`{"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":` + inner + `}}`:      "total",
		`{"old_schema":` + inner + `,"new_schema":` + inner + `}`:                                     "*",
		`{"components":{"a":1},"schemas":{"a":` + inner + `}}`:                                        "*",
		`{"type":"object","properties":{"my_schema":{"type":"string"}},"x_schema":{"type":"object"}}`: "my_schema",
	} {
		s := parse(t, text)
		if fields := s.Fields(); len(fields) != 1 || fields[0].Path != want {
			t.Errorf("%s has the fields %v, want %s", text, fields, want)
		}
	}
}

// What is accepted and has another effect than its author may think is said with its line.
func TestWarnings(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"required": {"required: [b]\nproperties: {a: {}}", "s.yaml:1:12: required: there is no property \"b\": it is taken as a value of any kind"},
		"enum":     {"properties:\n  a: {type: string, enum: [1, 2]}", "s.yaml:2:27: properties.a.enum: no value fits: none of those that are allowed is of the type that is asked for"},
		"no enum": {"properties:\n  a: {type: string, enum: []}\n  b: {}", "s.yaml:2:6: properties.a: no value but null is allowed here, so nothing is extracted\n" +
			"s.yaml:2:27: properties.a.enum: no value fits: the list of those that are allowed is empty"},
		"null":               {"properties:\n  a: {type: 'null'}\n  b: {}", "s.yaml:2:6: properties.a: no value but null is allowed here, so nothing is extracted"},
		"draft":              {"$schema: https://example.org/mine\nproperties: {a: {}}", "s.yaml:1:10: $schema: \"https://example.org/mine\" is no draft of JSON Schema that is known, from 4 to 2020-12; the schema is read as one of these"},
		"meta":               {"properties:\n  a: {$ref: 'http://json-schema.org/draft-07/schema#'}", "s.yaml:2:13: properties.a.$ref: schemas of schemas are taken as values of any kind"},
		"typo":               {"properties:\n  a: {typ: number}", "s.yaml:2:7: properties.a.typ: \"typ\" has no effect; did you mean \"type\"?"},
		"changed letters":    {"requierd: [a]\nproperties: {a: {}}", "s.yaml:1:1: requierd: \"requierd\" has no effect; did you mean \"required\"?"},
		"format":             {"properties:\n  a: {type: string, format: datetime}", "s.yaml:2:29: properties.a.format: \"datetime\" is no format that is checked; did you mean \"date-time\"?"},
		"names, data, notes": {"properties: {typ: {example: {typ: a}, note: b, default: {formt: c}}}\nx-notes: {typ: d}\n$defs: {enmu: {}}", ""},
		"none":               {"properties: {a: {anyOf: [{type: string}, {type: number}]}}", ""},
	} {
		if got := parse(t, tt.text).Warnings.Error(); got != tt.want {
			t.Errorf("%s: got  %s\nwant %s", name, got, tt.want)
		}
	}
	large := parse(t, "properties: {a: {$ref: '#/$defs/d0'}}\n$defs:\n"+doubled(12, "{properties: {a: NEXT, b: NEXT, c: NEXT}}"))
	if len(large.Warnings) != 1 || !strings.Contains(large.Warnings[0].Msg, "more than 5000 properties") {
		t.Errorf("of a large schema: %v", large.Warnings)
	}
}

// A schema that is too much is refused at once, whatever makes it so.
func TestSchemasThatAreTooMuch(t *testing.T) {
	many := strings.Repeat(`{"type":"string"},`, 100_000)
	for name, tt := range map[string]struct{ text, want string }{
		"bytes":        {`{"properties":{"a":{"description":"` + strings.Repeat("x", 10<<20) + `"}}}`, "s.json:1:1: the schema has 10485799 bytes, of 4194304 at most"},
		"alternatives": {`{"properties":{"a":{"anyOf":[` + strings.TrimSuffix(many, ",") + `]}}}`, "the schema has more than 100000 values"},
		"small ones":   {"{\"properties\":{\"a\":{\"anyOf\":[\n" + strings.Repeat("{},\n", 40_000) + `{}]}}}`, "s.json:6999:1: the schema has more than 7000 parts"},
		"booleans":     {`{"properties":{"a":{"anyOf":[` + strings.Repeat("true,", 40_000) + `true]}}}`, "the schema has more than 7000 parts"},
		"network":      {`{"properties":{"a":{"$ref":"http://169.254.169.254/latest"}}}`, "s.json:1:28: properties.a.$ref: only references within the file (#/…) are followed, not \"http://169.254.169.254/latest\""},
		"no base":      {`{"allOf":[{"$ref":"#"}],"properties":{"a":{}}}`, "refers to itself"},
		"groups":       {`{"properties":{"a":{"pattern":"` + strings.Repeat("(?=", 300) + strings.Repeat(")", 300) + `"}}}`, "the pattern has more than 200 groups in groups"},
	} {
		start := time.Now()
		_, err := schema.Parse("s.json", []byte(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %.300v, want %s", name, err, tt.want)
		}
		t.Logf("%s after %v", name, time.Since(start))
	}
}

// A value that a pattern would have to look at for ever cannot be checked, and does not stand.
func TestPatternsThatExplode(t *testing.T) {
	s := parse(t, `properties: {a: {type: string, pattern: '^(?=(x+)+y)'}, b: {type: string}}`)
	j := judge.Record(s, map[string]any{"a": strings.Repeat("x", 60)})
	if b := j.Refused["a"]; b.Constraint != "schema" || !strings.Contains(b.Message, "cannot be checked") {
		t.Errorf("refused %v, kept %v", j.Refused, j.Kept)
	}
}

// A derived value has no place where it stands, and is a field of a record.
func TestDerivedFields(t *testing.T) {
	for _, tt := range []struct{ properties, fault string }{
		{`{x: {type: number, x-coditect: {derived: true}}}`, ""},
		{`{x: {type: object, properties: {y: {type: [string, "null"], format: date, x-coditect: {derived: true, merge: latest}}}}}`, ""},
		{`{x: {enum: [a, b], x-coditect: {derived: true}}}`, ""},
		{`{x: {type: number, x-coditect: {derived: sum}}}`, "must be true or false"},
		{`{x: {type: number, x-coditect: {derived: true, labels: [Total]}}}`, "labels would look for it"},
		{`{x: {type: number, x-coditect: {derived: true, merge: sum}}}`, "follows from no quotes"},
		{`{x: {type: array, items: {type: number}, x-coditect: {derived: true}}}`, "of type array"},
		{`{x: {type: array, items: {type: object, properties: {y: {type: number, x-coditect: {derived: true}}}}}}`, "a part of a list"},
		{`{x: {type: object, additionalProperties: {type: object, properties: {y: {type: number, x-coditect: {derived: true}}}}}}`, "a part of a list or of a map"},
		{`{x: {type: [number, string], x-coditect: {derived: true}}}`, "of type union"},
	} {
		s, err := schema.Parse("s.yaml", []byte("{type: object, properties: "+tt.properties+"}"))
		if tt.fault == "" {
			if err != nil || !s.HasDerived() {
				t.Errorf("%s: %v", tt.properties, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.fault) {
			t.Errorf("%s: %v, want %q", tt.properties, err, tt.fault)
		}
	}
	_, err := schema.Parse("s.yaml", []byte("{type: object, properties: {x: {type: string, x-coditect: {derived: true}}}, x-coditect: {key: [x]}}"))
	if err == nil || !strings.Contains(err.Error(), "derived value cannot be part of the key") {
		t.Errorf("a derived key: %v", err)
	}
	plain, err := schema.Parse("s.yaml", []byte("{type: object, properties: {x: {type: string}}}"))
	if err != nil || plain.HasDerived() {
		t.Errorf("a schema without derived fields: %v", err)
	}
}
