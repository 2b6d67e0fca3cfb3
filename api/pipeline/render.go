package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/pipeline/internal/template"
	"github.com/coditect/mapreduce/api/shorten"
)

// A Document is what templates may say of a document, or of another input of a unit.
type Document struct {
	ID       string
	Metadata map[string]string
}

// A part is a text of a stage, with its field and with how it is headed in a prompt.
type part struct {
	field, title, text string
}

// agentParts are the texts of an agent.
func agentParts(field string, a *Agent) []part {
	return presentParts([]part{
		{field + ".role", "ROLE", a.Role}, {field + ".description", "DESCRIPTION", a.Description}, {field + ".goal", "GOAL", a.Goal}, {field + ".background", "BACKGROUND", a.Background}, {field + ".instructions", "INSTRUCTIONS OF THE AGENT", a.Instructions},
	})
}

func presentParts(all []part) []part {
	return slices.DeleteFunc(all, func(one part) bool { return one.text == "" })
}

// stageParts are the texts of the i-th stage.
func (p *Pipeline) stageParts(i int) (all []part) {
	s := p.Stages[i]
	if s.Agent != nil {
		all = agentParts(agentField(i, s), s.Agent)
	}
	if t := s.Task; t != nil {
		all = append(all, presentParts([]part{
			{stageField(i, "task.description"), "TASK", t.Description}, {stageField(i, "task.expected_output"), "EXPECTED OUTPUT", t.Expected},
		})...)
	}
	return all
}

// agentField is where the agent of a stage, the i-th, is defined.
func agentField(i int, s *Stage) string {
	if name := s.Agent.Name; name != "" {
		return "agents." + name
	}
	return stageField(i, "agent")
}

// Texts are the texts of a pipeline's stages in a run: what its agents are told.
type Texts struct {
	of   *Pipeline
	vars map[string]string // of the run, by input
}

// Texts returns the texts of the stages in a run with these variables.
func (p *Pipeline) Texts(vars map[string]string) Texts { return Texts{p, vars} }

// Fixed renders the texts that are the same for every unit of a stage: those without a
// variable of an item. It returns "" for a stage without agent and task.
func (t Texts) Fixed(stage string) (string, error) {
	return t.renderStage(stage, false, nil)
}

// Own renders the texts that differ between units, for a unit that works on the given
// documents. It returns "" if no text has a variable of an item.
func (t Texts) Own(stage string, docs []Document) (string, error) {
	return t.renderStage(stage, true, docs)
}

// Role renders who runs a unit of a stage that works on certain documents; empty for a
// stage without an agent.
func (t Texts) Role(stage string, docs ...Document) (string, error) {
	i := t.of.Stages.Index(stage)
	if i < 0 || t.of.Stages[i].Agent == nil {
		return "", nil
	}
	role := t.of.templates[agentField(i, t.of.Stages[i])+".role"]
	return role.Render(func(v template.Variable) (string, bool) { return t.variableValue(v, docs) })
}

// OfAgent renders the texts of the agent of a name in a stage that has a unit for each
// agent: who it is, and its task.
func (t Texts) OfAgent(stage, agent string) (string, error) {
	a := t.of.Agents[agent]
	i := t.of.Stages.Index(stage)
	if a == nil || i < 0 {
		return "", t.of.fieldError("agents", "there is no agent %.80q", agent)
	}
	parts := append(agentParts("agents."+agent, a), t.of.stageParts(i)...)
	return t.renderParts(parts, nil)
}

// Query returns what a stage chooses passages for. It may be as long as the variables are.
func (t Texts) Query(s *Stage) string {
	return inputName.ReplaceAllStringFunc(s.Query, func(v string) string {
		text, _ := t.variableValue(template.Variable{Space: template.Input, Name: inputName.FindStringSubmatch(v)[1]}, nil)
		return text
	})
}

func (t Texts) renderStage(stage string, own bool, docs []Document) (string, error) {
	i := t.of.Stages.Index(stage)
	if i < 0 {
		return "", errs.New(errs.Internal, "the pipeline %s has no stage %.80q", t.of.Name, stage)
	}
	parts := slices.DeleteFunc(t.of.stageParts(i), func(one part) bool {
		text := t.of.templates[one.field]
		return own != (text.NamesSpace(template.Item) || text.NamesSpace(template.Items))
	})
	return t.renderParts(parts, docs)
}

// renderParts renders texts, each behind its title.
func (t Texts) renderParts(parts []part, docs []Document) (string, error) {
	var b strings.Builder
	for _, one := range parts {
		text, err := t.of.templates[one.field].Render(func(v template.Variable) (string, bool) { return t.variableValue(v, docs) })
		if err != nil {
			return "", errs.Field(one.field, "%s", err)
		}
		fmt.Fprintf(&b, "%s: %s\n", one.title, text)
	}
	return b.String(), nil
}

func (t Texts) variableValue(v template.Variable, docs []Document) (string, bool) {
	switch v.Space {
	case template.Input:
		if text, ok := t.vars[v.Name]; ok {
			return text, true
		}
		if text := t.of.Inputs[v.Name]; text != nil {
			return *text, true
		}
		return "", false
	case template.OfAgents:
		return t.of.describeAgents(v.Name), true
	case template.Item:
		if len(docs) == 0 {
			return "", false
		}
		if len(docs) == 1 { // whose count is a field like any other
			if text, ok := itemValue(v.Name, docs[0].ID, docs[0].Metadata); ok {
				return text, true
			}
		}
	}

	return itemsValue(v.Name, docs)
}

// A Candidate is an agent among which a stage chooses those of a later one.
type Candidate struct {
	Name        string
	Description string // what it is good for; of an agent without a description its goal or role, as in the file
}

// candidates returns the agents that may work in a stage.
func (p *Pipeline) candidates(stage string) (all []Candidate) {
	for _, name := range p.Stage(stage).Agents {
		a := p.Agents[name]
		all = append(all, Candidate{name, cmp.Or(a.Description, a.Goal, a.Role)})
	}
	return all
}

// Choices returns, by the property of the stage's output that lists their names, the agents
// among which the stage chooses those that work in a later one; none if it chooses none.
func (p *Pipeline) Choices(s *Stage) map[string][]Candidate {
	var all map[string][]Candidate
	for _, later := range p.Stages {
		stage, path, ok := later.SelectPath()
		if !ok || stage != s.Name || len(path) != 1 {
			continue
		}

		if all == nil {
			all = make(map[string][]Candidate)
		}
		all[path[0]] = append(all[path[0]], p.candidates(later.Name)...)
	}
	return all
}

// describeAgents names the agents that may work in a stage, each with what it is good for.
func (p *Pipeline) describeAgents(stage string) string {
	var all []string
	for _, c := range p.candidates(stage) {
		all = append(all, c.Name+" ("+shorten.Text(shorten.Visible(c.Description), template.MaxValue)+")")
	}
	return strings.Join(all, ", ")
}

// itemsValue is what all items have under a name, in order.
func itemsValue(key string, docs []Document) (string, bool) {
	if key == count {
		return strconv.Itoa(len(docs)), true
	}

	all := make([]string, len(docs))
	for i, d := range docs {
		text, ok := itemValue(key, d.ID, d.Metadata)
		if !ok {
			return "", false
		}
		all[i] = text
	}

	return strings.Join(all, ", "), true
}
