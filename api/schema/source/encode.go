package source

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// HintKey is the key under which a schema carries our hints.
const HintKey = "x-coditect"

// A Role is the meaning of a mapping's keys.
type Role int

// The roles of mappings.
const (
	Keywords   Role = iota // of JSON Schema
	properties             // names of schemas, in an order that means something
	schemas                // names of schemas
	Hints                  // of ours
	Values                 // names of lists, in an order that means something
	Data                   // whatever they are
)

// RoleOf returns the role of the value of a key.
func (r Role) RoleOf(key string) Role {
	switch r {
	case properties, schemas:
		return Keywords
	case Hints:
		if key == "values" {
			return Values
		}
		return Data
	case Values, Data:
		return Data
	}

	switch key {
	// Of a schema object, the key decides; all that is not listed holds schemas.
	case "properties":
		return properties
	case "$defs", "definitions", "patternProperties", "dependentSchemas":
		return schemas
	case HintKey:
		return Hints
	case "default", "examples", "const", "enum":
		return Data
	}
	return Keywords
}

// An encoder writes nodes as canonical JSON.
type encoder struct {
	bytes.Buffer
	plain bool // leaves out hints
}

// EncodeSchema writes a schema as canonical JSON; plain leaves out hints.
func EncodeSchema(root *Node, plain bool) []byte {
	e := encoder{plain: plain}
	e.encodeNode(root, Keywords)
	return e.Bytes()
}

func (e *encoder) encodeNode(n *Node, r Role) {
	switch n.Kind {
	case List:
		e.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				e.WriteByte(',')
			}
			e.encodeNode(item, r)
		}
		e.WriteByte(']')
	case Map:
		e.encodeMapping(n, r)
	case String:
		quoteJSON(&e.Buffer, n.Text)
	case Null:
		e.WriteString("null")
	default:
		e.WriteString(n.Text)
	}
}

func (e *encoder) encodeMapping(n *Node, r Role) {
	order := make([]int, 0, len(n.Keys))
	for i, key := range n.Keys {
		if !e.plain || r.RoleOf(key.Text) != Hints {
			order = append(order, i)
		}
	}

	if r != properties && r != Values {
		// Where the order is of meaning, in properties and values, that of the file is
		// kept.
		slices.SortFunc(order, func(i, j int) int { return strings.Compare(n.Keys[i].Text, n.Keys[j].Text) })
	}

	e.WriteByte('{')
	for i, j := range order {
		if i > 0 {
			e.WriteByte(',')
		}
		quoteJSON(&e.Buffer, n.Keys[j].Text)
		e.WriteByte(':')
		e.encodeNode(n.Items[j], r.RoleOf(n.Keys[j].Text))
	}
	e.WriteByte('}')
}

// quoteJSON writes a JSON string, without the escapes meant for HTML.
func quoteJSON(b *bytes.Buffer, s string) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s)       // a string and a buffer cannot fail
	b.Truncate(b.Len() - 1) // the newline after it
}
