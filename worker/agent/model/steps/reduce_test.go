package steps_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

const company = `{"type":"object","properties":{
	"id":{"type":"string"},
	"seat":{"type":"string"},
	"staff":{"type":"number"},
	"profits":{"type":"number","x-coditect":{"merge":"max"}},
	"about":{"type":"string","description":"What it does"},
	"names":{"type":"array","items":{"type":"string"}}},
	"x-coditect":{"key":["id"]}}`

// sources are documents, and what a model finds in them, word for word.
var sources = []map[string]any{
	{
		"id": "C-1", "seat": "Berlin", "staff": 10.0, "profits": 1.0, "names": []string{"ACME Ltd", "Roadrunner Supplies"},
		"about": "The company makes rockets, anvils and giant springs for customers in the deserts of the south west.",
	},
	{
		"id": "C-1", "seat": "Hamburg", "staff": 12.0, "profits": 3.0, "names": []string{"ACME Limited"},
		"about": "It sells by mail order, delivers at once to any place, and has never been known to take anything back.",
	},
}

// write is the text of a source, one value a line.
func write(source map[string]any) string {
	var b strings.Builder
	for _, field := range []string{"id", "seat", "staff", "profits", "about", "names"} {
		if names, ok := source[field].([]string); ok {
			for _, n := range names {
				fmt.Fprintf(&b, "name: %s\n", n)
			}
			continue
		}
		fmt.Fprintf(&b, "%s: %v\n", field, source[field])
	}
	return b.String()
}

// found is what a model finds in the source that a prompt holds.
func found(prompt string) string {
	for _, source := range sources {
		if !strings.Contains(prompt, write(source)) {
			continue
		}
		fields := map[string]any{}
		for field, v := range source {
			if names, ok := v.([]string); ok {
				var all []any
				for _, n := range names {
					all = append(all, say(n, n)...)
				}
				fields[field] = all
				continue
			}
			fields[field] = say(v, fmt.Sprintf("%s: %v", field, v))
		}
		return answer(fields)
	}
	return answer(map[string]any{})
}

// merger is a model that maps by found, and answers questions by decide.
func merger(decide func(c fakellm.Call) []any) func(fakellm.Call) fakellm.Reply {
	return func(c fakellm.Call) fakellm.Reply {
		if !strings.Contains(c.System, "Synthesis Agent") {
			return fakellm.Reply{Text: found(c.Prompt())}
		}
		raw, err := json.Marshal(map[string]any{"answers": decide(c)})
		if err != nil {
			panic(err)
		}
		return fakellm.Reply{Text: string(raw)}
	}
}

// An asked is a question as a model reads it.
type asked struct {
	number  int
	kind    string
	field   string
	options []string
	refs    [][]string
}

var (
	questionForm = regexp.MustCompile(`(?s)QUESTION (\d+) \((\w+)\): field ([^\s,]+)(.*?)\n\n`)
	optionForm   = regexp.MustCompile(`(?s)option \d+: `)
	refForm      = regexp.MustCompile(`REF_[0-9a-f]+`)
)

func questions(c fakellm.Call) []asked {
	var all []asked
	for _, m := range questionForm.FindAllStringSubmatch(c.Prompt(), -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			panic(err)
		}
		q := asked{number: n, kind: m[2], field: m[3], options: optionForm.Split(m[4], -1)[1:]}
		for _, o := range q.options {
			q.refs = append(q.refs, refForm.FindAllString(o, -1))
		}
		all = append(all, q)
	}
	return all
}

func (q asked) answer(change map[string]any) map[string]any {
	a := map[string]any{
		"question": q.number, "option": 0, "text": "", "same": false, "refs": []string{}, "confidence": 0.7, "reason": "it is newer",
	}
	maps.Copy(a, change)
	return a
}

// reduce maps the sources and reduces what was found. It returns the output, and
// how many calls the reduce took.
func (r *rig) reduce(t *testing.T, kind mapreduce.UnitKind) (*output.Output, *agent.Result, int, error) {
	t.Helper()
	task := &agent.Task{Spec: &r.spec, Assignment: protocol.Assignment{Job: "mr_20260101_aaaaaa", Unit: "final", Attempt: 1, Kind: kind, Level: 1}}
	for i, source := range sources {
		one := r.task(write(source))
		name := fmt.Sprintf("%d.txt", i)
		one.Unit, one.Index, one.Text.Document = mapreduce.UnitID(name), int64(i), mapreduce.DocumentID(name)
		res, err := r.agent.Run(t.Context(), one, r.purse)
		if err != nil {
			t.Fatal(err)
		}
		task.Inputs = append(task.Inputs, protocol.Input{Unit: one.Unit, First: int64(i), End: int64(i) + 1, Data: res.Output})
	}
	before := len(r.fake.Entries())
	res, err := r.agent.Run(t.Context(), task, r.purse)
	calls := len(r.fake.Entries()) - before
	if err != nil {
		return nil, nil, calls, err
	}
	out, err := output.Decode(res.Output)
	if err != nil {
		t.Fatal(err)
	}
	return out, res, calls, nil
}

func mergeRig(t *testing.T, decide func(fakellm.Call) []any) *rig {
	t.Helper()
	r := newRig(t, "anthropic", fakellm.Config{Model: merger(decide)})
	r.spec.Schema = canonical(t, company)
	return r
}

const written = "ACME makes rockets, anvils and giant springs [%s] and sells by mail order, delivers at once to any place [%s]."

// sensible decides as a careful reader would.
func sensible(c fakellm.Call) []any {
	var all []any
	for _, q := range questions(c) {
		switch q.kind {
		case "choose":
			all = append(all, q.answer(map[string]any{"option": 2, "refs": q.refs[1]}))
		case "write":
			all = append(all, q.answer(map[string]any{"text": fmt.Sprintf(written, q.refs[0][0], q.refs[1][0]), "refs": []string{q.refs[0][0], q.refs[1][0]}}))
		case "same":
			all = append(all, q.answer(map[string]any{"same": true}))
		}
	}
	return all
}

func TestReduceAsksWhatIsOpen(t *testing.T) {
	var seen []asked
	r := mergeRig(t, func(c fakellm.Call) []any {
		seen = append(seen, questions(c)...)
		return sensible(c)
	})
	out, _, calls, err := r.reduce(t, mapreduce.KindFinal)
	if err != nil || calls != 1 {
		t.Fatalf("%d calls, error %v", calls, err)
	}
	kinds := map[string]string{}
	for _, q := range seen {
		kinds[q.field] = q.kind
	}
	// The key is the same, and the largest profit is what the schema asks for.
	want := map[string]string{"seat": "choose", "staff": "choose", "about": "write", "names": "same"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
	got := r.resolved(t, out)
	if got.Values["seat"] == nil || got.Values["profits"] != json.Number("3") {
		t.Errorf("values %v", got.Values)
	}
	if text, _ := got.Values["about"].(string); !strings.HasPrefix(text, "ACME makes rockets") || len(got.Citations["about"]) != 2 {
		t.Errorf("about %v with %d citations, want the text that was written, with both", got.Values["about"], len(got.Citations["about"]))
	}
	names := got.Values["names"].([]any)
	if len(names) != 2 || len(got.Citations["names"]) != 3 {
		t.Errorf("names %v with %d citations, want two of the three, with all citations", names, len(got.Citations["names"]))
	}
	for _, d := range out.Dropped {
		if d.Field == "seat" && !strings.Contains(d.Reason, "it is newer") {
			t.Errorf("the seat that was not chosen is dropped because %q", d.Reason)
		}
	}
	if len(out.Dropped) != 2 || len(out.Removed) != 0 {
		t.Errorf("%d citations dropped, want those of the other seat and number of staff; removed %v", len(out.Dropped), out.Removed)
	}
}

// TestReduceModes counts the calls of each way to merge.
func TestReduceModes(t *testing.T) {
	for _, tc := range []struct {
		merge string
		kind  mapreduce.UnitKind
		calls int
	}{
		{settings.MergeTyped, mapreduce.KindFinal, 0},
		{settings.MergeBoth, mapreduce.KindReduce, 0},
		{"", mapreduce.KindFinal, 1},
		{settings.MergeModel, mapreduce.KindReduce, 1},
		{settings.MergeModel, mapreduce.KindFinal, 1},
	} {
		t.Run(fmt.Sprint(tc.merge, tc.kind), func(t *testing.T) {
			r := mergeRig(t, sensible)
			if tc.merge != "" {
				r.spec.Vars[settings.VarMerge] = tc.merge
			}
			if _, _, calls, err := r.reduce(t, tc.kind); err != nil || calls != tc.calls {
				t.Errorf("%d calls, error %v; want %d", calls, err, tc.calls)
			}
		})
	}
}

// TestReducerIsNotBelieved has it make things up.
func TestReducerIsNotBelieved(t *testing.T) {
	for name, tc := range map[string]struct {
		lie  func(q asked, other asked) map[string]any
		says string
	}{
		"a reference that was never issued": {
			func(asked, asked) map[string]any {
				return map[string]any{"option": 1, "refs": []string{"REF_deadbeef"}}
			}, "never issued",
		},
		"a reference about something else": {
			func(_, other asked) map[string]any { return map[string]any{"option": 1, "refs": other.refs[0]} }, "another field",
		},
		"a text that follows from nothing": {
			func(q, _ asked) map[string]any {
				return map[string]any{"text": "The founders were convicted of fraud in 1999 and paid nine million", "refs": q.refs[0]}
			}, "does not follow",
		},
		"a text that cites nothing": {
			func(asked, asked) map[string]any { return map[string]any{"text": "The founders are well known"} }, "cites none",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := mergeRig(t, func(c fakellm.Call) []any {
				var all []any
				qs := questions(c)
				for i, q := range qs {
					if q.kind != "same" {
						all = append(all, q.answer(tc.lie(q, qs[(i+1)%len(qs)])))
					}
				}
				return all
			})
			honest := mergeRig(t, sensible)
			honest.spec.Vars[settings.VarMerge] = settings.MergeTyped
			typed, _, _, err := honest.reduce(t, mapreduce.KindFinal)
			if err != nil {
				t.Fatal(err)
			}
			out, _, _, err := r.reduce(t, mapreduce.KindFinal)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(out.Removed, func(x output.Removed) bool { return strings.Contains(x.Reason, tc.says) }) {
				t.Errorf("removed %+v, want one because it %q", out.Removed, tc.says)
			}
			got := r.resolved(t, out)
			if about := got.Values["about"]; about != sources[0]["about"] && about != sources[1]["about"] {
				t.Errorf("about became %v", about)
			}
			for field, ids := range got.Citations {
				for _, id := range ids {
					if !slices.Contains(citationsOf(typed, field), string(id)) {
						t.Errorf("%s gained a citation", field)
					}
				}
			}
		})
	}
}

func citationsOf(o *output.Output, field string) []string {
	var ids []string
	for _, f := range o.Entries[0].Fields {
		if f.Path != field {
			continue
		}
		for _, c := range f.Candidates {
			for _, m := range c.Mentions {
				for _, id := range m.Citations {
					ids = append(ids, string(id))
				}
			}
		}
	}
	return ids
}

// sixtyStatements has the sources say as many things of one company.
func sixtyStatements(t *testing.T) {
	had := sources
	t.Cleanup(func() { sources = had })
	sources = nil
	for i := range 60 {
		about := fmt.Sprintf("Statement number %d says that the company has made things for customers of all kinds in the year %d.", i, 1900+i)
		sources = append(sources, map[string]any{
			"id": "C-1", "seat": "Berlin", "staff": 1.0, "profits": 1.0, "names": []string{"ACME"}, "about": about,
		})
	}
}

// TestReduceFolds has more options than fit into a call.
func TestReduceFolds(t *testing.T) {
	sixtyStatements(t)
	const limit = 3000
	largest := int64(0)
	asked := map[string]bool{}
	r := mergeRig(t, func(c fakellm.Call) []any {
		largest = max(largest, int64(len(c.System)+len(c.Prompt())))
		qs := questions(c)
		if len(qs) != 1 || len(qs[0].options) < 2 {
			t.Errorf("%d questions in a call of a fold", len(qs))
		}
		for _, o := range qs[0].options {
			asked[strings.SplitN(o, "\n", 2)[0]] = true
		}
		return []any{qs[0].answer(map[string]any{"option": len(qs[0].options), "refs": qs[0].refs[len(qs[0].options)-1]})}
	})
	r.spec.ReduceContextLimit = limit
	out, _, calls, err := r.reduce(t, mapreduce.KindFinal)
	if err != nil {
		t.Fatal(err)
	}
	if calls < 2 || len(asked) != 60 || largest > 5*limit {
		t.Errorf("%d calls asked about %d of 60 options, the largest with %d characters", calls, len(asked), largest)
	}
	if got := r.resolved(t, out); got.Values["about"] != sources[59]["about"] {
		t.Errorf("the last one was chosen each time, and it is %v", got.Values["about"])
	}
}

// Options that are asked about in several calls, one of which tells none of its options
// from the others: no option was compared with all, and the model has not decided.
func TestReduceFoldsThatAreNotDecided(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	sixtyStatements(t)
	var values []any
	for _, undecided := range []int{1, 2, 1000} { // the call of a fold that chooses none
		n := 0
		r := mergeRig(t, func(c fakellm.Call) []any {
			qs := questions(c)
			if n++; n == undecided {
				return []any{qs[0].answer(map[string]any{"option": 0})}
			}
			last := len(qs[0].options)
			return []any{qs[0].answer(map[string]any{"option": last, "refs": qs[0].refs[last-1]})}
		})
		r.spec.ReduceContextLimit = 3000
		out, _, calls, err := r.reduce(t, mapreduce.KindFinal)
		if err != nil {
			t.Fatal(err)
		}
		if undecided < 1000 && calls != undecided {
			t.Errorf("%d calls were made, and the fold ended with call %d", calls, undecided)
		}
		values = append(values, r.resolved(t, out).Values["about"])
	}
	if values[0] != values[1] || values[0] == values[2] {
		t.Errorf("undecided the value is %v and %v, and decided %v", values[0], values[1], values[2])
	}
}

// TestReducerWillNot falls back on what the schema decides, if that is allowed.
func TestReducerWillNot(t *testing.T) {
	refuse := func(c fakellm.Call) fakellm.Fault {
		if strings.Contains(c.System, "Synthesis Agent") {
			return fakellm.Refusal
		}
		return fakellm.None
	}
	for _, tc := range []struct {
		merge string
		ok    bool
	}{{settings.MergeBoth, true}, {settings.MergeModel, false}} {
		r := newRig(t, "anthropic", fakellm.Config{Model: merger(sensible), Fault: refuse})
		r.spec.Schema = canonical(t, company)
		r.spec.Vars[settings.VarMerge] = tc.merge
		_, res, _, err := r.reduce(t, mapreduce.KindFinal)
		if (err == nil) != tc.ok {
			t.Errorf("%s: error %v", tc.merge, err)
		}
		if tc.ok && (len(res.Errors) != 1 || !strings.Contains(res.Errors[0], "refused")) {
			t.Errorf("nothing is said about it: %q", res.Errors)
		}
	}
}

// TestNearKeysAreAsked has the model say whether two records are about the same.
func TestNearKeysAreAsked(t *testing.T) {
	had := sources
	t.Cleanup(func() { sources = had })
	sources = nil
	for i, id := range []string{"Acme", "Acme Holding", "Brick Works"} {
		sources = append(sources, map[string]any{
			"id": id, "seat": "Berlin", "staff": 1.0, "profits": float64(i), "names": []string{"ACME"}, "about": "x",
		})
	}
	for _, tc := range []struct {
		merge   string
		same    bool
		calls   int
		entries int // that hold more than one record
	}{
		{settings.MergeBoth, true, 2, 1}, // the second call is about the spelling of the key
		{settings.MergeBoth, false, 1, 0},
		{settings.MergeTyped, true, 0, 0},
	} {
		var seen []asked
		r := mergeRig(t, func(c fakellm.Call) []any {
			var all []any
			for _, q := range questions(c) {
				seen = append(seen, q)
				all = append(all, q.answer(map[string]any{"same": tc.same}))
			}
			return all
		})
		r.spec.Schema = canonical(t, strings.Replace(company, `"key":["id"]`, `"key":["id"],"match":"near"`, 1))
		r.spec.Vars[settings.VarMerge] = tc.merge
		out, _, calls, err := r.reduce(t, mapreduce.KindFinal)
		if err != nil {
			t.Fatal(err)
		}
		merged := 0
		for _, e := range out.Entries {
			if len(e.Members) > 1 {
				merged++
			}
		}
		if calls != tc.calls || merged != tc.entries {
			t.Errorf("%+v: %d calls, and %d records were merged", tc, calls, merged)
		}
		for _, q := range seen[:min(1, len(seen))] {
			if q.kind != "same" || len(q.options) != 2 || !strings.Contains(q.options[0]+q.options[1], "Holding") {
				t.Errorf("%+v: asked %+v", tc, q)
			}
		}
	}
}
