package steps_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// shortly answers with values alone, and, when it is asked where some stand, with passages: begin, or
// begin and end with dots between.
func shortly(values string, passages map[string]string) func(fakellm.Call) fakellm.Reply {
	return func(c fakellm.Call) fakellm.Reply {
		if len(c.Turns) == 1 {
			return fakellm.Reply{Text: values}
		}
		all := []any{}
		for n, line := range strings.Split(strings.TrimSpace(c.Prompt()), "\n")[1:] {
			_, asked, _ := strings.Cut(line, ". ")
			quotes := []any{}
			for of, passage := range passages {
				if strings.Contains(asked, of) {
					begin, end, _ := strings.Cut(passage, "...")
					quotes = append(quotes, map[string]string{"begin": begin, "end": end})
				}
			}
			all = append(all, map[string]any{"number": n + 1, "passages": quotes})
		}
		raw, err := json.Marshal(map[string]any{"places": all})
		if err != nil {
			panic(err)
		}
		return fakellm.Reply{Text: string(raw)}
	}
}

// quotesOf returns the quotes of an output.
func (r *rig) quotesOf(t *testing.T, text string) []string {
	t.Helper()
	out, _, err := r.run(t, text)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, c := range out.Citations {
		all = append(all, c.Quote)
	}
	slices.Sort(all)
	return all
}

// A value that stands in the document needs no quote of the model's, and no second call.
func TestShortAnswers(t *testing.T) {
	for _, provider := range []string{"anthropic", "openai", "gemini"} {
		r := newRig(t, provider, fakellm.Config{Model: shortly(`{"fields":{"company":["INDAH GIFT & HOME DECO"],"date":["2018-10-19"],"total":[60.3]}}`, nil)})
		r.spec.Vars[settings.VarQuotes] = settings.QuotesAuto
		out, res, err := r.run(t, document)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"company": "INDAH GIFT & HOME DECO", "date": "2018-10-19", "total": json.Number("60.3")}
		if diff := cmp.Diff(want, r.resolved(t, out).Values); diff != "" || len(out.Citations) != 3 {
			t.Errorf("%s: %d citations, values (-want +got):\n%s", provider, len(out.Citations), diff)
		}
		e := r.fake.Entries()
		if len(e) != 1 || res.Size != e[0].Output || strings.Contains(string(e[0].Schema), "quotes") || strings.Contains(e[0].System, "confidence") {
			t.Errorf("%s: %d calls for %d tokens, by the form %s", provider, len(e), res.Size, e[0].Schema)
		}
	}
}

// Of values whose place is not clear the model is asked, once for all, and of no others. A long passage
// is cited by its ends.
func TestPlacesAreAskedAbout(t *testing.T) {
	const text = "INDAH GIFT & HOME DECO\nDATE: 19/10/2018\n60.30 paid with thanks by the customer in cash\nat the till, of which 60.30 was due at once.\n"
	r := newRig(t, "anthropic", fakellm.Config{Model: shortly(`{"fields":{"company":["Indah Gift"],"date":["2018-10-19"],"total":[60.3]}}`,
		map[string]string{"total": "at the till, of which...due at once."})})
	r.spec.Vars[settings.VarQuotes] = settings.QuotesAuto
	got := r.quotesOf(t, text)
	want := []string{"19/10/2018", "INDAH GIFT", "at the till, of which 60.30 was due at once."}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("quotes (-want +got):\n%s", diff)
	}
	e := r.fake.Entries()
	if len(e) != 2 || strings.Contains(e[1].Prompt(), "date") || !strings.Contains(e[1].Prompt(), "1. total: 60.3\n") || r.purse.calls != 2 {
		t.Errorf("%d calls, the last %q", len(e), e[len(e)-1].Prompt())
	}
}

// A passage that does not stand in the document shows nothing, and neither does a call that fails: what
// stands there all the same remains.
func TestPlacesThatAreNone(t *testing.T) {
	const text = "INDAH GIFT & HOME DECO\n60.30\n60.30\n"
	for name, script := range map[string]fakellm.Config{
		"an invented passage": {Model: shortly(`{"fields":{"company":["INDAH GIFT & HOME DECO"],"date":[],"total":[60.3]}}`, map[string]string{"total": "SUM OF ALL 60.30"})},
		"no answer": {
			Model: shortly(`{"fields":{"company":["INDAH GIFT & HOME DECO"],"date":[],"total":[60.3]}}`, nil),
			Fault: func(c fakellm.Call) fakellm.Fault {
				if len(c.Turns) > 1 {
					return fakellm.Refusal
				}
				return fakellm.None
			},
		},
	} {
		r := newRig(t, "anthropic", script)
		r.spec.Vars[settings.VarQuotes] = settings.QuotesAuto
		if diff := cmp.Diff([]string{"INDAH GIFT & HOME DECO"}, r.quotesOf(t, text)); diff != "" {
			t.Errorf("%s: quotes (-want +got):\n%s", name, diff)
		}
	}
}

// A document that is long beside its answer is read once: to read it again would cost more than quotes do.
func TestLongDocumentsAreReadOnce(t *testing.T) {
	r := newRig(t, "anthropic", fakellm.Config{Model: always(goodAnswer())})
	r.spec.Vars[settings.VarQuotes] = settings.QuotesAuto
	got := r.quotesOf(t, document+strings.Repeat("Goods that were sold are not taken back without this slip.\n", 200))
	want := []string{"19/10/2018", "INDAH GIFT & HOME DECO", "TOTAL RM 60.30"}
	if diff := cmp.Diff(want, got); diff != "" || len(r.fake.Entries()) != 1 {
		t.Errorf("%d calls, quotes (-want +got):\n%s", len(r.fake.Entries()), diff)
	}
}

func TestQuotesAreOneOfTwo(t *testing.T) {
	for _, vars := range []map[string]string{
		{settings.VarQuotes: "never"}, {settings.VarQuotes: settings.QuotesAuto, settings.VarGlean: "1"},
	} {
		r := newRig(t, "anthropic", fakellm.Config{})
		r.spec.Vars = vars
		if err := r.bare.Check(&r.spec); err == nil || !strings.Contains(err.Error(), "quotes") {
			t.Errorf("%v: error %v", vars, err)
		}
	}
}
