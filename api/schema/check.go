package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/pattern"
	"github.com/coditect/mapreduce/api/schema/validator"
)

// compileSchema checks the file against the meta-schema and prepares validation of
// records.
func (r *reader) compileSchema(s *Schema, root *node) {
	fragment := ""
	if s.Kind == KindRecords {
		if s.wrap = root.get("items") == nil; !s.wrap {
			fragment = "#/items"
		}
	}
	var err error
	s.validator, err = validator.Compile(root.decodeValue(), fragment, func(c *jsonschema.Compiler) {
		c.UseRegexpEngine(boundedRegexp)
		c.RegisterFormat(&jsonschema.Format{Name: string(DateTime), Validate: validDateTime})
		c.RegisterFormat(&jsonschema.Format{Name: string(Time), Validate: validTime})
	})
	if err != nil {
		r.compileError(root, err)
	}
}

// compileError finds the places that a compiler error speaks of.
func (r *reader) compileError(root *node, err error) {
	var invalid *jsonschema.SchemaValidationError
	var mismatch *jsonschema.ValidationError
	ours := slices.Clone(r.errs)
	if !errors.As(err, &invalid) || !errors.As(invalid.Err, &mismatch) {
		if len(ours) == 0 { // else it says again what we found
			r.recordFault(root, "", "%s", strings.ReplaceAll(err.Error(), validator.Resource, ""))
		}
		return
	}
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

// Validate checks a record of normalised values against the schema. Null stands
// for "not found" and is taken as absent, so it breaks only "required". Keys
// beginning with _ carry what the result says about its values and are not
// looked at. The error names each value that does not fit.
func (s *Schema) Validate(record map[string]any) error {
	instance, err := withoutNulls(record)
	if err != nil {
		return err
	}
	if s.wrap {
		instance = []any{instance}
	}
	err = s.validator.Validate(instance)
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	var msgs []string
	for _, leaf := range leafErrors(invalid) {
		path := strings.Join(leaf.InstanceLocation, ".")
		msg := leaf.ErrorKind.LocalizedString(message.NewPrinter(language.English))
		msgs = append(msgs, strings.TrimPrefix(path+": "+msg, ": "))
	}
	slices.Sort(msgs)
	return errors.New(strings.Join(msgs, "; "))
}

// withoutNulls copies v without nulls. Numbers are bounded first, because the
// validator computes with them exactly.
func withoutNulls(v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if v[key] == nil || strings.HasPrefix(key, "_") {
				continue
			}
			item, err := withoutNulls(v[key])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			m[key] = item
		}
		return m, nil
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			var err error
			if list[i], err = withoutNulls(item); err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
		}
		return list, nil
	case json.Number:
		if _, ok := format.CanonicalNumber(v.String()); !ok {
			return nil, fmt.Errorf("the number %s is out of range", clipText(v.String()))
		}
	}
	return v, nil
}

// maxKeywordPattern bounds the patterns that are keywords of JSON Schema, in
// instructions. Matching them cannot be stopped, so that it must not take long.
const maxKeywordPattern = 1000

// boundedRegexp compiles the pattern of a keyword.
func boundedRegexp(expr string) (jsonschema.Regexp, error) {
	tree, err := pattern.Parse(expr)
	if err != nil {
		return nil, err
	}
	if n := pattern.Size(tree); n > maxKeywordPattern {
		return nil, fmt.Errorf("the pattern is too large: it takes %d instructions, of %d at most", n, maxKeywordPattern)
	}
	return regexp.Compile(expr)
}

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
