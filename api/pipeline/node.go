package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
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

// A node is one value of a pipeline file and its line. YAML and JSON become the
// same tree, in which aliases are written out.
type node struct {
	kind  yaml.Kind // ScalarNode, SequenceNode or MappingNode
	tag   string    // of scalars: !!str, !!int, !!float, !!bool or !!null; anything else is text
	text  string    // of scalars
	line  int
	keys  []*node // of mappings, parallel to items
	items []*node // of mappings and sequences
}

// String names the kind of value that n is, for messages.
func (n *node) String() string {
	switch {
	case n.kind == yaml.MappingNode:
		return "a mapping"
	case n.kind == yaml.SequenceNode:
		return "a list"
	case n.tag == "!!null":
		return "nothing"
	}
	return fmt.Sprintf("%.40q", n.text)
}

// A reader turns a file into a pipeline. It keeps the first fault that it meets.
type reader struct {
	file  string
	nodes int
	err   *errs.Error
}

// recordFault records a fault of the value at a line. Field names the value.
func (r *reader) recordFault(field string, line int, format string, args ...any) {
	if r.err != nil {
		return
	}
	r.err = errs.Field(field, format, args...)
	r.err.Op = r.file
	if line > 0 {
		r.err.Op = fmt.Sprintf("%s:%d", r.file, line)
	}
}

// readTree reads data as JSON if it is JSON, else as YAML. It returns nil after a
// fault.
func (r *reader) readTree(data []byte) *node {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var root *node
	switch {
	case !utf8.Valid(data):
		r.recordFault("pipeline", 0, "is not valid UTF-8")
	case len(bytes.TrimSpace(data)) == 0:
		r.recordFault("pipeline", 0, "is empty")
	case json.Valid(data):
		b := &jsonBuilder{reader: r, data: data, decoder: json.NewDecoder(bytes.NewReader(data)), line: 1}
		b.decoder.UseNumber()
		root = b.readValue(0)
	default:
		root = r.yamlTree(data)
	}
	if r.err != nil {
		return nil
	}
	return root
}

// countNode enforces the bounds on a tree.
func (r *reader) countNode(line, depth int) bool {
	r.nodes++
	switch {
	case r.nodes > maxNodes:
		r.recordFault("pipeline", line, "has more than %d values, aliases written out", maxNodes)
	case depth > maxDepth:
		r.recordFault("pipeline", line, "is nested deeper than %d", maxDepth)
	}
	return r.err == nil
}

// addItem puts an item into a mapping. A key that stands there twice is a fault, since
// one of the two would be lost.
func (r *reader) addItem(n, key, item *node) {
	if len(key.text) > maxKey {
		r.recordFault("pipeline", key.line, "the key %.40q has %d bytes; at most %d are accepted", key.text, len(key.text), maxKey)
	}
	n.keys, n.items = append(n.keys, key), append(n.items, item)
}

// checkUniqueKeys refuses a mapping that has a key twice.
func (r *reader) checkUniqueKeys(n *node) {
	lines := make(map[string]int, len(n.keys))
	for _, key := range n.keys {
		if line, twice := lines[key.text]; twice {
			r.recordFault("pipeline", key.line, "the key %q stands in line %d already", key.text, line)
		}
		lines[key.text] = key.line
	}
}

// A jsonBuilder makes nodes of a text that is known to be JSON. It counts lines as
// the decoder moves on.
type jsonBuilder struct {
	*reader
	data    []byte
	decoder *json.Decoder
	seen    int // offset up to which lines are counted
	line    int
}

// nextToken reads the next token and returns the line that it ends in.
func (b *jsonBuilder) nextToken() (json.Token, int) {
	token, err := b.decoder.Token()
	if err != nil {
		b.recordFault("pipeline", b.line, "%s", err)
	}
	for end := int(b.decoder.InputOffset()); b.seen < end; b.seen++ {
		if b.data[b.seen] == '\n' {
			b.line++
		}
	}
	return token, b.line
}

// readValue reads one value. It returns nil after a fault.
func (b *jsonBuilder) readValue(depth int) *node {
	token, line := b.nextToken()
	n := &node{kind: yaml.ScalarNode, line: line}
	if !b.countNode(line, depth) {
		return nil
	}
	switch v := token.(type) {
	case json.Delim:
		return b.readItems(n, v, depth)
	case string:
		n.tag, n.text = "!!str", v
	case bool:
		n.tag, n.text = "!!bool", strconv.FormatBool(v)
	case json.Number:
		n.tag, n.text = "!!int", v.String()
		if strings.ContainsAny(n.text, ".eE") {
			n.tag = "!!float"
		}
	default:
		n.tag = "!!null"
	}
	return n
}

// readItems reads the items of a list or mapping up to its end.
func (b *jsonBuilder) readItems(n *node, open json.Delim, depth int) *node {
	n.kind = yaml.SequenceNode
	if open == '{' {
		n.kind = yaml.MappingNode
	}
	for b.decoder.More() {
		var key *node
		if n.kind == yaml.MappingNode {
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
			n.items = append(n.items, item)
		}
	}
	b.nextToken() // the closing bracket
	b.checkUniqueKeys(n)
	return n
}

// yamlLine is how the YAML package begins a message about a line.
var yamlLine = regexp.MustCompile(`^line (\d+): `)

func (r *reader) yamlTree(data []byte) *node {
	d := yaml.NewDecoder(bytes.NewReader(data))
	var document, more yaml.Node
	err := d.Decode(&document)
	if err == nil {
		if err = d.Decode(&more); err == nil {
			r.recordFault("pipeline", more.Line, "there is more than one document in the file")
			return nil
		}
	}
	switch {
	case len(document.Content) == 0 && errors.Is(err, io.EOF):
		r.recordFault("pipeline", 0, "is empty")
		return nil
	case !errors.Is(err, io.EOF):
		text, line := strings.TrimPrefix(err.Error(), "yaml: "), 0
		if m := yamlLine.FindStringSubmatch(text); m != nil {
			line, _ = strconv.Atoi(m[1]) // which is digits
			text = text[len(m[0]):]
		}
		r.recordFault("pipeline", line, "%s", text)
		return nil
	}
	return r.fromYAML(document.Content[0], 0)
}

// fromYAML copies y without aliases. It returns nil after a fault.
func (r *reader) fromYAML(y *yaml.Node, depth int) *node {
	n := &node{kind: y.Kind, line: y.Line}
	if !r.countNode(y.Line, depth) {
		return nil
	}
	switch y.Kind {
	case yaml.AliasNode:
		return r.fromYAML(y.Alias, depth+1)
	case yaml.SequenceNode:
		for _, item := range y.Content {
			v := r.fromYAML(item, depth+1)
			if v == nil {
				return nil
			}
			n.items = append(n.items, v)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(y.Content); i += 2 {
			key := y.Content[i]
			if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
				r.recordFault("pipeline", key.Line, "keys must be plain texts; write merged mappings out")
				return nil
			}
			v := r.fromYAML(y.Content[i+1], depth+1)
			if v == nil {
				return nil
			}
			r.addItem(n, &node{kind: yaml.ScalarNode, tag: "!!str", text: key.Value, line: key.Line}, v)
		}
		r.checkUniqueKeys(n)
	default:
		r.copyScalar(n, y)
	}
	return n
}

// copyScalar copies a scalar. Numbers get the form that JSON has for them.
func (r *reader) copyScalar(n *node, y *yaml.Node) {
	n.kind, n.tag, n.text = yaml.ScalarNode, y.ShortTag(), y.Value
	switch n.tag {
	case "!!null":
		n.text = ""
	case "!!bool":
		n.text = strings.ToLower(y.Value)
	case "!!int", "!!float":
		if json.Valid([]byte(y.Value)) {
			return
		}
		var v any
		if err := y.Decode(&v); err != nil {
			r.recordFault("pipeline", y.Line, "%.40q is no number that can be read", y.Value)
			return
		}
		if f, ok := v.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
			r.recordFault("pipeline", y.Line, "%.40q is no number that can be read", y.Value)
			return
		}
		text, err := json.Marshal(v)
		if err != nil {
			r.recordFault("pipeline", y.Line, "%.40q is no number that can be read", y.Value)
			return
		}
		n.text = string(text)
	}
}

// writeJSON writes n with the keys of mappings in the order of the file.
func (n *node) writeJSON(b *bytes.Buffer) {
	brackets := "[]"
	switch n.kind {
	case yaml.MappingNode:
		brackets = "{}"
	case yaml.SequenceNode:
	default:
		n.writeScalar(b)
		return
	}
	b.WriteByte(brackets[0])
	for i, item := range n.items {
		if i > 0 {
			b.WriteByte(',')
		}
		if n.kind == yaml.MappingNode {
			writeString(b, n.keys[i].text)
			b.WriteByte(':')
		}
		item.writeJSON(b)
	}
	b.WriteByte(brackets[1])
}

func (n *node) writeScalar(b *bytes.Buffer) {
	switch n.tag {
	case "!!null":
		b.WriteString("null")
	case "!!bool", "!!int", "!!float":
		b.WriteString(n.text)
	default:
		writeString(b, n.text)
	}
}

func writeString(b *bytes.Buffer, text string) {
	_ = encodeJSON(b, text) // a string can always be written
}

// encodeJSON writes v as JSON on one line, without the escapes that are meant for HTML.
func encodeJSON(b *bytes.Buffer, v any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the line's end
	return nil
}

// decodeValue returns n as encoding/json would decode it with UseNumber.
func (n *node) decodeValue() any {
	switch n.kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.items))
		for i, item := range n.items {
			m[n.keys[i].text] = item.decodeValue()
		}
		return m
	case yaml.SequenceNode:
		list := make([]any, len(n.items))
		for i, item := range n.items {
			list[i] = item.decodeValue()
		}
		return list
	}
	switch n.tag {
	case "!!null":
		return nil
	case "!!bool":
		return n.text == "true"
	case "!!int", "!!float":
		return json.Number(n.text)
	}
	return n.text
}

// lineOf returns the line of the value that field names, such as stages[2].from, or
// of the nearest value around it that the file has; 0 if there is none.
func (n *node) lineOf(field string) int {
	if n == nil {
		return 0
	}
	field = strings.TrimPrefix(field, ".")
	if rest, ok := strings.CutPrefix(field, "["); ok && n.kind == yaml.SequenceNode {
		number, rest, _ := strings.Cut(rest, "]")
		if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(n.items) {
			return n.items[i].lineOf(rest)
		}
		return n.line
	}
	for i, key := range n.keys {
		rest, ok := strings.CutPrefix(field, key.text)
		if !ok || rest != "" && rest[0] != '.' && rest[0] != '[' {
			continue
		}
		if rest == "" || len(n.items[i].items) == 0 {
			return key.line
		}
		return n.items[i].lineOf(rest)
	}
	return n.line
}
