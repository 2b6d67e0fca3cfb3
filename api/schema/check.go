package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/validator"
)

// compileSchema checks the file against the meta-schema and prepares validation of
// records.
func (r *shaper) compileSchema(s *Schema, root *node) {
	fragment := ""
	// Of a schema of a list, the validator sees one record: the schema of the items, or a
	// list of one.
	if s.Kind == KindRecords && !s.whole {
		items := root.get("items")
		if s.wrap = items == nil || items.kind != nodeMap; !s.wrap {
			fragment = "#/items"
		}
	}

	doc := root.decodeValue()
	var first error
	for _, draft := range r.draftsOf(root, doc) {
		var err error
		s.validator, err = validator.Compile(doc, fragment, func(c *jsonschema.Compiler) {
			c.DefaultDraft(draft)
			c.RegisterFormat(&jsonschema.Format{Name: string(DateTime), Validate: validDateTime})
			c.RegisterFormat(&jsonschema.Format{Name: string(Time), Validate: validTime})
		})

		if err == nil {
			return
		}

		first = cmp.Or(first, err)
		// Another draft would not mend a schema for which no value can be.
		if errors.Is(err, validator.ErrNothingFits) {
			break
		}
	}

	r.compileError(root, first)
}

// draftsOf returns the drafts of JSON Schema by which a schema may be meant, the likeliest
// first. Many schemas name none, or one that nobody knows; then keywords that only earlier
// drafts had in their form tell.
func (r *shaper) draftsOf(root *node, doc any) []*jsonschema.Draft {
	if named := root.get("$schema"); named != nil {
		known := regexp.MustCompile(`^https?://json-schema\.org/(draft-0[467]|draft/20(19-09|20-12))/schema#?$`)
		if known.MatchString(named.text) {
			return []*jsonschema.Draft{jsonschema.Draft2020}
		}
		r.warn(named, "$schema", "%q is no draft of JSON Schema that is known, from 4 to 2020-12; the schema is read as one of these", clipText(named.text))
		if m, ok := doc.(map[string]any); ok {
			delete(m, "$schema")
		}
	}

	drafts := []*jsonschema.Draft{jsonschema.Draft2020}
	if isWritten(root, keywords, func(n *node) bool { items := n.get("items"); return items != nil && items.kind == nodeList }) {
		drafts = append(drafts, jsonschema.Draft7)
	}

	if isWritten(root, keywords, func(n *node) bool {
		isOld := func(key string) bool { v := n.get(key); return v != nil && v.kind == nodeBool }
		return isOld("exclusiveMinimum") || isOld("exclusiveMaximum") || n != root && n.get("$id") != nil // which draft 4 does not know
	}) {
		drafts = append(drafts, jsonschema.Draft4)
	}

	return drafts
}

// isWritten reports whether told holds of some schema object of a part of a schema.
func isWritten(n *node, as role, told func(*node) bool) bool {
	if as == data || as == hints || as == values {
		return false
	}

	if as == keywords && n.kind == nodeMap && told(n) {
		return true
	}

	for i, item := range n.items {
		inner := as
		if n.kind == nodeMap {
			inner = as.roleOf(n.keys[i].text)
		}
		if isWritten(item, inner, told) {
			return true
		}
	}

	return false
}

// compileError finds the places that a compiler error speaks of.
func (r *shaper) compileError(root *node, err error) {
	var invalid *jsonschema.SchemaValidationError
	var mismatch *jsonschema.ValidationError

	ours := slices.Clone(r.errs)
	if !errors.As(err, &invalid) || !errors.As(invalid.Err, &mismatch) {
		if len(ours) == 0 { // else it says again what we found
			r.recordFault(root, "", "%s", strings.ReplaceAll(err.Error(), validator.Resource, ""))
		}
		return
	}
	// Each fault is put to the deepest node on the way to it that the file has.
	for _, leaf := range leafErrors(mismatch) {
		n, path := root, ""
		for _, token := range leaf.InstanceLocation {
			next := n.childAt(token)
			if next == nil {
				break
			}
			n, path = next, joinPath(path, token)
		}

		known := func(e *Error) bool { return e.Line == n.line && e.Column == n.col }
		// What was found before in this place is said in better words.
		if !slices.ContainsFunc(ours, known) {
			r.recordFault(n, path, "%s", leaf.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
		}
	}
}

// childAt returns the value at one token of a JSON pointer.
func (n *node) childAt(token string) *node {
	if n.kind == nodeList {
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(n.items) {
			return n.items[i]
		}
		return nil
	}
	return n.get(token)
}

// leafErrors returns the faults at the bottom of a tree of faults; those above say
// only that something below is wrong.
func leafErrors(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var all []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		all = append(all, leafErrors(cause)...)
	}
	return all
}

// IsPlainPattern reports whether a pattern has the syntax that all who match patterns know,
// and takes them little time.
func IsPlainPattern(expr string) bool { return validator.IsPlainPattern(expr) }

func validDateTime(v any) error { return validFormat(v, format.ParseDateTime) }

func validTime(v any) error { return validFormat(v, format.ParseTime) }

// validFormat accepts strings that are in the form that parse gives them.
func validFormat(v any, parse func(string) (string, bool)) error {
	s, ok := v.(string)
	if !ok {
		return nil
	}
	if normal, ok := parse(s); !ok || normal != s {
		return errors.New("not in the normalised form")
	}
	return nil
}

// Canonical returns the schema as compact JSON: equal schemas give equal bytes,
// and Parse makes the same schema of it. Keys are sorted, but for those whose
// order means something: properties and values.
func (s *Schema) Canonical() []byte { return bytes.Clone(s.canonical) }

// Plain returns the canonical form without our hints, for readers that know JSON
// Schema alone. Properties are in the order of the file.
func (s *Schema) Plain() []byte { return bytes.Clone(s.plain) }

// Asked returns Plain without the properties at the top that have the hint given: what a model
// is asked to write. See withoutGiven for the schemas that keep them.
func (s *Schema) Asked() []byte { return bytes.Clone(s.asked) }

// A role is the meaning of a mapping's keys.
type role int

const (
	keywords   role = iota // of JSON Schema
	properties             // names of schemas, in an order that means something
	schemas                // names of schemas
	hints                  // of ours
	values                 // names of lists, in an order that means something
	data                   // whatever they are
)

// roleOf returns the role of the value of a key.
func (r role) roleOf(key string) role {
	switch r {
	case properties, schemas:
		return keywords
	case hints:
		if key == "values" {
			return values
		}
		return data
	case values, data:
		return data
	}

	switch key {
	// Of a schema object, the key decides; all that is not listed holds schemas.
	case "properties":
		return properties
	case "$defs", "definitions", "patternProperties", "dependentSchemas":
		return schemas
	case HintKey:
		return hints
	case "default", "examples", "const", "enum":
		return data
	}
	return keywords
}

// An encoder writes nodes as canonical JSON.
type encoder struct {
	bytes.Buffer
	plain bool // leaves out hints
}

func encodeSchema(root *node, plain bool) []byte {
	e := encoder{plain: plain}
	e.encodeNode(root, keywords)
	return e.Bytes()
}

func (e *encoder) encodeNode(n *node, r role) {
	switch n.kind {
	case nodeList:
		e.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				e.WriteByte(',')
			}
			e.encodeNode(item, r)
		}
		e.WriteByte(']')
	case nodeMap:
		e.encodeMapping(n, r)
	case nodeString:
		quoteJSON(&e.Buffer, n.text)
	case nodeNull:
		e.WriteString("null")
	default:
		e.WriteString(n.text)
	}
}

func (e *encoder) encodeMapping(n *node, r role) {
	order := make([]int, 0, len(n.keys))
	for i, key := range n.keys {
		if !e.plain || r.roleOf(key.text) != hints {
			order = append(order, i)
		}
	}

	if r != properties && r != values {
		// Where the order is of meaning, in properties and values, that of the file is
		// kept.
		slices.SortFunc(order, func(i, j int) int { return strings.Compare(n.keys[i].text, n.keys[j].text) })
	}

	e.WriteByte('{')
	for i, j := range order {
		if i > 0 {
			e.WriteByte(',')
		}
		quoteJSON(&e.Buffer, n.keys[j].text)
		e.WriteByte(':')
		e.encodeNode(n.items[j], r.roleOf(n.keys[j].text))
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
