package merge_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
)

var schemas = flag.Int("schemas", 200, "how many schemas TestNoValueBreaksItsSchema makes up")

// A maker makes up schemas, and values that fit them or do not.
type maker struct{ *rand.Rand }

func pick[T any](m maker, of ...T) T { return of[m.IntN(len(of))] }

// property returns a schema of a value, with constraints that values often break.
func (m maker) property(depth int) map[string]any {
	p := map[string]any{}
	maybe := func(key string, v any) {
		if m.IntN(3) == 0 {
			p[key] = v
		}
	}
	kinds := []string{"string", "number", "integer", "boolean", "array", "object", "date", "email", "enum", "const"}
	switch kind := kinds[m.IntN(len(kinds)-depth)]; kind {
	case "string":
		p["type"] = "string"
		maybe("minLength", m.IntN(6))
		maybe("maxLength", m.IntN(8))
		maybe("pattern", pick(m, "^[a-z]+$", "^[0-9]", "a"))
	case "number", "integer":
		p["type"] = kind
		maybe("minimum", m.IntN(20)-10)
		maybe("exclusiveMaximum", m.IntN(40)-10)
		maybe("multipleOf", pick(m, 2, 3, 5))
	case "boolean":
		p["type"] = kind
		maybe("const", true)
	case "array":
		p["type"], p["items"] = "array", m.property(2)
		maybe("minItems", m.IntN(3))
		maybe("maxItems", m.IntN(3))
		maybe("uniqueItems", true)
		maybe("contains", map[string]any{"type": "string", "minLength": 3})
		if depth == 0 { // hints of what is inside of a list belong to the list
			maybe("x-coditect", map[string]any{"merge": pick(m, "vote", "concat", "union")})
		}
	case "object":
		p["type"], p["properties"] = "object", map[string]any{"p": m.property(2), "q": m.property(2)}
		maybe("required", []any{"p"})
		maybe("dependentRequired", map[string]any{"q": []any{"p"}})
		maybe("maxProperties", 1)
	case "date", "email":
		p["type"], p["format"] = "string", kind
	case "enum":
		p["type"], p["enum"] = "string", []any{"abc", "Red", "xyz9"}
	case "const":
		p["type"], p["const"] = "string", pick(m, "abc", "7")
	}
	return p
}

// schema returns a schema of a record, with constraints between its fields.
func (m maker) schema() map[string]any {
	s := map[string]any{"title": "t", "type": "object"}
	properties := map[string]any{}
	for _, name := range []string{"a", "b", "c", "d"} {
		properties[name] = m.property(0)
	}
	s["properties"] = properties
	for key, v := range map[string]any{
		"required":          []any{"a", "b"},
		"dependentRequired": map[string]any{"c": []any{"d"}, "d": []any{"a"}},
		"maxProperties":     3,
		"minProperties":     2,
		"not":               map[string]any{"required": []any{"a", "d"}},
		"if":                map[string]any{"required": []any{"a"}},
		"then":              map[string]any{"properties": map[string]any{"b": map[string]any{"minLength": 4}}},
		"anyOf":             []any{map[string]any{"required": []any{"a"}}, map[string]any{"properties": map[string]any{"b": map[string]any{"maxLength": 2}}}},
		"oneOf":             []any{map[string]any{"required": []any{"c"}}, map[string]any{"required": []any{"d"}}},
		"dependentSchemas":  map[string]any{"a": map[string]any{"properties": map[string]any{"c": map[string]any{"type": "string", "maxLength": 3}}}},
		"propertyNames":     map[string]any{"enum": []any{"a", "b", "c", "d"}},
	} {
		if m.IntN(4) == 0 {
			s[key] = v
		}
	}
	if m.IntN(2) == 0 {
		s["additionalProperties"] = false
	}
	return s
}

// value returns what a provider may say of a field: a value of its type, or anything.
func (m maker) value(p *schema.Property) any {
	texts := []string{"", "abc", "7", "-3", "12.5", "2018-12-25", "4/5/2001", "Red", "xyz9", "a@b.org", "yes", "hello world", "1e9", "\u00e9"}
	raw := any(pick(m, texts...))
	if p.Type == schema.Array && p.Items.Type == schema.Object {
		raw = map[string]any{"p": pick(m, texts...), "q": pick(m, texts...)}
	}
	if p.Type == schema.Array {
		p = p.Items
	}
	if v, err := p.Normalize(raw); err == nil && v != nil {
		return v
	}
	return raw
}

func (m maker) record(s *schema.Schema, unit int64) merge.Record {
	r := merge.Record{Document: "d", Order: merge.Order{Unit: unit}}
	for _, f := range s.Fields() {
		for range m.IntN(4) {
			v := merge.Value{Field: f.Path, Value: m.value(f.Property), Confidence: m.Float64()}
			if m.IntN(5) > 0 {
				v.Citations = []merge.Citation{merge.Citation(fmt.Sprint("c", m.IntN(50)))}
			}
			r.Values = append(r.Values, v)
		}
	}
	return r
}

// independentJudge compiles a schema without anything of ours.
func independentJudge(t *testing.T, raw []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("mem:///judge.json", doc); err != nil {
		t.Fatal(err)
	}
	judge, err := c.Compile("mem:///judge.json")
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return judge
}

// asksForMore are the keywords that a record may break by what it lacks.
var asksForMore = []string{"required", "minProperties"}

// complaints returns what the judge finds wrong with a record apart from what it lacks.
func complaints(err error) (all []string) {
	var walk func(e *jsonschema.ValidationError) bool
	walk = func(e *jsonschema.ValidationError) (lacksOnly bool) {
		words := e.ErrorKind.KeywordPath()
		if len(e.Causes) == 0 {
			inside := slices.ContainsFunc(e.InstanceLocation, func(at string) bool { return at >= "0" && at <= "9" })
			if len(words) > 0 && slices.Contains(asksForMore, words[0]) && !inside {
				return true
			}
			all = append(all, fmt.Sprint(e.InstanceLocation, words))
			return false
		}
		alternatives := len(words) > 0 && (words[0] == "anyOf" || words[0] == "oneOf")
		before, some, every := len(all), false, true
		for _, cause := range e.Causes {
			ok := walk(cause)
			some, every = some || ok, every && ok
		}
		if alternatives && some {
			all = all[:before]
			return true
		}
		return every
	}
	if invalid, ok := err.(*jsonschema.ValidationError); ok {
		walk(invalid)
	}
	return all
}

// TestNoValueBreaksItsSchema makes up schemas, and what providers say of several records
// of one entity, and looks at the record with a validator that shares no code with what
// made it.
func TestNoValueBreaksItsSchema(t *testing.T) {
	refused, kept := 0, 0
	for seed := range uint64(*schemas) {
		m := maker{rand.New(rand.NewPCG(seed, 18))}
		raw, err := json.Marshal(m.schema())
		if err != nil {
			t.Fatal(err)
		}
		s, err := schema.Parse("fuzzed.json", raw)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, raw)
		}
		judge := independentJudge(t, s.Plain())
		for n := range 5 {
			var all []merge.Accumulator
			for unit := range int64(3) {
				all = append(all, merge.Accumulate(s, m.record(s, unit)))
			}
			a := merge.Merge(merge.Merge(all[0], all[1]), all[2])
			r := merge.Resolve(s, a)
			again := merge.Resolve(s, merge.Merge(all[0], merge.Merge(all[2], all[1])))
			if diff := cmp.Diff(r, again); diff != "" {
				t.Fatalf("seed %d, record %d: another order of merging gives another record:\n%s", seed, n, diff)
			}
			kept, refused = kept+len(r.Values), refused+len(r.Refused)
			record := withoutNull(s.Nest(r.Values)).(map[string]any)
			if found := complaints(judge.Validate(any(record))); len(found) > 0 {
				t.Fatalf("seed %d, record %d breaks its schema: %v\nschema %s\nrecord %v\nrefused %v", seed, n, found, raw, record, r.Refused)
			}
			for path, f := range r.Refused {
				if f.Constraint == "" || f.Message == "" || f.Value == nil {
					t.Fatalf("seed %d: %s is refused as %+v; want its value, the constraint and a message", seed, path, f)
				}
			}
		}
	}
	if kept < *schemas || refused < *schemas {
		t.Errorf("%d values were kept and %d refused: the schemas test little", kept, refused)
	}
}

// withoutNull removes what was not found, nested objects without values too.
func withoutNull(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for k, item := range m {
		item = withoutNull(item)
		if inner, ok := item.(map[string]any); item != nil && (!ok || len(inner) > 0) {
			out[k] = item
		}
	}
	return out
}
