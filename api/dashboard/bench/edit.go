package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/api/errs"
)

// An Edit changes one thing of a property, as somebody does in a form.
type Edit struct {
	At    string `json:"at"` // as of a Row; of a new property that of the one behind which it is to stand, or empty
	What  string `json:"what"`
	Value string `json:"value"` // of several texts a line each; empty takes it away
}

// What an edit may change.
const (
	editName        = "name"
	editType        = "type"
	editFormat      = "format"
	editDescription = "description"
	editLabels      = "labels"
	editPatterns    = "pattern"
	editRequired    = "required" // Value is "true" or empty
	editAdd         = "add"      // Value is the name
	editRemove      = "remove"
)

var (
	errEmpty = errors.New("there is nothing in it")
	errText  = errs.New(errs.Precondition, "this part of the schema cannot be changed by the form: change it in the text")
)

// Apply returns a schema in which one thing is another. Of YAML it changes the lines of that property
// alone; JSON, which has no comments, is written anew.
func Apply(text string, e Edit) (string, error) {
	if len(text) > MaxSchema {
		return "", errs.Field("schema", "has %d KiB, of %d KiB at most", len(text)>>10, MaxSchema>>10)
	}
	if e.What == editAdd && strings.TrimSpace(text) == "" {
		text = "type: object\nproperties:\n"
	}

	root, err := parse(text)
	if err != nil {
		return "", errs.Field("schema", "cannot be read, so the form cannot change it: mend the text first (%w)", err)
	}
	path, err := split(e.At)
	if err != nil {
		return "", err
	}

	d := &draft{text: text, json: json.Valid([]byte(text))}
	if err := d.apply(root, path, e); err != nil {
		return "", err
	}

	// What was written must be what was asked for, or nothing is changed.
	if _, err := parse(d.text); err != nil {
		return "", errText
	}
	return d.text, nil
}

// A draft is a schema while it is changed.
type draft struct {
	text string
	json bool
	name string // that the entry which is written next gets; empty leaves it
}

// apply carries out an edit, which may be of several places.
func (d *draft) apply(root *yaml.Node, path []string, e Edit) error {
	switch e.What {
	case editAdd:
		return d.add(root, path, strings.TrimSpace(e.Value))
	case editRemove, editRequired, editName:
		if len(path) < 2 || path[len(path)-2] != "properties" {
			return errText // the items of a list have neither a name nor a place among the required
		}
	}

	name := ""
	if len(path) > 0 {
		name = path[len(path)-1]
	}
	switch e.What {
	case editRequired:
		return d.require(path, name, name, e.Value == "true")
	case editRemove:
		if err := d.require(path, name, "", false); err != nil {
			return err
		}
		d.dropNotes(path)
		return d.change(path[:len(path)-1], func(properties *yaml.Node) error {
			if len(properties.Content) <= 2 {
				return errs.Field("schema", "needs at least one property")
			}
			i := indexOf(properties, name)
			properties.Content = slices.Delete(properties.Content, i, i+2)
			return nil
		}, name)
	case editName:
		return d.rename(path, name, strings.TrimSpace(e.Value))
	}
	return d.change(path, func(property *yaml.Node) error { return set(property, e.What, e.Value) }, "")
}

// dropNotes leaves the comments out that stand directly above a property: without it they would seem to be about the
// next one.
func (d *draft) dropNotes(path []string) {
	root, err := parse(d.text)
	if err != nil {
		return // the change says so
	}
	properties := find(root, path[:len(path)-1])
	i := indexOf(properties, path[len(path)-1])
	if i < 0 {
		return
	}

	key, lines := properties.Content[i], strings.Split(d.text, "\n")
	first := key.Line - 1
	if column := key.Column - 1; first >= len(lines) || column > len(lines[first]) || strings.TrimSpace(lines[first][:column]) != "" {
		return // it stands on a line with others
	}
	from := first
	for from > 0 && strings.HasPrefix(lines[from-1], strings.Repeat(" ", key.Column-1)+"#") {
		from--
	}
	d.text = strings.Join(slices.Delete(lines, from, first), "\n")
}

// rename gives a property another name, also where it is required.
func (d *draft) rename(path []string, name, to string) error {
	if to == "" {
		return errs.Field("name", "is empty")
	}
	if to == name {
		return nil
	}

	root, err := parse(d.text)
	if err != nil {
		return errText
	}
	properties := find(root, path[:len(path)-1])
	switch {
	case indexOf(properties, name) < 0:
		return errGone
	case indexOf(properties, to) >= 0:
		return errs.Field("name", "there is a property %q already", to)
	}

	// Alone, the property keeps all around it as it is.
	if e, found := deepest(root, strings.SplitAfter(d.text, "\n"), path); !d.json && found && e.depth == len(path) {
		d.name = to
		err = d.change(path, func(*yaml.Node) error { return nil }, "")
	} else {
		err = d.change(path[:len(path)-1], func(properties *yaml.Node) error {
			setName(properties.Content[indexOf(properties, name)], to)
			return nil
		}, "")
	}
	if err != nil {
		return err
	}
	return d.require(path, name, to, false)
}

// setName changes a name, and leaves the comments that stand with it.
func setName(key *yaml.Node, to string) {
	fresh := scalar(to)
	fresh.HeadComment, fresh.LineComment, fresh.FootComment = key.HeadComment, key.LineComment, key.FootComment
	*key = *fresh
}

// require puts a property among the required ones, takes it away, or gives it another name there.
func (d *draft) require(path []string, name, to string, needed bool) error {
	return d.change(path[:len(path)-2], func(object *yaml.Node) error {
		list := valueOf(object, "required")
		has := slices.Index(texts(list), name)

		switch {
		case list != nil && list.Kind != yaml.SequenceNode:
			return errText
		case needed && list == nil:
			list = &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle, Content: []*yaml.Node{scalar(name)}}
			object.Content = slices.Insert(object.Content, indexOf(object, "properties"), scalar("required"), list)
		case needed && has < 0:
			list.Content = append(list.Content, scalar(name))
		case needed || has < 0:
		case to != "" && to != name:
			list.Content[has] = scalar(to)
		case len(list.Content) == 1:
			i := indexOf(object, "required")
			object.Content = slices.Delete(object.Content, i, i+2)
		default:
			list.Content = slices.Delete(list.Content, has, has+1)
		}

		return nil
	}, "required")
}

// add puts a property of text behind another, or behind all.
func (d *draft) add(root *yaml.Node, path []string, name string) error {
	if name == "" {
		return errs.Field("name", "is empty")
	}

	at, after := path, ""
	if len(path) >= 2 && path[len(path)-2] == "properties" {
		at, after = path[:len(path)-1], path[len(path)-1]
	} else if at = firstProperties(root, nil, 0); at == nil {
		return errText
	}

	return d.change(at[:len(at)-1], func(object *yaml.Node) error {
		i := indexOf(object, "properties")
		properties := object.Content[i+1]
		if properties.Kind != yaml.MappingNode {
			properties = &yaml.Node{Kind: yaml.MappingNode}
			object.Content[i+1] = properties
		}
		if indexOf(properties, name) >= 0 {
			return errs.Field("name", "there is a property %q already", name)
		}

		where := len(properties.Content)
		if j := indexOf(properties, after); j >= 0 {
			where = j + 2
		}
		fresh := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle, Content: []*yaml.Node{scalar("type"), scalar("string")}}
		properties.Content = slices.Insert(properties.Content, where, scalar(name), fresh)
		return nil
	}, "properties")
}

// firstProperties returns where the outermost properties of a schema stand; nil if it has none.
func firstProperties(n *yaml.Node, at []string, deep int) []string {
	if n.Kind != yaml.MappingNode || deep > maxDeep {
		return nil
	}
	if valueOf(n, "properties") != nil {
		return append(slices.Clone(at), "properties")
	}

	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i].Value; !slices.Contains(notSchemas, key) {
			if found := firstProperties(n.Content[i+1], append(slices.Clone(at), key), deep+1); found != nil {
				return found
			}
		}
	}
	return nil
}

// set changes one thing of a property.
func set(property *yaml.Node, what, value string) error {
	if property.Kind != yaml.MappingNode {
		return errText
	}

	lines := slices.DeleteFunc(strings.Split(value, "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
	switch what {
	case editType:
		setType(property, value)
	case editFormat, editDescription:
		put(property, what, textNode(value))
	case editLabels:
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		setHint(property, what, listNode(lines))
	case editPatterns:
		one := listNode(lines)
		if len(lines) == 1 {
			one = textNode(lines[0])
		}
		setHint(property, what, one)
	default:
		return errs.Field("what", "%q is nothing that a form changes", what)
	}
	return nil
}

// setType sets the type of a property, and leaves null allowed where it was.
func setType(property *yaml.Node, name string) {
	if list := valueOf(property, "type"); list != nil && list.Kind == yaml.SequenceNode && name != "" {
		kept := slices.DeleteFunc(slices.Clone(list.Content), func(n *yaml.Node) bool { return n.Value != "null" })
		list.Content = append([]*yaml.Node{scalar(name)}, kept...)
		return
	}
	put(property, "type", textNode(name))
}

// setHint sets a hint of a property, and takes the hints away with the last of them.
func setHint(property *yaml.Node, name string, value *yaml.Node) {
	hints := valueOf(property, hintName)
	if hints == nil || hints.Kind != yaml.MappingNode {
		hints = &yaml.Node{Kind: yaml.MappingNode}
	}
	put(hints, name, value)
	if len(hints.Content) == 0 {
		hints = nil
	}
	put(property, hintName, hints)
}

// put sets what a mapping has under a name; nil takes it away.
func put(n *yaml.Node, name string, value *yaml.Node) {
	i := indexOf(n, name)
	switch {
	case value == nil && i >= 0:
		n.Content = slices.Delete(n.Content, i, i+2)
	case value == nil:
	case i >= 0:
		value.LineComment = n.Content[i+1].LineComment
		n.Content[i+1] = value
	default:
		n.Content = append(n.Content, scalar(name), value)
	}
}

func textNode(text string) *yaml.Node {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return scalar(text)
}

func listNode(lines []string) *yaml.Node {
	if len(lines) == 0 {
		return nil
	}
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, line := range lines {
		n.Content = append(n.Content, scalar(line))
	}
	return n
}

// scalar is a text, quoted where it would be something else without.
func scalar(text string) *yaml.Node {
	var n yaml.Node
	n.SetString(text)
	return &n
}

// change changes what stands at a path. Part names the entry of it that is changed, if that is one
// alone: then the lines of that entry are written anew, and otherwise all of what stands there.
func (d *draft) change(path []string, fn func(*yaml.Node) error, part string) error {
	root, err := parse(d.text)
	if err != nil {
		return errText
	}

	if d.json {
		at := find(root, path)
		if at == nil {
			return errGone
		}
		if err := fn(at); err != nil {
			return err
		}
		d.text = writeJSON(root, indentOf(d.text))
		return nil
	}
	return d.splice(root, path, part, fn)
}

var errGone = errs.New(errs.Aborted, "the text has changed meanwhile, and there is no such property any more")

// find returns what stands at a path, or nil.
func find(n *yaml.Node, path []string) *yaml.Node {
	for _, step := range path {
		switch {
		case n == nil:
			return nil
		case n.Kind == yaml.SequenceNode:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(n.Content) {
				return nil
			}
			n = n.Content[i]
		default:
			n = valueOf(n, step)
		}
	}
	return n
}

// split returns the names of a path.
func split(at string) ([]string, error) {
	if at == "" {
		return nil, nil
	}
	if !strings.HasPrefix(at, "/") || strings.Count(at, "/") > 4*maxDeep {
		return nil, errs.Field("at", "%.80q is no place in a schema", at)
	}

	steps := strings.Split(at[1:], "/")
	for i, step := range steps {
		steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
	}
	return steps, nil
}

// escape writes a name for a path, as JSON Pointer does.
func escape(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

func number(i int) string { return strconv.Itoa(i) }

// indentOf is by how many blanks a text indents.
func indentOf(text string) int {
	for line := range strings.Lines(text) {
		if n := len(line) - len(strings.TrimLeft(line, " ")); n > 0 && n <= 8 && strings.TrimSpace(line) != "" {
			return n
		}
	}
	return 2
}

// writeJSON writes a tree as JSON, its names in their order.
func writeJSON(n *yaml.Node, indent int) string {
	var compact, out bytes.Buffer
	appendJSON(&compact, n)
	if json.Indent(&out, compact.Bytes(), "", strings.Repeat(" ", indent)) != nil {
		return compact.String()
	}
	return out.String() + "\n"
}

func appendJSON(out *bytes.Buffer, n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		out.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				out.WriteByte(',')
			}
			out.Write(quoteJSON(n.Content[i].Value))
			out.WriteByte(':')
			appendJSON(out, n.Content[i+1])
		}
		out.WriteByte('}')

	case yaml.SequenceNode:
		out.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				out.WriteByte(',')
			}
			appendJSON(out, item)
		}
		out.WriteByte(']')

	default:
		if n.Tag != "!!str" && json.Valid([]byte(n.Value)) {
			out.WriteString(n.Value) // a number, true, false or null, as it was written
			return
		}
		out.Write(quoteJSON(n.Value))
	}
}

// quoteJSON writes a text without the escapes that only pages need.
func quoteJSON(text string) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a text is always good JSON
	return bytes.TrimSpace(out.Bytes())
}
