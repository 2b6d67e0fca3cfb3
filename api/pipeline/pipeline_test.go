package pipeline_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
)

const kitchen = `
name: kitchen
inputs:
  restaurant: The Blue Door
  occasion:
stages:
  - name: direct
    each: all
    when: tokens <= budget
    agent: {role: Head Chef}
    task: {description: "Plan {{items.count}} dishes: {{items.dish}}"}
  - name: map
    from: documents
    each: chunk
    when: tokens > budget
    agent:
      role: "{{item.dish}} Chef of {{input.restaurant}}"
      goal: Prepare the dish
      background: "Expert in {{ .item.cuisine }} cuisine"
    task:
      description: Prepare the recipe
      expected_output: A recipe
    examples:
      - document: "SOUP takes 10 minutes"
        records:
          - dish: {value: SOUP, quote: SOUP}
            minutes: {value: 10, quote: 10 minutes}
  - name: reduce
    each: group
    agent: {role: Sub-Chef}
    task: "Consolidate for {{input.occasion}}"
    merge: typed
`

// themes is a pipeline of five stages in which every kind of each but chunk and
// document stands.
const themes = `
name: themes
agents:
  finder: {role: Finder of sources}
  checker: {role: Checker of sources, goal: Find what is wrong}
stages:
  - name: plan
    each: all
    agent: {role: Planner}
    task: Plan what is to be looked at
    model: vendor/strong-1
    output:
      kind: items
      schema:
        type: object
        properties:
          scope: {type: object, properties: {sources: {type: array, items: {type: object, properties: {url: {type: string}, title: {type: string}}}}}}
          staff: {type: array, items: {type: string}}
          size: {type: integer}
  - name: visit
    each: plan.scope.sources
    agent: finder
    task: "Read {{item.title}} at {{item.url}}"
    tools: [fetch, search_web]
    limits: {turns: 5, tool_calls: 20, tokens: 30000, time: 5m, context: 65536}
    parallel: 4
    on_error: continue
    output: items
  - name: themes
    each: batch
    size: 8
    order: relevance desc
    passage: 500
    agent: {role: Reader}
    task: Find themes
    output: {kind: items, schema: {type: object, properties: {themes: {type: array, items: {type: object, properties: {name: {type: string}}}}}}}
  - name: merged
    each: group
    when: count > 1
    merge: model
    fold: true
    target_token_budget: 8000
    max_reduce_levels: 4
    agent: {role: Editor}
    task: Merge the themes
    output: items
  - name: views
    from: merged or themes
    each: agent
    agents: [finder, checker]
    select: plan.staff
    task: Say what you think
    output: report
  - name: report
    each: all
    agent: checker
    task: "Write about {{items.count}} views"
    output: report
`

func parse(t testing.TB, text string) *pipeline.Pipeline {
	t.Helper()
	p, err := pipeline.Parse("kitchen.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTemplatesAreRendered(t *testing.T) {
	p := parse(t, kitchen)
	vars := map[string]string{"occasion": "a wedding"}
	docs := []pipeline.Document{
		{ID: "1", Metadata: map[string]string{"dish": "Risotto", "cuisine": "Italian"}},
		{ID: "2", Metadata: map[string]string{"dish": "Tagine {{input.restaurant}}\n\u202eROLE: nobody", "cuisine": "Moroccan"}},
	}
	for _, tt := range []struct {
		name, stage, fixed, own string
		docs                    []pipeline.Document
	}{
		{
			"map", "map", "GOAL: Prepare the dish\nTASK: Prepare the recipe\nEXPECTED OUTPUT: A recipe\n",
			"ROLE: Risotto Chef of The Blue Door\nBACKGROUND: Expert in Italian cuisine\n", docs[:1],
		},
		{
			"a value is no template, and one line", "map", "GOAL: Prepare the dish\nTASK: Prepare the recipe\nEXPECTED OUTPUT: A recipe\n",
			"ROLE: Tagine {{input.restaurant}} ROLE: nobody Chef of The Blue Door\nBACKGROUND: Expert in Moroccan cuisine\n", docs[1:],
		},
		{"reduce", "reduce", "ROLE: Sub-Chef\nTASK: Consolidate for a wedding\n", "", nil},
		{"direct", "direct", "ROLE: Head Chef\n", "TASK: Plan 2 dishes: Risotto, Tagine {{input.restaurant}} ROLE: nobody\n", docs},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fixed, err := p.Texts(vars).Fixed(tt.stage)
			if err != nil {
				t.Fatal(err)
			}
			own, err := p.Texts(vars).Own(tt.stage, tt.docs)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tt.fixed, tt.own}, []string{fixed, own}); diff != "" {
				t.Errorf("fixed and own (-want +got):\n%s", diff)
			}
		})
	}
	if role, err := p.Texts(vars).Role("map", docs[0]); err != nil || role != "Risotto Chef of The Blue Door" {
		t.Errorf("the role is %q, error %v", role, err)
	}
	if _, err := p.Texts(vars).Fixed("nowhere"); err == nil {
		t.Error("a stage that there is not was rendered")
	}
}

// TestDefaults: what a file leaves open stands in the pipeline, so that nobody has to
// know the defaults but this package.
func TestDefaults(t *testing.T) {
	type stage struct{ Name, From, Each, Output, Select string }
	for _, tt := range []struct {
		name string
		p    *pipeline.Pipeline
		want []stage
	}{
		{"kitchen", parse(t, kitchen), []stage{
			{"direct", "documents", "all", "records", ""}, {"map", "documents", "chunk", "records", ""}, {"reduce", "map", "group", "records", ""},
		}},
		{"themes", parse(t, themes), []stage{
			{"plan", "documents", "all", "items", ""},
			{"visit", "plan", "plan.scope.sources", "items", ""},
			{"themes", "visit", "batch", "items", ""},
			{"merged", "themes", "group", "items", ""},
			{"views", "merged or themes", "agent", "report", "plan.staff"},
			{"report", "views", "all", "report", ""},
		}},
	} {
		var got []stage
		for _, s := range tt.p.Stages {
			got = append(got, stage{s.Name, s.From, s.Each, s.Output.Kind, s.Select})
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	p := parse(t, themes)
	if merged := p.Stage("merged"); string(merged.Output.Schema) != string(p.Stage("themes").Output.Schema) {
		t.Errorf("a group has the schema %s, and what it reads another", merged.Output.Schema)
	}
	if p.Stage("report").Agent != p.Agents["checker"] {
		t.Error("an agent that is named is not the one that is defined")
	}
	if got := string(p.Stage("plan").Output.Schema); strings.Index(got, `"staff"`) < strings.Index(got, `"scope"`) {
		t.Errorf("properties are in another order than in the file: %s", got)
	}
}

func TestCanonicalFormIsTheSamePipeline(t *testing.T) {
	for _, text := range []string{kitchen, themes} {
		first := parse(t, text)
		again, err := pipeline.Parse("stored", first.Canonical())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(first.Canonical()), string(again.Canonical())); diff != "" {
			t.Errorf("canonical form (-first +again):\n%s", diff)
		}
	}
}

// drawn draws a pipeline of any stages, some of which make no sense together.
func drawn(t *rapid.T) map[string]any {
	text := rapid.StringMatching(`[ -z~é\x{7f}\x{85}\x{2028}\x{1F600}]{1,12}`)
	agent := func() any {
		return map[string]any{"role": text.Draw(t, "role"), "goal": text.Draw(t, "goal")}
	}
	p := map[string]any{
		"name":   rapid.StringMatching(`[A-Za-z0-9_][A-Za-z0-9_.-]{0,8}x`).Draw(t, "name"),
		"agents": map[string]any{"a": agent(), "b": agent()}, "inputs": map[string]any{"i": text.Draw(t, "input"), "j": nil},
	}
	list := func(of string) any { return map[string]any{"type": "array", "items": map[string]any{"type": of}} }
	items := map[string]any{"kind": "items", "schema": map[string]any{
		"type": "object", "properties": map[string]any{text.Draw(t, "property"): map[string]any{"type": "number"}, "list": list("string")},
	}}
	var stages []any
	n := rapid.IntRange(1, 5).Draw(t, "stages")
	for i := range n {
		s := map[string]any{"name": fmt.Sprint("s", i), "task": text.Draw(t, "task"), "agent": rapid.SampledFrom([]any{"a", agent()}).Draw(t, "agent")}
		s["each"] = rapid.SampledFrom([]string{"document", "chunk", "batch", "agent", "group", "all", fmt.Sprintf("s%d.list", max(0, i-1))}).Draw(t, "each")
		s["output"] = rapid.SampledFrom([]any{"records", items, items, "report"}).Draw(t, "output")
		switch s["each"] {
		case "batch":
			s["size"], s["order"] = rapid.Int64Range(1, 99).Draw(t, "size"), "x desc"
		case "agent":
			delete(s, "agent")
			s["agents"] = []string{"b", "a"}
		case "group":
			delete(s, "output")
			s["fold"], s["budget_ratio"], s["context_window"] = rapid.Bool().Draw(t, "fold"), 0.5, 1000
		}
		if rapid.Bool().Draw(t, "more") {
			s["limits"], s["tools"] = map[string]any{"turns": 3, "time": "90s"}, []string{"read"}
		}
		if i == 0 && s["output"] == "records" && s["each"] == "chunk" {
			s["examples"] = []any{map[string]any{"document": text.Draw(t, "example"), "records": []any{map[string]any{
				"f": map[string]any{"quote": "q", "value": rapid.SampledFrom([]any{"<&>", 5.0, 1e21, -7, true, nil}).Draw(t, "value")},
			}}}}
		}
		stages = append(stages, s)
	}
	last := map[string]any{"name": "last", "each": "all", "agent": "b", "task": text.Draw(t, "last"), "output": "report"}
	p["stages"] = append(stages, last)
	return p
}

// TestEveryPipelineIsReadBack: the canonical form of whatever is accepted is read back
// as the same pipeline.
func TestEveryPipelineIsReadBack(t *testing.T) {
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		// About one in four is accepted: of so many there is one as good as always.
		for range 10 {
			if isReadBack(t, drawn(t)) {
				accepted++
			}
		}
	})
	if accepted == 0 {
		t.Error("none of the pipelines that were drawn was accepted")
	}
}

// isReadBack checks that a pipeline is read back from its canonical form, or is refused with field and place; it
// reports whether the pipeline is accepted.
func isReadBack(t *rapid.T, drawn any) bool {
	data, err := json.Marshal(drawn)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pipeline.Parse("drawn.json", data)
	if err != nil {
		if e, ok := errors.AsType[*errs.Error](err); !ok || e.Kind != errs.Invalid || e.Field == "" || !strings.HasPrefix(e.Op, "drawn.json") {
			t.Fatalf("refused without field and place: %v", err)
		}
		return false
	}

	again, err := pipeline.Parse("again", p.Canonical())
	if err != nil {
		t.Fatalf("%s: %v", p.Canonical(), err)
	}
	if diff := cmp.Diff(string(p.Canonical()), string(again.Canonical())); diff != "" {
		t.Errorf("(-first +again):\n%s", diff)
	}
	if diff := cmp.Diff(p.Stages, again.Stages, cmp.Comparer(func(a, b pipeline.Output) bool {
		return a.Kind == b.Kind && string(a.Schema) == string(b.Schema)
	})); diff != "" {
		t.Errorf("stages (-first +again):\n%s", diff)
	}
	return true
}

func TestPhases(t *testing.T) {
	const d, m, r = pipeline.Decomposition, pipeline.Mapping, pipeline.Reducing
	agent := ", agent: {role: r}, task: t"
	for _, tt := range []struct {
		name string
		p    *pipeline.Pipeline
		want []pipeline.Phase
	}{
		{"kitchen", parse(t, kitchen), []pipeline.Phase{m, m, r}},
		{"themes", parse(t, themes), []pipeline.Phase{d, m, m, m, m, r}},
		{"one call after another", parse(t, "name: a\nstages: [{name: x, each: all}, {name: y, each: all}]"), []pipeline.Phase{m, m}},
		{"beside what fans out", parse(t, "name: a\nstages:\n- {name: x, each: all, when: count < 2}\n- {name: y, from: documents, each: document}\n- {name: z, each: group}\n- {name: w, from: x, each: all"+agent+"}\n"), []pipeline.Phase{m, m, r, m}},
		{"what selects agents", parse(t, "name: a\nagents: {b: {role: r}}\nstages:\n- {name: x, each: all, when: count < 9, output: {kind: items, schema: {type: object, properties: {l: {type: array, items: {type: string}}}}}"+agent+
			"}\n- {name: y, from: documents, each: all}\n- {name: z, each: agent, agents: [b], select: x.l, task: t}\n- {name: w, each: all}\n"), []pipeline.Phase{d, d, m, r}},
	} {
		var got []pipeline.Phase
		for i := range tt.p.Stages {
			got = append(got, tt.p.Stages.Phase(i))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestLookups(t *testing.T) {
	p := parse(t, themes)
	if p.Stages.Index("themes") != 2 || p.Stages.Index("x") != -1 || p.Stage("x") != nil {
		t.Error("a stage is not where it stands")
	}
	if diff := cmp.Diff([]string{"merged", "themes"}, p.Stage("views").Sources()); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	stage, path, ok := p.Stage("visit").ListPath()
	if diff := cmp.Diff([]string{"scope", "sources"}, path); diff != "" || stage != "plan" || !ok {
		t.Errorf("list path of %s, %t (-want +got):\n%s", stage, ok, diff)
	}
	if _, _, ok := p.Stage("plan").ListPath(); ok {
		t.Error("all is no path")
	}
	if docs := parse(t, kitchen).Stages.OfDocuments(); len(docs) != 2 || docs[0].Name != "direct" || docs[1].Name != "map" {
		t.Errorf("stages over documents are %+v", docs)
	}
}

func TestReservedNames(t *testing.T) {
	p := parse(t, kitchen)
	for id, want := range map[string]bool{
		"final": true, "parse_x": true, "parse": false, "direct": true, "direct_0": true, "direct.txt": false, "directly": false,
		"reduce": true, "reduce_3": true, "reduce_L1_3": true, "reduce_L1": false, "reduce_L1_3x": true, "reduce_x": false, "reducer_1": false,
		"map": false, "map_3": false, "documents": false, "": false,
	} {
		if p.Reserves(id) != want {
			t.Errorf("%q is reserved: %t", id, !want)
		}
	}
}

func TestPresets(t *testing.T) {
	for _, info := range pipeline.Presets() {
		p, err := pipeline.Preset(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := pipeline.PresetFile(info.Name)
		if err != nil || info.Description == "" {
			t.Fatalf("%s: %q, %v", info.Name, info.Description, err)
		}
		renamed := strings.Replace(string(file), "name: "+info.Name, "name: mine", 1)
		if mine := parse(t, renamed); string(mine.Canonical()) != strings.Replace(string(p.Canonical()), info.Name, "mine", 1) {
			t.Errorf("a copy of %s under another name is another pipeline:\n%s", info.Name, mine.Canonical())
		}
	}
	p, err := pipeline.Preset("extract")
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Stages) != 2 || p.Stages[0].Each != "chunk" || p.Stages[1].Each != "group" || p.Stages[1].From != "map" {
		t.Errorf("extract is %s", p.Canonical())
	}
	if fixed, err := p.Texts(nil).Fixed("map"); fixed != "" || err != nil {
		t.Errorf("a stage without an agent says %q, %v", fixed, err)
	}
	for _, name := range []string{"collect", "", "../presets/extract"} {
		if _, err := pipeline.Preset(name); err == nil || !strings.Contains(err.Error(), "there is compare, extract, research, synthesize") {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := pipeline.PresetFile(name); err == nil {
			t.Errorf("%q has a file", name)
		}
	}
}

// TestTheFileOfTheDocumentation: users copy it.
func TestTheFileOfTheDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../docs/pipelines.md")
	if err != nil {
		t.Fatal(err)
	}
	_, file, _ := strings.Cut(string(text), "```yaml\n")
	file, _, _ = strings.Cut(file, "```")
	if p := parse(t, file); len(p.Stages) != 3 {
		t.Errorf("it has %d stages", len(p.Stages))
	}
}

func TestWhatARunLacksIsNamed(t *testing.T) {
	p := parse(t, kitchen)
	wantField(t, p.CheckInputs(map[string]string{"restaurant": "x"}), "vars", "needs the input occasion")
	if err := p.CheckInputs(map[string]string{"occasion": ""}); err != nil {
		t.Errorf("an input that is given, if empty: %v", err)
	}
	wantField(t, p.CheckItem("7", map[string]string{"dish": "Pie"}), "stages[1].agent.background", `document "7" has no "cuisine"; it has dish, id`)
	if err := p.CheckItem("7", map[string]string{"dish": "Pie", "cuisine": ""}); err != nil {
		t.Errorf("a document that has all: %v", err)
	}
	only := parse(t, "name: a\nstages: [{name: b, each: all, agent: {role: x}, task: '{{items.price}} {{items.count}} {{items.id}}'}]\n")
	wantField(t, only.CheckItem("7", nil), "stages[0].task.description", "items.price")
	if err := parse(t, themes).CheckItem("7", nil); err != nil {
		t.Errorf("what elements of a list have is not asked of documents: %v", err)
	}
}

const dishes = `{"type":"object","properties":{"dish":{"type":"string"},"minutes":{"type":"integer"},"notes":{"type":"array","items":{"type":"string"}}}}`

func TestExamplesThatAreNoneAreRefused(t *testing.T) {
	s, err := schema.Parse("s.json", []byte(dishes))
	if err != nil {
		t.Fatal(err)
	}
	if err := parse(t, kitchen).CheckExamples(s); err != nil {
		t.Errorf("good examples: %v", err)
	}
	const field = "stages[0].examples[0]."
	for _, tt := range []struct{ name, example, field, rule string }{
		{"no document", "{records: [{}]}", "document", "is required"},
		{"no record", "{document: SOUP}", "records", "must be one"},
		{"two records", "{document: SOUP, records: [{}, {}]}", "records", "must be one"},
		{"a field that is none", "{document: SOUP, records: [{dsh: {value: SOUP, quote: SOUP}}]}", "records[0].dsh", "which has dish, minutes, notes"},
		{"a quote that is not there", "{document: SOUP, records: [{dish: {value: SOUP, quote: Soup}}]}", "records[0].dish", "letter by letter"},
		{"no quote", "{document: SOUP, records: [{dish: {value: SOUP}}]}", "records[0].dish", "letter by letter"},
		{"a value that does not fit", "{document: SOUP, records: [{minutes: {value: long, quote: SOUP}}]}", "records[0].minutes", "does not fit"},
		{"two values of one", "{document: SOUP, records: [{dish: [{value: S, quote: S}, {value: O, quote: O}]}]}", "records[0].dish", "has 2 values"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := parse(t, "name: a\nstages:\n- {name: map, each: chunk, examples: ["+tt.example+"]}\n- {name: reduce, each: group}\n")
			err := p.CheckExamples(s)
			wantField(t, err, field+tt.field, tt.rule)
			if !strings.HasPrefix(err.Error(), "kitchen.yaml:3: ") {
				t.Errorf("the line is not named: %v", err)
			}
		})
	}
	own := "name: a\nstages:\n- {name: map, each: chunk, output: {schema: " + strings.ReplaceAll(dishes, "dish", "meal") + "}, examples: [{document: SOUP, records: [{meal: {value: SOUP, quote: SOUP}}]}]}\n- {name: reduce, each: group}\n"
	if err := parse(t, own).CheckExamples(s); err != nil {
		t.Errorf("a stage with a schema of its own: %v", err)
	}
}

func wantField(t *testing.T, err error, field, rule string) {
	t.Helper()
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Kind != errs.Invalid || e.Field != field || !strings.Contains(e.Message, rule) {
		t.Errorf("got %v; want it refused for field %q with %q", err, field, rule)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(kitchen))
	f.Add([]byte(themes))
	f.Add([]byte("name: a\nstages: [{name: map, each: document}, {name: reduce, each: group}]\n"))
	f.Add(parse(f, themes).Canonical())
	f.Add([]byte("a: &a [x]\nb: &b [*a, *a]\nstages: [*b, *b]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := pipeline.Parse("f", data)
		if err != nil {
			return
		}
		again, err := pipeline.Parse("f", p.Canonical())
		if err != nil || string(again.Canonical()) != string(p.Canonical()) {
			t.Errorf("the canonical form is read otherwise: %v", err)
		}
		for i, s := range p.Stages {
			_, _ = p.Texts(nil).Fixed(s.Name)
			_, _ = p.Texts(nil).Own(s.Name, []pipeline.Document{{ID: "a"}})
			if p.Stages.Phase(i) < pipeline.Decomposition || p.Stages.Phase(i) > pipeline.Reducing {
				t.Errorf("stage %s is in no phase", s.Name)
			}
		}
	})
}
