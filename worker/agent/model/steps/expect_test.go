package steps_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker/agent/model/form"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// fieldsOf returns a schema of a record, or of many, with fields of these types.
func fieldsOf(many bool, types ...string) []byte {
	var fields []string
	for i, of := range types {
		fields = append(fields, fmt.Sprintf(`"field%d":{"type":%q}`, i, of))
	}
	one := `{"title":"thing","type":"object","properties":{` + strings.Join(fields, ",") + `}}`
	if many {
		return []byte(`{"title":"things","type":"array","items":` + one + `}`)
	}
	return []byte(one)
}

func parsed(t *testing.T, raw []byte) *schema.Schema {
	t.Helper()
	s, err := schema.Parse("s.json", raw)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A sample is an answer of the form: every field has a value, with a quote unless it is short.
func TestSamplesAreAnswers(t *testing.T) {
	for _, many := range []bool{false, true} {
		s := parsed(t, fieldsOf(many, "string", "string"))
		f, err := form.New(s)
		if err != nil {
			t.Fatal(err)
		}

		for _, short := range []bool{false, true} {
			raw, err := f.Sample(short, 3)
			if err != nil {
				t.Fatal(err)
			}
			answer, read := f.Answer, f.ReadAnswer
			if short {
				if answer, err = f.Short(); err != nil {
					t.Fatal(err)
				}
				read = f.ReadShort
			}
			if _, err := answer.Check(raw); err != nil {
				t.Errorf("%s: %v", raw, err)
			}
			records, _, err := read(raw)
			if want := map[bool]int{false: 1, true: 3}[many]; err != nil || len(records) != want {
				t.Fatalf("%s has %d records, %v, want %d", raw, len(records), err, want)
			}
			for _, r := range records {
				for key, all := range r.Fields {
					if len(all) != 1 || all[0].Value != plan.SampleValue || len(all[0].Quotes) != map[bool]int{false: 1}[short] {
						t.Errorf("%s is %+v", key, all)
					}
				}
			}
		}
	}
}

// Numbers are asked about more often than texts, lists of records always, and derived values never;
// with quotes nothing is.
func TestExpect(t *testing.T) {
	for _, tt := range []struct {
		name   string
		schema []byte
		share  int64
	}{
		{"a text", fieldsOf(false, "string"), 7},
		{"a number", fieldsOf(false, "number"), 58},
		{"three texts and a number, as of receipts", fieldsOf(false, "string", "string", "string", "number"), 66},
		{"many", fieldsOf(true, "string"), 100},
		{"derived", []byte(`{"title":"thing","type":"object","properties":{"a":{"type":"number","x-coditect":{"derived":true}}}}`), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fake := fakellm.New(fakellm.Config{Model: (&knower{}).reply})
			r := rigOn(t, "anthropic", fake, "http://vendor.test", fake.Transport())
			s := parsed(t, tt.schema)
			r.spec.Schema = s.Canonical()
			written, short := r.bare.Expect(&r.spec)
			if written <= 1 || short != nil {
				t.Errorf("with quotes it writes %v for each token, and %+v", written, short)
			}

			r.spec.Vars[settings.VarQuotes] = settings.QuotesAuto
			written, short = r.bare.Expect(&r.spec)
			if short == nil || short.Share != tt.share || short.Most < 1 || short.Prompt < 1 || short.Again <= 0 {
				t.Fatalf("it writes %v for each token, and %+v, want %d of a hundred asked about", written, short, tt.share)
			}
			if tt.share == 0 {
				return // whose quotes are always given
			}
			if short.Written >= written || short.Asked <= 0 || short.Places <= 0 {
				t.Errorf("it writes %v for each token with quotes, and %+v", written, short)
			}
		})
	}
}

// around counts what stands in answers around what a reduce reads of fields with one value and one quote.
type around struct{ fields, tokens int }

func (a *around) add(count *token.Counter, r map[string][]json.RawMessage) {
	for key, all := range r {
		var f struct {
			Value  json.RawMessage
			Quotes []string
		}
		if len(all) != 1 || json.Unmarshal(all[0], &f) != nil || len(f.Quotes) != 1 {
			continue
		}
		a.fields++
		a.tokens += count.Count(fmt.Sprintf("%q:[%s],", key, all[0])) - count.Count(fmt.Sprintf("%s: %s\n  %s\n", key, f.Value, f.Quotes[0]))
	}
}

// A told is what is looked at of an answer.
type told struct {
	Fields  map[string][]json.RawMessage
	Records []struct{ Fields map[string][]json.RawMessage }
}

func (a *around) addAnswer(t *testing.T, raw []byte) {
	t.Helper()
	var one told
	if err := json.Unmarshal(raw, &one); err != nil {
		t.Fatal(err)
	}
	count := token.New()
	a.add(count, one.Fields)
	for _, r := range one.Records {
		a.add(count, r.Fields)
	}
}

// What stands around a value, beside what plans reckon, on receipts and on reports and contracts whose schemas others made.
func TestFormOfAnswers(t *testing.T) {
	testenv.Lengthy(t)

	root := os.Getenv("CODITECT_TESTDATA")
	if root == "" {
		t.Skip("CODITECT_TESTDATA is not set")
	}
	asked := fakellm.Call{Schema: []byte(`"quotes"`)}

	var receipts around
	if file, err := os.Open(filepath.Join(root, "receipts", "truth.jsonl")); err == nil {
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			var truth map[string]string
			if err := json.Unmarshal(lines.Bytes(), &truth); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join(root, "receipts", "docs", truth["document"]))
			if err != nil {
				t.Fatal(err)
			}
			receipts.addAnswer(t, []byte((&knower{truth: truth, text: string(text)}).reply(asked).Text))
		}
		receipts.check(t, "receipts", parsed(t, []byte(shopReceipt)))
	}

	schemas, err := filepath.Glob(filepath.Join(root, "extract-bench", "dataset", "*", "*", "*-schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range schemas {
		s := reportSchema(t, path)
		if s == nil {
			continue
		}
		golds, err := filepath.Glob(filepath.Join(filepath.Dir(path), "pdf+gold", "*.gold.json"))
		if err != nil {
			t.Fatal(err)
		}
		var sum around
		for _, gold := range golds {
			k := scholarOf(t, s, gold)
			if k == nil || len(k.long) == 0 {
				continue
			}
			sum.addAnswer(t, []byte(k.reply(asked).Text))
		}
		sum.check(t, filepath.Base(path), s)
	}
}

// check compares what was counted with what a sample has.
func (a *around) check(t *testing.T, name string, s *schema.Schema) {
	t.Helper()
	f, err := form.New(s)
	if err != nil {
		t.Fatal(err)
	}
	sample, err := f.Sample(false, 1)
	if err != nil {
		t.Fatal(err)
	}

	var want around
	want.addAnswer(t, sample)
	if want.fields == 0 || a.fields < 10 {
		t.Logf("%s: %d fields, which are too few", name, a.fields)
		return
	}
	got, reckoned := float64(a.tokens)/float64(a.fields), float64(want.tokens)/float64(want.fields)
	t.Logf("%s: %.1f tokens around the value and the quote of each of %d fields, %.1f of a sample", name, got, a.fields, reckoned)
	if math.Abs(got-reckoned) > 4 {
		t.Errorf("%s: %.1f tokens stand around a value, and %.1f are reckoned", name, got, reckoned)
	}
}
