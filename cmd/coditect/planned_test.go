package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/fakellm/batches"
)

// A teller answers from the truth in whatever form it is asked, and counts tokens as plans do: what is left of the
// difference between a plan and what happened is the plan's.
type teller struct {
	*honest
	count *token.Counter
	docs  map[string]string
}

func newTeller(t *testing.T, dir string) *teller {
	t.Helper()
	h := &teller{honest: newHonest(t, dir), count: token.New(), docs: make(map[string]string)}
	for name := range h.truth {
		text, err := os.ReadFile(filepath.Join(dir, "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		h.docs[name] = string(text)
	}
	return h
}

// value returns what is true of a field, and where it stands; false if it does not.
func (h *teller) value(name, field string) (value any, quote string, ok bool) {
	quote = h.truth[name][field]
	span, found := h.honest.texts[name].Find(quote, -1)
	if quote == "" || !found || !span.Verified() {
		return nil, "", false
	}
	switch field {
	case "total":
		n := json.Number(strings.TrimSpace(strings.TrimPrefix(quote, "RM")))
		return n, quote, json.Valid([]byte(n))
	case "date":
		date, err := h.dates.Normalize(quote)
		return date, quote, err == nil
	}
	return quote, quote, true
}

// askedForm is a line that asks where a value stands.
var askedForm = regexp.MustCompile(`(?m)^(\d+)\. (company|date|address|total): `)

// reply answers a call.
func (h *teller) reply(c fakellm.Call) fakellm.Reply {
	name := documentOf(c)
	if len(c.Turns) > 1 {
		places := []any{}
		for _, m := range askedForm.FindAllStringSubmatch(c.Prompt(), -1) {
			_, quote, _ := h.value(name, m[2])
			places = append(places, map[string]any{"number": json.Number(m[1]), "passages": []any{map[string]string{"begin": lineOf(h.docs[name], quote), "end": ""}}})
		}
		return said(map[string]any{"places": places})
	}

	long, short := map[string]any{}, map[string]any{}
	for _, f := range []string{"company", "date", "address", "total"} {
		long[f], short[f] = []any{}, []any{}
		if v, quote, ok := h.value(name, f); ok {
			long[f], short[f] = finding(v, quote), []any{v}
		}
	}
	if strings.Contains(string(c.Schema), "quotes") {
		return said(map[string]any{"fields": long, "not_found": []any{}})
	}
	return said(map[string]any{"fields": short})
}

// lineOf returns the last line of a text in which words stand.
func lineOf(text, words string) string {
	i := strings.LastIndex(text, words)
	if i < 0 {
		return words
	}
	begin := strings.LastIndexByte(text[:i], '\n') + 1
	end := strings.IndexByte(text[i:], '\n')
	if end < 0 {
		return strings.TrimSpace(text[begin:])
	}
	return strings.TrimSpace(text[begin : i+end])
}

func said(v any) fakellm.Reply {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps and lists
	}
	return fakellm.Reply{Text: string(raw)}
}

// usage tells the tokens of a call as plans count them.
func (h *teller) usage(c fakellm.Call, told map[string]any) {
	text := c.System + string(c.Schema)
	for _, turn := range c.Turns {
		text += turn.Text
	}
	in, out := h.count.Count(text), h.count.Count(h.reply(c).Text)
	if c.Wire == fakellm.OpenAI {
		told["prompt_tokens"], told["completion_tokens"], told["total_tokens"] = in, out, in+out
		delete(told, "prompt_tokens_details")
		delete(told, "completion_tokens_details")
		return
	}
	told["input_tokens"], told["output_tokens"] = in, out
	delete(told, "cache_creation_input_tokens")
	delete(told, "cache_read_input_tokens")
	delete(told, "cache_creation")
}

// goal is how many percent of what a plan said a job may cost more or less.
const goal = 5

// What plans expect of jobs over receipts beside what came of them, for each way of paying less: make plans.
func TestPlansBesideWhatHappened(t *testing.T) {
	testenv.Lengthy(t)
	testenv.SlowOnFDB(t)

	data := os.Getenv("CODITECT_TESTDATA")
	if data == "" || os.Getenv("CODITECT_PLANS") == "" {
		t.Skip("CODITECT_TESTDATA or CODITECT_PLANS is not set: `make plans` runs it")
	}
	data = filepath.Join(data, "receipts")
	h := newTeller(t, data)
	for _, way := range []struct {
		name  string
		flags []string
		tier  string // whose line of the plan says what it costs; "" is the plan itself
	}{
		{name: "as it is"},
		{name: "short answers", flags: []string{"--quotes", "auto"}},
		{name: "batches", flags: []string{"--batch"}},
		{name: "batches with short answers", flags: []string{"--batch", "--quotes", "auto"}},
		{name: "tier flex", flags: []string{"--provider", "openai", "--model", "gpt-5.4-mini", "--tier", "flex"}},
		{name: "tier priority", flags: []string{"--provider", "openai", "--model", "gpt-5.4-mini", "--tier", "priority"}},
		{name: "tier flex with short answers", flags: []string{"--provider", "openai", "--model", "gpt-5.4-mini", "--tier", "flex", "--quotes", "auto"}},
		{"a deadline by which batches return", []string{"--deadline", "6h"}, "batch"},
		{"a deadline too near for batches", []string{"--deadline", "14m"}, "standard"},
		{name: "a cascade", flags: []string{"--cascade", "rules,anthropic/claude-haiku-4-5", "--target", "0.8", "--confidence", "0.9", "--var", "cascade_seed=1"}},
	} {
		t.Run(way.name, func(t *testing.T) {
			s := newStudio(t, fakellm.Config{Model: h.reply, Key: modelKey, Usage: h.usage})
			later := batches.New(batches.Config{
				Wire: fakellm.Anthropic, Key: modelKey, Model: h.reply, Usage: h.usage, Takes: func(int) time.Duration { return 2 * time.Second },
			})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "/batches") {
					later.ServeHTTP(w, r)
					return
				}
				s.fake.ServeHTTP(&tierTeller{ResponseWriter: w, tier: tierOf(t, r)}, r)
			}))
			t.Cleanup(server.Close)
			s.url, s.docs = server.URL, filepath.Join(data, "docs")
			o := s.try([]string{"ANTHROPIC_API_KEY=" + modelKey, "OPENAI_API_KEY=" + modelKey}, slices.Concat([]string{
				"run", "--input", s.docs, "--schema", s.path("schema.yaml"), "--output", s.path("out"), "--max-attempts", "10",
				"--provider", "anthropic", "--model", "claude-haiku-4-5", "--base-url", s.url,
			}, way.flags)...)
			if o.code != 0 {
				t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
			}

			var told struct {
				Planned struct {
					Calls compared `json:"model_calls"`
					In    compared `json:"tokens_in"`
					Out   compared `json:"tokens_out"`
					Cost  compared `json:"cost"`
				} `json:"planned"`
			}
			raw, err := os.ReadFile(s.path("out/metrics.json"))
			if err != nil {
				t.Fatal(err)
			}
			s.decode(string(raw), &told)
			p := told.Planned
			if way.tier != "" {
				p.Cost.Planned = s.plannedIn(way.tier, way.flags)
				p.Cost.Difference = 100 * (p.Cost.Actual/p.Cost.Planned - 1)
			}
			t.Logf("| %s | %.0f / %.0f | %.0f / %.0f | %.0f / %.0f | $%.4f / $%.4f | %+.1f %% |", way.name,
				p.Calls.Planned, p.Calls.Actual, p.In.Planned, p.In.Actual, p.Out.Planned, p.Out.Actual, p.Cost.Planned, p.Cost.Actual, p.Cost.Difference)
			if p.Cost.Actual == 0 || math.Abs(p.Cost.Difference) > goal {
				t.Errorf("the job cost $%.4f, and its plan said $%.4f: %+.1f %%", p.Cost.Actual, p.Cost.Planned, p.Cost.Difference)
			}
		})
	}
}

// tierOf returns the tier that a call is to be answered in, "" if it names none. The body of the request is read again.
func tierOf(t *testing.T, r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return "" // the caller has left
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var asked struct {
		Tier string `json:"service_tier"`
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		t.Errorf("a call is no JSON: %v", err)
	}
	return asked.Tier
}

// A tierTeller names the tier in the answers of OpenAI's wire, as the vendor does.
type tierTeller struct {
	http.ResponseWriter
	tier string
}

// Write implements http.ResponseWriter.
func (w *tierTeller) Write(p []byte) (int, error) {
	const object = `"object":"chat.completion`
	told := p
	if w.tier != "" {
		told = bytes.ReplaceAll(p, []byte(object), fmt.Appendf(nil, `"service_tier":%q,%s`, w.tier, object))
	}
	if _, err := w.ResponseWriter.Write(told); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush implements http.Flusher.
func (w *tierTeller) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// plannedIn returns what a plan says that the job of ask costs in a tier.
func (s *studio) plannedIn(tier string, flags []string) float64 {
	s.t.Helper()
	args := []string{"plan", "--input", s.docs, "--schema", s.path("schema.yaml"), "--provider", "anthropic", "--model", "claude-haiku-4-5"}
	o := s.try(nil, append(args, flags...)...)
	found := regexp.MustCompile(`(?m)^in the tier ` + tier + `: \$([0-9.]+) expected`).FindStringSubmatch(o.stdout)
	if o.code != 0 || found == nil {
		s.t.Fatalf("the plan does not say what the tier %s costs: exit code %d\n%s%s", tier, o.code, o.stdout, o.stderr)
	}
	cost, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return cost
}

// compared is a number of a plan beside what it came to.
type compared struct {
	Planned    float64 `json:"planned"`
	Actual     float64 `json:"actual"`
	Difference float64 `json:"difference_percent"`
}
