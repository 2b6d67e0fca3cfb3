package steps_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/fakellm/twist"
)

// peculiar has all that schemas of users have: names that no vendor takes,
// references, fields that may be null, objects and lists in each other.
const peculiar = `{
	"$defs": {
		"money": {"type": "object", "required": ["amount"], "properties": {
			"amount": {"type": "number", "minimum": 0}, "currency": {"type": ["string", "null"]}}},
		"name": {"type": "string", "minLength": 2}},
	"type": "object",
	"properties": {
		"Name of shop": {"$ref": "#/$defs/name", "description": "As on the sign"},
		"price": {"$ref": "#/$defs/money"},
		"lines": {"type": "array", "items": {"type": "object", "properties": {
			"what": {"$ref": "#/$defs/name"}, "cost": {"$ref": "#/$defs/money"}}}},
		"tags": {"type": "array", "items": {"enum": ["new", "used", null]}},
		"when": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
		"both": {"allOf": [{"type": "string"}, {"maxLength": 40}]},
		"paid": {"type": "boolean"}}}`

const sign = "The Old Shop\nlamp 3.50 EUR, table 20 EUR\nused. 2018-10-19. paid\ntotal 23.50 EUR\n"

func TestPeculiarSchema(t *testing.T) {
	for _, provider := range []string{"anthropic", "openai", "ollama"} {
		t.Run(provider, func(t *testing.T) {
			var form map[string]any
			r := newRig(t, provider, fakellm.Config{Model: func(c fakellm.Call) fakellm.Reply {
				if err := json.Unmarshal(c.Schema, &form); err != nil {
					t.Error(err)
				}
				return fakellm.Reply{Text: answer(map[string]any{
					"field_1":        say("The Old Shop", "The Old Shop"),
					"price.amount":   say(23.5, "23.50 EUR"),
					"price.currency": say("EUR", "23.50 EUR"),
					"lines": append(
						say(map[string]any{"what": "lamp", "cost": map[string]any{"amount": 3.5, "currency": "EUR"}}, "lamp 3.50 EUR"),
						say(map[string]any{"what": "table", "cost": map[string]any{"amount": 20, "currency": "EUR"}}, "table 20 EUR")...),
					"tags": say("used", "used"), "when": say("2018-10-19", "2018-10-19"),
					"both": []any{}, "paid": say(true, "paid"),
				}, "both")}
			}})
			r.spec.Schema = canonical(t, peculiar)
			if err := r.bare.Check(&r.spec); err != nil {
				t.Fatal(err)
			}
			out, _, err := r.run(t, sign)
			if err != nil {
				t.Fatal(err)
			}
			money := func(amount string) map[string]any {
				return map[string]any{"amount": json.Number(amount), "currency": "EUR"}
			}
			want := map[string]any{
				"Name of shop": "The Old Shop", "price.amount": json.Number("23.5"), "price.currency": "EUR",
				"lines": []any{
					map[string]any{"what": "lamp", "cost": money("3.5")}, map[string]any{"what": "table", "cost": money("20")},
				},
				"tags": []any{"used"}, "when": "2018-10-19", "paid": true,
			}
			got := r.resolved(t, out)
			if diff := cmp.Diff(want, got.Values); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			if got.Missing["both"] != "it is torn off" {
				t.Errorf("what is not found is missing because %q", got.Missing["both"])
			}
			raw, err := json.Marshal(form)
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range []string{"x-coditect", "#/$defs"} {
				if strings.Contains(string(raw), word) {
					t.Errorf("the form holds %q", word)
				}
			}
			if !strings.Contains(string(raw), "As on the sign") {
				t.Error("the form lacks the description of a field")
			}
		})
	}
}

// TestAnswersAreCheckedAgainstTheWholeSchema has what a vendor cannot constrain,
// or does not, sent back once.
func TestAnswersAreCheckedAgainstTheWholeSchema(t *testing.T) {
	bad := answer(map[string]any{"company": say("INDAH GIFT & HOME DECO", "INDAH GIFT & HOME DECO"), "date": []any{}, "total": say(-60.3, "60.30")})
	r := newRig(t, "anthropic", fakellm.Config{Model: func(c fakellm.Call) fakellm.Reply {
		if len(c.Turns) > 1 {
			return fakellm.Reply{Text: goodAnswer()}
		}
		return fakellm.Reply{Text: bad}
	}})
	out, _, err := r.run(t, document)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.resolved(t, out); got.Values["total"] != json.Number("60.3") {
		t.Errorf("total %v", got.Values["total"])
	}
	if e := r.fake.Entries(); len(e) != 2 || !strings.Contains(e[1].Prompt(), "/fields/total/0/value") {
		t.Errorf("%d calls; the second should name what is wrong", len(e))
	}
}

// FuzzAnswer takes any answer: whatever it says, the unit ends with an output
// whose citations are true, or with an error.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		goodAnswer(), `{"fields":{"company":[],"date":[],"total":[]},"not_found":[]}`,
		twist.Invent(goodAnswer(), "quotes"), twist.Grow(goodAnswer()), `{}`, `[]`, `null`, "", "```json\n" + goodAnswer() + "\n```",
		answer(map[string]any{"company": say("x\x00y", "IND", "\n", ""), "date": say("2018-99-99", "19/10"), "total": say(1e300, "0")}),
	} {
		f.Add(seed, document)
	}
	var says string
	fake := fakellm.New(fakellm.Config{Piece: 1 << 20, Model: func(fakellm.Call) fakellm.Reply { return fakellm.Reply{Text: says} }})
	r := rigOn(f, "anthropic", fake, "http://model.invalid", direct{fake})
	f.Fuzz(func(t *testing.T, text, document string) {
		if document == "" || len(document) > 4096 {
			return
		}
		says = text
		out, _, err := r.run(t, strings.ToValidUTF8(document, "?"))
		if err == nil && len(out.Entries) != 1 {
			t.Errorf("%d entries of a document that is one record", len(out.Entries))
		}
		if class, _ := agent.Classify(err); err != nil && strings.Contains(err.Error(), check.ErrBreach.Error()) {
			t.Errorf("a breach was left to the last check (class %v): %v", class, err)
		}
	})
}

// A direct transport needs no network.
type direct struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (d direct) RoundTrip(req *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	d.ServeHTTP(rec, req)
	return rec.Result(), nil
}
