package validator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/coditect/mapreduce/api/schema/validator"
	"github.com/coditect/mapreduce/internal/dev/testenv"
)

func compile(t *testing.T, doc string) *validator.Schema {
	t.Helper()
	s, err := validator.Compile(parse(t, doc), "", nil)
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return s
}

func parse(t *testing.T, doc string) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(doc))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// chain returns a schema of n definitions, each of which has the next one in it as link says.
func chain(n int, link string) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":%s,`, i, strings.ReplaceAll(link, "NEXT", fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)))
	}
	fmt.Fprintf(&b, `"d%d":{"maxProperties":5,"maxItems":5}}}`, n)
	return b.String()
}

// nest puts a value into itself n times, as inner says.
func nest(n int, inner string) string {
	before, after, _ := strings.Cut(inner, "IN")
	return strings.Repeat(before, n) + `{}` + strings.Repeat(after, n)
}

// Whichever keyword a small schema uses to look at the same thing twice, and at what that
// looks at twice, and so on, a check of a value by it ends.
func TestSchemasThatMultiply(t *testing.T) {
	for what, tt := range map[string]struct{ link, value string }{
		"allOf":             {`{"allOf":[NEXT,NEXT]}`, `{}`},
		"anyOf":             {`{"not":{"anyOf":[{"not":NEXT},{"not":NEXT}]}}`, `{}`},
		"oneOf":             {`{"oneOf":[NEXT,{"not":NEXT}]}`, `{}`},
		"not":               {`{"not":{"not":NEXT},"allOf":[NEXT]}`, `{}`},
		"if":                {`{"if":NEXT,"then":NEXT}`, `{}`},
		"else":              {`{"if":{"not":NEXT},"else":NEXT}`, `{}`},
		"dependentSchemas":  {`{"dependentSchemas":{"x":NEXT,"y":NEXT}}`, `{"x":1,"y":2}`},
		"dependencies":      {`{"allOf":[{"dependencies":{"x":NEXT,"y":NEXT}}]}`, `{"x":1,"y":2}`},
		"properties":        {`{"properties":{"x":NEXT},"allOf":[{"properties":{"x":NEXT}}]}`, nest(40, `{"x":IN}`)},
		"patterns":          {`{"patternProperties":{"x":NEXT,"^x":NEXT}}`, nest(40, `{"x":IN}`)},
		"additional":        {`{"additionalProperties":NEXT,"allOf":[{"additionalProperties":NEXT}]}`, nest(40, `{"x":IN}`)},
		"names":             {`{"propertyNames":{"allOf":[NEXT,NEXT]},"allOf":[NEXT,NEXT]}`, `{"x":1}`},
		"unevaluated":       {`{"unevaluatedProperties":NEXT,"allOf":[{"not":{"additionalProperties":{"not":NEXT}}}]}`, nest(40, `{"x":IN}`)},
		"items":             {`{"items":NEXT,"allOf":[{"items":NEXT}]}`, nest(40, `[IN]`)},
		"prefixItems":       {`{"prefixItems":[NEXT],"allOf":[{"prefixItems":[NEXT]}]}`, nest(40, `[IN]`)},
		"contains":          {`{"contains":NEXT,"items":NEXT}`, nest(40, `[IN]`)},
		"unevaluated items": {`{"unevaluatedItems":NEXT,"allOf":[{"not":{"items":{"not":NEXT}}}]}`, nest(40, `[IN]`)},
		"dynamic":           {`{"$dynamicRef":"#/$defs/d1"}`, `{}`},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, err := validator.Compile(parse(t, chain(60, tt.link)), "", nil)
			if err != nil && strings.Contains(err.Error(), "no value could be checked") {
				return // whatever the value, so nobody has to wait until there is one
			}
			if err == nil {
				err = s.Validate(parse(t, tt.value))
			}
			if !errors.Is(err, validator.ErrTooCostly) {
				t.Error(err)
			}
		})
	}
}

// What is no attack is checked: schemas that refer to themselves for each level of a value,
// alternatives that are many, long lists of values, and large values.
func TestSchemasOfHonestAuthors(t *testing.T) {
	testenv.Raced(t)

	var choices, kinds []string
	for i := range 5000 {
		choices = append(choices, fmt.Sprintf(`"choice %d"`, i))
	}
	for i := range 100 {
		kinds = append(kinds, fmt.Sprintf(`{"type":"object","required":["kind"],"properties":{"kind":{"const":"k%d"},"size":{"type":"integer"}}}`, i))
	}
	for what, tt := range map[string]struct{ schema, good, bad string }{
		"a tree": {
			`{"type":"object","additionalProperties":false,"properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#"}}}}`,
			nest(2000, `{"name":"n","children":[IN]}`), nest(2000, `{"name":1,"children":[IN]}`),
		},
		"conditions": {
			`{"$defs":{"c":{"anyOf":[{"type":"string"},{"type":"object","required":["and"],"properties":{"and":{"type":"array","items":{"$ref":"#/$defs/c"}}}},
			{"type":"object","required":["or"],"properties":{"or":{"type":"array","items":{"$ref":"#/$defs/c"}}}}]}},"$ref":"#/$defs/c"}`,
			strings.Repeat(`{"and":["a",`, 1000) + `"b"` + strings.Repeat(`]}`, 1000), strings.Repeat(`{"and":["a",`, 3) + `5` + strings.Repeat(`]}`, 3),
		},
		"choices": {
			`{"type":"array","items":{"enum":[` + strings.Join(choices, ",") + `]}}`,
			`[` + strings.Join(choices, ",") + `]`, `["choice 1", "choice 5000"]`,
		},
		"kinds": {
			`{"type":"array","items":{"oneOf":[` + strings.Join(kinds, ",") + `]}}`,
			`[` + strings.TrimSuffix(strings.Repeat(`{"kind":"k99","size":5},`, 2000), ",") + `]`, `[{"kind":"k100"}]`,
		},
		"much": {
			`{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"]}}`,
			`[` + strings.TrimSuffix(strings.Repeat(`{"a":1,"b":"x"},`, 200_000), ",") + `]`, `[{"b":"x"}]`,
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := compile(t, tt.schema)
			start := time.Now()
			if err := s.Validate(parse(t, tt.good)); err != nil {
				t.Errorf("%.300v", err)
			}
			t.Logf("%v for %d bytes", time.Since(start), len(tt.good))
			var mismatch *jsonschema.ValidationError
			if err := s.Validate(parse(t, tt.bad)); !errors.As(err, &mismatch) {
				t.Errorf("of a value that does not fit: %.300v", err)
			}
		})
	}
}

// A schema that comes to itself at the same value is known to the validator, which ends there.
func TestSchemasInACircle(t *testing.T) {
	for _, doc := range []string{
		`{"$ref":"#"}`,
		`{"$defs":{"f":{"anyOf":[{"$ref":"#/$defs/f"},{"$ref":"#/$defs/f"}]}},"$ref":"#/$defs/f"}`,
		`{"$defs":{"f":{"allOf":[{"$ref":"#/$defs/g"},{"$ref":"#/$defs/g"}]},"g":{"allOf":[{"$ref":"#/$defs/f"},{"$ref":"#/$defs/f"}]}},"properties":{"x":{"$ref":"#/$defs/f"}}}`,
	} {
		var mismatch *jsonschema.ValidationError
		if err := compile(t, doc).Validate(parse(t, `{"x":{"x":{}}}`)); !errors.As(err, &mismatch) {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

// A schema that refers to a file or the network is refused before anything is read.
func TestSchemasElsewhere(t *testing.T) {
	for _, ref := range []string{"file:///etc/passwd", "https://example.com/schema.json", "other.json"} {
		_, err := validator.Compile(map[string]any{"$ref": ref}, "", nil)
		if err == nil || !strings.Contains(err.Error(), "is not loaded") {
			t.Errorf("%s: %v", ref, err)
		}
	}
}
