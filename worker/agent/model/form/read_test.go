package form_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/worker/agent/model/form"
	"github.com/coditect/mapreduce/worker/llm/answer"
)

// A finding is a value with the quotes that show it, as a test compares them.
type finding struct {
	Value  any
	Quotes []string
}

// A record is the findings of a record by field.
type record map[string][]finding

func say(value any, quotes ...string) finding { return finding{value, quotes} }

// truths are answers that models give to some schemas, as they should be.
var truths = []struct {
	name, schema string
	records      []record
}{
	{
		"receipt", `{"type":"object","properties":{"vendor":{"type":"string"},"total":{"type":"number"},"paid":{"type":"boolean"},"status":{"type":"string","enum":["in full","open","overdue"]}}}`,
		[]record{{"vendor": {say("Acme Ltd", "Acme Ltd")}, "total": {say(json.Number("12.5"), "Total: 12.50")}, "paid": {say(true, "paid")}, "status": {say("overdue", "Status: overdue")}}},
	},
	{
		"texts that look like notation", `{"type":"object","properties":{"title":{"type":"string"},"code":{"type":"string"},"lines":{"type":"array","items":{"type":"string"}}}}`,
		[]record{{"title": {say("Brackets {a} and [b], see #3 // not a comment", "Brackets {a} and [b]")}, "code": {say(`if (x == 'y') { z: 1 }`, "z: 1")}, "lines": {say("One, two: three"), say("O'Neill & Söhne — 金"), say("https://a.example/b?c=d,e")}}},
	},
	{
		"nested", `{"type":"object","properties":{"address":{"type":"object","properties":{"city":{"type":"string"},"zip":{"type":"string"}}},"year":{"type":"integer"}}}`,
		[]record{{"address.city": {say("Oslo", "0150 Oslo")}, "address.zip": {say("0150", "0150 Oslo")}, "year": {say(json.Number("1999"), "in 1999")}}},
	},
	{
		"people", `{"type":"object","properties":{"people":{"type":"array","items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"age":{"type":"integer"}}}}}}`,
		[]record{{"people": {
			say(map[string]any{"name": "Ann Lee", "age": json.Number("41")}, "Ann Lee (41)"),
			say(map[string]any{"name": "Bob Ray", "age": json.Number("7")}, "Bob Ray (7)", "Bob"),
		}}},
	},
	{
		"rows", `{"type":"array","items":{"type":"object","properties":{"item":{"type":"string"},"price":{"type":"number"}}}}`,
		[]record{{"item": {say("Tea", "Tea 3.20")}, "price": {say(json.Number("3.2"), "Tea 3.20")}}, {"item": {say("Cake", "Cake 4")}, "price": {say(json.Number("4"), "Cake 4")}}},
	},
}

// newForm returns the form of answers for a schema.
func newForm(t testing.TB, doc string) *form.Form {
	t.Helper()
	s, err := schema.Parse("s.json", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	f, err := form.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// write returns records as an answer, in the order of the form.
func write(f *form.Form, records []record) answer.Object {
	var all []any
	for _, r := range records {
		var fields answer.Object
		for _, field := range f.Fields {
			found := []any{}
			for _, one := range r[field.Key] {
				quotes := []any{}
				for _, q := range one.Quotes {
					quotes = append(quotes, q)
				}
				found = append(found, answer.Object{{Key: "value", Value: ordered(one.Value)}, {Key: "quotes", Value: quotes}, {Key: "confidence", Value: json.Number("0.9")}})
			}
			fields = append(fields, answer.Member{Key: field.Key, Value: found})
		}
		all = append(all, answer.Object{{Key: "fields", Value: fields}, {Key: "not_found", Value: []any{}}})
	}
	if f.Many() {
		return answer.Object{{Key: "records", Value: all}, {Key: "no_records", Value: ""}}
	}
	return all[0].(answer.Object)
}

// ordered returns a value whose objects have their keys in order.
func ordered(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	var o answer.Object
	for _, key := range slices.Sorted(func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}) {
		o = append(o, answer.Member{Key: key, Value: m[key]})
	}
	return o
}

// read returns what an answer comes to; nil if it cannot be used.
func read(t testing.TB, f *form.Form, text string) ([]record, []answer.Repair) {
	t.Helper()
	r := f.Answer.Read([]byte(text))
	if r.Answer == nil {
		return nil, r.Repairs
	}
	found, _, err := f.ReadAnswer(r.Answer)
	if err != nil {
		t.Fatalf("what was read of %q cannot be used: %v", text, err)
	}
	var out []record
	for _, one := range found {
		rec := record{}
		for key, all := range one.Fields {
			for _, x := range all {
				rec[key] = append(rec[key], finding{x.Value, slices.Clip(x.Quotes)})
			}
		}
		out = append(out, rec)
	}
	return out, r.Repairs
}

// sameRecords compares without regard to lists that are empty or nil.
var sameRecords = cmp.Options{cmp.Transformer("quotes", func(f finding) [2]any { return [2]any{f.Value, fmt.Sprintf("%q", f.Quotes)} })}

// Every kind of broken answer, around every kind of record: what was meant is read, whatever is
// wrong with its notation and around it.
func TestBrokenAnswersAreRead(t *testing.T) {
	cases := 0
	for _, truth := range truths {
		f := newForm(t, truth.schema)
		whole := write(f, truth.records)
		for notation, render := range notations {
			for around, wrap := range surroundings {
				cases++
				text := wrap(render(whole))
				got, _ := read(t, f, text)
				if diff := cmp.Diff(truth.records, got, sameRecords); diff != "" {
					t.Errorf("%s, %s, %s (-want +got):\n%s\n%s", truth.name, notation, around, diff, text)
				}
			}
		}
		for shape, change := range shapes {
			for _, around := range []string{"nothing", "a code block", "thinking"} {
				changed, want, ok := change(f, truth.records)
				if !ok {
					continue
				}
				cases++
				text := surroundings[around](renderJSON(changed))
				got, repairs := read(t, f, text)
				if diff := cmp.Diff(want, got, sameRecords); diff != "" || len(repairs) == 0 {
					t.Errorf("%s, %s, %s: %v (-want +got):\n%s\n%s", truth.name, shape, around, answer.Kinds(repairs), diff, text)
				}
			}
		}
	}
	if cases < 500 {
		t.Errorf("%d cases, want at least 500", cases)
	}
	t.Logf("%d broken answers", cases)
}

// What is cut off holds no value that was not meant, wherever it is cut.
func TestAnswersThatBreakOffHoldNothingWrong(t *testing.T) {
	for _, truth := range truths {
		f := newForm(t, truth.schema)
		text := renderJSON(write(f, truth.records))
		for end := 1; end < len(text); end += 3 {
			r := f.Answer.Read([]byte(text[:end]))
			got, _ := read(t, f, text[:end])
			if got == nil && r.Nearest != nil {
				continue // it is asked again
			}
			for _, rec := range got {
				for key, all := range rec {
					for _, one := range all {
						if !isMeant(truth.records, key, one) {
							t.Fatalf("%s, cut at %d: %s holds %v, which nobody said:\n%s", truth.name, end, key, one, text[:end])
						}
					}
				}
			}
		}
	}
}

func isMeant(records []record, key string, one finding) bool {
	return slices.ContainsFunc(records, func(r record) bool {
		return slices.ContainsFunc(r[key], func(f finding) bool { return cmp.Equal(f.Value, one.Value) })
	})
}

// Answers as people quote them in their reports, in our words, and what was meant.
func TestAnswersThatWereReported(t *testing.T) {
	const schema = `{"type":"object","properties":{"vendor":{"type":"string"},"total":{"type":"number"},"status":{"type":"string","enum":["paid","open","C++","part paid"]}}}`
	f := newForm(t, schema)
	acme := record{"vendor": {say("Acme Ltd")}}
	for name, c := range map[string]struct {
		text string
		want []record // nil if it must not be read
	}{
		"fields without their envelope":      {`{"vendor": "Acme Ltd"}`, []record{acme}},
		"a value with its quotes":            {`{"vendor": {"value": "Acme Ltd", "quotes": "by Acme Ltd"}}`, []record{{"vendor": {say("Acme Ltd", "by Acme Ltd")}}}},
		"keys in another case":               {`{"Fields": {"VENDOR": "Acme Ltd"}, "Not Found": []}`, []record{acme}},
		"in an envelope of its own":          {`{"result": {"fields": {"vendor": "Acme Ltd"}}}`, []record{acme}},
		"as the arguments of a call":         {`{"name": "answer", "arguments": "{\"fields\": {\"vendor\": \"Acme Ltd\"}}"}`, []record{acme}},
		"as a tag":                           {"<tool_call>\n{\"name\": \"answer\", \"arguments\": {\"vendor\": \"Acme Ltd\"}}\n</tool_call>", []record{acme}},
		"as a text":                          {`"{\"vendor\": \"Acme Ltd\"}"`, []record{acme}},
		"in a list of one":                   {`[{"vendor": "Acme Ltd"}]`, []record{acme}},
		"Python":                             {`{'vendor': 'Acme Ltd', 'total': None}`, []record{acme}},
		"NaN":                                {`{"vendor": "Acme Ltd", "total": NaN}`, []record{acme}},
		"a field that the schema lacks":      {`{"vendor": "Acme Ltd", "colour": "red"}`, []record{acme}},
		"a number as a text":                 {`{"total": "12.50"}`, []record{{"total": {say(json.Number("12.50"))}}}},
		"a text as a number":                 {`{"vendor": 17}`, []record{{"vendor": {say("17")}}}},
		"a list where one belongs":           {`{"fields": {"vendor": [{"value": ["Acme Ltd", "Bolt AG"], "quotes": ["Acme Ltd", "Bolt AG"], "confidence": 1}], "total": [], "status": []}, "not_found": []}`, []record{{"vendor": {say("Acme Ltd", "Acme Ltd"), say("Bolt AG", "Bolt AG")}}}},
		"digits in groups":                   {`{"total": 1,234.50, "vendor": "Acme Ltd"}`, []record{{"vendor": {say("Acme Ltd")}, "total": {say(json.Number("1234.50"))}}}},
		"an enumeration in another case":     {`{"status": "PAID"}`, []record{{"status": {say("paid")}}}},
		"an enumeration with a hyphen":       {`{"status": "part-paid"}`, []record{{"status": {say("part paid")}}}},
		"an enumeration that is explained":   {`{"status": "open: nothing was paid yet"}`, nil},
		"an enumeration, and its denial":     {`{"status": "paid - not open"}`, nil},
		"a value that is none of several":    {`{"status": "unpaid"}`, nil},
		"a sign that means something":        {`{"status": "C"}`, nil},
		"what the model considered":          {`<think>{"vendor": "Bolt AG"}</think>`, nil},
		"considered, then said":              {"<think>{\"vendor\": \"Bolt AG\"}?</think>{\"vendor\": \"Acme Ltd\"}", []record{acme}},
		"considered without the first mark":  {"maybe {\"vendor\": \"Bolt AG\"}\n</think>\n{\"vendor\": \"Acme Ltd\"}", []record{acme}},
		"still thinking":                     {`<think>so the vendor is {"vendor": "Bolt AG"}`, nil},
		"a draft, and the last word":         {"{\"vendor\": \"Bolt AG\"}\nWait, that is the customer.\n{\"vendor\": \"Acme Ltd\"}", []record{acme}},
		"something else beside it":           {"The schema {\"type\": \"object\"} asks for a vendor: {\"vendor\": \"Acme Ltd\"}", []record{acme}},
		"dots in place of the rest":          {`{"vendor": "Acme Ltd", ...}`, nil},
		"a mark within a text":               {`{"vendor": "Acme "Best" Ltd", "total": 1}`, []record{{"vendor": {say(`Acme "Best" Ltd`)}, "total": {say(json.Number("1"))}}}},
		"a text that does not end":           {`{"vendor": "Acme Ltd, "total": 12.5}`, nil},
		"a key that stands twice":            {`{"vendor": "Acme Ltd", "vendor": "Bolt AG"}`, nil},
		"a key that stands twice, the same":  {`{"vendor": "Acme Ltd", "vendor": "Acme Ltd"}`, []record{acme}},
		"no brackets":                        {`"vendor": "Acme Ltd"}`, []record{acme}},
		"no JSON":                            {"The vendor is Acme Ltd, and the total is 12.50.", nil},
		"an apology":                         {"I'm sorry, I cannot extract that [1].", nil},
		"a number that is cut":               {`{"vendor": "Acme Ltd", "total": 12`, nil},
		"a text that is cut":                 {`{"total": 12.5, "vendor": "Acme L`, nil},
		"the last bracket is missing":        {`{"fields": {"vendor": "Acme Ltd"}`, []record{acme}},
		"= for :":                            {`{"vendor" = "Acme Ltd"}`, []record{acme}},
		"a confidence in words":              {`{"fields":{"vendor":[{"value":"Acme Ltd","quotes":[],"confidence":"high"}],"total":[],"status":[]},"not_found":[]}`, []record{acme}},
		"a remark of another form":           {`{"fields":{"vendor":["Acme Ltd"]},"not_found":["total",{"field":"colour","reason":"?"}]}`, []record{acme}},
		"typographic marks":                  {`{“vendor”: “Acme Ltd”}`, []record{acme}},
		"an answer of Markdown":              {"**Answer**:\n\n```JSON\n{\n  \"vendor\": \"Acme\\_Ltd\"\n}\n```\n", []record{{"vendor": {say("Acme_Ltd")}}}},
		"harmony":                            {`<|channel|>analysis<|message|>{"vendor":"Bolt AG"}<|end|><|start|>assistant<|channel|>final<|message|>{"vendor":"Acme Ltd"}`, []record{acme}},
		"the schema, and no answer":          {`{"type":"object","properties":{"fields":{"type":"object"}}}`, nil},
		"an empty object":                    {`{}`, nil},
		"a reference in prose, and a record": {`As [1] says: {"vendor": "Acme Ltd"} [2]`, []record{acme}},
	} {
		got, repairs := read(t, f, c.text)
		if diff := cmp.Diff(c.want, got, sameRecords); diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, answer.Kinds(repairs), diff)
		}
	}
}

// Lines of records are one list; a list alone is the records.
func TestRecordsWithoutTheirEnvelope(t *testing.T) {
	truth := truths[len(truths)-1]
	f := newForm(t, truth.schema)
	plain := []record{{"item": {say("Tea")}, "price": {say(json.Number("3.2"))}}, {"item": {say("Cake")}, "price": {say(json.Number("4"))}}}
	for name, text := range map[string]string{
		"lines":              "{\"item\": \"Tea\", \"price\": 3.2}\n{\"item\": \"Cake\", \"price\": 4}",
		"a list":             `[{"item": "Tea", "price": 3.2}, {"item": "Cake", "price": 4}]`,
		"a list in a fence":  "Found:\n```json\n[{\"item\": \"Tea\", \"price\": 3.2}, {\"item\": \"Cake\", \"price\": \"4\"}]\n```",
		"another envelope":   `{"rows": [{"item": "Tea", "price": 3.2}, {"item": "Cake", "price": 4}]}`,
		"fields within each": `{"records": [{"fields": {"item": "Tea", "price": 3.2}}, {"fields": {"item": "Cake", "price": 4}}]}`,
	} {
		got, _ := read(t, f, text)
		if diff := cmp.Diff(plain, got, sameRecords); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got, _ := read(t, f, "{\"item\": \"Tea\", \"price\": 3.2}\n{\"item\": \"Cake\", \"pri"); got != nil {
		t.Errorf("lines that break off were read as %v", got)
	}
}

// Nothing that is read stands in no answer: each value and quote is of the text.
func FuzzRead(f *testing.F) {
	var forms []*form.Form
	for _, truth := range truths {
		one := newForm(f, truth.schema)
		forms = append(forms, one)
		f.Add(renderJSON(write(one, truth.records)))
		f.Add(surroundings["thinking"](notations["single marks"](write(one, truth.records))))
	}
	for _, text := range []string{`{"vendor":"Acme","total":1,234.5,"status":"PAID"}`, `{'a': [1,2,}`, "```json\n{\"x\":\"a\\u00e9\"}\n```", `{"total": .5e3}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, one := range forms {
			got, _ := read(t, one, text)
			for _, rec := range got {
				for key, all := range rec {
					for _, found := range all {
						eachText(found.Value, func(word string) {
							if !holds(text, word) && !isAllowed(one, key, word) {
								t.Errorf("%s holds %q, which is not in the answer %q", key, word, text)
							}
						})
						for _, q := range found.Quotes {
							if !holds(text, q) {
								t.Errorf("%s is shown by %q, which is not in the answer %q", key, q, text)
							}
						}
					}
				}
			}
		}
	})
}

// eachText calls fn for each text, number and word of a value.
func eachText(v any, fn func(string)) {
	switch v := v.(type) {
	case nil:
	case []any:
		for _, one := range v {
			eachText(one, fn)
		}
	case map[string]any:
		for _, one := range v {
			eachText(one, fn)
		}
	default:
		fn(fmt.Sprint(v))
	}
}

// isAllowed reports whether a word is one that the schema has words of its own for.
func isAllowed(f *form.Form, key, word string) bool {
	for _, field := range f.Fields {
		if field.Key == key && (field.Property.Type == schema.Boolean || slices.ContainsFunc(field.Property.Enum, func(v any) bool { return v == word })) {
			return true
		}
	}
	return false
}

// escapes are those of JSON that stand for other characters than they hold.
var escapes = regexp.MustCompile(`\\u[0-9a-fA-F]{4}|\\[bfnrt]`)

// holds reports whether an answer holds a word, as letters and digits in their order.
func holds(text, word string) bool {
	plain := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
				return r
			}
			return -1
		}, s)
	}
	w := plain(word)
	for range 4 { // texts within texts
		if strings.Contains(plain(text), w) || strings.Contains(plain(text), strings.TrimLeft(w, "0")) {
			return true
		}
		text = escapes.ReplaceAllStringFunc(text, func(e string) string {
			n, err := strconv.ParseUint(strings.TrimPrefix(e, `\u`), 16, 16)
			if err != nil {
				return " " // a line break and the like
			}
			return string(rune(n))
		})
	}
	return false
}
