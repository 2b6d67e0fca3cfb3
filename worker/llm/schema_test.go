package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/vendors"
)

const receipt = `{
	"type": "object",
	"required": ["company", "total"],
	"properties": {
		"company": {"type": "string", "description": "Name of the shop", "minLength": 1, "x-coditect": {"pick": "first"}},
		"total": {"type": "number", "minimum": 0},
		"date": {"type": "string", "format": "date"}
	}
}`

const goodReceipt = `{"company":"Gardenia Bakeries — 金","total":60.30,"date":"2018-12-25"}`

func schema(t testing.TB, doc string) *llm.Schema {
	t.Helper()
	s, err := llm.NewSchema("receipt", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// dialects are those of all providers.
func dialects(t testing.TB) map[string]llm.Dialect {
	t.Helper()
	out := make(map[string]llm.Dialect)
	for _, v := range vendors.All() {
		p, err := v.New(llm.Config{Key: llm.NewKey(testKey)})
		if err != nil {
			t.Fatal(err)
		}
		out[v.Name] = p.Can().Dialect
	}
	return out
}

func TestSchemaInDialects(t *testing.T) {
	for _, c := range []struct{ name, doc, dialect, want string }{
		{
			"what is not taken is told in words", `{"type":"object","properties":{"b":{"type":"string","description":"A b.","pattern":"^x","minLength":2},"a":{"type":"array","items":{"type":"integer","minimum":1},"minItems":2}},"x-coditect":{"key":["a"]}}`,
			"anthropic", `{"type":"object","properties":{"b":{"type":"string","description":"A b. {pattern: \"^x\", minLength: 2}"},"a":{"type":"array","items":{"type":"integer","description":"{minimum: 1}"},"description":"{minItems: 2}"}},"additionalProperties":false}`,
		},
		{
			"small minItems and known formats stay", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","format":"date"},"minItems":1},"c":{"type":"string","format":"color"}}}`,
			"anthropic", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","format":"date"},"minItems":1},"c":{"type":"string","description":"{format: \"color\"}"}},"additionalProperties":false}`,
		},
		{
			"oneOf and lists of types become anyOf", `{"type":"object","properties":{"a":{"oneOf":[{"type":"string"},{"type":"number"}]},"b":{"description":"B","type":["object","null"],"properties":{"c":{"type":"string"}}}}}`,
			"anthropic", `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"number"}]},"b":{"description":"B","anyOf":[{"type":"object","properties":{"c":{"type":"string"}},"additionalProperties":false},{"type":"null"}]}},"additionalProperties":false}`,
		},
		{
			"everything is required, what may be absent may be null", `{"type":"object","required":["a"],"properties":{"a":{"type":"string"},"b":{"type":"number","minimum":0},"c":{"enum":["x","y"]},"d":{"type":["string","null"]}}}`,
			"openai", `{"type":"object","required":["a","b","c","d"],"properties":{"a":{"type":"string"},"b":{"type":["number","null"],"minimum":0},"c":{"anyOf":[{"enum":["x","y"]},{"type":"null"}]},"d":{"type":["string","null"]}},"additionalProperties":false}`,
		},
		{
			"a list is wrapped, definitions stay at the top", `{"type":"array","items":{"$ref":"#/$defs/r"},"$defs":{"r":{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}}}`,
			"openai", `{"type":"object","$defs":{"r":{"type":"object","required":["a"],"properties":{"a":{"type":"string"}},"additionalProperties":false}},"properties":{"answer":{"type":"array","items":{"$ref":"#/$defs/r"}}},"required":["answer"],"additionalProperties":false}`,
		},
		{
			"a grammar takes most", `{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string"}},"s":{"type":"string","minLength":1,"x-coditect":{}}}}`,
			"ollama", `{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string"}},"s":{"type":"string","minLength":1}}}`,
		},
	} {
		t.Run(c.dialect+"/"+c.name, func(t *testing.T) {
			got, err := schema(t, c.doc).In(dialects(t)[c.dialect])
			if err != nil {
				t.Fatal(err)
			}
			if sorted(t, got) != sorted(t, []byte(c.want)) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func sorted(t *testing.T, raw []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestOrderOfFieldsIsKept(t *testing.T) {
	doc := `{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"},"m":{"type":"string"}}}`
	for name, d := range dialects(t) {
		got, err := schema(t, doc).In(d)
		if err != nil {
			t.Fatal(err)
		}
		text := string(got)
		if z, a, m := strings.Index(text, `"z"`), strings.Index(text, `"a"`), strings.Index(text, `"m"`); z > a || a > m {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestTextsOfSchemasAreWhole draws texts with all that JSON escapes: a schema has them as
// encoding/json would write them, without escapes for web pages.
func TestTextsOfSchemasAreWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("a \"\\/<&>\n\t\x00\x7fé—金\u2028\u2029\ufffd😀"))).Draw(t, "text")
		number := rapid.Float64Range(-1e300, 1e300).Draw(t, "number")
		var want strings.Builder
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(map[string]any{"description": text, "x-all": []any{text, number, nil, true, map[string]any{}, []any{}}}); err != nil {
			t.Fatal(err)
		}

		s, err := llm.NewSchema("a", []byte(want.String()))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Document() + "\n"; got != want.String() {
			t.Errorf("got %s, want %s", got, want.String())
		}
	})
}

// TestSchemasAreWrittenOnce bounds what each request costs: it is measured several times, and
// each time with its schema.
func TestSchemasAreWrittenOnce(t *testing.T) {
	s := schema(t, receipt)
	if n := testing.AllocsPerRun(100, func() { _ = s.Document() }); n > 0 {
		t.Errorf("Document allocates %v times, want 0", n)
	}
}

func TestWhatCannotBeExpressed(t *testing.T) {
	for _, c := range []struct{ name, doc, dialect, keyword, where string }{
		{"map", `{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string"}}}}`, "anthropic", "additionalProperties", "#/properties/m"},
		{"any object", `{"type":"object","properties":{"m":{"type":"object"}}}`, "openai", "an object without properties", "#/properties/m"},
		{"patterns of names", `{"type":"object","properties":{},"patternProperties":{"^a":{"type":"string"}}}`, "anthropic", "patternProperties", "#"},
		{"tuple", `{"type":"object","properties":{"t":{"type":"array","prefixItems":[{"type":"string"}]}}}`, "openai", "prefixItems", "#/properties/t"},
		{"any value", `{"type":"object","properties":{"t":{"description":"anything"}}}`, "anthropic", "any type", "#/properties/t"},
		{"any item", `{"type":"object","properties":{"t":{"type":"array"}}}`, "openai", "without items", "#/properties/t"},
		{"true", `{"type":"object","properties":{"t":true}}`, "openai", "true or false", "#/properties/t"},
		{"allOf", `{"type":"object","properties":{"t":{"allOf":[{"type":"string"}]}}}`, "openai", "allOf", "#/properties/t"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := schema(t, c.doc).In(dialects(t)[c.dialect])
			e, ok := errors.AsType[*llm.Error](err)
			if !ok || e.Kind != llm.BadSchema || !strings.Contains(e.Message, c.keyword) || !strings.Contains(e.Message, c.where+":") {
				t.Errorf("error %v, want one that names %q and %q", err, c.keyword, c.where)
			}
		})
	}
}

func TestBadSchemas(t *testing.T) {
	for _, doc := range []string{``, `[]`, `{"type":"objekt"}`, `{"type":"object"} {}`, `{"a":1,"a":2}`, `{"$ref":"file:///etc/passwd"}`, `{"$ref":"https://example.com/s.json"}`, `{"multipleOf":1e2000000}`} {
		if _, err := llm.NewSchema("s", []byte(doc)); err == nil {
			t.Errorf("%s was taken", doc)
		}
	}
	if _, err := llm.NewSchema("no blanks", []byte(`{}`)); err == nil {
		t.Error("a name with a blank was taken")
	}
}

func TestCheck(t *testing.T) {
	list := `{"type":"array","items":{"type":"object","required":["a"],"properties":{"a":{"type":"integer"},"b":{"type":"string"},"c":{"type":["string","null"]}}}}`
	for _, c := range []struct{ name, doc, answer, want, fault string }{
		{"fits", receipt, goodReceipt, goodReceipt, ""},
		{"numbers keep their spelling", receipt, `{"company":"x","total":1.10}`, `{"company":"x","total":1.10}`, ""},
		{"numbers near the ends of the range", `{"type":"array","items":{"type":"number","minimum":-1e308,"multipleOf":1e-300}}`, `[-1e308,2.50E-299,0e-400,1e+300]`, `[-1e308,2.50E-299,0e-400,1e+300]`, ""},
		{"fenced", receipt, "```json\n" + goodReceipt + "\n```", goodReceipt, ""},
		{"wrapped, nulls of absent fields", list, `{"answer":[{"a":1,"b":null,"c":null}]}`, `[{"a":1,"c":null}]`, ""},
		{"not wrapped", list, `[{"a":1}]`, `[{"a":1}]`, ""},
		{"null of a required field", receipt, `{"company":null,"total":1}`, "", "/company: "},
		{"bound", receipt, `{"company":"x","total":-1}`, "", "/total: "},
		{"format", receipt, `{"company":"x","total":1,"date":"25/12/2018"}`, "", "/date: "},
		{"missing", receipt, `{"company":"x"}`, "", "the answer: missing property 'total'"},
		{"nothing", receipt, ``, "", "not one JSON value"},
		{"half", receipt, `{"company":"x"`, "", "not one JSON value"},
		{"two", receipt, goodReceipt + goodReceipt, "", "not one JSON value"},
		{"a number too large to compute with", receipt, `{"company":"x","total":1e2000000}`, "", "/total: the number 1e2000000 is out of range"},
		{"too small", receipt, `{"company":"x","total":1e-2000000}`, "", "/total: the number 1e-2000000 is out of range"},
		{"an exponent that no integer holds", receipt, `{"company":"x","total":0e-99999999999999999999}`, "", "/total: the number 0e-"},
		{"too long", receipt, `{"company":"x","total":0.` + strings.Repeat("1", 400) + `}`, "", "/total: the number 0.1"},
		{"in a list without a bound", `{"type":"object","properties":{"a/b":{"type":"array","uniqueItems":true}}}`, `{"a/b":[1,-1e400]}`, "", "/a~1b/1: the number -1e400"},
		{"wrapped, a number too large", `{"type":"number","multipleOf":0.5}`, `{"answer":1E+2000000}`, "", "the answer: the number 1E+2000000"},
		{"key twice", receipt, `{"company":"x","company":"y","total":1}`, "", "twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := schema(t, c.doc).Check([]byte(c.answer))
			if c.fault == "" && (err != nil || string(got) != c.want) {
				t.Errorf("got %s, %v; want %s", got, err, c.want)
			}
			if _, ok := errors.AsType[*llm.MismatchError](err); c.fault != "" && (!ok || !strings.Contains(err.Error(), c.fault)) {
				t.Errorf("error %v, want a mismatch about %q", err, c.fault)
			}
		})
	}
}

// field draws a schema and a value that fits it.
func field(t *rapid.T, depth int) (doc, value any) {
	kind := rapid.IntRange(0, 6).Draw(t, "kind")
	if depth > 3 {
		kind %= 4
	}
	switch kind {
	case 0:
		return map[string]any{"type": "string", "minLength": 1}, rapid.StringN(1, 10, 40).Draw(t, "text")
	case 1:
		return map[string]any{"type": "integer", "minimum": 0}, rapid.IntRange(0, 1000).Draw(t, "n")
	case 2:
		return map[string]any{"type": []any{"boolean", "null"}}, rapid.SampledFrom([]any{true, false, nil}).Draw(t, "bool")
	case 3:
		return map[string]any{"enum": []any{"x", "y"}}, rapid.SampledFrom([]any{"x", "y"}).Draw(t, "enum")
	case 4:
		item, v := field(t, depth+1)
		return map[string]any{"type": "array", "items": item}, []any{v, v}
	case 5:
		one, v := field(t, depth+1)
		return map[string]any{"oneOf": []any{one, map[string]any{"const": "never drawn"}}}, v
	default:
		return record(t, depth)
	}
}

func record(t *rapid.T, depth int) (doc, value any) {
	fields, values, required := map[string]any{}, map[string]any{}, []any{}
	for _, name := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,3}`), 1, 4, rapid.ID).Draw(t, "names") {
		var v any
		fields[name], v = field(t, depth+1)
		if rapid.Bool().Draw(t, "required") {
			required = append(required, name)
			values[name] = v
		} else if rapid.Bool().Draw(t, "present") {
			values[name] = v
		}
	}
	return map[string]any{"type": "object", "properties": fields, "required": required}, values
}

// filled is a value as a strict dialect has it: null for what is absent.
func filled(doc, value any) any {
	d, _ := doc.(map[string]any)
	if branches, ok := d["oneOf"].([]any); ok {
		return filled(branches[0], value)
	}
	switch v := value.(type) {
	case map[string]any:
		fields, ok := d["properties"].(map[string]any)
		if !ok {
			return value
		}
		out := map[string]any{}
		for name, sub := range fields {
			out[name] = nil
			if given, ok := v[name]; ok {
				out[name] = filled(sub, given)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = filled(d["items"], v[i])
		}
		return out
	}
	return value
}

// What fits the full schema fits each reduced one, as the dialect writes it, and
// comes back as it was.
// TestNumbersOutOfRangeAreNotTolerated: the validator cannot be asked about the rest of an
// answer with such a number, so that nothing of it is used.
func TestNumbersOutOfRangeAreNotTolerated(t *testing.T) {
	s := schema(t, receipt).Tolerating(regexp.MustCompile(`^/total$`))
	if got, _, ok := s.Salvage([]byte(`{"company":"x","total":-1}`)); !ok {
		t.Errorf("got %s, %v; want an answer with a total that is tolerated", got, ok)
	}
	if got, _, ok := s.Salvage([]byte(`{"company":"x","total":1e2000000}`)); ok {
		t.Errorf("%s was salvaged", got)
	}
}

// A schema is written in one go, however deep it is nested.
func TestDeepSchemasAreWrittenOnce(t *testing.T) {
	doc := `{"type":"string","description":"` + strings.Repeat("x", 10_000) + `"}`
	for range 40 {
		doc = `{"type":"object","properties":{"a":` + doc + `},"required":["a"],"additionalProperties":false}`
	}
	s, err := llm.NewSchema("deep", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	written := s.Document()
	runtime.ReadMemStats(&after)
	if string(written) != doc {
		t.Errorf("written as %.200s", written)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(10*len(doc)) {
		t.Errorf("%d bytes are written in %d bytes of memory", len(doc), took)
	}
}

// TestRecursiveSchemasEnd: a schema whose branches refer to itself is given up after some
// steps, and the answer is judged with its nulls. Without a bound the steps take longer than
// the test may.
func TestRecursiveSchemasEnd(t *testing.T) {
	testenv.Raced(t)

	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		for name, doc := range map[string]string{
			"value": `{"type":"object","properties":{"a":{"type":"integer"},"b":{"$ref":"#/$defs/f"}},"$defs":{"f":{"KEYWORD":[{"$ref":"#/$defs/f"},{"$ref":"#/$defs/f"}]}}}`,
			"null":  `{"type":"object","properties":{"a":{"type":"integer"},"c":{"$ref":"#/$defs/f"}},"$defs":{"f":{"KEYWORD":[{"const":1},{"$ref":"#/$defs/f"},{"$ref":"#/$defs/f"}]}}}`,
		} {
			t.Run(keyword+"/"+name, func(t *testing.T) {
				s := schema(t, strings.ReplaceAll(doc, "KEYWORD", keyword))
				checked := make(chan error, 1)
				go func() {
					_, err := s.Check([]byte(`{"a":"x","b":[1],"c":null}`))
					checked <- err
				}()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				select {
				case err := <-checked:
					if _, ok := errors.AsType[*llm.MismatchError](err); !ok || !strings.Contains(err.Error(), "/a: ") {
						t.Errorf("error %v, want a mismatch about a", err)
					}
				case <-ctx.Done():
					t.Fatal("the check does not end")
				}
			})
		}
	}
}

// TestNullsOfLongAnswersArePruned: the bound of the steps is above what answers take.
func TestNullsOfLongAnswersArePruned(t *testing.T) {
	s := schema(t, `{"type":"array","items":{"$ref":"#/$defs/r"},"$defs":{"r":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}}}}}`)
	const n = 15_000
	got, err := s.Check([]byte(`{"answer":[` + strings.Repeat(`{"a":1,"b":null},`, n-1) + `{"a":1,"b":null}]}`))
	if err != nil || strings.Count(string(got), `{"a":1}`) != n {
		t.Errorf("%d of %d were pruned, %v", strings.Count(string(got), `{"a":1}`), n, err)
	}
}

func TestDialectsLoseNothing(t *testing.T) {
	all := dialects(t)
	rapid.Check(t, func(t *rapid.T) {
		doc, value := record(t, 0)
		full, err := llm.NewSchema("full", must(json.Marshal(doc)))
		if err != nil {
			t.Fatal(err)
		}
		for name, d := range all {
			raw, err := full.In(d)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			reduced, err := llm.NewSchema("reduced", raw)
			if err != nil {
				t.Fatalf("%s: the reduced schema is none: %v\n%s", name, err, raw)
			}
			said := value
			if d.AllRequired {
				said = filled(doc, value)
			}
			answer := must(json.Marshal(said))
			if _, err := reduced.Check(answer); err != nil {
				t.Fatalf("%s: %s does not fit the reduced schema %s: %v", name, answer, raw, err)
			}
			if _, err := full.Check(answer); err != nil {
				t.Fatalf("%s: %s does not fit %s: %v", name, answer, must(json.Marshal(doc)), err)
			}
			again, err := full.In(d)
			if err != nil || string(again) != string(raw) {
				t.Fatalf("%s: the second time it is %s (%v), not %s", name, again, err, raw)
			}
		}
	})
}

func must(raw []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return raw
}

// FuzzCheck looks for answers that break the reader, and for accepted ones that
// are not stable.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{goodReceipt, `{"answer":[]}`, "```json\n{}\n```", `{"company":"\ud800","total":1e999}`, strings.Repeat("[", 300)} {
		f.Add([]byte(seed))
	}
	s := schema(f, receipt)
	f.Fuzz(func(t *testing.T, answer []byte) {
		got, err := s.Check(answer)
		if err != nil {
			return
		}
		again, err := s.Check(got)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s came back as %s, and that as %s (%v)", answer, got, again, err)
		}
	})
}
