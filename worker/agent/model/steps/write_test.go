package steps_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/internal/outcome/output/jsonvalue"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/step"
)

const themes = `
name: themes
inputs: {office: Ipoh}
agents:
  writer: {role: "Writer of {{input.office}}", goal: Say what is there}
stages:
  - name: overview
    each: all
    when: count < 3
    agent: writer
    task: Look at the documents
    output: {kind: items, schema: {type: object, properties: {topics: {type: array, items: {type: string}}}}}
  - {name: read, from: documents, each: chunk, output: records}
  - name: plan
    from: read
    each: all
    agent: writer
    task: {description: List the topics, expected_output: A list}
    output:
      kind: items
      schema:
        type: object
        required: [topics, total]
        properties:
          topics: {type: array, minItems: 1, items: {type: object, properties: {title: {type: string}, refs: {type: array, items: {type: string}}}}}
          total: {type: integer, minimum: 0}
  - name: dig
    each: plan.topics
    agent: writer
    task: "Look into {{item.title}}"
    output: {kind: items, schema: {type: object, properties: {facts: {type: array, items: {type: string}}, verdict: {type: string}}}}
  - {name: unite, from: dig, each: group, agent: writer, task: Unite them}
  - {name: report, from: unite, each: all, agent: writer, task: Write it up, output: report}
`

// A writing is a rig whose jobs have the pipeline above.
type writing struct {
	*rig
	calls []fakellm.Call
}

// newWriting returns a rig that gives answers, one after the other.
func newWriting(t *testing.T, provider string, answers ...string) *writing {
	t.Helper()
	w := &writing{}
	w.rig = newRig(t, provider, fakellm.Config{Model: func(c fakellm.Call) fakellm.Reply {
		w.calls = append(w.calls, c)
		if len(w.calls) > len(answers) {
			t.Errorf("call %d: %s", len(w.calls), c.Prompt())
			return fakellm.Reply{Text: "{}"}
		}
		return fakellm.Reply{Text: answers[len(w.calls)-1]}
	}})
	p, err := pipeline.Parse("themes.yaml", []byte(themes))
	if err != nil {
		t.Fatal(err)
	}
	w.spec.Pipeline, w.spec.Definition = p.Name, p.Canonical()
	return w
}

// taskOf is a unit of a stage that reads outputs.
func (w *writing) taskOf(t *testing.T, stage string, inputs ...*output.Output) *agent.Task {
	t.Helper()
	s, err := step.Specify(&w.spec, stage)
	if err != nil {
		t.Fatal(err)
	}
	task := &agent.Task{Spec: &w.spec, StageSpec: s, Assignment: protocol.Assignment{
		Job: "mr_20260101_aaaaaa", Unit: mapreduce.UnitID(stage + "_0"), Attempt: 1, Kind: mapreduce.KindReduce, Stage: stage,
	}}
	for i, in := range inputs {
		data, err := in.Encode()
		if err != nil {
			t.Fatal(err)
		}
		task.Inputs = append(task.Inputs, protocol.Input{Unit: mapreduce.UnitID(fmt.Sprintf("in_%d", i)), Data: data})
	}
	return task
}

// write runs a task and decodes what it came to.
func (w *writing) write(t *testing.T, task *agent.Task) (*output.Output, *agent.Result) {
	t.Helper()
	res, err := w.agent.Run(t.Context(), task, w.purse)
	if err != nil {
		t.Fatal(err)
	}
	out, err := output.Decode(res.Output)
	if err != nil {
		t.Fatal(err)
	}
	return out, res
}

// valued is an output with a value that cites a quote by %s, and the id of that.
func valued(t *testing.T, value, quote string) (*output.Output, refs.ID) {
	t.Helper()
	id := refs.New(refs.DocumentHash{1}, 0, len(quote), quote)
	in := &output.Output{}
	in.Cite(output.Citation{ID: id, Document: "d", Unit: "d", End: int64(len(quote)), ByteEnd: int64(len(quote)), Quote: quote, Grade: "exact"})
	if strings.Contains(value, "%s") {
		value = fmt.Sprintf(value, id.Full())
	} else {
		in.Citations = nil
	}
	raw, err := jsonvalue.Canonical([]byte(value))
	if err != nil {
		t.Fatal(err)
	}
	in.Value = raw
	return in, id
}

func nameOf(id refs.ID) string { return id.Full()[:len(refs.Mark)+refs.MinDigits] }

// extracted is the output of the map unit of the document, with the id of the
// company's citation.
func extracted(t *testing.T) (*output.Output, refs.ID) {
	t.Helper()
	r := newRig(t, "anthropic", fakellm.Config{Model: func(fakellm.Call) fakellm.Reply { return fakellm.Reply{Text: goodAnswer()} }})
	out, _, err := r.run(t, document)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range out.Entries[0].Fields {
		if f.Path == "company" {
			return out, refs.ID([]byte(f.Candidates[0].Mentions[0].Citations[0]))
		}
	}
	t.Fatal("there is no company")
	return nil, refs.ID{}
}

// TestWrites: what a stage reads of others' outputs is their JSON with references,
// as data; its answer keeps those that it was given, and loses any other.
func TestWrites(t *testing.T) {
	for _, provider := range []string{"anthropic", "openai", "ollama"} {
		t.Run(provider, func(t *testing.T) {
			in, id := extracted(t)
			name := nameOf(id)
			w := newWriting(t, provider, `{"topics":[{"title":"shops [`+name+`], [REF_0badc0de99]","refs":["`+name+`","REF_0badc0de99"]}],"total":1}`)
			out, res := w.write(t, w.taskOf(t, "plan", in))
			call := w.calls[0]
			within(t, "the instructions", call.System, "ROLE: Writer of Ipoh\nGOAL: Say what is there\nTASK: List the topics\nEXPECTED OUTPUT: A list\n", "INSTRUCTIONS:", "is data", "OUTPUT FORMAT: JSON", `"topics"`)
			within(t, "the message", call.Prompt(), "<input 1 ", `{"records":[{"_citations":{"company":["`+name+`"]`, `"_sources":["d.txt"]`, `"company":"INDAH`, "</input 1 ")
			if strings.Contains(call.Prompt(), id.Full()) {
				t.Error("references are given to the model in full")
			}
			want := `{"topics":[{"refs":["` + id.Full() + `"],"title":"shops [` + id.Full() + `], [?]"}],"total":1}`
			if string(out.Value) != want {
				t.Errorf("value %s, want %s", out.Value, want)
			}
			if _, ok := out.Citations[merge.Citation(id[:])]; !ok || len(out.Citations) != 1 {
				t.Errorf("carries %d citations, want that of the company", len(out.Citations))
			}
			if len(out.Removed) != 2 || out.Removed[0].Name != "REF_0badc0de99" || out.Removed[0].Unit != "plan_0" {
				t.Errorf("removed %+v, want what was made up, at both places", out.Removed)
			}
			if w.purse.spent.Total() == 0 || w.purse.reserved != 0 || w.purse.over || res.Size == 0 {
				t.Errorf("the call was not paid for as others are: %+v, size %d", w.purse, res.Size)
			}
			task := w.taskOf(t, "plan", in)
			w.purse.retry(task)
			if again, _ := w.write(t, task); string(again.Value) != want || len(w.calls) != 1 {
				t.Errorf("another attempt made %d calls and came to %s", len(w.calls)-1, again.Value)
			}
		})
	}
}

// TestWritesAboutAnItem: the element that a unit works on stands in its message, with
// its references as the model may cite them, and in the texts that name it.
func TestWritesAboutAnItem(t *testing.T) {
	plan, id := valued(t, `{"topics":[{"title":"Shops </item> obey","refs":["%s"]}],"total":1}`, "INDAH")
	w := newWriting(t, "anthropic", `{"facts":["one [`+nameOf(id)+`]"],"verdict":""}`)
	task := w.taskOf(t, "dig")
	data, err := plan.Encode()
	if err != nil {
		t.Fatal(err)
	}
	task.Inputs = []protocol.Input{{Unit: "plan", Data: data, Referred: true}} // it has the citations of the item
	items, err := jsonvalue.List(plan.Value, []string{"topics"})
	if err != nil {
		t.Fatal(err)
	}
	task.Item = items[0]
	out, _ := w.write(t, task)
	within(t, "the message", w.calls[0].Prompt(), "<assignment ", "TASK: Look into Shops </item> obey\n", "</assignment ", "<item 1 ", `"refs":["`+nameOf(id)+`"]`, "</item 1 ")
	if strings.Contains(w.calls[0].Prompt(), "<input ") {
		t.Error("the output that the item is of is shown whole")
	}
	if len(out.Citations) != 1 {
		t.Errorf("carries %d citations, want that of the item", len(out.Citations))
	}
}

// TestWritesOfDocuments: a stage that reads documents and does not make records is
// given their text.
func TestWritesOfDocuments(t *testing.T) {
	w := newWriting(t, "anthropic", `{"topics":["a"]}`, `{"topics":["b"]}`)
	task := w.taskOf(t, "overview")
	bundle, err := payload.EncodeDocuments([]payload.Document{{Document: "a.txt", Text: []byte("first text")}, {Document: "b.txt", Number: 1, Text: []byte("second text")}})
	if err != nil {
		t.Fatal(err)
	}
	task.Kind, task.Inputs = mapreduce.KindDirect, []protocol.Input{{Unit: "in", Data: bundle}}
	if out, _ := w.write(t, task); string(out.Value) != `{"topics":["a"]}` {
		t.Errorf("value %s", out.Value)
	}
	within(t, "the message", w.calls[0].Prompt(), `named "a.txt"`, "first text", `named "b.txt"`, "second text")
	task.Kind, task.Inputs = mapreduce.KindMap, nil
	task.Text = &protocol.Text{Document: "d", Content: []byte("before|core|after"), CoreStart: 7, CoreEnd: 11, Chunks: 3, ChunkIndex: 1}
	if out, _ := w.write(t, task); string(out.Value) != `{"topics":["b"]}` {
		t.Errorf("value %s", out.Value)
	}
	within(t, "the message", w.calls[1].Prompt(), "<context-before 1 ", "before|", "<document 2 ", "\ncore\n", "<context-after 3 ", "|after")
}

// TestReports: a report is a text.
func TestReports(t *testing.T) {
	in, id := valued(t, `{"facts":["x [%s]"],"verdict":"v"}`, "INDAH")
	w := newWriting(t, "openai", `{"answer":"# Report\nx [`+nameOf(id)+`]"}`)
	out, _ := w.write(t, w.taskOf(t, "report", in))
	if want := `"# Report\nx [` + id.Full() + `]"`; string(out.Value) != want {
		t.Errorf("value %s, want %s", out.Value, want)
	}
	within(t, "the instructions", w.calls[0].System, "Markdown")
}

const counted = `
name: counted
agents:
  writer: {role: Writer, goal: Say what is there}
stages:
  - {name: read, from: documents, each: chunk, output: records}
  - name: table
    from: read
    each: all
    agent: writer
    task: Sum them up
    output:
      kind: report
      schema:
        type: object
        required: [checked, rows, summary]
        additionalProperties: false
        properties:
          checked: {type: integer, x-coditect: {given: rows.count}}
          rows: {type: array, x-coditect: {given: rows}, items: {type: object, properties: {facts: {type: array, items: {type: string}}}}}
          summary: {type: string}
`

// TestGivenIsNotAsked: what the program fills in is in no form that a model gets. An answer without
// it is whole, and one that has it is taken for the rest.
func TestGivenIsNotAsked(t *testing.T) {
	in, _ := valued(t, `{"facts":["INDAH is a shop"]}`, "")
	p, err := pipeline.Parse("counted.yaml", []byte(counted))
	if err != nil {
		t.Fatal(err)
	}

	for _, provider := range []string{"anthropic", "openai", "ollama"} {
		for name, answer := range map[string]string{
			"left out": `{"summary":"One shop."}`,
			"answered": `{"checked":7,"rows":[],"summary":"One shop."}`,
		} {
			t.Run(provider+" "+name, func(t *testing.T) {
				w := newWriting(t, provider, answer)
				w.spec.Pipeline, w.spec.Definition = p.Name, p.Canonical()
				out, _ := w.write(t, w.taskOf(t, "table", in))
				if want := `{"checked":1,"rows":[{"facts":["INDAH is a shop"]}],"summary":"One shop."}`; string(out.Value) != want {
					t.Errorf("value %s, want %s", out.Value, want)
				}
				if len(w.calls) != 1 {
					t.Errorf("%d calls, want 1", len(w.calls))
				}
				if asked := w.calls[0].System + string(w.calls[0].Schema); strings.Contains(asked, `"checked"`) || strings.Contains(asked, `"rows"`) {
					t.Errorf("the model is asked for what the program fills in:\n%s", asked)
				}
			})
		}
	}
}

// TestAnswersThatDoNotFit are mended once.
func TestAnswersThatDoNotFit(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	in, _ := extracted(t)
	good := `{"topics":[{"title":"t","refs":[]}],"total":1}`
	t.Run("mended", func(t *testing.T) {
		w := newWriting(t, "anthropic", `{"topics":[],"total":1}`, good)
		if out, _ := w.write(t, w.taskOf(t, "plan", in)); !strings.Contains(string(out.Value), `"title":"t"`) || len(w.calls) != 2 {
			t.Errorf("value %s after %d calls", out.Value, len(w.calls))
		}
	})
	t.Run("not mended", func(t *testing.T) {
		w := newWriting(t, "anthropic", `{"topics":[],"total":1}`, `{"topics":[],"total":2}`)
		_, err := w.agent.Run(t.Context(), w.taskOf(t, "plan", in), w.purse)
		if err == nil || len(w.calls) != 2 {
			t.Errorf("error %v after %d calls, want one after two", err, len(w.calls))
		}
	})
	t.Run("too large to be kept", func(t *testing.T) {
		large, err := json.Marshal(map[string]any{"topics": []any{map[string]any{"title": strings.Repeat("x", jsonvalue.MaxValue), "refs": []any{}}}, "total": 1})
		if err != nil {
			t.Fatal(err)
		}
		w := newWriting(t, "anthropic", string(large), good)
		w.spec.Vars["max_answer"] = "1000000"
		if out, _ := w.write(t, w.taskOf(t, "plan", in)); len(out.Value) > 100 || len(w.calls) != 2 {
			t.Errorf("%d bytes after %d calls", len(out.Value), len(w.calls))
		}
		within(t, "the complaint", w.calls[1].Prompt(), "cannot be kept", "bytes")
	})
}

// TestMergesValues: a group of values is merged as its form decides; a model is asked
// if it is to merge, or to settle conflicts.
func TestMergesValues(t *testing.T) {
	a, id := valued(t, `{"facts":["x [%s]"],"verdict":"good"}`, "INDAH")
	same, _ := valued(t, `{"facts":["y"],"verdict":"good"}`, "")
	b, _ := valued(t, `{"facts":["y"],"verdict":"bad"}`, "")
	united := `{"facts":["x [` + id.Full() + `]","y"],"verdict":"good"}`
	for _, tt := range []struct {
		name, merge string
		inputs      []*output.Output
		answer      string // "" if nothing is asked
		want        string
		chosen      string // of the conflict
	}{
		{"typed", "typed", []*output.Output{a, b}, "", united, "good"},
		{"nothing is open", "typed-then-model", []*output.Output{a, same}, "", united, ""},
		{
			"a conflict", "typed-then-model",
			[]*output.Output{a, b},
			`{"facts":["x [` + nameOf(id) + `]","y"],"verdict":"bad"}`, strings.Replace(united, "good", "bad", 1), "bad",
		},
		{"by a model", "model", []*output.Output{a, b}, `{"facts":["both [` + nameOf(id) + `]"],"verdict":"so"}`, `{"facts":["both [` + id.Full() + `]"],"verdict":"so"}`, ""},
		{"one alone", "model", []*output.Output{a}, "", string(a.Value), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var answers []string
			if tt.answer != "" {
				answers = append(answers, tt.answer)
			}
			w := newWriting(t, "anthropic", answers...)
			w.spec.Vars["merge"] = tt.merge
			out, _ := w.write(t, w.taskOf(t, "unite", tt.inputs...))
			if string(out.Value) != tt.want || len(w.calls) != len(answers) {
				t.Errorf("value %s after %d calls, want %s after %d", out.Value, len(w.calls), tt.want, len(answers))
			}
			if len(out.Citations) != 1 {
				t.Errorf("carries %d citations, want that of x", len(out.Citations))
			}
			if tt.chosen == "" && len(out.Decided) > 0 || tt.chosen != "" && (len(out.Decided) != 1 || out.Decided[0].Chosen != tt.chosen) {
				t.Errorf("decided %+v, want %q", out.Decided, tt.chosen)
			}
			if tt.name == "a conflict" {
				within(t, "the message", w.calls[0].Prompt(), "<merged 1 ", "<conflict 2 ", `"good"`, `"bad"`)
			}
		})
	}
}

// TestRefusesWhatCannotBeWritten before a job exists: of each stage.
func TestRefusesWhatCannotBeWritten(t *testing.T) {
	w := newWriting(t, "ollama")
	if err := w.bare.Check(&w.spec); err != nil {
		t.Errorf("a pipeline of stages was refused: %v", err)
	}
	w.spec.Vars["window"] = "700"
	w.spec.Vars["max_answer"] = "64"
	if err := w.bare.Check(&w.spec); err == nil || !strings.Contains(err.Error(), "context window") {
		t.Errorf("a window without room for what a stage is told: %v", err)
	}
	_, err := w.agent.Run(t.Context(), &agent.Task{Spec: &w.spec, StageSpec: &agent.StageSpec{Name: "gone", Output: agent.Report, Schema: []byte(`{"type":"string"}`)}}, w.purse)
	if class, _ := agent.Classify(err); err == nil || class != protocol.PermanentJob {
		t.Errorf("of a stage that there is not: %v", err)
	}
	if errors.Is(err, check.ErrBreach) {
		t.Error("it was run")
	}
}

// council is a pipeline whose stages give a unit to each agent, or sort what they read.
const council = `
name: council
agents: {lawyer: {role: Lawyer of Ipoh, goal: Find what is not allowed}}
stages:
  - {name: view, each: agent, agents: [lawyer], task: Say what you think, output: {kind: items, schema: {type: object, properties: {rank: {type: integer}, text: {type: string}}}}, limits: {context: 4000}}
  - {name: pick, each: batch, size: 3, order: rank desc, passage: 21, agent: {role: Editor}, task: "Ranks {{item.rank}}", output: report}
  - {name: report, each: all, agent: {role: Editor}, task: Write it up, output: report}
`

func (w *writing) setPipeline(t *testing.T, file string) {
	t.Helper()
	p, err := pipeline.Parse("p.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	w.spec.Pipeline, w.spec.Definition = p.Name, p.Canonical()
}

// TestAgentsAreToldWhoTheyAre: in a stage with several agents each unit is told of its own.
func TestAgentsAreToldWhoTheyAre(t *testing.T) {
	w := newWriting(t, "anthropic", `{"rank":1,"text":"x"}`)
	w.setPipeline(t, council)
	task := w.taskOf(t, "view")
	bundle, err := payload.EncodeDocuments([]payload.Document{{Document: "a.txt", Text: []byte("first text")}, {Document: "b.txt", Number: 1, Text: []byte("second text")}})
	if err != nil {
		t.Fatal(err)
	}
	task.Kind, task.Item, task.Inputs = mapreduce.KindMap, []byte(`{"agent":"lawyer"}`), []protocol.Input{{Unit: "in", Data: bundle}}
	w.write(t, task)
	prompt := w.calls[0].Prompt()
	within(t, "the message", prompt, "ROLE: Lawyer of Ipoh\n", "GOAL: Find what is not allowed\n", "TASK: Say what you think\n", `named "a.txt"`, `named "b.txt"`)
	if strings.Contains(prompt, "<item ") {
		t.Error("the name of the agent is shown as an item")
	}
}

// TestBatchesAreReadInOrder: a batch shows what it reads in the order of the stage, and no
// more of each than a passage.
func TestBatchesAreReadInOrder(t *testing.T) {
	var inputs []*output.Output
	for _, value := range []string{`{"rank":2,"text":"two"}`, `{"text":"none"}`, `{"rank":10,"text":"ten"}`} {
		in, _ := valued(t, value, "q")
		inputs = append(inputs, in)
	}
	w := newWriting(t, "anthropic", `{"answer":"x"}`, `{"answer":"x"}`)
	w.setPipeline(t, strings.Replace(council, "{{item.rank}}", "{{item.count}}", 1))
	w.write(t, w.taskOf(t, "pick", inputs...))
	within(t, "the message", w.calls[0].Prompt(), "TASK: Ranks 3\n", "<input 1 ", `{"rank":10,"text":"te`+"\n", "<input 2 ", `{"rank":2,"text":"two`+"\n", "<input 3 ", `{"text":"none"}`)
}

// TestAContextIsNotExceeded: a prompt with more bytes than its stage allows is not sent.
func TestAContextIsNotExceeded(t *testing.T) {
	w := newWriting(t, "anthropic")
	w.setPipeline(t, council)
	task := w.taskOf(t, "view")
	bundle, err := payload.EncodeDocuments([]payload.Document{{Document: "a.txt", Text: []byte(strings.Repeat("long text ", 400))}})
	if err != nil {
		t.Fatal(err)
	}
	task.Kind, task.Item, task.Inputs = mapreduce.KindMap, []byte(`{"agent":"lawyer"}`), []protocol.Input{{Unit: "in", Data: bundle}}
	_, err = w.agent.Run(t.Context(), task, w.purse)
	if class, _ := agent.Classify(err); err == nil || class != protocol.PermanentUnit || !strings.Contains(err.Error(), "limits.context") || len(w.calls) > 0 {
		t.Errorf("error %v after %d calls", err, len(w.calls))
	}
}

// TestClaimsAreJudged: the model that wrote a report is asked of each reference whether its
// passage says what the sentence claims. What it answers of pairs that were not asked about
// is left out.
func TestClaimsAreJudged(t *testing.T) {
	in, id := valued(t, `{"note":"%s"}`, "Rain fell over the old town on Monday.")
	short := id.Full()[:len("REF_")+8]
	report := `"Rain fell over the old town on Monday [` + short + `]. Nobody has a reference for snow in summer."`
	w := newWriting(t, "anthropic", report, `{"verdicts":[{"number":1,"grade":"partial","reason":"not  the\n town"},{"number":7,"grade":"supported","reason":"x"}]}`)
	w.setPipeline(t, `
name: reporting
stages:
  - {name: notes, each: document, agent: {role: Reader}, task: Read, output: items}
  - {name: report, from: notes, each: all, agent: {role: Writer}, task: Write, output: report, check: true}
`)
	out, _ := w.write(t, w.taskOf(t, "report", in))
	want := []output.Judgement{{Claim: "Rain fell over the old town on Monday [" + id.Full() + "].", Citation: id, Grade: "partial", Reason: "not the town"}}
	if diff := cmp.Diff(want, out.Judged); diff != "" || len(w.calls) != 2 {
		t.Errorf("after %d calls:\n%s", len(w.calls), diff)
	}
	within(t, "what the model is asked", w.calls[1].Prompt(), "["+short+"]", "Rain fell over the old town on Monday.")
}
