package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
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
		all = agentParts(p.agentField(i), s.Agent)
	}
	if t := s.Task; t != nil {
		all = append(all, presentParts([]part{
			{stageField(i, "task.description"), "TASK", t.Description}, {stageField(i, "task.expected_output"), "EXPECTED OUTPUT", t.Expected},
		})...)
	}
	return all
}

// agentField is where the agent of the i-th stage is defined.
func (p *Pipeline) agentField(i int) string {
	if name := p.Stages[i].Agent.Name; name != "" {
		return "agents." + name
	}
	return stageField(i, "agent")
}

// Fixed renders the texts that are the same for every unit of a stage: those without a
// variable of an item. It returns "" for a stage without agent and task.
func (p *Pipeline) Fixed(stage string, vars map[string]string) (string, error) {
	return p.renderStage(stage, false, vars, nil)
}

// Own renders the texts that differ between units, for a unit that works on the given
// documents. It returns "" if no text has a variable of an item.
func (p *Pipeline) Own(stage string, vars map[string]string, docs []Document) (string, error) {
	return p.renderStage(stage, true, vars, docs)
}

// Role renders who runs a unit of a stage that works on certain documents; empty for a
// stage without an agent.
func (p *Pipeline) Role(stage string, vars map[string]string, docs ...Document) (string, error) {
	i := p.Stages.Index(stage)
	if i < 0 || p.Stages[i].Agent == nil {
		return "", nil
	}
	t := p.templates[p.agentField(i)+".role"]
	return t.renderTemplate(func(v Variable) (string, bool) { return p.variableValue(v, vars, docs) })
}

func (p *Pipeline) renderStage(stage string, own bool, vars map[string]string, docs []Document) (string, error) {
	i := p.Stages.Index(stage)
	if i < 0 {
		return "", errs.New(errs.Internal, "the pipeline %s has no stage %.80q", p.Name, stage)
	}
	parts := slices.DeleteFunc(p.stageParts(i), func(one part) bool {
		t := p.templates[one.field]
		return own != (t.namesSpace(Item) || t.namesSpace(Items))
	})
	return p.renderParts(parts, vars, docs)
}

// renderParts renders texts, each behind its title.
func (p *Pipeline) renderParts(parts []part, vars map[string]string, docs []Document) (string, error) {
	var b strings.Builder
	for _, one := range parts {
		t := p.templates[one.field]
		text, err := t.renderTemplate(func(v Variable) (string, bool) { return p.variableValue(v, vars, docs) })
		if err != nil {
			return "", errs.Field(one.field, "%s", err)
		}
		fmt.Fprintf(&b, "%s: %s\n", one.title, text)
	}
	return b.String(), nil
}

func (p *Pipeline) variableValue(v Variable, vars map[string]string, docs []Document) (string, bool) {
	switch v.Space {
	case Input:
		if text, ok := vars[v.Name]; ok {
			return text, true
		}
		if text := p.Inputs[v.Name]; text != nil {
			return *text, true
		}
		return "", false
	case OfAgents:
		return p.describeAgents(v.Name), true
	case Item:
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
		all = append(all, c.Name+" ("+shorten.Text(shorten.Visible(c.Description), maxValue)+")")
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
