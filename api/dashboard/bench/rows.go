package bench

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Row is a property of a schema as a form has it.
type Row struct {
	At    string // where it stands in the text: names and numbers, each behind a slash
	Name  string // empty of the items of a list
	Depth int
	Line  int

	Type, Format, Description, Labels, Patterns string // of several a line each
	Required                                    bool

	// Others are what the text says of the property beside that.
	Others []string
}

// Bounds of a form.
const (
	maxRows  = 500
	maxDeep  = 24
	hintName = "x-coditect"
)

// readRows returns the properties of a schema in the order of its text; nil if that cannot be read.
func readRows(text string) []Row {
	root, err := parse(text)
	if err != nil {
		return nil
	}
	w := &walker{rows: []Row{}}
	w.walk(root, "", 0, 0)
	return w.rows
}

// parse reads a text into its tree.
func parse(text string) (*yaml.Node, error) {
	var file yaml.Node
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		return nil, err
	}
	if len(file.Content) != 1 {
		return nil, errEmpty
	}
	return file.Content[0], nil
}

type walker struct{ rows []Row }

// notSchemas hold values, which may look like schemas.
var notSchemas = []string{hintName, "enum", "const", "default", "example", "examples", "required"}

// named hold schemas under names that anybody has chosen, which may be those of keywords.
var named = []string{"$defs", "definitions", "patternProperties", "dependentSchemas"}

// walk lists the properties below a node. An alias is not followed: its text stands elsewhere.
func (w *walker) walk(n *yaml.Node, at string, depth, deep int) {
	if deep > maxDeep || len(w.rows) >= maxRows {
		return
	}
	if n.Kind == yaml.SequenceNode {
		for i, item := range n.Content {
			w.walk(item, at+"/"+number(i), depth, deep+1)
		}
		return
	}
	if n.Kind != yaml.MappingNode {
		return
	}

	required := texts(valueOf(n, "required"))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		below := at + "/" + escape(key.Value)
		switch {
		case slices.Contains(notSchemas, key.Value):
		case slices.Contains(named, key.Value) && value.Kind == yaml.MappingNode:
			for j := 0; j+1 < len(value.Content); j += 2 {
				w.walk(value.Content[j+1], below+"/"+escape(value.Content[j].Value), depth, deep+1)
			}
		case key.Value == "properties" && value.Kind == yaml.MappingNode:
			w.properties(value, below, required, depth, deep)
		case key.Value == "items" && value.Kind == yaml.MappingNode && valueOf(value, "properties") == nil && depth > 0:
			w.add(newRow(value, below, "", depth, value.Line))
			w.walk(value, below, depth, deep+1)
		default:
			w.walk(value, below, depth, deep+1)
		}
	}
}

func (w *walker) properties(n *yaml.Node, at string, required []string, depth, deep int) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		below := at + "/" + escape(key.Value)
		row := newRow(value, below, key.Value, depth, key.Line)
		row.Required = slices.Contains(required, key.Value)
		w.add(row)
		w.walk(value, below, depth+1, deep+1)
	}
}

func (w *walker) add(r Row) {
	if len(w.rows) < maxRows {
		w.rows = append(w.rows, r)
	}
}

func newRow(n *yaml.Node, at, name string, depth, line int) Row {
	r := Row{At: at, Name: name, Depth: depth, Line: line, Type: typeOf(n), Format: textOf(n, "format"), Description: textOf(n, "description")}
	hints := valueOf(n, hintName)
	r.Labels = strings.Join(texts(valueOf(hints, "labels")), "\n")
	r.Patterns = strings.Join(texts(valueOf(hints, "pattern")), "\n")

	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if key := n.Content[i].Value; !slices.Contains([]string{"type", "format", "description", "properties", hintName}, key) {
			r.Others = append(r.Others, key)
		}
	}
	for i := 0; hints != nil && hints.Kind == yaml.MappingNode && i+1 < len(hints.Content); i += 2 {
		if key := hints.Content[i].Value; key != "labels" && key != "pattern" {
			r.Others = append(r.Others, key)
		}
	}
	return r
}

// typeOf is the type of a property that is not null.
func typeOf(n *yaml.Node) string {
	for _, name := range texts(valueOf(n, "type")) {
		if name != "null" {
			return name
		}
	}
	return ""
}

// valueOf returns what a mapping has under a name, or nil.
func valueOf(n *yaml.Node, name string) *yaml.Node {
	if i := indexOf(n, name); i >= 0 {
		return n.Content[i+1]
	}
	return nil
}

// indexOf returns where a mapping has a name, or -1.
func indexOf(n *yaml.Node, name string) int {
	for i := 0; n != nil && n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return i
		}
	}
	return -1
}

func textOf(n *yaml.Node, name string) string {
	if v := valueOf(n, name); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}

// texts are those of a scalar, or of a list of them.
func texts(n *yaml.Node) []string {
	switch {
	case n == nil:
		return nil
	case n.Kind == yaml.ScalarNode:
		return []string{n.Value}
	case n.Kind != yaml.SequenceNode:
		return nil
	}

	var all []string
	for _, item := range n.Content {
		if item.Kind == yaml.ScalarNode {
			all = append(all, item.Value)
		}
	}
	return all
}
