package pipeline_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/pipeline"
)

const librarian = `---
name: librarian
description: knows the law books
tools: Read, WebFetch, mcp__books__look
model: inherit
color: blue
---

You look through law books for {{input.question}}.

Quote letter by letter.
`

func parseAgent(t *testing.T, file, text string) *pipeline.Agent {
	t.Helper()
	a, _, err := pipeline.ParseAgent(file, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// E3: an agent has a name, a description, instructions, tools and a model of its own, out of a
// Markdown file as other programs have them.
func TestAgentFiles(t *testing.T) {
	want := &pipeline.Agent{
		Name: "librarian", Role: "librarian", Description: "knows the law books",
		Tools: []string{"read", "fetch", "mcp:books/look"}, Instructions: "You look through law books for {{input.question}}.\n\nQuote letter by letter.",
	}
	for name, text := range map[string]string{
		"as other programs have it": librarian,
		"with a mark before it":     "\ufeff" + librarian,
		"of Windows":                strings.ReplaceAll(librarian, "\n", "\r\n"),
		"tools as a list":           strings.Replace(librarian, "Read, WebFetch, mcp__books__look", "\n  - read\n  - fetch\n  - mcp:books/look", 1),
	} {
		if diff := cmp.Diff(want, parseAgent(t, "a.md", text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if a := parseAgent(t, "a.md", "---\nname: a\ndescription: b\nmodel: cheap\n---\nDo it.\n---\nAnd more.\n"); a.Model != "cheap" || a.Instructions != "Do it.\n---\nAnd more." || a.Tools != nil {
		t.Errorf("%+v", a)
	}
}

// Files of other programs are read as they are. What has no effect here is left out, and said
// once.
func TestAgentFilesOfOthers(t *testing.T) {
	agent := func(tools ...string) *pipeline.Agent {
		return &pipeline.Agent{Name: "a", Role: "a", Description: "b", Instructions: "x", Tools: tools}
	}
	told := func(instructions string) *pipeline.Agent {
		a := agent()
		a.Instructions = instructions
		return a
	}
	named := func(name, description string) *pipeline.Agent {
		a := agent()
		a.Name, a.Role, a.Description = name, name, description
		return a
	}
	for name, tt := range map[string]struct {
		text  string
		want  *pipeline.Agent
		notes []string
	}{
		"keys of others":       {"---\nname: a\ndescription: b\nturns: 3\ncolor: red\npermissionMode: plan\n---\nx", agent(), []string{"keys without an effect: turns, permissionMode"}},
		"a colon in a text":    {"---\nname: a\ndescription: Use this: it is \"good\".\ntools: Read\n---\nx", &pipeline.Agent{Name: "a", Role: "a", Description: `Use this: it is "good".`, Instructions: "x", Tools: []string{"read"}}, nil},
		"a text of many lines": {"---\nname: a\ndescription: Use: it\n  <example>user: hi</example>\ntools: Read\n---\nx", &pipeline.Agent{Name: "a", Role: "a", Description: "Use: it\n<example>user: hi</example>", Instructions: "x", Tools: []string{"read"}}, nil},
		"tools that change":    {"---\nname: a\ndescription: b\ntools: Read, Bash, Edit, Bash(git:*), TaskList, other:look, LS, Read\n---\nx", agent("read", "glob"), []string{"tools that agents do not have here are left out: Bash, Edit, Bash(git:*), TaskList, other:look"}},
		"tools of a server":    {"---\nname: a\ndescription: b\ntools: [mcp__books__look, mcp__shop]\n---\nx", agent("mcp:books/look", "mcp:shop"), nil},
		"no tools":             {"---\nname: a\ndescription: b\ntools: []\n---\nx", agent(), nil},
		"the model of others":  {"---\nname: a\ndescription: b\nmodel: inherit\n---\nx", agent(), nil},
		"a model in words":     {"---\nname: a\ndescription: b\nmodel: my best\n---\nx", agent(), []string{`its model, "my best", is neither provider/model nor an alias: it asks the model of the run`}},
		"braces in the text":   {"---\nname: a\ndescription: b\n---\nwrite ${{ secrets.X }} and {{var}}", told("write ${ { secrets.X } } and { {var} }"), []string{"braces that name no variable stand apart: { { and } }"}},
		"a name with spaces":   {"---\nname: Code Reviewer!\ndescription: b\n---\nx", named("Code-Reviewer", "b"), []string{"its name is Code-Reviewer here, as a name has no other characters than letters, digits, dots, dashes and underscores"}},
		"a long text":          {"---\nname: a\ndescription: b\n---\n" + strings.Repeat("word ", 12_000), told(strings.TrimSpace(strings.Repeat("word ", 12_000))), nil},
	} {
		got, notes, err := pipeline.ParseAgent("a.md", []byte(tt.text))
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		if diff := cmp.Diff(tt.notes, notes); diff != "" {
			t.Errorf("%s: notes (-want +got):\n%s", name, diff)
		}
	}
}

// A stage with each: agent that names no agents has all of them: those of the pipeline, or
// else those of the run, with their tools. A kit stands for its tools.
func TestEachAgentMeansAll(t *testing.T) {
	const stages = `stages:
  - {name: look, from: documents, each: agent, agents: [], tools: [files], task: "Answer.", output: passages}
  - {name: report, from: look, each: all, agent: {role: You write.}, task: Write., output: report}
`
	ann := &pipeline.Agent{Name: "ann", Role: "ann", Description: "looks", Instructions: "Look.", Tools: []string{"read", "grep", "fetch"}}
	none := func(string) (*pipeline.Agent, error) { return nil, nil }
	p, err := pipeline.ParseWith("p.yaml", []byte("name: own\n"+stages), none, ann)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ann"}, p.Stages[0].Agents); diff != "" {
		t.Errorf("agents of the run (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"files", "fetch"}, p.Stages[0].Tools); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	p, err = pipeline.ParseWith("p.yaml", []byte("name: own\nagents: {bob: {role: r, description: d, tools: [glob]}}\n"+stages), none, ann)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"bob"}, p.Stages[0].Agents); diff != "" {
		t.Errorf("agents of the pipeline (-want +got):\n%s", diff)
	}
	if _, err = pipeline.ParseWith("p.yaml", []byte("name: own\n"+stages), none); err == nil || !strings.Contains(err.Error(), "agents") {
		t.Errorf("without any agent: %v", err)
	}
}

// A wrong file is refused with its line and the key.
func TestAgentFilesThatAreRefused(t *testing.T) {
	for _, tt := range []struct{ name, text, op, field, message string }{
		{"empty", "", "a.md:1", "agent", "must begin with front matter"},
		{"no front matter", "# Librarian\n", "a.md:1", "agent", "must begin with front matter"},
		{"no end", "---\nname: a\n", "a.md:1", "agent", "does not end"},
		{"not UTF-8", "---\nname: \xff\n---\nx", "a.md", "agent", "not valid UTF-8"},
		{"too long", "---\n" + strings.Repeat("#", pipeline.MaxAgentFile), "a.md", "agent", "at most 65536"},
		{"not a mapping", "---\n- name\n---\nx", "a.md:2", "agent", "must be a mapping"},
		{"twice", "---\nname: a\nname: b\n---\nx", "a.md:3", "agent", "stands in line 2 already"},
		{"no name", "---\ndescription: b\n---\nx", "a.md:2", "name", "is required"},
		{"no description", "---\nname: a\n---\nx", "a.md:2", "description", "is required"},
		{"a name of no letters", "---\ndescription: b\nname: [\n---\nx", "a.md:3", "name", "must be 1 to 64 letters"},
		{"no instructions", "---\nname: a\ndescription: b\n---\n \n", "a.md:4", "agent", "has no text"},
	} {
		_, _, err := pipeline.ParseAgent("a.md", []byte(tt.text))
		e, ok := errors.AsType[*errs.Error](err)
		if !ok || e.Op != tt.op || e.Field != tt.field || !strings.Contains(e.Message, tt.message) {
			t.Errorf("%s: %#v, want %s: %s: %s", tt.name, err, tt.op, tt.field, tt.message)
		}
	}
}

// Agents of a run join the stages that have one unit for each agent, with their tools; one
// with the name of the pipeline's takes its place. What comes of it is a pipeline like others.
func TestAgentsJoin(t *testing.T) {
	research, err := pipeline.Preset("research")
	if err != nil {
		t.Fatal(err)
	}
	web := parseAgent(t, "web.md", "---\nname: web\ndescription: reads the web of one country\ntools: fetch\n---\nRead pages.\n")
	joined, err := research.Join([]*pipeline.Agent{parseAgent(t, "l.md", librarian), web})
	if err != nil {
		t.Fatal(err)
	}
	again, err := pipeline.Parse("again.json", joined.Canonical())
	if err != nil || string(again.Canonical()) != string(joined.Canonical()) {
		t.Fatalf("it is no pipeline like others: %v", err)
	}
	findings := joined.Stage("findings")
	if diff := cmp.Diff([]string{"knowledge", "files", "docs", "web", "librarian"}, findings.Agents); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"search_local?", "files?", "mcp:docs?", "search_web?", "fetch?", "browser?", "read", "mcp:books/look"}, findings.Tools); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if a := joined.Agents["web"]; joined.Name != "research.own" || a.Instructions != "Read pages." || len(a.Tools) != 1 || a.Tools[0] != "fetch?" {
		t.Errorf("%s: web is %+v", joined.Name, a)
	}
	if a := research.Agents["web"]; a.Instructions != "" || len(research.Stage("findings").Agents) != 4 || len(web.Tools) != 1 || web.Tools[0] != "fetch" {
		t.Errorf("what was joined has changed: %+v", a)
	}
	synthesize, err := pipeline.Preset("synthesize")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := synthesize.Join([]*pipeline.Agent{web}); errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), "no stage of the pipeline synthesize could use it") {
		t.Errorf("an agent that no stage uses: %v", err)
	}
}

// A pipeline file may name agents that stand in files: by name, or by the path of the file. A
// stage with one agent has its tools and its model.
func TestPipelinesNameAgentFiles(t *testing.T) {
	const file = `
name: law
inputs: {question: }
stages:
- {name: look, each: all, agent: librarian, task: Look it up, output: items}
- {name: views, from: look, each: agent, agents: [own/critic.md, judge], task: Say what you think, output: {kind: items, schema: {type: object, properties: {views: {type: array, items: {type: string}}}}}}
- {name: final-words, from: views, each: all, agent: {role: Writer}, task: Write, output: report}
`
	found := map[string]*pipeline.Agent{
		"librarian":     parseAgent(t, "l.md", strings.Replace(librarian, "inherit", "anthropic/m", 1)),
		"own/critic.md": parseAgent(t, "own/critic.md", "---\nname: critic\ndescription: finds faults\n---\nFind faults.\n"),
		"judge":         parseAgent(t, "judge.md", "---\nname: judge\ndescription: judges\n---\nJudge.\n"),
	}
	find := func(name string) (*pipeline.Agent, error) { return found[name], nil }
	text := strings.Replace(file, "output: items", "output: {kind: items, schema: {type: object, properties: {found: {type: array, items: {type: string}}}}}", 1)
	p, err := pipeline.ParseWith("law.yaml", []byte(text), find)
	if err != nil {
		t.Fatal(err)
	}
	look := p.Stage("look")
	if diff := cmp.Diff([]string{"read", "fetch", "mcp:books/look"}, look.Tools); diff != "" || look.Model != "anthropic/m" {
		t.Errorf("model %q, tools (-want +got):\n%s", look.Model, diff)
	}
	if diff := cmp.Diff([]string{"critic", "judge"}, p.Stage("views").Agents); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
	chosen, err := pipeline.ParseWith("law.yaml", []byte(strings.Replace(text, "task: Look it up", "task: 'Look it up, and choose among {{agents.views}}'", 1)), find)
	if err != nil {
		t.Fatal(err)
	}
	told, err := chosen.Texts(map[string]string{"question": "who pays"}).Fixed("look")
	if err != nil || !strings.Contains(told, "choose among critic (finds faults), judge (judges)") {
		t.Errorf("%v: %s", err, told)
	}
	_, err = pipeline.ParseWith("law.yaml", []byte(strings.Replace(text, "task: Look it up", "task: '{{agents.look}}'", 1)), find)
	if e, ok := errors.AsType[*errs.Error](err); !ok || !strings.Contains(e.Message, "no stage look has each: agent") {
		t.Errorf("agents of a stage that has none: %v", err)
	}
	fixed, err := p.Texts(map[string]string{"question": "who pays"}).Fixed("look")
	if err != nil || !strings.Contains(fixed, "INSTRUCTIONS OF THE AGENT: You look through law books for who pays.") {
		t.Errorf("%v: %s", err, fixed)
	}
	delete(found, "judge")
	_, err = pipeline.ParseWith("law.yaml", []byte(text), find)
	if e, ok := errors.AsType[*errs.Error](err); !ok || e.Field != "stages[1].agents[1]" || e.Op != "law.yaml:6" {
		t.Errorf("an agent that nobody has: %v", err)
	}
}

// TestTooManyAgents: agents of a folder that are too long together are refused with what to do.
func TestTooManyAgents(t *testing.T) {
	const file = `
name: ask
stages:
- {name: look, from: documents, each: agent, agents: [a, b], tools: [files], task: Look, output: passages}
- {name: report, from: look, each: all, agent: {role: Writer}, task: Write, output: report}
`
	find := func(name string) (*pipeline.Agent, error) {
		body := strings.Repeat("Look at each page. ", map[string]int{"a": 1200, "b": 1600}[name])
		return parseAgent(t, name+".md", "---\nname: "+name+"\ndescription: looks\n---\n"+body+"\n"), nil
	}

	_, err := pipeline.ParseWith("ask.yaml", []byte(file), find)
	if err == nil || !regexp.MustCompile(`at most 49152 are accepted: 5\d{4} are of its 2 agents, so name fewer in agents, or shorten the longest, b \(30\d{3} bytes\)`).MatchString(err.Error()) {
		t.Errorf("%v, want the number of agents and the longest", err)
	}
}
