package schema

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema/format"
)

// HintKey is the key under which a schema carries our hints.
const HintKey = "x-coditect"

const (
	// maxNesting bounds how deep objects and lists of a record may be nested; a
	// definition that refers to itself reaches it.
	maxNesting = 12
	// maxReferences bounds how many schema objects in a row refer to the next one.
	maxReferences = 100
	// maxLooks bounds the work on one file: how often a schema object of it is looked at,
	// and a name of a property. Definitions that refer to others twice, which refer to
	// others twice, would take longer than anybody waits.
	maxLooks = 200_000
)

// Parse reads a schema file. The name is used in messages, and a name ending in
// .json makes the file JSON whatever it looks like. All faults are reported at
// once: the error is of type Errors.
func Parse(file string, data []byte) (*Schema, error) { return ParseIn("", file, data) }

// ParseIn reads a schema file as Parse does, for documents of a locale such as de-DE. The
// schema's own locale, if it states one, comes before it.
func ParseIn(locale, file string, data []byte) (*Schema, error) {
	found := &faults{file: file}
	root := (&treeParser{faults: found}).parseTree(data)
	if root == nil {
		return nil, found.errs.sortedUnique()
	}
	if locale != "" {
		root.addLocale(locale)
	}
	all := &views{faults: found, root: root}
	r := &reader{views: all, hints: &hintReader{views: all, hinted: map[*node]bool{}}}
	s := r.readSchema()
	if all.looks > maxLooks {
		return nil, Errors{{
			File: file, Line: root.line, Column: root.col, Msg: "its parts refer to each other so often that it would take too long to read",
		}}
	}
	if s != nil {
		r.hints.strayHints(root, "")
		r.compileSchema(s, root)
	}
	if len(found.errs) > 0 {
		return nil, found.errs.sortedUnique()
	}
	s.canonical, s.plain = encodeSchema(root, false), encodeSchema(root, true)
	s.fields = flattenFields("", s.Properties)
	return s, nil
}

// addLocale adds the hint locale to a schema that has none.
func (n *node) addLocale(locale string) {
	if n.kind != nodeMap {
		return
	}
	hints := n.get(HintKey)
	if hints == nil {
		hints = &node{kind: nodeMap, line: n.line, col: n.col}
		n.setKey(HintKey, hints)
	}
	if hints.kind == nodeMap && hints.get("locale") == nil {
		hints.setKey("locale", &node{kind: nodeString, text: locale, line: n.line, col: n.col})
	}
}

// setKey adds a key that a mapping does not have.
func (n *node) setKey(key string, value *node) {
	if n.index == nil {
		n.index = map[string]int{}
	}
	n.index[key] = len(n.keys)
	n.keys = append(n.keys, &node{kind: nodeString, text: key, line: n.line, col: n.col})
	n.items = append(n.items, value)
}

// A reader turns a tree into a Schema.
type reader struct {
	*views
	hints *hintReader
}

// faults are what is wrong with a file, as far as it was read.
type faults struct {
	file string
	errs Errors
}

func (f *faults) recordFault(n *node, path, format string, args ...any) {
	f.errs = append(f.errs, &Error{
		File: f.file, Line: n.line, Column: n.col, Path: path, Msg: fmt.Sprintf(format, args...),
	})
}

// views looks schema objects up, and what they refer to.
type views struct {
	*faults
	root  *node
	looks int // once these are more than maxLooks, nothing more is looked up
}

// look counts that a schema object is looked at, and reports whether it may be.
func (r *views) look(n *node) bool {
	r.looks++
	if props := n.get("properties"); props != nil {
		r.looks += len(props.keys)
	}
	return r.looks <= maxLooks
}

// A view is a schema object together with the objects that it refers to. Its own keys
// come first, then the keys of $ref, of allOf, and of the only alternative of anyOf or
// oneOf that is not null.
type view struct {
	nodes    []*node
	paths    []string
	nullable bool

	gathered map[*node]bool // false while those that it refers to are gathered
}

// get returns the value of key and its path.
func (v *view) get(key string) (*node, string) {
	for i, n := range v.nodes {
		if found := n.get(key); found != nil {
			return found, joinPath(v.paths[i], key)
		}
	}
	return nil, ""
}

// readString returns the string at key, "" when there is none.
func (r *views) readString(v *view, key string) string {
	n, path := v.get(key)
	if n == nil {
		return ""
	}
	if n.kind != nodeString {
		r.recordFault(n, path, "must be a string, not %s", n.kind)
		return ""
	}
	return n.text
}

func (r *views) newView(n *node, path string) *view {
	v := &view{gathered: make(map[*node]bool)}
	r.gatherKeywords(v, n, path, 0)
	return v
}

func (r *views) gatherKeywords(v *view, n *node, path string, depth int) {
	if n.kind == nodeBool && n.text == "true" {
		return // the schema that allows everything
	}
	if n.kind != nodeMap {
		r.recordFault(n, path, "a schema must be a mapping, not %s", n.kind)
		return
	}
	switch done, known := v.gathered[n]; {
	case known && !done:
		r.recordFault(n, path, "refers to itself")
		return
	case depth > maxReferences:
		r.recordFault(n, path, "more than %d references in a row", maxReferences)
		return
	case known || !r.look(n):
		return // once is enough, as what comes first counts
	}
	v.gathered[n] = false
	defer func() { v.gathered[n] = true }()
	v.nodes, v.paths = append(v.nodes, n), append(v.paths, path)
	if ref := n.get("$ref"); ref != nil {
		if target, to := r.resolveRef(ref, joinPath(path, "$ref")); target != nil {
			r.gatherKeywords(v, target, to, depth+1)
		}
	}
	if all := n.get("allOf"); all != nil && all.kind == nodeList {
		for i, item := range all.items {
			r.gatherKeywords(v, item, fmt.Sprintf("%s[%d]", joinPath(path, "allOf"), i), depth+1)
		}
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if list := n.get(key); list != nil && list.kind == nodeList {
			r.followAlternative(v, n, list, joinPath(path, key), depth)
		}
	}
}

// followAlternative follows anyOf and oneOf when all but one of their schemas are null,
// which is how generators write "may be missing".
func (r *views) followAlternative(v *view, n, alternatives *node, path string, depth int) {
	var chosen []int
	for i, item := range alternatives.items {
		if t := item.get("type"); t != nil && t.text == "null" {
			v.nullable = true
			continue
		}
		chosen = append(chosen, i)
	}
	switch {
	case len(chosen) == 1:
		r.gatherKeywords(v, alternatives.items[chosen[0]], fmt.Sprintf("%s[%d]", path, chosen[0]), depth+1)
	case len(chosen) > 1 && n.get("type") == nil:
		r.recordFault(alternatives, path, "several alternatives; give the property one type")
	}
}

// resolveRef follows a reference inside the file.
func (r *views) resolveRef(ref *node, path string) (*node, string) {
	fragment, ok := strings.CutPrefix(ref.text, "#")
	if ref.kind != nodeString || !ok {
		r.recordFault(ref, path, "only references within the file (#/…) are followed, not %q", clipText(ref.text))
		return nil, ""
	}
	n, at := r.root, ""
	for _, token := range strings.Split(fragment, "/")[1:] {
		if plain, err := url.PathUnescape(token); err == nil {
			token = plain
		}
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		if n = n.get(token); n == nil {
			r.recordFault(ref, path, "nothing is at %q", clipText(ref.text))
			return nil, ""
		}
		at = joinPath(at, token)
	}
	return n, at
}

// readSchema reads the whole file.
func (r *reader) readSchema() *Schema {
	root := r.root
	if root.kind != nodeMap {
		r.recordFault(root, "", "a schema must be a mapping, not %s", root.kind)
		return nil
	}
	v := r.newView(root, "")
	s := &Schema{Title: r.readString(v, "title"), Description: r.readString(v, "description"), Kind: KindRecord}
	record := v
	switch t := r.typeOf(v, root, ""); t {
	case "", Object:
	case Array:
		s.Kind = KindRecords
		items, path := v.get("items")
		if items == nil {
			r.recordFault(root, "", "a schema of type array needs items of type object")
			return nil
		}
		record = r.newView(items, path)
		if r.typeOf(record, items, path) != Object {
			r.recordFault(items, path, "the items of the schema must be of type object")
			return nil
		}
	default:
		r.recordFault(root, "type", "the type of a schema must be object or array, not %s", t)
		return nil
	}
	s.Properties = r.readProperties(record, root, "", 0)
	r.checkUniquePaths(s, record)
	s.Key = r.hints.topHints(v, s)
	return s
}

// checkUniquePaths makes sure that a field path means one field.
func (r *reader) checkUniquePaths(s *Schema, v *view) {
	seen := map[string]bool{}
	for _, f := range flattenFields("", s.Properties) {
		if seen[f.Path] {
			n, path := v.get("properties")
			r.recordFault(n, path, "two properties have the same path, %q", f.Path)
		}
		seen[f.Path] = true
	}
}

// readProperties reads the properties of an object, those of allOf included.
func (r *reader) readProperties(v *view, at *node, path string, depth int) []Property {
	var list []Property
	required := r.requiredNames(v)
	seen := map[string]bool{}
	for i, n := range v.nodes {
		props := n.get("properties")
		if props == nil {
			continue
		}
		where := joinPath(v.paths[i], "properties")
		if props.kind != nodeMap {
			r.recordFault(props, where, "must be a mapping, not %s", props.kind)
			continue
		}
		for j, key := range props.keys {
			if seen[key.text] {
				continue
			}
			seen[key.text] = true
			if strings.TrimSpace(key.text) == "" || strings.HasPrefix(key.text, "_") {
				r.recordFault(key, joinPath(where, key.text), "a property's name must not be empty or begin with _, which marks what the result says about its values")
				continue
			}
			p := r.readProperty(key.text, props.items[j], joinPath(where, key.text), depth+1)
			_, p.Required = required[key.text]
			delete(required, key.text)
			list = append(list, p)
		}
	}
	if len(seen) == 0 {
		r.recordFault(at, path, "there are no properties, so there is nothing to extract")
		return nil
	}
	for name, n := range required {
		r.recordFault(n, "required", "there is no property %q", clipText(name))
	}
	return list
}

// requiredNames returns the names of required properties and where they are said.
func (r *reader) requiredNames(v *view) map[string]*node {
	names := map[string]*node{}
	for _, n := range v.nodes {
		list := n.get("required")
		if list == nil || list.kind != nodeList {
			continue // the meta-schema says what is wrong with it
		}
		for _, item := range list.items {
			names[item.text] = item
		}
	}
	return names
}

// readProperty reads one property.
func (r *reader) readProperty(name string, n *node, path string, depth int) Property {
	p := r.readShape(name, n, path, depth)
	if depth <= maxNesting {
		p.Hints = r.hints.readHints(r.newView(n, path), &p)
	}
	return p
}

// readShape reads what a property says of its values, without its hints.
func (r *reader) readShape(name string, n *node, path string, depth int) Property {
	p := Property{Name: name, Type: String}
	if depth > maxNesting {
		r.recordFault(n, path, "nested too deeply, or refers to itself")
		return p
	}
	v := r.newView(n, path)
	p.Title, p.Description = r.readString(v, "title"), r.readString(v, "description")
	p.Type = r.typeOf(v, n, path)
	p.Format = Format(r.readString(v, "format"))
	p.Nullable = v.nullable
	switch p.Type {
	case Object:
		p.Properties = r.readProperties(v, n, path, depth)
	case Array:
		item := Property{Name: name, Type: String}
		if items, at := v.get("items"); items != nil {
			item = r.readItems(name, items, at, depth+1)
		}
		p.Items = &item
	}
	p.Enum = r.readEnum(v, &p)
	p.Fraction = endsAtOne(v)
	return p
}

// endsAtOne reports whether no value may be greater than 1.
func endsAtOne(v *view) bool {
	for _, key := range []string{"maximum", "exclusiveMaximum"} {
		n, _ := v.get(key)
		if n == nil || n.kind != nodeNumber {
			continue
		}
		if most, ok := format.CanonicalNumber(n.text); ok && format.CompareNumbers(most, "1") <= 0 && format.CompareNumbers(most, "0") > 0 {
			return true
		}
	}
	return false
}

// readItems reads the items of a list. Hints of single values are read with the
// list, see readHints; for a list in a list there are none.
func (r *reader) readItems(name string, n *node, path string, depth int) Property {
	p := r.readShape(name, n, path, depth)
	if p.Type == Object {
		p.Hints = r.hints.readHints(r.newView(n, path), &p)
	}
	return p
}

// typeOf returns the type of the schema object, from its other keywords when it
// is not said. A list of types may hold one type besides null.
func (r *reader) typeOf(v *view, n *node, path string) Type {
	t, at := v.get("type")
	if t == nil {
		return inferType(v)
	}
	names := []*node{t}
	if t.kind == nodeList {
		names = t.items
	}
	found := Type("")
	for _, name := range names {
		switch typ := Type(name.text); {
		case name.kind != nodeString:
			r.recordFault(name, at, "a type must be a string, not %s", name.kind)
		case typ == "null":
			v.nullable = true
		case !slices.Contains([]Type{String, Number, Integer, Boolean, Array, Object}, typ):
			r.recordFault(name, at, "unknown type %q; known are string, number, integer, boolean, array, object", clipText(name.text))
		case found != "" && found != typ:
			r.recordFault(name, at, "several types; give the property one, besides null")
		default:
			found = typ
		}
	}
	if found == "" {
		found = String
		if len(names) == 1 && names[0].text == "null" {
			r.recordFault(t, at, "a property of type null can hold no value; name another type")
		}
	}
	return found
}

// inferType guesses the type of a schema object that does not tell it.
func inferType(v *view) Type {
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { n, _ := v.get(k); return n != nil })
	}
	switch {
	case has("properties"):
		return Object
	case has("items", "prefixItems"):
		return Array
	case has("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
		return Number
	}
	list, _ := v.get("enum")
	if list == nil || len(list.items) == 0 {
		return String
	}
	switch list.items[0].kind {
	case nodeNumber:
		return Number
	case nodeBool:
		return Boolean
	default:
		return String
	}
}

// readEnum reads the allowed values in their normalised form.
func (r *reader) readEnum(v *view, p *Property) []any {
	list, path := v.get("enum")
	if list == nil || list.kind != nodeList {
		return nil
	}
	var values []any
	for i, item := range list.items {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch item.kind {
		case nodeNull:
			p.Nullable = true
			continue
		case nodeList, nodeMap:
			r.recordFault(item, at, "an allowed value must be a string, number or boolean, not %s", item.kind)
			continue
		}
		value := item.decodeValue()
		if !p.allowsKind(item.kind) {
			r.recordFault(item, at, "%s does not fit the type %s", clipText(item.text), p.Type)
			continue
		}
		if num, ok := value.(json.Number); ok {
			text, _ := format.CanonicalNumber(num.String())
			value = json.Number(text)
		}
		values = append(values, value)
	}
	return values
}

// allowsKind reports whether a literal of this kind can be a value of p.
func (p *Property) allowsKind(kind nodeKind) bool {
	switch p.Type {
	case String:
		return kind == nodeString
	case Boolean:
		return kind == nodeBool
	case Number, Integer:
		return kind == nodeNumber
	default:
		return false
	}
}
