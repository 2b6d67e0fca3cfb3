package pipeline_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/pipeline/agentfile"
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
	a, _, err := agentfile.Parse(file, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return a
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
