// Package agentfile reads the Markdown file that an agent may have of its own: front matter in YAML says
// its name, when it is of use, which tools it may use and which model it asks, and the text behind it has
// its instructions. Other programs have the same convention, so their files are read as they are: their
// names of tools are understood, and what has no effect here is left out and noted. It is pure, and must
// import nothing of the project but package pipeline, whose agents it makes, and what that imports.
package agentfile

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/pipeline/internal/filetree"
	"github.com/coditect/mapreduce/api/pipeline/internal/naming"
	"github.com/coditect/mapreduce/api/pipeline/internal/template"
)

// MaxBytes bounds the file of an agent.
const MaxBytes = pipeline.MaxInstructions

// fence is the line before and behind front matter.
var fence = regexp.MustCompile(`(?m)^---[ \t]*\r?$`)

// Parse reads the file of an agent. The notes say what of it has no effect. An error is
// of kind Invalid: its field is the key that is wrong, its operation names file and line.
func Parse(file string, data []byte) (a *pipeline.Agent, notes []string, err error) {
	r := &agentReader{Reader: &filetree.Reader{File: file}}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	marks := fence.FindAllIndex(data, 2)

	switch {
	case len(data) > MaxBytes:
		r.RecordFault("agent", 0, "has %d bytes; at most %d are accepted", len(data), MaxBytes)
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

	a = &pipeline.Agent{}
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
	*filetree.Reader
	notes []string // what has no effect
}

func (r *agentReader) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// ignored are keys of other programs' files that say nothing here.
var ignored = []string{"color", "license", "metadata", "version"}

func (r *agentReader) readFront(n *filetree.Node, a *pipeline.Agent) {
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
	case !naming.IsName(a.Name):
		r.RecordFault("name", n.LineOf("name"), "must be %s, and is %.80q", naming.Rule, a.Name)
	case a.Description == "":
		r.RecordFault("description", n.LineOf("description"), "is required: it says when the agent is of use")
	case len(a.Tools) > pipeline.MaxTools:
		r.RecordFault("tools", n.LineOf("tools"), "there are %d; at most %d are accepted", len(a.Tools), pipeline.MaxTools)
	}

	a.Description = r.literal(a.Description)
}

// unnamed matches what the name of an agent has not.
var unnamed = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// readNames gives the name and the model of an agent the form that they have here.
func (r *agentReader) readNames(a *pipeline.Agent) {
	if own := strings.Trim(unnamed.ReplaceAllString(a.Name, "-"), "-"); own != a.Name && own != "" {
		r.note("its name is %s here, as a name has no other characters than letters, digits, dots, dashes and underscores", own)
		a.Name = own
	}

	switch {
	case a.Model == "inherit" || a.Model == "default":
		a.Model = ""
	case strings.HasPrefix(a.Model, "claude-"):
		a.Model = "anthropic/" + a.Model
	case a.Model != "" && !naming.IsWord(a.Model):
		r.note("its model, %.80q, is neither provider/model nor an alias: it asks the model of the run", a.Model)
		a.Model = ""
	}
}

// literal returns a text in which braces that make no template stand apart, so that it is a
// text and nothing else.
func (r *agentReader) literal(text string) string {
	if _, err := template.Parse(text); err == nil {
		return text
	}
	if !slices.ContainsFunc(r.notes, func(n string) bool { return strings.HasPrefix(n, "braces") }) {
		r.note("braces that name no variable stand apart: { { and } }")
	}
	return strings.NewReplacer("{{", "{ {", "}}", "} }").Replace(text)
}

// readTools reads a list of tools, or their names in one text with commas between them. Tools
// that there are not are left out.
func (r *agentReader) readTools(n *filetree.Node, at string, a *pipeline.Agent) {
	var left []string
	add := func(text string) {
		tool := toolName(strings.Trim(strings.TrimPrefix(strings.TrimSpace(text), "- "), `"'[] `))
		switch {
		case tool == "" || slices.Contains(a.Tools, tool):
		case !naming.IsWord(tool) || isForeign(tool):
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
func (r *agentReader) readInstructions(data []byte, from int, a *pipeline.Agent) {
	line := 1 + bytes.Count(data[:from], []byte("\n"))
	a.Instructions = strings.TrimSpace(strings.ReplaceAll(string(data[from:]), "\r\n", "\n"))
	switch {
	case a.Instructions == "":
		r.RecordFault("agent", line, "has no text after its front matter: that text is what the agent is told")
	case len(a.Instructions) > pipeline.MaxInstructions:
		r.RecordFault("agent", line, "the text after the front matter has %d bytes; at most %d are accepted", len(a.Instructions), pipeline.MaxInstructions)
	}
	a.Instructions = r.literal(a.Instructions)
}
