// Package filetree reads files of YAML or JSON as trees of values that know their lines,
// and takes values from these: a text, a number, a list, a mapping of keys that are known.
// It knows nothing of pipelines, but that a fault of a whole file is one of a pipeline.
package filetree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/api/errs"
)

// Bounds on the tree of a file: aliases of YAML can make a small file huge.
const (
	maxNodes = 20_000
	maxDepth = 64
	maxKey   = 256 // bytes
)

// A Node is one value of a file and its line. YAML and JSON become the
// same tree, in which aliases are written out.
type Node struct {
	Kind  yaml.Kind // ScalarNode, SequenceNode or MappingNode
	Tag   string    // of scalars: !!str, !!int, !!float, !!bool or !!null; anything else is text
	Text  string    // of scalars
	Line  int
	Keys  []*Node // of mappings, parallel to Items
	Items []*Node // of mappings and sequences
}

// String names the kind of value that n is, for messages.
func (n *Node) String() string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	}
	return fmt.Sprintf("%.40q", n.Text)
}

// A Reader reads the values of a file. It keeps the first fault that it meets, and goes on
// as if there was none: the caller asks for it at the end.
type Reader struct {
	File string      // its name, for messages
	Err  *errs.Error // the first fault; nil if there is none

	nodes int
}

// RecordFault records a fault of the value at a line. Field names the value.
func (r *Reader) RecordFault(field string, line int, format string, args ...any) {
	if r.Err != nil {
		return
	}
	r.Err = errs.Field(field, format, args...)
	r.Err.Op = r.File
	if line > 0 {
		r.Err.Op = fmt.Sprintf("%s:%d", r.File, line)
	}
}

// ReadTree reads data as JSON if it is JSON, else as YAML. It returns nil after a
// fault.
func (r *Reader) ReadTree(data []byte) *Node {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var root *Node

	switch {
	case !utf8.Valid(data):
		r.RecordFault("pipeline", 0, "is not valid UTF-8")
	case len(bytes.TrimSpace(data)) == 0:
		r.RecordFault("pipeline", 0, "is empty")
	case json.Valid(data):
		b := &jsonBuilder{Reader: r, data: data, decoder: json.NewDecoder(bytes.NewReader(data)), line: 1}
		b.decoder.UseNumber()
		root = b.readValue(0)
	default:
		root = r.ReadYAML(data)
	}

	if r.Err != nil {
		return nil
	}
	return root
}

// countNode enforces the bounds on a tree.
func (r *Reader) countNode(line, depth int) bool {
	r.nodes++
	switch {
	case r.nodes > maxNodes:
		r.RecordFault("pipeline", line, "has more than %d values, if aliases are written out", maxNodes)
	case depth > maxDepth:
		r.RecordFault("pipeline", line, "is nested deeper than %d", maxDepth)
	}
	return r.Err == nil
}

// addItem puts an item into a mapping. A key that stands there twice is a fault, since
// one of the two would be lost.
func (r *Reader) addItem(n, key, item *Node) {
	if len(key.Text) > maxKey {
		r.RecordFault("pipeline", key.Line, "the key %.40q has %d bytes; at most %d are accepted", key.Text, len(key.Text), maxKey)
	}
	n.Keys, n.Items = append(n.Keys, key), append(n.Items, item)
}

// checkUniqueKeys refuses a mapping that has a key twice.
func (r *Reader) checkUniqueKeys(n *Node) {
	lines := make(map[string]int, len(n.Keys))
	for _, key := range n.Keys {
		if line, twice := lines[key.Text]; twice {
			r.RecordFault("pipeline", key.Line, "the key %q stands in line %d already", key.Text, line)
		}
		lines[key.Text] = key.Line
	}
}

// A jsonBuilder makes nodes of a text that is known to be JSON. It counts lines as
// the decoder moves on.
type jsonBuilder struct {
	*Reader
	data    []byte
	decoder *json.Decoder
	seen    int // offset up to which lines are counted
	line    int
}

// nextToken reads the next token and returns the line that it ends in.
func (b *jsonBuilder) nextToken() (json.Token, int) {
	token, err := b.decoder.Token()
	if err != nil {
		b.RecordFault("pipeline", b.line, "%s", err)
	}
	for end := int(b.decoder.InputOffset()); b.seen < end; b.seen++ {
		if b.data[b.seen] == '\n' {
			b.line++
		}
	}
	return token, b.line
}

// readValue reads one value. It returns nil after a fault.
func (b *jsonBuilder) readValue(depth int) *Node {
	token, line := b.nextToken()
	n := &Node{Kind: yaml.ScalarNode, Line: line}
	if !b.countNode(line, depth) {
		return nil
	}

	switch v := token.(type) {
	case json.Delim:
		return b.readItems(n, v, depth)
	case string:
		n.Tag, n.Text = "!!str", v
	case bool:
		n.Tag, n.Text = "!!bool", strconv.FormatBool(v)
	case json.Number:
		n.Tag, n.Text = "!!int", v.String()
		if strings.ContainsAny(n.Text, ".eE") {
			n.Tag = "!!float"
		}
	default:
		n.Tag = "!!null"
	}

	return n
}

// readItems reads the items of a list or mapping up to its end.
func (b *jsonBuilder) readItems(n *Node, open json.Delim, depth int) *Node {
	n.Kind = yaml.SequenceNode
	if open == '{' {
		n.Kind = yaml.MappingNode
	}

	for b.decoder.More() {
		var key *Node
		if n.Kind == yaml.MappingNode {
			if key = b.readValue(depth + 1); key == nil {
				return nil
			}
		}

		item := b.readValue(depth + 1)
		if item == nil {
			return nil
		}

		if key != nil {
			b.addItem(n, key, item)
		} else {
			n.Items = append(n.Items, item)
		}
	}

	b.nextToken() // the closing bracket
	b.checkUniqueKeys(n)
	return n
}

// ReadYAML reads data as YAML. It returns nil after a fault.
func (r *Reader) ReadYAML(data []byte) *Node {
	d := yaml.NewDecoder(bytes.NewReader(data))
	var document, more yaml.Node
	err := d.Decode(&document)
	// Whatever follows the first document would be lost.
	if err == nil {
		if err = d.Decode(&more); err == nil {
			r.RecordFault("pipeline", more.Line, "there is more than one document in the file")
			return nil
		}
	}

	switch {
	case len(document.Content) == 0 && errors.Is(err, io.EOF):
		r.RecordFault("pipeline", 0, "is empty")
		return nil
	case !errors.Is(err, io.EOF):
		line, text := errs.YAMLFault(err)
		r.RecordFault("pipeline", line, "%s", text)
		return nil
	}

	return r.fromYAML(document.Content[0], 0)
}

// fromYAML copies y without aliases. It returns nil after a fault.
func (r *Reader) fromYAML(y *yaml.Node, depth int) *Node {
	n := &Node{Kind: y.Kind, Line: y.Line}
	if !r.countNode(y.Line, depth) {
		return nil
	}

	switch y.Kind {
	case yaml.AliasNode:
		// The bounds on depth and number hold for what aliases stand for too.
		return r.fromYAML(y.Alias, depth+1)
	case yaml.SequenceNode:
		for _, item := range y.Content {
			v := r.fromYAML(item, depth+1)
			if v == nil {
				return nil
			}
			n.Items = append(n.Items, v)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(y.Content); i += 2 {
			key := y.Content[i]
			if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
				r.RecordFault("pipeline", key.Line, "keys must be plain texts; write merged mappings out")
				return nil
			}
			v := r.fromYAML(y.Content[i+1], depth+1)
			if v == nil {
				return nil
			}
			r.addItem(n, &Node{Kind: yaml.ScalarNode, Tag: "!!str", Text: key.Value, Line: key.Line}, v)
		}
		r.checkUniqueKeys(n)
	default:
		r.copyScalar(n, y)
	}

	return n
}

// copyScalar copies a scalar. Numbers get the form that JSON has for them.
func (r *Reader) copyScalar(n *Node, y *yaml.Node) {
	n.Kind, n.Tag, n.Text = yaml.ScalarNode, y.ShortTag(), y.Value

	switch n.Tag {
	case "!!null":
		n.Text = ""
	case "!!bool":
		n.Text = strings.ToLower(y.Value)
	case "!!int", "!!float":
		if json.Valid([]byte(y.Value)) {
			return
		}

		var v any
		if err := y.Decode(&v); err != nil {
			r.RecordFault("pipeline", y.Line, "%.40q is no number that can be read", y.Value)
			return
		}
		if f, ok := v.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
			r.RecordFault("pipeline", y.Line, "%.40q is no number that can be read", y.Value)
			return
		}

		text, err := json.Marshal(v)
		if err != nil {
			r.RecordFault("pipeline", y.Line, "%.40q is no number that can be read", y.Value)
			return
		}
		n.Text = string(text)
	}
}

// WriteJSON writes n with the keys of mappings in the order of the file.
func (n *Node) WriteJSON(b *bytes.Buffer) {
	brackets := "[]"
	switch n.Kind {
	case yaml.MappingNode:
		brackets = "{}"
	case yaml.SequenceNode:
	default:
		n.writeScalar(b)
		return
	}

	b.WriteByte(brackets[0])
	for i, item := range n.Items {
		if i > 0 {
			b.WriteByte(',')
		}
		if n.Kind == yaml.MappingNode {
			writeString(b, n.Keys[i].Text)
			b.WriteByte(':')
		}
		item.WriteJSON(b)
	}
	b.WriteByte(brackets[1])
}

func (n *Node) writeScalar(b *bytes.Buffer) {
	switch n.Tag {
	case "!!null":
		b.WriteString("null")
	case "!!bool", "!!int", "!!float":
		b.WriteString(n.Text)
	default:
		writeString(b, n.Text)
	}
}

func writeString(b *bytes.Buffer, text string) {
	_ = EncodeJSON(b, text) // a string can always be written
}

// EncodeJSON writes v as JSON on one line, without the escapes that are meant for HTML.
func EncodeJSON(b *bytes.Buffer, v any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the line's end
	return nil
}

// DecodeValue returns n as encoding/json would decode it with UseNumber.
func (n *Node) DecodeValue() any {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Items))
		for i, item := range n.Items {
			m[n.Keys[i].Text] = item.DecodeValue()
		}
		return m
	case yaml.SequenceNode:
		list := make([]any, len(n.Items))
		for i, item := range n.Items {
			list[i] = item.DecodeValue()
		}
		return list
	}

	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		return n.Text == "true"
	case "!!int", "!!float":
		return json.Number(n.Text)
	}
	return n.Text
}

// LineOf returns the line of the value that field names, such as stages[2].from, or
// of the nearest value around it that the file has; 0 if there is none.
func (n *Node) LineOf(field string) int {
	if n == nil {
		return 0
	}

	field = strings.TrimPrefix(field, ".")
	if rest, ok := strings.CutPrefix(field, "["); ok && n.Kind == yaml.SequenceNode {
		number, rest, _ := strings.Cut(rest, "]")
		if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(n.Items) {
			return n.Items[i].LineOf(rest)
		}
		return n.Line
	}

	for i, key := range n.Keys {
		rest, ok := strings.CutPrefix(field, key.Text)
		if !ok || rest != "" && rest[0] != '.' && rest[0] != '[' {
			continue
		}
		if rest == "" || len(n.Items[i].Items) == 0 {
			return key.Line
		}
		return n.Items[i].LineOf(rest)
	}
	return n.Line
}
