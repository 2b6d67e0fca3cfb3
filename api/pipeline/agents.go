package pipeline

import (
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
)

// coversTool reports whether the tools of a stage have one. A kit has all of its tools: files
// those that read files, and mcp:NAME those of the server.
func coversTool(tools []string, tool string) bool {
	return slices.ContainsFunc(tools, func(has string) bool {
		has = strings.TrimSuffix(has, OptionalTool)
		switch {
		case has == strings.TrimSuffix(tool, OptionalTool):
			return true
		case has == "files":
			return slices.Contains([]string{"read", "grep", "glob"}, tool)
		}
		return strings.HasPrefix(has, "mcp:") && strings.HasPrefix(tool, has+"/")
	})
}

// ParseWith is Parse for a file whose stages may name agents that the file does not define.
// Find returns such an agent by its name, or by the path of its file if that ends with .md;
// nil if there is none. The given agents are those of the run: they work in a stage with
// each: agent that names none.
func ParseWith(file string, data []byte, find func(name string) (*Agent, error), given ...*Agent) (*Pipeline, error) {
	p, err := parseFound(file, data, find, given...)
	if err != nil {
		return nil, err
	}
	return p, p.checkUnreserved()
}

// findAgents adds the agents that stages name and the file does not define.
func (p draft) findAgents(find func(name string) (*Agent, error), given []*Agent) error {
	add := func(name string) (string, error) {
		if name == "" || p.Agents[name] != nil {
			return name, nil
		}
		a, err := find(name)
		if a == nil || err != nil {
			return name, err // which nobody defines: that is said later
		}
		if p.Agents == nil {
			p.Agents = make(map[string]*Agent)
		}
		p.Agents[a.Name] = a
		return a.Name, nil
	}

	var err error
	for _, s := range p.Stages {
		p.giveAll(s, given)
		if s.Agent != nil {
			if s.Agent.Name, err = add(s.Agent.Name); err != nil {
				return err
			}
			s.adopt(p.Agents[s.Agent.Name])
		}

		for i := range s.Agents {
			if s.Agents[i], err = add(s.Agents[i]); err != nil {
				return err
			}
		}
	}

	return nil
}

// giveAll gives a stage with each: agent that names no agents all that there are: those of the
// pipeline, or else those of the run, with their tools.
func (p draft) giveAll(s *Stage, given []*Agent) {
	if s.Each != EachAgent || len(s.Agents) > 0 {
		return
	}

	if s.Agents = slices.Sorted(maps.Keys(p.Agents)); len(s.Agents) > 0 {
		return
	}

	p.Agents = make(map[string]*Agent)
	for _, a := range given {
		// A copy, for join may mark some of its tools as optional.
		own := *a
		own.Tools = slices.Clone(a.Tools)
		p.Agents[own.Name] = &own
		s.join([]*Agent{&own})
	}
}

// adopt gives a stage the tools and the model of its agent, as far as it has none itself.
func (s *Stage) adopt(a *Agent) {
	if a == nil || s.Each == EachAgent {
		return
	}
	if len(s.Tools) == 0 {
		s.Tools = slices.Clone(a.Tools)
	}
	if s.Model == "" {
		s.Model = a.Model
	}
}

// Join returns the pipeline with agents of a run. One takes the place of the pipeline's agent
// of its name; any other works in each stage with each: agent, beside the agents that the
// stage names. These stages get the tools that the agents list. A pipeline that comes with the
// program gets another name.
func (p *Pipeline) Join(agents []*Agent) (*Pipeline, error) {
	joined := *p
	if slices.Contains(reserved, joined.Name) {
		joined.Name += ".own"
	}

	joined.Agents = maps.Clone(p.Agents)
	if joined.Agents == nil {
		joined.Agents = make(map[string]*Agent)
	}

	// Agents and stages are copied, for p must not change.
	agents = slices.Clone(agents)
	for i, a := range agents {
		own := *a
		own.Tools = slices.Clone(a.Tools)
		agents[i], joined.Agents[a.Name] = &own, &own
	}

	joined.Stages = make([]*Stage, len(p.Stages))
	used := make(map[string]bool)
	for i, s := range p.Stages {
		one := *s
		joined.Stages[i] = &one
		if one.Agent != nil && one.Agent.Name != "" {
			one.Agent = joined.Agents[one.Agent.Name]
			used[one.Agent.Name] = true
		}
		if one.Each == EachAgent {
			one.join(agents)
			for _, a := range agents {
				used[a.Name] = true
			}
		}
	}

	for _, a := range agents {
		if !used[a.Name] {
			return nil, errs.Field("agents."+a.Name, "no stage of the pipeline %s could use it: it has none with each: agent, and none with an agent of this name", p.Name)
		}
	}

	return parseFound(p.file, joined.Canonical(), nil)
}

// join adds agents to a stage with each: agent, and their tools to those of the stage. A tool
// that the stage has where a worker has it stays so.
func (s *Stage) join(agents []*Agent) {
	s.Agents, s.Tools = slices.Clone(s.Agents), slices.Clone(s.Tools)

	for _, a := range agents {
		if !slices.Contains(s.Agents, a.Name) {
			s.Agents = append(s.Agents, a.Name)
		}
		for i, tool := range a.Tools {
			switch optional := tool + OptionalTool; {
			case coversTool(s.RequiredTools(), tool):
			case slices.Contains(s.Tools, optional):
				a.Tools[i] = optional
			default:
				s.Tools = append(s.Tools, tool)
			}
		}
	}
}

// checkUnreserved refuses a pipeline with the name of one that comes with the program.
func (p *Pipeline) checkUnreserved() error {
	if slices.Contains(reserved, p.Name) {
		return p.fieldError("name", "%q is the name of a pipeline that comes with the program; choose another", p.Name)
	}
	return nil
}
