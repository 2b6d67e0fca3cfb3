package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/fakellm/twist"
)

// An honest model answers from the truth, as far as the text bears it out, and
// for some documents it does not. What it said truly is noted.
type honest struct {
	truth map[string]map[string]string
	texts map[string]*ground.Text
	dates *schema.Property

	mu   sync.Mutex // guards said
	said map[string]int
	docs map[string]bool
}

func newHonest(t *testing.T, dir string) *honest {
	t.Helper()
	s, err := schema.Parse("s.yaml", []byte(receiptSchema))
	if err != nil {
		t.Fatal(err)
	}
	h := &honest{
		truth: map[string]map[string]string{}, texts: map[string]*ground.Text{}, dates: s.Field("date"),
		said: map[string]int{}, docs: map[string]bool{},
	}
	f, err := os.Open(filepath.Join(dir, "truth.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var one map[string]string
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "docs", one["document"]))
		if err != nil {
			t.Fatal(err)
		}
		h.truth[one["document"]], h.texts[one["document"]] = one, ground.New(string(text))
	}
	return h
}

// noise is how a document is treated: of ten, one is misquoted, one invented.
func noise(document string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(document))
	return h.Sum32() % 10
}

func (h *honest) answer(c fakellm.Call) fakellm.Reply {
	name := documentOf(c)
	truth := h.truth[name]
	fields := map[string]any{}

	for _, f := range []string{"company", "date", "address", "total"} {
		quote := truth[f]
		if span, ok := h.texts[name].Find(quote, -1); quote == "" || !ok || !span.Verified() {
			continue
		}
		var value any = quote
		switch f {
		case "total":
			value = json.Number(strings.TrimSpace(strings.TrimPrefix(quote, "RM")))
			if !json.Valid([]byte(value.(json.Number))) {
				continue
			}
		case "date":
			date, err := h.dates.Normalize(quote)
			if err != nil {
				continue
			}
			value = date
		}
		fields[f] = finding(value, quote)

	}
	text := answerOf(fields)
	switch noise(name) {
	case 0:
		return fakellm.Reply{Text: twist.Invent(text, "quotes")}
	case 1:
		return fakellm.Reply{Text: twist.NearMiss(text, "quotes")}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.docs[name] {
		h.docs[name] = true
		for f := range fields {
			if len(fields[f].([]any)) > 0 {
				h.said[f]++
			}
		}
	}
	return fakellm.Reply{Text: text}
}

// TestReceiptsByAModel has receipts extracted by a model that answers from the
// truth, with noise: requirement A11 for real inputs.
func TestReceiptsByAModel(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)
	testenv.SlowOnFDB(t)

	data := os.Getenv("CODITECT_TESTDATA")
	if data == "" {
		t.Skip("CODITECT_TESTDATA is not set")
	}
	data = filepath.Join(data, "receipts")
	h := newHonest(t, data)
	faults := []fakellm.Fault{fakellm.Overloaded, fakellm.MidStream, fakellm.Cut, fakellm.WrongShape}
	s := newStudio(t, fakellm.Config{Model: h.answer, Key: modelKey, Fault: func(c fakellm.Call) fakellm.Fault {
		if c.N%20 == 0 {
			return faults[c.N/20%len(faults)]
		}
		return fakellm.None
	}})
	s.docs = filepath.Join(data, "docs")
	o := s.ask("out", "--max-attempts", "10", "--circuit-breaker-threshold", "1000", "--budget", "50000000")
	if o.code != 0 {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	r := s.result("out")
	s.cites(r)
	var score struct {
		Fields map[string]struct {
			Precision, Recall, F1 float64
			Support               int
		} `json:"fields"`
	}
	s.decode(s.want(0, "eval", "--result", s.path("out/result.json"), "--truth", filepath.Join(data, "truth.jsonl"), "-o", "json"), &score)
	for _, f := range []string{"company", "date", "address", "total"} {
		got := score.Fields[f]
		recall := float64(h.said[f]) / float64(got.Support)
		least := 2 * recall / (1 + recall) // with all that was said being true
		t.Logf("%s: precision %.3f, recall %.3f, F1 %.3f of %d; its answers allow %.3f", f, got.Precision, got.Recall, got.F1, got.Support, least)
		if got.F1 < least-1e-9 {
			t.Errorf("%s: F1 %.4f, and the model's answers allow %.4f", f, got.F1, least)
		}
	}
	s.paid("out")
}

const shopSchema = `title: shops
type: array
items:
  type: object
  properties:
    company: {type: string}
    totals: {type: array, items: {type: number}}
    date: {type: string, format: date}
x-coditect: {key: [company]}
`

var markForm = regexp.MustCompile(`(?m)^<[a-z-]+ [0-9a-f]{12}>\n|\n</[a-z-]+ [0-9a-f]{12}>\n`)

// A ledger reader finds receipts in what a prompt holds of a long document, and
// lies about references when it merges.
type ledgerReader struct {
	*honest
	texts map[string]string

	mu     sync.Mutex // guards the fields below
	found  map[string]bool
	merges int
}

func (l *ledgerReader) answer(c fakellm.Call) fakellm.Reply {
	if strings.Contains(c.System, "Synthesis Agent") {
		return l.merge(c)
	}
	prompt := markForm.ReplaceAllString(c.Prompt(), "")
	type place struct {
		at   int
		name string
	}
	var places []place
	for name, text := range l.texts {
		if at := strings.Index(prompt, text); at >= 0 {
			places = append(places, place{at, name})
		}
	}
	slices.SortFunc(places, func(a, b place) int { return a.at - b.at })
	records := []any{}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range places {
		company, total := l.truth[p.name]["company"], l.truth[p.name]["total"]
		if company == "" || !strings.Contains(l.texts[p.name], company) || !strings.Contains(l.texts[p.name], total) || !json.Valid([]byte(total)) {
			continue
		}
		l.found[p.name] = true
		records = append(records, map[string]any{"not_found": []any{}, "fields": map[string]any{
			"company": finding(company, company), "totals": finding(json.Number(total), total), "date": []any{},
		}})
	}
	raw, err := json.Marshal(map[string]any{"records": records, "no_records": ""})
	if err != nil {
		panic(err)
	}
	return fakellm.Reply{Text: string(raw)}
}

var numberForm = regexp.MustCompile(`(?m)^QUESTION (\d+) \(same\)`)

// merge says of everything that it is the same, by references that it made up.
func (l *ledgerReader) merge(c fakellm.Call) fakellm.Reply {
	l.mu.Lock()
	l.merges++
	l.mu.Unlock()
	answers := []any{}
	for _, m := range numberForm.FindAllStringSubmatch(c.Prompt(), -1) {
		answers = append(answers, map[string]any{
			"question": json.Number(m[1]), "option": 1, "text": "nobody said this", "same": false,
			"refs": []string{"REF_deadbeef"}, "confidence": 1, "reason": "because",
		})
	}
	raw, err := json.Marshal(map[string]any{"answers": answers})
	if err != nil {
		panic(err)
	}
	return fakellm.Reply{Text: string(raw)}
}

// TestLongDocumentsByAModel cuts documents, maps the pieces, and merges what is
// about the same shop over levels: every receipt that the model was shown whole is
// in the result, once, and every citation is true.
func TestLongDocumentsByAModel(t *testing.T) {
	testenv.SlowOnFDB(t)

	data := os.Getenv("CODITECT_TESTDATA")
	if data == "" {
		t.Skip("CODITECT_TESTDATA is not set")
	}
	data = filepath.Join(data, "receipts")
	l := &ledgerReader{honest: newHonest(t, data), texts: map[string]string{}, found: map[string]bool{}}
	s := newStudio(t, fakellm.Config{Model: l.answer, Key: modelKey})
	s.write("schema.yaml", shopSchema)
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range l.truth {
			if !yield(name) {
				return
			}
		}
	})[:120]
	for i := range 4 {
		var book strings.Builder
		for _, name := range names[i*30 : i*30+30] {
			text, err := os.ReadFile(filepath.Join(data, "docs", name))
			if err != nil {
				t.Fatal(err)
			}
			l.texts[name] = string(text)
			book.Write(text)
			book.WriteString("\n\n")
		}
		s.write(fmt.Sprintf("docs/book%d.txt", i), book.String())
	}
	o := s.ask("out", "--max-tokens-per-unit", "3000", "--chunk-overlap", "1400", "--reduce-context-limit", "2000", "--reduce-batch-size", "4")
	if o.code != 0 {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	r := s.result("out")
	s.cites(r)
	s.paid("out")
	want, got := map[string]bool{}, map[string]bool{}
	for name := range l.found {
		want[format.Fold(l.truth[name]["company"])+" "+l.dollars(l.truth[name]["total"])] = true
	}
	for _, rec := range r.Records {
		totals, _ := rec["totals"].([]any)
		for _, total := range totals {
			key := format.Fold(fmt.Sprint(rec["company"])) + " " + l.dollars(fmt.Sprint(total))
			if got[key] {
				t.Errorf("%s is there twice", key)
			}
			got[key] = true
			if !want[key] {
				t.Errorf("%s is not what the model found", key)
			}
		}
	}
	for key := range want {
		if !got[key] {
			t.Errorf("%s is lost", key)
		}
	}
	t.Logf("%d receipts in %d calls, of which %d merged; %d shops", len(l.found), len(s.fake.Entries()), l.merges, len(r.Records))
	if len(l.found) < 60 {
		t.Errorf("the model was shown only %d receipts whole", len(l.found))
	}
}

// dollars is a sum in one spelling.
func (l *ledgerReader) dollars(text string) string {
	var v float64
	if _, err := fmt.Sscan(text, &v); err != nil {
		panic(err)
	}
	return fmt.Sprintf("%.2f", v)
}
