package schema

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
	maxBytes = 4 << 20
	maxNodes = 100_000
	maxDepth = 64
)

type nodeKind int

const (
	nodeNull nodeKind = iota
	nodeBool
	nodeNumber
	nodeString
	nodeList
	nodeMap
)

func (k nodeKind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a list", "a mapping"}[k]
}

// A node is one value of a schema file and its place. YAML and JSON become the
// same tree.
type node struct {
	kind      nodeKind
	line, col int
	text      string         // of scalars: the string, the number as JSON writes it, "true", "false"
	keys      []*node        // of mappings, parallel to items, each a string
	items     []*node        // of mappings and lists
	index     map[string]int // of mappings: key to position
}

// get returns the value of key, nil when n is no mapping or has no such key.
func (n *node) get(key string) *node {
	if n == nil || n.kind != nodeMap {
		return nil
	}
	if i, ok := n.index[key]; ok {
		return n.items[i]
	}
	return nil
}

// decodeValue converts n into what encoding/json would decode with UseNumber.
func (n *node) decodeValue() any {
	switch n.kind {
	case nodeBool:
		return n.text == "true"
	case nodeNumber:
		return json.Number(n.text)
	case nodeString:
		return n.text
	case nodeList:
		list := make([]any, len(n.items))
		for i, item := range n.items {
			list[i] = item.decodeValue()
		}
		return list
	case nodeMap:
		m := make(map[string]any, len(n.items))
		for i, item := range n.items {
			m[n.keys[i].text] = item.decodeValue()
		}
		return m
	default:
		return nil
	}
}

// A treeParser turns a file into a tree of nodes with their places.
type treeParser struct {
	*faults
	nodes int // so far
}

// parseTree reads data as JSON when it looks like it, else as YAML.
func (t *treeParser) parseTree(data []byte) *node {
	if len(data) > maxBytes {
		t.errs = append(t.errs, &Error{File: t.file, Line: 1, Column: 1, Msg: fmt.Sprintf("the schema has %d bytes, of %d at most", len(data), maxBytes)})
		return nil
	}

	if !utf8.Valid(data) {
		t.errs = append(t.errs, &Error{File: t.file, Msg: "not valid UTF-8"})
		return nil
	}

	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(bytes.TrimSpace(data)) == 0 {
		t.errs = append(t.errs, &Error{File: t.file, Msg: "the schema is empty"})
		return nil
	}

	if json.Valid(data) || strings.HasSuffix(strings.ToLower(t.file), ".json") {
		return t.parseJSON(data)
	}

	return t.parseYAML(data)
}

// A jsonBuilder makes nodes of a JSON text; encoding/json knows no places but
// byte offsets.
type jsonBuilder struct {
	*treeParser
	data []byte
	dec  *json.Decoder
	seen int // offset up to which line and start are counted
	line int
	col  int // characters of the line up to seen
}

func (t *treeParser) parseJSON(data []byte) *node {
	var syntax *json.SyntaxError
	if err := json.Unmarshal(data, new(json.RawMessage)); errors.As(err, &syntax) {
		line, col := lineColumn(data, int(syntax.Offset)-1)
		t.errs = append(t.errs, &Error{File: t.file, Line: line, Column: col, Msg: errs.JSONFault(err)})
		return nil
	}
	b := &jsonBuilder{treeParser: t, data: data, dec: json.NewDecoder(bytes.NewReader(data)), line: 1}
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
func (b *jsonBuilder) readValue(path string, depth int) *node {
	before := int(b.dec.InputOffset())
	tok, err := b.dec.Token()
	if err != nil {
		return nil
	}

	n := &node{}
	n.line, n.col = b.tokenPosition(before)

	if !b.countNode(n, depth) {
		return nil
	}

	switch tok := tok.(type) {
	case json.Delim:
		return b.readItems(n, tok, path, depth)
	case bool:
		n.kind, n.text = nodeBool, strconv.FormatBool(tok)
	case json.Number:
		n.kind, n.text = nodeNumber, tok.String()
		b.checkNumber(n, path)
	case string:
		n.kind, n.text = nodeString, tok
	}

	return n
}

// readItems reads the inside of a list or mapping.
func (b *jsonBuilder) readItems(n *node, open json.Delim, path string, depth int) *node {
	n.kind = nodeList
	if open == '{' {
		n.kind = nodeMap
	}

	for i := 0; b.dec.More(); i++ {
		inner := fmt.Sprintf("%s[%d]", path, i)
		var key *node

		if n.kind == nodeMap {
			if key = b.readValue(path, depth+1); key == nil {
				return nil
			}
			inner = joinPath(path, key.text)
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
func (t *treeParser) addItem(n, key, item *node, path string) {
	if key == nil {
		n.items = append(n.items, item)
		return
	}

	if i, ok := n.index[key.text]; ok {
		t.recordFault(key, joinPath(path, key.text), "key already given in line %d", n.keys[i].line)
		return
	}

	if n.index == nil {
		n.index = map[string]int{}
	}

	n.index[key.text] = len(n.keys)
	n.keys, n.items = append(n.keys, key), append(n.items, item)
}

// countNode enforces the bounds on a file.
func (t *treeParser) countNode(n *node, depth int) bool {
	t.nodes++
	switch {
	case t.nodes > maxNodes:
		t.recordFault(n, "", "the schema has more than %d values", maxNodes)
	case depth > maxDepth:
		t.recordFault(n, "", "the schema is nested deeper than %d", maxDepth)
	default:
		return true
	}
	return false
}

// checkNumber refuses numbers that would take unbounded memory to compute with.
func (t *treeParser) checkNumber(n *node, path string) {
	if _, ok := format.CanonicalNumber(n.text); !ok {
		t.recordFault(n, path, "the number %s is out of range", clipText(n.text))
		n.text = "0"
	}
}

func (t *treeParser) parseYAML(data []byte) *node {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil {
		t.yamlError(err)
		return nil
	}

	switch err := dec.Decode(&more); {
	case err == nil:
		t.errs = append(t.errs, &Error{File: t.file, Line: more.Line, Column: more.Column, Msg: "more than one YAML document"})
		return nil
	case !errors.Is(err, io.EOF):
		t.yamlError(err)
		return nil
	}

	return t.fromYAML(doc.Content[0], "", 0)
}

// yamlError records a syntax error.
func (t *treeParser) yamlError(err error) {
	e := &Error{File: t.file}
	if e.Line, e.Msg = errs.YAMLFault(err); e.Line > 0 {
		e.Column = 1
	}
	if errors.Is(err, io.EOF) {
		e.Msg = "the schema is empty"
	}
	t.errs = append(t.errs, e)
}

// fromYAML converts y. It returns nil after a fault that makes the rest useless.
func (t *treeParser) fromYAML(y *yaml.Node, path string, depth int) *node {
	n := &node{line: y.Line, col: y.Column}
	if !t.countNode(n, depth) {
		return nil
	}

	switch y.Kind {
	case yaml.AliasNode:
		return t.fromYAML(y.Alias, path, depth+1)
	case yaml.SequenceNode:
		n.kind = nodeList
		for i, item := range y.Content {
			v := t.fromYAML(item, fmt.Sprintf("%s[%d]", path, i), depth+1)
			if v == nil {
				return nil
			}
			n.items = append(n.items, v)
		}
	case yaml.MappingNode:
		n.kind = nodeMap
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

func (t *treeParser) pairYAML(n *node, k, v *yaml.Node, path string, depth int) bool {
	key := &node{kind: nodeString, line: k.Line, col: k.Column, text: k.Value}
	if k.Kind != yaml.ScalarNode || k.ShortTag() == "!!merge" {
		t.recordFault(key, path, "keys must be plain strings; write merged mappings out")
		return true
	}

	item := t.fromYAML(v, joinPath(path, k.Value), depth+1)
	if item == nil {
		return false
	}

	t.addItem(n, key, item, path)
	return true
}

func (t *treeParser) scalarYAML(n *node, y *yaml.Node, path string) {
	n.kind, n.text = nodeString, y.Value
	switch y.ShortTag() {
	case "!!null":
		n.kind, n.text = nodeNull, ""
	case "!!bool":
		n.kind, n.text = nodeBool, strconv.FormatBool(strings.EqualFold(y.Value, "true"))
	case "!!int":
		n.kind = nodeNumber
		if i, ok := new(big.Int).SetString(strings.ReplaceAll(y.Value, "_", ""), 0); ok {
			n.text = i.String()
		}
		t.checkNumber(n, path)
	case "!!float":
		n.kind = nodeNumber
		f, err := strconv.ParseFloat(strings.ReplaceAll(y.Value, "_", ""), 64)
		switch {
		case err != nil || math.IsInf(f, 0) || math.IsNaN(f):
			n.text = y.Value
		case !json.Valid([]byte(y.Value)):
			n.text = strconv.FormatFloat(f, 'g', -1, 64)
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

// joinPath appends a name to a path.
func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// clipText shortens text from outside for a message.
func clipText(s string) string { return shorten.Text(s, 60) }
