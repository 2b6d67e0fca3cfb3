package pipeline

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/pipeline/internal/filetree"
)

// An agent may have a Markdown file of its own: front matter in YAML says its name, when it is
// of use, which tools it may use and which model it asks, and the text behind it is what it is
// told. Other programs have the same convention, so their names of tools are understood.

// MaxAgentFile bounds the file of an agent, in bytes.
const MaxAgentFile = 64 << 10

// fence is the line before and behind front matter.
var fence = regexp.MustCompile(`(?m)^---[ \t]*\r?$`)

// ParseAgent reads the file of an agent. An error is of kind Invalid: its field is the key
// that is wrong, its operation names file and line.
func ParseAgent(file string, data []byte) (*Agent, error) {
	r := newReader(file)
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	marks := fence.FindAllIndex(data, 2)
	switch {
	case len(data) > MaxAgentFile:
		r.RecordFault("agent", 0, "has %d bytes; at most %d are accepted", len(data), MaxAgentFile)
	case !utf8.Valid(data):
		r.RecordFault("agent", 0, "is not valid UTF-8")
	case len(marks) == 0 || marks[0][0] != 0:
		r.RecordFault("agent", 1, "must begin with front matter: a line ---, then name and description, then a line ---")
	case len(marks) == 1:
		r.RecordFault("agent", 1, "the front matter does not end: a line --- is missing after it")
	}
	if r.Err != nil {
		return nil, r.Err
	}
	a := &Agent{}
	front := append([]byte("#"), data[marks[0][1]:marks[1][0]]...) // a comment in place of the fence: lines keep their numbers
	root := r.ReadYAML(front)
	if r.Err == nil {
		r.readFront(root, a)
	}
	if r.Err == nil {
		r.readInstructions(data, marks[1][1], a)
	}
	if r.Err != nil {
		if r.Err.Field == "pipeline" { // YAML that cannot be read
			r.Err.Field = "agent"
		}
		return nil, r.Err
	}
	a.Role = a.Name
	return a, nil
}

// ignored are keys of other programs' files that say nothing here.
var ignored = []string{"color", "license", "metadata", "version"}

func (r reader) readFront(n *filetree.Node, a *Agent) {
	tools := map[string]int{} // their lines
	known := map[string]filetree.Entry{
		"name": r.ReadText(&a.Name), "description": r.ReadText(&a.Description), "model": r.ReadText(&a.Model),
		"tools": func(n *filetree.Node, at string) { r.readTools(n, at, a, tools) },
	}
	for _, key := range ignored {
		known[key] = func(*filetree.Node, string) {}
	}
	if r.ReadMapping(n, "", known); r.Err != nil {
		return
	}
	if a.Model == "inherit" {
		a.Model = ""
	}
	switch {
	case a.Name == "":
		r.RecordFault("name", n.LineOf("name"), "is required: stages and results call the agent by it")
	case !name.MatchString(a.Name):
		r.RecordFault("name", n.LineOf("name"), "must be %s, and is %.80q", nameRule, a.Name)
	case a.Description == "":
		r.RecordFault("description", n.LineOf("description"), "is required: it says when the agent is of use")
	case a.Model != "" && !isWord(a.Model):
		r.RecordFault("model", n.LineOf("model"), "must be provider/model or an alias, at most %d bytes without spaces, and is %.80q", maxWord, a.Model)
	case len(a.Tools) > maxTools:
		r.RecordFault("tools", n.LineOf("tools"), "there are %d; at most %d are accepted", len(a.Tools), maxTools)
	}
	if _, err := parseTemplate(a.Description); err != nil {
		r.RecordFault("description", n.LineOf("description"), "%s", err)
	}
}

// readTools reads a list of tools, or their names in one text with commas between them.
func (r reader) readTools(n *filetree.Node, at string, a *Agent, lines map[string]int) {
	add := func(text string, line int, at string) {
		tool := toolName(strings.TrimSpace(text))
		switch _, twice := lines[tool]; {
		case tool == "" || !isWord(tool):
			r.RecordFault(at, line, "must be the name of a tool, at most %d bytes without spaces, and is %.80q", maxWord, text)
		case foreignTools[tool] != "":
			r.RecordFault(at, line, "%q is not available: %s", tool, foreignTools[tool])
		case twice:
			r.RecordFault(at, line, "%q is listed twice", tool)
		default:
			lines[tool] = line
			a.Tools = append(a.Tools, tool)
		}
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		for text := range strings.SplitSeq(n.Text, ",") {
			add(text, n.Line, at)
		}
		return
	}
	r.ReadList(n, at, func(item *filetree.Node, at string) {
		var text string
		if r.ReadText(&text)(item, at); r.Err == nil {
			add(text, item.Line, at)
		}
	})
}

// commonTools are tools by the names that other programs have for them.
var commonTools = map[string]string{
	"Read": "read", "Grep": "grep", "Glob": "glob", "WebFetch": "fetch", "WebSearch": "search_web",
}

// foreignTools are tools of other programs that no agent is given here, with the reason.
var foreignTools = func() map[string]string {
	const changes = "it changes files or runs programs, which agents do not do here; leave it out"
	all := make(map[string]string)
	for _, name := range []string{"Bash", "Edit", "MultiEdit", "Write", "NotebookEdit", "KillShell", "BashOutput"} {
		all[name] = changes
	}
	for _, name := range []string{"Task", "Agent", "TodoWrite", "Skill"} {
		all[name] = "stages say who works after whom; leave it out"
	}
	return all
}()

// toolName returns a tool as pipelines name it.
func toolName(text string) string {
	if own, ok := commonTools[text]; ok {
		return own
	}
	if rest, ok := strings.CutPrefix(text, "mcp__"); ok {
		server, one, found := strings.Cut(rest, "__")
		if !found {
			return "mcp:" + server
		}
		return "mcp:" + server + "/" + one
	}
	return text
}

// readInstructions reads the text behind the front matter.
func (r reader) readInstructions(data []byte, from int, a *Agent) {
	line := 1 + bytes.Count(data[:from], []byte("\n"))
	a.Instructions = strings.TrimSpace(strings.ReplaceAll(string(data[from:]), "\r\n", "\n"))
	switch {
	case a.Instructions == "":
		r.RecordFault("agent", line, "has no text after its front matter: that text is what the agent is told")
	case len(a.Instructions) > maxText:
		r.RecordFault("agent", line, "the text after the front matter has %d bytes; at most %d are accepted", len(a.Instructions), maxText)
	}
	if r.Err != nil {
		return
	}
	if _, err := parseTemplate(a.Instructions); err != nil {
		for i, one := range strings.Split(string(data[from:]), "\n") {
			if _, fault := parseTemplate(one); fault != nil {
				line, err = line+i, fault
				break
			}
		}
		r.RecordFault("agent", line, "%s", err)
	}
}

// ParseWith is Parse for a file whose stages may name agents that the file does not define.
// Find returns such an agent by its name, or by the path of its file if that ends with .md;
// nil if there is none.
func ParseWith(file string, data []byte, find func(name string) (*Agent, error)) (*Pipeline, error) {
	p, err := parseFound(file, data, find)
	if err != nil {
		return nil, err
	}
	return p, p.checkUnreserved()
}

// findAgents adds the agents that stages name and the file does not define.
func (p *Pipeline) findAgents(find func(name string) (*Agent, error)) error {
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
			case slices.Contains(s.Tools, tool):
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
