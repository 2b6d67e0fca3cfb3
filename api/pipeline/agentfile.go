package pipeline

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/pipeline/internal/filetree"
)

// An agent may have a Markdown file of its own: front matter in YAML says its name, when it is
// of use, which tools it may use and which model it asks, and the text behind it has its
// instructions. Other programs have the same convention, so their files are read as they
// are: their
// names of tools are understood, and what has no effect here is left out and noted.

// MaxAgentFile bounds the file of an agent, in bytes.
const MaxAgentFile = 64 << 10

// fence is the line before and behind front matter.
var fence = regexp.MustCompile(`(?m)^---[ \t]*\r?$`)

// maxInstructions bounds the instructions of an agent, in bytes.
const maxInstructions = MaxAgentFile

// ParseAgent reads the file of an agent. The notes say what of it has no effect. An error is
// of kind Invalid: its field is the key that is wrong, its operation names file and line.
func ParseAgent(file string, data []byte) (a *Agent, notes []string, err error) {
	r := &agentReader{reader: newReader(file)}
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
		return nil, nil, r.Err
	}

	a = &Agent{}
	front := append([]byte("#"), data[marks[0][1]:marks[1][0]]...) // a comment in place of the fence: lines keep their numbers
	root := r.ReadFront(front)
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
		return nil, nil, r.Err
	}

	a.Role = a.Name
	return a, r.notes, nil
}

// An agentReader reads the file of an agent.
type agentReader struct {
	reader
	notes []string // what has no effect
}

func (r *agentReader) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// ignored are keys of other programs' files that say nothing here.
var ignored = []string{"color", "license", "metadata", "version"}

func (r *agentReader) readFront(n *filetree.Node, a *Agent) {
	known := map[string]filetree.Entry{
		"name": r.ReadText(&a.Name), "description": r.ReadText(&a.Description), "model": r.ReadText(&a.Model),
		"tools": func(n *filetree.Node, at string) { r.readTools(n, at, a) },
	}
	if n.Kind != yaml.MappingNode {
		r.RecordFault("agent", n.Line, "the front matter must be a mapping, and is %s", n)
		return
	}

	var unknown []string
	for i, key := range n.Keys {
		if read, ok := known[key.Text]; ok {
			read(n.Items[i], key.Text)
		} else if !slices.Contains(ignored, key.Text) {
			unknown = append(unknown, key.Text)
		}
		if r.Err != nil {
			return
		}
	}

	if len(unknown) > 0 {
		r.note("keys without an effect: %s", filetree.ListNames(unknown))
	}
	r.readNames(a)

	switch {
	case a.Name == "":
		r.RecordFault("name", n.LineOf("name"), "is required: stages and results call the agent by it")
	case !name.MatchString(a.Name):
		r.RecordFault("name", n.LineOf("name"), "must be %s, and is %.80q", nameRule, a.Name)
	case a.Description == "":
		r.RecordFault("description", n.LineOf("description"), "is required: it says when the agent is of use")
	case len(a.Tools) > maxTools:
		r.RecordFault("tools", n.LineOf("tools"), "there are %d; at most %d are accepted", len(a.Tools), maxTools)
	}

	a.Description = r.literal(a.Description)
}

// unnamed matches what the name of an agent has not.
var unnamed = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// readNames gives the name and the model of an agent the form that they have here.
func (r *agentReader) readNames(a *Agent) {
	if own := strings.Trim(unnamed.ReplaceAllString(a.Name, "-"), "-"); own != a.Name && own != "" {
		r.note("its name is %s here, as a name has no other characters than letters, digits, dots, dashes and underscores", own)
		a.Name = own
	}

	switch {
	case a.Model == "inherit" || a.Model == "default":
		a.Model = ""
	case strings.HasPrefix(a.Model, "claude-"):
		a.Model = "anthropic/" + a.Model
	case a.Model != "" && !isWord(a.Model):
		r.note("its model, %.80q, is neither provider/model nor an alias: it asks the model of the run", a.Model)
		a.Model = ""
	}
}

// literal returns a text in which braces that make no template stand apart, so that it is a
// text and nothing else.
func (r *agentReader) literal(text string) string {
	if _, err := parseTemplate(text); err == nil {
		return text
	}
	if !slices.ContainsFunc(r.notes, func(n string) bool { return strings.HasPrefix(n, "braces") }) {
		r.note("braces that name no variable stand apart: { { and } }")
	}
	return strings.NewReplacer("{{", "{ {", "}}", "} }").Replace(text)
}

// readTools reads a list of tools, or their names in one text with commas between them. Tools
// that there are not are left out.
func (r *agentReader) readTools(n *filetree.Node, at string, a *Agent) {
	var left []string
	add := func(text string) {
		tool := toolName(strings.Trim(strings.TrimPrefix(strings.TrimSpace(text), "- "), `"'[] `))
		switch {
		case tool == "" || slices.Contains(a.Tools, tool):
		case !isWord(tool) || isForeign(tool):
			left = append(left, tool)
		default:
			a.Tools = append(a.Tools, tool)
		}
	}

	if n.Kind == yaml.ScalarNode {
		for text := range strings.FieldsFuncSeq(n.Text, func(c rune) bool { return c == ',' || c == '\n' }) {
			add(text)
		}
	} else {
		r.ReadList(n, at, func(item *filetree.Node, at string) {
			var text string
			if r.ReadText(&text)(item, at); r.Err == nil {
				add(text)
			}
		})
	}

	if len(left) > 0 {
		r.note("tools that agents do not have here are left out: %s", filetree.ListNames(left))
	}
}

// commonTools are tools by the names that other programs have for them.
var commonTools = map[string]string{
	"Read": "read", "Grep": "grep", "Glob": "glob", "LS": "glob", "WebFetch": "fetch", "WebSearch": "search_web",
}

// CommonModels are the names of models in files of the convention that say how strong a model
// should be, and not which it is. Unless the run gives such a name a model as an alias, the
// agent asks the model of the run.
var CommonModels = []string{"sonnet", "opus", "haiku", "fable"}

// isForeign reports whether a tool is one of another program. Their names begin with a capital
// letter, such as Bash and Edit, which change files or run programs: agents do neither here.
// Names of servers other than mcp: stand for what only their programs know.
func isForeign(tool string) bool {
	first, _ := utf8.DecodeRuneInString(tool)
	before, _, server := strings.Cut(tool, ":")
	return unicode.IsUpper(first) || strings.ContainsAny(tool, "()*") || server && before != "mcp"
}

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
func (r *agentReader) readInstructions(data []byte, from int, a *Agent) {
	line := 1 + bytes.Count(data[:from], []byte("\n"))
	a.Instructions = strings.TrimSpace(strings.ReplaceAll(string(data[from:]), "\r\n", "\n"))
	switch {
	case a.Instructions == "":
		r.RecordFault("agent", line, "has no text after its front matter: that text is what the agent is told")
	case len(a.Instructions) > maxInstructions:
		r.RecordFault("agent", line, "the text after the front matter has %d bytes; at most %d are accepted", len(a.Instructions), maxInstructions)
	}
	a.Instructions = r.literal(a.Instructions)
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
