// Package source reads a schema file as a tree of values that know their places, whether it is
// YAML or JSON, collects what is wrong with it, and writes it in canonical form.
//
// It knows no property: what the values mean is above it.
package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/shorten"
)

// Bounds on a schema file: it comes from outside, and aliases of YAML can make
// a small file huge.
const (
	MaxBytes = 4 << 20
	maxNodes = 100_000
	maxDepth = 64
)

// A Kind tells the values of a file apart.
type Kind int

// The kinds of values.
const (
	Null Kind = iota
	Bool
	Number
	String
	List
	Map
)

// String names the kind, for messages.
func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a list", "a mapping"}[k]
}

// A Node is one value of a schema file and its place. YAML and JSON become the
// same tree.
type Node struct {
	Kind      Kind
	Line, Col int
	Text      string         // of scalars: the string, the number as JSON writes it, "true", "false"
	Keys      []*Node        // of mappings, parallel to items, each a string
	Items     []*Node        // of mappings and lists
	index     map[string]int // of mappings: key to position
}

// Get returns the value of key, nil when n is no mapping or has no such key.
func (n *Node) Get(key string) *Node {
	if n == nil || n.Kind != Map {
		return nil
	}
	if i, ok := n.index[key]; ok {
		return n.Items[i]
	}
	return nil
}

// DecodeValue converts n into what encoding/json would decode with UseNumber.
func (n *Node) DecodeValue() any {
	switch n.Kind {
	case Bool:
		return n.Text == "true"
	case Number:
		return json.Number(n.Text)
	case String:
		return n.Text
	case List:
		list := make([]any, len(n.Items))
		for i, item := range n.Items {
			list[i] = item.DecodeValue()
		}
		return list
	case Map:
		m := make(map[string]any, len(n.Items))
		for i, item := range n.Items {
			m[n.Keys[i].Text] = item.DecodeValue()
		}
		return m
	default:
		return nil
	}
}

// A TreeParser turns a file into a tree of nodes with their places.
type TreeParser struct {
	*Faults
	nodes int // so far
}

// Parse reads data as JSON when it looks like it, else as YAML.
func (t *TreeParser) Parse(data []byte) *Node {
	if len(data) > MaxBytes {
		t.Errs = append(t.Errs, &Error{File: t.File, Line: 1, Column: 1, Msg: fmt.Sprintf("the schema has %d bytes, of %d at most", len(data), MaxBytes)})
		return nil
	}

	if !utf8.Valid(data) {
		t.Errs = append(t.Errs, &Error{File: t.File, Msg: "not valid UTF-8"})
		return nil
	}

	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(bytes.TrimSpace(data)) == 0 {
		t.Errs = append(t.Errs, &Error{File: t.File, Msg: "the schema is empty"})
		return nil
	}

	if json.Valid(data) || strings.HasSuffix(strings.ToLower(t.File), ".json") {
		return t.parseJSON(data)
	}

	return t.parseYAML(data)
}

// A jsonBuilder makes nodes of a JSON text; encoding/json knows no places but
// byte offsets.
type jsonBuilder struct {
	*TreeParser
	data []byte
	dec  *json.Decoder
	seen int // offset up to which line and start are counted
	line int
	col  int // characters of the line up to seen
}

func (t *TreeParser) parseJSON(data []byte) *Node {
	var syntax *json.SyntaxError
	if err := json.Unmarshal(data, new(json.RawMessage)); errors.As(err, &syntax) {
		line, col := lineColumn(data, int(syntax.Offset)-1)
		t.Errs = append(t.Errs, &Error{File: t.File, Line: line, Column: col, Msg: errs.JSONFault(err)})
		return nil
	}
	b := &jsonBuilder{TreeParser: t, data: data, dec: json.NewDecoder(bytes.NewReader(data)), line: 1}
	b.dec.UseNumber()
	return b.readValue("", 0)
}

// tokenPosition returns the position of the token that was just read and ends at the
// decoder's offset; it must be called in order of offsets.
func (b *jsonBuilder) tokenPosition(start int) (line, col int) {
	for start < len(b.data) && strings.IndexByte(" \t\r\n,:", b.data[start]) >= 0 {
		start++
	}

	for ; b.seen < start; b.seen++ {
		// Columns count characters: only the first byte of each counts.
		switch c := b.data[b.seen]; {
		case c == '\n':
			b.line, b.col = b.line+1, 0
		case utf8.RuneStart(c):
			b.col++
		}
	}

	return b.line, b.col + 1
}

// readValue reads one value of a text that is known to be JSON. It returns nil when
// the file exceeds its bounds.
func (b *jsonBuilder) readValue(path string, depth int) *Node {
	before := int(b.dec.InputOffset())
	tok, err := b.dec.Token()
	if err != nil {
		return nil
	}

	n := &Node{}
	n.Line, n.Col = b.tokenPosition(before)

	if !b.countNode(n, depth) {
		return nil
	}

	switch tok := tok.(type) {
	case json.Delim:
		return b.readItems(n, tok, path, depth)
	case bool:
		n.Kind, n.Text = Bool, strconv.FormatBool(tok)
	case json.Number:
		n.Kind, n.Text = Number, tok.String()
		b.checkNumber(n, path)
	case string:
		n.Kind, n.Text = String, tok
	}

	return n
}

// readItems reads the inside of a list or mapping.
func (b *jsonBuilder) readItems(n *Node, open json.Delim, path string, depth int) *Node {
	n.Kind = List
	if open == '{' {
		n.Kind = Map
	}

	for i := 0; b.dec.More(); i++ {
		inner := fmt.Sprintf("%s[%d]", path, i)
		var key *Node

		if n.Kind == Map {
			if key = b.readValue(path, depth+1); key == nil {
				return nil
			}
			inner = JoinPath(path, key.Text)
		}

		item := b.readValue(inner, depth+1)
		if item == nil {
			return nil
		}

		b.addItem(n, key, item, path)
	}

	if _, err := b.dec.Token(); err != nil {
		return nil
	}

	return n
}

// addItem puts an item into a list or mapping; a key that was there before is a
// fault, since one of the two would be lost.
func (t *TreeParser) addItem(n, key, item *Node, path string) {
	if key == nil {
		n.Items = append(n.Items, item)
		return
	}

	if i, ok := n.index[key.Text]; ok {
		t.RecordFault(key, JoinPath(path, key.Text), "key already given in line %d", n.Keys[i].Line)
		return
	}

	if n.index == nil {
		n.index = map[string]int{}
	}

	n.index[key.Text] = len(n.Keys)
	n.Keys, n.Items = append(n.Keys, key), append(n.Items, item)
}

// countNode enforces the bounds on a file.
func (t *TreeParser) countNode(n *Node, depth int) bool {
	t.nodes++
	switch {
	case t.nodes > maxNodes:
		t.RecordFault(n, "", "the schema has more than %d values", maxNodes)
	case depth > maxDepth:
		t.RecordFault(n, "", "the schema is nested deeper than %d", maxDepth)
	default:
		return true
	}
	return false
}

// checkNumber refuses numbers that would take unbounded memory to compute with.
func (t *TreeParser) checkNumber(n *Node, path string) {
	if _, ok := format.CanonicalNumber(n.Text); !ok {
		t.RecordFault(n, path, "the number %s is out of range", Clip(n.Text))
		n.Text = "0"
	}
}

func (t *TreeParser) parseYAML(data []byte) *Node {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil {
		t.yamlError(err)
		return nil
	}

	switch err := dec.Decode(&more); {
	case err == nil:
		t.Errs = append(t.Errs, &Error{File: t.File, Line: more.Line, Column: more.Column, Msg: "more than one YAML document"})
		return nil
	case !errors.Is(err, io.EOF):
		t.yamlError(err)
		return nil
	}

	return t.fromYAML(doc.Content[0], "", 0)
}

// yamlError records a syntax error.
func (t *TreeParser) yamlError(err error) {
	e := &Error{File: t.File}
	if e.Line, e.Msg = errs.YAMLFault(err); e.Line > 0 {
		e.Column = 1
	}
	if errors.Is(err, io.EOF) {
		e.Msg = "the schema is empty"
	}
	t.Errs = append(t.Errs, e)
}

// fromYAML converts y. It returns nil after a fault that makes the rest useless.
func (t *TreeParser) fromYAML(y *yaml.Node, path string, depth int) *Node {
	n := &Node{Line: y.Line, Col: y.Column}
	if !t.countNode(n, depth) {
		return nil
	}

	switch y.Kind {
	case yaml.AliasNode:
		return t.fromYAML(y.Alias, path, depth+1)
	case yaml.SequenceNode:
		n.Kind = List
		for i, item := range y.Content {
			v := t.fromYAML(item, fmt.Sprintf("%s[%d]", path, i), depth+1)
			if v == nil {
				return nil
			}
			n.Items = append(n.Items, v)
		}
	case yaml.MappingNode:
		n.Kind = Map
		for i := 0; i+1 < len(y.Content); i += 2 {
			if !t.pairYAML(n, y.Content[i], y.Content[i+1], path, depth) {
				return nil
			}
		}
	default:
		t.scalarYAML(n, y, path)
	}

	return n
}

func (t *TreeParser) pairYAML(n *Node, k, v *yaml.Node, path string, depth int) bool {
	key := &Node{Kind: String, Line: k.Line, Col: k.Column, Text: k.Value}
	if k.Kind != yaml.ScalarNode || k.ShortTag() == "!!merge" {
		t.RecordFault(key, path, "keys must be plain strings; write merged mappings out")
		return true
	}

	item := t.fromYAML(v, JoinPath(path, k.Value), depth+1)
	if item == nil {
		return false
	}

	t.addItem(n, key, item, path)
	return true
}

func (t *TreeParser) scalarYAML(n *Node, y *yaml.Node, path string) {
	n.Kind, n.Text = String, y.Value
	switch y.ShortTag() {
	case "!!null":
		n.Kind, n.Text = Null, ""
	case "!!bool":
		n.Kind, n.Text = Bool, strconv.FormatBool(strings.EqualFold(y.Value, "true"))
	case "!!int":
		n.Kind = Number
		if i, ok := new(big.Int).SetString(strings.ReplaceAll(y.Value, "_", ""), 0); ok {
			n.Text = i.String()
		}
		t.checkNumber(n, path)
	case "!!float":
		n.Kind = Number
		f, err := strconv.ParseFloat(strings.ReplaceAll(y.Value, "_", ""), 64)
		switch {
		case err != nil || math.IsInf(f, 0) || math.IsNaN(f):
			n.Text = y.Value
		case !json.Valid([]byte(y.Value)):
			n.Text = strconv.FormatFloat(f, 'g', -1, 64)
		}
		t.checkNumber(n, path)
	}
}

// lineColumn converts a byte offset into line and column.
func lineColumn(data []byte, offset int) (line, col int) {
	head := data[:min(offset, len(data))]
	bol := bytes.LastIndexByte(head, '\n') + 1
	return bytes.Count(head, []byte("\n")) + 1, utf8.RuneCount(head[bol:]) + 1
}

// JoinPath appends a name to a path.
func JoinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Clip shortens text from outside for a message.
func Clip(s string) string { return shorten.Text(s, 60) }
