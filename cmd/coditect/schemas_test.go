package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// A random draws schemas and documents.
type random struct{ *rand.Rand }

func pick[T any](r random, from ...T) T { return from[r.IntN(len(from))] }

// words are labels of properties, and stand in documents.
var words = []string{"order", "total", "due date", "colour", "contact", "weight", "paid", "term", "site", "sizes", "Größe", "state", "rate", "number", "party"}

// value draws a text for a value: of the kind that a property wants, or of any.
func (r random) value() string {
	n := r.IntN(2000) - 500
	return pick(r,
		fmt.Sprint(n), fmt.Sprintf("%d.%02d", n, r.IntN(100)), fmt.Sprintf("USD %d,%03d.50", r.IntN(90), r.IntN(1000)), "3,5 %", "1e6", "∞", "-0",
		fmt.Sprintf("%d/%d/%d", 1+r.IntN(12), 1+r.IntN(31), 1990+r.IntN(40)), fmt.Sprintf("%04d-%02d-%02d", 1990+r.IntN(40), 1+r.IntN(13), 1+r.IntN(32)),
		"18th day of April, 2001", "2001年4月18日", "soon", "yes", "no", "true", "N/A", "two (2) years", "thirty (31) days",
		"ann@example.org", "not-an@", "https://example.org/a?b=c", "www.example", "red", "BLUE", "gr een", "a", "", strings.Repeat("long ", 60), "e\u0301t\u00e9", "x\u0085y", "München; Köln", "a, b, c",
	)
}

// schema draws a schema of every kind of constraint.
func (r random) schema() map[string]any {
	properties := map[string]any{}
	var names []any
	for i := range 1 + r.IntN(6) {
		name := strings.ReplaceAll(pick(r, words...), " ", "_")
		if properties[name] != nil {
			name = fmt.Sprintf("%s_%d", name, i)
		}
		properties[name] = r.property(2)
		names = append(names, name)
	}
	record := map[string]any{"title": "record", "type": "object", "properties": properties}
	if r.IntN(2) == 0 {
		record["required"] = names[:1+r.IntN(len(names))]
	}
	if r.IntN(4) == 0 && len(names) > 1 {
		record["dependentRequired"] = map[string]any{names[0].(string): []any{names[1]}}
	}
	if r.IntN(6) == 0 {
		record["minProperties"] = 1 + r.IntN(3)
	}
	if r.IntN(6) == 0 {
		record["if"] = map[string]any{"required": []any{names[0]}}
		record["then"] = map[string]any{"properties": map[string]any{names[len(names)-1].(string): r.constraints("string")}}
	}
	if r.IntN(3) == 0 {
		return map[string]any{"title": "records", "type": "array", "items": record}
	}
	return record
}

func (r random) property(depth int) map[string]any {
	kind := pick(r, "string", "string", "number", "integer", "boolean", "array", "object")
	if depth == 0 && (kind == "array" || kind == "object") {
		kind = "string"
	}
	var p map[string]any
	switch kind {
	case "array":
		p = map[string]any{"type": "array", "items": r.property(0)}
		for _, bound := range []string{"minItems", "maxItems"} {
			if r.IntN(3) == 0 {
				p[bound] = 1 + r.IntN(3)
			}
		}
		if r.IntN(3) == 0 {
			p["uniqueItems"] = true
		}
	case "object":
		p = map[string]any{"type": "object", "properties": map[string]any{pick(r, words...): r.property(depth - 1), "inner": r.property(0)}}
		if r.IntN(3) == 0 {
			p["required"] = []any{"inner"}
		}
		return p
	default:
		p = r.constraints(kind)
		p["type"] = kind
		if kind == "string" && r.IntN(2) == 0 {
			p["format"] = pick(r, "date", "date-time", "time", "email", "uri", "duration", "currency", "hostname", "made-up")
		}
	}
	if hints := r.hints(kind); len(hints) > 0 && depth > 0 {
		p["x-coditect"] = hints
	}
	return p
}

// constraints draws what a value of a type has to be.
func (r random) constraints(kind string) map[string]any {
	p := map[string]any{}
	for range r.IntN(3) {
		switch kind {
		case "string":
			switch r.IntN(6) {
			case 0:
				p["minLength"] = r.IntN(8)
			case 1:
				p["maxLength"] = r.IntN(12)
			case 2:
				p["pattern"] = pick(r, "^[A-Z]", "[0-9]$", "^.{2,4}$", "a|b", "^$", `^\S+$`)
			case 3:
				p["enum"] = []any{"red", "blue", "green"}
			case 4:
				p["const"] = pick(r, "red", "yes", "2001-04-18")
			case 5:
				p["not"] = map[string]any{"enum": []any{"red", "soon"}}
			}
		case "number", "integer":
			p[pick(r, "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")] = r.IntN(1000) - 200
			if r.IntN(4) == 0 {
				p["multipleOf"] = 1 + r.IntN(5)
			}
		}
	}
	return p
}

// hints draws where the rules look for a value.
func (r random) hints(kind string) map[string]any {
	h := map[string]any{}
	if r.IntN(2) == 0 {
		h["labels"] = []any{pick(r, words...), pick(r, words...)}
	}
	switch r.IntN(9) {
	case 0:
		h["pattern"] = pick(r, `: (?P<value>.+)$`, `\d+`, `(\w+), (\w+)`, `(?i)total.*`)
	case 1:
		h["lines"] = []any{-1 - r.IntN(4)}
	case 2:
		h["after"] = pick(r, words...) + ":"
	case 3:
		h["before"] = pick(r, words...)
	case 4:
		h["exclude"] = []any{"red", "soon"}
	case 5:
		h["replace"] = map[string]any{"[0-9]": "7"}
	case 6:
		h["values"] = map[string]any{"red": []any{"soon", "yes"}, "violet": []any{"no"}}
	case 7:
		if kind != "array" {
			h["merge"] = pick(r, "vote", "first", "latest", "longest", "highest_confidence")
		}
	}
	return h
}

// document draws a document: entries, a table, prose, or anything.
func (r random) document() string {
	var b strings.Builder
	if r.IntN(5) == 0 {
		b.WriteString(strings.Join(words, ",") + "\n")
		for range 1 + r.IntN(4) {
			cells := make([]string, len(words))
			for i := range cells {
				cells[i] = strconv.Quote(strings.ReplaceAll(r.value(), `"`, ""))
			}
			b.WriteString(strings.Join(cells, ",") + "\n")
		}
		return b.String()
	}
	for range 1 + r.IntN(20) {
		word := pick(r, words...)
		switch r.IntN(4) {
		case 0:
			fmt.Fprintf(&b, "The %s is %s, and %s.\n", word, r.value(), r.value())
		case 1:
			fmt.Fprintf(&b, "%s\n%s\n", strings.ToUpper(word), r.value())
		default:
			fmt.Fprintf(&b, "%s: %s\n", word, r.value())
		}
	}
	return b.String()
}

// loosened returns a schema without what asks for values that may be missing, as a record
// lacks what the documents do not say.
func loosened(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		_, isProperties := v["properties"].(map[string]any)
		for key, inner := range v {
			switch key {
			case "dependentRequired", "minProperties", "x-coditect":
				continue
			case "required":
				if isProperties {
					continue // that of a condition stays
				}
			}
			out[key] = loosened(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = loosened(inner)
		}
		return out
	}
	return v
}

// withoutNulls returns a record as the schema means it: a value that is null is not there,
// and what begins with _ is about the record.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, inner := range v {
			if inner = withoutNulls(inner); inner != nil && !strings.HasPrefix(key, "_") {
				out[key] = inner
			}
		}
		if len(out) == 0 && len(v) > 0 {
			return nil
		}
		return out
	case []any:
		for i := range v {
			v[i] = withoutNulls(v[i])
		}
		return v
	}
	return v
}

// breaches returns what the values of the records of a result break.
func breaches(schema map[string]any, result []byte) (values int, broken error, err error) {
	var file struct {
		Records []map[string]any `json:"aggregated_data"`
	}
	d := json.NewDecoder(bytes.NewReader(result))
	d.UseNumber()
	if err := d.Decode(&file); err != nil {
		return 0, nil, err
	}
	if items, ok := schema["items"].(map[string]any); ok {
		schema = items
	}
	raw, err := json.Marshal(loosened(schema))
	if err != nil {
		return 0, nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return 0, nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("mem:///schema.json", doc); err != nil {
		return 0, nil, err
	}
	validator, err := c.Compile("mem:///schema.json")
	if err != nil {
		return 0, nil, err
	}
	for i, record := range file.Records {
		plain, _ := withoutNulls(record).(map[string]any)
		if plain == nil {
			continue
		}
		values += len(plain)
		if err := validator.Validate(plain); err != nil {
			broken = errors.Join(broken, fmt.Errorf("record %d, %v: %w", i, plain, err))
		}
	}
	return values, broken, nil
}

// Whatever the schema and the documents are, no value of a record breaks the schema, and a
// second run gives the same bytes. `make schemas` tries often.
func TestSchemasAtRandom(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	trials, err := strconv.Atoi(os.Getenv("CODITECT_SCHEMA_TRIALS"))
	if err != nil {
		trials = 12
	}
	ran, values := 0, 0
	for seed := range trials {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			if n, ok := runAtRandom(t, uint64(seed)); ok {
				ran, values = ran+1, values+n
			}
		})
	}
	t.Logf("%d of %d schemas ran, and %d values were found", ran, trials, values)
	if ran < trials*2/3 || values < ran { // about 7 in 10 do not contradict themselves
		t.Errorf("only %d of %d schemas ran, with %d values: the test shows too little", ran, trials, values)
	}
}

// put writes a file, with its folder.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// runAtRandom runs a schema over documents, both drawn by a seed, twice. It returns how many
// values were found, and false if the schema is refused.
func runAtRandom(t *testing.T, seed uint64) (values int, ran bool) {
	r := random{rand.New(rand.NewPCG(seed, 4))}
	dir, schema := t.TempDir(), r.schema()
	raw, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "schema.json"), string(raw))
	for i := range 1 + r.IntN(6) {
		put(t, filepath.Join(dir, "docs", fmt.Sprintf("%d.txt", i)), r.document())
	}
	var results [2]string
	for i := range results {
		out := filepath.Join(dir, fmt.Sprint("out", i))
		code, said := coditect(t, filepath.Join(dir, fmt.Sprint("data", i)), "mapreduce", "run", filepath.Join(dir, "docs"), "--schema", filepath.Join(dir, "schema.json"),
			"--no-report", "--output", out)
		if code == 2 && strings.Contains(said, "--schema") {
			return 0, false // some schemas that are drawn contradict themselves
		}
		if code != 0 {
			t.Fatalf("exit code %d\n%s\n%s\n%s", code, said, readFile(t, filepath.Join(out, "units.jsonl")), raw)
		}
		results[i] = settled(readFile(t, filepath.Join(out, "result.json")))
	}
	if results[0] != results[1] {
		t.Errorf("two runs differ\n%s", raw)
	}
	values, broken, err := breaches(schema, []byte(results[0]))
	if err != nil || broken != nil {
		t.Errorf("%v\n%s", errors.Join(err, broken), raw)
	}
	return values, true
}
