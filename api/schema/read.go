package schema

import "fmt"

// HintKey is the key under which a schema carries our hints.
const HintKey = "x-coditect"

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

	root = unwrap(root)
	if beyond := root.partBeyond(maxParts); beyond != nil {
		found.recordFault(beyond, "", "the schema has more than %d parts, mappings and booleans: leave out what is not to be extracted", maxParts)
		return nil, found.errs.sortedUnique()
	}

	if locale != "" {
		root.addLocale(locale)
	}

	all := newViews(found, root)
	r := &shaper{views: all, hints: &hintReader{placeReader: &placeReader{views: all}, hinted: map[*node]bool{}}}
	s := r.readSchema()

	// The work is bounded in looks, as short schemas may refer to each other very often.
	if all.looks > maxLooks {
		return nil, Errors{{
			File: file, Line: root.line, Column: root.col, Msg: "its parts refer to each other so often that it would take too long to read",
		}}
	}

	if s != nil {
		if s.fields = s.listFields(); len(s.fields) == 0 {
			found.recordFault(root, "", "nothing but null is allowed in any of its properties, so there is nothing to extract")
		}
		r.hints.checkPlacesOfDerived(s)
		r.hints.strayHints(root, "")
		r.warnOfTypos(root, keywords, "")
		r.compileSchema(s, root)
	}

	if len(found.errs) > 0 {
		return nil, found.errs.sortedUnique()
	}

	// Warnings are for schemas that can be used: after a fault only the faults are shown.
	s.Warnings = found.warnings.sortedUnique()
	s.canonical, s.plain = encodeSchema(root, false), encodeSchema(root, true)
	s.asked = encodeSchema(root.withoutGiven(s.Properties), true)

	return s, nil
}

// maxParts bounds what may be a schema within a schema: to compile so many takes a second, and twice as many four
// times as long. The largest of 9,557 public schemas that a job takes has 2,700.
const maxParts = 7_000

// partBeyond returns the first mapping or boolean of a tree that has most before it; nil if there is none.
func (n *node) partBeyond(most int) *node {
	seen := 0
	var visit func(n *node) *node
	visit = func(n *node) *node {
		if n.kind == nodeMap || n.kind == nodeBool {
			if seen++; seen > most {
				return n
			}
		}

		for _, item := range n.items {
			if beyond := visit(item); beyond != nil {
				return beyond
			}
		}
		return nil
	}
	return visit(n)
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

// faults are what is wrong with a file, as far as it was read.
type faults struct {
	file     string
	errs     Errors
	warnings Errors // what is accepted, and has no effect or another than its author may think
}

func (f *faults) recordFault(n *node, path, format string, args ...any) {
	f.errs = append(f.errs, &Error{
		File: f.file, Line: n.line, Column: n.col, Path: path, Msg: fmt.Sprintf(format, args...),
	})
}

func (f *faults) warn(n *node, path, format string, args ...any) {
	f.warnings = append(f.warnings, &Error{
		File: f.file, Line: n.line, Column: n.col, Path: path, Msg: fmt.Sprintf(format, args...),
	})
}

// readSchema reads the whole file.
func (r *shaper) readSchema() *Schema {
	root := r.root
	if root.kind != nodeMap {
		r.recordFault(root, "", "a schema must be a mapping, not %s", root.kind)
		return nil
	}

	v := r.newView(root, "")
	s := &Schema{Title: r.readString(v, "title"), Description: r.readString(v, "description"), Kind: KindRecord}

	types := r.typesOf(v)
	switch whole := types & (typeObject | typeArray); {
	case types == 0:
		r.recordFault(root, "type", "no value fits: what the schema asks for excludes every type")
		return nil
	case whole == 0:
		r.recordFault(root, "type", "the type of a schema must be object or array, not %s", types)
		return nil
	case whole == typeArray, whole != typeObject && types != typeAll && r.mentioned(v, Array) < r.mentioned(v, Object):
		s.Kind = KindRecords
		r.readList(s, r.narrow(v, typeArray))
	default:
		r.readRecord(s, r.narrow(v, typeObject), root, "")
	}

	if len(s.Properties) == 0 && s.Rest == nil {
		r.recordFault(root, "", "there are no properties, so there is nothing to extract")
		return nil
	}

	s.Key = r.hints.topHints(v, s)
	return s
}

// readRecord reads what a record of the schema has.
func (r *shaper) readRecord(s *Schema, v *view, n *node, path string) {
	record := Property{Type: Object}
	r.readKind(&record, v, n, path, 0)
	s.useRecord(&record)
	if extra, _ := v.get("additionalProperties"); len(s.Properties) == 0 && extra != nil && extra.text == "false" && !v.has("patternProperties") {
		s.Rest = nil
	}
}

// useRecord makes p, an object or a map, what a record of the schema has.
func (s *Schema) useRecord(p *Property) {
	s.Properties, s.Rest = p.Properties, restOf(p)
	if p.Type == Map {
		s.Rest = restOf(&Property{Rest: p.Items})
	}
}

// readList reads a schema of many records in a document, of its items. Items that are no
// objects become records with one field.
func (r *shaper) readList(s *Schema, v *view) {
	list := Property{Name: ValueName, Type: Array}
	r.readKind(&list, v, r.root, "", 0)

	switch {
	case list.Type == Array && (list.Items.Type == Object || list.Items.Type == Map):
		s.useRecord(list.Items)
		return
	case list.Type == Array:
		list.Items.Name, list.Items.Required = ValueName, true
		s.Properties, s.bare = []Property{*list.Items}, true
	default:
		list.Required = true
		s.Properties, s.bare, s.whole = []Property{list}, true, true
	}

	setSteps(s.Properties)
}
