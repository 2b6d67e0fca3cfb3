package steps_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	docs "github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/pdf"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/worker/agent/model/form"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// A scholar knows what a document says, by the truth about it, and the line in which a reader would show each value.
type scholar struct {
	schema      *schema.Schema
	form        *form.Form
	text, lower string
	long, short []any               // records, with quotes and without
	passages    map[string][]string // by "key: value"
	values      int64
}

// passage returns the first line in which a value stands, as it is or as numbers are written in reports; "" if none does.
func (s *scholar) passage(v any) string {
	var tries []string
	switch v := v.(type) {
	case string:
		tries = []string{v}
	case json.Number:
		tries = []string{v.String(), grouped(v.String()), grouped(strings.TrimSuffix(v.String(), "000000"))}
	}

	for _, want := range tries {
		want = strings.ToLower(strings.TrimSpace(want))
		i := strings.Index(s.lower, want)
		if want == "" || i < 0 {
			continue
		}
		begin := strings.LastIndexByte(s.text[:i], '\n') + 1
		end := i + len(want)
		if n := strings.IndexByte(s.text[end:], '\n'); n >= 0 {
			end += n
		} else {
			end = len(s.text)
		}
		return strings.TrimSpace(s.text[begin:end])
	}
	return ""
}

// grouped writes a number with commas, and one below zero in brackets.
func grouped(number string) string {
	digits, below := strings.CutPrefix(number, "-")
	head, tail, _ := strings.Cut(digits, ".")
	out := ""
	for len(head) > 3 {
		out = "," + head[len(head)-3:] + out
		head = head[:len(head)-3]
	}
	if out = head + out; tail != "" {
		out += "." + tail
	}
	if below {
		out = "(" + out + ")"
	}
	return out
}

// mostQuotes bounds the quotes of a value with many parts.
const mostQuotes = 6

// passagesOf returns where the parts of a value stand.
func (s *scholar) passagesOf(v any) (all []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) { // so that both ways of asking show the same parts
			all = append(all, s.passagesOf(v[name])...)
		}
	case []any:
		for _, part := range v {
			all = append(all, s.passagesOf(part)...)
		}
	default:
		if one := s.passage(v); one != "" {
			all = append(all, one)
		}
	}
	return all[:min(len(all), mostQuotes)]
}

// learn has the scholar know a record.
func (s *scholar) learn(values map[string]any) {
	long, short := map[string]any{}, map[string]any{}
	for _, f := range s.form.Fields {
		quoted, plain := []any{}, []any{}
		for _, v := range toldOf(f, values[f.Path]) {
			quotes := append([]string{}, s.passagesOf(v)...)
			raw, err := json.Marshal(v)
			if err != nil {
				panic(err) // it was decoded from JSON
			}
			if len(quotes) > 0 {
				s.passages[f.Key+": "+string(raw[:min(len(raw), 100)])] = quotes
			}
			quoted = append(quoted, map[string]any{"value": v, "quotes": quotes, "confidence": 0.95})
			plain = append(plain, v)
			s.values++
		}
		long[f.Key], short[f.Key] = quoted, plain
	}
	s.long = append(s.long, map[string]any{"fields": long, "not_found": []any{}})
	s.short = append(s.short, map[string]any{"fields": short})
}

// toldOf returns the values of a field as a model writes them.
func toldOf(f form.Field, v any) []any {
	p := f.Property
	items, isList := v.([]any)
	switch {
	case v == nil:
		return nil
	case isList && p.Type == schema.Array:
		told := make([]any, 0, len(items))
		for _, item := range items {
			told = append(told, form.Told(p.Items, item))
		}
		return told
	}

	told := form.Told(p, v)
	if entries, ok := told.([]any); ok && p.Type == schema.Map {
		return entries
	}
	return []any{told}
}

// reply answers a call of either way of asking, and one about where values stand.
func (s *scholar) reply(c fakellm.Call) fakellm.Reply {
	var v any
	switch {
	case len(c.Turns) > 1:
		v = map[string]any{"places": s.places(c.Prompt())}
	case strings.Contains(string(c.Schema), "quotes"):
		v = s.shaped(s.long)
	default:
		v = s.shaped(s.short)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps and lists
	}
	return fakellm.Reply{Text: string(raw)}
}

func (s *scholar) shaped(all []any) any {
	if s.form.Many() {
		return map[string]any{"records": all, "no_records": ""}
	}
	return all[0]
}

// places answers where values stand.
func (s *scholar) places(prompt string) (all []any) {
	for line := range strings.Lines(strings.TrimSpace(prompt)) {
		n := 0
		if _, err := fmt.Sscanf(line, "%d. ", &n); err != nil || n != len(all)+1 {
			continue
		}
		passages := []any{}
		for _, of := range slices.Sorted(maps.Keys(s.passages)) {
			if !strings.Contains(line, of) {
				continue
			}
			for _, q := range s.passages[of] {
				begin, end := q, ""
				if w := strings.Fields(q); len(w) > 12 {
					begin, end = strings.Join(w[:5], " "), strings.Join(w[len(w)-5:], " ")
				}
				passages = append(passages, map[string]string{"begin": begin, "end": end})
			}
			break
		}
		all = append(all, map[string]any{"number": n, "passages": passages})
	}
	return all
}

// rightly counts the cited values of an output, and those of them whose citation is in a line that the scholar would show
// for that field.
func (s *scholar) rightly(out *output.Output) (cited, right int64) {
	of := make(map[string]string) // lines, by path
	for _, f := range s.form.Fields {
		for name, quotes := range s.passages {
			if strings.HasPrefix(name, f.Key+": ") {
				of[f.Path] += strings.Join(quotes, "\n") + "\n"
			}
		}
	}

	for _, e := range out.Entries {
		r := merge.Resolve(s.schema, e.Accumulator)
		for name := range r.Values {
			if len(r.Citations[name]) == 0 {
				continue
			}
			cited++
			quote := out.Citations[r.Citations[name][0]].Quote
			for line := range strings.Lines(of[name]) {
				if line = strings.TrimSpace(line); strings.Contains(line, strings.TrimSpace(quote)) || strings.Contains(quote, line) {
					right++
					break
				}
			}
		}
	}
	return cited, right
}

// scholarOf returns one that knows a document of the set, by the truth beside it; nil if its text cannot be read.
func scholarOf(t *testing.T, s *schema.Schema, gold string) *scholar {
	t.Helper()
	file, err := os.Open(strings.TrimSuffix(gold, ".gold.json") + ".pdf")
	if err != nil {
		return nil
	}
	defer file.Close()
	reader := pdf.New(pdf.Config{})
	defer reader.Close()
	doc, err := reader.Parse(t.Context(), docs.Input{Name: file.Name(), Content: file, MediaType: "application/pdf"})
	if err != nil || len(doc.Text) < 500 {
		return nil
	}

	f, err := form.New(s)
	if err != nil {
		t.Fatal(err)
	}
	k := &scholar{schema: s, form: f, text: doc.Text, lower: strings.ToLower(doc.Text), passages: make(map[string][]string)}
	if len(k.lower) != len(k.text) {
		k.lower = k.text // places in one are places in the other
	}
	raw, err := os.ReadFile(gold)
	if err != nil {
		t.Fatal(err)
	}
	var truth any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&truth); err != nil {
		t.Fatal(err)
	}
	all, isList := truth.([]any)
	if !isList {
		all = []any{truth}
	}
	for _, one := range all {
		if record, ok := one.(map[string]any); ok {
			k.learn(s.Flatten(record))
		}
	}
	return k
}

// reportSchema reads a schema of the set; nil if it is none of a record.
func reportSchema(t *testing.T, path string) *schema.Schema {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var wrapped struct {
		Definition json.RawMessage `json:"schema_definition"`
	}
	if json.Unmarshal(raw, &wrapped) == nil && len(wrapped.Definition) > 0 {
		raw = wrapped.Definition
	}

	s, err := schema.Parse("s.json", raw)
	if err != nil {
		t.Logf("%s: %v", path, err)
		return nil
	}
	return s
}

// What it costs to ask for quotes always, or only where they are needed, of a model that knows the truth about reports,
// contracts and tables with long schemas (ExtractBench), and how many places are right.
func TestShortAnswersOnReports(t *testing.T) {
	testenv.Lengthy(t)

	root := os.Getenv("CODITECT_TESTDATA")
	schemas, err := filepath.Glob(filepath.Join(root, "extract-bench", "dataset", "*", "*", "*-schema.json"))
	if root == "" || err != nil || len(schemas) == 0 {
		t.Skip("CODITECT_TESTDATA names no folder with extract-bench")
	}

	type figures struct{ Documents, Calls, In, Out, Micros, Values, Cited, Right int64 }
	var sum [2]figures
	for _, path := range schemas {
		s := reportSchema(t, path)
		if s == nil {
			continue
		}
		golds, err := filepath.Glob(filepath.Join(filepath.Dir(path), "pdf+gold", "*.gold.json"))
		if err != nil {
			t.Fatal(err)
		}

		for _, gold := range golds {
			var one [2]figures
			answered := true
			for i, quotes := range settings.Quotes() {
				k := scholarOf(t, s, gold)
				if k == nil || len(k.long) == 0 {
					answered = false
					break
				}
				fake := fakellm.New(fakellm.Config{Model: k.reply})
				r := rigOn(t, "anthropic", fake, "http://vendor.test", fake.Transport())
				r.spec.Schema = s.Canonical()
				r.spec.Vars[settings.VarQuotes], r.spec.Vars[settings.VarAnswer] = quotes, "500000"
				out, _, err := r.run(t, k.text)
				if err != nil {
					t.Logf("%s %s: %v", filepath.Base(gold), quotes, err)
					answered = false
					break
				}
				cited, right := k.rightly(out)
				one[i] = figures{1, int64(r.purse.calls), r.purse.spent.In, r.purse.spent.Out, r.purse.cost, k.values, cited, right}
			}
			if !answered {
				continue
			}
			for i := range sum {
				a, b := &sum[i], one[i]
				*a = figures{a.Documents + b.Documents, a.Calls + b.Calls, a.In + b.In, a.Out + b.Out, a.Micros + b.Micros, a.Values + b.Values, a.Cited + b.Cited, a.Right + b.Right}
			}
		}
	}

	for i, quotes := range settings.Quotes() {
		t.Logf("%s: %+v", quotes, sum[i])
	}
	if sum[1].Right < sum[0].Right || sum[1].Micros > sum[0].Micros {
		t.Error("short answers have fewer right places, or cost more")
	}
}
